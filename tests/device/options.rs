//! Options whose effect is the kernel's: it takes them, and what it does with them is in the result.

use std::collections::BTreeSet;

use softroce::wire::Opcode;

use testing::network::{Capture, decode};
use testing::program::Server;

use crate::session::whole;

const SHORT: &str = "-n 40 --warmup 0 --verify";

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
