//! Options whose effect is the kernel's: it takes them, and what it does with them is in the result.

use std::collections::BTreeSet;

use results::model::CaseConfig;
use softroce::wire::Opcode;

use testing::network::{Capture, decode};
use testing::program::Server;

use crate::session::whole;

const SHORT: &str = "-n 40 --warmup 0 --verify";

/// What a case must be configured as.
type Expected = fn(&CaseConfig) -> bool;

#[test]
fn the_kernel_takes_them() {
    let server = Server::start();
    let table: [(&str, usize, Expected); 6] = [
        ("-t 32 -r 64 --op send,write,read -Q 8 -l 32 -s 64", 3, |it| it.signal_every == 8),
        ("-t 32 -r 64 --op send -Q 7 -l 3 -s 64", 1, |it| it.signal_every == 7),
        ("-I 64 --op send,write -s 64 -t 16", 2, |it| it.inline_bytes == 64),
        ("-t 1 -r 1 -q 3 --op send,read -s 64", 2, |it| it.tx_depth == 1),
        // 8 completions of sends can be outstanding, and 8 receives at the other end.
        ("--cq-depth 8 -t 8 -Q 1 -r 8 --op send,read -s 64", 2, |it| it.cq_depth == Some(8)),
        (
            "--timeout 16 --retry-cnt 3 --rnr-retry 6 --min-rnr-timer 1 --service-level 3 --traffic-class 106 \
             --max-rd-atomic 1 --op read,send -s 64",
            2,
            |it| {
                (it.timeout, it.retry_cnt, it.rnr_retry) == (16, 3, 6)
                    && (it.min_rnr_timer, it.service_level) == (1, 3)
                    && (it.traffic_class, it.max_rd_atomic) == (106, Some(1))
            },
        ),
    ];
    for (line, cases, expected) in table {
        let result = whole(&server, &format!("{line} {SHORT}"), cases);
        for case in &result.cases {
            assert!(expected(&case.config), "{}", case.id);
        }
    }
    server.end();
}

#[test]
fn ping_pongs_are_answered() {
    let server = Server::start();
    for (line, cases) in [
        ("-q 3 --op send,write,send-imm,write-imm,read", 5),
        ("--service uc --op send,write", 2),
        ("--service ud --op send --poll event", 1),
    ] {
        whole(&server, &format!("--ping-pong {line} -s 64 -n 40 --warmup 0"), cases);
    }
    server.end();
}

#[test]
fn path_mtus() {
    let server = Server::start();
    let line = format!("-m 256,512,1024,2048,4096 -s 8K {SHORT}");
    let result = whole(&server, &line, 5);
    let mtus = result.cases.iter().map(|case| case.config.flows[0].path_mtu.unwrap());
    assert_eq!(mtus.collect::<Vec<_>>(), [256, 512, 1024, 2048, 4096]);
    server.end();
}

/// The GID is the one that was asked for, or has the family of the control connection.
#[test]
fn gids() {
    for (address, line, gid) in [
        ("192.0.2.2", "-i 1 -x 1", "::ffff:192.0.2.1"),
        ("2001:db8::2", "--op send,read", "2001:db8::1"),
    ] {
        let server = Server::on(address, "rxe1", "");
        let cases = line.split(',').count();
        let result = whole(&server, &format!("{line} -s 64 {SHORT}"), cases);
        let used = result.nodes[0].devices[0].gid.as_deref();
        assert_eq!(used, Some(gid));
        assert_eq!(result.nodes[1].devices[0].name, "rxe1");
        server.end();
    }
}

/// The result's are computed as the kernel computes them.
#[test]
fn udp_source_ports_are_those_on_the_wire() {
    let server = Server::start();
    let capture = Capture::start();
    let line = format!("-q 8 --op write -s 64 -t 4 {SHORT}");
    let result = whole(&server, &line, 1);
    let frames = capture.stop();
    server.end();
    let reported: BTreeSet<u16> =
        result.cases[0].runs[0].flows[0].qps.iter().filter_map(|qp| qp.udp_source_port).collect();
    let seen: BTreeSet<u16> = frames
        .iter()
        .filter_map(|frame| decode(frame).ok())
        .filter(|it| it.packet.opcode == Opcode::WriteOnly)
        .map(|it| it.source_port)
        .collect();
    assert_eq!((reported.len(), &reported), (8, &seen));
}
