//! Combines the windows of an end's workers: the time base of rates, and doubts about the figures.

use datapath::{WindowEdges, WorkerReport};
use metrics::Clock;
use results::model::{Doubt, DoubtKind};
use results::text::seconds_text;
use settings::{Settings, Stop};

use crate::run::FlowEnd;

/// A window whose length differs from the requested one by more than this part is reported.
const LENGTH_MATTERS: f64 = 0.02;

/// An edge is missed if a worker did not look at its CQs for this part of the window across it: its backlog may have
/// been counted on the wrong side, and on a software device also what the others sent.
const EDGE_MATTERS: f64 = 0.01;

/// A worker of a closed loop that was away for this part of its window is reported: at least so much of what it had done is
/// missing.
const AWAY_MATTERS: f64 = 0.02;

/// The windows of an end's workers, in the order of the workers.
pub struct Windows {
    /// Length of each window; `None` for a worker without one.
    lengths_seconds: Vec<Option<f64>>,
    doubts: Vec<Doubt>,
}

impl Windows {
    /// The windows of a run that is over. In a run with a message count all workers have one window, from the start
    /// of the first to the last completion, because they end with their messages.
    pub fn new(flow: &Settings, end: &FlowEnd, clock: &Clock) -> Windows {
        let seconds = |start, end| clock.ns_between(start, end) as f64 * 1e-9;
        let workers = &end.reports;
        let is_embedded = end.objects.port().embedded.is_some();
        // An open loop's own figures tell what its workers missed. The embedded device's worker does the device's work too, on
        // cores that it mostly shares: it is away so often that no figure would be left.
        let away = (flow.is_closed_loop() && !is_embedded).then(|| away_doubt(workers, clock));
        let mut windows = match flow.stop() {
            Stop::DurationNs(asked_ns) => {
                let lengths_seconds: Vec<_> = workers
                    .iter()
                    .map(|worker| worker.window_raw.map(|(start, end)| seconds(start, end)))
                    .collect();
                let unattended = [0, 1].map(|edge: usize| {
                    workers
                        .iter()
                        .map(|worker| seconds(0, worker.unattended_raw[edge]))
                        .fold(0.0, f64::max)
                });
                // A window that ends with something else has no requested length.
                let doubts = if end.shared.edges() == WindowEdges::OF_PHASE || workers.is_empty() {
                    Vec::new()
                } else {
                    doubts(asked_ns as f64 * 1e-9, &lengths_seconds, unattended)
                };
                Windows { lengths_seconds, doubts }
            }
            Stop::MessagesPerQp(_) => {
                let common = workers
                    .iter()
                    .filter_map(|worker| worker.window_raw)
                    .reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)))
                    .map(|(start, end)| seconds(start, end));
                Windows { lengths_seconds: vec![common; workers.len()], doubts: Vec::new() }
            }
        };
        windows.doubts.extend(away.flatten());
        windows
    }

    /// Length of one worker's window, in seconds.
    pub fn of_worker(&self, worker: usize) -> Option<f64> {
        self.lengths_seconds.get(worker).copied().flatten()
    }

    /// The time by which to divide the sum of `counts` (one per worker) so that each worker's count is divided by its
    /// own window and the rates are added. The mean window if nothing was counted.
    pub fn seconds_for(&self, counts: impl IntoIterator<Item = u64>) -> f64 {
        let (mut sum, mut per_second) = (0.0, 0.0);
        for (count, seconds) in counts.into_iter().zip(&self.lengths_seconds) {
            if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
                sum += count as f64;
                per_second += count as f64 / seconds;
            }
        }
        if per_second > 0.0 {
            return sum / per_second;
        }
        let known: Vec<f64> = self.lengths_seconds.iter().flatten().copied().collect();
        match known.len() {
            0 => 0.0,
            count => known.iter().sum::<f64>() / count as f64,
        }
    }

    /// The reasons to doubt the figures.
    pub fn into_doubts(self) -> Vec<Doubt> {
        self.doubts
    }
}

/// For how long a worker was away within its window: no longer than its thread was off its core. A pass that takes so long,
/// as on a software device, is work. `None` without a window.
pub(crate) fn away_seconds(worker: &WorkerReport, clock: &Clock) -> Option<f64> {
    let off_core = own_seconds(worker, clock)? - worker.cpu_seconds;
    let away = clock.ns_between(0, worker.away_raw) as f64 * 1e-9;
    Some(away.min(off_core.max(0.0)))
}

