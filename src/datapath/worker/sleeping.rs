//! What a worker does after a pass that found nothing, where it is not to poll for ever: it sleeps on its
//! completion channel until a completion or the next phase comes.

use std::sync::Arc;

use super::Worker;
use crate::plan::PollMode;
use crate::verbs::{Bell, CompletionChannel, VerbsError};

/// How long an adaptive worker polls in vain before it sleeps: about what a sleep adds to a completion's latency
/// (50 µs on the embedded device, less behind an adapter's interrupt). Who waits as long as the other choice costs never
/// pays more than twice what the right one would have.
const SPIN_NS: u64 = 50_000;

/// Where a worker sleeps.
#[derive(Clone)]
pub struct Sleep {
    /// The channel of all its CQs; with a shared CQ also that of the other workers.
    pub channel: Arc<CompletionChannel>,
    /// Wakes this worker alone, when a phase begins.
    pub bell: Arc<Bell>,
}

/// Since when a worker has found nothing.
#[derive(Default)]
pub(super) struct Idle {
    found: bool,
    since_raw: Option<u64>,
}

impl Idle {
    /// A completion came.
    #[inline]
    pub(super) fn ends(&mut self) {
        self.found = true;
    }
}

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const SLEEPS: bool>
    Worker<'_, VERIFY, LATENCY, CONTENDED, SLEEPS>
{
    /// After each pass over all CQs.
    #[inline]
    pub(super) fn after_pass(&mut self, idle: &mut Idle) {
        if std::mem::take(&mut idle.found) {
            idle.since_raw = None;
        } else {
            self.rest(idle);
        }
    }

    fn rest(&mut self, idle: &mut Idle) {
        let Some(sleep) = &self.spec.sleep else {
            return;
        };
        if self.shared.case.poll == PollMode::Adaptive {
            let clock = &self.shared.clock;
            let now_raw = clock.raw();
            let since_raw = *idle.since_raw.get_or_insert(now_raw);
            if clock.ns_between(since_raw, now_raw) < SPIN_NS {
                std::hint::spin_loop();
                return;
            }
        }
        if let Err(error) = self.sleep(sleep) {
            self.refused(error);
        }
    }

    /// See [`CompletionChannel::wait`] for why no completion is slept over.
    fn sleep(&self, sleep: &Sleep) -> Result<(), VerbsError> {
        if self.arm()? {
            return Ok(());
        }
        sleep.channel.wait(&sleep.bell)?;
        if CONTENDED {
            self.arm()?;
        }
        Ok(())
    }

    /// Asks all CQs for an event; whether that was news to one of them.
    fn arm(&self) -> Result<bool, VerbsError> {
        let mut news = false;
        for cq in &self.spec.cqs {
            news |= cq.arm()?;
        }
        Ok(news)
    }
}
