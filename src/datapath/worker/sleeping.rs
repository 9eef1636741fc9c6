//! Sleeping after empty polls, for workers that do not poll for ever: a worker sleeps on its completion channel until
//! a completion or the next phase comes.

use std::time::Duration;

use super::spec::Sleep;
use super::window::NEVER;
use super::{Idle, Worker};
use settings::PollMode;
use verbs::VerbsError;

/// How long an adaptive worker polls in vain before it sleeps: about the latency that a sleep adds to a completion
/// (50 µs on the embedded device, less with an adapter's interrupt). Waiting as long as a sleep costs never takes
/// more than twice the time of the better choice.
const SPIN_NS: u64 = 50_000;

impl<const VERIFY: bool, const LATENCY: bool, const CONTENDED: bool, const SLEEPS: bool>
    Worker<'_, VERIFY, LATENCY, CONTENDED, SLEEPS>
{
    /// Called after each pass over all CQs.
    #[inline]
    pub(super) fn after_pass(&mut self, idle: &mut Idle, found: bool) {
        if found {
            idle.since_raw = None;
        } else {
            self.rest(idle);
        }
    }

    fn rest(&mut self, idle: &mut Idle) {
        let spec = self.spec;
        let Some(sleep) = &spec.sleep else {
            return;
        };
        // The next pass opens the window.
        if self.window.is_catching_up() {
            return;
        }
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

    /// See [`verbs::CompletionChannel::wait`] for why no completion is missed.
    fn sleep(&mut self, sleep: &Sleep) -> Result<(), VerbsError> {
        if self.arm()? {
            return Ok(());
        }
        // Wakes at an edge of the window, as for a completion.
        let until_edge = (self.window.edge_raw != NEVER).then(|| {
            let clock = &self.shared.clock;
            Duration::from_nanos(clock.ns_between(clock.raw(), self.window.edge_raw))
        });
        sleep.channel.wait(&sleep.wakeup, until_edge)?;
        self.woken();
        if CONTENDED {
            self.arm()?;
        }
        Ok(())
    }

    /// Arms all CQs; returns whether one of them was not armed before.
    fn arm(&self) -> Result<bool, VerbsError> {
        let mut news = false;
        for cq in &self.spec.cqs {
            news |= cq.arm()?;
        }
        Ok(news)
    }
}
