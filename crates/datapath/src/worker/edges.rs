//! When a worker's measurement window opens and closes, and which messages belong to it; and what else a phase begins.
//!
//! All workers know the instants of the edges ([`WindowEdges`]). If a worker is kept from its core over an edge, nobody can
//! tell on which side of the edge the completions belong that piled up meanwhile. A worker that was present opens and
//! closes its window at its last look before the edge, with its counts at that time. A worker that was absent over
//! the start opens it after taking what piled up; an open loop, which posts later what it missed, at its last look before.
//! Each worker's messages are divided by its own window, so that its rate is right whenever that opens and closes. What
//! others did without it is not: the coordinator doubts a flow whose workers, at both ends, had too little of their windows
//! together. The backlog of an absence may arrive for as long again as the absence lasted, so an absence that ended that
//! close to the opening counts as an absence over it. How long the worker was absent in its window is told too: who was
//! away for long saw less than there was to see.

use std::sync::atomic::Ordering::{Relaxed, Release};

use machine::threads;
use settings::Stop;

use super::window::{Absence, NEVER, WindowState};
use super::{Mode, Worker, feed};
use crate::{Phase, WindowEdges, WorkerReport};

/// A window that is still not open after this part of it opens regardless.
const GIVE_UP_PARTS: u64 = 50;

