//! The distribution of a flow's latencies: the samples of all runs that count in one, as few points. Percentiles are
//! read from all samples, never averaged. It must not know how it is drawn.

use hdrhistogram::Histogram;

use super::sample::Sample;
use crate::observe::standing::counted_flows;
use crate::results::model::{CaseFlow, Latency};
use crate::results::percentile::{BEYOND, can_tell};

/// Latencies of a flow.
#[derive(Clone, Debug)]
pub(super) struct Distribution {
    /// Quantile, from 0, and the latency in nanoseconds that it is at most.
    pub(super) points: Vec<(f64, f64)>,
    /// What was used, when it was not every sample of every run that counts.
    pub(super) note: Option<&'static str>,
    /// Latencies recorded.
    pub(super) samples: u64,
    /// Runs used.
    pub(super) runs: usize,
    /// The longest, in nanoseconds.
    pub(super) max_ns: f64,
}

/// Points of a whole distribution.
const POINTS_A_DECADE: usize = 16;

/// What is known of the latencies of all launches; `None` without a run that counts that has some.
pub(super) fn distribution(sample: &Sample<'_>) -> Option<Distribution> {
    of_launches(sample.launches())
}

fn of_launches<'s, 'a: 's>(
    launches: impl Iterator<Item = &'s CaseFlow<'a>>,
) -> Option<Distribution> {
    let latencies: Vec<&Latency> = launches
        .flat_map(counted_flows)
        .filter_map(|flow| flow.latency_ns.as_ref())
        .filter(|latency| latency.count > 0)
        .collect();
    let mut all: Option<Histogram<u64>> = None;
    let mut runs = 0;
    for latency in &latencies {
        let Ok(histogram) = latency.histogram() else {
            continue;
        };
        match &mut all {
            None => all = Some(histogram),
            // Of other bounds there may be none in one case's runs; such a run is left out and told.
            Some(all) => {
                if all.add(&histogram).is_err() {
                    continue;
                }
            }
        }
        runs += 1;
    }
    match all {
        Some(all) if !all.is_empty() => Some(Distribution {
            points: points(&all),
            note: (runs < latencies.len()).then_some("some runs have no histogram"),
            samples: all.len(),
            runs,
            max_ns: all.max() as f64,
        }),
        _ => of_percentiles(&latencies),
    }
}

/// The run in the middle by its p99, with the percentiles that it has.
fn of_percentiles(latencies: &[&Latency]) -> Option<Distribution> {
    let mut sorted = latencies.to_vec();
    sorted.sort_by_key(|latency| latency.p99);
    let latency = sorted.get(sorted.len() / 2)?;
    let told = [
        (0.0, Some(latency.min)),
        (0.5, latency.p50),
        (0.9, latency.p90),
        (0.99, latency.p99),
        (0.999, latency.p99_9),
        (0.9999, latency.p99_99),
    ];
    let known = |(quantile, ns): (f64, Option<u64>)| Some((quantile, ns? as f64));
    Some(Distribution {
        points: told.into_iter().filter_map(known).collect(),
        note: Some("no histogram: percentiles of one run only"),
        samples: latency.count,
        runs: 1,
        max_ns: latency.max as f64,
    })
}

/// Quantiles evenly over log(1 / (1 - q)), with their latencies, as far as there are samples enough to tell them.
fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let count = histogram.len();
    let mut cumulated = Vec::new();
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_since_last_iteration();
        cumulated.push((seen, step.value_iterated_to()));
    }
    let at = |quantile: f64| {
        let rank = ((quantile * count as f64).ceil() as u64).clamp(1, count);
        let index = cumulated.partition_point(|(seen, _)| *seen < rank);
        cumulated.get(index).map(|(_, ns)| (quantile, *ns as f64))
    };
    let decades = (count as f64).log10();
    let steps = (decades * POINTS_A_DECADE as f64).ceil() as usize;
    let tail = (0..=steps).map(|step| 1.0 - 10f64.powf(-(step as f64 / POINTS_A_DECADE as f64)));
    let last = 1.0 - BEYOND as f64 / count as f64;
    let is_told = |quantile: &f64| *quantile == 0.0 || can_tell(count, *quantile);
    let mut quantiles: Vec<f64> = tail.chain([0.5, last]).filter(is_told).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup_by(|a, b| (*a - *b).abs() < 1e-12);
    quantiles.into_iter().filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseResult, FlowResult};
    use crate::results::sample;

    fn case(runs: &[&[u64]], histograms: bool) -> CaseResult {
        let run = |values: &&[u64]| {
            sample::run(vec![FlowResult {
                latency_ns: sample::latency(values, 3, histograms),
                ..FlowResult::default()
            }])
        };
        sample::case(runs.iter().map(run).collect())
    }

    fn distribution(case: &CaseResult) -> Option<Distribution> {
        of_launches(case.flows().take(1).collect::<Vec<_>>().iter())
    }

    #[test]
    fn runs_are_put_together_before_percentiles_are_read() {
        let (short, long) = (vec![100; 900], vec![1000; 100]);
        let all = distribution(&case(&[&short, &long], true)).unwrap();
        assert_eq!((all.samples, all.runs, all.note), (1000, 2, None));
        let at = |quantile: f64| {
            let is_at = |point: &&(f64, f64)| (point.0 - quantile).abs() < 1e-9;
            all.points.iter().find(is_at).unwrap().1
        };
        assert_eq!((at(0.0), at(0.5), at(0.99)), (100.0, 100.0, 1000.0));
        assert!(all.points.last().unwrap().0 <= 0.99 + 1e-9);
    }

    #[test]
    fn without_histograms_only_the_percentiles_are_known() {
        let values: Vec<u64> = (1..=1000).collect();
        let all = distribution(&case(&[&values], false)).unwrap();
        let quantiles: Vec<f64> = all.points.iter().map(|point| point.0).collect();
        assert_eq!(quantiles, [0.0, 0.5, 0.9, 0.99]);
        assert!(all.note.is_some());
        assert!(distribution(&CaseResult::default()).is_none());
    }

    #[test]
    fn one_sample_is_one_point() {
        let all = distribution(&case(&[&[42]], true)).unwrap();
        assert!(all.points.iter().all(|(_, ns)| *ns == 42.0));
        assert_eq!(all.samples, 1);
    }
}
