//! Unsupported features: programs get an error, one line on stderr, and end by themselves.

use crate::child::{Ended, run_alone};
use crate::pair::{free_port, run};

/// Checks that the program failed and printed this line exactly once.
fn was_told(ended: &Ended, line: &str) {
    let report = ended.to_string();
    let failed = ended.status.code().is_some_and(|code| code != 0);
    assert!(failed, "{report}");
    let lines = ended.stderr.lines();
    let said: Vec<_> = lines
        .filter(|line| line.starts_with("softroce: "))
        .collect();
    assert_eq!(said, [line], "{report}");
}

/// For programs that use the feature at their start.
fn is_refused(program: &str, arguments: &str, line: &str) {
    let arguments = format!("{arguments} -p {}", free_port());
    was_told(&run_alone(program, &arguments), line);
}

/// For programs that use the feature once both ends are connected.
fn both_are_refused(program: &str, arguments: &str, line: &str) {
    let pair = run(program, arguments);
    was_told(&pair.server, line);
    was_told(&pair.client, line);
}

#[test]
fn datagrams_by_rdma_cm() {
    let line = "softroce: a port space of rdma_cm other than RDMA_PS_TCP is not supported";
    is_refused("udaddy", "", line);
}

#[test]
fn rsockets() {
    is_refused("rstream", "", "softroce: rsocket is not supported");
}

#[test]
fn xrc() {
    let line = "softroce: ibv_open_xrcd is not supported";
    is_refused("ibv_xsrq_pingpong", "-d soft0 -g 0", line);
    both_are_refused("ib_write_bw", "-c XRC", line);
}

#[test]
fn raw_packets() {
    is_refused(
        "raw_ethernet_bw",
        "-d soft0 --client -B 02:00:00:00:00:01 -E 02:00:00:00:00:02",
        "softroce: a QP of another type than RC, UC and UD is not supported",
    );
}
