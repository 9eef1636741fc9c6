//! A worker as one source of work requests for its QPs (`--spread`): how many are in flight over all of them, and on
//! which QP the next is posted. It posts slots, and knows neither verbs nor what is in them.
//!
//! A QP's slots are posted and complete in order, so that its free slots are two counters. A policy that has chosen a
//! QP whose queue is full waits for that QP, and all that comes after waits behind it.
//!
//! The turns of a ping-pong's QPs are here too.

use settings::{Settings, SmoothTurns, Spread};

use super::window::NEVER;
use crate::layout::Numbered;
use crate::operation::mix;
use crate::{Geometry, Shared};

/// The source of one worker; empty where each QP is its own.
#[derive(Default)]
pub(super) struct Source {
    policy: Policy,
    /// All QPs of the run, by index.
    queues: Box<[Queue]>,
    /// Slots that may be posted now.
    credits: u64,
    /// Slots that are still to be posted, the tail among them.
    left: u64,
    /// The last of them is not a whole slot.
    ends_in_tail: bool,
    /// The QP of the next slot, once it is chosen.
    chosen: Option<usize>,
    blocked: u64,
}

/// The send queue of a QP, in slots.
#[derive(Clone, Copy, Default)]
struct Queue {
    slots: u32,
    next: u32,
    in_flight: u32,
}

#[derive(Default)]
enum Policy {
    #[default]
    None,
    /// Groups by weight, and in each group its QPs in turn.
    Turns {
        groups: SmoothTurns,
        members: Box<[Group]>,
    },
    LeastLoaded(Loads),
    /// By the number of the message, counted from 0.
    Hash {
        qps: Box<[usize]>,
        seed: u64,
        number: u64,
    },
}

struct Group {
    qps: Box<[usize]>,
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextSlot {
    pub(super) qp: usize,
    pub(super) slot: u32,
    /// Only the tail of a run with a message count is to be posted, from the slot's first position.
    pub(super) is_tail: bool,
}

impl Source {
    /// Memory for each QP of the run, in bytes.
    pub(super) const BYTES_PER_QP: usize =
        size_of::<Queue>() + size_of::<usize>() + Loads::BYTES_PER_QP;

    /// The source of the worker `worker`, which posts on the QPs `mine` of `qps`.
    pub(super) fn new(
        flow: &Settings,
        geometry: &Geometry,
        qps: usize,
        worker: usize,
        mine: &[usize],
    ) -> Source {
        if flow.spread == Spread::Own || mine.is_empty() {
            return Source::default();
        }
        let mut queues = vec![Queue::default(); qps];
        for &qp in mine {
            if let Some(queue) = queues.get_mut(qp) {
                queue.slots = geometry.slots;
            }
        }
        let slots = u64::from(geometry.slots) * mine.len() as u64;
        let credits = match flow.outstanding {
            Some(wrs) => u64::from(wrs / geometry.unit),
            None => slots / 2,
        };
        Source {
            policy: Policy::new(flow, &queues, worker, mine),
            queues: queues.into(),
            credits: credits.clamp(1, slots),
            ..Source::default()
        }
    }

    /// How often the next slot found the queue of its QP full.
    pub(super) fn blocked(&self) -> u64 {
        self.blocked
    }

    /// Sets how many slots are posted from now on; with `ends_in_tail` the last is not whole.
    pub(super) fn allow(&mut self, slots: u64, ends_in_tail: bool) {
        self.left = slots;
        self.ends_in_tail = ends_in_tail;
    }

    /// The slot to post now, which is then in flight; `None` until one more has completed.
    #[inline]
    pub(super) fn next_slot(&mut self) -> Option<NextSlot> {
        if self.credits == 0 || self.left == 0 {
            return None;
        }
        let is_new = self.chosen.is_none();
        let qp = self.chosen.take().or_else(|| self.policy.choose())?;
        let queue = self.queues.get_mut(qp)?;
        if queue.in_flight == queue.slots {
            self.blocked += u64::from(is_new);
            self.chosen = Some(qp);
            return None;
        }
        let slot = queue.next;
        queue.next = if slot + 1 == queue.slots { 0 } else { slot + 1 };
        queue.in_flight += 1;
        self.policy.loaded(qp, queue.in_flight - 1, queue.in_flight);
        self.credits -= 1;
        self.left -= 1;
        Some(NextSlot { qp, slot, is_tail: self.ends_in_tail && self.left == 0 })
    }

    #[inline]
    pub(super) fn completed(&mut self, qp: usize) {
        let Some(queue) = self.queues.get_mut(qp) else {
            return;
        };
        if queue.in_flight > 0 {
            queue.in_flight -= 1;
            self.credits += 1;
            self.policy.loaded(qp, queue.in_flight + 1, queue.in_flight);
        }
    }
}

impl Policy {
    fn new(flow: &Settings, queues: &[Queue], worker: usize, mine: &[usize]) -> Policy {
        match flow.spread {
            Spread::Own => Policy::None,
            Spread::RoundRobin => Policy::turns(flow, mine),
            Spread::LeastLoaded => Policy::LeastLoaded(Loads::new(queues, mine)),
            Spread::Hash => Policy::Hash { qps: mine.into(), seed: worker as u64, number: 0 },
        }
    }

    /// A worker has its part of each group, and the group's share in proportion.
    fn turns(flow: &Settings, mine: &[usize]) -> Policy {
        let whole = [(flow.qps, 1)];
        let groups: Vec<(u32, u32)> = match &flow.qp_weights {
            Some(weights) => weights.groups().collect(),
            None => whole.into(),
        };
        let (mut first, mut shares, mut members) = (0, Vec::new(), Vec::new());
        for (count, share) in groups {
            let end = first + count as usize;
            let qps: Box<[usize]> =
                (mine.iter().copied()).filter(|qp| (first..end).contains(qp)).collect();
            first = end;
            if !qps.is_empty() {
                // Exact where the worker has the whole group. At most 2^20, 2^16 and 2^20, of 16 groups.
                shares.push((i64::from(share) * qps.len() as i64 * (1 << 20)) / i64::from(count));
                members.push(Group { qps, next: 0 });
            }
        }
        Policy::Turns { groups: SmoothTurns::new(shares), members: members.into() }
    }

