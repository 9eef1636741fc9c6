//! Where payloads lie in memory. Both ends compute it from the flow alone, so an offset means the same at both.
//!
//! Without `--verify` a QP's WRs share a few cells: as many as fit a page, or one if messages are larger. The caches
//! then see what an application's ring of buffers would show them. Where the values of each WR are looked at, with
//! `--verify` and of COMPARE-SWAPs, each has its own cell. A message begins `--offset` bytes after its cell, and cells
//! begin at multiples of `--alignment`. Words of atomic operations lie as `--atomic-target` says.
//!
//! Offsets are those within an MR: with `--mr per-qp` each QP's bytes are an MR of their own. The receives of an SRQ have
//! the place of one QP.

use super::Geometry;
use settings::{Access, AtomicTarget, MrMode, RecvQueue, Settings};

const SHARED_BYTES: usize = 4096;

/// Cells of equal size, for the largest message, in QP order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    cell_bytes: usize,
    cells: usize,
    qps: usize,
    /// Of a message's first byte from its cell's.
    offset_bytes: usize,
    /// Each QP's bytes are an MR.
    is_mr_of_qp: bool,
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
        Layout::new(flow, received_bytes(flow), flow.rx_depth, queues)
    }

    fn new(flow: &Settings, size_bytes: u32, work_requests: u32, qps: u32) -> Layout {
        let offset_bytes = flow.offset_bytes as usize;
        let used_bytes = size_bytes.max(1) as usize + offset_bytes;
        let cell_bytes = used_bytes.next_multiple_of(flow.alignment_bytes.max(1) as usize);
        let cells = if looks_at_values(flow) {
            work_requests as usize
        } else {
            SHARED_BYTES / cell_bytes
        };
        Layout {
            cell_bytes,
            cells: cells.max(1),
            qps: qps as usize,
            offset_bytes,
            is_mr_of_qp: flow.mr == MrMode::PerQp,
        }
    }

    /// QPs that have bytes of their own.
    pub fn qps(&self) -> usize {
        self.qps
    }

    /// Bytes of one QP.
    pub fn qp_bytes(&self) -> usize {
        self.cell_bytes.saturating_mul(self.cells)
    }

    /// Bytes of all QPs.
    pub fn total_bytes(&self) -> usize {
        self.qp_bytes().saturating_mul(self.qps)
    }

    /// Offset of the message of WR `position` within its QP's bytes.
    pub fn within_qp(&self, position: u32) -> usize {
        position as usize % self.cells * self.cell_bytes + self.offset_bytes
    }

    /// Offset of that message within its MR.
    pub fn offset(&self, qp: u32, position: u32) -> usize {
        self.start_of(qp) + self.within_qp(position)
    }

    /// Offset of a QP's bytes within their MR.
    pub fn start_of(&self, qp: u32) -> usize {
        match self.is_mr_of_qp {
            true => 0,
            false => qp as usize * self.qp_bytes(),
        }
    }

    /// Offset of what WR `position` accesses at the target within what its QP is told of: the same cell, but for the words
    /// of atomic operations.
    pub fn within_target(&self, flow: &Settings, position: u32) -> usize {
        match flow.op.profile().is_atomic() && flow.atomic_target != AtomicTarget::Spread {
            true => self.within_qp(0),
            false => self.within_qp(position),
        }
    }

    /// The QP whose bytes QP `qp` is told of at the target.
    pub fn target_of(flow: &Settings, qp: u32) -> u32 {
        match flow.op.profile().is_atomic() && flow.atomic_target == AtomicTarget::Shared {
            true => 0,
            false => qp,
        }
    }
}

/// Bytes of a receive's buffer, with what the device puts before the payload: none where that lands elsewhere.
pub fn received_bytes(flow: &Settings) -> u32 {
    match flow.op.profile().fills_receives() {
        true => flow.service.receive_header_bytes() + flow.size_bytes,
        false => 0,
    }
}

/// Whether the values of each WR are looked at.
pub fn looks_at_values(flow: &Settings) -> bool {
    flow.verify || flow.op.profile().access == Access::Swap
}

/// Whether messages of this flow that have `bytes` bytes are sent inline.
pub fn sends_inline(flow: &Settings, bytes: u32) -> bool {
    !flow.op.profile().fetches && flow.inline_bytes > 0 && bytes <= flow.inline_bytes
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
                ..Settings::default()
            };
            let layout = Layout::requests(&flow, &Geometry::of(&flow));
            let bytes = if each { layout.qp_bytes() } else { layout.total_bytes() };
            prop_assert_eq!(layout.total_bytes(), layout.qp_bytes() * qps as usize);
            let mut last: Option<usize> = None;
            for qp in 0..qps {
                last = last.filter(|_| !each);
                for position in 0..depth {
                    let at = layout.offset(qp, position);
                    prop_assert_eq!((at - offset as usize) % alignment as usize, 0);
                    prop_assert!(at + size as usize <= bytes);
                    prop_assert!(last.is_none_or(|end| at >= end));
                    last = Some(at + size as usize);
                }
            }
        }
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
}
