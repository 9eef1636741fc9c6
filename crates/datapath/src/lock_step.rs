//! Flows in lock-step, as a collective has them: each node sends the messages of a step when all that the step needs has come
//! to it. Data alone drives them: no node hears of another's step but by its messages.
//!
//! A stream is what a QP carries in one direction, a message a step. Within an iteration a step needs what has arrived: a ring
//! passes on what came. An iteration begins when all of the last one has arrived here and all that was sent from here has
//! been acknowledged, as a program goes on when a collective is over. So one rule makes a ring and an exchange, whose iterations
//! have one step.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crossbeam_utils::CachePadded;

/// How far the streams of a node are.
pub struct LockStep {
    /// Messages of each stream so far: first of those that come, then of those that go. Each cell has one writer.
    moved: Box<[CachePadded<AtomicU64>]>,
    arriving: usize,
    steps_of_iteration: u64,
    pause_ns: u64,
}

/// The part of a flow's end in them.
#[derive(Clone)]
pub struct StepPart {
    /// Those of the node.
    pub node: Arc<LockStep>,
    /// The stream of the end's first QP; those of the others follow.
    pub first: usize,
}

impl LockStep {
    /// Memory for each QP of an end, in bytes.
    pub const BYTES_PER_QP: usize = size_of::<CachePadded<AtomicU64>>();

    /// Memory of a worker that sends, in bytes.
    pub const BYTES_PER_WORKER: usize = StepTimes::KEPT * size_of::<(u64, u32)>();

    /// So many streams that come and go, and the pause between two iterations.
    pub fn new(arriving: usize, leaving: usize, steps_of_iteration: u32, pause_ns: u64) -> Self {
        LockStep {
            moved: (0..arriving + leaving).map(|_| CachePadded::default()).collect(),
            arriving,
            steps_of_iteration: u64::from(steps_of_iteration.max(1)),
            pause_ns,
        }
    }

    pub(crate) fn pause_ns(&self) -> u64 {
        self.pause_ns
    }

    pub(crate) fn begins_iteration(&self, step: u64) -> bool {
        step.is_multiple_of(self.steps_of_iteration)
    }

    fn moved(&self, stream: usize) -> u64 {
        self.moved.get(stream).map_or(0, |cell| cell.load(Acquire))
    }

    /// The streams that a step needs, the first ones.
    fn needed(&self, step: u64) -> usize {
        if self.begins_iteration(step) { self.moved.len() } else { self.arriving }
    }
}

impl StepPart {
    /// Counts a message of a QP that has come, or been acknowledged.
    #[inline]
    pub(crate) fn count(&self, qp: usize) {
        if let Some(cell) = self.node.moved.get(self.first + qp) {
            cell.store(cell.load(Relaxed) + 1, Release);
        }
    }

    /// Whether it is the first of the node's ends that send: one of them times the steps of all.
    pub(crate) fn is_first_to_send(&self) -> bool {
        self.first == self.node.arriving
    }
}

/// The next step of a worker.
#[derive(Default)]
pub(crate) struct NextStep {
    number: u64,
    /// The streams before this one have all that it needs.
    seen: usize,
}

impl NextStep {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether all that it needs is there; while it is not, this reads one cell.
    #[inline]
    pub(crate) fn is_ready(&mut self, node: &LockStep) -> bool {
        let needed = node.needed(self.number);
        while self.seen < needed && node.moved(self.seen) >= self.number {
            self.seen += 1;
        }
        self.seen >= needed
    }

    /// Begins it; returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.seen = 0;
        self.number += 1;
        self.number - 1
    }
}

/// Times of the last steps of a flow at one worker: from what the step needs until all of its messages are acknowledged.
pub(crate) struct StepTimes(Box<[(u64, u32)]>);

impl StepTimes {
    /// Steps of which times are kept.
    const KEPT: usize = 256;

    pub(crate) fn new(kept: bool) -> StepTimes {
        StepTimes(vec![(u64::MAX, 0); if kept { Self::KEPT } else { 0 }].into())
    }

    /// Keeps the time of a step's message, if it is the longest of the step.
    #[inline]
    pub(crate) fn keep(&mut self, step: u64, ns: u64) {
        let ns = u32::try_from(ns).unwrap_or(u32::MAX);
        if let Some(kept) = self.0.get_mut(step as usize % Self::KEPT) {
            *kept = if kept.0 == step { (step, kept.1.max(ns)) } else { (step, ns) };
        }
    }

