//! The verdicts on synthetic figures whose truth is known; `crates/report/examples/verdicts` prints the whole tables.

#[allow(dead_code)]
#[path = "../../examples/verdicts/against.rs"]
mod against;
#[allow(dead_code)]
#[path = "../../examples/verdicts/experiments.rs"]
pub(crate) mod experiments;
#[allow(dead_code)]
#[path = "../../examples/verdicts/noise.rs"]
pub(crate) mod noise;
#[path = "../../examples/verdicts/open_loop.rs"]
mod open_loop;

use experiments::{Experiment, Found, Setup, found};
use fastrand::Rng;
use noise::Noise;
use statistics::ratio;

/// Of each kind of noise and each change.
const EXPERIMENTS: usize = 100;

fn setup(noise: Noise, spread: f64, (slower_cases, cases): (usize, usize), slower: f64) -> Setup {
    let setup = Setup { spread, cases, ..Setup::new(noise) };
    setup.slower_by(slower, slower_cases)
}

fn count(setup: Setup) -> Found {
    found(&setup, EXPERIMENTS, 7)
}

/// Judging many cases takes long without optimisation.
const FEWER_EXPERIMENTS: usize = 30;

#[test]
fn nothing_changed_seldom_calls_a_regression() {
    for &noise in Noise::ALL {
        for (spread, cases, launches) in [(0.01, 18, 5), (0.1, 1, 10), (0.1, 6, 5), (0.1, 6, 8)] {
            let found = count(Setup { launches, ..setup(noise, spread, (0, cases), 0.0) });
            // Of 100 at 3 %, 9 or more have a chance of 1 in 300. Both directions share 5 %.
            let details = format!("{noise:?}, {spread}, {cases}, {launches}: {found:?}");
            assert!(found.anywhere <= 8, "{details}");
        }
    }
}

/// The defect that was: the larger the change and the more cases had it, the less it was found.
#[test]
fn what_is_slower_everywhere_is_found_however_much_it_is() {
    for &noise in Noise::ALL {
        for slower in [0.05, 0.5] {
            let setup = setup(noise, 0.01, (18, 18), slower);
            let found = found(&setup, FEWER_EXPERIMENTS, 7);
            let details = format!("{noise:?}, {slower}: {found:?}");
            assert!(found.over_all >= FEWER_EXPERIMENTS - 1, "{details}");
            assert_eq!(found.anywhere, FEWER_EXPERIMENTS, "{details}");
        }
    }
}

#[test]
fn a_slower_case_is_found_among_eighteen() {
    for &noise in Noise::ALL {
        let setup = Setup { launches: 8, ..setup(noise, 0.03, (1, 18), 0.1) };
        let found = found(&setup, FEWER_EXPERIMENTS, 7);
        let least = FEWER_EXPERIMENTS - 3;
        assert!(found.in_slower >= least, "{noise:?}: {found:?}");
    }
}

#[test]
fn a_change_of_the_margin_is_seldom_called_equal() {
    for &noise in Noise::ALL {
        let equal = count(setup(noise, 0.01, (1, 1), 0.03)).bandwidth_equal;
        assert!(equal <= 7, "{noise:?}: {equal}");
        let unchanged = count(setup(noise, 0.01, (0, 1), 0.0)).bandwidth_equal;
        assert!(unchanged >= EXPERIMENTS * 6 / 10, "{noise:?}: {unchanged}");
    }
}

#[test]
fn the_interval_holds_the_truth_and_bears_an_outlier() {
    for &noise in Noise::ALL {
        for launches in [5, 10] {
            let setup = Setup { launches, ..setup(noise, 0.01, (0, 1), 0.0) };
            let mut rng = Rng::with_seed(7);
            let (mut held, mut narrow) = (0, 0);
            for _ in 0..EXPERIMENTS {
                let experiment = Experiment::new(&setup, &mut rng);
                let question = experiment.questions()[0];
                let (base, new) = (question.base.values, question.new.values);
                let found = ratio(base, new, 0.95).unwrap();
                held += usize::from(found.low <= 1.0 && found.high >= 1.0);
                let mut base = base.to_vec();
                base[0] *= 0.5;
                let outlying = ratio(&base, new, 0.95).unwrap();
                narrow += usize::from(outlying.high - outlying.low < 0.1);
            }
            assert!(held >= 88, "{noise:?}, {launches}: {held}");
            // These have outliers of their own beside the one.
            let has_others = matches!(noise, Noise::HeavyTails | Noise::Stalls);
            let expected = if has_others { 55 } else { 95 };
            assert!(narrow >= expected, "{noise:?}, {launches}: {narrow}");
        }
    }
}

#[test]
fn comparisons_with_perftest_seldom_end_falsely() {
    for &noise in Noise::ALL {
        for (spread, change) in [(0.03, 0.0), (0.1, 0.0), (0.01, -0.03)] {
            let setup = against::Setup { noise, spread, change, order: 0.02, pairs: (8, 24) };
            let ended = against::compared(&setup, EXPERIMENTS, 7);
            let wrong = match change {
                0.0 => ended.faster + ended.slower,
                _ => ended.faster + ended.equal,
            };
            assert!(wrong <= 9, "{noise:?}, {spread}, {change}: {ended:?}");
        }
    }
}

/// Latencies of a queue scatter from run to run all the more, the higher the load is.
#[test]
fn open_loops_of_which_nothing_changed_seldom_call_a_regression() {
    let setup = |loads: &[f64], launches, messages| open_loop::Setup {
        loads: loads.to_vec(),
        messages,
        launches,
        spread: 0.0,
        slower: 0.0,
    };
    for quiet in
        [setup(&[0.5], 10, 2_000), setup(&[0.9], 5, 2_000), setup(&[0.3, 0.7, 0.95], 5, 1_000)]
    {
        for spread in [0.0, 0.02] {
            let scattered = open_loop::Setup { spread, ..quiet.clone() };
            let found = open_loop::found(&scattered, EXPERIMENTS, 7);
            // As above: 9 or more of 100 at 3 % have a chance of 1 in 300.
            assert!(found <= 8, "{scattered:?}: {found}");
        }
    }
    let slower = open_loop::Setup { spread: 0.01, slower: 0.1, ..setup(&[0.8], 5, 5_000) };
    let found = open_loop::found(&slower, FEWER_EXPERIMENTS, 7);
    assert!(found >= FEWER_EXPERIMENTS - 1, "{found}");
}
