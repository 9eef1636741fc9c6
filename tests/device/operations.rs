//! Every operation on every kind of CQ, checked byte by byte, with every figure of the result accounted for.

use crate::lab::check;
use crate::lab::program::sweep;
use crate::lab::server::Server;

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
fn small_messages_by_count() {
    let server = Server::start();
    let counted = [
        "-n", "33", "--verify", "--warmup", "0", "-t", "16", "-r", "32",
    ];
    let queues = ["-q", "1,4,16", "-s", "64", "-w", "1,2"];
    all_ops(&server, 54, &[&counted[..], &queues].concat());
    server.end();
}

#[test]
fn large_messages_by_count() {
    let server = Server::start();
    let counted = ["-n", "7", "--verify", "--warmup", "0", "-t", "4", "-r", "8"];
    let queues = ["-q", "1,4,16", "-s", "64K", "-w", "2"];
    all_ops(&server, 27, &[&counted[..], &queues].concat());
    server.end();
}

#[test]
fn both_directions_by_count() {
    let server = Server::start();
    let counted = [
        "-b", "-n", "13", "--verify", "--warmup", "0", "-t", "8", "-r", "16",
    ];
    let queues = ["-q", "2,5", "-s", "64", "-w", "1,2"];
    all_ops(&server, 36, &[&counted[..], &queues].concat());
    server.end();
}

#[test]
fn both_directions_by_time() {
    let server = Server::start();
    let timed = [
        "-b", "-D", "100ms", "--verify", "--warmup", "50ms", "-t", "4", "-r", "8",
    ];
    let queues = ["-q", "3", "-s", "16K", "-w", "1"];
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
    let queues = ["-q", "4", "-s", "1,64K", "-w", "2"];
    all_ops(&server, 18, &[&timed[..], &queues].concat());
    server.end();
}

#[test]
fn both_ends_in_one_process() {
    let ended = sweep(
        &[
            &OPS[..],
            &[
                "-q", "1,4", "-s", "64,64K", "-n", "21", "-t", "8", "-r", "16", "--verify",
                "--warmup", "0",
            ],
        ]
        .concat(),
    )
    .exits(0);
    let result = check::complete(&ended);
    assert_eq!(result.cases.len(), 36);
    assert_eq!(result.nodes[0].host, result.nodes[1].host);
}
