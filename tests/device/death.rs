//! An end dies or falls silent while the kernel holds QPs of both. Which frame it is at does not concern the device:
//! tests/embedded has an end die at each.

use testing::process::Signal;
use testing::program::Server;
use testing::sessions::{LONG, Sender, Step};

use crate::session::{await_freed, await_more, both_hold, way};

/// What the other end says of one that was killed, and of one that was stopped.
const GONE: &str = "closed the connection";
const SILENT: &str = "silent";

#[test]
fn a_server_in_the_window() {
    for (signal, traffic, says) in [
        (Signal::Kill, "--op send", GONE),
        (Signal::Kill, "--op read -b", GONE),
        (Signal::Stop, "--op send", SILENT),
    ] {
        let server = Server::start();
        let client = way(&server).client_in_the_window(&format!("{LONG} {traffic}"));
        server.program.signal(signal);
        let run = client.wait().exits(1).says(&[says]).runs().remove(0);
        assert!(!run.complete && run.failure.is_some(), "{signal:?}");
        assert!(run.flows[0].totals.messages > 0, "{traffic}: kept");
    }
}

/// The kernel gives up all that a killed client had, and the server what it had for it.
#[test]
fn a_client_in_the_window() {
    let server = Server::start();
    server.serves_the_next();
    let before = both_hold();
    for (signal, traffic, says) in [
        (Signal::Kill, "--op send", GONE),
        (Signal::Kill, "--op write -b", GONE),
        (Signal::Stop, "--op send", SILENT),
    ] {
        let lines = server.program.lines().len();
        let client = way(&server).client_in_the_window(&format!("{LONG} {traffic}"));
        client.signal(signal);
        server.says(lines, says);
        client.signal(Signal::Kill);
        assert_eq!(client.wait().signal, Some(9), "{traffic}");
        await_freed(&before);
    }
    server.serves_the_next();
    server.end();
}

/// While the kernel makes QPs for it, and while it connects them.
#[test]
fn a_client_among_many_qps() {
    let server = Server::start();
    server.serves_the_next();
    let before = both_hold();
    for kind in ["create", "connect"] {
        let lines = server.program.lines().len();
        let many = "-q 500 -t 4 -r 8 -Q 1 -n 1000 --warmup 0";
        let client = way(&server).client_at(Step::first(Sender::Client, kind), many);
        await_more(&before[0], "rxe0", "qp", 10);
        client.signal(Signal::Kill);
        server.says(lines, GONE);
        assert_eq!(client.wait().signal, Some(9), "{kind}");
        await_freed(&before);
    }
    server.serves_the_next();
    server.end();
}
