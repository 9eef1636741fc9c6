use super::*;
use crate::tests::{asked, has};

/// Those of a sweep of these options, and flows of a file.
fn beside(options: &str, file: &str, entries: &[&str]) -> Result<(Sweep, Beside), String> {
    let file = ConfigFile::parse(file, Path::new("s.toml"), &[]).unwrap();
    let sweep = Sweep::with_flows(&asked(options), &file.flows, Nodes::TwoEnds).unwrap();
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    Beside::new(sweep, &entries).map_err(|error| format!("{error}\n{}", error.hint))
}

#[test]
fn every_carried_attacker_is_a_case_beside_any_victim() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bench-configs/attackers");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), CARRIED.len());
    for victim in [
        "op=read size=8",
        "op=send bidirectional=true workers=3",
        "service=ud rate=1M",
    ] {
        let (sweep, beside) = beside(victim, "", &[ALL]).unwrap();
        let names: Vec<&str> = CARRIED.iter().map(|(name, _)| *name).collect();
        assert_eq!(beside.attackers, names);
        let (alone, others) = sweep.cases.split_first().unwrap();
        for (case, (name, text)) in others.iter().zip(CARRIED) {
            assert!(
                text.starts_with("# An attacker for --beside. It exhausts "),
                "{name}"
            );
            assert_eq!(case.id, format!("{}+{name}", alone.id));
            assert_eq!(case.flows[0].settings, alone.flows[0].settings);
            assert_eq!(
                (&*case.flows[0].name, case.flows[0].worker_set),
                (VICTIM, 0)
            );
            let attackers = &case.flows[1..];
            assert!(
                attackers
                    .iter()
                    .all(|it| it.worker_set == 1 && it.workers == alone.workers)
            );
        }
        assert_eq!(sweep.max_workers(), 2 * alone.workers);
    }
}

#[test]
fn an_attacker_may_be_a_flow_of_the_file_or_a_file() {
    let flows =
        "[[flow]]\nname = 'a'\n[[flow]]\nname = 'bandwidth'\nqps = 2\n[[flow]]\nname = 'c'\n";
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    std::fs::write(
        &mine,
        "size = '4K'\n[[flow]]\nname = 'a'\nfrom = 'server'\nto = 'client'\n",
    )
    .unwrap();
    let (sweep, beside) = beside("", flows, &["bandwidth", mine.to_str().unwrap()]).unwrap();
    assert_eq!(beside.attackers, ["bandwidth", "mine"]);
    let named = |case: &Case| {
        case.flows
            .iter()
            .map(|it| it.name.clone())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let cases: Vec<_> = sweep
        .cases
        .iter()
        .map(|case| (&*case.id, named(case)))
        .collect();
    let expected = [
        ("a+c", "a c"),
        ("a+c+bandwidth", "a c bandwidth"),
        ("a+c+mine", "a c mine-a"),
    ];
    assert_eq!(cases, expected.map(|(id, names)| (id, names.to_owned())));
    let attacker = &sweep.cases[2].flows[2];
    assert_eq!(
        (attacker.from, attacker.to, attacker.size_bytes),
        (1, 0, 4096)
    );
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let flows = "[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\n";
    for (options, file, entries, words) in [
        (
            "qps=1,4",
            "",
            &["reads"][..],
            "the victim is one case, and there are 2",
        ),
        ("rate=50%", "", &["reads"], "--rate in messages"),
        ("op=connect", "", &["reads"], "--op connect sets QPs up"),
        ("iters=10", "", &["reads"], "give -D"),
        ("", "", &["reads", "all"], "reads is listed twice"),
        (
            "",
            "",
            &["raeds"],
            "named `raeds`; did you mean `reads`?\nthere are bandwidth, packets, ",
        ),
        ("", flows, &["c"], "writes-and-reads, a, b, all, and files"),
        ("", flows, &["a", "b"], "no flow is left for the victim"),
        (
            "",
            "",
            &["./none.toml"],
            "cannot read the configuration file ./none.toml",
        ),
    ] {
        has(beside(options, file, entries).unwrap_err(), [words]);
    }
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        (
            "workers = 2\n[[flow]]\n",
            "`workers` holds for the victim too",
        ),
        ("qps = 4\n", "has [[flow]] tables"),
        ("nodes = 'local:3'\n[[flow]]\n", "no `nodes`"),
        ("size = [1, 2]\n[[flow]]\n", "several cases"),
        ("[[flow]]\n  to = 'nobody'\n", "x.toml:2:3: "),
    ] {
        let path = folder.path().join("x.toml");
        std::fs::write(&path, text).unwrap();
        has(
            beside("", "", &[path.to_str().unwrap()]).unwrap_err(),
            [words],
        );
    }
}