/// The part of their windows for which workers were away.
pub(crate) fn away_part(workers: &[WorkerReport], clock: &Clock) -> f64 {
    let own: f64 = workers.iter().filter_map(|worker| own_seconds(worker, clock)).sum();
    let away: f64 = workers.iter().filter_map(|worker| away_seconds(worker, clock)).sum();
    if own == 0.0 { 0.0 } else { away / own }
}

fn own_seconds(worker: &WorkerReport, clock: &Clock) -> Option<f64> {
    let (start_raw, end_raw) = worker.window_raw?;
    Some(clock.ns_between(start_raw, end_raw) as f64 * 1e-9)
}

/// The worker that was away for the largest part of its window, if that matters.
fn away_doubt(workers: &[WorkerReport], clock: &Clock) -> Option<Doubt> {
    let away = workers.iter().filter_map(|worker| {
        let (away, seconds) = (away_seconds(worker, clock)?, own_seconds(worker, clock)?);
        (away > 0.0).then_some((worker.index, away, seconds))
    });
    let (worker, away, seconds) = away.max_by(|a, b| (a.1 / a.2).total_cmp(&(b.1 / b.2)))?;
    (away >= AWAY_MATTERS * seconds).then(|| Doubt {
        kind: DoubtKind::WorkerAway,
        message: format!(
            "worker {worker} did not look at its CQs for {:.1} ms of {seconds:.3} s",
            away * 1e3
        ),
    })
}

fn doubts(
    asked_seconds: f64,
    lengths_seconds: &[Option<f64>],
    unattended_seconds: [f64; 2],
) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let off = |seconds: f64| (seconds / asked_seconds - 1.0).abs();
    let worst = lengths_seconds
        .iter()
        .map(|seconds| seconds.unwrap_or(0.0))
        .enumerate()
        .max_by(|a, b| off(a.1).total_cmp(&off(b.1)));
    if let Some((worker, seconds)) = worst
        && off(seconds) >= LENGTH_MATTERS
    {
        doubts.push(Doubt {
            kind: DoubtKind::WindowLength,
            message: format!(
                "worker {worker} measured {seconds:.3} s instead of the requested {}",
                seconds_text(asked_seconds)
            ),
        });
    }
    for (edge, seconds) in ["start", "end"].into_iter().zip(unattended_seconds) {
        if seconds >= EDGE_MATTERS * asked_seconds {
            doubts.push(Doubt {
                kind: DoubtKind::EdgeMissed,
                message: format!(
                    "a worker did not look at its CQs for {:.1} ms over the {edge} of the window",
                    seconds * 1e3
                ),
            });
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(lengths: &[Option<f64>], late: f64, early: f64) -> Vec<DoubtKind> {
        let found = doubts(1.0, lengths, [late, early]);
        found.iter().map(|doubt| doubt.kind).collect()
    }

    #[test]
    fn each_count_is_divided_by_its_own_window_and_rates_are_added() {
        let windows = |lengths_seconds| Windows { lengths_seconds, doubts: Vec::new() };
        let none = windows(Vec::new());
        let windows = windows(vec![Some(1.0), Some(0.5), None]);
        let seconds = windows.seconds_for([100, 50, 0]);
        assert!((150.0 / seconds - 200.0).abs() < 1e-9, "{seconds}");
        assert!((windows.seconds_for([0, 50, 0]) - 0.5).abs() < 1e-12);
        assert!((windows.seconds_for([0, 0, 0]) - 0.75).abs() < 1e-12);
        assert!(none.seconds_for([]).abs() < 1e-12);
    }

    #[test]
    fn a_window_off_by_2_percent_or_an_edge_without_a_worker_is_said() {
        assert_eq!(kinds(&[Some(0.985), Some(1.0)], 0.0, 0.009), []);
        let length = [DoubtKind::WindowLength];
        for lengths in [&[Some(1.0), Some(0.98)][..], &[Some(1.03)], &[None]] {
            assert_eq!(kinds(lengths, 0.0, 0.0), length);
        }
        let both_edges = [DoubtKind::EdgeMissed; 2];
        assert_eq!(kinds(&[Some(0.985)], 0.012, 0.011), both_edges);
    }
}
