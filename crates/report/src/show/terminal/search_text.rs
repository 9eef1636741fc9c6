//! What a search for a load found, in three lines for a person. It must not know the table.

use crate::observe::format::{counted, exact, rate_text};
use crate::results::model::{LoadSearch, ResultFile, SearchEnd, TrialOutcome};
use crate::text::seconds_text;

pub(super) fn lines(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().flat_map(|case| -> Vec<String> {
        case.searches
            .iter()
            .flat_map(|it| {
                let asked = format!("{}: {}", case.id, asked(it));
                [asked, format!("  {}", found(it)), format!("  {}", trials(it))]
            })
            .collect()
    })
}

/// `p99<20us`, or `knee 3: p99 < 12.30 µs (p99 is 4.100 µs at 10 % load)`.
fn asked(search: &LoadSearch) -> String {
    let Some(reference) = search.reference_p99_ns else {
        return search.asked.clone();
    };
    let micros = |ns: u64| format!("{} µs", exact(ns as f64 / 1e3));
    let limits = search
        .limits
        .iter()
        .map(|it| format!("p{} < {}", it.percentile, micros(it.below_ns)))
        .collect::<Vec<_>>()
        .join(", ");
    let (asked, reference) = (&search.asked, micros(reference));
    format!("{asked}: {limits} (p99 is {reference} at 10 % load)")
}

fn found(search: &LoadSearch) -> String {
    // `732.0 k/s keeps it, 61 % of the closed loop's maximum`.
    let share = |rate: f64| {
        let percent = rate / search.maximum_per_second * 100.0;
        let digits = usize::from(percent < 9.95);
        format!("{percent:.digits$} % of the closed loop's maximum")
    };
    let (lower, upper) = (search.lower_per_second, search.upper_per_second);
    match (search.end, lower, upper) {
        (SearchEnd::Found, Some(lower), Some(upper)) => {
            let (share, [low, high]) = (share(lower), [lower, upper].map(rate_text));
            format!("highest load that keeps it: {low} (between {low} and {high}, {share})")
        }
        (SearchEnd::AllKeep, ..) => {
            let maximum = rate_text(search.maximum_per_second);
            format!("every load keeps it, up to the closed loop's maximum of {maximum}")
        }
        (SearchEnd::NoneKeeps, _, upper) => {
            let breaks = upper.map_or_else(String::new, |upper| format!(": {} breaks it, {}", rate_text(upper), share(upper)));
            format!("no load keeps it{breaks}; raise the limit, or make the system faster")
        }
        (SearchEnd::TooFewMessages, ..) => {
            let note = search.note.as_deref();
            format!("not known: {}", note.unwrap_or("trials have too few messages"))
        }
        (SearchEnd::ScheduleNotKept, Some(lower), _) => format!(
            "{} keeps it, {}; above, rocebench did not keep its schedule, so the limit may be higher: use more --workers \
             on cores of their own (--cores)",
            rate_text(lower),
            share(lower)
        ),
        (SearchEnd::ScheduleNotKept, None, _) => {
            "not known: rocebench did not keep its schedule at any load; use more --workers on cores of their own \
             (--cores)"
                .to_owned()
        }
        (SearchEnd::Stopped, ..) => so_far("stopped", lower, upper),
        (SearchEnd::TrialsSpent | SearchEnd::Found, ..) => {
            so_far("trials scatter too much to go on", lower, upper)
        }
    }
}

/// What is known of bounds that were not closed.
fn so_far(why: &str, lower: Option<f64>, upper: Option<f64>) -> String {
    let keeps = lower.map(|rate| format!("{} keeps it", rate_text(rate)));
    let breaks = upper.map(|rate| format!("{} breaks it", rate_text(rate)));
    let known: Vec<String> = keeps.into_iter().chain(breaks).collect();
    if known.is_empty() {
        format!("{why} before a bound was known")
    } else {
        format!("{why}; so far {}", known.join(", "))
    }
}

/// `23 trials of 1 s: 11 kept it, 12 broke it`.
fn trials(search: &LoadSearch) -> String {
    let told = [
        (TrialOutcome::Kept, "kept it"),
        (TrialOutcome::Broke, "broke it"),
        (TrialOutcome::NotKept, "did not keep the schedule"),
        (TrialOutcome::Failed, "failed"),
    ];
    let told = told.into_iter().filter_map(|(outcome, words)| {
        let count = search.trials.iter().filter(|trial| trial.outcome == outcome).count();
        (count > 0).then(|| format!("{count} {words}"))
    });
    let (count, seconds) = (search.trials.len(), seconds_text(search.trial_seconds));
    let text = format!("{} of {seconds}", counted(count, "trial"));
    match told.collect::<Vec<_>>().join(", ") {
        told if told.is_empty() => text,
        told => format!("{text}: {told}"),
    }
}
