//! Message rate against the number of workers, and what a message costs a worker. It must not know where the
//! figures are shown.

use super::curves::Spread;
use super::groups::{Rule, grouped};
use super::panels::{Kind, Panel};
use super::settings::{Sample, Setting};
use crate::compare::Metric;
use crate::plot::figure::Figure;
use crate::plot::median::counted_runs;
use crate::results::load::Loaded;
use crate::results::model::{CaseFlow, Run};

/// The figures, one for each message size at least; none without two numbers of workers.
pub fn figures(results: &[Loaded]) -> Vec<Figure> {
    let rule = Rule {
        axis: Setting::of("workers"),
        place: &|sample| sample.number(|settings| settings.workers),
        apart: &[Setting::of("size")],
        most_lines: 8,
        most_figures: 12,
        least_places: 2,
    };
    let groups = grouped(Sample::closed_loops(results), &rule);
    let kind = Kind {
        id: "workers",
        title: "Message rate against workers, and a worker's time for a message",
        setting: Setting::of("workers"),
        axis: "worker threads at each end",
        panels: &[
            Panel {
                axis: "Mmsg/s (10⁶ messages a second), all workers together",
                column: "Mmsg/s",
                value: &|sample| Spread::of_metric(sample, Metric::MmsgPerS),
            },
            Panel {
                axis: "ns a message: time of one worker for one of its messages",
                column: "ns a message",
                value: &|sample| {
                    let workers = f64::from(sample.flow.settings.workers);
                    let runs = counted_runs(sample.flow.case);
                    Spread::of(runs.filter_map(|run| ns_a_message(run, &sample.flow, workers)))
                },
            },
        ],
        note: "ns a message is workers × window ÷ messages of all flows of their node: where it stays level, workers add up; where it rises, they \
               wait for each other, for the device or for the link.",
    };
    kind.figures(&groups)
}

/// Time of a worker for one of its messages, in nanoseconds; `None` of a run without a message. Workers serve all flows
/// of their node.
fn ns_a_message(run: &Run, flow: &CaseFlow<'_>, workers: f64) -> Option<f64> {
    let messages = run.flows_from(flow.from());
    let messages: f64 = messages.map(|flow| flow.totals.messages as f64).sum();
    let seconds = flow.result(run)?.window.seconds;
    (messages > 0.0 && seconds > 0.0).then(|| workers * seconds * 1e9 / messages)
}
