//! Which lines and charts tell something: settings that change little are said instead of drawn, and of too many charts
//! those are kept whose lines differ most. It must not know how they are drawn.

use std::collections::BTreeMap;

use super::curves::Spread;
use super::groups::{Line, name_by, plain};
use super::sample::Sample;
use super::settings::Setting;
use crate::compare::Metric;
use crate::plot::draw::number;
use crate::results::number::plural;

/// Figures of a metric that differ by at most so many of its margins are alike.
const ALIKE_MARGINS: f64 = 2.0;

/// Leaves out lines that differ from another one in a single setting and by little, until there are at most `most` of
/// them; returns what is said instead. The settings go from the key.
pub(super) fn thin(
    lines: &mut Vec<Line<'_>>,
    key: &mut Vec<Setting>,
    metric: Metric,
    most: usize,
) -> Vec<String> {
    let mut notes = Vec::new();
    while lines.len() > most {
        let candidates = key.iter().filter(|setting| setting.is_set_by_hand());
        let least = candidates
            .filter_map(|setting| Some((*setting, apart(lines, key, *setting, metric)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((setting, ratio)) = least else { break };
        if ratio > 1.0 + ALIKE_MARGINS * metric.default_margin() {
            break;
        }
        let mut values: Vec<String> = Vec::new();
        for line in &*lines {
            let words = plain(setting, line.value(setting));
            if !values.contains(&words) {
                values.push(words);
            }
        }
        let mut seen = BTreeMap::new();
        lines.retain(|line| seen.insert(others(line, key, setting), ()).is_none());
        key.retain(|other| *other != setting);
        let drawn = values.first().cloned().unwrap_or_default();
        notes.push(format!(
            "{} differ by {}\u{a0}% at most in {}: drawn is {drawn}.",
            values.join(" and "),
            number::fixed((ratio - 1.0) * 100.0, 1),
            metric.short_name()
        ));
    }
    notes
}

fn others(line: &Line<'_>, key: &[Setting], setting: Setting) -> Vec<String> {
    let others = key.iter().filter(|other| **other != setting);
    others.map(|other| line.value(*other).to_owned()).collect()
}

/// The largest ratio of two figures at one place of lines that differ in the setting alone; `None` without two such, or
/// where a place has a figure of one alone.
fn apart(lines: &[Line<'_>], key: &[Setting], setting: Setting, metric: Metric) -> Option<f64> {
    let mut alike: BTreeMap<Vec<String>, Vec<&Line<'_>>> = BTreeMap::new();
    for line in lines {
        alike
            .entry(others(line, key, setting))
            .or_default()
            .push(line);
    }
    let mut largest: Option<f64> = None;
    for lines in alike.values().filter(|lines| lines.len() > 1) {
        let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (place, sample) in lines.iter().flat_map(|line| &line.points) {
            at.entry(place.to_bits())
                .or_default()
                .extend(figure(sample, metric));
        }
        for figures in at.values() {
            if figures.len() < lines.len() {
                return None;
            }
            largest = Some(largest.unwrap_or(1.0).max(ratio(figures)?));
        }
    }
    largest
}

fn figure(sample: &Sample<'_>, metric: Metric) -> Option<f64> {
    Some(Spread::of_metric(sample, metric)?.median)
}

/// The largest over the smallest; `None` where that is no number.
fn ratio(figures: &[f64]) -> Option<f64> {
    let least = figures.iter().copied().reduce(f64::min)?;
    let most = figures.iter().copied().reduce(f64::max)?;
    let ratio = most / least;
    (ratio.is_finite() && least > 0.0).then_some(ratio)
}

/// Keeps the charts whose lines differ most, in their order; returns what is said of the others.
pub(super) fn choose(
    charts: &mut Vec<Vec<Line<'_>>>,
    metric: Metric,
    most: usize,
) -> Option<String> {
    if charts.len() <= most {
        return None;
    }
    let scores: Vec<(f64, f64)> = charts.iter().map(|lines| score(lines, metric)).collect();
    let mut by_score: Vec<usize> = (0..charts.len()).collect();
    by_score.sort_by(|a, b| {
        let (a, b) = (scores[*a], scores[*b]);
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    let kept = &by_score[..most];
    let all = charts.len();
    let mut number = 0;
    charts.retain(|_| {
        number += 1;
        kept.contains(&(number - 1))
    });
    Some(format!(
        "Drawn {} of {all} whose lines differ most in {}; the table of all cases has the others.",
        match most {
            1 => "is the 1 chart".to_owned(),
            most => format!("are the {most} {}", plural(most, "chart")),
        },
        metric.short_name()
    ))
}

/// Leaves out charts in which nothing differs by more than what is alike, as long as one is left; returns what is said of
/// them. `apart` are the settings that tell charts apart.
pub(super) fn drop_flat(
    charts: &mut Vec<Vec<Line<'_>>>,
    apart: &[Setting],
    metric: Metric,
) -> Option<String> {
    let alike = 1.0 + ALIKE_MARGINS * metric.default_margin();
    let is_flat = |lines: &Vec<Line<'_>>| {
        let (between, along) = score(lines, metric);
        between <= alike && along <= alike
    };
    let flat: Vec<bool> = charts.iter().map(is_flat).collect();
    if flat.iter().all(|flat| *flat) {
        return None;
    }
    let mut gone = Vec::new();
    let mut flat = flat.into_iter();
    charts.retain(|lines| {
        let is_flat = flat.next().unwrap_or(false);
        if is_flat && let Some(first) = lines.first() {
            gone.push(name_by(first, apart));
        }
        !is_flat
    });
    (!gone.is_empty()).then(|| {
        format!(
            "Not drawn, since nothing in them differs by more than {}\u{a0}% in {}: {}.",
            number::fixed((alike - 1.0) * 100.0, 0),
            metric.short_name(),
            gone.join("; ")
        )
    })
}

/// How much lines differ from each other, and how much they rise or fall.
fn score(lines: &[Line<'_>], metric: Metric) -> (f64, f64) {
    let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut along = 0.0_f64;
    for line in lines {
        let mut figures = Vec::new();
        for (place, sample) in &line.points {
            let figure = figure(sample, metric);
            at.entry(place.to_bits()).or_default().extend(figure);
            figures.extend(figure);
        }
        along = along.max(ratio(&figures).unwrap_or(1.0));
    }
    let between = at.values().filter_map(|figures| ratio(figures));
    (between.fold(1.0, f64::max), along)
}

#[cfg(test)]
mod tests {
    use super::super::grouping::{Rule, grouped};
    use super::super::sample::Sample;
    use super::*;
    use crate::results::load::Loaded;
    use crate::results::model::{CaseConfig, CaseResult, FlowResult, ResultFile, Run, Totals};
    use settings::Settings;

    fn file(rate: impl Fn(&Settings) -> f64) -> [Loaded; 1] {
        let mut cases = Vec::new();
        for op in ["send", "write", "read"] {
            for cq in ["shared", "per-qp"] {
                for qps in ["1", "4"] {
                    for size in ["64", "4096"] {
                        let settings =
                            Settings::from([("op", op), ("cq", cq), ("qps", qps), ("size", size)]);
                        let config = CaseConfig::from(settings.clone());
                        let flow = FlowResult {
                            totals: Totals {
                                gbit_per_s: Some(rate(&settings)),
                                ..Totals::default()
                            },
                            ..FlowResult::of(&config.flows[0])
                        };
                        cases.push(CaseResult {
                            id: format!("{op}-{cq}-{qps}-{size}"),
                            config,
                            runs: vec![Run {
                                complete: true,
                                flows: vec![flow],
                                ..Run::default()
                            }],
                            ..CaseResult::default()
                        });
                    }
                }
            }
        }
        [Loaded {
            path: "r.json".into(),
            result: ResultFile {
                cases,
                ..ResultFile::default()
            },
        }]
    }

    fn rule(most_lines: usize, most_charts: usize) -> Rule<'static> {
        Rule {
            axis: Setting::of("size"),
            place: &|sample| sample.number(|settings| settings.size_bytes),
            metric: Metric::GbitPerS,
            apart: &[],
            most_lines,
            most_charts,
            least_places: 2,
        }
    }

    #[test]
    fn what_differs_by_little_is_said_and_not_drawn() {
        let results = file(|settings| {
            let of_cq = if settings.cq.name() == "per-qp" {
                1.04
            } else {
                1.0
            };
            let of_op = if settings.op.name() == "read" {
                0.5
            } else {
                1.0
            };
            f64::from(settings.qps) * of_cq * of_op
        });
        let groups = grouped(Sample::closed_loops(&results), &rule(6, 9));
        assert_eq!(groups.groups.len(), 1);
        assert_eq!(groups.lines().count(), 6);
        let [note] = groups.notes.as_slice() else {
            panic!("{:?}", groups.notes);
        };
        assert!(
            note.contains("shared") && note.contains("4.0\u{a0}% at most in bandwidth"),
            "{note}"
        );
        // Nothing is left out where there is room.
        let groups = grouped(Sample::closed_loops(&results), &rule(12, 9));
        assert_eq!((groups.lines().count(), groups.notes.len()), (12, 0));
    }

    #[test]
    fn charts_in_which_nothing_differs_are_said() {
        let results = file(|settings| match settings.op.name() {
            "send" => 1.0,
            _ => f64::from(settings.qps * settings.size_bytes),
        });
        let groups = grouped(Sample::closed_loops(&results), &rule(4, 9));
        assert_eq!(groups.groups.len(), 2);
        assert!(
            groups.notes[1].ends_with("6\u{a0}% in bandwidth: send."),
            "{:?}",
            groups.notes
        );
    }

    #[test]
    fn charts_whose_lines_differ_are_kept() {
        let results = file(|settings| {
            let qps = f64::from(settings.qps);
            match settings.op.name() {
                "send" => qps,
                "write" => qps * qps,
                _ if settings.cq.name() == "shared" => qps,
                _ => 3.0 * qps,
            }
        });
        let groups = grouped(Sample::closed_loops(&results), &rule(4, 2));
        let headings: Vec<String> = groups.groups.iter().map(|it| it.heading()).collect();
        assert_eq!(headings, ["write", "read"]);
        assert!(
            groups.notes[0].contains("2 charts of 3"),
            "{:?}",
            groups.notes
        );
    }
}
