//! Requests that have come before anybody listens for them. They wait a little, in the order in which they came.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::timing::LISTENER_PATIENCE_NS;
use crate::wire::cm::CmMad;

const MOST: usize = 64;

/// A request for which nobody listens here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    pub from: IpAddr,
    /// The service that is asked for.
    pub service: u64,
    pub(super) number: u32,
    pub mad: CmMad,
}

/// The requests that wait, and until when.
#[derive(Default)]
pub(super) struct EarlyRequests(VecDeque<(u64, Unheard)>);

impl EarlyRequests {
    /// Whether the request of this number waits already.
    pub(super) fn has(&self, from: IpAddr, number: u32) -> bool {
        let mut waiting = self.0.iter().map(|(_, early)| (early.from, early.number));
        waiting.any(|early| early == (from, number))
    }

    /// Keeps one more; gives it back if there is no room.
    pub(super) fn keep(&mut self, now: u64, early: Unheard) -> Option<Unheard> {
        if self.0.len() >= MOST {
            return Some(early);
        }
        self.0.push_back((now + LISTENER_PATIENCE_NS, early));
        None
    }

    /// Takes those for a service.
    pub(super) fn take_for(&mut self, service: u64) -> impl Iterator<Item = Unheard> + use<> {
        let (found, others): (VecDeque<_>, _) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|(_, early)| early.service == service);
        self.0 = others;
        found.into_iter().map(|(_, early)| early)
    }

    /// Takes one that has waited long enough.
    pub(super) fn take_due(&mut self, now: u64) -> Option<Unheard> {
        self.next_ns().filter(|due_ns| *due_ns <= now)?;
        self.0.pop_front().map(|(_, early)| early)
    }

    /// When the first has waited long enough.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.0.front().map(|(due_ns, _)| *due_ns)
    }
}
