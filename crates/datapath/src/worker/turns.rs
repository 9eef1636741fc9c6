//! Whose turn it is on each QP of a ping-pong, at one end.

use super::super::shared::Shared;
use super::window::NEVER;

/// WRs of a QP's ring: the completion of the last message may come after the answer to it.
pub(super) const RING: u8 = 2;

/// The turns of a flow's QPs at one end.
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
            of_qps: if flow.ping_pong {
                vec![Turn::default(); shared.qp_contexts.len()].into()
            } else {
                Box::default()
            },
            is_target: shared.answers,
            awaits_bytes: flow.awaits_bytes(),
            look_raw: if may_lose { 0 } else { NEVER },
        }
    }
}
