//! Completions, and the state of a CQ: its ring of them, and whether the program waits for an event.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::sync::Arc;

use crate::sync::{AtomicBool, AtomicU8, AtomicUsize, Lock, Ordering};
use crate::transport::timing::Activity;

/// The status of a work request; the numbers are those of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is libibverbs' name
pub enum Status {
    Success = 0,
    LocalLengthError = 1,
    LocalProtectionError = 4,
    FlushError = 5,
    MwBindError = 6,
    LocalAccessError = 8,
    RemoteInvalidRequestError = 9,
    RemoteAccessError = 10,
    RemoteOperationError = 11,
    RetryExceededError = 12,
    RnrRetryExceededError = 13,
}

/// The kind of a completed operation; the numbers are those of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is libibverbs' name
pub enum CompletionKind {
    Send = 0,
    RdmaWrite = 1,
    RdmaRead = 2,
    CompareSwap = 3,
    FetchAdd = 4,
    BindMw = 5,
    LocalInvalidate = 6,
    Receive = 128,
    ReceiveRdmaWithImmediate = 129,
}

/// What a message brings besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    Nothing,
    /// Immediate data, as on the wire.
    Immediate(u32),
    /// The key of the memory window that it has invalidated.
    Invalidated(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    pub wr_id: u64,
    /// Its status. If it is an error, only `wr_id`, `status` and `qpn` are defined.
    pub status: Status,
    pub kind: CompletionKind,
    /// Bytes received, read or written; for a datagram including the 40 bytes of the global header.
    pub length_bytes: u32,
    /// What came with the bytes.
    pub attached: Attached,
    /// The number of the QP whose request or receive it completes.
    pub qpn: u32,
    /// The QP that sent a datagram.
    pub source_qpn: u32,
    /// Whether a datagram's 40 bytes of global header precede the payload.
    pub has_grh: bool,
    /// Whether the sender asked for an event.
    pub solicited: bool,
}

impl Completion {
    /// One that tells nothing but this.
    pub(crate) fn new(qpn: u32, wr_id: u64, status: Status, kind: CompletionKind) -> Completion {
        Completion {
            wr_id,
            status,
            kind,
            length_bytes: 0,
            attached: Attached::Nothing,
            qpn,
            source_qpn: 0,
            has_grh: false,
            solicited: false,
        }
    }
}

const _: () = assert!(size_of::<Completion>() == 32);

/// The state of a CQ, shared by QPs and pollers.
pub(crate) struct CqContext {
    activity: Arc<Activity>,
    ring: Lock<Ring>,
    /// Completions in the ring, readable without the lock.
    waiting: AtomicUsize,
    armed: AtomicU8,
    has_events: AtomicBool,
    /// Whether an event was raised since the program last took completions: it knows that there are some.
    informed: AtomicBool,
    overrun: AtomicBool,
    on_event: Box<dyn Fn() + Send + Sync>,
    on_overrun: Box<dyn Fn() + Send + Sync>,
}

const DISARMED: u8 = 0;
const SOLICITED: u8 = 1;
const ANY: u8 = 2;

/// A completion found the CQ full, so it and its QPs are broken; or the CQ is of the process that this one was forked
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenCq;

/// Completions, oldest first. Its memory is allocated once.
struct Ring {
    completions: VecDeque<Completion>,
    /// When each was put here; empty where the program did not ask for it.
    stamps_ns: VecDeque<u64>,
    has_stamps: bool,
    capacity: usize,
}

impl Ring {
    fn new(at_least: usize, has_stamps: bool) -> Ring {
        let capacity = at_least.max(1).next_power_of_two();
        // Filled once: no completion waits for the kernel to give a page.
        let blank = Completion::new(0, 0, Status::Success, CompletionKind::Receive);
        let mut completions: VecDeque<_> = repeat_n(blank, capacity).collect();
        let mut stamps_ns: VecDeque<_> =
            repeat_n(0, if has_stamps { capacity } else { 0 }).collect();
        completions.clear();
        stamps_ns.clear();
        Ring { completions, stamps_ns, has_stamps, capacity }
    }

