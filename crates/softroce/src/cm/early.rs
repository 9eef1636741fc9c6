//! Requests that have come before anybody listens for them. They wait a little, in the order in which they came.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::timing::LISTENER_PATIENCE_NS;
use crate::wire::cm::Req;

/// The most that wait.
const MOST: usize = 64;

/// A request that waits.
pub(super) struct Early {
    due_ns: u64,
    pub(super) from: IpAddr,
    pub(super) transaction: u64,
    pub(super) req: Box<Req>,
}

/// The requests that wait.
#[derive(Default)]
pub(super) struct EarlyRequests(VecDeque<Early>);

impl EarlyRequests {
    /// Whether the request of this number waits already.
    pub(super) fn has(&self, from: IpAddr, comm: u32) -> bool {
        let same = |early: &Early| early.from == from && early.req.local_comm == comm;
        self.0.iter().any(same)
    }

    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.0.len() < MOST
    }

    pub(super) fn keep(&mut self, now: u64, from: IpAddr, transaction: u64, req: Box<Req>) {
        self.0.push_back(Early {
            due_ns: now + LISTENER_PATIENCE_NS,
            from,
            transaction,
            req,
        });
    }

    /// Takes those for a service.
    pub(super) fn take_for(&mut self, service: u64) -> VecDeque<Early> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (found, others) = all.partition(|early| early.req.service == service);
        self.0 = others;
        found
    }

    /// Takes one that has waited long enough.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Early> {
        self.next_ns().filter(|due_ns| *due_ns <= now)?;
        self.0.pop_front()
    }

    /// When the first has waited long enough.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.front().map(|early| early.due_ns)
    }
}
