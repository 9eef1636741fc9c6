//! Transport errors on a real device: each is told with QP, operation, status, meaning and remedy, and soon.

use testing::netem::Loss;
use testing::program::words;
use testing::program::{Program, Signal, sweep};
use testing::proxy::{From, Proxy, Step};
use testing::server::Server;

#[test]
fn a_cq_that_overflows_is_an_error_and_no_hang() {
    for op in ["send", "write", "read"] {
        let all = format!("--op {op} --cq-depth 4 -Q 1 -t 64 -D 2s --warmup 0 -s 64 -q 2");
        let ended = sweep(&words(&all))
            .exits(1)
            .says(&["CQ", "overflowed", "--cq-depth", "hint:"]);
        assert!(!ended.runs()[0].complete);
    }
}

/// The receiver is stopped, so its receives run out: SEND gives up after the retries it was given.
#[test]
fn no_receive_was_posted() {
    let server = Server::start();
    // The receives are enough for 20 ms in which a busy host does not run the server.
    let how = "--rnr-retry 1 -r 1024 -t 16 -Q 1 -s 64 -D 10s --warmup 0 -q 2";
    let client = server.client(&words(how));
    client.has_moved(0, "measure", 0);
    server.program.signal(Signal::Stop);
    let ended = client.wait();
    server.program.signal(Signal::Continue);
    let ended = ended
        .exits(1)
        .says(&["SEND on QP", "RNR_RETRY_EXC_ERR", "hint:"]);
    let failure = ended.runs()[0].failure.clone().unwrap();
    assert!(
        failure.message.contains("were flushed after it"),
        "{}",
        failure.message
    );
    assert!(
        ended.runs()[0].flows[0].totals.messages > 0,
        "all figures so far are kept"
    );
    server.serves_the_next();
}

/// The wire drops all packets; the control connection takes another way, through the man in the middle on
/// loopback. So the transport gives up while the link is alive.
#[test]
fn packets_are_lost_for_good() {
    for op in ["send", "write", "read"] {
        let server = Server::start();
        let lines = server.program.lines().len();
        // By loopback, which loses nothing.
        let never = Step {
            from: From::Client,
            kind: "",
            nth: 1,
        };
        let proxy = Proxy::start("127.0.0.1", server.name.parse().unwrap(), never, || ());
        let client = Program::sweep(&words(&format!(
            "{} -d rxe0 -x 1 --op {op} --timeout 12 --retry-cnt 2 -t 8 -Q 1 -s 4K -D 20s --warmup 0 -q 2",
            proxy.address
        )));
        client.has_moved(0, "measure", 0);
        let loss = Loss::of_all("v0", "100%");
        let ended = client.wait();
        drop(loss);
        let place = format!("{} on QP", op.to_uppercase());
        let ended = ended.exits(1).says(&[&place, "RETRY_EXC_ERR", "hint:"]);
        assert!(
            ended.runs()[0].flows[0].totals.messages > 0,
            "all figures so far are kept"
        );
        server.says(lines, "gave up");
        server.serves_the_next();
    }
}
