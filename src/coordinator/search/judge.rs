//! What a run says of its load: whether it kept limits of latency, and how far it was from them.

use hdrhistogram::Histogram;
use results::model::{
    FlowResult, Latency, LatencyLimit, LoadVerdict, NotKeptBy, Run, Trial, TrialOutcome, can_tell,
};

/// The share of messages that a percentile leaves above it.
pub(super) fn share_above(percentile: f64) -> f64 {
    1.0 - percentile / 100.0
}

/// What a run at `load` messages a second says: nothing where its schedule was not kept or it has failed.
///
/// # Errors
/// It failed, and why.
pub(super) fn judge(run: &Run, load: u64, limits: &[LatencyLimit]) -> Result<Trial, String> {
    if !run.complete {
        let failure = run.failure.as_ref();
        return Err(failure.map_or_else(String::new, |it| it.message.clone()));
    }
    let (mut trial, mut excess) = (Trial::default(), Vec::new());
    trial.asked_per_second = load as f64;
    trial.achieved_per_second = f64::INFINITY;
    for flow in &run.flows {
        let lacks = |what: &str| format!("the flow `{}` has no {what}", flow.name);
        let load = flow.load.as_ref().ok_or_else(|| lacks("load"))?;
        trial.achieved_per_second = trial.achieved_per_second.min(load.achieved_per_second);
        trial.lateness_p99_ns = trial.lateness_p99_ns.max(lateness_p99(flow));
        let Some(latency) = &flow.latency_ns else {
            if load.verdict != LoadVerdict::NotKept {
                return Err(lacks("latency"));
            }
            trial.outcome = TrialOutcome::NotKept;
            continue;
        };
        // Lateness spoils the percentiles that it does, and a search asks for its own.
        let is_late = load.not_kept_by.is_some_and(|by| by != NotKeptBy::Lateness);
        if is_late || limits.iter().any(|limit| is_spoilt(latency, limit)) {
            trial.outcome = TrialOutcome::NotKept;
        }
        // Of two directions the slower one is told.
        trial.p50_ns = trial.p50_ns.max(latency.p50);
        trial.p99_ns = trial.p99_ns.max(latency.p99);
        trial.p99_9_ns = trial.p99_9_ns.max(latency.p99_9);
        let histogram = latency.histogram().map_err(|error| error.to_string())?;
        for limit in limits {
            excess.push(excess_of(&histogram, limit)?);
        }
    }
    if trial.outcome != TrialOutcome::NotKept {
        trial.excess = excess.into_iter().reduce(f64::max);
        trial.outcome = match trial.excess {
            Some(excess) if excess > 1.0 => TrialOutcome::Broke,
            _ => TrialOutcome::Kept,
        };
    }
    Ok(trial)
}

fn lateness_p99(flow: &FlowResult) -> Option<u64> {
    flow.lateness_ns.as_ref()?.p99
}

/// Whether there are messages enough for the percentile of a limit, which is not told because messages were posted late.
fn is_spoilt(latency: &Latency, limit: &LatencyLimit) -> bool {
    let mut percentiles = latency.percentiles();
    percentiles.any(|(of, ns)| of.percent == limit.percentile && ns.is_none())
        && can_tell(latency.count, limit.percentile / 100.0)
}

