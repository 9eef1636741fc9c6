//! What a full socket did not take: copies that wait for room, in their order. It must not know who sends.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::copied_batch::CopiedBatch;
use crate::lock::Lock;

/// The most GSO batches that wait for one socket. Senders stop when the first one waits, so there are few.
const MOST_WAITING: usize = 64;

/// The queue of one socket.
#[derive(Default)]
pub struct Backlog {
    waiting: Lock<VecDeque<CopiedBatch>>,
    /// Whether any wait, readable without the lock.
    any: AtomicBool,
}

impl Backlog {
    /// Whether packets wait, behind which others must queue.
    pub fn is_full(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// Adds a batch at the end. Returns whether it is the first; `None` if there is no room even here.
    pub fn add(&self, batch: CopiedBatch) -> Option<bool> {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MOST_WAITING {
            return None;
        }
        waiting.push_back(batch);
        Some(!self.any.swap(true, Ordering::SeqCst))
    }

    /// Sends by `send` until that finds no room. Returns whether this has emptied the queue.
    pub fn go_on(&self, send: impl Fn(&CopiedBatch) -> io::Result<()>) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.is_empty() {
            // Another thread was faster.
            return false;
        }
        while let Some(first) = waiting.front() {
            match send(first) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                // A batch that was refused is lost, as if it had never waited.
                _ => drop(waiting.pop_front()),
            }
        }
        self.any.store(false, Ordering::SeqCst);
        true
    }
}
