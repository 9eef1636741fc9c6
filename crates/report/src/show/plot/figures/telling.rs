//! Which lines and charts tell something: settings that change little are said instead of drawn, and of too many charts
//! those are kept whose lines differ most. It must not know how they are drawn.

use std::collections::BTreeMap;

use super::groups::{Line, distinct, name_by, plain};
use super::sample::Sample;
use super::settings::Setting;
use crate::observe::Metric;
use crate::observe::format::plural;
use crate::show::plot::draw::number;

/// Figures of a metric that differ by at most so many of its margins are alike.
const ALIKE_MARGINS: f64 = 2.0;

/// Leaves out lines that differ from another one in a single setting and by little in each metric, until there are at most
/// `most` of them; returns what is said instead. The settings go from the key.
pub(super) fn thin(
    lines: &mut Vec<Line<'_>>,
    key: &mut Vec<Setting>,
    metrics: &[Metric],
    most: usize,
) -> Vec<String> {
    let metrics = known(metrics, &lines.iter().collect::<Vec<_>>());
    let mut notes = Vec::new();
    while lines.len() > most {
        let candidates = key.iter().filter(|setting| setting.is_set_by_hand());
        let least = candidates
            .filter_map(|setting| {
                let of = |metric: &Metric| apart(lines, key, *setting, *metric);
                let ratios: Vec<f64> = metrics.iter().map(of).collect::<Option<_>>()?;
                let margins = metrics.iter().zip(&ratios);
                let margins = margins.map(|(metric, ratio)| margins_of(*metric, *ratio));
                Some((*setting, margins.reduce(f64::max)?, ratios))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((setting, margins, ratios)) = least else {
            break;
        };
        if margins > ALIKE_MARGINS {
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
        let told = metrics.iter().zip(&ratios).map(|(metric, ratio)| {
            format!(
                "{}\u{a0}% at most in {}",
                number::fixed((ratio - 1.0) * 100.0, 1),
                metric.short_name()
            )
        });
        notes.push(format!(
            "{} differ by {}: the figure has {drawn}.",
            values.join(" and "),
            told.collect::<Vec<_>>().join(" and ")
        ));
    }
    notes
}

/// Those of the metrics that some line has.
fn known(metrics: &[Metric], lines: &[&Line<'_>]) -> Vec<Metric> {
    let has = |metric: &Metric| {
        let mut points = lines.iter().flat_map(|line| &line.points);
        points.any(|(_, sample)| figure(sample, *metric).is_some())
    };
    metrics.iter().copied().filter(has).collect()
}

/// How many of the metric's margins a ratio is from 1.
fn margins_of(metric: Metric, ratio: f64) -> f64 {
    (ratio - 1.0) / metric.default_margin()
}

fn others(line: &Line<'_>, key: &[Setting], setting: Setting) -> Vec<String> {
    let others = key.iter().filter(|other| **other != setting);
    others.map(|other| line.value(*other).to_owned()).collect()
}

/// The largest ratio of two figures at one place of lines that differ in the setting alone; `None` where lines alike in
/// all else have not each of its values, or where a place has a figure of one alone.
fn apart(lines: &[Line<'_>], key: &[Setting], setting: Setting, metric: Metric) -> Option<f64> {
    let values = distinct(lines.iter().map(|line| line.value(setting))).len();
    let mut alike: BTreeMap<Vec<String>, Vec<&Line<'_>>> = BTreeMap::new();
    for line in lines {
        alike
            .entry(others(line, key, setting))
            .or_default()
            .push(line);
    }
    let mut largest: Option<f64> = None;
    for lines in alike.values() {
        if values < 2 || lines.len() < values {
            return None;
        }
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
    Some(sample.spread(metric)?.median)
}

/// The largest over the smallest; `None` where that is no number.
fn ratio(figures: &[f64]) -> Option<f64> {
    let least = figures.iter().copied().reduce(f64::min)?;
    let most = figures.iter().copied().reduce(f64::max)?;
    let ratio = most / least;
    (ratio.is_finite() && least > 0.0).then_some(ratio)
}

fn names(metrics: &[Metric], word: &str) -> String {
    let names: Vec<&str> = metrics.iter().map(|metric| metric.short_name()).collect();
    names.join(word)
}

/// Keeps the charts whose lines differ most, in their order; returns what is said of the others.
pub(super) fn choose(
    charts: &mut Vec<Vec<Line<'_>>>,
    metrics: &[Metric],
    most: usize,
) -> Option<String> {
    if charts.len() <= most {
        return None;
    }
    let metrics = known(metrics, &charts.iter().flatten().collect::<Vec<_>>());
    let scores: Vec<(f64, f64)> = charts.iter().map(|lines| score(lines, &metrics)).collect();
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
        "The figure has the {most} {} of {all} whose lines differ most in {}; the table of all cases has the others.",
        plural(most, "chart"),
        names(&metrics, " or "),
    ))
}

/// Leaves out charts in which nothing differs by more than what is alike, as long as one is left; returns what is said of
/// them. `apart` are the settings that tell charts apart.
pub(super) fn drop_flat(
    charts: &mut Vec<Vec<Line<'_>>>,
    apart: &[Setting],
    metrics: &[Metric],
) -> Option<String> {
    let metrics = known(metrics, &charts.iter().flatten().collect::<Vec<_>>());
    let is_flat = |lines: &Vec<Line<'_>>| {
        let (between, along) = score(lines, &metrics);
        between <= ALIKE_MARGINS && along <= ALIKE_MARGINS
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
    let told = metrics.iter().map(|metric| {
        let alike = ALIKE_MARGINS * metric.default_margin();
        let alike = number::fixed(alike * 100.0, 0);
        format!("{alike}\u{a0}% in {}", metric.short_name())
    });
    (!gone.is_empty()).then(|| {
        format!(
            "Not drawn, since nothing in them differs by more than {}: {}.",
            told.collect::<Vec<_>>().join(" or "),
            gone.join("; ")
        )
    })
}

/// How much lines differ from each other, and how much they rise or fall, in margins of the metric in which they do most.
fn score(lines: &[Line<'_>], metrics: &[Metric]) -> (f64, f64) {
    let of = |metric: &Metric| {
        let mut at: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut along = 0.0_f64;
        for line in lines {
            let mut figures = Vec::new();
            for (place, sample) in &line.points {
                let figure = figure(sample, *metric);
                at.entry(place.to_bits()).or_default().extend(figure);
                figures.extend(figure);
            }
            along = along.max(margins_of(*metric, ratio(&figures).unwrap_or(1.0)));
        }
        let between = at.values().filter_map(|figures| ratio(figures));
        (margins_of(*metric, between.fold(1.0, f64::max)), along)
    };
    let largest = |a: (f64, f64), b: (f64, f64)| (a.0.max(b.0), a.1.max(b.1));
    metrics.iter().map(of).fold((0.0, 0.0), largest)
}

#[cfg(test)]
mod tests {
    use super::super::grouping::{Rule, grouped};
    use super::super::sample::Sample;
    use super::*;
    use crate::results::load::Loaded;
    use crate::results::model::{CaseResult, Latency};
    use crate::results::sample;
    use crate::results::sample::has;
    use settings::Settings;

    fn file(rate: impl Fn(&Settings) -> f64) -> [Loaded; 1] {
        let mut cases = Vec::new();
        for op in ["send", "write", "read"] {
            for cq in ["shared", "per-qp"] {
                for qps in ["1", "4"] {
                    for size in ["64", "4096"] {
                        let settings =
                            Settings::from([("op", op), ("cq", cq), ("qps", qps), ("size", size)]);
                        let rate = rate(&settings);
                        cases.push(CaseResult {
                            id: format!("{op}-{cq}-{qps}-{size}"),
                            ..sample::moved(settings, Some(rate))
                        });
                    }
                }
            }
        }
        [sample::file(cases)]
    }

    fn rule(most_lines: usize, most_charts: usize) -> Rule<'static> {
        Rule {
            axis: Setting::of("size"),
            place: &|sample| sample.number(|settings| settings.size_bytes),
            metrics: &[Metric::GbitPerS],
            apart: &[],
            most_lines,
            most_charts,
            least_places: 2,
        }
    }

    #[test]
    fn what_differs_by_little_is_said_and_not_drawn() {
        let results = file(|settings| {
            let of_cq = [1.0, 1.04][usize::from(settings.cq.name() == "per-qp")];
            let of_op = [1.0, 0.5][usize::from(settings.op.name() == "read")];
            f64::from(settings.qps) * of_cq * of_op
        });
        let groups = grouped(Sample::closed_loops(&results), &rule(6, 9));
        assert_eq!(groups.groups.len(), 1);
        assert_eq!(groups.lines().count(), 6);
        let [note] = groups.notes.as_slice() else {
            panic!("{:?}", groups.notes);
        };
        has(note, ["shared", "4.0\u{a0}% at most in bandwidth"]);
        // Nothing is left out where there is room.
        let groups = grouped(Sample::closed_loops(&results), &rule(12, 9));
        assert_eq!((groups.lines().count(), groups.notes.len()), (12, 0));
    }

    #[test]
    fn what_some_lines_lack_is_not_thinned() {
        let mut results = file(|settings| f64::from(settings.qps));
        // Reads have one way of sharing alone.
        let cases = &mut results[0].result.cases;
        cases.retain(|case| case.config.op.name() != "read" || case.config.cq.name() == "per-qp");
        let groups = grouped(Sample::closed_loops(&results), &rule(8, 9));
        let is_told = |note: &String| note.contains("shared");
        assert!(!groups.notes.iter().any(is_told), "{:?}", groups.notes);
        assert_eq!(groups.lines().count(), 10);
    }

    #[test]
    fn lines_that_differ_in_another_metric_are_drawn() {
        let mut results = file(|settings| f64::from(settings.qps));
        for case in &mut results[0].result.cases {
            let is_shared = case.config.cq.name() == "shared";
            case.runs[0].flows[0].latency_ns = Some(Latency {
                p99: Some([2_000, 1_000][usize::from(is_shared)]),
                ..Latency::default()
            });
        }
        let both = Rule {
            metrics: &[Metric::GbitPerS, Metric::P99Ns],
            ..rule(6, 9)
        };
        let groups = grouped(Sample::closed_loops(&results), &both);
        let cqs = distinct(groups.lines().map(|line| line.value(Setting::of("cq"))));
        assert_eq!(cqs.len(), 2);
    }

    #[test]
    fn charts_in_which_nothing_differs_are_said() {
        let results = file(|settings| match settings.op.name() {
            "send" => 1.0,
            _ => f64::from(settings.qps * settings.size_bytes),
        });
        let groups = grouped(Sample::closed_loops(&results), &rule(4, 9));
        assert_eq!(groups.groups.len(), 2);
        has(&groups.notes[1], ["6\u{a0}% in bandwidth: send."]);
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
        has(&groups.notes[0], ["2 charts of 3"]);
    }
}
