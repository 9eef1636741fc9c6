//! Where payloads lie in memory. Both ends compute it from the flow alone, so an offset means the same at both.
//!
//! Without `--verify` a QP's WRs share a few cells: as many as fit a page, or one if messages are larger. The caches
//! then see what an application's ring of buffers would show them. Where the values of each WR are looked at, with
//! `--verify` and of COMPARE-SWAPs, each has its own cell. With `--memory` each has as many cells of its own as fill the
//! working set, and takes the next each time it is posted ([`Walk`]). The messages of a ping-pong have one cell. A message begins `--offset` bytes after its cell, and cells
//! begin at multiples of `--alignment`. Words of atomic operations lie as `--atomic-target` says.
//!
//! Offsets are those within an MR: with `--mr per-qp` each QP's bytes are an MR of their own. The receives of an SRQ have
//! the place of one QP.

use std::sync::Arc;

use settings::{Access, AtomicTarget, MrMode, RecvQueue, Register, Settings, TouchOrder};
use verbs::{
    Mapping, MemoryRegion, Ordering, Place, ProtectionDomain, Registration, VerbsError, Walk,
};

use crate::Geometry;
use crate::operation::mix;

const SHARED_BYTES: usize = 4096;

/// The most receives posted by one call in the steady state.
const RECV_CHAIN: u32 = 16;

/// Cells of equal size, for the largest message, in QP order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The cells of a QP.
    walk: Walk,
    qps: usize,
    /// From the first byte of a cell to that of its message.
    offset_bytes: usize,
    /// Each QP's bytes are an MR.
    is_mr_of_qp: bool,
    /// The least that is registered.
    region_bytes: usize,
}

impl Layout {
    /// Payloads of requests: the sender's own, and the memory that WRITE or READ accesses.
    pub fn requests(flow: &Settings, geometry: &Geometry) -> Layout {
        Layout::new(flow, flow.size_bytes, geometry.ring(), flow.qps)
    }

    /// Buffers of receives, of `received_bytes`.
    pub fn receives(flow: &Settings) -> Layout {
        let queues = match flow.recv_queue {
            RecvQueue::PerQp => flow.qps,
            RecvQueue::Shared => 1,
        };
        Layout::new(flow, received_bytes(flow), prebuilt_receives(flow), queues)
    }

    /// The QP in whose place the receives of QP `qp` lie; receives of an SRQ lie in the first QP's.
    pub fn place_of_receives(flow: &Settings, qp: u32) -> u32 {
        match flow.recv_queue {
            RecvQueue::PerQp => qp,
            RecvQueue::Shared => 0,
        }
    }

    fn new(flow: &Settings, size_bytes: u32, work_requests: u32, qps: u32) -> Layout {
        let offset_bytes = flow.offset_bytes as usize;
        let used_bytes = size_bytes.max(1) as usize + offset_bytes;
        let cell_bytes = used_bytes.next_multiple_of(flow.alignment_bytes.max(1) as usize);
        let shared_cells = (SHARED_BYTES / cell_bytes).max(1) as u32;
        let is_walk = size_bytes > 0 && !flow.op.profile().is_atomic();
        let (cells, laps) = match flow.memory_bytes.filter(|_| is_walk) {
            Some(bytes) => {
                let lap_bytes = cell_bytes as u64 * u64::from(work_requests) * u64::from(qps);
                (work_requests, bytes.div_ceil(lap_bytes.max(1)))
            }
            None if flow.is_answered() => (1, 1),
            None if looks_at_values(flow) => (work_requests, 1),
            None => (shared_cells, 1),
        };
        let keys = match flow.touch_order {
            TouchOrder::Sequential => None,
            TouchOrder::Random => Some([mix(flow.seed), mix(!flow.seed)]),
        };
        Layout {
            walk: Walk::new(cell_bytes, cells, laps, keys),
            qps: qps as usize,
            offset_bytes,
            is_mr_of_qp: flow.mr == MrMode::PerQp,
            region_bytes: flow.region_bytes.map_or(0, |bytes| bytes as usize),
        }
    }

    /// The cells that the WRs of a QP use, use by use.
    pub fn walk(&self) -> Walk {
        self.walk
    }

    /// QPs that have bytes of their own.
    pub fn qps(&self) -> usize {
        self.qps
    }

    pub fn qp_bytes(&self) -> usize {
        self.walk.bytes()
    }

