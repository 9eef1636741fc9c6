//! `rocebench recipe run`: the stages run one after the other, each into a folder of its own, and the answer comes last.

use results::load::load;
use results::sample::has;
use tempfile::tempdir;
use testing::program::call;

#[test]
fn stages_run_in_order_and_the_answer_comes_last() {
    let folder = tempdir().unwrap();
    let words = "recipe run first-day -d soft0 --stages ping-pong,load -D 300ms --out out";
    // A busy machine may fail a short run, which the exit status says.
    let ended = call(words).within(folder.path()).run();
    let stdout = &ended.stdout;
    let marks =
        ["Stage 1 of 2: ping-pong\n$ rocebench --ping-pong", "Stage 2 of 2: load", "Answer: "];
    has(stdout, marks);
    assert!(marks.map(|mark| stdout.find(mark)).is_sorted(), "{stdout}");
    for (stage, cases) in [("ping-pong", 6), ("load", 5)] {
        let found = load(&[folder.path().join("out/first-day").join(stage)]);
        let [result] = &found.results[..] else { panic!("{stage}: {:?}", found.refused) };
        assert_eq!(result.result.cases.len(), cases, "{stage}");
        let command = result.result.command_line.join(" ");
        has(&command, [&*format!("--out=out/first-day/{stage}"), "--duration=300ms"]);
        assert!(!command.contains("recipe"), "{command}");
    }
}
