//! The distribution of a flow's latencies: the samples of all runs that count in one, as few points. Percentiles
//! are read from all samples, never averaged.

use hdrhistogram::Histogram;

use crate::observe::Metric;
use crate::results::model::Latency;
use crate::results::percentile::{BEYOND, percentile};
use crate::show::plot::rows::sample::Sample;

const POINTS_A_DECADE: f64 = 16.0;

/// The quantiles from the median on, as 1 / (1 - q), with the latencies of all launches in nanoseconds, as far as samples can
/// tell them.
pub(crate) fn tail(sample: &Sample<'_>) -> Vec<(f64, f64)> {
    let counted = sample.counted();
    let latencies: Vec<&Latency> = counted
        .filter_map(|run| run.moved?.latency_ns.as_ref())
        .filter(|it| it.count > 0)
        .collect();
    let mut histograms = latencies.iter().filter_map(|it| it.histogram().ok());
    let Some(mut merged) = histograms.next().filter(|it| !it.is_empty()) else {
        return of_percentiles(latencies);
    };
    // Those of other bounds are left out; one case's runs have none.
    for histogram in histograms {
        let _ = merged.add(&histogram);
    }
    points(&merged)
}

/// The same of each run that does not count, a few percentiles.
pub(crate) fn uncounted(sample: &Sample<'_>) -> Vec<(f64, f64)> {
    let percentiles = [(2.0, Metric::P50Ns), (100.0, Metric::P99Ns), (1000.0, Metric::P99_9Ns)];
    let runs = sample.uncounted();
    runs.flat_map(|run| percentiles.map(|(x, metric)| Some((x, run.value(metric)?))))
        .flatten()
        .collect()
}

/// The run in the middle by its p99, with the percentiles that it has.
fn of_percentiles(mut latencies: Vec<&Latency>) -> Vec<(f64, f64)> {
    latencies.sort_by_key(|latency| latency.p99);
    let Some(latency) = latencies.get(latencies.len() / 2) else {
        return Vec::new();
    };
    latency
        .percentiles()
        .filter_map(|(of, ns)| Some(((1.0 / (1.0 - of.quantile)).round(), ns? as f64)))
        .collect()
}

/// Quantiles evenly over log(1 / (1 - q)), as far as there are enough samples.
fn points(histogram: &Histogram<u64>) -> Vec<(f64, f64)> {
    let last = histogram.len() as f64 / BEYOND as f64;
    let places = (0..)
        .map(|step| 10f64.powf(f64::from(step) / POINTS_A_DECADE))
        .take_while(|x| *x < last)
        .filter(|x| *x > 2.0);
    let mut points: Vec<(f64, f64)> = std::iter::once(2.0)
        .chain(places)
        .chain([last])
        .filter_map(|x| Some((x, percentile(histogram, 1.0 - 1.0 / x)? as f64)))
        .collect();
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseResult, FlowResult};
    use crate::results::sample;

    fn case(runs: &[&[u64]], histograms: bool) -> CaseResult {
        sample::case(
            runs.iter()
                .map(|values| {
                    sample::run(vec![FlowResult {
                        latency_ns: sample::latency(values, 3, histograms),
                        ..FlowResult::default()
                    }])
                })
                .collect(),
        )
    }

    fn tail_of(case: CaseResult) -> Vec<(f64, f64)> {
        let loaded = sample::file(vec![case]);
        let flow = loaded.result.cases[0].flows().next().unwrap();
        tail(&Sample::new(&loaded, flow, false))
    }

    #[test]
    fn runs_are_put_together_before_percentiles_are_read() {
        let (short, long) = (vec![100; 900], vec![1000; 100]);
        let all = tail_of(case(&[&short, &long], true));
        // A thousand samples give p99, and nothing beyond it.
        assert_eq!(all.first(), Some(&(2.0, 100.0)));
        assert_eq!(all.last(), Some(&(100.0, 1000.0)));
        assert!(all.is_sorted());
    }

    #[test]
    fn without_histograms_only_the_percentiles_are_known() {
        let values: Vec<u64> = (1..=1000).collect();
        let all = tail_of(case(&[&values], false));
        let places: Vec<f64> = all.iter().map(|point| point.0).collect();
        assert_eq!(places, [2.0, 10.0, 20.0, 100.0]);
        assert!(tail_of(CaseResult::default()).is_empty());
    }

    #[test]
    fn twenty_samples_tell_the_median_and_fewer_nothing() {
        assert_eq!(tail_of(case(&[&[42; 20]], true)), [(2.0, 42.0)]);
        assert!(tail_of(case(&[&[42; 19]], true)).is_empty());
    }
}