    pub fn total_bytes(&self) -> usize {
        self.qp_bytes().saturating_mul(self.qps)
    }

    /// What is allocated and registered: more than messages use where it was requested.
    pub fn registered_bytes(&self) -> usize {
        self.total_bytes().max(self.region_bytes)
    }

    /// Where the message of WR `position` lies in its QP's bytes when the WR is posted after `uses` earlier posts.
    fn within_qp(&self, position: u32, uses: u64) -> usize {
        self.walk.offset(position, uses) + self.offset_bytes
    }

    /// Where that message lies in its MR at its first post.
    pub fn offset(&self, qp: u32, position: u32) -> usize {
        self.offset_after(qp, position, 0)
    }

    /// Where that message lies in its MR when the WR was posted after `uses` earlier posts.
    pub fn offset_after(&self, qp: u32, position: u32, uses: u64) -> usize {
        self.start_of(qp) + self.within_qp(position, uses)
    }

    /// Offset of a QP's bytes within their MR.
    pub fn start_of(&self, qp: u32) -> usize {
        if self.is_mr_of_qp { 0 } else { qp as usize * self.qp_bytes() }
    }

    /// Where WR `position` accesses the target, as an offset in the memory announced to its QP: the same cell as here, except
    /// for the words of atomic operations.
    pub fn within_target(&self, flow: &Settings, position: u32) -> usize {
        if flow.op.profile().is_atomic() && flow.atomic_target != AtomicTarget::Spread {
            self.within_qp(0, 0)
        } else {
            self.within_qp(position, 0)
        }
    }

    /// The target's QP whose bytes QP `qp` accesses.
    pub fn target_of(flow: &Settings, qp: u32) -> u32 {
        if flow.op.profile().is_atomic() && flow.atomic_target == AtomicTarget::Shared {
            0
        } else {
            qp
        }
    }
}

/// Bytes of a receive's buffer, with what the device puts before the payload: none where that lands elsewhere.
pub fn received_bytes(flow: &Settings) -> u32 {
    if flow.op.profile().fills_receives() {
        flow.service.receive_header_bytes() + flow.size_bytes
    } else {
        0
    }
}

/// Number of prebuilt receives of a queue, of which the receive depth is posted.
pub fn prebuilt_receives(flow: &Settings) -> u32 {
    if flow.verify {
        return flow.rx_depth;
    }
    // A chain is posted once this many receives are used up. The rest of the depth must last until then, even if
    // each of several workers holds back almost a chain.
    (flow.rx_depth / (4 * flow.workers.max(1))).clamp(1, RECV_CHAIN)
}

/// Whether the values of each WR are looked at.
pub fn looks_at_values(flow: &Settings) -> bool {
    flow.verify || flow.op.profile().access == Access::Swap
}

/// Whether messages of this flow that have `bytes` bytes are sent inline.
pub fn sends_inline(flow: &Settings, bytes: u32) -> bool {
    !flow.op.profile().fetches && flow.inline_bytes > 0 && bytes <= flow.inline_bytes
}

// The size of the message at each position of a QP's ring. Both ends compute it from the flow alone.
//
// A position keeps its size for the whole run, since its WR is built once. Sizes by weight are dealt along the ring of
// the first QP, then on along that of the next, so that the shares are right over all QPs.

/// The sizes of a flow's messages.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// In bytes, in the order in which they are dealt, until it repeats.
    order: Arc<[u32]>,
    ring: u32,
}

impl Sizes {
    pub fn new(flow: &Settings) -> Sizes {
        let order = match &flow.size_mix {
            Some(mix) => mix.order().into(),
            None => [flow.size_bytes].into(),
        };
        Sizes { order, ring: Geometry::from_flow(flow).ring() }
    }

    /// Whether messages differ in size.
    pub fn is_mixed(&self) -> bool {
        self.order.len() > 1
    }

    /// The size of the message at a position of a QP's ring, in bytes.
    pub fn at(&self, qp: u32, position: u32) -> u32 {
        let dealt = u64::from(qp) * u64::from(self.ring) + u64::from(position);
        let place = dealt % self.order.len().max(1) as u64;
        self.order.get(place as usize).copied().unwrap_or(0)
    }

    /// Bytes of the messages at `count` positions from `first`.
    pub fn sum(&self, qp: u32, first: u32, count: u32) -> u64 {
        (first..first + count).map(|position| u64::from(self.at(qp, position))).sum()
    }
}

