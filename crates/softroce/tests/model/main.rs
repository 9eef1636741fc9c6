//! Tests the device against a model: random verbs on random QPs must have the effects on memory and completions that
//! a simple model on two byte arrays predicts (`player/place.rs`). Further tests send requests that must fail.
//!
//! The number of cases is fixed, so that a run takes some seconds. `SOFTROCE_MODEL_CASES=2000` runs that many cases
//! of each property instead. A failing case is shrunk and printed; it can be run again as a test.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batches;
#[path = "../support/completion.rs"]
mod completion;
mod contention;
mod corks;
#[path = "../support/counter.rs"]
mod counter;
mod crowd;
#[path = "../support/end.rs"]
mod end;
mod hot_memory;
mod incast;
mod lengths;
mod marks;
mod memory;
mod player;
mod receivers;
mod refusals;
mod scenario;
mod script;
mod slow_link;
mod testbed;
mod timers;
mod vanished;

use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use player::play;
use scenario::{Setup, scenarios};
use testbed::{Checked, Trouble};

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

fn verdict(checked: Checked) -> Result<(), TestCaseError> {
    checked.map_err(|trouble| match trouble {
        Trouble::Wrong(why) => TestCaseError::fail(why),
        Trouble::Hung(why) => TestCaseError::fail(format!("hung {why}")),
        Trouble::RetriesUsedUp(why) => TestCaseError::fail(format!("retries used up: {why}")),
    })
}

/// Cases that failed because all retries were lost by chance.
static OUT_OF_LUCK: AtomicU32 = AtomicU32::new(0);

/// As [`verdict`], but one case of a run may lose all its retries.
///
/// With 5 % of the packets lost each way, a retry fails with probability 1 - 0.95^2 = 0.1, and eight in a row (one
/// and `retry_count` 7) with 10^-8. Some 10^4 packets of a run can start such a series, so one run in 10^4 has one,
/// and one in 10^8 has two.
fn verdict_under_faults(checked: Checked) -> Result<(), TestCaseError> {
    match checked {
        Err(Trouble::RetriesUsedUp(why)) if OUT_OF_LUCK.fetch_add(1, Ordering::Relaxed) > 0 => {
            Err(TestCaseError::fail(format!("retries used up again: {why}")))
        }
        Err(Trouble::RetriesUsedUp(_)) => Ok(()),
        other => verdict(other),
    }
}

/// 34 ms. Eight of them are long compared with the delays of a busy machine, where with several programs per core a
/// thread has waited for 350 ms.
const TIMEOUT_UNDER_FAULTS: u8 = 13;

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn two_devices_do_what_the_model_does((setup, steps) in scenarios(false, 30)) {
        verdict(play(&setup, &steps))?;
    }

    #[test]
    fn one_device_does_with_itself_what_the_model_does((setup, steps) in scenarios(true, 30)) {
        verdict(play(&setup, &steps))?;
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn faults_change_nothing((setup, steps) in scenarios(false, 20), seed: u32) {
        let setup = Setup {
            faults: format!("seed={seed},rx.drop=5%,rx.duplicate=1%,rx.reorder=1%,rx.corrupt=0.1%"),
            timeout: TIMEOUT_UNDER_FAULTS,
            ..setup
        };
        verdict_under_faults(play(&setup, &steps))?;
    }

    #[test]
    fn marks_change_nothing((setup, steps) in scenarios(false, 20), seed: u32) {
        let setup = Setup {
            faults: format!("seed={seed},mark=30%,rx.drop=1%"),
            timeout: TIMEOUT_UNDER_FAULTS,
            ..setup
        };
        verdict_under_faults(play(&setup, &steps))?;
    }

    #[test]
    fn repetitions_alone_change_nothing((setup, steps) in scenarios(false, 20), seed: u32) {
        let setup = Setup {
            faults: format!("seed={seed},rx.duplicate=10%,rx.reorder=5%"),
            timeout: TIMEOUT_UNDER_FAULTS,
            ..setup
        };
        verdict_under_faults(play(&setup, &steps))?;
    }
}
