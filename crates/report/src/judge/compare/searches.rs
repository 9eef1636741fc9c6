//! Searches over loads on both sides: the highest load that kept a limit.

use super::facts::differ;
use super::model::{CaseComparison, MetricComparison, MissingMetric, Observation, Verdict};
use super::side::Launch;
use crate::observe::format::{each_once, rate_text};
use crate::observe::metric::Metric;
use crate::results::contradiction;
use crate::results::model::{LoadSearch, SearchEnd};
use statistics::median;

const METRIC: Metric = Metric::HighestLoad;

/// Adds what launches of both sides found for each limit. The limit stands where other figures have their flow.
pub(super) fn add(found: &mut CaseComparison, margin: f64, sides: [&[Launch<'_>]; 2]) {
    for asked in each_once(
        sides.into_iter().flatten().flat_map(|it| &it.case.searches).map(|search| &*search.asked),
    ) {
        match figures(asked, margin, sides, found.observation) {
            Ok((figures, note)) => {
                found.metrics.push(figures);
                found.notes.push(note);
            }
            Err((verdict, reason)) => found.missing.push(MissingMetric {
                metric: METRIC,
                flow: asked.to_owned(),
                reason,
                verdict,
            }),
        }
    }
}

/// The figures of both sides and a sentence on their bounds; or why there are none.
fn figures(
    asked: &str,
    margin: f64,
    sides: [&[Launch<'_>]; 2],
    observation: Observation,
) -> Result<(MetricComparison, String), (Verdict, String)> {
    let incomparable = |reason| (Verdict::NotComparable, reason);
    let [base, new] = sides.map(|side| of_launches(side, asked));
    for search in base.iter().chain(&new).flatten() {
        if let Some(told) = contradiction::of_search(search) {
            return Err(incomparable(format!("a search {told}")));
        }
    }
    let loads = |side: &[Option<&LoadSearch>]| -> Vec<Option<f64>> {
        side.iter().map(|it| highest_load(it.as_ref()?)).collect()
    };
    let [old, now] = [loads(&base), loads(&new)];
    let all = |loads: &[Option<f64>]| loads.iter().copied().collect::<Option<Vec<f64>>>();
    let (Some(old_loads), Some(now_loads)) = (all(&old), all(&now)) else {
        let [old, now] = [&old, &now].map(|loads| {
            let lacking = loads.iter().filter(|load| load.is_none()).count();
            format!("{lacking} of {}", loads.len())
        });
        return Err(incomparable(format!(
            "the search found no load in {old} base launches and {now} new launches"
        )));
    };
    let mut launches = sides.into_iter().flatten();
    if observation == Observation::Run && launches.any(|it| it.runs.len() > 1) {
        let reason = "launch 3 times a side, in turns: a search gives one figure a launch";
        return Err((Verdict::NoVerdict, reason.to_owned()));
    }
    // Bounds that overlap are no difference.
    let margin = [&base, &new].map(|side| width(side)).into_iter().fold(margin, f64::max);
    let note = differ(asked, bounds(&base), bounds(&new));
    let mut figures = MetricComparison::unjudged(METRIC, margin, old_loads, now_loads);
    figures.flow = asked.to_owned();
    Ok((figures, note))
}

/// Each launch's search for a limit.
fn of_launches<'a>(side: &[Launch<'a>], asked: &str) -> Vec<Option<&'a LoadSearch>> {
    side.iter()
        .map(|launch| {
            let mut searches = launch.case.searches.iter();
            searches.find(|search| search.asked == asked)
        })
        .collect()
}

/// The highest load that kept the limit; where none did, the lowest that broke it, above which the truth cannot be.
fn highest_load(search: &LoadSearch) -> Option<f64> {
    match search.end {
        SearchEnd::AllKeep => search.lower_per_second,
        SearchEnd::NoneKeeps => search.upper_per_second,
        SearchEnd::ScheduleNotKept | SearchEnd::Stopped => None,
        // How wide the bounds are is known with both of them alone.
        _ => search.upper_per_second.and(search.lower_per_second),
    }
}

/// By how much the upper bound is above the lower one, as a part of it: the median over launches.
fn width(side: &[Option<&LoadSearch>]) -> f64 {
    let of_search = |it: &LoadSearch| Some(it.upper_per_second? / it.lower_per_second? - 1.0);
    let widths = side.iter().flatten().filter_map(|it| of_search(it));
    median(&widths.collect::<Vec<f64>>()).unwrap_or(0.0)
}

/// `732.0 k/s to 744.0 k/s`, medians over launches.
fn bounds(side: &[Option<&LoadSearch>]) -> String {
    let of = |bound: fn(&LoadSearch) -> Option<f64>| {
        let bounds: Vec<f64> = side.iter().flatten().filter_map(|it| bound(it)).collect();
        median(&bounds).map(rate_text)
    };
    match (of(|it| it.lower_per_second), of(|it| it.upper_per_second)) {
        (Some(lower), Some(upper)) => format!("{lower} to {upper}"),
        (Some(lower), None) => format!("{lower}, the closed loop's maximum"),
        (None, Some(upper)) => format!("below {upper}"),
        (None, None) => "not known".to_owned(),
    }
}
