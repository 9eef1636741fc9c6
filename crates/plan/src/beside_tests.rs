use super::*;
use results::sample::{from_words, has};

/// Those of a sweep of these options and of a file.
fn made(options: &str, file: &str, entries: &[&str]) -> Result<(Vec<Case>, Vec<String>), String> {
    let file = ConfigFile::parse(file, Path::new("s.toml"), &[]).unwrap();
    let sweep = Sweep::with_flows(&from_words(options), &file.flows, Nodes::TwoEnds).unwrap();
    let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
    let (sweep, attackers) = beside(sweep, &entries)?;
    Ok((sweep.cases, attackers))
}

#[test]
fn every_carried_attacker_is_a_case_beside_any_victim() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench-configs/attackers");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), CARRIED.len());
    let victims = ["op=read size=8", "op=send bidirectional=true workers=3", "service=ud rate=1M"];
    for options in victims {
        let (cases, names) = made(options, "", &[ALL]).unwrap();
        assert!(CARRIED.iter().map(|it| it.0).eq(names));
        for (case, (name, text)) in cases[1..].iter().zip(CARRIED) {
            assert!(text.starts_with("# An attacker for --beside. It exhausts "), "{name}");
            assert_eq!(case.id, format!("{}+{name}", cases[0].id));
            let (victim, attackers) = case.flows.split_first().unwrap();
            assert_eq!(victim.settings, cases[0].flows[0].settings);
            assert_eq!((&*victim.name, victim.worker_set), (VICTIM, 0));
            assert!(attackers.iter().all(|it| (it.worker_set, it.workers) == (1, case.workers)));
        }
    }
}

#[test]
fn an_attacker_may_be_a_flow_of_the_file_or_a_file() {
    let named = |name: &str| format!("[[flow]]\nname = '{name}'\n");
    let three_flows = ["a", "bandwidth", "c"].map(named).concat();
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine.toml");
    let back = "from = 'server'\nto = 'client'\n";
    std::fs::write(&mine, format!("size = '4K'\n{}{back}", named("a"))).unwrap();
    let (cases, attackers) =
        made("", &three_flows, &["bandwidth", mine.to_str().unwrap()]).unwrap();
    assert_eq!(attackers, ["bandwidth", "mine"]);
    let described = cases.iter().map(|case| {
        let flows: Vec<&str> = case.flows.iter().map(|it| &*it.name).collect();
        format!("{}: {}", case.id, flows.join(" "))
    });
    let expected = ["a+c: a c", "a+c+bandwidth: a c bandwidth", "a+c+mine: a c mine-a"];
    assert!(described.eq(expected));
    let attacker = &cases[2].flows[2];
    assert_eq!((attacker.from, attacker.to, attacker.size_bytes), (1, 0, 4096));
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let flows = "[[flow]]\nname = 'a'\n[[flow]]\nname = 'b'\n";
    for (options, file, entries, words) in [
        ("qps=1,4", "", &["reads"][..], "a victim is one case: "),
        ("rate=50%", "", &["reads"], "--rate without %"),
        ("op=connect", "", &["reads"], "not --op connect"),
        ("iters=10", "", &["reads"], "give -D"),
        ("", "", &["reads", "all"], "reads is listed twice"),
        ("", "", &["raeds"], "`raeds`; did you mean `reads`?; there are bandwidth, packets, "),
        ("", flows, &["c"], "writes-and-reads, a, b, all, and files"),
        ("", flows, &["a", "b"], "no flow is left for the victim"),
        ("", "", &["./none.toml"], "cannot read the configuration file ./none.toml"),
    ] {
        has(made(options, file, entries).unwrap_err(), [words]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    for (text, words) in [
        ("workers = 2\n[[flow]]\n", "`workers` holds for the victim too"),
        ("qps = 4\n", "needs a plain name and [[flow]] tables"),
        ("nodes = 'local:3'\n[[flow]]\n", "and no `nodes`"),
        ("size = [1, 2]\n[[flow]]\n", "an attacker is one case"),
        ("[[flow]]\n  to = 'nobody'\n", "x.toml:2:3: "),
    ] {
        std::fs::write(&path, text).unwrap();
        has(made("", "", &[path.to_str().unwrap()]).unwrap_err(), [words]);
    }
}
