//! Every operation on every kind of CQ, checked byte by byte, with every figure of the result accounted for.

use settings::PollMode;

use crate::lab::program::sweep;
use crate::lab::server::Server;
use crate::lab::{cells, check};

const OPS: [&str; 4] = [
    "--op",
    "send,write,read",
    "--cq",
    "shared,per-worker,per-qp",
];

fn all_ops(server: &Server, cases: usize, more: &[&str]) {
    let arguments: Vec<&str> = OPS.iter().chain(more).copied().collect();
    let ended = server.sweep(&arguments).exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), cases);
    for case in &result.cases {
        assert_eq!(case.config.flows[0].from_device.as_deref(), Some("rxe0"));
        assert_eq!(case.config.flows[0].to_device.as_deref(), Some("rxe1"));
        assert_eq!(case.config.flows[0].path_mtu, Some(4096));
    }
}

#[test]
fn atomic_operations_on_one_word() {
    let server = Server::start();
    let words =
        "--op fetch-add,compare-swap --atomic-target shared -q 4 -n 33 --verify --warmup 0 -t 16";
    let ended = server.sweep(&words.split(' ').collect::<Vec<_>>()).exits(0);
    assert_eq!(check::complete(&ended).cases.len(), 2);
    server.end();
}

/// Soft-RoCE's SRQs, several elements, and MRs of QPs whose messages begin anywhere.
#[test]
fn shared_receives_and_scattered_messages() {
    let server = Server::start();
    let ended = server
        .sweep(&[
            "--op",
            "send,write,read,write-imm",
            "--recv-queue",
            "per-qp,shared",
            "--sges",
            "1,4",
            "--mr",
            "per-qp",
            "--offset",
            "24",
            "-q",
            "1,4",
            "-s",
            "9000",
            "-n",
            "21",
            "--verify",
            "--warmup",
            "0",
            "-t",
            "8",
            "-r",
            "16",
        ])
        .exits(0);
    let result = check::complete(&ended);
    // Two operations with both kinds of receives, and two with none, by two numbers of elements and of QPs.
    assert_eq!(result.cases.len(), 24);
    server.end();
}

#[test]
fn unreliable_messages_of_many_packets() {
    let server = Server::start();
    let words = "--service uc --op send,send-imm,write,write-imm -s 16K -q 4 -n 33 --verify --warmup 0 -t 8 -r 64";
    let ended = server.sweep(&words.split(' ').collect::<Vec<_>>()).exits(0);
    assert_eq!(check::complete(&ended).cases.len(), 4);
    server.end();
}

#[test]
fn every_cell_of_services_operations_cq_modes_and_poll_modes() {
    let server = Server::start();
    let more = "-q 3 --workers 2 -s 3000 -n 20 --verify --warmup 0 -t 8 -r 64";
    for (words, cases) in cells::of_services() {
        let all: Vec<&str> = words.split(' ').chain(more.split(' ')).collect();
        let ended = server.sweep(&all).exits(0);
        let result = check::complete(&ended);
        assert_eq!(result.cases.len(), cases, "{words}");
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
    let timed = [
        "-b", "-D", "100ms", "--verify", "--warmup", "50ms", "-t", "4", "-r", "8",
    ];
    let queues = ["-q", "3", "-s", "16K", "--workers", "1"];
    all_ops(&server, 9, &[&timed[..], &queues].concat());
    server.end();
}

#[test]
fn one_direction_by_time() {
    let server = Server::start();
    // Four polling workers take turns on the guest's two cores: a window must be longer than a turn.
    let timed = [
        "-D", "500ms", "--verify", "--warmup", "50ms", "-t", "8", "-r", "16",
    ];
    let queues = ["-q", "4", "-s", "64K", "--workers", "2"];
    all_ops(&server, 9, &[&timed[..], &queues].concat());
    server.end();
}

#[test]
fn both_ends_in_one_process() {
    let ended = sweep(
        &[
            &OPS[..],
            &[
                "-q", "4", "-s", "64K", "-n", "21", "-t", "8", "-r", "16", "--verify", "--warmup",
                "0",
            ],
        ]
        .concat(),
    )
    .exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 9);
    assert_eq!(result.nodes[0].host, result.nodes[1].host);
}
