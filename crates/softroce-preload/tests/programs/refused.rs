//! Unsupported features: programs get an error, one line on stderr, and end by themselves.

use testing::process::Ended;

use crate::child::run_alone;
use crate::pair::{free_port, run};

/// Checks that the program failed and printed this line exactly once.
fn was_refused(ended: &Ended, line: &str) {
    assert!(ended.code.is_some_and(|code| code != 0), "{}", ended.output());
    let lines = ended.stderr().lines().filter(|text| text.starts_with("softroce: "));
    assert_eq!(lines.collect::<Vec<_>>(), [line], "{}", ended.output());
}

const XRC: &str = "softroce: ibv_open_xrcd is not supported";
const ETHERNET: &str = "-d soft0 --client -B 02:00:00:00:00:01 -E 02:00:00:00:00:02";

#[test]
fn features_that_programs_use_at_their_start() {
    let by_ipoib =
        "softroce: a port space of rdma_cm other than RDMA_PS_TCP and RDMA_PS_UDP is not supported";
    let raw_packets = "softroce: a QP of another type than RC, UC and UD is not supported";
    let rsocket = "softroce: rsocket is not supported";
    for (program, arguments, line) in [
        ("udaddy", "-P ipoib", by_ipoib),
        ("rstream", "", rsocket),
        ("ibv_xsrq_pingpong", "-d soft0 -g 0", XRC),
        ("raw_ethernet_bw", ETHERNET, raw_packets),
    ] {
        let port = match program {
            // It takes it for a port space.
            "udaddy" => String::new(),
            _ => format!(" -p {}", free_port()),
        };
        let arguments = format!("{arguments}{port}");
        was_refused(&run_alone(program, &arguments), line);
    }
}

#[test]
fn xrc_once_both_ends_are_connected() {
    let pair = run("ib_write_bw", "-c XRC");
    was_refused(&pair.server, XRC);
    was_refused(&pair.client, XRC);
}
