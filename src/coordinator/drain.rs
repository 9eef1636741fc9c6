//! How the coordinator brings both ends to rest, and how long it still tries once the user has asked to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam::channel::{RecvTimeoutError, Sender, bounded};

use crate::datapath::{Counts, Phase};
use crate::plan::Case;

use crate::coordinator::observer::Observer;
use crate::coordinator::stage::{Meter, Stage};
use crate::node::running_node::{Broken, RunningNode};
use crate::protocol::message::{Drained, Message};

/// Longest time for both ends to come to rest and report when there is a reason to end. Tearing down takes up to a second
/// on a busy machine, and the user who asked to stop is promised 3 s in all.
const GRACE: Duration = Duration::from_millis(1500);

/// A drain that takes longer is remarked on.
const LONG_DRAIN: Duration = Duration::from_secs(10);

/// Brings both ends to rest and checks what only shows then.
///
/// # Errors
/// As [`RunningNode::wait`]; wrong payloads.
pub(crate) fn drain(
    stage: &Stage<'_>,
    case: &Case,
    node: &RunningNode,
    stop: &AtomicBool,
    now: bool,
    observer: &mut dyn Observer,
) -> Result<Drained, Broken> {
    let link = stage.link;
    link.send(&Message::Stop { now })?;
    node.set_phase(Phase::Drain);
    let mut show = Show::new(case, node.counts(), observer);
    node.wait(link, stop, |counts| {
        show.counts(counts);
        node.at_rest()
    })?;
    link.send(&Message::Drained(Box::new(node.drained())))?;
    let peer = node.await_drained(link, stop)?;
    node.await_received(link, stop, &peer)?;
    node.verify(link, &peer)?;
    Ok(*peer)
}

/// How far a drain is.
struct Show<'a> {
    observer: &'a mut dyn Observer,
    meter: Meter,
    size_bytes: u32,
    started: Instant,
    at_start: Counts,
    is_remarked: bool,
}

impl<'a> Show<'a> {
    fn new(case: &Case, at_start: Counts, observer: &'a mut dyn Observer) -> Self {
        observer.phase("drain", None);
        Show {
            observer,
            meter: Meter::new(case),
            size_bytes: case.size_bytes,
            started: Instant::now(),
            at_start,
            is_remarked: false,
        }
    }

    fn counts(&mut self, counts: Counts) {
        let elapsed = self.started.elapsed();
        let done = counts.completed.saturating_sub(self.at_start.completed);
        self.meter.show(elapsed, done, self.observer);
        if elapsed >= LONG_DRAIN && !self.is_remarked {
            self.is_remarked = true;
            let left = counts.posted.saturating_sub(counts.completed);
            let rest = match done {
                0 => String::new(),
                done => {
                    let seconds = elapsed.as_secs_f64() * left as f64 / done as f64;
                    format!(", about {seconds:.0} s at this rate")
                }
            };
            self.observer.note(&format!(
                "the window is over; {left} messages of {} bytes are still in the send queues{rest}; a smaller \
                 --tx-depth or --size shortens this",
                self.size_bytes
            ));
        }
    }
}

/// The time that is left once the user has asked to stop, or nothing was measured: a stop flag that is set when it is
/// over.
pub(crate) struct Grace {
    over: Arc<AtomicBool>,
    /// Ends the timer when dropped.
    _timer: Sender<()>,
}

impl Grace {
    /// Begins now.
    pub(crate) fn begin() -> Grace {
        let over = Arc::new(AtomicBool::new(false));
        let (timer, dropped) = bounded(0);
        let for_timer = Arc::clone(&over);
        let thread = std::thread::Builder::new().name("grace".into());
        let spawned = thread.spawn(move || {
            if dropped.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                for_timer.store(true, Ordering::Relaxed);
            }
        });
        if spawned.is_err() {
            over.store(true, Ordering::Relaxed);
        }
        Grace {
            over,
            _timer: timer,
        }
    }

    /// Set when the time is over.
    pub(crate) fn over(&self) -> &AtomicBool {
        &self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grace_ends() {
        let grace = Grace::begin();
        assert!(!grace.over().load(Ordering::Relaxed));
        let started = Instant::now();
        while !grace.over().load(Ordering::Relaxed) {
            assert!(started.elapsed() < Duration::from_secs(20));
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(started.elapsed() >= GRACE);
    }
}
