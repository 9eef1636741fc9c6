//! A server and its client: the same program twice; the client starts once the server listens.

use std::fmt;
use std::fs;
use std::iter::repeat_with;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::child::{Ended, Running, SOON, machine, start};
use testing::wait::wait_until;

pub struct Pair {
    pub server: Ended,
    pub client: Ended,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.server, self.client)
    }
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
pub fn start_server(program: &str, arguments: &str) -> (Running, u16) {
    let port = free_port();
    let mut server = start(program, &format!("{arguments} -p {port}"));
    let what = format!("{program} to listen");
    wait_until(&what, SOON, || !server.runs() || listens(&server, port));
    (server, port)
}

pub fn start_pair(program: &str, arguments: &str) -> (Running, Running) {
    let (server, port) = start_server(program, arguments);
    let arguments = format!("{arguments} -p {port} 127.0.0.1");
    (server, start(program, &arguments))
}

/// Whether a process listens on a port. Asks the system, since the server would take a connection for its client.
fn listens(server: &Running, port: u16) -> bool {
    let tables = ["tcp", "tcp6"].map(|table| {
        fs::read_to_string(format!("/proc/{}/net/{table}", server.id())).unwrap_or_default()
    });
    let local = format!(":{port:04X}");
    tables.iter().flat_map(|table| table.lines()).any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        // The state 0A is LISTEN.
        fields.next().is_some_and(|it| it.ends_with(&local)) && fields.nth(1) == Some("0A")
    })
}

pub fn run(program: &str, arguments: &str) -> Pair {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    let client = client.end();
    let server = server.end();
    Pair { server, client }
}

/// Waits for the end of a server whose client has ended. Both have to succeed.
#[track_caller]
pub fn finish_well(server: Running, client: Ended) -> Pair {
    // If the client failed, its server may wait for ever.
    let server = if client.succeeded() { server.end() } else { server.kill() };
    let pair = Pair { server, client };
    let succeeded = [&pair.server, &pair.client].map(Ended::succeeded);
    assert_eq!(succeeded, [true; 2], "{pair}");
    pair
}

/// Runs both ends and checks that they succeed.
pub fn succeed(program: &str, arguments: &str) -> Pair {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    finish_well(server, client.end())
}
