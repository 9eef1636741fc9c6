//! The engine: a thread that does the device's work when no program polls. While a program polls its CQs, the engine
//! naps. When the program sleeps or only polls its memory, the engine sleeps on the socket and wakes for packets and
//! timers.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::thread::JoinHandleExt;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

use crate::net::{block_signals, prefer_short_turns};
use crate::transport::device::Core;
use crate::transport::timing::{POLLER_IS_NEAR_NS, Sleep};

/// Length of naps while a program polls: short at first, since it may stop, and longer while it goes on.
const SHORTEST_NAP_NS: u64 = 50_000;
pub(crate) const LONGEST_NAP_NS: u64 = 200_000;
/// Where packets come from this process alone, whoever sends one wakes the engine when the program has stopped polling.
const LONGEST_NAP_BY_MEMORY_NS: u64 = 1_600_000;
/// A program that polls but has left packets for this long waits for something other than completions: a byte in its
/// memory, as latency benchmarks of WRITE do. Then packets wake the engine, until it finds this many times that the
/// program took them first.
const LEAVES_WORK_NS: u64 = 30_000;
const WATCHFUL_ROUNDS: u32 = 100;
/// A program that polled within this time is polling now.
const POLLS_NOW_NS: u64 = 2_000;
/// How long the engine checks for more packets before it sleeps on the socket.
const LINGER_NS: u64 = 20_000;

/// The engine's thread; dropping it ends the thread.
pub(crate) struct Engine {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
    number: Pid,
}

impl Engine {
    pub(crate) fn start(core: Arc<Core>) -> io::Result<Engine> {
        let own = Arc::clone(&core);
        let (sender, started) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("softroce".into()).spawn(move || {
            // Who started it waits for this.
            let _ = sender.send(gettid());
            // Signals are for the program's threads.
            block_signals();
            prefer_short_turns();
            run(&own);
        })?;
        let number = started.recv().map_err(io::Error::other)?;
        Ok(Engine { core, thread: Some(thread), number })
    }

    /// Lets it run on these cores alone. What the kernel refuses leaves it where it was.
    pub(crate) fn place(&self, cores: &[usize]) {
        let mut set = CpuSet::new();
        for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
            set.set(*core);
        }
        if self.core.is_of_this_process() {
            let _ = sched_setaffinity(Some(self.number), &set);
        }
    }

    /// The cores on which it may run; none where the kernel does not say.
    pub(crate) fn cores(&self) -> Vec<usize> {
        let number = Some(self.number).filter(|_| self.core.is_of_this_process());
        let set = number.and_then(|number| sched_getaffinity(Some(number)).ok());
        let cores = 0..CpuSet::MAX_CPU;
        cores.filter(|core| set.is_some_and(|set| set.is_set(*core))).collect()
    }

    /// CPU time that it has used, in nanoseconds; 0 where the kernel does not say.
    pub(crate) fn cpu_ns(&self) -> u64 {
        let thread = self.thread.as_ref();
        let Some(thread) = thread.filter(|_| self.core.is_of_this_process()) else {
            return 0;
        };
        let mut clock = 0;
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a thread of this process that nobody has joined, and places for the results.
        let failed = unsafe {
            libc::pthread_getcpuclockid(thread.as_pthread_t(), &raw mut clock) != 0
                || libc::clock_gettime(clock, &raw mut time) != 0
        };
        if failed {
            0
        } else {
            time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if !self.core.is_of_this_process() {
            // The parent has that thread.
            std::mem::forget(thread);
            return;
        }
        self.core.activity.end();
        if let Some(thread) = thread {
            // The thread has already reported a panic.
            drop(thread.join());
        }
    }
}

impl Core {
    /// Whether it sends to devices of this process alone.
    fn is_alone_in_process(&self) -> bool {
        self.inbox.as_ref().is_some_and(|inbox| !inbox.has_company())
    }

    fn sleep(&self, until_ns: u64, why: Sleep) {
        let inbox = self.inbox.as_deref();
        self.activity.sleep(until_ns, why, inbox, || self.transmitter.full_sockets());
    }
}

fn run(core: &Core) {
    let activity = &core.activity;
    let mut nap_ns = SHORTEST_NAP_NS;
    let mut last_work_ns = 0;
    let mut watchful = 0_u32;
    while !activity.ends() {
        let now = activity.now_ns();
        core.use_room(now);
        if watchful == 0 && activity.poller_is_near(now) {
            core.send_late(now);
            core.sleep(now + nap_ns, Sleep::NearPoller);
            let needs_no_look = core.is_alone_in_process() && !core.corked.take_wanted();
            let longest_ns = if needs_no_look { LONGEST_NAP_BY_MEMORY_NS } else { LONGEST_NAP_NS };
            nap_ns = (nap_ns * 2).min(longest_ns);
            // Packets wait although the program has just polled, so it polls its memory instead.
            let idle_ns = activity.since_polled_ns(activity.now_ns());
            if (LEAVES_WORK_NS..POLLER_IS_NEAR_NS).contains(&idle_ns) && core.progress() > Some(0) {
                watchful = WATCHFUL_ROUNDS;
            }
            continue;
        }
        if watchful > 0 && activity.since_polled_ns(now) < POLLS_NOW_NS {
            watchful = watchful.saturating_sub(WATCHFUL_ROUNDS / 4);
            core.sleep(now + SHORTEST_NAP_NS, Sleep::NearPoller);
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
            None => core.sleep(now + SHORTEST_NAP_NS, Sleep::BehindWork),
            Some(0) if watchful > 0 || now.saturating_sub(last_work_ns) > LINGER_NS => {
                core.sleep(u64::MAX, Sleep::OnSocket);
            }
            Some(0) => std::hint::spin_loop(),
            Some(_) => last_work_ns = activity.now_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::{ENGINE_CPU_NS, Nic, NicOptions};

    #[test]
    fn the_cpu_time_of_its_thread_is_a_counter_that_only_grows() {
        let nic = Nic::open(&NicOptions::default()).unwrap();
        let cpu_ns = || {
            let mut counters = nic.counters().into_iter();
            counters.find(|(name, _)| *name == ENGINE_CPU_NS).unwrap().1
        };
        // It takes some to start.
        while cpu_ns() == 0 {
            std::thread::yield_now();
        }
        let before = cpu_ns();
        assert!(cpu_ns() >= before && before > 0);
    }
}
