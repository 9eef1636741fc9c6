//! A victim alone and beside attackers: whole runs, and what they leave behind. No rate is asserted.

use results::model::Verdict;
use testing::process::{Call, Ended};
use testing::program::call;

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
    // A busy machine's windows may be in doubt.
    let are_known = ended.result().cases[1..]
        .iter()
        .filter_map(|case| case.comparison.as_ref())
        .all(|it| it.metrics[0].ratio.is_some());
    let ended = ended.exits(i32::from(!are_known)).all_whole(3);
    let there = ["prey", "prey+noise", "prey+mine"];
    let runs = order(&ended);
    let (first, second) = runs.split_at(3);
    assert_eq!(first, there);
    // Half of the rounds that count begin with the base; on a busy machine the first may not.
    let result = ended.result();
    let mut judged = result.cases[1..].iter().filter_map(|case| case.comparison.as_ref());
    let is_known = judged.all(|harm| harm.rounds[0].counts());
    let turned = ["prey+mine", "prey+noise", "prey"];
    assert!(second == turned || !is_known && second == there, "{second:?}");
    assert_eq!(result.cases[0].comparison, None);
    for (name, case) in ["noise", "mine"].into_iter().zip(&result.cases[1..]) {
        let harm = case.comparison.as_ref().unwrap();
        assert_eq!(harm.sides, ["alone".to_owned(), format!("beside {name}")]);
        assert_eq!((&harm.id, harm.rounds.len()), (&case.id, 2));
        let throughput = &harm.metrics[0];
        assert_eq!(throughput.ratio.is_some(), harm.base_count > 0, "{harm:?}");
        assert_eq!((harm.verdict(), throughput.low), (Verdict::Unclear, None));
        // The victim's thread is its own.
        for run in &case.runs {
            assert_eq!(run.node("client").unwrap().workers.len(), 2);
        }
    }
    ended.shows(&["base alone", "prey+noise: ", "prey+mine: ", "unclear, ~8 rounds"]);
}
