//! The engine: a thread that does the device's work when nobody polls. While a program polls its CQs, the engine
//! naps; when the program sleeps, or only looks at its memory, the engine sleeps on the socket and wakes with
//! packets and timers.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::attention::{POLLER_IS_NEAR_NS, Sleep};
use super::core::Core;
use crate::net::{block_signals, now_ns, prefer_short_turns};

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
        self.core.attention.end();
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
    while !attention.ends() {
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