    /// The steps before this one, in order.
    pub(crate) fn before(self, step: u64) -> Vec<(u64, u32)> {
        let mut times: Vec<_> = self.0.iter().copied().filter(|kept| kept.0 < step).collect();
        times.sort_unstable();
        times
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A node of the model, with a part for each flow that goes from it.
    struct Node {
        steps: Arc<LockStep>,
        /// For each flow: the node that it goes to, its stream here and there, and the next step.
        flows: Vec<(usize, StepPart, StepPart, NextStep)>,
    }

    /// The nodes of a pattern.
    fn nodes(count: usize, is_ring: bool) -> Vec<Node> {
        let degree = if is_ring { 1 } else { count - 1 };
        let steps_of_iteration = if is_ring { 2 * (count as u32 - 1) } else { 1 };
        let steps: Vec<_> = (0..count)
            .map(|_| Arc::new(LockStep::new(degree, degree, steps_of_iteration, 0)))
            .collect();
        (0..count)
            .map(|node| {
                let flow = |place: usize| {
                    let to = (node + 1 + place) % count;
                    let here = StepPart { node: Arc::clone(&steps[node]), first: degree + place };
                    let there = StepPart { node: Arc::clone(&steps[to]), first: place };
                    (to, here, there, NextStep::default())
                };
                Node { steps: Arc::clone(&steps[node]), flows: (0..degree).map(flow).collect() }
            })
            .collect()
    }

    proptest! {
        /// Messages and acknowledgements take any time, in order on each stream: no step begins before all that it needs is
        /// there, and none waits for ever.
        #[test]
        fn no_step_begins_early_and_all_end(count in 2..6_usize, is_ring: bool, seed: u64) {
            let mut chance = seed | 1;
            let mut choose = |most: usize| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (chance >> 33) as usize % most
            };
            let mut nodes = nodes(count, is_ring);
            let steps = 6 * (count as u64 - 1);
            let of_iteration = if is_ring { 2 * (count as u64 - 1) } else { 1 };
            // Of each flow: messages on their way, and those whose acknowledgement is.
            let mut on_way = vec![vec![(0_u64, 0_u64); nodes[0].flows.len()]; count];
            loop {
                let mut posted = false;
                for node in 0..count {
                    for flow in 0..nodes[node].flows.len() {
                        let Node { steps: of_node, flows } = &mut nodes[node];
                        let next = &mut flows[flow].3;
                        if next.number() < steps && next.is_ready(of_node) {
                            let step = next.begin();
                            posted = true;
                            on_way[node][flow].0 += 1;
                            let degree = of_node.arriving;
                            let least = |range: std::ops::Range<usize>| range.map(|it| of_node.moved(it)).min();
                            prop_assert!(least(0..degree) >= Some(step));
                            if step % of_iteration == 0 {
                                prop_assert!(least(degree..2 * degree) >= Some(step));
                            }
                        }
                    }
                }
                let moving: Vec<(usize, usize)> = (0..count)
                    .flat_map(|node| (0..on_way[node].len()).map(move |flow| (node, flow)))
                    .filter(|(node, flow)| on_way[*node][*flow] != (0, 0))
                    .collect();
                if moving.is_empty() && !posted {
                    break;
                }
                if let Some(&(node, flow)) = moving.get(choose(moving.len().max(1))) {
                    let (arriving, acknowledged) = &mut on_way[node][flow];
                    let (_, here, there, _) = &nodes[node].flows[flow];
                    if *acknowledged > 0 && (*arriving == 0 || choose(2) == 0) {
                        *acknowledged -= 1;
                        here.count(0);
                    } else {
                        *arriving -= 1;
                        *acknowledged += 1;
                        there.count(0);
                    }
                }
            }
            for (_, here, there, next) in nodes.iter().flat_map(|node| &node.flows) {
                prop_assert_eq!(next.number(), steps);
                prop_assert_eq!([here.node.moved(here.first), there.node.moved(there.first)], [steps; 2]);
            }
        }
    }

    #[test]
    fn the_last_steps_are_kept_each_with_its_longest_message() {
        let mut times = StepTimes::new(true);
        for step in 0..300 {
            times.keep(step, step + 7);
            times.keep(step, step);
        }
        times.keep(300, u64::MAX);
        let kept = times.before(300);
        assert_eq!((kept.len(), kept[0], kept[254]), (255, (45, 52), (299, 306)));
        assert!(StepTimes::new(false).before(1).is_empty());
    }
}
