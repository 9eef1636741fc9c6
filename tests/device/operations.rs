//! Every operation on every kind of CQ, checked byte by byte, with every figure of the result accounted for.

use report::results::model::{CaseResult, ResultFile};
use settings::PollMode;

use testing::program::sweep;
use testing::program::words;
use testing::server::Server;
use testing::{cells, check};

const OPS: &str = "--op send,write,read --cq shared,per-worker,per-qp";

fn all_ops(server: &Server, more: &str) {
    let result = cases(server, &format!("{OPS} {more}"), 9);
    for case in &result.cases {
        assert_eq!(case.config.flows[0].from_device.as_deref(), Some("rxe0"));
        assert_eq!(case.config.flows[0].to_device.as_deref(), Some("rxe1"));
        assert_eq!(case.config.flows[0].path_mtu, Some(4096));
    }
}

/// A sweep of so many cases, all complete and right.
#[track_caller]
fn cases(server: &Server, all: &str, count: usize) -> ResultFile {
    let result = check::complete(&server.sweep(&words(all)).exits(0));
    assert_eq!(result.cases.len(), count, "{all}");
    result
}

#[test]
fn atomic_operations_on_one_word() {
    let server = Server::start();
    let words =
        "--op fetch-add,compare-swap --atomic-target shared -q 4 -n 33 --verify --warmup 0 -t 16";
    cases(&server, words, 2);
    server.end();
}

/// More QPs than in every cell, and counts that no depth divides.
#[test]
fn small_messages_by_count() {
    let server = Server::start();
    let how = "--op send,write,read --workers 2 -s 64 --verify --warmup 0";
    for (words, count) in [
        ("--cq shared,per-worker,per-qp -q 16 -n 33 -t 16 -r 32", 9),
        ("--cq shared,per-qp -b -q 5 -n 13 -t 8 -r 16", 6),
    ] {
        cases(&server, &format!("{words} {how}"), count);
    }
    server.end();
}

/// The driver cuts messages into packets of 4096 bytes here, each service in its own way. A datagram of UD is one packet.
#[test]
fn sizes_about_one_packet_by_count() {
    let server = Server::start();
    let unreliable = "-q 4 -n 33 -t 8 -r 64";
    for (words, how, count) in [
        (
            "--op send,write,read -s 4096,4097,64K",
            "-q 5 -n 7 -t 4 -r 8",
            9,
        ),
        (
            "--service uc --op send,send-imm,write,write-imm -s 64,4097,16K",
            unreliable,
            12,
        ),
        ("--service ud --op send,send-imm -s 64,4096", unreliable, 4),
    ] {
        let words = format!("{words} {how} --verify --warmup 0");
        let result = cases(&server, &words, count);
        let mtu = |case: &CaseResult| case.config.flows[0].path_mtu;
        assert!(result.cases.iter().all(|case| mtu(case) == Some(4096)));
    }
    server.end();
}

/// Soft-RoCE's SRQs, several elements, and MRs of QPs whose messages begin anywhere.
#[test]
fn shared_receives_and_scattered_messages() {
    let server = Server::start();
    let all = "--op send,write,read,write-imm --recv-queue per-qp,shared --sges 1,4 --mr per-qp --offset 24 \
               -q 1,4 -s 9000 -n 21 --verify --warmup 0 -t 8 -r 16";
    // Two operations with both kinds of receives, and two with none, by two numbers of elements and of QPs.
    cases(&server, all, 24);
    server.end();
}

#[test]
fn every_cell_of_services_operations_cq_modes_and_poll_modes() {
    let server = Server::start();
    let more = "-q 3 --workers 2 -s 3000 -n 20 --verify --warmup 0 -t 8 -r 64";
    for (words, count) in cells::of_services() {
        let result = cases(&server, &format!("{words} {more}"), count);
        let cases = result.cases.iter();
        for case in cases.filter(|case| case.config.poll != PollMode::Busy) {
            let poll = case.config.poll.name();
            assert!(case.id.contains(&format!("-{poll}")), "{}", case.id);
        }
    }
    server.end();
}

#[test]
fn both_directions_by_time() {
    let server = Server::start();
    let how = "-b -D 100ms --verify --warmup 50ms -t 4 -r 8 -q 3 -s 16K --workers 1";
    all_ops(&server, how);
    server.end();
}

#[test]
fn one_direction_by_time() {
    let server = Server::start();
    // Four polling workers take turns on the guest's two cores: a window must be longer than a turn.
    let how = "-D 500ms --verify --warmup 50ms -t 8 -r 16 -q 4 -s 64K --workers 2";
    all_ops(&server, how);
    server.end();
}

#[test]
fn both_ends_in_one_process() {
    let all = format!("{OPS} -q 4 -s 64K -n 21 -t 8 -r 16 --verify --warmup 0");
    let result = check::complete(&sweep(&words(&all)).exits(0));
    assert_eq!(result.cases.len(), 9);
    assert_eq!(result.nodes[0].host, result.nodes[1].host);
}
