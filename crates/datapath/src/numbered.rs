//! The number of a ping-pong's message, in its last byte: by it an end sees that a message has come to its memory, and over
//! services that lose messages which one an answer is for.

use std::sync::Arc;

use settings::{Access, Settings};
use verbs::MemoryRegion;

use super::{Geometry, Layout};

/// Where a QP's messages have their number.
pub struct Numbered {
    leaving: (Arc<MemoryRegion>, usize),
    coming: (Arc<MemoryRegion>, usize),
}

impl Numbered {
    /// The places of QP `qp`: its messages leave from `local`, and come to `offered` or to `receives`. `None` without
    /// numbers.
    pub fn of(
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
        let written = Layout::requests(flow, &Geometry::of(flow)).offset(qp, 0) + last;
        let coming = match flow.op.profile().access {
            Access::None => receives.map(|memory| {
                (
                    Arc::clone(memory),
                    ({
                        let queue = Layout::place_of_receives(flow, qp);
                        let header = flow.service.receive_header_bytes() as usize;
                        Layout::receives(flow).offset(queue, 0) + header + last
                    }),
                )
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
