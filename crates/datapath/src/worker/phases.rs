//! What a worker does when a phase begins, and its report at the end.

use std::sync::atomic::Ordering::Release;

use super::super::report::WorkerReport;
use super::super::shared::Phase;
use super::{Mode, Worker, feed};
use settings::Stop;

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
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
                self.window.seen_raw
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
        let equal_bytes = (!self.facts.is_mixed).then(|| u64::from(self.shared.flow.size_bytes));
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
            qps: self.worker_qps.into_reports(equal_bytes),
            notices: self.stamps.map(|stamps| stamps.into_notices()),
            load,
            trouble: self.trouble,
        }
    }
}
