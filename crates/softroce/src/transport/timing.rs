//! When a device works: who polls, what waits for the next poll, until when all is handled, and timers.
//!
//! [`Activity`] coordinates the engine with programs that poll or sleep: tells the engine when no program does the device's work,
//! and a poller when to check the socket.
//!
//! [`Corked`]: posts that wait for the program's next poll. A program that posts one request a call would pay a system call for
//! each; so while packets are in flight its next ones wait until it polls, and those of many calls and QPs leave
//! together.
//!
//! [`HandledUntil`]: until when a device has handled all that arrived. A time-out is believed only up to then, since an answer that
//! lies unread in the own socket is in time, however late a thread had a core to take it.
//!
//! [`Timers`]: when the timers of QPs are due, the earliest first. A QP has one entry at most, so the memory is bounded, and the
//! cost of a due timer does not depend on how many QPs there are.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::RawFd;

use crate::net::{Clock, Inbox, SENDING_SOCKETS, Wakeup};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Lock, Ordering};

/// A program that polled within this time counts as polling.
pub(crate) const POLLER_IS_NEAR_NS: u64 = 50_000;
/// A poller checks an empty socket at most this often, because each check costs a system call.
const LOOK_AGAIN_NS: u64 = 60;
/// A poller that has found nothing for this long yields its core after each check. Longer than a round trip between
/// two pollers with a core each, so those lose nothing.
const PATIENCE_NS: u64 = 20_000;

/// Which threads work for the device, and when the next timer is due.
pub(crate) struct Activity {
    clock: Clock,
    socket: RawFd,
    wakeup: Wakeup,
    stop: AtomicBool,
    /// When a program last polled or posted; `u64::MAX` while it sends or handles packets.
    polled_ns: AtomicU64,
    /// CQs whose programs wait for an event.
    armed_cqs: AtomicUsize,
    /// When a poller last found nothing.
    found_nothing_ns: AtomicU64,
    /// When a poller last found something.
    found_ns: AtomicU64,
    /// The earliest timer of any QP, or earlier.
    next_timer_ns: AtomicU64,
    /// When the first packet delayed by faults is due, or earlier.
    next_departure_ns: AtomicU64,
    /// When the engine will wake without a wakeup; 0 while it is awake.
    wakes_ns: AtomicU64,
    /// Whether it sleeps without being woken by packets.
    naps: AtomicBool,
    /// Whether a packet that no socket announces is to wake it, and none has yet.
    listens: AtomicBool,
}

