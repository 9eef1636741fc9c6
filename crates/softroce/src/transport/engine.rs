//! The engine: a thread that does the device's work when nobody polls, and the clockwork that tells it when that
//! is. While a program polls its CQs, the engine naps; when the program sleeps, or only looks at its memory, the
//! engine sleeps on the socket and wakes with packets and timers.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::core::Core;
use crate::net::{Kick, block_signals, now_ns, prefer_short_turns};

/// A program that polled so short a time ago is polling.
const POLLER_IS_NEAR_NS: u64 = 50_000;
/// Naps while a program polls: they start short, since it may stop, and grow while it goes on.
const SHORTEST_NAP_NS: u64 = 50_000;
const LONGEST_NAP_NS: u64 = 200_000;
/// A program that polls but left packets lying for so long waits for something else than completions: a byte in
/// its memory, as latency benchmarks of WRITE do. Then packets wake the engine, until it finds that the program
/// took them first so many times.
const LEAVES_WORK_NS: u64 = 30_000;
const WATCHFUL_ROUNDS: u32 = 100;
/// A program that polled so short a time ago is at it.
const POLLS_NOW_NS: u64 = 2_000;
/// How long the engine looks for more packets before it sleeps on the socket.
const LINGER_NS: u64 = 20_000;
/// Looking at an empty socket costs a system call: a poller does it at most this often.
const LOOK_AGAIN_NS: u64 = 60;
/// A poller that found nothing for so long yields the core after each look. Longer than a round trip between two
/// that each have a core: those lose nothing.
const PATIENCE_NS: u64 = 20_000;

/// Who looks after the device, and when it next needs looking after.
pub(super) struct Attention {
    socket: RawFd,
    kick: Kick,
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
            kick: Kick::new()?,
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
            self.kick.kick();
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

    /// There is work that no packet announces.
    pub(super) fn kick(&self) {
        if self.wakes_ns.load(Ordering::SeqCst) != 0 {
            self.kick.kick();
        }
    }

    /// A QP has a timer at this time.
    pub(super) fn timer_at(&self, ns: u64) {
        self.next_timer_ns.fetch_min(ns, Ordering::SeqCst);
        if ns < self.wakes_ns.load(Ordering::SeqCst) {
            self.kick.kick();
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

    fn since_polled_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.polled_ns.load(Ordering::SeqCst))
    }

    fn poller_is_near(&self, now_ns: u64) -> bool {
        self.armed_cqs.load(Ordering::SeqCst) == 0
            && self.since_polled_ns(now_ns) < POLLER_IS_NEAR_NS
    }

    /// Sleeps until kicked, until `until_ns`, until a timer, or, on the socket, until packets come.
    fn sleep(&self, until_ns: u64, why: Sleep) {
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
            self.kick.wait(socket, wait_ns);
        }
        self.naps.store(false, Ordering::SeqCst);
        self.wakes_ns.store(0, Ordering::SeqCst);
    }
}

/// Why the engine sleeps.
#[derive(Clone, Copy, PartialEq)]
enum Sleep {
    /// There is nothing to do.
    OnSocket,
    /// A program polls; before it sleeps it arms a CQ, which ends the nap.
    NearPoller,
    /// Another thread is at work.
    BehindWork,
}

/// The running thread; dropped, it ends.
pub(super) struct Engine {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

impl Engine {
    pub(super) fn start(core: Arc<Core>) -> io::Result<Engine> {
        let own = Arc::clone(&core);
        let run = move || {
            // Signals are the program's.
            block_signals();
            prefer_short_turns();
            run(&own);
        };
        let thread = std::thread::Builder::new()
            .name("softroce".into())
            .spawn(run)?;
        Ok(Engine {
            core,
            thread: Some(thread),
        })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.core.attention.stop.store(true, Ordering::SeqCst);
        self.core.attention.kick.kick();
        if let Some(thread) = self.thread.take() {
            // A panic in the engine was reported by the panic itself.
            drop(thread.join());
        }
    }
}

fn run(core: &Core) {
    let attention = &core.attention;
    let mut nap_ns = SHORTEST_NAP_NS;
    let mut last_work_ns = 0;
    let mut watchful = 0_u32;
    while !attention.stop.load(Ordering::SeqCst) {
        let now = now_ns();
        if watchful == 0 && attention.poller_is_near(now) {
            attention.sleep(now + nap_ns, Sleep::NearPoller);
            nap_ns = (nap_ns * 2).min(LONGEST_NAP_NS);
            // Packets that wait although the program polled a moment ago: it looks at its memory instead.
            let idle_ns = attention.since_polled_ns(now_ns());
            if (LEAVES_WORK_NS..POLLER_IS_NEAR_NS).contains(&idle_ns) && core.progress() > Some(0) {
                watchful = WATCHFUL_ROUNDS;
            }
            continue;
        }
        if watchful > 0 && attention.since_polled_ns(now) < POLLS_NOW_NS {
            watchful = watchful.saturating_sub(WATCHFUL_ROUNDS / 4);
            attention.sleep(now + SHORTEST_NAP_NS, Sleep::NearPoller);
            continue;
        }
        nap_ns = SHORTEST_NAP_NS;
        let done = core.progress();
        if watchful > 0 {
            watchful = match done {
                None | Some(0) => watchful - 1,
                Some(_) => WATCHFUL_ROUNDS,
            };
        }
        match done {
            None => attention.sleep(now + SHORTEST_NAP_NS, Sleep::BehindWork),
            Some(0) if watchful > 0 || now.saturating_sub(last_work_ns) > LINGER_NS => {
                attention.sleep(core.next_due_ns().unwrap_or(u64::MAX), Sleep::OnSocket);
            }
            Some(0) => std::hint::spin_loop(),
            Some(_) => last_work_ns = now_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
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
