//! Open loops: a case at several loads after the closed loop whose shares they are, and a search.

use super::{config, fairness, flow_of, result, run, window, with};
use crate::model::*;

const SECONDS: f64 = 2.0;

/// What the closed loop moves a second.
const MAXIMUM: f64 = 1_200_000.0;

/// One case at 50 % (kept), 80 % (the schedule was not kept) and 95 % (overloaded), after the closed loop, which has the
/// searches.
pub fn open_loop() -> ResultFile {
    let gaps = |samples, p_value| Some(Gaps { messages_of_gap: 64, samples, p_value });
    let kept = Load { gaps: gaps(18_750, 0.4375), ..load(0.5, 1_200_000, 1_200_000) };
    let late = Load {
        verdict: LoadVerdict::NotKept,
        not_kept_by: Some(NotKeptBy::Gaps),
        gaps: gaps(30_000, 0.0005),
        ..load(0.8, 1_920_000, 1_918_000)
    };
    let overloaded = Load {
        verdict: LoadVerdict::Overloaded,
        never_sent: 5_000,
        queue_full_messages: 912_000,
        queue_full_seconds: 1.5,
        ..load(0.95, 2_280_000, 2_200_000)
    };
    let mut late = flow(1_918_000, [9, 6, 14], Some(late));
    late.window.doubts = vec![Doubt {
        kind: DoubtKind::ScheduleNotKept,
        message: "99 % of messages were posted up to 13.9 µs late, more than a tenth of the median latency (9.0 µs): \
                  use more --workers on cores of their own (--cores), or a lower rate"
            .to_owned(),
    }];
    let closed = CaseResult {
        searches: vec![search(3)],
        ..case("closed", flow(2_400_000, [0, 9, 0], None))
    };
    let cases = vec![
        closed,
        case("50%", flow(1_200_000, [6, 5, 1], Some(kept))),
        case("80%", late),
        case("95%", flow(2_200_000, [90, 9, 1], Some(overloaded))),
    ];
    ResultFile { cases, ..result() }
}

fn case(rate: &str, flow: FlowResult) -> CaseResult {
    let messages = flow.totals.messages;
    let suffix = match rate {
        "closed" => String::new(),
        rate => format!("-R{rate}"),
    };
    CaseResult {
        id: format!("write-shared-q2-64B-Q1{suffix}"),
        config: config(&format!("op=write size=64 signal-every=1 rate={rate}")),
        ..super::case(vec![Run {
            started_at: "2026-11-20T12:00:01Z".to_owned(),
            nodes: vec![super::worked(CLIENT, messages), NodeResult::named(SERVER)],
            ..run(vec![flow])
        }])
    }
}

/// A load of this share of the maximum.
fn load(share: f64, offered: u64, achieved: u64) -> Load {
    Load {
        asked_per_second: MAXIMUM * share,
        maximum_per_second: Some(MAXIMUM),
        offered,
        offered_per_second: offered as f64 / SECONDS,
        achieved_per_second: achieved as f64 / SECONDS,
        ..Load::default()
    }
}

/// So many samples, up to 1,000 times `factor` ns.
fn times(samples: u64, factor: u64) -> Option<Latency> {
    let told = super::times(3, (1..=1000).map(|i| (i * factor, samples / 1000)))?;
    // Reading JSON may be off in the last binary digit of a fraction.
    Some(Latency { mean: told.mean.round(), stddev: told.stddev.round(), ..told })
}

/// A flow of two QPs; `factors` are of its latency, service and lateness.
fn flow(messages: u64, factors: [u64; 3], load: Option<Load>) -> FlowResult {
    let [latency, service, lateness] = factors;
    // A closed loop times from post to completion.
    let (offered, sent, latency) = match &load {
        Some(load) => (load.offered, load.offered - load.never_sent, latency),
        None => (messages, 0, service),
    };
    let is_open = load.is_some();
    let of = |samples, factor| times(samples, factor).filter(|_| is_open);
    let mut flow = FlowResult {
        window: Window { warmup_seconds: 0.3, ..window(SECONDS) },
        latency_ns: times(offered, latency),
        service_ns: of(sent, service),
        lateness_ns: of(sent, lateness),
        fairness: fairness(1.0, 1.0, 1.0),
        limits: None,
        load,
        ..flow_of(FORWARD, 64, &[messages / 2; 2])
    };
    for qp in &mut flow.qps {
        qp.latency_ns = times(offered / 2, latency);
        qp.service_ns = of(sent / 2, service);
        qp.lateness_ns = of(sent / 2, lateness);
    }
    flow
}

/// A search of the closed loop's case after so many trials, of at most three.
pub fn search(trials: usize) -> LoadSearch {
    let trial = |share: f64, outcome, p99_ns| Trial {
        asked_per_second: MAXIMUM * share,
        achieved_per_second: MAXIMUM * share,
        seconds: 1.0,
        outcome,
        excess: Some([3.5, 0.4][usize::from(outcome == TrialOutcome::Kept)]),
        p50_ns: Some(6_000),
        p99_ns: Some(p99_ns),
        lateness_p99_ns: Some(210),
        ..Trial::default()
    };
    let all = vec![
        trial(0.5, TrialOutcome::Kept, 14_000),
        trial(0.7, TrialOutcome::Broke, 31_000),
        trial(0.6, TrialOutcome::Kept, 18_500),
    ];
    let told = r#"asked=p99<20us; limits=[{"percentile":99.0,"below_ns":20000}]; maximum_per_second=1200000.0; lower_per_second=732000.0; upper_per_second=744000.0; trial_seconds=1.0"#;
    LoadSearch {
        trials: all.into_iter().take(trials).collect(),
        ..with(&LoadSearch::default(), told)
    }
}
