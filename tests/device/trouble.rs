//! Transport errors on a real device: each is told with QP, operation, status, meaning and remedy.

use testing::network::Loss;
use testing::program::{Server, sweep};
use testing::sessions::{Proxy, Sender, Step, Traffic};

#[test]
fn a_cq_that_overflows_is_an_error_and_no_hang() {
    let call = sweep("--op write --cq-depth 4 -Q 1 -t 64 -D 10m --warmup 0 -s 64 -q 2");
    let ended = call.fails(&["CQ", "overflowed", "--cq-depth", "hint:"]);
    assert!(!ended.runs()[0].complete);
}

/// The wire drops all packets; the control connection takes another way, through the man in the middle on
/// loopback. So the transport gives up while the link is alive.
#[test]
fn packets_are_lost_for_good() {
    let server = Server::start();
    for op in ["send", "write", "read"] {
        let lines = server.program.lines().len();
        let measures = Step::first(Sender::Server, "measured");
        let proxy = Proxy::start("127.0.0.1", server.name.parse().unwrap(), measures, || {});
        let how = "--timeout 12 --retry-cnt 2 -t 8 -Q 1 -s 4K -D 10m --warmup 0 -q 2";
        let client = sweep(&format!("{} -d rxe0 -x 1 --op {op} {how}", proxy.address)).start();
        proxy.await_deed();
        Traffic::new("rxe0").await_packets(1_000);
        let loss = Loss::of_all("v0", "100%");
        let ended = client.wait().exits(1);
        drop(loss);
        let place = format!("{} on QP", op.to_uppercase());
        let ended = ended.says(&[&place, "RETRY_EXC_ERR", "hint:"]);
        let kept = ended.runs()[0].flows[0].totals.messages;
        assert!(kept > 0, "{op}: the results so far are kept");
        server.says(lines, "gave up");
    }
    server.serves_the_next();
}