impl Activity {
    pub(crate) fn new(clock: Clock, socket: RawFd) -> io::Result<Activity> {
        Ok(Activity {
            clock,
            socket,
            wakeup: Wakeup::new()?,
            stop: AtomicBool::new(false),
            polled_ns: AtomicU64::new(0),
            armed_cqs: AtomicUsize::new(0),
            found_nothing_ns: AtomicU64::new(0),
            found_ns: AtomicU64::new(0),
            next_timer_ns: AtomicU64::new(u64::MAX),
            next_departure_ns: AtomicU64::new(u64::MAX),
            wakes_ns: AtomicU64::new(0),
            naps: AtomicBool::new(false),
            listens: AtomicBool::new(false),
        })
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// When there is something to do that no packet announces; `u64::MAX` for never.
    pub(crate) fn next_due_ns(&self) -> u64 {
        let timer_ns = self.next_timer_ns.load(Ordering::SeqCst);
        timer_ns.min(self.next_departure_ns.load(Ordering::SeqCst))
    }

    pub(crate) fn socket(&self) -> RawFd {
        self.socket
    }

    /// Called when a program polls; returns whether to check the socket.
    pub(crate) fn should_check_socket(&self, now_ns: u64) -> bool {
        self.polled_ns.store(now_ns, Ordering::Relaxed);
        now_ns.saturating_sub(self.found_nothing_ns.load(Ordering::Relaxed)) >= LOOK_AGAIN_NS
    }

    /// Called when a program starts to send or to handle packets, which may take long; it will poll afterwards.
    pub(crate) fn begin_call(&self) {
        self.polled_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// Called when that call has ended.
    pub(crate) fn end_call(&self, now_ns: u64) {
        self.polled_ns.store(now_ns, Ordering::Relaxed);
    }

    /// Called when a CQ is armed: packets wake the engine until the event is given.
    pub(crate) fn cq_armed(&self) {
        self.armed_cqs.fetch_add(1, Ordering::SeqCst);
        if self.naps.load(Ordering::SeqCst) {
            self.wakeup.wake();
        }
    }

    pub(crate) fn cq_event_given(&self) {
        self.armed_cqs.fetch_sub(1, Ordering::SeqCst);
    }

    /// Called when a poller found nothing; returns whether to yield the core, because a thread that has none may have
    /// to do what the poller waits for.
    pub(crate) fn poller_found_nothing(&self) -> bool {
        let now = self.now_ns();
        self.found_nothing_ns.store(now, Ordering::Relaxed);
        now.saturating_sub(self.found_ns.load(Ordering::Relaxed)) > PATIENCE_NS
    }

    /// Called when a poller has handled what it found.
    pub(crate) fn poller_found(&self, now_ns: u64) {
        self.found_ns.store(now_ns, Ordering::Relaxed);
        self.polled_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.wake();
    }

    pub(crate) fn ends(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Wakes an engine that sleeps, for a socket that is full: it looks for one when it is about to sleep.
    pub(crate) fn wake(&self) {
        if self.wakes_ns.load(Ordering::SeqCst) != 0 {
            self.wakeup.wake();
        }
    }

    /// Wakes the engine for a packet that no socket announces, unless a program polls and finds it.
    pub(crate) fn packets_came(&self) {
        if self.listens.load(Ordering::SeqCst)
            && !(self.naps.load(Ordering::SeqCst) && self.poller_is_near(self.now_ns()))
            && self.listens.swap(false, Ordering::SeqCst)
        {
            self.wakeup.wake();
        }
    }

    /// Whether the engine will look by then for posts that wait for a poll.
    pub(crate) fn looks_by(&self, ns: u64) -> bool {
        !self.naps.load(Ordering::SeqCst) || self.wakes_ns.load(Ordering::SeqCst) <= ns
    }

    /// Records that a QP has a timer at this time.
    pub(crate) fn timer_at(&self, ns: u64) {
        self.awake_at(&self.next_timer_ns, ns);
    }

    /// Called when posts wait for a poll, which may not come: an engine that sleeps, or is about to, sends them at this time.
    /// One that naps looks for them when it wakes.
    pub(crate) fn posts_wait(&self, until_ns: u64) {
        if !self.naps.load(Ordering::SeqCst) {
            self.timer_at(until_ns);
        }
    }

    /// Records that packets delayed by faults, or QPs with a rate, may go at this time.
    pub(crate) fn departure_at(&self, ns: u64) {
        self.awake_at(&self.next_departure_ns, ns);
    }

    fn awake_at(&self, next_ns: &AtomicU64, ns: u64) {
        next_ns.fetch_min(ns, Ordering::SeqCst);
        if ns < self.wakes_ns.load(Ordering::SeqCst) && !self.naps.load(Ordering::SeqCst) {
            self.wakeup.wake();
        }
    }

    /// Whether a timer is due. The caller then runs those that are, and sets the next with [`Activity::timer_at`].
    pub(crate) fn take_due_timer(&self, now_ns: u64) -> bool {
        take_due(&self.next_timer_ns, now_ns)
    }

    /// Whether a delayed packet is due. The caller then releases those that are, and sets the next with
    /// [`Activity::departure_at`].
    pub(crate) fn take_due_departure(&self, now_ns: u64) -> bool {
        take_due(&self.next_departure_ns, now_ns)
    }

    pub(crate) fn since_polled_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.polled_ns.load(Ordering::SeqCst))
    }

    pub(crate) fn poller_is_near(&self, now_ns: u64) -> bool {
        self.armed_cqs.load(Ordering::SeqCst) == 0
            && self.since_polled_ns(now_ns) < POLLER_IS_NEAR_NS
    }

    /// When a timer ends such a sleep; `u64::MAX` for never.
    fn timer_ns(&self, why: Sleep) -> u64 {
        match why {
            // Timers are for the program that polls. It may have been interrupted in the middle of a call: an engine that
            // woke for a timer of its would take its core, do nothing for it, and keep it waiting for a turn of the scheduler.
            Sleep::NearPoller => u64::MAX,
            _ => self.next_due_ns(),
        }
    }

    /// Sleeps until woken, until `latest_ns`, until a timer (not near a poller), until packets come (on the socket alone), or,
    /// unless behind another's work, until a full socket has room; `full_sockets` names those, and `inbox` is where packets
    /// come without a socket.
    pub(crate) fn sleep(
        &self,
        latest_ns: u64,
        why: Sleep,
        inbox: Option<&Inbox>,
        full_sockets: impl FnOnce() -> Option<[RawFd; SENDING_SOCKETS]>,
    ) {
        // Store this before reading the timers: a timer set from now on wakes the engine.
        self.wakes_ns.store(u64::MAX, Ordering::SeqCst);
        let until_ns = latest_ns.min(self.timer_ns(why));
        self.wakes_ns.store(until_ns, Ordering::SeqCst);
        let stays = until_ns.min(self.timer_ns(why)) == until_ns;
        self.naps.store(why == Sleep::NearPoller, Ordering::SeqCst);
        // A program that armed a CQ before `naps` was set did not wake the engine.
        self.listens.store(inbox.is_some() && why != Sleep::BehindWork, Ordering::SeqCst);
        let needed = match why {
            Sleep::NearPoller => self.poller_is_near(self.now_ns()),
            Sleep::BehindWork => true,
            Sleep::OnSocket => !inbox.is_some_and(Inbox::has_some),
        };
        if stays && needed && !self.stop.load(Ordering::SeqCst) {
            let wait_ns = match until_ns {
                u64::MAX => u64::MAX,
                until_ns => until_ns.saturating_sub(self.now_ns()),
            };
            // Asked after the store to `wakes_ns`: a socket that fills up from now on wakes the engine.
            let (socket, full) = match why {
                Sleep::OnSocket => (Some(self.socket), full_sockets()),
                Sleep::NearPoller => (None, full_sockets()),
                Sleep::BehindWork => (None, None),
            };
            self.wakeup.wait(socket, full, wait_ns);
        }
        self.listens.store(false, Ordering::SeqCst);
        self.naps.store(false, Ordering::SeqCst);
        self.wakes_ns.store(0, Ordering::SeqCst);
    }
}

/// Whether this time has come; then it is set to never.
fn take_due(next_ns: &AtomicU64, now_ns: u64) -> bool {
    let next = next_ns.load(Ordering::Relaxed);
    next <= now_ns
        && next_ns.compare_exchange(next, u64::MAX, Ordering::SeqCst, Ordering::SeqCst).is_ok()
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sleep {
    /// There is nothing to do.
    OnSocket,
    /// A program polls. It arms a CQ before it sleeps, which ends the nap.
    NearPoller,
    /// Another thread does the work.
    BehindWork,
}

/// So many requests leave without waiting for a poll.
const MOST_CORKED_REQUESTS: usize = 64;
/// A call that posts more bytes does not wait: it fills system calls by itself.
pub(crate) const MOST_CORKED_BYTES: u64 = 16 << 10;
/// A program that has not polled for this long after a post does not poll for it: the engine sends.
pub(crate) const CORKED_LATE_NS: u64 = 10_000;
/// After that so many calls are sent at once: more each time, as long as it does not poll in time.
const DISTRUSTED_CALLS: [u32; 4] = [16, 64, 256, 1024];

/// The QPs with such posts.
#[derive(Default)]
pub(crate) struct Corked {
    qps: Lock<VecDeque<u32>>,
    /// Their requests; readable without the lock.
    requests: AtomicUsize,
    /// When the first of them was posted.
    since_ns: AtomicU64,
    /// Calls left that are sent at once.
    distrusted: AtomicU32,
    /// How often in succession it did not poll in time.
    late_times: AtomicUsize,
    /// Datagrams were sent since the last poll.
    has_sent: AtomicBool,
    /// Posts have waited, or would have, since the engine last asked.
    was_wanted: AtomicBool,
}

impl Corked {
    pub(crate) fn may_wait(&self) -> bool {
        if !self.was_wanted.load(Ordering::Relaxed) {
            self.was_wanted.store(true, Ordering::Relaxed);
        }
        let left = self.distrusted.load(Ordering::Relaxed);
        if left > 0 {
            self.distrusted.store(left - 1, Ordering::Relaxed);
        }
        left == 0
    }

    /// Whether posts have waited, or would have, since the last call.
    pub(crate) fn take_wanted(&self) -> bool {
        self.was_wanted.swap(false, Ordering::Relaxed)
    }

    /// Adds requests of a QP, and the QP if it `is_new` here. Returns whether there are enough to be sent.
    pub(crate) fn add(&self, qpn: u32, is_new: bool, requests: usize, now_ns: u64) -> bool {
        if is_new {
            let mut qps = self.qps.lock();
            qps.push_back(qpn);
        }
        let before = self.requests.fetch_add(requests, Ordering::SeqCst);
        if before == 0 {
            self.since_ns.store(now_ns, Ordering::Relaxed);
        }
        before + requests >= MOST_CORKED_REQUESTS
    }

    /// What a program added before it saw the engine nap, the engine sees after its nap: so neither this load nor
    /// [`Activity::posts_wait`]'s may pass the stores before them.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0
    }

    /// Begins to send: requests from now on count anew.
    pub(crate) fn begin(&self) {
        self.requests.store(0, Ordering::SeqCst);
    }

    /// Called when a program's poll sends them.
    pub(crate) fn was_in_time(&self) {
        if self.late_times.load(Ordering::Relaxed) > 0 {
            self.late_times.store(0, Ordering::Relaxed);
        }
    }

    /// Called when datagrams were sent.
    pub(crate) fn sent(&self) {
        self.has_sent.store(true, Ordering::Relaxed);
    }

    /// Whether datagrams were sent since the last poll.
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Relaxed)
    }

    /// Called when the program polls.
    pub(crate) fn polled(&self) {
        if self.has_sent() {
            self.has_sent.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn next(&self) -> Option<u32> {
        let mut qps = self.qps.lock();
        qps.pop_front()
    }

    /// Whether posts have waited too long; the next ones will not wait then.
    pub(crate) fn is_late(&self, now_ns: u64) -> bool {
        let since_ns = self.since_ns.load(Ordering::Relaxed);
        let late = !self.is_empty() && now_ns.saturating_sub(since_ns) > CORKED_LATE_NS;
        if late {
            let times = self.late_times.fetch_add(1, Ordering::Relaxed);
            let calls = DISTRUSTED_CALLS.get(times).or(DISTRUSTED_CALLS.last());
            self.distrusted.store(calls.copied().unwrap_or(0), Ordering::Relaxed);
        }
        late
    }
}

/// What the kernel counts for any datagram besides its bytes, at least: `sk_buff` and `skb_shared_info`.
const LEAST_OVERHEAD_BYTES: u64 = 512;

/// The time, and what is known on the way to a later one.
pub(crate) struct HandledUntil {
    /// The most that the socket holds, in the kernel's accounting.
    socket_bytes: u64,
    /// A round that left packets in the socket: when it began, and all that had been taken when it ended.
    began_ns: u64,
    taken_bytes: u64,
}

impl HandledUntil {
    pub(crate) fn new(socket_bytes: usize) -> HandledUntil {
        HandledUntil { socket_bytes: socket_bytes as u64, began_ns: 0, taken_bytes: 0 }
    }

    /// Counts a round that began at `now_ns` and emptied the socket or not, with all datagrams and their bytes so far.
    /// Returns until when all is handled, if the round tells: its beginning if it emptied the socket; otherwise that of
    /// an earlier one, since when as much was taken as the socket holds.
    pub(crate) fn after_round(
        &mut self,
        now_ns: u64,
        emptied: bool,
        datagrams: u64,
        bytes: u64,
    ) -> Option<u64> {
        let taken_bytes = bytes + datagrams * LEAST_OVERHEAD_BYTES;
        let until_ns = if emptied {
            now_ns
        } else if taken_bytes - self.taken_bytes >= self.socket_bytes {
            self.began_ns
        } else {
            return None;
        };
        (self.began_ns, self.taken_bytes) = (now_ns, taken_bytes);
        Some(until_ns)
    }
}

/// When QPs are due.
#[derive(Default)]
pub(crate) struct Timers {
    /// Due time in nanoseconds, and QP number.
    entries: Lock<BTreeSet<(u64, u32)>>,
    /// How many there are, readable without the lock.
    count: AtomicUsize,
}

/// With more entries than this, those of QPs that await nothing are removed at once: else each is a look at a QP that
/// has left the caches. With fewer they stay until they are due, since most QPs await something again before.
const MOST_IDLE_ENTRIES: usize = 1024;

impl Timers {
    /// Moves a QP's entry from `before_ns` to `due_ns`; each is `u64::MAX` for none.
    pub(crate) fn replace(&self, qpn: u32, before_ns: u64, due_ns: u64) {
        let mut entries = self.entries.lock();
        entries.remove(&(before_ns, qpn));
        if due_ns != u64::MAX {
            entries.insert((due_ns, qpn));
        }
        self.count.store(entries.len(), Ordering::Relaxed);
    }

    /// Takes the earliest entry that is due: its time and its QP.
    pub(crate) fn take_due(&self, now_ns: u64) -> Option<(u64, u32)> {
        let mut entries = self.entries.lock();
        let (due_ns, _) = *entries.first()?;
        let taken = (due_ns <= now_ns).then(|| entries.pop_first()).flatten();
        self.count.store(entries.len(), Ordering::Relaxed);
        taken
    }

    /// When the earliest is due; `u64::MAX` if there is none.
    pub(crate) fn earliest_ns(&self) -> u64 {
        self.entries.lock().first().map_or(u64::MAX, |(due_ns, _)| *due_ns)
    }
}

/// A QP's entry, as the QP knows it.
pub(crate) struct Entry {
    /// When the QP is due; `u64::MAX` if the timers have no entry of it.
    due_ns: u64,
}

impl Default for Entry {
    fn default() -> Entry {
        Entry { due_ns: u64::MAX }
    }
}

impl Entry {
    /// Makes it due at this time if that is sooner; returns whether it is.
    pub(crate) fn hasten(&mut self, timers: &Timers, qpn: u32, due_ns: u64) -> bool {
        let is_sooner = due_ns < self.due_ns;
        if is_sooner {
            timers.replace(qpn, self.due_ns, due_ns);
            self.due_ns = due_ns;
        }
        is_sooner
    }

    /// The entry of this time was taken. Another thread may have put a new one meanwhile.
    pub(crate) fn was_taken(&mut self, due_ns: u64) {
        if self.due_ns == due_ns {
            *self = Entry::default();
        }
    }

    /// Called when the QP awaits nothing.
    pub(crate) fn idle(&mut self, timers: &Timers, qpn: u32) {
        let is_there = self.due_ns != u64::MAX;
        if is_there && timers.count.load(Ordering::Relaxed) > MOST_IDLE_ENTRIES {
            self.remove(timers, qpn);
        }
    }

    pub(crate) fn remove(&mut self, timers: &Timers, qpn: u32) {
        timers.replace(qpn, self.due_ns, u64::MAX);
        *self = Entry::default();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::net::now_ns;

    #[test]
    fn a_timer_before_the_engines_waking_is_not_slept_through() {
        let activity = Activity::new(Clock::Machine, -1).unwrap();
        activity.timer_at(now_ns() + 1_000_000);
        activity.sleep(u64::MAX, Sleep::OnSocket, None, || None);
        assert!(activity.take_due_timer(now_ns()));
        assert!(!activity.take_due_timer(now_ns()));
    }

    #[test]
    fn posts_wait_until_there_are_enough() {
        let corked = Corked::default();
        assert!(corked.is_empty() && corked.may_wait());
        for request in 1..MOST_CORKED_REQUESTS {
            assert!(!corked.add(7, request == 1, 1, 5));
        }
        assert!(corked.add(8, true, 1, 5));
        corked.begin();
        assert!(corked.is_empty());
        let next = [(); 3].map(|()| corked.next());
        assert_eq!(next, [Some(7), Some(8), None]);
    }

    #[test]
    fn a_program_that_does_not_poll_is_not_waited_for() {
        let corked = Corked::default();
        corked.add(7, true, 1, 1000);
        assert!(!corked.is_late(1000 + CORKED_LATE_NS));
        assert!(corked.is_late(1001 + CORKED_LATE_NS));
        for calls in [16, 64, 256, 1024, 1024] {
            assert!((0..calls).all(|_| !corked.may_wait()), "{calls}");
            assert!(corked.may_wait());
            assert!(corked.is_late(1001 + CORKED_LATE_NS));
        }
        corked.was_in_time();
        assert!((0..1024).all(|_| !corked.may_wait()));
        assert!(corked.is_late(1001 + CORKED_LATE_NS));
        assert!((0..16).all(|_| !corked.may_wait()));
        assert!(corked.may_wait());
    }

    #[test]
    fn a_round_that_empties_the_socket_tells_its_beginning() {
        let mut handled = HandledUntil::new(10_000);
        assert_eq!(handled.after_round(5, true, 0, 0), Some(5));
        assert_eq!(handled.after_round(6, false, 1, 1000), None);
        assert_eq!(handled.after_round(7, true, 2, 2000), Some(7));
    }

    #[test]
    fn a_socket_that_is_never_empty_is_handled_once_it_was_taken_whole() {
        let mut handled = HandledUntil::new(10_000);
        handled.after_round(5, true, 0, 0);
        // 2000 bytes with what the kernel adds.
        let handled_ns: Vec<_> = (1..=10)
            .map(|number| {
                let bytes = (2000 - LEAST_OVERHEAD_BYTES) * number;
                handled.after_round(5 + number, false, number, bytes)
            })
            .collect();
        let mut expected = [None; 10];
        // What arrived after the fifth round began may still be there.
        (expected[4], expected[9]) = (Some(5), Some(10));
        assert_eq!(handled_ns, expected);
    }

    #[test]
    fn an_entry_only_comes_sooner_until_it_is_taken() {
        let timers = Timers::default();
        let mut entry = Entry::default();
        assert!(entry.hasten(&timers, 7, 30) && entry.hasten(&timers, 7, 10));
        assert!(!entry.hasten(&timers, 7, 20));
        assert_eq!(timers.take_due(10), Some((10, 7)));
        assert_eq!(timers.earliest_ns(), u64::MAX, "there was one");
        entry.was_taken(30);
        assert!(!entry.hasten(&timers, 7, 20), "another one was taken");
        entry.was_taken(10);
        assert!(entry.hasten(&timers, 7, 20));
        entry.remove(&timers, 7);
        assert_eq!(timers.earliest_ns(), u64::MAX);
    }

    #[test]
    fn of_qps_that_await_nothing_a_bounded_number_keeps_an_entry() {
        let timers = Timers::default();
        for qpn in 0..3 * MOST_IDLE_ENTRIES as u32 {
            let mut entry = Entry::default();
            entry.hasten(&timers, qpn, u64::from(qpn));
            entry.idle(&timers, qpn);
            // Once more, of one that has gone.
            entry.idle(&timers, qpn);
        }
        let due = std::iter::from_fn(|| timers.take_due(u64::MAX));
        assert!(due.map(|(_, qpn)| qpn).eq(0..MOST_IDLE_ENTRIES as u32));
        let mut entry = Entry::default();
        entry.hasten(&timers, 1, 5);
        entry.idle(&timers, 1);
        assert_eq!(timers.earliest_ns(), 5, "there is room again");
    }

    #[test]
    fn entries_come_when_due_in_order_and_once() {
        let timers = Timers::default();
        for (qpn, due_ns) in [(7, 30), (8, 10), (9, 20), (10, 10)] {
            timers.replace(qpn, u64::MAX, due_ns);
        }
        timers.replace(7, 30, 15);
        timers.replace(8, 10, u64::MAX);
        assert_eq!(timers.earliest_ns(), 10);
        let due: Vec<_> = std::iter::from_fn(|| timers.take_due(15)).collect();
        assert_eq!(due, [(10, 10), (15, 7)]);
        assert_eq!(timers.earliest_ns(), 20);
        assert_eq!(timers.take_due(u64::MAX), Some((20, 9)));
        assert_eq!(timers.earliest_ns(), u64::MAX);
    }
}
