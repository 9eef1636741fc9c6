//! `--op connect` on the kernel's device, by TCP and by `rdma_cm`: an end may die or be stopped between two QPs.

use testing::process::{Signal, send_signal};
use testing::program::{Server, sweep};
use testing::sessions::{Proxy, Sender, Step};

use crate::session::{await_more, held, way, whole};

/// Rounds that go on until a test ends them.
const ENDLESS: &str = "--op connect -s 4K -t 8 -D 10m --warmup 0";

/// At the third message of its kind, in the midst of the window.
#[test]
fn a_servers_death_at_a_step_of_a_round_is_noticed() {
    for (way, from, kind) in [
        ("tcp", Sender::Server, "array"),
        ("tcp", Sender::Server, "gone"),
        ("cm", Sender::Client, "round"),
        ("cm", Sender::Server, "array"),
    ] {
        let server = Server::start();
        let pid = server.program.pid();
        let mut step = Step::first(from, kind);
        step.nth = 3;
        let address = server.name.parse().unwrap();
        let proxy = Proxy::start("192.0.2.1", address, step, move || {
            send_signal(pid, Signal::Kill);
        });
        let line = format!("{} -d rxe0 -q 64 {ENDLESS} --connect {way}", proxy.address);
        let client = sweep(&line).start();
        let ended = client.wait().exits(1).says(&["closed the connection"]);
        proxy.await_deed();
        let run = ended.runs().remove(0);
        assert!(!run.complete, "{way} {kind}");
        let connections = run.connect.map(|it| it.connections);
        assert!(connections >= Some(64), "{way} {kind}: {:?}", run.failure);
    }
}

#[test]
fn ctrl_c_is_obeyed_between_two_queue_pairs() {
    let server = Server::start();
    for (mode, kind) in [("tcp", "qp"), ("cm", "cm_id")] {
        let before = held("rxe0");
        let endless = format!("-q 256 {ENDLESS} --connect {mode}");
        let client = way(&server).client_at(Step::first(Sender::Client, "round"), &endless);
        await_more(&before, "rxe0", kind, 20);
        client.signal(Signal::Interrupt);
        let ended = client.wait().exits(1).says(&["interrupted"]);
        assert!(ended.runs()[0].interrupted, "{mode}");
    }
    whole(&server, "-n 20 --warmup 0 -s 64", 1);
    server.end();
}