    fn put(&mut self, completion: Completion, stamp_ns: impl FnOnce() -> u64) -> bool {
        let room = self.completions.len() < self.capacity;
        if room {
            self.completions.push_back(completion);
            if self.has_stamps {
                self.stamps_ns.push_back(stamp_ns());
            }
        }
        room
    }

    /// The oldest, and its stamp: 0 where there are none.
    fn take(&mut self) -> Option<(Completion, u64)> {
        let completion = self.completions.pop_front()?;
        Some((completion, self.stamps_ns.pop_front().unwrap_or(0)))
    }

    /// Those that are kept, in a ring of this capacity.
    fn moved(&mut self, capacity: usize, keep: impl Fn(&Completion) -> bool) -> Ring {
        let mut new = Ring::new(capacity, self.has_stamps);
        while let Some((completion, stamp_ns)) = self.take() {
            if keep(&completion) {
                new.put(completion, || stamp_ns);
            }
        }
        new
    }
}

impl CqContext {
    /// A CQ for at least `capacity` completions, which are stamped if `has_stamps`.
    pub(crate) fn new(
        activity: &Arc<Activity>,
        capacity: usize,
        has_stamps: bool,
        on_event: Box<dyn Fn() + Send + Sync>,
        on_overrun: Box<dyn Fn() + Send + Sync>,
    ) -> CqContext {
        CqContext {
            activity: Arc::clone(activity),
            ring: Lock::new(Ring::new(capacity, has_stamps)),
            waiting: AtomicUsize::new(0),
            armed: AtomicU8::new(DISARMED),
            has_events: AtomicBool::new(false),
            informed: AtomicBool::new(false),
            overrun: AtomicBool::new(false),
            on_event,
            on_overrun,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.ring.lock().capacity
    }

    /// Changes the capacity. `false` if more completions wait.
    pub(crate) fn resize(&self, capacity: usize) -> bool {
        let mut ring = self.ring.lock();
        let fits = ring.completions.len() <= capacity.max(1).next_power_of_two();
        if fits {
            *ring = ring.moved(capacity, |_| true);
        }
        fits
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Acquire) == 0
    }

    /// Passes up to `most` completions to `take`, oldest first, each with its stamp.
    ///
    /// # Errors
    /// After an overrun.
    pub(crate) fn take(
        &self,
        most: usize,
        mut take: impl FnMut(&Completion, u64),
    ) -> Result<usize, BrokenCq> {
        let mut ring = self.ring.lock();
        self.intact()?;
        let mut taken = 0;
        while taken < most
            && let Some((completion, stamp_ns)) = ring.take()
        {
            take(&completion, stamp_ns);
            taken += 1;
        }
        self.waiting.store(ring.completions.len(), Ordering::Release);
        self.informed.store(false, Ordering::Relaxed);
        Ok(taken)
    }

    pub(crate) fn intact(&self) -> Result<(), BrokenCq> {
        if self.overrun.load(Ordering::Acquire) { Err(BrokenCq) } else { Ok(()) }
    }

    /// Requests an event for the next completion, or only for the next solicited or failed one. The next is the next
    /// that the program does not know of: programs (UCX) that found the CQ empty, request an event and wait miss what
    /// came in between, unless it raises the event at once, as on adapters.
    pub(crate) fn arm(&self, solicited_only: bool) {
        let wanted = if solicited_only { SOLICITED } else { ANY };
        // A request for solicited completions does not replace one for any completion.
        if self.armed.fetch_max(wanted, Ordering::SeqCst) == DISARMED {
            self.activity.cq_armed();
        }
        self.has_events.store(true, Ordering::Relaxed);
        let unknown =
            self.waiting.load(Ordering::SeqCst) > 0 && !self.informed.load(Ordering::Relaxed);
        if unknown {
            self.give_event_if(|ring| ring.completions.iter().any(|it| self.is_wanted(it)));
        }
    }

    /// Whether the program requested an event for such a completion.
    fn is_wanted(&self, completion: &Completion) -> bool {
        match self.armed.load(Ordering::SeqCst) {
            ANY => true,
            SOLICITED => completion.solicited || completion.status != Status::Success,
            _ => false,
        }
    }

