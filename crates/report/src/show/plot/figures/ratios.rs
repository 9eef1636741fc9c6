//! Ratios with their intervals, from a comparison of results or from perftest's figures in them, in rows.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::compare::{Comparison, Verdict};
use crate::observe::Metric;
use crate::results::load::Loaded;
use crate::results::model::{CaseConfig, subject};
use crate::text::short_path;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ratios {
    pub(super) metric: Metric,
    /// What does not matter: 0.03 is 3 %.
    pub(super) margin: f64,
    /// What is in the denominator, and in the numerator, in a word or two.
    pub(super) sides: [String; 2],
    /// Devices that were measured, at the nodes that post the first flows.
    pub(super) devices: BTreeSet<String>,
    pub(super) rows: Vec<RatioRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct RatioRow {
    /// Name of the case, and of the flow where it has several.
    pub(super) case: String,
    /// Medians of the base and of the new side.
    pub(super) medians: [f64; 2],
    pub(super) ratio: f64,
    /// The 95 % interval; `None` with too few runs.
    pub(super) interval: Option<(f64, f64)>,
    pub(super) verdict: String,
    pub(super) tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Better,
    Worse,
    Equal,
    Unclear,
}

type Found<'a> = (Metric, f64, &'a CaseConfig, RatioRow);

/// One for each metric that some case has on both sides.
pub(super) fn of_comparison(comparison: &Comparison) -> Vec<Ratios> {
    let found = comparison.cases.iter().flat_map(|case| {
        case.metrics.iter().filter_map(move |figures| {
            let row = RatioRow {
                case: if figures.metric.is_of_search() {
                    format!("{}, {}", case.id, figures.flow)
                } else {
                    subject(&case.config, &case.id, &figures.flow)
                },
                medians: [figures.base_median, figures.new_median],
                ratio: figures.ratio?,
                interval: figures.low.zip(figures.high),
                verdict: figures.verdict.name().to_owned(),
                tone: match figures.verdict {
                    Verdict::Improved => Tone::Better,
                    Verdict::Regressed => Tone::Worse,
                    Verdict::Equal => Tone::Equal,
                    Verdict::Unclear | Verdict::NoVerdict | Verdict::NotComparable => Tone::Unclear,
                },
            };
            Some((figures.metric, figures.margin, &case.config, row))
        })
    });
    let sides = [&comparison.base, &comparison.new].map(|side| short_path(&side.name));
    by_metric(found, sides)
}

/// One for each metric that was compared with perftest.
pub(super) fn of_perftest(results: &[Loaded]) -> Vec<Ratios> {
    let found = results.iter().flat_map(|loaded| &loaded.result.cases).filter_map(|case| {
        let perftest = case.perftest.as_ref()?;
        let metric = match perftest.metric.as_str() {
            "latency_ns" => Metric::P50Ns,
            name => Metric::from_name(name)?,
        };
        let row = RatioRow {
            case: case.id.clone(),
            medians: [perftest.perftest_median?, perftest.rocebench_median?],
            ratio: perftest.ratio?,
            interval: perftest.ratio_low.zip(perftest.ratio_high),
            verdict: perftest.verdict.clone(),
            tone: match perftest.verdict.as_str() {
                "faster" => Tone::Better,
                "slower" => Tone::Worse,
                "equal" => Tone::Equal,
                _ => Tone::Unclear,
            },
        };
        let margin = perftest.margin.unwrap_or_else(|| metric.default_margin());
        Some((metric, margin, &case.config, row))
    });
    by_metric(found, ["perftest", "rocebench"])
}

/// The factors of victims, each as what is left of it beside the attacker.
pub(super) fn of_beside(results: &[Loaded]) -> Vec<Ratios> {
    let found = results.iter().flat_map(|loaded| {
        loaded
            .result
            .beside
            .iter()
            .flat_map(|it| {
                [
                    (Metric::GbitPerS, it, &it.gbit_per_s, f64::recip as fn(f64) -> f64),
                    (Metric::P99Ns, it, &it.p99_ns, |factor| factor),
                ]
            })
            .filter_map(|(metric, it, factor, ratio)| {
                let case = loaded.result.cases.iter().find(|case| case.id == it.beside)?;
                let [low, high] = [factor.factor_low, factor.factor_high].map(|end| end.map(ratio));
                let row = RatioRow {
                    case: it.attacker.clone(),
                    medians: [factor.alone?, factor.beside?],
                    ratio: ratio(factor.factor?),
                    interval: low.zip(high).map(|(one, other)| (one.min(other), one.max(other))),
                    verdict: factor.verdict.clone(),
                    tone: match factor.verdict.as_str() {
                        "harmed" => Tone::Worse,
                        "not harmed" => Tone::Equal,
                        _ => Tone::Unclear,
                    },
                };
                Some((metric, factor.margin, &case.config, row))
            })
    });
    by_metric(found, ["alone", "beside the attacker"])
}

fn by_metric<'a>(found: impl Iterator<Item = Found<'a>>, sides: [&str; 2]) -> Vec<Ratios> {
    let mut of_metrics: BTreeMap<Metric, Ratios> = BTreeMap::new();
    for (metric, margin, config, row) in found {
        if !(row.ratio.is_finite() && row.ratio > 0.0) {
            continue;
        }
        let ratios = of_metrics.entry(metric).or_insert_with(|| Ratios {
            metric,
            margin,
            sides: sides.map(str::to_owned),
            devices: BTreeSet::new(),
            rows: Vec::new(),
        });
        let first = config.flows.first();
        let device = first.and_then(|flow| flow.from_device.clone());
        ratios.devices.extend(device);
        ratios.rows.push(row);
    }
    of_metrics
        .into_values()
        .map(|mut ratios| {
            let is_higher = ratios.metric.higher_is_better();
            ratios.rows.sort_by(|one, other| {
                let order = one.ratio.total_cmp(&other.ratio);
                if is_higher { order } else { order.reverse() }
            });
            ratios
        })
        .collect()
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
    fn a_victim_has_what_is_left_of_it_beside_each_attacker() {
        let mut loaded = file(vec![CaseResult::default()]);
        loaded.result.beside = crate::results::sample::beside();
        let ratios = of_beside(&[loaded]);
        let told = ratios.iter().map(|it| {
            let rows = it.rows.iter().map(|row| format!("{} {:.2}", row.case, row.ratio));
            (it.metric, rows.collect::<Vec<_>>().join(", "))
        });
        let expected = [
            (Metric::GbitPerS, "bandwidth 0.50, packets 0.99"),
            (Metric::P99Ns, "bandwidth 1.01, packets 1.01"),
        ];
        assert!(told.eq(expected.map(|(metric, rows)| (metric, rows.to_owned()))));
        let worst = &ratios[0].rows[0];
        let (low, high) = worst.interval.unwrap();
        assert!(low < worst.ratio && worst.ratio < high && worst.tone == Tone::Worse);
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
