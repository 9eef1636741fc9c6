//! The QPs on which a worker posts in an open loop: whose message is next, what is counted of each, and the window's
//! range of planned times.

use std::ops::Range;
use std::sync::atomic::Ordering::Acquire;

use metrics::latency::{SampleCounters, Samples};

use super::window::{NEVER, away_after_raw};
use crate::schedule::{Earliest, GapSampler, Schedule};
use crate::{QpContext, Sender, Shared, WindowEdges, WorkerLoad};

/// The longest that a pass posts, so that completions are seen in time.
const LONGEST_NS: u64 = 2_000;

/// Above this many messages a second of a worker the times of a random sample are recorded: three histograms of every
/// message would take a third of the time that there is.
const SAMPLED_ABOVE: f64 = 2e6;

/// The most messages a second of such a sample; it has at least half as many.
const MOST_SAMPLED: f64 = 1e6;

/// A sleeping thread wakes so long before the next planned time: what a timer may be late.
const WAKE_EARLY_NS: u64 = 100_000;

/// An open loop's state in one worker; empty in a closed loop.
#[derive(Default)]
pub(super) struct PlannedQps<'s> {
    /// Those QPs on which this worker posts.
    pub(super) own: Box<[PlannedQp<'s>]>,
    /// The next planned time of each of them that does not wait for room.
    pub(super) next: Earliest,
    /// QPs with a backlog, whose queue was full at the last look.
    pub(super) full: Vec<u32>,
    /// The next of them to look at.
    pub(super) look_at: usize,
    /// For each QP of the run: from post to completion seen.
    pub(super) service: Box<[Option<Samples>]>,
    /// Planned times in this range are of the window.
    pub(super) from_raw: u64,
    pub(super) until_raw: u64,
    /// No message is planned from here on.
    pub(super) last_raw: u64,
    /// When the flow is on again; never where it is on.
    pub(super) begins_raw: u64,
    /// While the backlog of a closed window is posted: when that is given up.
    pub(super) give_up_raw: Option<u64>,
    pub(super) gaps: GapSampler,
    pub(super) sampling: Sampling,
    pub(super) longest_raw: u64,
    /// A full queue that nobody looked at for longer was left alone.
    pub(super) away_after_raw: u64,
    /// When it last woke up: who sleeps is not away.
    pub(super) woke_raw: u64,
    pub(super) wake_early_raw: u64,
    /// Other workers may poll its completions.
    pub(super) is_shared: bool,
}

/// The messages whose times are recorded.
#[derive(Default)]
pub(super) struct Sampling {
    /// One in so many messages is recorded, by chance; `None` for all of them.
    chance: Option<(u64, fastrand::Rng)>,
}

impl Sampling {
    fn new(messages_per_second: f64, seed: u64) -> Sampling {
        let is_sampled = messages_per_second > SAMPLED_ABOVE;
        // A float beyond the range becomes its end.
        let one_in = ((messages_per_second / MOST_SAMPLED).ceil() as u32).next_power_of_two();
        Sampling { chance: is_sampled.then(|| (one_in.into(), fastrand::Rng::with_seed(seed))) }
    }

    fn one_in(&self) -> u64 {
        self.chance.as_ref().map_or(1, |(one_in, _)| *one_in)
    }

    /// Messages that are left out before the next one that is recorded: with uniform numbers from 0, of the mean that
    /// makes one in so many.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        match &mut self.chance {
            Some((one_in, chance)) => chance.u64(..2 * *one_in - 1),
            None => 0,
        }
    }
}

pub(super) struct PlannedQp<'s> {
    pub(super) qp: usize,
    pub(super) qp_context: &'s QpContext,
    pub(super) sender: &'s Sender,
    pub(super) posted: u64,
    pub(super) schedule: Schedule,
    /// The slot of its next message.
    pub(super) slot: u32,
    /// When its backlog began; `None` without one.
    pub(super) backlog_raw: Option<u64>,
    /// Messages until the next whose times are recorded.
    pub(super) sample_in: u64,
    /// Since when its queue has been full, and when the last look found it so.
    pub(super) full_raw: u64,
    pub(super) looked_raw: u64,
    /// When the last time in the window for which it counts as full ended: what was planned before waited for room.
    pub(super) full_until_raw: u64,
    /// When the worker was away while messages waited, and the queue had room when it came back. Several such times of one
    /// backlog are one, that ends with the last.
    pub(super) away_raw: Range<u64>,
    pub(super) offered: u64,
    pub(super) never_sent: u64,
    pub(super) queue_full_messages: u64,
    pub(super) queue_full_raw: u64,
    pub(super) late_with_room: u64,
    pub(super) lateness: Samples,
}

