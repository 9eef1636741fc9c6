//! Searches over loads on both sides: the highest load that kept a limit.

use super::facts::differ;
use super::model::{CaseComparison, MetricComparison, MissingMetric, Observation, Verdict};
use super::side::Launch;
use crate::observe::format::{each_once, rate_text};
use crate::observe::metric::Metric;
use results::contradiction;
use results::model::{LoadSearch, SearchEnd};
use statistics::median;

const METRIC: Metric = Metric::HighestLoad;

/// Adds what launches of both sides found for each limit. The limit stands where other figures have their flow.
pub(super) fn add(found: &mut CaseComparison, margin: f64, sides: [&[Launch<'_>]; 2]) {
    for limit in each_once(
        sides.into_iter().flatten().flat_map(|it| &it.case.searches).map(|search| &*search.asked),
    ) {
        match figures(limit, margin, sides, found.observation) {
            Ok((figures, note)) => {
                found.metrics.push(figures);
                found.notes.push(note);
            }
            Err((verdict, reason)) => found.missing.push(MissingMetric {
                metric: METRIC,
                flow: limit.to_owned(),
                reason,
                verdict,
            }),
        }
    }
}

/// The figures of both sides and a sentence on their bounds; or why there are none.
fn figures(
    limit: &str,
    margin: f64,
    sides: [&[Launch<'_>]; 2],
    observation: Observation,
) -> Result<(MetricComparison, String), (Verdict, String)> {
    let [base, new] = sides.map(|side| of_launches(side, limit));
    for search in base.iter().chain(&new).flatten() {
        if let Some(contradiction) = contradiction::of_search(search) {
            return Err((Verdict::NotComparable, format!("a search {contradiction}")));
        }
    }
    let loads = [&base, &new].map(|side| -> Vec<Option<f64>> {
        side.iter().map(|search| highest_load(search.as_ref()?)).collect()
    });
    let [Some(old_loads), Some(now_loads)] =
        loads.each_ref().map(|loads| loads.iter().copied().collect::<Option<Vec<f64>>>())
    else {
        let [old, now] = loads.map(|loads| {
            let lacking = loads.iter().filter(|load| load.is_none()).count();
            format!("{lacking} of {}", loads.len())
        });
        let reason =
            format!("the search found no load in {old} base launches and {now} new launches");
        return Err((Verdict::NotComparable, reason));
    };
    let mut launches = sides.into_iter().flatten();
    if observation == Observation::Run && launches.any(|it| it.runs.len() > 1) {
        let reason = "launch 3 times a side, in turns: a search gives one figure a launch";
        return Err((Verdict::NoVerdict, reason.to_owned()));
    }
    // Bounds that overlap are no difference.
    let margin = [&base, &new].map(|side| width(side)).into_iter().fold(margin, f64::max);
    let note = differ(limit, bounds(&base), bounds(&new));
    let mut figures = MetricComparison::unjudged(METRIC, margin, old_loads, now_loads);
    figures.flow = limit.to_owned();
    Ok((figures, note))
}

/// Each launch's search for a limit.
fn of_launches<'a>(side: &[Launch<'a>], limit: &str) -> Vec<Option<&'a LoadSearch>> {
    side.iter()
        .map(|launch| {
            let mut searches = launch.case.searches.iter();
            searches.find(|search| search.asked == limit)
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
    let widths: Vec<f64> = side
        .iter()
        .flatten()
        .filter_map(|search| Some(search.upper_per_second? / search.lower_per_second? - 1.0))
        .collect();
    median(&widths).unwrap_or(0.0)
}

/// `732.0 k/s to 744.0 k/s`, medians over launches.
fn bounds(side: &[Option<&LoadSearch>]) -> String {
    let searches = side.iter().flatten();
    let lower: Vec<f64> = searches.clone().filter_map(|it| it.lower_per_second).collect();
    let upper: Vec<f64> = searches.filter_map(|it| it.upper_per_second).collect();
    match (median(&lower).map(rate_text), median(&upper).map(rate_text)) {
        (Some(lower), Some(upper)) => format!("{lower} to {upper}"),
        (Some(lower), None) => format!("{lower}, the closed loop's maximum"),
        (None, Some(upper)) => format!("below {upper}"),
        (None, None) => "not known".to_owned(),
    }
}
