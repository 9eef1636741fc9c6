//! How long flows took to share evenly again after flows began or ended, or a link failed or came back.

use results::model::{Convergence, ResultFile, Run};

use super::finding::{Finding, Subject};
use crate::observe::format::time_text;

/// Cases of which it is said, and events of each; the file has all.
const MOST_CASES: usize = 4;
const MOST_EVENTS: usize = 4;

/// A sentence for each case in which flows came and went.
pub(super) fn convergence(result: &ResultFile) -> Vec<Finding> {
    let found = result.cases.iter().filter_map(|case| {
        let runs: Vec<&Run> = case.runs.iter().filter(|run| run.complete).collect();
        let first = runs.iter().find(|run| !run.convergence.is_empty())?;
        let mut parts: Vec<String> = first
            .convergence
            .iter()
            .take(MOST_EVENTS)
            .enumerate()
            .map(|(number, event)| after(number, event, &runs))
            .collect();
        let more = first.convergence.len().saturating_sub(MOST_EVENTS);
        parts.extend((more > 0).then(|| format!("{more} more events are in the file")));
        let text = format!("Shares of flows ({}): {}.", case.id, parts.join("; "));
        let events: Vec<&Convergence> = runs.iter().flat_map(|run| &run.convergence).collect();
        let seconds: Vec<f64> = events.iter().filter_map(|event| event.seconds).collect();
        let slowest = seconds.iter().copied().reduce(f64::max);
        Some(
            Finding::note("convergence", Subject::case(&case.id), text)
                .with("events", events.len())
                .with("known", seconds.len())
                .with("most_seconds", slowest),
        )
    });
    found.take(MOST_CASES).collect()
}

fn time(seconds: f64) -> String {
    time_text(seconds * 1e9)
}

/// `flow2 starts at 1 s, even after 30 ms`, over all runs.
fn after(number: usize, event: &Convergence, runs: &[&Run]) -> String {
    let of_runs = runs.iter().filter_map(|run| run.convergence.get(number)?.seconds);
    let [least, most] = [f64::min, f64::max].map(|extreme| of_runs.clone().reduce(extreme));
    let became = match (least, most) {
        (Some(least), Some(most)) if least < most => {
            format!("even after {} to {}", time(least), time(most))
        }
        (Some(only), _) => format!("even after {}", time(only)),
        (None, _) => event.unknown.clone().unwrap_or_default(),
    };
    format!("{} at {}, {became}", event.event(), time(event.at_seconds))
}
