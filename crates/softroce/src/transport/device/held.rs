//! QPs whose packets leave together. They stay locked until these are sent, so that no other thread's overtake them.

use std::sync::MutexGuard;

use crate::transport::device::outbox::Outbox;
use crate::transport::device::work::QpWork;
use crate::transport::qp_state::Requester;

/// The most of them.
const HELD_QPS: usize = 64;

/// Locked QPs that have packets in the outbox.
pub(crate) struct Held<'a> {
    requesters: [Option<MutexGuard<'a, Requester>>; HELD_QPS],
    count: usize,
}

impl<'a> Held<'a> {
    pub(crate) fn new() -> Held<'a> {
        Held { requesters: [const { None }; HELD_QPS], count: 0 }
    }

    /// Locks a QP and lets it add packets.
    pub(crate) fn add(
        &mut self,
        work: QpWork<'a>,
        outbox: &mut Outbox<'_>,
        transmit: impl FnOnce(&mut Requester, &mut Outbox<'_>),
    ) {
        let free = work.qp.requester.try_lock();
        if free.is_none() || self.count == HELD_QPS {
            // Waiting with other QPs locked could be for a thread that waits for those.
            self.send(outbox);
        }
        let mut requester = free.unwrap_or_else(|| work.qp.requester.lock());
        let before = outbox.sent_batches();
        transmit(&mut requester, outbox);
        if outbox.sent_batches() > before {
            self.release();
        }
        if requester.take_broke() {
            outbox.flush();
            drop(requester);
            work.qp.flush_receives();
            work.core.release_waiting();
        } else if let Some(place) = self.requesters.get_mut(self.count) {
            *place = Some(requester);
            self.count += 1;
        }
    }

    /// Sends the packets and unlocks the QPs.
    pub(crate) fn send(&mut self, outbox: &mut Outbox<'_>) {
        outbox.flush();
        self.release();
    }

    fn release(&mut self) {
        let held = self.requesters.get_mut(..self.count);
        held.unwrap_or_default().fill_with(|| None);
        self.count = 0;
    }
}
