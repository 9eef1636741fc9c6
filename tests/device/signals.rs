//! Ctrl-C at either end.

use testing::check;
use testing::program::{Program, Signal};
use testing::server::Server;
use testing::traffic::Traffic;

/// Fast enough that its queue is soon empty, long enough to be interrupted.
const LONG: [&str; 10] = [
    "-D", "60s", "--warmup", "0", "-s", "4K", "-t", "8", "-q", "2",
];

/// More than are sent before the window is open.
const PACKETS: u64 = 5_000;

#[test]
fn the_client_keeps_what_it_measured() {
    let server = Server::start();
    for op in ["send", "write", "read"] {
        let traffic = Traffic::of("rxe0");
        let client = server.client(&[&LONG[..], &["--op", op, "--verify"]].concat());
        traffic.await_packets(PACKETS);
        client.signal(Signal::Interrupt);
        let ended = client.wait().exits(1).says(&["interrupted"]);
        check::schema(ended.json());
        let run = ended.runs().remove(0);
        assert!(run.interrupted && !run.complete, "{op}");
        assert!(run.flows[0].totals.messages > 0, "{op}");
        assert_eq!(
            run.flows[0].totals.errors, 0,
            "{op}: the queue was drained, not flushed"
        );
        server.serves_the_next();
    }
    server.end();
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::start();
    let traffic = Traffic::of("rxe0");
    let client = server.client(&LONG);
    traffic.await_packets(PACKETS);
    // Both together: the first one's drain may otherwise be over before the second comes.
    client.signal(Signal::Stop);
    client.signal(Signal::Interrupt);
    client.signal(Signal::Terminate);
    client.signal(Signal::Continue);
    client.wait().exits(130);
    server.serves_the_next();
}

#[test]
fn a_server_says_that_it_was_stopped() {
    let server = Server::start();
    let traffic = Traffic::of("rxe0");
    let client = server.client(&LONG);
    traffic.await_packets(PACKETS);
    server.program.signal(Signal::Interrupt);
    let ended = client
        .wait()
        .exits(1)
        .says(&["the server was stopped", "hint:"]);
    let run = ended.runs().remove(0);
    assert!(!run.complete && run.flows[0].totals.messages > 0);
    server.program.wait().exits(0);
}

#[test]
fn both_ends_in_one_process_stop_together() {
    let traffic = Traffic::of("rxe0");
    let client = Program::sweep(&LONG);
    traffic.await_packets(PACKETS);
    client.signal(Signal::Interrupt);
    let ended = client.wait().exits(1).says(&["interrupted"]);
    assert!(ended.runs()[0].flows[0].totals.messages > 0);
}
