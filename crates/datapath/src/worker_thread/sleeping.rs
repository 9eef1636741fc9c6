//! Sleeping after empty passes, for threads that do not poll for ever: a thread sleeps until a completion of any CQ of
//! any of its flows, the next edge of any of their windows, or the next phase of any of them.
//!
//! Which channels it sleeps on: the CQs that are polled by exactly the same threads of a node (and are of one device)
//! are on one channel, and a thread sleeps on all channels that have CQs of its own. So a thread has one channel for
//! all the CQs that it alone polls, and one for those that it shares with the same other threads. A channel must have no
//! CQ that one of its threads does not poll: any of them may take the event of any CQ, and a thread that took one of a CQ
//! that it does not poll would leave the completion unseen and the CQ unarmed. Where several threads poll a CQ, who takes
//! its event arms it again at once (`Service::woken`), so that another thread is woken for what comes meanwhile.

use std::time::Duration;

use super::super::worker::{Service, Sleep};
use metrics::clock::Clock;
use verbs::VerbsError;

/// How long an adaptive thread polls in vain before it sleeps: about the latency that a sleep adds to a completion
/// (50 µs on the embedded device, less with an adapter's interrupt). Waiting as long as a sleep costs never takes
/// more than twice the time of the better choice.
const SPIN_NS: u64 = 50_000;

pub(super) struct Sleeping {
    sleep: Sleep,
    clock: Clock,
    /// Since when its passes have been empty.
    empty_since_raw: Option<u64>,
}

impl Sleeping {
    pub(super) fn new(sleep: Sleep, clock: Clock) -> Self {
        Sleeping { sleep, clock, empty_since_raw: None }
    }

    /// Called after a pass that found completions.
    #[inline]
    pub(super) fn stay_awake(&mut self) {
        self.empty_since_raw = None;
    }

    /// Called after a pass that found nothing.
    pub(super) fn rest(&mut self, service: &mut impl Service) {
        // The next pass opens a window.
        if service.is_catching_up() {
            return;
        }
        if self.sleep.adaptive {
            let now_raw = self.clock.raw();
            let since_raw = *self.empty_since_raw.get_or_insert(now_raw);
            if self.clock.ns_between(since_raw, now_raw) < SPIN_NS {
                std::hint::spin_loop();
                return;
            }
        }
        if let Err(error) = self.sleep(service) {
            service.sleep_refused(error);
        }
    }

    /// See [`verbs::Sleeper::wait`] for why no completion is missed.
    fn sleep(&mut self, service: &mut impl Service) -> Result<(), VerbsError> {
        if service.arm() {
            return Ok(());
        }
        // Wakes at an edge of a window, as for a completion.
        let until_edge = service.edge_raw().map(|edge_raw| {
            Duration::from_nanos(self.clock.ns_between(self.clock.raw(), edge_raw))
        });
        self.sleep.sleeper.wait(until_edge)?;
        service.woken();
        Ok(())
    }
}
