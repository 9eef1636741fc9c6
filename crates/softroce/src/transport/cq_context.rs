//! The state of a CQ: its completions, and whether the program waits for an event. It must not know what causes
//! completions.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::activity::Activity;
use super::completion::{Completion, Status};

/// The state of a CQ, shared by QPs and pollers.
pub(super) struct CqContext {
    activity: Arc<Activity>,
    ring: Mutex<Ring>,
    /// Completions in the ring, readable without the lock.
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

/// The CQ was full when a completion came. It is now broken, and so are its QPs.
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
    /// A CQ for at least `capacity` completions.
    pub(super) fn new(
        activity: &Arc<Activity>,
        capacity: usize,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> CqContext {
        CqContext {
            activity: Arc::clone(activity),
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

    /// Changes the capacity. `false` if more completions wait.
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

    /// Passes up to `most` completions to `take`, oldest first.
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

    /// Requests an event for the next completion, or only for the next solicited or failed one.
    pub(super) fn arm(&self, solicited_only: bool) {
        let wanted = if solicited_only { SOLICITED } else { ANY };
        // A request for solicited completions does not replace one for any completion.
        if self.armed.fetch_max(wanted, Ordering::SeqCst) == DISARMED {
            self.activity.cq_armed();
        }
        self.has_events.store(true, Ordering::Relaxed);
    }

    /// Whether the program has armed it before, so it does not only poll.
    pub(super) fn has_events(&self) -> bool {
        self.has_events.load(Ordering::Relaxed)
    }

    /// Raises the event now if one is requested for any completion and the CQ holds completions: the program has
    /// taken only some of them and is about to wait, and more may never come.
    pub(super) fn remind(&self) {
        let forgotten = self.waiting.load(Ordering::SeqCst) > 0;
        if forgotten
            && self
                .armed
                .compare_exchange(ANY, DISARMED, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok()
        {
            self.activity.cq_event_given();
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
            // Raise the event first, so that a thread whose poll fails finds the reason there.
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
            self.activity.cq_event_given();
            (self.on_event)();
        }
        true
    }

    /// Discards the completions of a QP.
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
            self.activity.cq_event_given();
        }
    }
}
