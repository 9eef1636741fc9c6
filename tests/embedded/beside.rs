//! A victim alone and beside attackers: whole runs, and what they leave behind. No rate is asserted.

use testing::program::{Call, Ended, call};

/// A victim of 4 KiB and a flow of the same file, beside which it runs.
const FLOWS: &str = "
    op = 'write'
    size = '4K'
    tx-depth = 8
    [[flow]]
    name = 'prey'
    [[flow]]
    name = 'noise'
    qps = 2
";

const MINE: &str =
    "[[flow]]\nname = 'up'\nfrom = 'server'\nto = 'client'\nop = 'send'\nsize = 64\n";

fn rounds(words: &str) -> Call {
    let how =
        "-d soft0 --timeout 18 --warmup 0 -D 200ms --config flows.toml --beside noise,./mine.toml";
    let call = call(&format!("{how} --pairs 2 --max-pairs 2 {words}"));
    call.with_file("flows.toml", FLOWS).with_file("mine.toml", MINE)
}

/// The cases of all runs, in the order in which they began.
fn order(ended: &Ended) -> Vec<String> {
    let result = ended.result();
    let mut runs: Vec<_> = result
        .cases
        .iter()
        .flat_map(|case| {
            let id = case.id.clone();
            case.runs.iter().map(move |run| (run.started_at.clone(), id.clone()))
        })
        .collect();
    runs.sort();
    runs.into_iter().map(|(_, id)| id).collect()
}

#[test]
fn rounds_begin_at_either_end_and_tell_of_each_attacker() {
    let ended = rounds("--fail-victim 1000x").run();
    let harms = ended.result().beside;
    // A busy machine's windows may be in doubt.
    let are_known = harms.iter().all(|it| it.gbit_per_s.factor.is_some());
    let ended = ended.exits(i32::from(!are_known)).all_whole(3);
    let there = ["prey", "prey+noise", "prey+mine"];
    assert_eq!(order(&ended), [there, ["prey+mine", "prey+noise", "prey"]].concat());
    let result = ended.result();
    let named: Vec<&str> = result.beside.iter().map(|it| &*it.attacker).collect();
    assert_eq!(named, ["noise", "mine"]);
    for (harm, case) in result.beside.iter().zip(&result.cases[1..]) {
        assert_eq!((&*harm.alone, &harm.beside), ("prey", &case.id));
        assert_eq!(harm.rounds, 2);
        let is_known = harm.gbit_per_s.factor.is_some();
        assert_eq!(is_known, harm.counted > 0, "{harm:?}");
        assert_eq!((&*harm.verdict, harm.gbit_per_s.factor_low), ("unclear", None));
        // The victim's thread is its own.
        for run in &case.runs {
            assert_eq!(run.node("client").unwrap().workers.len(), 2);
        }
    }
    ended.shows(&["the victim is", "noise ", "mine ", "a verdict needs at least 8 rounds"]);
}
