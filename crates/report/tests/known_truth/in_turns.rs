//! Launches in turns bear a machine that changes meanwhile; those one after the other do not, and are not judged.

use settings::Settings;
use std::path::{Path, PathBuf};

use report::judge::compare::{Aspect, Options, compare};
use report::observe::Metric;
use results::load::{Found, Loaded};
use results::model::{CaseConfig, CaseResult, FlowResult, ResultFile, Run, Totals, Verdict};

const SIZE: u64 = 65_536;

fn launch(second: usize, gbit_per_s: f64) -> Loaded {
    let messages = (gbit_per_s * 1e9 / 8.0 / SIZE as f64) as u64;
    let config = CaseConfig::from(Settings::from([("size", SIZE.to_string().as_str())]));
    let mut flow = FlowResult::new(&config.flows[0]);
    flow.window.seconds = 1.0;
    flow.totals = Totals::in_window(messages, messages * SIZE, 0, 1.0);
    let run = Run { run: 1, complete: true, flows: vec![flow], ..Run::default() };
    let case =
        CaseResult { id: "case".to_owned(), config, runs: vec![run], ..CaseResult::default() };
    Loaded {
        path: PathBuf::from(format!("{second}.json")),
        result: ResultFile {
            started_at: format!("2026-11-20T12:{:02}:{:02}Z", second / 60, second % 60),
            cases: vec![case],
            ..ResultFile::default()
        },
    }
}

/// A machine's speed at each launch of an experiment.
type Drift = fn(usize, &mut fastrand::Rng) -> Vec<f64>;

fn over(launches: usize, speed: impl Fn(f64) -> f64) -> Vec<f64> {
    let time = |launch| launch as f64 / launches as f64;
    (0..launches).map(|launch| speed(time(launch))).collect()
}

const DRIFTS: [(&str, Drift); 5] = [
    ("slope", |launches, _| over(launches, |time| 1.0 - 0.2 * time)),
    ("step", |launches, rng| {
        let at = rng.f64();
        over(launches, |time| if time < at { 1.0 } else { 0.85 })
    }),
    ("wave", |launches, _| over(launches, |time| 1.0 + 0.1 * (time * std::f64::consts::TAU).sin())),
    ("hump", |launches, _| over(launches, |time| 1.0 - 0.2 * (1.0 - (2.0 * time - 1.0).powi(2)))),
    ("walk", |launches, rng| {
        let mut speed = 1.0;
        (0..launches)
            .map(|_| {
                speed *= 1.0 + 0.02 * normal(rng);
                speed
            })
            .collect()
    }),
];

fn normal(rng: &mut fastrand::Rng) -> f64 {
    (-2.0 * rng.f64().max(1e-12).ln()).sqrt() * (rng.f64() * std::f64::consts::TAU).cos()
}

/// The case's verdict when nothing differs but the time. `A` is a launch of the base, `n` of the new side.
fn verdict(order: &str, drift: Drift, across: &[Aspect], rng: &mut fastrand::Rng) -> Verdict {
    let (mut base, mut new) = (Found::default(), Found::default());
    let speeds = drift(order.len(), rng);
    for (second, (letter, speed)) in order.chars().zip(speeds).enumerate() {
        let side = if letter == 'A' { &mut base } else { &mut new };
        let rate = 20.0 * speed * (1.0 + 0.01 * normal(rng));
        side.results.push(launch(second, rate));
    }
    let options =
        Options { metrics: vec![Metric::GbitPerS], across: across.to_vec(), ..Options::default() };
    let sides = [("base", &base), ("new", &new)].map(|(name, found)| (Path::new(name), found));
    compare(sides[0], sides[1], &options).cases[0].verdict()
}

/// Experiments of 100 in which a change is told that is none.
fn false_alarms(order: &str, drift: Drift) -> usize {
    let mut rng = fastrand::Rng::with_seed(7);
    (0..100)
        .filter(|_| {
            let verdict = verdict(order, drift, &[Aspect::Time], &mut rng);
            matches!(verdict, Verdict::Slower | Verdict::Faster)
        })
        .count()
}

#[test]
fn in_turns_a_drift_passes_for_a_change_in_five_experiments_of_a_hundred_at_most() {
    let mut rng = fastrand::Rng::with_seed(1);
    for order in [
        "An".repeat(5),
        "An".repeat(10),
        "AnnA".repeat(4),
        "AnnA".repeat(10),
        "AAnn".repeat(3),
        "AAAnnn".repeat(3),
        "AAAAAnnnnn".repeat(3),
        "AnnAAnAAn".to_owned(),
    ] {
        for (name, drift) in DRIFTS {
            let judged = verdict(&order, drift, &[], &mut rng);
            assert_ne!(judged, Verdict::NoVerdict, "{order}");
            let alarms = false_alarms(&order, drift);
            assert!(alarms <= 5, "{order}, {name}: {alarms}");
        }
    }
}

#[test]
fn one_after_the_other_a_drift_passes_for_a_change_so_there_is_no_verdict() {
    let mut rng = fastrand::Rng::with_seed(1);
    let halves = "A".repeat(10) + &"n".repeat(10);
    for (name, drift) in DRIFTS {
        if matches!(name, "slope" | "wave") {
            let alarms = false_alarms(&halves, drift);
            assert!(alarms > 50, "{name}: {alarms}");
        }
        for order in [&halves, "AAAAAnnnnnAAAAAnnnnn", "AAnnnnAA", "AnAn", "An"] {
            let judged = verdict(order, drift, &[], &mut rng);
            assert_eq!(judged, Verdict::NoVerdict, "{order}");
        }
    }
}