    /// Raises the event if these completions are to raise it and no other thread has.
    fn give_event_if(&self, raises: impl FnOnce(&Ring) -> bool) {
        let ring = self.ring.lock();
        let is_due = raises(&ring) && self.take_request();
        drop(ring);
        if is_due {
            self.give_event();
        }
    }

    /// Takes the program's request for an event; the caller gives the event. It is taken under the lock of the ring: a program
    /// that hears of a completion from another thread and requests the next event gets no second one for the same completion.
    /// perftest would take it for one of its other CQ.
    fn take_request(&self) -> bool {
        let taken = self.armed.swap(DISARMED, Ordering::SeqCst) != DISARMED;
        if taken {
            self.informed.store(true, Ordering::Relaxed);
        }
        taken
    }

    /// Gives the event of a request that was taken.
    fn give_event(&self) {
        self.activity.cq_event_given();
        (self.on_event)();
    }

    /// Whether the program has armed it before, so it does not only poll.
    pub(crate) fn has_events(&self) -> bool {
        self.has_events.load(Ordering::Relaxed)
    }

    /// Raises the event now if one is requested for any completion and the CQ holds completions: the program has
    /// taken only some of them and is about to wait, and more may never come.
    pub(crate) fn remind(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 && self.requests_any() {
            self.give_event_if(|ring| !ring.completions.is_empty() && self.requests_any());
        }
    }

    /// Whether an event is requested for any completion.
    fn requests_any(&self) -> bool {
        self.armed.load(Ordering::SeqCst) == ANY
    }

    /// Adds a completion; `false` if the CQ is broken.
    pub(crate) fn push(&self, completion: Completion) -> bool {
        let mut ring = self.ring.lock();
        if self.intact().is_err() {
            return false;
        }
        if !ring.put(completion, || self.activity.now_ns()) {
            // Raise the event first, so that a thread whose poll fails finds the reason there.
            (self.on_overrun)();
            self.overrun.store(true, Ordering::Release);
            return false;
        }
        self.waiting.store(ring.completions.len(), Ordering::SeqCst);
        let is_due = self.is_wanted(&completion) && self.take_request();
        drop(ring);
        if is_due {
            self.give_event();
        }
        true
    }

    /// Discards the completions of a QP.
    pub(crate) fn purge(&self, qpn: u32) {
        let mut ring = self.ring.lock();
        let capacity = ring.capacity;
        *ring = ring.moved(capacity, |completion| completion.qpn != qpn);
        self.waiting.store(ring.completions.len(), Ordering::Release);
    }
}

impl Drop for CqContext {
    fn drop(&mut self) {
        if self.armed.load(Ordering::Relaxed) != DISARMED {
            self.activity.cq_event_given();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::net::{Clock, now_ns};

    #[test]
    fn stamps_stay_with_their_completions() {
        let activity = Arc::new(Activity::new(Clock::Machine, -1).unwrap());
        let cq = |has_stamps| {
            let (event, overrun) = (Box::new(|| {}), Box::new(|| {}));
            CqContext::new(&activity, 4, has_stamps, event, overrun)
        };
        let (stamped, plain) = (cq(true), cq(false));
        let before_ns = now_ns();
        for number in 0..3 {
            assert!(stamped.push(completion(number)) && plain.push(completion(number)));
        }
        let after_ns = now_ns();
        assert!(stamped.resize(8));
        stamped.purge(2);
        let mut last_ns = before_ns;
        let taken = stamped.take(8, |_, stamp_ns| {
            assert!((last_ns..=after_ns).contains(&stamp_ns));
            last_ns = stamp_ns;
        });
        assert_eq!(taken, Ok(3));
        assert_eq!(plain.take(8, |_, stamp_ns| assert_eq!(stamp_ns, 0)), Ok(3));
    }

    fn completion(number: usize) -> Completion {
        Completion::new(1, number as u64, Status::Success, CompletionKind::Receive)
    }
}
