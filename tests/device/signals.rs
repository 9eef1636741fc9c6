//! Ctrl-C at either end.

use std::time::{Duration, Instant};

use crate::lab::check;
use crate::lab::program::{Program, Signal};
use crate::lab::server::Server;

/// Fast enough that its queue is soon empty, long enough to be interrupted.
const LONG: [&str; 10] = [
    "-D", "60s", "--warmup", "0", "-s", "4K", "-t", "8", "-q", "2",
];

fn await_traffic(server: &Server, client: &Program, lines: usize) {
    server.says(lines, "run 1");
    assert!(
        client
            .lines()
            .iter()
            .all(|(_, line)| !line.contains("error"))
    );
    std::thread::sleep(Duration::from_millis(1500));
}

#[test]
fn the_client_keeps_what_it_measured() {
    let server = Server::start();
    for op in ["send", "write", "read"] {
        let lines = server.program.lines().len();
        let client = server.client(&[&LONG[..], &["--op", op, "--verify"]].concat());
        await_traffic(&server, &client, lines);
        let asked = Instant::now();
        client.signal(Signal::Interrupt);
        let ended = client.wait().exits(1).says(&["interrupted"]);
        assert!(
            ended.at - asked < Duration::from_secs(4),
            "{op}: {:?}",
            ended.at - asked
        );
        check::schema(&ended.json());
        let run = ended.runs().remove(0);
        assert!(run.interrupted && !run.complete, "{op}");
        assert!(run.forward.totals.messages > 0, "{op}");
        assert!(
            run.forward.window.seconds > 0.5 && run.forward.window.seconds < 30.0,
            "{op}: {:?}",
            run.forward.window
        );
        assert_eq!(
            run.forward.totals.errors, 0,
            "{op}: the queue was drained, not flushed"
        );
        server.serves_the_next();
    }
    server.end();
}

#[test]
fn a_second_ctrl_c_ends_at_once() {
    let server = Server::start();
    let client = server.client(&LONG);
    await_traffic(&server, &client, 0);
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
    let client = server.client(&LONG);
    await_traffic(&server, &client, 0);
    let asked = Instant::now();
    server.program.signal(Signal::Interrupt);
    let ended = client
        .wait()
        .exits(1)
        .says(&["the server was stopped", "hint:"]);
    assert!(ended.time_of("the server was stopped") - asked < crate::lab::NOTICED);
    let run = ended.runs().remove(0);
    assert!(!run.complete && run.forward.totals.messages > 0);
    server.program.wait().exits(0);
}

#[test]
fn both_ends_in_one_process_stop_together() {
    let client = Program::sweep(&LONG);
    std::thread::sleep(Duration::from_millis(3500));
    let asked = Instant::now();
    client.signal(Signal::Interrupt);
    let ended = client.wait().exits(1).says(&["interrupted"]);
    assert!(ended.at - asked < Duration::from_secs(4));
    assert!(ended.runs()[0].forward.totals.messages > 0);
}
