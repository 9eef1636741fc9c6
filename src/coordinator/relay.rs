//! Set-ups measured between two nodes: the coordinator passes each node's messages on to the other, until the first one
//! has measured.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::coordinator::links::{Links, StepFailure};
use crate::coordinator::meter::Meter;
use crate::coordinator::nodes::Node;
use crate::coordinator::observer::Observer;
use machine::threads;
use protocol::failure::RunFailure;
use protocol::message::{Message, Progress};

/// How often each direction looks whether it is to end.
const TICK: Duration = Duration::from_millis(10);

/// Has the nodes measure.
///
/// # Errors
/// The first failure of a node or its link, or the user's wish to stop.
pub(crate) fn measure(links: Links<'_>, observer: &mut dyn Observer) -> Result<(), StepFailure> {
    let [first, second] = links.members else {
        let text = "set-up is measured between two nodes";
        return Err(RunFailure::new(text, None).into());
    };
    let (first, second) = (first.node, second.node);
    links.tell_all(&Message::SetUp)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let back = threads::spawn_scoped(scope, "relay", || {
            let done = pass_on(second, first, || is_over.load(Ordering::Relaxed), |_| false);
            is_over.store(true, Ordering::Relaxed);
            done
        })
        .map_err(RunFailure::from)?;
        let mut shown = Shown { meter: Meter::new(1), observer };
        let forth = pass_on(
            first,
            second,
            || is_over.load(Ordering::Relaxed) || links.stop.load(Ordering::Relaxed),
            |message| shown.takes(message),
        );
        is_over.store(true, Ordering::Relaxed);
        // Where both failed, the node that followed did so first, or its failure says more than what came of it.
        match (back.join().unwrap_or(Ok(())), forth) {
            (Err(broken), _) | (Ok(()), Err(broken)) => Err(broken),
            (Ok(()), Ok(())) if links.stop.load(Ordering::Relaxed) => Err(StepFailure::Interrupted),
            (Ok(()), Ok(())) => Ok(()),
        }
    })
}

/// Passes on what comes from one node to the other, but for what `takes` takes, until the first has measured or `ends`.
fn pass_on(
    from: &Node,
    to: &Node,
    ends: impl Fn() -> bool,
    mut takes: impl FnMut(&Message) -> bool,
) -> Result<(), StepFailure> {
    let mut progress = from.link.peer_progress();
    while !ends() {
        let moved = from.link.peer_progress();
        if moved != std::mem::replace(&mut progress, moved) {
            to.link.progressed();
        }
        match from.next(TICK)? {
            Some(Message::Measured { .. }) => return Ok(()),
            Some(message) if !takes(&message) => to.send(&message)?,
            Some(_) | None => {}
        }
    }
    Ok(())
}

/// What the leading node tells the user.
struct Shown<'a> {
    meter: Meter,
    observer: &'a mut dyn Observer,
}

impl Shown<'_> {
    fn takes(&mut self, message: &Message) -> bool {
        match message {
            Message::Progress(progress) => self.progress(progress),
            Message::Phase { name, expected_ms } => {
                self.meter = Meter::new(1);
                self.observer.phase(name, expected_ms.map(Duration::from_millis));
            }
            _ => return false,
        }
        true
    }

    fn progress(&mut self, progress: &Progress) {
        match progress.messages {
            0 => self.observer.waiting(Duration::from_nanos(progress.elapsed_ns)),
            _ => self.meter.show(0, progress, self.observer),
        }
    }
}
