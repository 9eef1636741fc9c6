//! The worker's phases: what each one makes it do, the measurement window, and the report at the end.

use std::sync::atomic::Ordering::Release;

use super::super::report::{QpReport, WorkerReport};
use super::super::shared::Phase;
use super::{Mode, Tally, Worker};
use crate::metrics::cpu;
use crate::metrics::histogram::Samples;
use crate::plan::Stop;

/// Readings taken when the window opens and closes.
#[derive(Clone, Copy, Default)]
pub(super) struct WindowMarks {
    start_raw: Option<u64>,
    end_raw: Option<u64>,
    cpu_seconds: f64,
    polls: u64,
    empty_polls: u64,
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const SLEEPS: bool>
    Worker<'_, VERIFY, LATENCY, CONTENDED, SLEEPS>
{
    /// Takes up a phase.
    pub(super) fn enter(&mut self, phase: Phase) {
        let counted = matches!(self.shared.case.stop, Stop::MessagesPerQp(_));
        // A session may set the next phase before it sees that the run failed in this one. Posting again
        // would then meet full queues, and hide the cause behind a refused post.
        let failed = self.shared.has_failed();
        match phase {
            Phase::Idle => {}
            Phase::Warmup => {
                if !failed {
                    self.mode = Mode::Run;
                    self.fill();
                }
            }
            Phase::Measure => {
                if counted {
                    self.open_window();
                }
                let mode = if counted { Mode::Budget } else { Mode::Run };
                if failed {
                    self.mode = Mode::Silent;
                } else if self.mode != mode {
                    self.mode = mode;
                    self.fill();
                }
                // A run by time without warm-up: filling the queues is not yet the steady state.
                if !counted {
                    self.open_window();
                }
            }
            Phase::Drain => {
                self.close_window(counted);
                self.mode = if failed { Mode::Silent } else { Mode::Close };
            }
            Phase::Abort | Phase::Exit => {
                self.close_window(counted);
                self.mode = Mode::Silent;
            }
        }
        self.publish();
        if let Some(counters) = self.shared.counters(self.spec.index) {
            counters.entered.store(phase as u32, Release);
        }
    }

    pub(super) fn open_window(&mut self) {
        for (at_start, seat) in self.at_start.iter_mut().zip(&self.seats) {
            *at_start = seat.tally;
        }
        self.window = WindowMarks {
            cpu_seconds: cpu::thread_seconds(),
            polls: self.polls,
            empty_polls: self.empty_polls,
            ..WindowMarks::default()
        };
        self.measuring = true;
        let now_raw = self.shared.clock.raw();
        self.last_seen_raw = now_raw;
        self.window.start_raw = Some(now_raw);
    }

    /// `counted` runs end with their last completion, others now.
    pub(super) fn close_window(&mut self, counted: bool) {
        if !self.measuring {
            return;
        }
        self.measuring = false;
        let end_raw = if counted {
            self.last_seen_raw
        } else {
            self.shared.clock.raw()
        };
        self.window.end_raw = Some(end_raw);
        self.window.cpu_seconds = cpu::thread_seconds() - self.window.cpu_seconds;
        self.window.polls = self.polls - self.window.polls;
        self.window.empty_polls = self.empty_polls - self.window.empty_polls;
        for (at_end, seat) in self.at_end.iter_mut().zip(&self.seats) {
            *at_end = seat.tally;
        }
    }

    pub(super) fn report(self) -> WorkerReport {
        let qps = self
            .seats
            .into_iter()
            .enumerate()
            .map(|(qp, seat)| {
                let at = |tallies: &[Tally]| tallies.get(qp).copied().unwrap_or_default();
                let (start, end, now) = (at(&self.at_start), at(&self.at_end), seat.tally);
                QpReport {
                    completed: end.completed.saturating_sub(start.completed),
                    received: end.received.saturating_sub(start.received),
                    posted_in_all: now.posted,
                    received_in_all: now.received,
                    latency: seat.samples.map(Samples::into_recorder),
                }
            })
            .collect();
        WorkerReport {
            index: self.spec.index,
            core: self.spec.core,
            window_raw: self.window.start_raw.zip(self.window.end_raw),
            cpu_seconds: self.window.cpu_seconds,
            polls: self.window.polls,
            empty_polls: self.window.empty_polls,
            qps,
            trouble: self.trouble,
        }
    }
}
