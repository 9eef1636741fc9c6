//! The device against a model: random verbs on random QPs must have the effects on memory and completions that a simple
//! model on two byte arrays predicts (`player/place.rs`). Further tests send requests that must fail.
//!
//! The number of cases is fixed, so that a run takes some seconds. `SOFTROCE_MODEL_CASES=2000` runs that many cases
//! of each property instead. A failing case is shrunk and printed; it can be run again as a test.

mod contention;
mod memory;
mod player;
mod receivers;
mod refusals;
mod scenario;
mod script;
mod testbed;
mod vanished;

use proptest::prelude::*;

use player::play;
use scenario::{Setup, scenarios};

/// This many cases of each property, or the number in the environment.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("SOFTROCE_MODEL_CASES");
    ProptestConfig {
        cases: asked.map_or(usual, |asked| asked.parse().unwrap()),
        failure_persistence: None,
        max_shrink_iters: 300,
        // In milliseconds: a hang takes long to shrink.
        max_shrink_time: 60_000,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn two_devices_do_what_the_model_does((setup, steps) in scenarios(false, 30)) {
        play(&setup, &steps);
    }

    #[test]
    fn one_device_does_with_itself_what_the_model_does((setup, steps) in scenarios(true, 30)) {
        play(&setup, &steps);
    }
}

proptest! {
    #![proptest_config(cases(120))]

    /// Losses are so rare that all eight sendings of a packet are lost once in a million runs: with 3 % each way one
    /// fails with probability 1 - 0.97^2 = 0.06, and eight in a row with 10^-10; a run has some 10^4 packets.
    #[test]
    fn faults_change_nothing(
        (setup, steps) in scenarios(false, 20),
        seed: u32,
        faults in prop::sample::select(vec![
            "rx.drop=3%,rx.duplicate=1%,rx.reorder=1%,rx.corrupt=0.1%",
            "mark=30%,rx.drop=1%",
            "rx.duplicate=10%,rx.reorder=5%",
        ]),
    ) {
        let setup = Setup {
            faults: format!("seed={seed},{faults}"),
            ..setup
        };
        play(&setup, &steps);
    }
}
