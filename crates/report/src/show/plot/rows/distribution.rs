//! The distribution of a flow's latencies: the samples of all runs that count in one, as few points. Percentiles are
//! read from all samples, never averaged. It must not know how it is drawn.

use hdrhistogram::Histogram;

use crate::observe::{Metric, Observed};
use crate::results::model::Latency;
use crate::results::percentile::{BEYOND, can_tell};
use crate::show::plot::rows::sample::Sample;

/// Latencies of a flow.
#[derive(Clone, Debug)]
struct Distribution {
    /// Quantile, from 0, and the latency in nanoseconds that it is at most.
    points: Vec<(f64, f64)>,
    /// Latencies recorded.
    samples: u64,
}

/// Points of a whole distribution.
const POINTS_A_DECADE: usize = 16;

/// The quantiles from the median on, as 1 / (1 - q), with the latencies of all launches, as far as samples can tell them.
pub(crate) fn tail(sample: &Sample<'_>) -> Vec<(f64, f64)> {
    let Some(all) = of_launches(sample.launches()) else {
        return Vec::new();
    };
    let told = all
        .points
        .iter()
        .filter(|(quantile, _)| *quantile >= 0.5 - 1e-9);
    let told = told.filter(|(quantile, _)| can_tell(all.samples, *quantile));
    told.map(|(quantile, ns)| (1.0 / (1.0 - quantile), *ns))
        .collect()
}

/// The same of each run that does not count, a few percentiles.
pub(crate) fn uncounted(sample: &Sample<'_>) -> Vec<(f64, f64)> {
    let told = [
        (2.0, Metric::P50Ns),
        (100.0, Metric::P99Ns),
        (1000.0, Metric::P99_9Ns),
    ];
    let runs = sample.uncounted();
    let points = runs.flat_map(|run| told.map(|(x, metric)| Some((x, run.value(metric)?))));
    points.flatten().collect()
}

fn of_launches<'s, 'a: 's>(
    launches: impl Iterator<Item = &'s Observed<'a>>,
) -> Option<Distribution> {
    let latencies: Vec<&Latency> = launches
        .flat_map(Observed::counted)
        .filter_map(|run| run.moved?.latency_ns.as_ref())
        .filter(|latency| latency.count > 0)
        .collect();
    let mut histograms = latencies.iter().filter_map(|it| it.histogram().ok());
    let Some(mut all) = histograms.next().filter(|all| !all.is_empty()) else {
        return of_percentiles(&latencies);
    };
    // Those of other bounds are left out; one case's runs have none.
    for histogram in histograms {
        let _ = all.add(&histogram);
    }
    Some(Distribution {
        points: points(&all),
        samples: all.len(),
    })
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
        samples: latency.count,
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
        of_launches(Observed::of_case(case).take(1).collect::<Vec<_>>().iter())
    }

    #[test]
    fn runs_are_put_together_before_percentiles_are_read() {
        let (short, long) = (vec![100; 900], vec![1000; 100]);
        let all = distribution(&case(&[&short, &long], true)).unwrap();
        assert_eq!(all.samples, 1000);
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
        assert!(distribution(&CaseResult::default()).is_none());
    }

    #[test]
    fn one_sample_is_one_point() {
        let all = distribution(&case(&[&[42]], true)).unwrap();
        assert!(all.points.iter().all(|(_, ns)| *ns == 42.0));
        assert_eq!(all.samples, 1);
    }
}
