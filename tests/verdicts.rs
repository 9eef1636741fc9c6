//! The verdicts on synthetic sittings whose truth is known; `examples/verdicts` prints the whole table.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/verdicts/sittings.rs"]
mod sittings;

use rocebench::statistics::{Answer, Verdict};
use sittings::{NOISES, Noise, Setup, count};

const SITTINGS: usize = 200;

fn setup(noise: Noise, spread: f64, cases: usize, slower: f64) -> Setup {
    Setup {
        noise,
        spread,
        cases,
        runs: 10,
        slower,
        slower_cases: usize::from(slower > 0.0),
    }
}

fn regressed(answers: &[Answer]) -> bool {
    answers
        .iter()
        .any(|answer| answer.verdict == Verdict::Worse)
}

#[test]
fn nothing_changed_seldom_calls_a_regression() {
    for noise in NOISES {
        for (spread, cases) in [(0.01, 1), (0.1, 1), (0.1, 6)] {
            let alarms = count(&setup(noise, spread, cases, 0.0), SITTINGS, 7, regressed);
            // Of 200 at 3 %, 13 or more have a chance of 1 in 100.
            assert!(alarms <= 12, "{noise:?}, {spread}, {cases}: {alarms}");
        }
    }
}

#[test]
fn a_true_slow_down_is_found() {
    for noise in NOISES {
        for slower in [0.05, 0.1] {
            for cases in [1, 6] {
                let found = count(&setup(noise, 0.01, cases, slower), SITTINGS, 7, |answers| {
                    regressed(&answers[..7])
                });
                assert!(
                    found >= SITTINGS * 9 / 10,
                    "{noise:?}, {slower}, {cases}: {found}"
                );
            }
        }
    }
}

#[test]
fn a_change_of_the_margin_is_seldom_called_equal() {
    for noise in [Noise::Normal, Noise::Lognormal, Noise::HeavyTails] {
        let equal = count(&setup(noise, 0.01, 1, 0.03), SITTINGS, 7, |answers| {
            answers[0].verdict == Verdict::Equal
        });
        assert!(equal <= 10, "{noise:?}: {equal}");
        let same = count(&setup(noise, 0.01, 1, 0.0), SITTINGS, 7, |answers| {
            answers[0].verdict == Verdict::Equal
        });
        assert!(same >= SITTINGS * 3 / 4, "{noise:?}: {same}");
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    for noise in [Noise::Normal, Noise::Lognormal, Noise::HeavyTails] {
        let held = count(&setup(noise, 0.02, 1, 0.0), SITTINGS, 7, |answers| {
            let found = answers[0].estimate.unwrap();
            found.low <= 1.0 && found.high >= 1.0
        });
        assert!(held >= SITTINGS * 92 / 100, "{noise:?}: {held}");
    }
}
