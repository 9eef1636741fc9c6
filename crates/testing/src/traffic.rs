//! Waiting for traffic: packets that a device of the kernel has sent, and clients that are at a known point of their session
//! when a test goes on.

use std::net::SocketAddr;
use std::time::Duration;

use crate::program::{Program, sweep, words};
use crate::proxy::{From, Proxy, Step};
use crate::wait::wait_or_tell;

/// So long that only what a test does ends it.
pub const LONG: &str = "-D 10m --warmup 0 -s 4K -t 8 -q 2";

/// Far more than are under way at once; they take less than [`USUAL`].
const PACKETS: u64 = 1_000;
const USUAL: Duration = Duration::from_secs(5);

/// What a device has sent since this was made.
pub struct Traffic {
    device: &'static str,
    before: u64,
}

impl Traffic {
    pub fn new(device: &'static str) -> Traffic {
        Traffic { device, before: sent(device) }
    }

    /// Waits for so many packets.
    #[track_caller]
    pub fn await_packets(&self, count: u64) {
        let sent = || sent(self.device) - self.before;
        wait_or_tell(
            USUAL,
            || (sent() >= count).then_some(()),
            || format!("{count} packets of {}: {} sent", self.device, sent()),
        );
    }
}

fn sent(device: &str) -> u64 {
    let file = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.trim().parse().unwrap()
}

/// How a client on `rxe0` reaches a server: its control connection passes a proxy at an address of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    pub proxy: &'a str,
    pub server: SocketAddr,
}

impl Way<'_> {
    /// Starts a client; returns when this frame has passed between it and the server.
    pub fn client_at(self, step: Step, line: &str) -> Program {
        let proxy = Proxy::start(self.proxy, self.server, step, || {});
        let client = sweep(&format!("{} -d rxe0 {line}", proxy.address)).start();
        proxy.await_deed();
        client
    }

    /// Starts one whose run has counted messages when this returns. Once a server's window is open, it says how far it is,
    /// or, where it only receives, that it has measured.
    pub fn client_in_the_window(self, line: &str) -> Program {
        let kind = if words(line).contains(&"-b") { "progress" } else { "measured" };
        let client = self.client_at(Step::first(From::Server, kind), line);
        Traffic::new("rxe0").await_packets(PACKETS);
        client
    }
}