// Which QP of the peer a message goes to: the one with the same index, or with `--ud-fan-out` each in turn, by the
// message's position in the ring. So the receiver knows the sending QP of a position, which no message tells.

/// The pairs of QPs of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    /// QPs among which each sends in turn; 1 where each has one peer.
    turn: u32,
    qps: u32,
}

impl Peers {
    pub fn new(flow: &Settings) -> Peers {
        let qps = flow.qps.max(1);
        Peers { turn: if flow.ud_fan_out { qps } else { 1 }, qps }
    }

    /// The QP that receives what QP `sender` sends from `position`.
    pub fn receiver(&self, sender: u32, position: u32) -> u32 {
        (sender % self.qps + position % self.turn) % self.qps
    }

    /// The QP that sends to QP `receiver` from `position`.
    pub fn sender(&self, receiver: u32, position: u32) -> u32 {
        (receiver % self.qps + self.qps - position % self.turn) % self.qps
    }
}

// The MRs of the messages of one end of a flow: one for all QPs, or one for each (`--mr`). All of them are in one
// mapping, at the place asked for.

/// The MRs of an end's messages of one kind.
pub struct Regions {
    first: Arc<MemoryRegion>,
    rest: Box<[Arc<MemoryRegion>]>,
    mapping: Arc<Mapping>,
    way: Registration,
}

impl Regions {
    /// Allocates what `layout` takes at `place`, and registers it in the first way that is asked for and goes. Calls `alive` from
    /// time to time, which may end it.
    ///
    /// # Errors
    /// No memory there, a failed registration, or an error of `alive`.
    pub fn new<E: From<VerbsError>>(
        pd: &Arc<ProtectionDomain>,
        flow: &Settings,
        layout: &Layout,
        access: verbs::Access,
        (place, numa_node): (Place, Option<u32>),
        alive: impl Fn() -> Result<(), E>,
    ) -> Result<Regions, E> {
        let mapping = Mapping::new(layout.registered_bytes(), place, numa_node)?;
        if flow.memory_bytes.is_some() {
            mapping.touch(alive)?;
        }
        let (count, bytes) = match flow.mr {
            MrMode::One => (1, mapping.length_bytes()),
            MrMode::PerQp => (layout.qps(), layout.qp_bytes()),
        };
        let rights = (access, ordering(flow));
        let region = |qp: usize, way: Registration| {
            MemoryRegion::within(pd, &mapping, (qp * bytes, bytes), rights, way)
        };
        let (way, first) = first_registered(&mapping, flow.register, |way| region(0, way))?;
        let rest = (1..count).map(|qp| region(qp, way)).collect::<Result<_, VerbsError>>()?;
        Ok(Regions { first, rest, mapping, way })
    }

    /// The memory in which they all are.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// How the device learnt of them.
    pub fn way(&self) -> Registration {
        self.way
    }

    /// The MR of QP `qp`.
    pub fn of_qp(&self, qp: u32) -> &Arc<MemoryRegion> {
        let after_first = (qp as usize).checked_sub(1);
        after_first.and_then(|place| self.rest.get(place)).unwrap_or(&self.first)
    }
}

fn ordering(flow: &Settings) -> Ordering {
    match flow.ordering {
        settings::Ordering::Relaxed => Ordering::Relaxed,
        settings::Ordering::Strict => Ordering::Strict,
    }
}