    #[inline]
    fn choose(&mut self) -> Option<usize> {
        match self {
            Policy::None => None,
            Policy::Turns { groups, members } => {
                let group = match members.len() {
                    1 => 0,
                    _ => groups.next_turn(),
                };
                let group = members.get_mut(group)?;
                let qp = group.qps.get(group.next).copied();
                group.next = if group.next + 1 == group.qps.len() { 0 } else { group.next + 1 };
                qp
            }
            Policy::LeastLoaded(loads) => loads.least(),
            Policy::Hash { qps, seed, number } => {
                let hash = mix(mix(*seed).wrapping_add(*number));
                *number += 1;
                // The high half of the product is uniform over the QPs.
                let place = (u128::from(hash) * qps.len() as u128) >> 64;
                qps.get(place as usize).copied()
            }
        }
    }

    /// A QP has another number of slots in flight.
    #[inline]
    fn loaded(&mut self, qp: usize, before: u32, now: u32) {
        if let Policy::LeastLoaded(loads) = self {
            loads.set(qp as u32, before as usize, now as usize);
        }
    }
}

const NONE: u32 = u32::MAX;

/// QPs in a list for each load, so that the least is found without a search. Of QPs with the same load, the one that has
/// had it longest is first: they take turns.
struct Loads {
    /// The QPs after and before each, in the list of its load.
    links: Box<[[u32; 2]]>,
    /// The first and last QP with each load.
    ends: Box<[[u32; 2]]>,
    /// No QP has a lower load.
    least: usize,
}

impl Loads {
    const BYTES_PER_QP: usize = size_of::<[u32; 2]>();

    fn new(queues: &[Queue], qps: &[usize]) -> Loads {
        let most = queues.iter().map(|queue| queue.slots).max().unwrap_or(0);
        let mut loads = Loads {
            links: vec![[NONE; 2]; queues.len()].into(),
            ends: vec![[NONE; 2]; most as usize + 1].into(),
            least: 0,
        };
        for &qp in qps {
            loads.append(qp as u32, 0);
        }
        loads
    }

    #[inline]
    fn least(&mut self) -> Option<usize> {
        let loads = self.ends.get(self.least..)?;
        let found = loads.iter().position(|[first, _]| *first != NONE)?;
        self.least += found;
        let [first, _] = self.ends.get(self.least)?;
        Some(*first as usize)
    }

    #[inline]
    fn set(&mut self, qp: u32, before: usize, now: usize) {
        self.remove(qp, before);
        self.append(qp, now);
        self.least = self.least.min(now);
    }

    #[inline]
    fn append(&mut self, qp: u32, load: usize) {
        let Some([first, last]) = self.ends.get_mut(load) else {
            return;
        };
        let before = std::mem::replace(last, qp);
        if before == NONE {
            *first = qp;
        } else if let Some([after, _]) = self.links.get_mut(before as usize) {
            *after = qp;
        }
        if let Some(links) = self.links.get_mut(qp as usize) {
            *links = [NONE, before];
        }
    }

    #[inline]
    fn remove(&mut self, qp: u32, load: usize) {
        let Some(&[after, before]) = self.links.get(qp as usize) else {
            return;
        };
        let Some([first, last]) = self.ends.get_mut(load) else {
            return;
        };
        match self.links.get_mut(before as usize) {
            Some([next, _]) => *next = after,
            None => *first = after,
        }
        match self.links.get_mut(after as usize) {
            Some([_, previous]) => *previous = before,
            None => *last = before,
        }
    }
}

/// WRs of a QP's ring: the completion of the last message may come after the answer to it.
pub(super) const RING: u8 = 2;

/// Whose turn it is on each QP of a ping-pong, at one end.
pub(super) struct Turns {
    pub(super) of_qps: Box<[Turn]>,
    pub(super) is_target: bool,
    /// The adapter answers, by a message's completion.
    pub(super) fetches: bool,
    /// Messages come to memory alone.
    pub(super) awaits_bytes: bool,
    /// When to look for lost messages.
    pub(super) look_raw: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Turn {
    /// Of the last message: posted at the initiator, come at the target.
    pub(super) number: u8,
    /// The ring's next WR, and how many have not completed.
    pub(super) position: u8,
    pub(super) in_queue: u8,
    /// A message waits for a WR.
    pub(super) is_due: bool,
    /// The initiator's message is not answered, since this reading.
    pub(super) is_open: bool,
    pub(super) posted_raw: u64,
}

impl Turns {
    pub(super) const BYTES_PER_QP: usize = size_of::<Turn>();

    pub(super) fn new(shared: &Shared) -> Turns {
        let flow = &shared.flow;
        let may_lose = flow.is_answered() && !flow.service.is_reliable() && !shared.answers;
        Turns {
            fetches: flow.op.profile().fetches,
            of_qps: shared
                .qp_contexts
                .iter()
                .filter(|_| flow.ping_pong)
                .map(|qp_context| Turn {
                    // Of an earlier run on the same QPs; 0 in memory that none has used.
                    number: qp_context.numbered.as_ref().map_or(0, Numbered::last),
                    ..Turn::default()
                })
                .collect(),
            is_target: shared.answers,
            awaits_bytes: flow.awaits_bytes(),
            look_raw: if may_lose { 0 } else { NEVER },
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
