//! Launches in turns bear a machine that changes meanwhile, and nights bear its slow minutes. What bears neither is not judged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use report::judge::compare::{Aspect, Options, compare};
use report::observe::Metric;
use results::load::{Found, Loaded};
use results::model::{
    CaseConfig, CaseResult, Doubt, DoubtKind, FlowResult, ResultFile, Run, Totals, Verdict,
};
use settings::Settings;
use statistics::InterimAnalyses;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

const SIZE: u64 = 65_536;

fn launch(minute: f64, gbit_per_s: f64, is_doubtful: bool) -> Loaded {
    let messages = (gbit_per_s * 1e9 / 8.0 / SIZE as f64) as u64;
    let config = CaseConfig::from(Settings::from([("size", SIZE.to_string().as_str())]));
    let mut flow = FlowResult::new(&config.flows[0]);
    flow.window.seconds = 1.0;
    if is_doubtful {
        flow.window.doubts.push(Doubt { kind: DoubtKind::EdgeMissed, message: String::new() });
    }
    flow.totals = Totals::in_window(messages, messages * SIZE, 0, 1.0);
    let run = Run { run: 1, complete: true, flows: vec![flow], ..Run::default() };
    let case =
        CaseResult { id: "case".to_owned(), config, runs: vec![run], ..CaseResult::default() };
    let began = OffsetDateTime::UNIX_EPOCH + Duration::seconds_f64(minute * 60.0);
    Loaded {
        path: PathBuf::from(format!("{minute}.json")),
        result: ResultFile {
            started_at: began.format(&Rfc3339).unwrap(),
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

/// Launches in an order, so many minutes apart, on a machine of this speed at each: `A` is one of the base, `n` of the new side.
/// This part of them is doubtful.
fn experiment(
    (order, minutes_apart): (&str, f64),
    speeds: &[f64],
    doubtful: f64,
    rng: &mut fastrand::Rng,
) -> Vec<(char, Loaded)> {
    let launches = order.chars().zip(speeds).enumerate().map(|(place, (side, speed))| {
        let gbit_per_s = 20.0 * speed * (1.0 + 0.01 * normal(rng));
        let is_doubtful = doubtful > 0.0 && rng.f64() < doubtful;
        (side, launch(place as f64 * minutes_apart, gbit_per_s, is_doubtful))
    });
    launches.collect()
}

/// The case's verdict when nothing differs but the time.
fn verdict(launches: &[(char, Loaded)], across: &[Aspect], part: f64) -> Verdict {
    let (mut base, mut new) = (Found::default(), Found::default());
    for (side, loaded) in launches {
        let found = if *side == 'A' { &mut base } else { &mut new };
        found.results.push(loaded.clone());
    }
    let metrics = vec![Metric::GbitPerS];
    let options = Options { metrics, across: across.to_vec(), part, ..Options::default() };
    let sides = [("base", &base), ("new", &new)].map(|(name, found)| (Path::new(name), found));
    compare(sides[0], sides[1], &options).cases[0].verdict()
}

fn judged(order: &str, drift: Drift, across: &[Aspect], rng: &mut fastrand::Rng) -> Verdict {
    let speeds = drift(order.len(), rng);
    verdict(&experiment((order, 1.0), &speeds, 0.0, rng), across, 1.0)
}

fn is_change(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Slower | Verdict::Faster)
}

#[test]
fn in_turns_a_drift_passes_for_a_change_in_five_experiments_of_a_hundred_at_most() {
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
            let mut rng = fastrand::Rng::with_seed(7);
            let verdicts: Vec<Verdict> =
                (0..100).map(|_| judged(&order, drift, &[], &mut rng)).collect();
            assert!(!verdicts.contains(&Verdict::NoVerdict), "{order}");
            let alarms = verdicts.into_iter().filter(|it| is_change(*it)).count();
            assert!(alarms <= 5, "{order}, {name}: {alarms}");
        }
    }
}

/// One launch each and one side after the other, also where a verdict is asked for.
#[test]
fn where_a_drift_would_pass_for_a_change_there_is_no_verdict() {
    let mut rng = fastrand::Rng::with_seed(1);
    let halves = "A".repeat(10) + &"n".repeat(10);
    for (_, drift) in DRIFTS {
        for order in [&halves, "AAAAAnnnnnAAAAAnnnnn", "AAnnnnAA", "AnAn", "An"] {
            for across in [&[][..], &[Aspect::Time]] {
                assert_eq!(judged(order, drift, across, &mut rng), Verdict::NoVerdict, "{order}");
            }
        }
    }
}

/// The speed of a machine that is 20 % slower for two of every ten minutes, some time in them.
fn slow_minutes((order, minutes_apart): (&str, f64), rng: &mut fastrand::Rng) -> Vec<f64> {
    let mut begins: BTreeMap<u64, f64> = BTreeMap::new();
    let minutes = (0..order.len()).map(|place| place as f64 * minutes_apart);
    let speeds = minutes.map(|minute| {
        let begin = begins.entry(minute as u64 / 10).or_insert_with(|| 8.0 * rng.f64());
        if (0.0..2.0).contains(&(minute % 10.0 - *begin)) { 0.8 } else { 1.0 }
    });
    speeds.collect()
}

/// What the program and its documents propose: launches in turns, a gate that looks up to four times, and nights. One launch of
/// eight on a busy machine is doubtful.
#[test]
fn slow_minutes_pass_for_a_change_in_five_comparisons_of_a_hundred_at_most() {
    const COMPARISONS: usize = 200;
    let plan = InterimAnalyses::of_launches(20);
    let due = (1..=20).filter(|round| plan.is_due(*round, *round == 20));
    let of_gate: Vec<(usize, f64)> =
        due.map(|round| (2 * round as usize, plan.part(round))).collect();
    let (turns, gate) = ("An".repeat(10), "AnnAnAAn".repeat(5));
    let once = |order: &str| vec![(order.len(), 1.0)];
    for (way, looks, doubtful) in [
        ((&*turns, 0.3), once(&turns), 0.125),
        ((&*turns, 1.0), once(&turns), 0.125),
        ((&*turns, 2.5), once(&turns), 0.125),
        ((&*gate, 0.3), of_gate.clone(), 0.125),
        ((&*gate, 1.0), of_gate, 0.125),
        (("AAAAnnnn", 1441.7), once("AAAAnnnn"), 0.0),
        (("AAAAAAAAnnn", 1441.7), once("AAAAAAAAnnn"), 0.0),
    ] {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut changes, mut unjudged) = (0, 0);
        for _ in 0..COMPARISONS {
            let speeds = slow_minutes(way, &mut rng);
            let launches = experiment(way, &speeds, doubtful, &mut rng);
            let mut found = Verdict::NoVerdict;
            for (end, part) in &looks {
                found = verdict(&launches[..*end], &[Aspect::Time], *part);
                if is_change(found) || found == Verdict::Equal {
                    break;
                }
            }
            changes += usize::from(is_change(found));
            unjudged += usize::from(found == Verdict::NoVerdict);
        }
        let most = COMPARISONS * 5 / 100;
        assert!(changes <= most && unjudged <= most, "{way:?}: {changes}, {unjudged} without");
    }
}