/// Registers by the ways that the memory has and `wanted` allows, in order, until one goes. The error is that of the first.
fn first_registered(
    mapping: &Mapping,
    wanted: Register,
    region: impl Fn(Registration) -> Result<Arc<MemoryRegion>, VerbsError>,
) -> Result<(Registration, Arc<MemoryRegion>), VerbsError> {
    let has_choice = mapping.ways().len() > 1;
    let mut first_error = None;
    for &way in mapping.ways() {
        let is_wanted = match wanted {
            Register::Auto => true,
            Register::Dmabuf => way == Registration::Dmabuf,
            Register::PeerMemory => way == Registration::PeerMemory,
        };
        if has_choice && !is_wanted {
            continue;
        }
        // Without a dmabuf its driver's error says more than the attempt to register nothing.
        let tried = match mapping.export_error().filter(|_| way == Registration::Dmabuf) {
            Some(error) => Err(VerbsError::Gpu(error.clone())),
            None => region(way),
        };
        match tried {
            Ok(registered) => return Ok((way, registered)),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or(VerbsError::DeviceLacks {
        device: mapping.to_string(),
        what: "ways to register its memory so",
        instead: "leave --register out".into(),
    }))
}

// The number of a ping-pong's message, in its last byte: by it an end sees that a message has come to its memory, and over
// services that lose messages which one an answer is for.

/// Where a QP's messages have their number.
pub struct Numbered {
    leaving: (Arc<MemoryRegion>, usize),
    coming: (Arc<MemoryRegion>, usize),
}

impl Numbered {
    /// The places of QP `qp`: its messages leave from `local`, and come to `offered` or to `receives`. `None` without
    /// numbers.
    pub fn new(
        flow: &Settings,
        qp: u32,
        local: &Arc<MemoryRegion>,
        offered: Option<&Arc<MemoryRegion>>,
        receives: Option<&Arc<MemoryRegion>>,
    ) -> Option<Numbered> {
        let may_lose = flow.is_answered() && !flow.service.is_reliable();
        if !may_lose && !flow.awaits_bytes() {
            return None;
        }
        let last = (flow.size_bytes as usize).saturating_sub(1);
        let written = Layout::requests(flow, &Geometry::from_flow(flow)).offset(qp, 0) + last;
        let coming = match flow.op.profile().access {
            Access::None => receives.map(|memory| {
                let queue = Layout::place_of_receives(flow, qp);
                let header_bytes = flow.service.receive_header_bytes() as usize;
                let received = Layout::receives(flow).offset(queue, 0) + header_bytes + last;
                (Arc::clone(memory), received)
            }),
            _ => offered.map(|memory| (Arc::clone(memory), written)),
        };
        Some(Numbered { leaving: (Arc::clone(local), written), coming: coming? })
    }

    #[inline]
    pub(super) fn set(&self, number: u8) {
        let (memory, offset) = &self.leaving;
        memory.write_at(*offset, &[number]);
    }

    /// The number of the last message that has come.
    #[inline]
    pub(super) fn last(&self) -> u8 {
        let (memory, offset) = &self.coming;
        memory.byte_at(*offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Wherever messages lie, they are inside of their QP's bytes, begin as asked, and do not overlap.
        #[test]
        fn messages_have_places_of_their_own(
            size in 1..5_000u32, alignment in 1..=4_096u32, offset in 0..4_096u32, qps in 1..5u32, depth in 1..20u32, each: bool,
            memory in proptest::option::of(1..20_000u64), random: bool,
        ) {
            let flow = Settings {
                size_bytes: size,
                alignment_bytes: alignment,
                offset_bytes: offset,
                qps,
                tx_depth: depth,
                signal_every: 1,
                verify: true,
                mr: if each { MrMode::PerQp } else { MrMode::One },
                memory_bytes: memory,
                touch_order: if random { TouchOrder::Random } else { TouchOrder::Sequential },
                ..Settings::default()
            };
            let layout = Layout::requests(&flow, &Geometry::from_flow(&flow));
            let bytes = if each { layout.qp_bytes() } else { layout.total_bytes() };
            prop_assert_eq!(layout.total_bytes(), layout.qp_bytes() * qps as usize);
            let lap_bytes = layout.total_bytes() as u64 / layout.walk().laps();
            let wanted = memory.unwrap_or(1);
            prop_assert!((wanted..wanted + lap_bytes).contains(&(layout.total_bytes() as u64)));
            let mut places: Vec<(u32, usize)> = Vec::new();
            for qp in 0..qps {
                for position in 0..depth {
                    for uses in 0..layout.walk().laps() {
                        let at = layout.offset_after(qp, position, uses);
                        prop_assert_eq!((at - offset as usize) % alignment as usize, 0);
                        prop_assert!(at + size as usize <= bytes);
                        places.push((if each { qp } else { 0 }, at));
                    }
                }
            }
            places.sort_unstable();
            prop_assert!(places.windows(2).all(|pair| pair[0].0 != pair[1].0 || pair[0].1 + size as usize <= pair[1].1));
        }
    }

    #[test]
    fn only_messages_walk_through_memory() {
        let laps = |op: &str, memory: &str| {
            let flow = Settings::from([
                ("op", op),
                ("size", "4K"),
                ("tx-depth", "64"),
                ("memory", memory),
            ]);
            let requests = Layout::requests(&flow, &Geometry::from_flow(&flow));
            (requests.walk().laps(), Layout::receives(&flow).walk().laps())
        };
        assert_eq!(laps("send", "1G"), (4096, 16384));
        assert_eq!(laps("send", "1"), (1, 1));
        assert_eq!(laps("write-imm", "1G"), (4096, 1));
        assert_eq!(laps("compare-swap", "1G"), (1, 1));
    }

    #[test]
    fn a_region_is_as_large_as_requested_or_as_messages_need() {
        let bytes = |region: &str| {
            let flow = Settings::from([("size", "4K"), ("qps", "2"), ("region", region)]);
            let layout = Layout::requests(&flow, &Geometry::from_flow(&flow));
            (layout.total_bytes(), layout.registered_bytes())
        };
        let (used, _) = bytes("1");
        assert_eq!(bytes("1"), (used, used));
        assert_eq!(bytes("1G"), (used, 1 << 30));
    }

    #[test]
    fn an_srq_has_the_buffers_of_one_queue() {
        let flow = |recv_queue| Settings {
            recv_queue,
            qps: 16,
            rx_depth: 8,
            size_bytes: 100,
            verify: true,
            ..Settings::default()
        };
        let own = Layout::receives(&flow(RecvQueue::PerQp));
        let shared = Layout::receives(&flow(RecvQueue::Shared));
        assert_eq!(own.total_bytes(), 16 * 8 * 128);
        assert_eq!((shared.total_bytes(), shared.qps()), (8 * 128, 1));
    }

    proptest! {
        /// Over all positions of all QPs each size has its share, but for less than one turn.
        #[test]
        fn shares_are_right_over_all_qps(weights in proptest::collection::vec(1u32..20, 2..6), qps in 1u32..20, depth in 1u32..70) {
            let mix: Vec<String> = (1..).zip(&weights).map(|(bytes, weight)| format!("{bytes}:{weight}")).collect();
            let flow = Settings {
                size_mix: mix.join(",").parse().ok(),
                qps,
                tx_depth: depth,
                signal_every: 1,
                ..Settings::default()
            };
            let sizes = Sizes::new(&flow);
            prop_assert!(sizes.is_mixed());
            let sum: u32 = weights.iter().sum();
            let positions = qps * depth;
            for (bytes, weight) in (1..).zip(&weights) {
                let count = (0..qps)
                    .flat_map(|qp| (0..depth).map(move |position| (qp, position)))
                    .filter(|(qp, position)| sizes.at(*qp, *position) == bytes)
                    .count() as f64;
                let share = f64::from(positions) * f64::from(*weight) / f64::from(sum);
                prop_assert!((count - share).abs() < 2.0, "{} of {}, not {}", count, positions, share);
            }
            let by_qp: u64 = (0..qps).map(|qp| sizes.sum(qp, 0, depth)).sum();
            let one_by_one: u64 = (0..positions).map(|k| u64::from(sizes.at(k / depth, k % depth))).sum();
            prop_assert_eq!(by_qp, one_by_one);
        }
    }

    #[test]
    fn one_size_is_that_of_all() {
        let sizes = Sizes::new(&Settings::default());
        assert!(!sizes.is_mixed());
        assert_eq!((sizes.at(7, 3), sizes.sum(7, 3, 2)), (65_536, 131_072));
    }

    fn peers(qps: u32, ud_fan_out: bool) -> Peers {
        Peers::new(&Settings { qps, ud_fan_out, ..Settings::default() })
    }

    #[test]
    fn the_sender_is_found_by_receiver_and_position() {
        for (qps, fan_out) in [(1, false), (5, false), (1, true), (5, true)] {
            let peers = peers(qps, fan_out);
            for (sender, position) in (0..qps).flat_map(|qp| (0..16).map(move |at| (qp, at))) {
                let receiver = peers.receiver(sender, position);
                assert_eq!(peers.sender(receiver, position), sender);
                assert!(fan_out || receiver == sender);
            }
        }
    }

    #[test]
    fn each_qp_sends_to_all_in_turn() {
        let peers = peers(3, true);
        let to: Vec<u32> = (0..6).map(|position| peers.receiver(1, position)).collect();
        assert_eq!(to, [1, 2, 0, 1, 2, 0]);
    }
}
