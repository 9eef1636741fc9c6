//! Where payloads lie in memory. Both ends compute it from the flow alone, so an offset means the same at both.
//!
//! Without `--verify` a QP's WRs share a few cells: as many as fit a page, or one if messages are larger. The caches
//! then see what an application's ring of buffers would show them. With `--verify` each WR has its own cell.

use super::Geometry;
use settings::Settings;

const CACHE_LINE: usize = 64;
const SHARED_BYTES: usize = 4096;

/// Cells of equal size, for the largest message, in QP order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    cell_bytes: usize,
    cells: usize,
    qps: usize,
}

impl Layout {
    /// Payloads of requests: the sender's own, and the memory that WRITE or READ accesses.
    pub fn requests(flow: &Settings, geometry: &Geometry) -> Layout {
        Layout::new(flow, geometry.ring())
    }

    /// Buffers of receives.
    pub fn receives(flow: &Settings) -> Layout {
        Layout::new(flow, flow.rx_depth)
    }

    fn new(flow: &Settings, work_requests: u32) -> Layout {
        let cell_bytes = (flow.size_bytes as usize).next_multiple_of(CACHE_LINE);
        let cells = if flow.verify {
            work_requests as usize
        } else {
            SHARED_BYTES / cell_bytes
        };
        Layout {
            cell_bytes,
            cells: cells.max(1),
            qps: flow.qps as usize,
        }
    }

    /// Bytes of one QP.
    pub fn qp_bytes(&self) -> usize {
        self.cell_bytes.saturating_mul(self.cells)
    }

    /// Bytes of all QPs.
    pub fn total_bytes(&self) -> usize {
        self.qp_bytes().saturating_mul(self.qps)
    }

    /// Offset of the cell of WR `position` within its QP's bytes.
    pub fn within_qp(&self, position: u32) -> usize {
        position as usize % self.cells * self.cell_bytes
    }

    /// Offset of that cell within all bytes.
    pub fn offset(&self, qp: u32, position: u32) -> usize {
        qp as usize * self.qp_bytes() + self.within_qp(position)
    }
}

/// Whether messages of this flow that have `bytes` bytes are sent inline.
pub fn sends_inline(flow: &Settings, bytes: u32) -> bool {
    !flow.op.profile().fetches && flow.inline_bytes > 0 && bytes <= flow.inline_bytes
}
