//! What a search for a load found, in three lines for a person.

use crate::observe::format::{counted, exact, rate_text};
use results::model::{LoadSearch, ResultFile, SearchEnd, TrialOutcome};
use results::text::seconds_text;

pub(super) fn lines(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    result.cases.iter().flat_map(|case| -> Vec<String> {
        case.searches
            .iter()
            .flat_map(|search| {
                [
                    format!("{}: {}", case.id, request(search)),
                    format!("  {}", found(search)),
                    format!("  {}", trials(search)),
                ]
            })
            .collect()
    })
}

/// `p99<20us`, or `knee 3: p99 < 12.30 µs (p99 is 4.100 µs at 10 % load)`.
fn request(search: &LoadSearch) -> String {
    let Some(reference) = search.reference_p99_ns else {
        return search.asked.clone();
    };
    let limits = search
        .limits
        .iter()
        .map(|it| format!("p{} < {}", it.percentile, in_micros(it.below_ns)))
        .collect::<Vec<_>>()
        .join(", ");
    let (request, reference) = (&search.asked, in_micros(reference));
    format!("{request}: {limits} (p99 is {reference} at 10 % load)")
}

fn in_micros(ns: u64) -> String {
    format!("{} µs", exact(ns as f64 / 1e3))
}

fn found(search: &LoadSearch) -> String {
    let (lower, upper) = (search.lower_per_second, search.upper_per_second);
    match (search.end, lower, upper) {
        (SearchEnd::Found, Some(lower), Some(upper)) => {
            let (share, [low, high]) = (share(search, lower), [lower, upper].map(rate_text));
            format!("highest load that keeps it: {low} (between {low} and {high}, {share})")
        }
        (SearchEnd::AllKeep, ..) => {
            let maximum = rate_text(search.maximum_per_second);
            format!("every load keeps it, up to the closed loop's maximum of {maximum}")
        }
        (SearchEnd::NoneKeeps, _, upper) => {
            let breaks = upper.map_or_else(String::new, |upper| format!(": {} breaks it, {}", rate_text(upper), share(search, upper)));
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
            share(search, lower)
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

/// `61 % of the closed loop's maximum`.
fn share(search: &LoadSearch, rate: f64) -> String {
    let percent = rate / search.maximum_per_second * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} % of the closed loop's maximum")
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
    let outcomes = [
        (TrialOutcome::Kept, "kept it"),
        (TrialOutcome::Broke, "broke it"),
        (TrialOutcome::NotKept, "did not keep the schedule"),
        (TrialOutcome::Failed, "failed"),
    ];
    let counts = outcomes.into_iter().filter_map(|(outcome, words)| {
        let count = search.trials.iter().filter(|trial| trial.outcome == outcome).count();
        (count > 0).then(|| format!("{count} {words}"))
    });
    let (count, seconds) = (search.trials.len(), seconds_text(search.trial_seconds));
    let text = format!("{} of {seconds}", counted(count, "trial"));
    match counts.collect::<Vec<_>>().join(", ") {
        counts if counts.is_empty() => text,
        counts => format!("{text}: {counts}"),
    }
}
