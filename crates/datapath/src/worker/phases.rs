//! What a worker does when a phase begins, and its report at the end.

use std::sync::atomic::Ordering::Release;

use super::super::report::{QpReport, WorkerReport};
use super::super::shared::Phase;
use super::{Mode, Tally, Worker, feed};
use metrics::histogram::Samples;
use settings::Stop;

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Enters a phase.
    pub(super) fn enter(&mut self, phase: Phase) {
        let counted = matches!(self.shared.flow.stop(), Stop::MessagesPerQp(_));
        // The controlling thread may set the next phase before it sees that the run failed in this one. Posting again
        // would then find full queues, and a refused post would hide the cause.
        let failed = self.shared.has_failed();
        let mut is_finishing = false;
        match phase {
            Phase::Idle => {}
            Phase::Warmup => {
                if !failed {
                    self.mode = Mode::Run;
                    self.fill();
                }
                // Filling the queues is not part of the steady state.
                self.attend_from_now();
            }
            Phase::Measure => {
                if counted {
                    self.expect_window();
                }
                let mode = if counted { Mode::Budget } else { Mode::Run };
                if failed {
                    self.mode = Mode::Silent;
                } else if self.mode != mode {
                    self.mode = mode;
                    self.fill();
                }
                if !counted {
                    self.expect_window();
                }
            }
            Phase::Drain => {
                self.end_window(counted);
                self.mode = if failed { Mode::Silent } else { Mode::Close };
                if FEED == feed::PLANNED && !failed {
                    is_finishing = self.end_schedule();
                }
            }
            Phase::Abort | Phase::Exit => {
                self.end_window(counted);
                self.mode = Mode::Silent;
                if FEED == feed::PLANNED {
                    self.end_schedule();
                    self.give_up(self.shared.clock.raw());
                }
            }
        }
        self.publish();
        if !is_finishing {
            self.has_entered(phase);
        }
    }

    /// Tells that it has entered a phase, after its counts were published.
    pub(super) fn has_entered(&self, phase: Phase) {
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.entered.store(phase as u32, Release);
        }
    }

    /// Closes a window that has no end instant: that of a `counted` run ends with its last completion, any other with
    /// the last look at the CQs.
    fn end_window(&mut self, counted: bool) {
        if self.window.is_watched() {
            self.close_window(if counted {
                self.last_seen_raw
            } else {
                self.window.attended_raw
            });
        }
    }

    pub(in super::super) fn into_report(mut self) -> WorkerReport {
        for (qp, messages) in self.paced.posted() {
            if let Some(worker_qp) = self.worker_qps.get_mut(qp) {
                worker_qp.tally.posted += messages;
            }
        }
        let clock = &self.shared.clock;
        let load =
            (FEED == feed::PLANNED).then(|| self.paced.into_report(|raw| clock.ns_between(0, raw)));
        let size_bytes = u64::from(self.shared.flow.size_bytes);
        let bytes = |messages: u64, counted: u64| match self.is_mixed {
            true => counted,
            false => messages * size_bytes,
        };
        let qps = self
            .worker_qps
            .into_iter()
            .enumerate()
            .map(|(qp, worker_qp)| {
                let at = |tallies: &[Tally]| tallies.get(qp).copied().unwrap_or_default();
                let (start, end, now) = (at(&self.at_start), at(&self.at_end), worker_qp.tally);
                let (completed, received) = (
                    end.completed.saturating_sub(start.completed),
                    end.received.saturating_sub(start.received),
                );
                QpReport {
                    completed_before: start.completed,
                    completed,
                    completed_bytes: bytes(
                        completed,
                        end.completed_bytes.saturating_sub(start.completed_bytes),
                    ),
                    received,
                    received_bytes: bytes(
                        received,
                        end.received_bytes.saturating_sub(start.received_bytes),
                    ),
                    swaps_made: end.swaps_made.saturating_sub(start.swaps_made),
                    posted_in_all: now.posted,
                    received_in_all: now.received,
                    latency: worker_qp.samples.map(Samples::into_recorder),
                }
            })
            .collect();
        WorkerReport {
            index: self.place.worker,
            thread: self.place.thread,
            core: self.place.core,
            window_raw: self.window.start_raw.zip(self.window.end_raw),
            unattended_raw: self.window.unattended_raw,
            away_raw: self.window.away_raw,
            cpu_seconds: self.window.cpu_seconds,
            polls: self.window.polls,
            empty_polls: self.window.empty_polls,
            blocked: self.window.blocked,
            qps,
            notices: self.stamps.map(|stamps| stamps.into_notices()),
            load,
            trouble: self.trouble,
        }
    }
}
