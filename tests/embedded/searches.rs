//! `--loss-search` where bursts overflow a planted queue.

use results::model::{LoadSearch, SearchEnd, Trial, TrialOutcome};
use results::sample::has;
use testing::program::call;

/// How many trials at a load, of whole length, came to this.
fn count(search: &LoadSearch, load: f64, outcome: TrialOutcome) -> usize {
    let is_whole = |trial: &&Trial| trial.seconds.total_cmp(&search.trial_seconds).is_eq();
    let trials = search.trials.iter().filter(is_whole);
    trials.filter(|trial| (trial.asked_per_second, trial.outcome) == (load, outcome)).count()
}

/// A busy machine may post too late for a bound, which the end says.
#[test]
fn a_load_that_is_found_lost_nothing_and_what_broke_did() {
    let words = "-d soft0 --loss-search --op write -s 4K -q 4 -t 32 --warmup 50ms -D 100ms \
                 --faults rate=200M,queue=10ms";
    let ended = call(words).run();
    let case = ended.result().cases.remove(0);
    let [search] = &case.searches[..] else { panic!("{}", ended.stderr()) };
    assert!(!search.trials.is_empty(), "{}", ended.stderr());
    for trial in &search.trials {
        match trial.outcome {
            TrialOutcome::Kept => assert_eq!(trial.losses, Some(0), "{trial:?}"),
            TrialOutcome::Broke => {
                let is_behind = trial.achieved_per_second < trial.asked_per_second;
                assert!(trial.losses > Some(0) || is_behind, "{trial:?}");
            }
            TrialOutcome::NotKept | TrialOutcome::Failed => {}
        }
    }
    if let Some(lower) = search.lower_per_second {
        assert!(count(search, lower, TrialOutcome::Kept) >= 4, "{search:?}");
    }
    if search.end == SearchEnd::Found {
        let (lower, upper) = search.lower_per_second.zip(search.upper_per_second).unwrap();
        assert!(lower < upper && count(search, upper, TrialOutcome::Broke) >= 5, "{search:?}");
        has(&ended.stdout, ["Highest load with zero loss"]);
    }
    assert_ne!(search.end, SearchEnd::AllKeep, "the closed loop lost packets: {search:?}");
}
