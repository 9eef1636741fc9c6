//! Ratios with their intervals, from a comparison of results or from perftest's figures in them, in rows. It must
//! not know how they are drawn.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::compare::{Comparison, Verdict};
use crate::observe::Metric;
use crate::results::load::Loaded;
use crate::results::model::{CaseConfig, subject};

/// One metric of all cases.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratios {
    /// What is compared.
    pub metric: Metric,
    /// What does not matter: 0.03 is 3 %.
    pub margin: f64,
    /// What is in the denominator, in a word or two.
    pub base: String,
    /// What is in the numerator.
    pub new: String,
    /// Devices that were measured, at the nodes that post the first flows.
    pub devices: BTreeSet<String>,
    /// Cases, the worst first.
    pub rows: Vec<RatioRow>,
}

/// One case.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioRow {
    /// Name of the case, and of the flow where it has several.
    pub case: String,
    /// Median of the base.
    pub base_median: f64,
    /// Median of the new side.
    pub new_median: f64,
    /// New over base.
    pub ratio: f64,
    /// The 95 % interval; `None` with too few runs.
    pub interval: Option<(f64, f64)>,
    /// The word for it.
    pub verdict: String,
    /// What that word means.
    pub tone: Tone,
}

/// Good, bad or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The new side is better.
    Better,
    /// The new side is worse.
    Worse,
    /// They are the same.
    Equal,
    /// It is not known.
    Unclear,
}

impl Ratios {
    fn sort(&mut self) {
        let higher = self.metric.higher_is_better();
        self.rows.sort_by(|one, other| {
            let order = one.ratio.total_cmp(&other.ratio);
            if higher { order } else { order.reverse() }
        });
    }
}

/// One for each metric that some case has on both sides.
pub fn of_comparison(comparison: &Comparison) -> Vec<Ratios> {
    let mut by_metric: BTreeMap<Metric, Ratios> = BTreeMap::new();
    for case in &comparison.cases {
        for figures in &case.metrics {
            let Some(ratio) = figures
                .ratio
                .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
            else {
                continue;
            };
            let ratios = by_metric.entry(figures.metric).or_insert_with(|| Ratios {
                metric: figures.metric,
                margin: figures.margin,
                base: comparison.base.name.clone(),
                new: comparison.new.name.clone(),
                devices: BTreeSet::new(),
                rows: Vec::new(),
            });
            ratios.devices.extend(devices(&case.config));
            ratios.rows.push(RatioRow {
                case: match figures.metric.is_of_search() {
                    true => format!("{}, {}", case.id, figures.flow),
                    false => subject(&case.config, &case.id, &figures.flow),
                },
                base_median: figures.base_median,
                new_median: figures.new_median,
                ratio,
                interval: figures.low.zip(figures.high),
                verdict: figures.verdict.name().to_owned(),
                tone: match figures.verdict {
                    Verdict::Improved => Tone::Better,
                    Verdict::Regressed => Tone::Worse,
                    Verdict::Equal => Tone::Equal,
                    Verdict::Unclear | Verdict::NoVerdict | Verdict::NotComparable => Tone::Unclear,
                },
            });
        }
    }
    sorted(by_metric)
}

/// One for each metric that was compared with perftest.
pub fn of_perftest(results: &[Loaded]) -> Vec<Ratios> {
    let mut by_metric: BTreeMap<Metric, Ratios> = BTreeMap::new();
    for case in results.iter().flat_map(|loaded| &loaded.result.cases) {
        let Some(perftest) = &case.perftest else {
            continue;
        };
        let metric = match perftest.metric.as_str() {
            "latency_ns" => Some(Metric::P50Ns),
            name => Metric::from_name(name),
        };
        let (Some(metric), Some(base_median), Some(new_median), Some(ratio)) = (
            metric,
            perftest.perftest_median,
            perftest.rocebench_median,
            perftest.ratio,
        ) else {
            continue;
        };
        if !(ratio.is_finite() && ratio > 0.0) {
            continue;
        }
        let ratios = by_metric.entry(metric).or_insert_with(|| Ratios {
            metric,
            margin: perftest.margin.unwrap_or_else(|| metric.default_margin()),
            base: "perftest".to_owned(),
            new: "rocebench".to_owned(),
            devices: BTreeSet::new(),
            rows: Vec::new(),
        });
        ratios.devices.extend(devices(&case.config));
        ratios.rows.push(RatioRow {
            case: case.id.clone(),
            base_median,
            new_median,
            ratio,
            interval: perftest.ratio_low.zip(perftest.ratio_high),
            verdict: perftest.verdict.clone(),
            tone: match perftest.verdict.as_str() {
                "faster" => Tone::Better,
                "slower" => Tone::Worse,
                "equal" => Tone::Equal,
                _ => Tone::Unclear,
            },
        });
    }
    sorted(by_metric)
}

fn devices(config: &CaseConfig) -> impl Iterator<Item = String> {
    let device = config
        .flows
        .first()
        .and_then(|flow| flow.from_device.clone());
    device.into_iter()
}

fn sorted(by_metric: BTreeMap<Metric, Ratios>) -> Vec<Ratios> {
    let mut all: Vec<Ratios> = by_metric.into_values().collect();
    all.iter_mut().for_each(Ratios::sort);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseResult, PerftestComparison};
    use crate::results::sample::file;

    fn loaded(metric: &str, ratios: &[Option<f64>]) -> Vec<Loaded> {
        let case = |(index, ratio): (usize, &Option<f64>)| CaseResult {
            id: format!("case-{index}"),
            perftest: Some(PerftestComparison {
                metric: metric.to_owned(),
                rocebench_median: Some(1.0),
                perftest_median: Some(1.0),
                ratio: *ratio,
                ratio_low: Some(0.9),
                ratio_high: None,
                verdict: "slower".to_owned(),
                ..PerftestComparison::default()
            }),
            ..CaseResult::default()
        };
        vec![file(ratios.iter().enumerate().map(case).collect())]
    }

    #[test]
    fn the_worst_comes_first_whatever_is_better() {
        let first = |metric: &str| {
            let all = [Some(1.2), None, Some(0.8), Some(f64::NAN)];
            let ratios = of_perftest(&loaded(metric, &all));
            assert_eq!(ratios[0].rows.len(), 2);
            assert_eq!(ratios[0].rows[0].interval, None);
            assert_eq!(ratios[0].rows[0].tone, Tone::Worse);
            ratios[0].rows[0].ratio
        };
        assert_eq!(first("gbit_per_s"), 0.8);
        assert_eq!(first("latency_ns"), 1.2);
        assert!(of_perftest(&loaded("unheard_of", &[Some(1.0)])).is_empty());
    }
}