/// The share of messages that took at least as long as a limit, over the share that it allows. None at all are taken
/// for half a message.
fn excess_of(histogram: &Histogram<u64>, limit: &LatencyLimit) -> Result<f64, String> {
    let allowed = share_above(limit.percentile);
    let samples = histogram.len();
    if !can_tell(samples, limit.percentile / 100.0) {
        let percentile = limit.percentile;
        return Err(format!("{samples} messages are too few for p{percentile}"));
    }
    let above = histogram.count_between(limit.below_ns, u64::MAX);
    Ok((above as f64).max(0.5) / (samples as f64 * allowed))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use results::model::{Failure, Load};

    /// A run of one flow in which messages of these latencies completed.
    pub(in super::super) fn run_of(latencies_ns: &[u64], verdict: LoadVerdict) -> Run {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for ns in latencies_ns {
            histogram.record(*ns).unwrap();
        }
        let flow = FlowResult {
            latency_ns: Latency::from_histogram(&histogram, 0),
            load: Some(Load {
                achieved_per_second: latencies_ns.len() as f64,
                verdict,
                not_kept_by: (verdict == LoadVerdict::NotKept).then_some(NotKeptBy::NotPosted),
                ..Load::default()
            }),
            ..FlowResult::default()
        };
        Run { complete: true, flows: vec![flow], ..Run::default() }
    }

    pub(in super::super) fn failed() -> Run {
        let message = "boom".to_owned();
        Run { failure: Some(Failure { message, hint: None }), ..Run::default() }
    }

    fn limit(percentile: f64, below_ns: u64) -> LatencyLimit {
        LatencyLimit { percentile, below_ns }
    }

    #[test]
    fn the_excess_is_the_share_above_over_what_is_allowed() {
        let mut latencies = vec![10_000; 980];
        latencies.extend([50_000; 20]);
        let ten_times: Vec<u64> = latencies.repeat(10);
        let of_many = run_of(&ten_times, LoadVerdict::Kept);
        let run = run_of(&latencies, LoadVerdict::Kept);
        let excess = |limits: &[LatencyLimit]| judge(&run, 1_000, limits).unwrap();
        let of = |percentile, ns| excess(&[limit(percentile, ns)]);
        let close = |trial: Trial, expected: f64| (trial.excess.unwrap() - expected).abs() < 1e-9;
        assert!(close(of(99.0, 20_000), 2.0));
        let of_p99_9 = judge(&of_many, 1_000, &[limit(99.9, 20_000)]).unwrap();
        assert!(close(of_p99_9, 20.0));
        assert!(close(of(90.0, 20_000), 0.2));
        assert!(close(of(99.0, 60_000), 0.05), "half a message of 10");
        assert_eq!(of(90.0, 20_000).outcome, TrialOutcome::Kept);
        let both = excess(&[limit(90.0, 20_000), limit(99.0, 20_000)]);
        assert_eq!(both.outcome, TrialOutcome::Broke);
        assert!(close(both, 2.0));
        assert!(judge(&run, 1, &[limit(99.9, 1)]).is_err_and(|it| it.contains("too few")));
    }

    #[test]
    fn a_limit_is_kept_just_where_the_percentile_is_below_it() {
        let latencies: Vec<u64> = (1..=1_000).map(|n| n * 100).collect();
        let run = run_of(&latencies, LoadVerdict::Kept);
        let p99 = run.flows[0].latency_ns.as_ref().unwrap().p99.unwrap();
        let (kept, broke) = (TrialOutcome::Kept, TrialOutcome::Broke);
        for (below_ns, outcome) in [(p99 + 200, kept), (p99 - 200, broke)] {
            let trial = judge(&run, 1, &[limit(99.0, below_ns)]).unwrap();
            assert_eq!(trial.outcome, outcome, "{below_ns}");
        }
    }

    #[test]
    fn both_directions_must_keep_it_and_their_schedule() {
        let mut run = run_of(&[10_000; 1_000], LoadVerdict::Kept);
        let back = run_of(&[90_000; 1_000], LoadVerdict::Overloaded);
        run.flows.extend(back.flows);
        let limits = [limit(99.0, 20_000)];
        let trial = judge(&run, 1_000, &limits).unwrap();
        assert_eq!(trial.outcome, TrialOutcome::Broke);
        assert_eq!(trial.achieved_per_second, 1_000.0);
        assert!(trial.p50_ns.unwrap() >= 89_000);
        let load = run.flows[0].load.as_mut().unwrap();
        (load.verdict, load.not_kept_by) = (LoadVerdict::NotKept, Some(NotKeptBy::Gaps));
        let trial = judge(&run, 1_000, &limits).unwrap();
        assert_eq!((trial.outcome, trial.excess), (TrialOutcome::NotKept, None));
    }

    #[test]
    fn lateness_spoils_a_trial_whose_limit_is_of_a_percentile_that_it_spoils() {
        let mut run = run_of(&[10_000; 10_000], LoadVerdict::NotKept);
        let flow = &mut run.flows[0];
        flow.load.as_mut().unwrap().not_kept_by = Some(NotKeptBy::Lateness);
        flow.latency_ns.as_mut().unwrap().p99_9 = None;
        let outcome = |run: &Run, percentile| {
            let trial = judge(run, 1, &[limit(percentile, 20_000)]).unwrap();
            trial.outcome
        };
        for (percentile, expected) in
            [(50.0, TrialOutcome::Kept), (99.0, TrialOutcome::Kept), (99.9, TrialOutcome::NotKept)]
        {
            assert_eq!(outcome(&run, percentile), expected, "{percentile}");
        }
        // The median is spoilt, and with it all of them.
        run.flows[0].latency_ns = None;
        assert_eq!(outcome(&run, 99.0), TrialOutcome::NotKept);
    }

    #[test]
    fn a_run_that_failed_says_why() {
        assert_eq!(judge(&failed(), 1, &[]), Err("boom".to_owned()));
        let mut run = run_of(&[1; 100], LoadVerdict::Kept);
        run.flows[0].load = None;
        assert!(judge(&run, 1, &[]).is_err());
    }
}
