//! Constants of a flow that its worker needs for each message, computed before the first one.

use super::super::geometry::Geometry;
use super::super::shared::Shared;

pub(super) struct Facts {
    /// A copy of the flow's.
    pub(super) geometry: Geometry,
    pub(super) several_per_slot: bool,
    /// A slot is one signalled chain, posted by one call; see [`Worker::repeat`](super::Worker::repeat).
    pub(super) posts_whole_slots: bool,
    /// Where the last chain begins in each of the two parts of a slot.
    pub(super) last_chain_of_head: u32,
    pub(super) last_chain_of_rest: u32,
    /// Messages differ in size.
    pub(super) is_mixed: bool,
    /// Bytes of a receive's completion that are no payload.
    pub(super) header_bytes: u32,
}

impl Facts {
    /// With `verify` the payloads of each chain are filled before it is posted.
    pub(super) fn new(shared: &Shared, verify: bool) -> Facts {
        let geometry = shared.geometry;
        let is_mixed = shared.flow.size_mix.is_some();
        Facts {
            geometry,
            several_per_slot: geometry.completions_per_slot() > 1,
            posts_whole_slots: !verify
                && !is_mixed
                && geometry.completions_per_slot() == 1
                && geometry.head == geometry.unit
                && geometry.post_list == geometry.unit,
            last_chain_of_head: geometry.last_chain(geometry.head),
            last_chain_of_rest: geometry.last_chain(geometry.unit - geometry.head),
            is_mixed,
            header_bytes: shared.flow.service.receive_header_bytes(),
        }
    }
}
