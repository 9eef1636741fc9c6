//! Every operation on every kind of CQ, checked byte by byte, with every figure of the result accounted for.

use testing::check;
use testing::program::{Server, sweep};

use crate::session::whole;

/// Walks sweeps of so many cases.
fn all_whole(sweeps: &[(&str, usize)]) {
    let server = Server::start();
    for (line, cases) in sweeps {
        let result = whole(&server, &format!("{line} --verify"), *cases);
        result.cases.iter().for_each(|case| {
            let flow = &case.config.flows[0];
            assert_eq!(flow.from_device.as_deref(), Some("rxe0"), "{}", case.id);
            assert_eq!(flow.to_device.as_deref(), Some("rxe1"), "{}", case.id);
            assert_eq!(flow.path_mtu, Some(4096), "{}", case.id);
        });
    }
    server.end();
}

/// tests/embedded walks all combinations of the four.
#[test]
fn each_two_of_operation_cq_mode_and_poll_mode_over_each_service() {
    let server = Server::start();
    for (line, cases) in check::pairs_of_cells() {
        let how = "-q 3 --workers 2 -s 3000 -n 5 --verify --warmup 0 -t 4 -r 64";
        whole(&server, &format!("{line} {how}"), cases);
    }
    server.end();
}

/// More QPs than in every cell, and counts that no depth divides.
#[test]
fn small_messages() {
    all_whole(&[
        (
            "--op send,write,read --cq per-qp -q 16 -n 33 -t 16 -r 32 --workers 2 -s 64 --warmup 0",
            3,
        ),
        ("--op send,read -b -q 5 -n 13 -t 8 -r 16 --workers 2 -s 64 --warmup 0", 2),
        ("--op fetch-add,compare-swap --atomic-target shared -q 4 -n 33 -t 16 --warmup 0", 2),
    ]);
}

/// The driver cuts messages into packets of 4096 bytes here, each service in its own way. A datagram of UD is one packet.
#[test]
fn sizes_about_one_packet() {
    all_whole(&[
        ("--op send,write,read -s 4097,64K -q 5 -n 7 -t 4 -r 8 --warmup 0", 6),
        ("--service uc --op send,write-imm -s 4097,16K -q 4 -n 33 -t 8 -r 64 --warmup 0", 4),
        ("--service ud --op send-imm -s 4096 -q 4 -n 33 -t 8 -r 64 --warmup 0", 1),
    ]);
}

/// Soft-RoCE's SRQs, several elements, and MRs of QPs whose messages begin anywhere.
#[test]
fn shared_receives_and_scattered_messages() {
    let how = "--mr per-qp --offset 24 -s 9000 -n 21 --warmup 0 -t 8 -r 16";
    let shared = format!("--op send,write-imm --recv-queue shared --sges 4 -q 4 {how}");
    let own = format!("--op write,read --sges 4 -q 4 {how}");
    all_whole(&[(&shared, 2), (&own, 2)]);
}

/// Windows by time, in both directions, and a schedule.
#[test]
fn by_time_and_at_a_rate() {
    all_whole(&[
        ("--op send,read -b -D 500ms --warmup 50ms -t 4 -r 8 -q 3 -s 16K", 2),
        (
            "--op write,read --rate 500 -q 4 --workers 2 -s 64 -D 500ms --warmup 50ms --poll event",
            2,
        ),
    ]);
}

#[test]
fn both_ends_in_one_process() {
    let words = "--op send,write --cq per-qp -q 4 -s 64K -n 21 -t 8 -r 16 --verify --warmup 0";
    let result = sweep(words).is_whole(2).result();
    assert_eq!(result.nodes[0].host, result.nodes[1].host);
}
