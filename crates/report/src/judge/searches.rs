//! What searches for the highest load came to (`--slo`, `--knee`, `--loss-search`), and up to which load open loops keep their latency.

use results::{
    model::{CaseResult, LoadSearch, LoadVerdict, ResultFile, SearchEnd, TrialOutcome},
    text::seconds_text,
};
use settings::{Rate, Settings};

use super::finding::{Finding, Severity, Subject, percent};
use crate::observe::format::{counted, exact, rate_text};
use crate::observe::{Metric, Observed};

/// Id of a search whose trials have too few messages for the percentile that was asked for.
pub const TOO_FEW_MESSAGES: &str = "search_too_few_messages";

/// Id of what open loops say of their latency.
pub const LATENCY_KEPT: &str = "latency_kept";

/// Key of the highest load that is known to keep its latency, in messages a second.
pub const LOWER: &str = "lower_per_s";

/// Each search of these cases; one that found no load is a problem.
pub fn searches(cases: &[CaseResult]) -> Vec<Finding> {
    cases
        .iter()
        .flat_map(|case| case.searches.iter().map(|search| finding(&case.id, search)))
        .collect()
}

fn finding(case: &str, search: &LoadSearch) -> Finding {
    let (request, note) = (request(search), search.note.as_deref().unwrap_or("no trial tells"));
    let [lower, upper] = [search.lower_per_second, search.upper_per_second];
    let of_losses = search.trials.iter().any(|trial| trial.losses.is_some());
    let (id, severity, what, remedy) = match (search.end, lower, upper) {
        (SearchEnd::Found, Some(lower), Some(upper)) => (
            "search_found",
            Severity::Note,
            format!(
                "Highest load with {request}: {}, {} ({case}). It breaks at {}",
                rate_text(lower),
                share(search, lower),
                rate_text(upper)
            ),
            "",
        ),
        (SearchEnd::AllKeep, ..) => (
            "search_all_keep",
            Severity::Note,
            format!(
                "Every load keeps {request}, up to the closed loop's maximum of {} ({case})",
                rate_text(search.maximum_per_second)
            ),
            "",
        ),
        (SearchEnd::NoneKeeps, _, upper) => (
            "search_none_keeps",
            Severity::Problem,
            format!("No load keeps {request} ({case}){}", lowest_that_broke(search, upper)),
            if of_losses {
                " Look for the cause with `rocebench why`."
            } else {
                " Raise the limit, or make the system faster."
            },
        ),
        (SearchEnd::TooFewMessages, ..) => (
            TOO_FEW_MESSAGES,
            Severity::Problem,
            format!("The highest load with {request} is not known ({case}): {note}"),
            " Measure longer (-D), or choose a lower percentile.",
        ),
        (SearchEnd::ScheduleNotKept, Some(lower), _) => (
            "search_schedule_not_kept",
            Severity::Note,
            format!(
                "{} keeps {request}, {} ({case}). Above it rocebench did not keep its schedule",
                rate_text(lower),
                share(search, lower)
            ),
            " Use more --workers on cores of their own (--cores).",
        ),
        (SearchEnd::ScheduleNotKept, None, _) => (
            "search_no_schedule",
            Severity::Problem,
            format!("rocebench could not keep its schedule at any load with {request} ({case})"),
            " Use more --workers on cores of their own (--cores).",
        ),
        (SearchEnd::Stopped, ..) => (
            "search_stopped",
            Severity::Problem,
            format!("The search for {request} stopped ({case}): {note}{}", so_far(lower, upper)),
            "",
        ),
        (SearchEnd::TrialsSpent | SearchEnd::Found, ..) => (
            "search_trials_spent",
            Severity::Note,
            format!(
                "Trials of {request} scatter too much to go on ({case}){}",
                so_far(lower, upper)
            ),
            "",
        ),
    };
    let text = format!("{what}. {}.{remedy}", trials(search));
    let figures = [(LOWER, lower), ("upper_per_s", upper)];
    let finding = Finding { severity, ..Finding::note(id, Subject::case(case), text) }
        .with("maximum_per_s", search.maximum_per_second)
        .with("trials", search.trials.len());
    figures.into_iter().fold(finding, |finding, (name, rate)| finding.with(name, rate))
}

/// `p99<20us`, or `knee 3: p99 < 12.30 µs (p99 is 4.100 µs at 10 % load)`.
fn request(search: &LoadSearch) -> String {
    let Some(reference) = search.reference_p99_ns else {
        return search.asked.clone();
    };
    let limits: Vec<String> = search
        .limits
        .iter()
        .map(|it| format!("p{} < {}", it.percentile, in_micros(it.below_ns)))
        .collect();
    let (request, limits, reference) = (&search.asked, limits.join(", "), in_micros(reference));
    format!("{request} ({limits}; p99 is {reference} at 10 % load)")
}

fn in_micros(ns: u64) -> String {
    format!("{} µs", exact(ns as f64 / 1e3))
}

/// `61 % of the closed loop's maximum`.
fn share(search: &LoadSearch, rate: f64) -> String {
    format!("{} of the closed loop's maximum", percent(rate / search.maximum_per_second))
}

