//! Posts that wait for the program's next poll. A program that posts one request a call would pay a system call for each; so
//! while packets are in flight its next ones wait until it polls, and those of many calls and QPs leave together. It must not
//! know requests.

use std::collections::VecDeque;

use crate::lock::Lock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// So many requests leave without waiting for a poll.
const MOST_REQUESTS: usize = 64;
/// A call that posts more bytes does not wait: it fills system calls by itself.
pub(crate) const MOST_BYTES: u64 = 16 << 10;
/// A program that has not polled for this long after a post does not poll for it: the engine sends.
pub(crate) const LATE_NS: u64 = 10_000;
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
}

impl Corked {
    pub(crate) fn may_wait(&self) -> bool {
        let left = self.distrusted.load(Ordering::Relaxed);
        if left > 0 {
            self.distrusted.store(left - 1, Ordering::Relaxed);
        }
        left == 0
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
        before + requests >= MOST_REQUESTS
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.requests.load(Ordering::Acquire) == 0
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
        let late = !self.is_empty() && now_ns.saturating_sub(since_ns) > LATE_NS;
        if late {
            let times = self.late_times.fetch_add(1, Ordering::Relaxed);
            let calls = DISTRUSTED_CALLS.get(times).or(DISTRUSTED_CALLS.last());
            self.distrusted.store(calls.copied().unwrap_or(0), Ordering::Relaxed);
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_wait_until_there_are_enough() {
        let corked = Corked::default();
        assert!(corked.is_empty() && corked.may_wait());
        for request in 1..MOST_REQUESTS {
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
        assert!(!corked.is_late(1000 + LATE_NS));
        assert!(corked.is_late(1001 + LATE_NS));
        for calls in [16, 64, 256, 1024, 1024] {
            assert!((0..calls).all(|_| !corked.may_wait()), "{calls}");
            assert!(corked.may_wait());
            assert!(corked.is_late(1001 + LATE_NS));
        }
        corked.was_in_time();
        assert!((0..1024).all(|_| !corked.may_wait()));
        assert!(corked.is_late(1001 + LATE_NS));
        assert!((0..16).all(|_| !corked.may_wait()));
        assert!(corked.may_wait());
    }
}
