//! What a search for a load found, in two to four lines for a person. It must not know the table.

use crate::observe::format::{exact, plural, rate_text};
use crate::results::model::{LoadSearch, ResultFile, SearchEnd, Trial, TrialOutcome};
use crate::text::seconds_text;

/// The lines of all searches.
pub(super) fn lines(result: &ResultFile) -> impl Iterator<Item = String> + '_ {
    let searches = result
        .cases
        .iter()
        .flat_map(|case| case.searches.iter().map(|search| (&*case.id, search)));
    searches.flat_map(|(id, search)| of_search(id, search))
}

fn of_search(id: &str, search: &LoadSearch) -> Vec<String> {
    let mut lines = vec![format!("{id}: {}", asked(search))];
    lines.push(format!("  {}", found(search)));
    lines.push(format!("  {}", trials(search)));
    lines
}

/// `p99<20us`, or `knee 3: p99 < 12.30 µs, where p99 at 10 % load is 4.100 µs`.
fn asked(search: &LoadSearch) -> String {
    let Some(reference) = search.reference_p99_ns else {
        return search.asked.clone();
    };
    let limits = search.limits.iter().map(|limit| {
        let (percentile, below) = (limit.percentile, micros(limit.below_ns));
        format!("p{percentile} < {below}")
    });
    let limits: Vec<String> = limits.collect();
    format!(
        "{}: {}, where p99 at 10 % load is {}",
        search.asked,
        limits.join(", "),
        micros(reference)
    )
}

fn micros(ns: u64) -> String {
    format!("{} µs", exact(ns as f64 / 1e3))
}

/// `61 % of the closed loop's maximum`.
fn share(rate: f64, search: &LoadSearch) -> String {
    let percent = rate / search.maximum_per_second * 100.0;
    let digits = usize::from(percent < 9.95);
    format!("{percent:.digits$} % of the closed loop's maximum")
}

fn found(search: &LoadSearch) -> String {
    let maximum = rate_text(search.maximum_per_second);
    let bounds = (search.lower_per_second, search.upper_per_second);
    match (search.end, bounds) {
        (SearchEnd::Found, (Some(lower), Some(upper))) => format!(
            "highest load that keeps it: {} (between {} and {}, {})",
            rate_text(lower),
            rate_text(lower),
            rate_text(upper),
            share(lower, search)
        ),
        (SearchEnd::AllKeep, _) => {
            format!("every load keeps it, up to the closed loop's maximum of {maximum}")
        }
        (SearchEnd::NoneKeeps, (_, Some(upper))) => format!(
            "no load keeps it: {} breaks it, {}; raise the limit, or make the system faster",
            rate_text(upper),
            share(upper, search)
        ),
        (SearchEnd::NoneKeeps, (_, None)) => {
            "no load keeps it; raise the limit, or make the system faster".to_owned()
        }
        (SearchEnd::TooFewMessages, _) => format!(
            "not known: {}",
            search.note.as_deref().unwrap_or("trials have too few messages")
        ),
        (SearchEnd::Found, bounds) => so_far("trials scatter too much to close the bounds", bounds),
        (SearchEnd::TrialsSpent, bounds) => so_far("trials scatter too much to go on", bounds),
        (SearchEnd::ScheduleNotKept, (Some(lower), _)) => format!(
            "{} keeps it, {}; above, rocebench did not keep its schedule, so the limit may be higher: use more --workers \
             on cores of their own (--cores)",
            rate_text(lower),
            share(lower, search)
        ),
        (SearchEnd::ScheduleNotKept, (None, _)) => {
            "not known: rocebench did not keep its schedule at any load; use more --workers on cores of their own \
             (--cores)"
                .to_owned()
        }
        (SearchEnd::Stopped, bounds) => so_far("stopped", bounds),
    }
}

/// What is known of bounds that were not closed.
fn so_far(why: &str, (lower, upper): (Option<f64>, Option<f64>)) -> String {
    let keeps = lower.map(|rate| format!("{} keeps it", rate_text(rate)));
    let breaks = upper.map(|rate| format!("{} breaks it", rate_text(rate)));
    let known: Vec<String> = keeps.into_iter().chain(breaks).collect();
    match known.is_empty() {
        true => format!("{why} before a bound was known"),
        false => format!("{why}; so far {}", known.join(", ")),
    }
}

/// `23 trials of 1 s: 11 kept it, 12 broke it`.
fn trials(search: &LoadSearch) -> String {
    let count = search.trials.len();
    let mut text = format!(
        "{count} {} of {}",
        plural(count, "trial"),
        seconds_text(search.trial_seconds)
    );
    let with = |outcome: TrialOutcome| {
        let is_it = |trial: &&Trial| trial.outcome == outcome;
        search.trials.iter().filter(is_it).count()
    };
    let told = [
        (TrialOutcome::Kept, "kept it"),
        (TrialOutcome::Broke, "broke it"),
        (TrialOutcome::NotKept, "did not keep the schedule"),
        (TrialOutcome::Failed, "failed"),
    ];
    let told = told.map(|(outcome, words)| (with(outcome), words));
    let told: Vec<String> = told
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    if !told.is_empty() {
        text += &format!(": {}", told.join(", "));
    }
    text
}
