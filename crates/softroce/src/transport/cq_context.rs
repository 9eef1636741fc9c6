//! What a CQ holds: completions, and whether the program waits for an event. It must not know how they come about.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::attention::Attention;
use super::completion::{Completion, Status};

/// What QPs and pollers share of a CQ.
pub(super) struct CqContext {
    attention: Arc<Attention>,
    ring: Mutex<Ring>,
    /// Completions in the ring, to see without the lock that there are none.
    waiting: AtomicUsize,
    armed: AtomicU8,
    has_events: AtomicBool,
    overrun: AtomicBool,
    on_event: Box<dyn Fn() + Send + Sync>,
    on_overrun: Box<dyn Fn() + Send + Sync>,
}

const DISARMED: u8 = 0;
const SOLICITED: u8 = 1;
const ANY: u8 = 2;

/// The CQ was full when a completion came: it is broken, as are the QPs on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

struct Ring {
    entries: Box<[Option<Completion>]>,
    first: usize,
    count: usize,
}

impl Ring {
    fn new(capacity: usize) -> Ring {
        Ring {
            entries: vec![None; capacity.max(1).next_power_of_two()].into(),
            first: 0,
            count: 0,
        }
    }

    fn put(&mut self, completion: Completion) -> bool {
        let mask = self.entries.len() - 1;
        let room = self.count < self.entries.len();
        if room && let Some(entry) = self.entries.get_mut((self.first + self.count) & mask) {
            *entry = Some(completion);
            self.count += 1;
        }
        room
    }

    fn take(&mut self) -> Option<Completion> {
        let mask = self.entries.len() - 1;
        let entry = self.entries.get_mut(self.first & mask)?.take()?;
        self.first = (self.first + 1) & mask;
        self.count -= 1;
        Some(entry)
    }
}

impl CqContext {
    /// Room for at least `capacity` completions.
    pub(super) fn new(
        attention: &Arc<Attention>,
        capacity: usize,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> CqContext {
        CqContext {
            attention: Arc::clone(attention),
            ring: Mutex::new(Ring::new(capacity)),
            waiting: AtomicUsize::new(0),
            armed: AtomicU8::new(DISARMED),
            has_events: AtomicBool::new(false),
            overrun: AtomicBool::new(false),
            on_event,
            on_overrun,
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn capacity(&self) -> usize {
        self.ring().entries.len()
    }

    /// Changes the room. `false` if more completions wait than that.
    pub(super) fn resize(&self, capacity: usize) -> bool {
        let mut ring = self.ring();
        let mut new = Ring::new(capacity);
        if ring.count > new.entries.len() {
            return false;
        }
        while let Some(completion) = ring.take() {
            new.put(completion);
        }
        *ring = new;
        true
    }

    /// Whether there are no completions.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Hands up to `most` completions to `take`, oldest first.
    ///
    /// # Errors
    /// After an overrun.
    pub(super) fn take(
        &self,
        most: usize,
        mut take: impl FnMut(&Completion),
    ) -> Result<usize, Overrun> {
        let mut ring = self.ring();
        self.intact()?;
        let mut taken = 0;
        while taken < most
            && let Some(completion) = ring.take()
        {
            take(&completion);
            taken += 1;
        }
        self.waiting.store(ring.count, Ordering::Release);
        Ok(taken)
    }

    pub(super) fn intact(&self) -> Result<(), Overrun> {
        if self.overrun.load(Ordering::Acquire) {
            Err(Overrun)
        } else {
            Ok(())
        }
    }

    /// Asks for an event on the next completion, or the next solicited or failed one.
    pub(super) fn arm(&self, solicited_only: bool) {
        let wanted = if solicited_only { SOLICITED } else { ANY };
        // An arming for any completion is not narrowed by one for solicited ones.
        if self.armed.fetch_max(wanted, Ordering::SeqCst) == DISARMED {
            self.attention.program_sleeps();
        }
        self.has_events.store(true, Ordering::Relaxed);
    }

    /// Whether the program sleeps on it at times, rather than polling.
    pub(super) fn has_events(&self) -> bool {
        self.has_events.load(Ordering::Relaxed)
    }

    /// Gives the event now if one was asked for on any completion, and completions were left in the CQ: a program
    /// is about to wait for it that took some of them only, and more may never come.
    pub(super) fn remind(&self) {
        let forgotten = self.waiting.load(Ordering::SeqCst) > 0;
        if forgotten
            && self
                .armed
                .compare_exchange(ANY, DISARMED, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            self.attention.program_wakes();
            (self.on_event)();
        }
    }

    /// Adds a completion; `false` if the CQ is broken.
    pub(super) fn push(&self, completion: Completion) -> bool {
        let mut ring = self.ring();
        if self.intact().is_err() {
            return false;
        }
        if !ring.put(completion) {
            // The event first: who then polls in vain finds the reason there.
            (self.on_overrun)();
            self.overrun.store(true, Ordering::Release);
            return false;
        }
        self.waiting.store(ring.count, Ordering::SeqCst);
        drop(ring);
        let armed = self.armed.load(Ordering::SeqCst);
        let wanted = armed == ANY
            || (armed == SOLICITED
                && (completion.solicited || completion.status != Status::Success));
        if wanted && self.armed.swap(DISARMED, Ordering::SeqCst) != DISARMED {
            self.attention.program_wakes();
            (self.on_event)();
        }
        true
    }

    /// Forgets the completions of a QP.
    pub(super) fn purge(&self, qpn: u32) {
        let mut ring = self.ring();
        let mut kept = Ring::new(ring.entries.len());
        while let Some(completion) = ring.take() {
            if completion.qpn != qpn {
                kept.put(completion);
            }
        }
        self.waiting.store(kept.count, Ordering::Release);
        *ring = kept;
    }
}

impl Drop for CqContext {
    fn drop(&mut self) {
        if *self.armed.get_mut() != DISARMED {
            self.attention.program_wakes();
        }
    }
}
