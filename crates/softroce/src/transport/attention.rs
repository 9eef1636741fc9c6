//! Who looks after a device: the clockwork that tells the engine when nobody else does, and a poller whether it is
//! worth it. It must not know QPs or packets.

use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::net::{Wakeup, now_ns};

/// A program that polled so short a time ago is polling.
pub(super) const POLLER_IS_NEAR_NS: u64 = 50_000;
/// Looking at an empty socket costs a system call: a poller does it at most this often.
const LOOK_AGAIN_NS: u64 = 60;
/// A poller that found nothing for so long yields the core after each look. Longer than a round trip between two
/// that each have a core: those lose nothing.
const PATIENCE_NS: u64 = 20_000;

/// Who looks after the device, and when it next needs looking after.
pub(super) struct Attention {
    socket: RawFd,
    wakeup: Wakeup,
    stop: AtomicBool,
    /// When a program last polled or posted; `u64::MAX` while it posts.
    polled_ns: AtomicU64,
    /// CQs whose programs wait for an event.
    armed_cqs: AtomicUsize,
    /// When a poller last found nothing.
    found_nothing_ns: AtomicU64,
    /// When a poller last found something.
    found_ns: AtomicU64,
    /// The earliest timer of any QP, or earlier.
    next_timer_ns: AtomicU64,
    /// When the engine will wake by itself; 0 while it is awake.
    wakes_ns: AtomicU64,
    /// It sleeps and packets do not wake it.
    naps: AtomicBool,
}

impl Attention {
    pub(super) fn new(socket: RawFd) -> io::Result<Attention> {
        Ok(Attention {
            socket,
            wakeup: Wakeup::new()?,
            stop: AtomicBool::new(false),
            polled_ns: AtomicU64::new(0),
            armed_cqs: AtomicUsize::new(0),
            found_nothing_ns: AtomicU64::new(0),
            found_ns: AtomicU64::new(0),
            next_timer_ns: AtomicU64::new(u64::MAX),
            wakes_ns: AtomicU64::new(0),
            naps: AtomicBool::new(false),
        })
    }

    /// A program polls: whether it is worth looking at the socket.
    pub(super) fn poller_comes(&self, now_ns: u64) -> bool {
        self.polled_ns.store(now_ns, Ordering::Relaxed);
        now_ns.saturating_sub(self.found_nothing_ns.load(Ordering::Relaxed)) >= LOOK_AGAIN_NS
    }

    /// A program is in a call that sends, however long that takes; it will poll for what comes of it.
    pub(super) fn poster_comes(&self) {
        self.polled_ns.store(u64::MAX, Ordering::Relaxed);
    }

    /// The call is over.
    pub(super) fn poster_goes(&self, now_ns: u64) {
        self.polled_ns.store(now_ns, Ordering::Relaxed);
    }

    /// A CQ was armed: packets wake the engine until the event is given.
    pub(super) fn program_sleeps(&self) {
        self.armed_cqs.fetch_add(1, Ordering::SeqCst);
        if self.naps.load(Ordering::SeqCst) {
            self.wakeup.wake();
        }
    }

    /// The event was given.
    pub(super) fn program_wakes(&self) {
        self.armed_cqs.fetch_sub(1, Ordering::SeqCst);
    }

    /// It looked and found nothing. Whether it is time to let others have the core: what it waits for may well
    /// depend on a thread that has none.
    pub(super) fn poller_found_nothing(&self) -> bool {
        let now = now_ns();
        self.found_nothing_ns.store(now, Ordering::Relaxed);
        now.saturating_sub(self.found_ns.load(Ordering::Relaxed)) > PATIENCE_NS
    }

    /// It looked, found something, and has dealt with it.
    pub(super) fn poller_found(&self, now_ns: u64) {
        self.found_ns.store(now_ns, Ordering::Relaxed);
        self.polled_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The engine is to end.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wakeup.wake();
    }

    /// Whether the engine is to end.
    pub(super) fn ends(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// There is work that no packet announces.
    pub(super) fn wake(&self) {
        if self.wakes_ns.load(Ordering::SeqCst) != 0 {
            self.wakeup.wake();
        }
    }

    /// A QP has a timer at this time.
    pub(super) fn timer_at(&self, ns: u64) {
        self.next_timer_ns.fetch_min(ns, Ordering::SeqCst);
        if ns < self.wakes_ns.load(Ordering::SeqCst) {
            self.wakeup.wake();
        }
    }

    /// Whether a timer is due; the caller then looks at all and sets the next by [`Attention::timer_at`].
    pub(super) fn take_due_timer(&self, now_ns: u64) -> bool {
        let next = self.next_timer_ns.load(Ordering::Relaxed);
        let exchange = |next| {
            self.next_timer_ns
                .compare_exchange(next, u64::MAX, Ordering::SeqCst, Ordering::SeqCst)
        };
        next <= now_ns && exchange(next).is_ok()
    }

    pub(super) fn since_polled_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.polled_ns.load(Ordering::SeqCst))
    }

    pub(super) fn poller_is_near(&self, now_ns: u64) -> bool {
        self.armed_cqs.load(Ordering::SeqCst) == 0
            && self.since_polled_ns(now_ns) < POLLER_IS_NEAR_NS
    }

    /// Sleeps until kicked, until `until_ns`, until a timer, or, on the socket, until packets come.
    pub(super) fn sleep(&self, until_ns: u64, why: Sleep) {
        // Announced before the timers are read: one set from now on kicks.
        self.wakes_ns.store(u64::MAX, Ordering::SeqCst);
        let until_ns = until_ns.min(self.next_timer_ns.load(Ordering::SeqCst));
        self.wakes_ns.store(until_ns, Ordering::SeqCst);
        let stays = until_ns.min(self.next_timer_ns.load(Ordering::SeqCst)) == until_ns;
        self.naps.store(why == Sleep::NearPoller, Ordering::SeqCst);
        // A program that armed a CQ before the nap was announced did not kick.
        let needed = why != Sleep::NearPoller || self.poller_is_near(now_ns());
        if stays && needed && !self.stop.load(Ordering::SeqCst) {
            let wait_ns = match until_ns {
                u64::MAX => u64::MAX,
                until_ns => until_ns.saturating_sub(now_ns()),
            };
            let socket = (why == Sleep::OnSocket).then_some(self.socket);
            self.wakeup.wait(socket, wait_ns);
        }
        self.naps.store(false, Ordering::SeqCst);
        self.wakes_ns.store(0, Ordering::SeqCst);
    }
}

/// Why the engine sleeps.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sleep {
    /// There is nothing to do.
    OnSocket,
    /// A program polls; before it sleeps it arms a CQ, which ends the nap.
    NearPoller,
    /// Another thread is at work.
    BehindWork,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_timer_before_the_engines_waking_is_not_slept_through() {
        let attention = Attention::new(-1).unwrap();
        let start = now_ns();
        attention.timer_at(start + 1_000_000);
        attention.sleep(u64::MAX, Sleep::OnSocket);
        assert!(now_ns() >= start + 1_000_000);
        assert!(attention.take_due_timer(now_ns()));
        assert!(!attention.take_due_timer(now_ns()));
    }

    #[test]
    fn a_kick_ends_the_sleep() {
        let attention = Arc::new(Attention::new(-1).unwrap());
        let sleeper = Arc::clone(&attention);
        let thread = std::thread::spawn(move || sleeper.sleep(u64::MAX, Sleep::OnSocket));
        while attention.wakes_ns.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        attention.timer_at(now_ns());
        thread.join().unwrap();
    }
}
