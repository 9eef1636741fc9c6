//! Coordinates the engine with programs that poll or sleep: tells the engine when no program does the device's work,
//! and a poller when to check the socket. It must not know QPs or packets.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::net::{Clock, SENDING_SOCKETS, Wakeup};

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

    /// Wakes the engine for work that no packet announces.
    pub(crate) fn wake(&self) {
        if self.wakes_ns.load(Ordering::SeqCst) != 0 {
            self.wakeup.wake();
        }
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
    /// unless behind another's work, until a full socket has room; `full_sockets` names those.
    pub(crate) fn sleep(
        &self,
        latest_ns: u64,
        why: Sleep,
        full_sockets: impl FnOnce() -> Option<[RawFd; SENDING_SOCKETS]>,
    ) {
        // Store this before reading the timers: a timer set from now on wakes the engine.
        self.wakes_ns.store(u64::MAX, Ordering::SeqCst);
        let until_ns = latest_ns.min(self.timer_ns(why));
        self.wakes_ns.store(until_ns, Ordering::SeqCst);
        let stays = until_ns.min(self.timer_ns(why)) == until_ns;
        self.naps.store(why == Sleep::NearPoller, Ordering::SeqCst);
        // A program that armed a CQ before `naps` was set did not wake the engine.
        let needed = why != Sleep::NearPoller || self.poller_is_near(self.now_ns());
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::net::now_ns;

    #[test]
    fn a_timer_before_the_engines_waking_is_not_slept_through() {
        let activity = Activity::new(Clock::Machine, -1).unwrap();
        activity.timer_at(now_ns() + 1_000_000);
        activity.sleep(u64::MAX, Sleep::OnSocket, || None);
        assert!(activity.take_due_timer(now_ns()));
        assert!(!activity.take_due_timer(now_ns()));
    }

    #[test]
    fn a_kick_ends_the_sleep() {
        let activity = Arc::new(Activity::new(Clock::Machine, -1).unwrap());
        let sleeper = Arc::clone(&activity);
        let thread = std::thread::spawn(move || sleeper.sleep(u64::MAX, Sleep::OnSocket, || None));
        while activity.wakes_ns.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        activity.timer_at(now_ns());
        thread.join().unwrap();
    }
}
