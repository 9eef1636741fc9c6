//! A server and its client: the same program twice; the client starts once the server listens.

use std::iter::repeat_with;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use testing::process::{Ended, Program, listens};
use testing::wait::wait_until;

use crate::child::{SOON, machine, start};

pub struct Pair {
    pub server: Ended,
    pub client: Ended,
}

/// Ports that the system gives to nobody who asks for any (ip_local_port_range begins at 32768).
const PORTS: Range<u32> = 10_000..32_768;

pub fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    repeat_with(|| {
        let place =
            std::process::id().wrapping_add(ASKED.fetch_add(1, Relaxed)) % PORTS.len() as u32;
        (PORTS.start + place) as u16
    })
    .take(PORTS.len())
    .find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok())
    .unwrap()
}

/// Starts a server; returns when it listens on the port that comes with it, or has ended.
pub fn start_server(program: &str, arguments: &str) -> (Program, u16) {
    let port = free_port();
    let mut server = start(program, &format!("{arguments} -p {port}"));
    let what = format!("{program} to listen");
    wait_until(&what, SOON, || !server.runs() || listens(server.pid(), port));
    (server, port)
}

pub fn start_pair(program: &str, arguments: &str) -> (Program, Program) {
    let (server, port) = start_server(program, arguments);
    let arguments = format!("{arguments} -p {port} 127.0.0.1");
    (server, start(program, &arguments))
}

pub fn run(program: &str, arguments: &str) -> Pair {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    let client = client.wait();
    Pair { server: server.wait(), client }
}

/// Waits for the end of a server whose client has ended. Both have to succeed.
#[track_caller]
pub fn finish_well(server: Program, client: Ended) -> Pair {
    // If the client failed, its server may wait for ever.
    let client = client.exits(0);
    Pair { server: server.wait().exits(0), client }
}

/// Runs both ends and checks that they succeed.
pub fn succeed(program: &str, arguments: &str) -> Pair {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    finish_well(server, client.wait())
}