/// What the lowest load did that broke the limits, and what is known to break them.
fn lowest_that_broke(search: &LoadSearch, upper: Option<f64>) -> String {
    let lowest = (search.trials.iter())
        .filter(|trial| trial.outcome == TrialOutcome::Broke)
        .min_by(|one, other| one.asked_per_second.total_cmp(&other.asked_per_second));
    let latencies = lowest.map(|trial| {
        let figures = [("p50", trial.p50_ns), ("p99", trial.p99_ns), ("p99.9", trial.p99_9_ns)];
        let known =
            figures.into_iter().filter_map(|(name, ns)| Some(format!("{name} {}", in_micros(ns?))));
        let shown = match trial.losses {
            Some(losses) => format!("{losses} lost or sent again"),
            None => known.collect::<Vec<_>>().join(", "),
        };
        format!(": even the lowest, {}, had {shown}", rate_text(trial.asked_per_second))
    });
    match (latencies, upper) {
        (Some(latencies), _) => latencies,
        (None, Some(upper)) => format!(": {} breaks it", rate_text(upper)),
        (None, None) => String::new(),
    }
}

/// What is known of bounds that were not closed.
fn so_far(lower: Option<f64>, upper: Option<f64>) -> String {
    let keeps = lower.map(|rate| format!("{} keeps it", rate_text(rate)));
    let breaks = upper.map(|rate| format!("{} breaks it", rate_text(rate)));
    let known: Vec<String> = keeps.into_iter().chain(breaks).collect();
    if known.is_empty() { String::new() } else { format!("; so far {}", known.join(", ")) }
}

/// `23 trials of 1 s: 11 kept it, 12 broke it`.
fn trials(search: &LoadSearch) -> String {
    let outcomes = [
        (TrialOutcome::Kept, "kept it"),
        (TrialOutcome::Broke, "broke it"),
        (TrialOutcome::NotKept, "did not keep the schedule"),
        (TrialOutcome::Failed, "failed"),
    ];
    let counts: Vec<String> = outcomes
        .into_iter()
        .map(|(outcome, words)| {
            (search.trials.iter().filter(|trial| trial.outcome == outcome).count(), words)
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    let made = counted(search.trials.len(), "trial");
    let text = format!("{made} of {}", seconds_text(search.trial_seconds));
    if counts.is_empty() { text } else { format!("{text}: {}", counts.join(", ")) }
}

/// A load keeps its latency where p99 is at most so many times that of the lowest load, as with `--knee 3`.
const KNEE: f64 = 3.0;

/// Requested loads, in messages a second, and what was observed of each.
type Curve<'a> = Vec<(f64, Observed<'a>)>;

/// Up to which load p99 stays low, of each set of open loops that differ in their load alone.
pub(super) fn loads(results: &[&ResultFile]) -> Vec<Finding> {
    let mut curves: Vec<((Settings, &str), Curve<'_>)> = Vec::new();
    let cases = results.iter().flat_map(|result| &result.cases);
    for observed in cases.filter(|case| case.config.pattern.is_none()).flat_map(Observed::of_case) {
        let mut loads = observed.runs.iter().filter_map(|run| run.moved?.load.as_ref());
        let Some(load) = loads.next().filter(|_| !observed.flow.settings.is_closed_loop()) else {
            continue;
        };
        let (rate, seed) = (Rate::Closed, Settings::default().seed);
        let name = observed.flow.config.map_or("", |config| config.name.as_str());
        let key = (Settings { rate, seed, ..observed.flow.settings.clone() }, name);
        let point = (load.asked_per_second, observed);
        match curves.iter_mut().find(|(known, _)| *known == key) {
            Some((_, curve)) => curve.push(point),
            None => curves.push((key, vec![point])),
        }
    }
    curves.into_iter().filter_map(|(_, curve)| latency_kept(curve)).collect()
}

/// `None` of a single load, and where the lowest is too much already.
fn latency_kept(mut curve: Curve<'_>) -> Option<Finding> {
    curve.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let p99s: Vec<Option<f64>> = curve.iter().map(|(_, it)| it.median(Metric::P99Ns)).collect();
    let most = KNEE * p99s.first().copied().flatten()?;
    let count = (curve.iter().zip(&p99s))
        .take_while(|((_, observed), p99)| {
            let mut moved = observed.counted().filter_map(|run| run.moved);
            let is_kept = moved.all(|moved| moved.verdict() == Some(LoadVerdict::Kept));
            is_kept && p99.is_some_and(|p99| p99 <= most)
        })
        .count();
    let (load, observed) = &curve[count.checked_sub(1)?];
    let (highest, _) = curve.last().filter(|_| curve.len() > 1)?;
    let p99 = p99s[..count].iter().flatten().copied().fold(0.0, f64::max);
    let share = if count == curve.len() { String::new() } else { percent(load / highest) + " of " };
    let then = curve.get(count).map(|(next, above)| match p99s[count] {
        _ if above.counted().next().is_none() => {
            format!("; at {} no run counts", rate_text(*next))
        }
        Some(longer) => format!("; at {} it is {}", rate_text(*next), Metric::P99Ns.text(longer)),
        None => "; above it p99 is not known".to_owned(),
    });
    let text = format!(
        "p99 is at most {} up to {}, {share}the highest load{} ({}).",
        Metric::P99Ns.text(p99),
        rate_text(*load),
        then.unwrap_or_default(),
        observed.flow.subject()
    );
    let cases = curve.iter().map(|(_, it)| it.flow.case.id.clone()).collect();
    let subject = Subject { cases, ..Subject::default() };
    let finding = Finding::note(LATENCY_KEPT, subject, text).with(LOWER, *load);
    Some(finding.with("highest_per_s", *highest).with(Metric::P99Ns.name(), p99))
}
