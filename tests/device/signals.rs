//! Ctrl-C at either end, while the kernel has work for its QPs.

use testing::check;
use testing::process::Signal;
use testing::program::{Server, sweep};
use testing::sessions::{LONG, Traffic};

use crate::session::way;

#[test]
fn the_client_keeps_what_it_measured() {
    let server = Server::start();
    for op in ["send", "write", "read"] {
        let client = way(&server).client_in_the_window(&format!("{LONG} --op {op} --verify"));
        client.signal(Signal::Interrupt);
        let ended = client.wait().exits(1).says(&["interrupted"]);
        check::schema(ended.json());
        let run = ended.runs().remove(0);
        assert!(run.interrupted && !run.complete, "{op}");
        let totals = &run.flows[0].totals;
        assert!(totals.messages > 0, "{op}");
        assert_eq!(totals.errors, 0, "{op}: the queue is drained, not flushed");
    }
    server.serves_the_next();
    server.end();
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::start();
    let client = way(&server).client_in_the_window(LONG);
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
    let client = way(&server).client_in_the_window(LONG);
    server.program.signal(Signal::Interrupt);
    let ended = client.wait().exits(1).says(&["the server was stopped", "hint:"]);
    let run = ended.runs().remove(0);
    assert!(!run.complete && run.flows[0].totals.messages > 0);
    server.program.wait().exits(0);
}

#[test]
fn both_ends_in_one_process_stop_together() {
    let traffic = Traffic::new("rxe0");
    let client = sweep(LONG).start();
    traffic.await_packets(1);
    client.signal(Signal::Interrupt);
    let ended = client.wait().exits(1).says(&["interrupted"]);
    let run = ended.runs().remove(0);
    assert!(run.interrupted);
    assert_eq!(run.flows[0].totals.errors, 0);
}