impl PlannedQp<'_> {
    fn queue_has_room(&self) -> bool {
        let next = self.sender.planned.get(self.slot as usize);
        next.is_some_and(|planned| planned.planned_raw.load(Acquire) == 0)
    }

    /// Counts messages of the window that were posted together, of which some `waited` for room.
    #[inline]
    pub(super) fn count(
        &mut self,
        (messages, waited): (u64, u64),
        posted_raw: u64,
        until_raw: u64,
        gaps: &mut GapSampler,
    ) {
        self.offered += messages;
        self.queue_full_messages += waited;
        if posted_raw >= until_raw {
            self.late_with_room += messages - waited;
        }
        if self.backlog_raw.is_some() {
            gaps.interrupt();
        } else if messages > 0 {
            gaps.posted(posted_raw, messages);
        }
    }
}

impl<'s> PlannedQps<'s> {
    /// Memory for each QP of the run besides its histograms, in bytes.
    pub(super) const BYTES_PER_QP: usize = size_of::<PlannedQp<'static>>()
        + Earliest::BYTES_PER_PLACE
        + size_of::<u32>()
        + size_of::<Option<Samples>>();

    /// The open loop of a worker that posts on the QPs `mine`; with `is_shared` it may see completions of all QPs.
    pub(super) fn new(shared: &'s Shared, mine: &[usize], is_shared: bool) -> PlannedQps<'s> {
        let (flow, clock) = (&shared.flow, &shared.clock);
        // A share is turned into messages a second before a node is told of it.
        let rate = flow.rate.messages_per_second(flow.mean_bytes()).unwrap_or(1.0);
        let qps = shared.qp_contexts.len();
        let ticks_per_second = clock.raw_after(0, 1_000_000_000) as f64;
        let mean_gap_raw = ticks_per_second / rate * qps.max(1) as f64;
        let own_gap_raw = mean_gap_raw / mine.len().max(1) as f64;
        let served = if is_shared { qps } else { mine.len() };
        let counters = SampleCounters::new(shared.digits, mine.len() + served);
        PlannedQps {
            own: mine
                .iter()
                .filter_map(|&qp| {
                    let qp_context = shared.qp_contexts.get(qp)?;
                    Some((qp, qp_context, qp_context.sender.as_ref()?))
                })
                .map(|(qp, qp_context, sender)| PlannedQp {
                    qp,
                    qp_context,
                    sender,
                    posted: 0,
                    schedule: Schedule::new(
                        flow.arrivals,
                        mean_gap_raw,
                        shared.seed,
                        qp as u32,
                        qps as u32,
                    ),
                    slot: 0,
                    backlog_raw: None,
                    sample_in: 0,
                    full_raw: 0,
                    looked_raw: 0,
                    full_until_raw: 0,
                    away_raw: 0..0,
                    offered: 0,
                    never_sent: 0,
                    queue_full_messages: 0,
                    queue_full_raw: 0,
                    late_with_room: 0,
                    lateness: counters.recorder(),
                })
                .collect(),
            next: Earliest::new(mine.len()),
            full: Vec::with_capacity(mine.len()),
            service: (0..qps)
                .map(|qp| is_shared || mine.binary_search(&qp).is_ok())
                .map(|is_served| is_served.then(|| counters.recorder()))
                .collect(),
            from_raw: NEVER,
            last_raw: NEVER,
            begins_raw: NEVER,
            gaps: GapSampler::new(flow.arrivals, own_gap_raw, clock, shared.seed),
            sampling: Sampling::new(ticks_per_second / own_gap_raw, shared.seed),
            longest_raw: clock.raw_after(0, LONGEST_NS),
            away_after_raw: away_after_raw(clock, flow.stop()),
            wake_early_raw: clock.raw_after(0, WAKE_EARLY_NS),
            is_shared,
            ..PlannedQps::default()
        }
    }

    /// Begins to plan, also anew.
    pub(super) fn start(&mut self, start_raw: u64) {
        self.gaps.interrupt();
        for (own, planned_qp) in (0..).zip(&mut self.own) {
            (planned_qp.backlog_raw, planned_qp.away_raw) = (None, 0..0);
            planned_qp.schedule.start(start_raw);
            self.next.set(own, planned_qp.schedule.next_raw());
        }
    }

    pub(super) fn expect_window(&mut self, edges: WindowEdges, now_raw: u64) {
        self.from_raw = match edges {
            WindowEdges::OF_PHASE => now_raw,
            edges => edges.opens_raw,
        };
        self.until_raw = edges.closes_raw;
    }

    /// Messages posted on each QP.
    pub(super) fn posted(&self) -> impl Iterator<Item = (usize, u64)> {
        self.own.iter().map(|planned_qp| (planned_qp.qp, planned_qp.posted))
    }

    /// The queue of this QP is full.
    pub(super) fn wait_for_room(&mut self, own: u32, now_raw: u64) {
        self.next.set(own, NEVER);
        self.full.push(own);
        if let Some(planned_qp) = self.own.get_mut(own as usize) {
            planned_qp.full_raw = now_raw;
            planned_qp.looked_raw = now_raw;
            planned_qp.backlog_raw.get_or_insert(now_raw);
        }
    }

    /// Looks at a QP whose queue was full. If nobody has done so for long and there is room, that may have come at once after
    /// the last look: since then the queue does not count as full, and what waits is late.
    pub(super) fn look_at(&mut self, own: u32, now_raw: u64) {
        let away_after_raw = self.away_after_raw;
        let Some(planned_qp) = self.own.get_mut(own as usize) else {
            return;
        };
        let looked_raw = std::mem::replace(&mut planned_qp.looked_raw, now_raw).max(self.woke_raw);
        let away_raw = now_raw.saturating_sub(looked_raw);
        let full_until_raw = if away_raw > away_after_raw && planned_qp.queue_has_room() {
            let before_raw = planned_qp.away_raw.end - planned_qp.away_raw.start;
            planned_qp.away_raw = now_raw.saturating_sub(before_raw + away_raw)..now_raw;
            looked_raw
        } else {
            now_raw
        };
        self.count_full(own, full_until_raw);
        if let Some(counted_qp) = self.own.get_mut(own as usize) {
            counted_qp.full_raw = now_raw;
        }
    }

    /// The QP at this place of `full` has room, and its next message is planned at `planned_raw`.
    pub(super) fn has_room(&mut self, place: usize, planned_raw: u64, now_raw: u64) {
        let own = self.full.swap_remove(place);
        self.count_full(own, now_raw);
        self.next.set(own, planned_raw);
    }

    /// Counts for how long the queue of a QP was full in the window, until now.
    pub(super) fn count_full(&mut self, own: u32, now_raw: u64) {
        if let Some(planned_qp) = self.own.get_mut(own as usize) {
            let (began_raw, end_raw) =
                (planned_qp.full_raw.max(self.from_raw), now_raw.min(self.until_raw));
            if end_raw > began_raw {
                planned_qp.queue_full_raw += end_raw - began_raw;
                planned_qp.full_until_raw = end_raw;
            }
        }
    }

    /// When a sleeping thread must be awake, if no completion wakes it.
    pub(super) fn wake_raw(&self) -> u64 {
        if self.give_up_raw.is_some() || self.is_shared && !self.full.is_empty() {
            return 0;
        }
        let next_raw = self.next.first().time;
        let planned_raw = if next_raw < self.last_raw { next_raw } else { NEVER };
        match planned_raw.min(self.begins_raw) {
            NEVER => NEVER,
            due_raw => due_raw.saturating_sub(self.wake_early_raw),
        }
    }

    /// Whether a message planned before `last_raw` is not posted.
    pub(super) fn has_backlog(&self) -> bool {
        !self.full.is_empty() || self.next.first().time < self.last_raw
    }

    /// What it came to, and the service times of each QP.
    pub(super) fn into_report(self, clock_ns: impl Fn(u64) -> u64) -> WorkerLoad {
        let own = &self.own;
        WorkerLoad {
            offered: own.iter().map(|planned_qp| planned_qp.offered).sum(),
            never_sent: own.iter().map(|planned_qp| planned_qp.never_sent).sum(),
            queue_full_messages: own.iter().map(|planned_qp| planned_qp.queue_full_messages).sum(),
            queue_full_ns: clock_ns(own.iter().map(|planned_qp| planned_qp.queue_full_raw).sum()),
            late_with_room: own.iter().map(|planned_qp| planned_qp.late_with_room).sum(),
            recorded_one_in: self.sampling.one_in(),
            gaps: self.gaps.into_samples(),
            service: self.service.into(),
            lateness: (self.own.into_iter())
                .map(|planned_qp| (planned_qp.qp, planned_qp.lateness))
                .collect(),
        }
    }
}