impl<'s, const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const FEED: u8>
    Worker<'s, VERIFY, LATENCY, CONTENDED, FEED>
{
    /// Counts the CQs as attended from now; the time before is no absence.
    pub(super) fn attend_from_now(&mut self) {
        self.window.attended_raw = self.shared.clock.raw();
        self.window.absence = Absence::default();
    }

    /// Prepares for the window whose edges are set.
    pub(super) fn expect_window(&mut self) {
        let edges = self.shared.edges();
        self.window.edges = edges;
        self.window.seen_raw = self.shared.clock.raw();
        if FEED == feed::PLANNED {
            self.paced.expect_window(edges, self.window.seen_raw);
        }
        self.expect_pauses(match edges {
            WindowEdges::OF_PHASE => self.window.seen_raw,
            edges => edges.opens_raw,
        });
        if edges == WindowEdges::OF_PHASE {
            self.window.attended_raw = self.window.seen_raw;
            self.open_window();
            return;
        }
        let length_raw = edges.closes_raw.saturating_sub(edges.opens_raw);
        self.window.give_up_raw = edges.opens_raw + length_raw / GIVE_UP_PARTS;
        self.window.state = WindowState::Ahead;
        self.window.set_edge(edges.opens_raw);
    }

    /// Called after a pass that found nothing.
    #[inline]
    pub(super) fn attend(&mut self) {
        let now_raw = self.shared.clock.raw();
        self.look(now_raw);
        self.found_nothing(now_raw);
    }

    /// Called after a look at this time that found nothing.
    #[inline]
    pub(super) fn found_nothing(&mut self, now_raw: u64) {
        if now_raw.saturating_sub(self.window.seen_raw) > self.window.longest_stall_raw {
            self.stands_still(now_raw);
        }
    }

    /// Keeps the time since the last completion, if it is the longest in the window.
    #[cold]
    fn stands_still(&mut self, now_raw: u64) {
        let Some(start_raw) =
            self.window.start_raw.filter(|_| self.window.state == WindowState::Open)
        else {
            return;
        };
        let from_raw = self.window.seen_raw.max(start_raw);
        let length_raw = now_raw.saturating_sub(from_raw);
        if length_raw > self.window.longest_stall_raw {
            self.window.longest_stall_raw = length_raw;
            self.window.stall_raw = Some((from_raw, now_raw));
        }
    }

    /// Records a look at the CQs, before counting what it found.
    #[inline]
    pub(super) fn look(&mut self, now_raw: u64) {
        if now_raw.saturating_sub(self.window.attended_raw) > self.window.away_after_raw {
            self.was_away(now_raw);
        }
        if now_raw >= self.window.due_raw {
            self.is_due(now_raw);
        }
        self.window.attended_raw = now_raw;
    }

    /// An edge of the window has passed, or an instant at which the flow turns on or off.
    #[cold]
    fn is_due(&mut self, now_raw: u64) {
        if now_raw >= self.window.edge_raw {
            self.reach_edge(now_raw);
        }
        if now_raw >= self.window.turn_raw {
            self.turn(now_raw);
        }
    }

    #[cold]
    fn was_away(&mut self, now_raw: u64) {
        let absence = Absence { length_raw: now_raw - self.window.attended_raw, end_raw: now_raw };
        // A window that ends meanwhile ends at the last look, before this.
        if self.window.state == WindowState::Open && now_raw < self.window.edge_raw {
            self.window.away_raw += absence.length_raw;
            self.stands_still(now_raw);
        }
        if absence.length_raw > self.window.late_raw
            && absence.reach_raw() > self.window.absence.reach_raw()
        {
            self.window.absence = absence;
        }
    }

    /// How long the worker was absent over an edge; `looked_raw` is its last look.
    fn away_over(&self, edge_raw: u64, looked_raw: u64) -> u64 {
        let absence = self.window.absence;
        let before_raw = if absence.reach_raw() > edge_raw { absence.length_raw } else { 0 };
        before_raw.max(looked_raw.saturating_sub(edge_raw))
    }

    /// Called after a sleep. It counts as a look at the CQs, because a completion would have ended it.
    #[cold]
    pub(super) fn look_after_sleep(&mut self) {
        let now_raw = self.shared.clock.raw();
        self.paced.woke_raw = now_raw;
        if now_raw >= self.window.edge_raw {
            if now_raw - self.window.edge_raw <= self.window.late_raw {
                self.window.attended_raw = self.window.edge_raw;
            }
            self.look(now_raw);
        }
        self.stands_still(now_raw);
        self.window.attended_raw = now_raw;
    }

    /// Handles the next edge, which was passed at `now_raw`; the batch just polled is not counted yet.
    #[cold]
    pub(super) fn reach_edge(&mut self, now_raw: u64) {
        match self.window.state {
            WindowState::Ahead => {
                let opens_raw = self.window.edge_raw;
                let away_raw = if FEED == feed::PLANNED && self.window.absence.end_raw == now_raw {
                    0
                } else {
                    self.away_over(opens_raw, now_raw)
                };
                if away_raw <= self.window.late_raw {
                    self.window.unattended_raw[0] = away_raw;
                    // It begins at the last look, so that it has the time since.
                    let since_raw = now_raw - self.window.attended_raw;
                    if since_raw > self.window.away_after_raw {
                        self.window.away_raw = since_raw;
                    }
                    return self.open_window();
                }
                self.window.state = WindowState::CatchingUp;
                // Then nothing is left of the backlog.
                self.window.give_up_raw = self.window.give_up_raw.min(now_raw + away_raw);
                self.window.set_edge(NEVER);
                self.window.seen_before = self.counts.seen();
                // The current pass began before the edge.
                self.window.pass_was_full = true;
                self.window.pass_began_raw = now_raw;
            }
            WindowState::Open => {
                self.window.unattended_raw[1] = self.away_over(self.window.edge_raw, now_raw);
                self.close_window(self.window.attended_raw);
            }
            WindowState::None | WindowState::CatchingUp | WindowState::Closed => {
                self.window.set_edge(NEVER);
            }
        }
    }

    /// Called after each pass while catching up. Opens the window after a pass that emptied the CQs and took no
    /// longer than usual.
    #[cold]
    pub(super) fn after_pass_of_catching_up(&mut self) {
        let window = &mut self.window;
        let took_raw = window.attended_raw.saturating_sub(window.pass_began_raw);
        let was_full = std::mem::take(&mut window.pass_was_full);
        window.pass_began_raw = window.attended_raw;
        let seen = self.counts.seen() - window.seen_before;
        if (!was_full && took_raw <= window.late_raw)
            || seen > window.most_piled_up
            || window.attended_raw >= window.give_up_raw
        {
            let (opens_raw, start_raw) = (window.edges.opens_raw, window.attended_raw);
            self.window.unattended_raw[0] = self.away_over(opens_raw, start_raw);
            self.open_window();
        }
    }

    /// Opens the window at the last look at the CQs, with the counts so far.
    fn open_window(&mut self) {
        self.worker_qps.window_opens();
        let start_raw = self.window.attended_raw;
        self.window.state = WindowState::Open;
        self.window.set_edge(self.window.edges.closes_raw);
        self.window.record_until_raw = NEVER;
        self.window.start_raw = Some(start_raw);
        self.window.cpu_seconds = self.cpu_seconds();
        self.window.polls = self.counts.polls;
        self.window.empty_polls = self.counts.empty_polls;
        self.window.blocked = self.source.blocked();
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.completed_before.store(self.counts.completed, Relaxed);
            counters.opened_raw.store(start_raw.max(1), Release);
        }
    }

    /// CPU time of this thread; none in virtual time.
    fn cpu_seconds(&self) -> f64 {
        if self.shared.clock.is_virtual() { 0.0 } else { threads::thread_seconds() }
    }

    /// Closes the window with the counts so far, if it is open.
    pub(super) fn close_window(&mut self, end_raw: u64) {
        let was_open = self.window.state == WindowState::Open;
        self.window.set_turn(NEVER);
        self.window.state = WindowState::Closed;
        self.window.set_edge(NEVER);
        self.window.late_raw = NEVER;
        self.window.away_after_raw = NEVER;
        if was_open {
            // A message posted in the window belongs to its latencies even if it completes later.
            self.window.record_until_raw = end_raw;
            self.window.end_raw = Some(end_raw);
            self.window.cpu_seconds = self.cpu_seconds() - self.window.cpu_seconds;
            self.window.polls = self.counts.polls - self.window.polls;
            self.window.empty_polls = self.counts.empty_polls - self.window.empty_polls;
            self.window.blocked = self.source.blocked() - self.window.blocked;
            self.worker_qps.window_closes();
        }
        if let Some(counters) = self.shared.counters(self.place.worker) {
            counters.completed_by_end.store(self.counts.completed, Relaxed);
            counters.closed_raw.store(end_raw.max(1), Release);
        }
    }
}

// What a worker does when a phase begins, and its report at the end.

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
                } else if ![mode, Mode::Paused].contains(&self.mode) {
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
            Phase::Refill => self.refill(),
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
        self.window.set_turn(NEVER);
        if self.window.is_watched() {
            self.close_window(if counted {
                self.window.seen_raw
            } else {
                self.window.attended_raw
            });
        }
    }

    pub(in super::super) fn into_report(mut self) -> WorkerReport {
        let steps_ended = self.steps_ended();
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
            stall_raw: self.window.stall_raw,
            cpu_seconds: self.window.cpu_seconds,
            polls: self.window.polls,
            empty_polls: self.window.empty_polls,
            blocked: self.window.blocked,
            qps: self.worker_qps.into_reports(equal_bytes),
            notices: self.stamps.map(|stamps| stamps.into_notices()),
            load,
            steps: self.steps.into_report(steps_ended),
            trouble: self.trouble,
        }
    }
}
