//! A server and its client: the same program twice; the client starts once the server listens.

use std::fs;
use std::iter::repeat_with;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::child::{Ended, Running, machine, start};

/// Far longer than any of these takes on an idle machine, since tests run on busy ones.
const DEADLINE: Duration = Duration::from_secs(60);

/// Both ends of a run.
pub struct Pair {
    pub server: Ended,
    pub client: Ended,
}

impl Pair {
    /// The output of both, for a failed test.
    pub fn report(&self) -> String {
        format!("{}{}", self.server.report(), self.client.report())
    }
}

/// Ports that the system gives to nobody who asks for any (ip_local_port_range begins at 32768).
const PORTS: Range<u32> = 10_000..32_768;

/// An unused TCP port, another one each time.
pub fn free_port() -> u16 {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let any = || {
        let place =
            std::process::id().wrapping_add(ASKED.fetch_add(1, Relaxed)) % PORTS.len() as u32;
        (PORTS.start + place) as u16
    };
    let is_free = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_ok();
    repeat_with(any).take(PORTS.len()).find(is_free).unwrap()
}

/// Starts both ends.
pub fn start_pair(program: &str, arguments: &str) -> (Running, Running) {
    let port = free_port();
    let mut server = start(program, &format!("{arguments} -p {port}"));
    let deadline = Instant::now() + DEADLINE;
    while server.runs() && !listens(&server, port) {
        assert!(Instant::now() < deadline, "{program} does not listen");
        sleep(Duration::from_millis(5));
    }
    let client = start(program, &format!("{arguments} -p {port} 127.0.0.1"));
    (server, client)
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

/// Runs both ends until they end.
pub fn run(program: &str, arguments: &str) -> Pair {
    let _machine = machine();
    let (server, client) = start_pair(program, arguments);
    let deadline = Instant::now() + DEADLINE;
    let client = client.end(deadline);
    // If the client failed, its server may wait for ever.
    let rest = match client.succeeded() {
        true => deadline,
        false => deadline.min(Instant::now() + Duration::from_secs(5)),
    };
    Pair {
        server: server.end(rest),
        client,
    }
}

/// Runs both ends and checks that they succeed.
pub fn succeed(program: &str, arguments: &str) -> Pair {
    let pair = run(program, arguments);
    assert!(
        pair.server.succeeded() && pair.client.succeeded(),
        "{}",
        pair.report()
    );
    pair
}
