//! The device against a model: random verbs on random QPs must have the effects on memory and completions that a simple
//! model on two byte arrays predicts (`player.rs`). Further tests send requests that must fail.
//!
//! Each runs on a network in memory, in virtual time, and follows from its seed alone. The number of seeds is fixed, so that a
//! run takes some seconds. `SOFTROCE_MODEL_SEEDS=5000` runs that many, `SOFTROCE_MODEL_SEEDS=17..18` one: a case that fails says
//! with which command it runs again, and is shrunk before.

mod cases;
mod player;
mod scenario;
mod testbed;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use player::play;
use scenario::{Setup, Step, scenarios};

/// Runs a test on the values of this many seeds, or of those in the environment.
pub fn seeds<S: Strategy>(
    name: &str,
    usual: u64,
    strategy: &S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let given = std::env::var("SOFTROCE_MODEL_SEEDS").ok();
    let range = match given.as_deref().map(|it| it.split_once("..").unwrap_or(("0", it))) {
        Some((first, end)) => first.parse().unwrap()..end.parse().unwrap(),
        None => 0..usual,
    };
    for seed in range {
        let config = ProptestConfig {
            cases: 1,
            failure_persistence: None,
            max_shrink_iters: 300,
            ..ProptestConfig::default()
        };
        let bytes: Vec<u8> = (0..4u64).flat_map(|at| (seed + (at << 32)).to_le_bytes()).collect();
        let chance = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, chance);
        if let Err(error) = runner.run(strategy, &test) {
            let next = seed + 1;
            panic!(
                "{error}\nAgain: SOFTROCE_MODEL_SEEDS={seed}..{next} cargo test -p softroce --test device {name}"
            );
        }
    }
}

fn plays((setup, steps): (Setup, Vec<Step>)) -> Result<(), TestCaseError> {
    play(&setup, &steps);
    Ok(())
}

#[test]
fn two_devices_do_what_the_model_does() {
    seeds("two_devices", 1000, &scenarios(false, 30), plays);
}

#[test]
fn one_device_does_with_itself_what_the_model_does() {
    seeds("one_device", 1000, &scenarios(true, 30), plays);
}

/// Losses are so rare that all eight sendings of a packet are lost once in a million runs: with 3 % each way one
/// fails with probability 1 - 0.97^2 = 0.06, and eight in a row with 10^-10; a run has some 10^4 packets.
#[test]
fn faults_change_nothing() {
    let some_faults = prop::sample::select(vec![
        "rx.drop=3%,rx.duplicate=1%,rx.reorder=1%,rx.corrupt=0.1%",
        "mark=30%,rx.drop=1%",
        "rx.duplicate=10%,rx.reorder=5%",
    ]);
    let cases = (scenarios(false, 20), some_faults);
    seeds("faults_change_nothing", 1000, &cases, |((setup, steps), faults)| {
        let faults = format!("seed={},{faults}", setup.seed);
        plays((Setup { faults, ..setup }, steps))
    });
}

#[test]
fn the_same_seed_runs_the_same_way() {
    let cases = scenarios(false, 20);
    seeds("the_same_seed", 20, &cases, |(setup, steps)| {
        let faults = "seed=1,drop=5%,reorder=5%".into();
        let setup = Setup { faults, ..setup };
        prop_assert_eq!(play(&setup, &steps), play(&setup, &steps));
        Ok(())
    });
}
