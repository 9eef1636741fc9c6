//! UCX: what `ucx_info` finds, and `ucx_perftest` on its transports rc_verbs and ud_verbs.

use std::time::{Duration, Instant};

use crate::child::{machine, start};
use crate::pair::succeed;

/// The device alone, without shared memory and TCP.
const TRANSPORTS: &str =
    "UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=soft0:1 UCX_WARN_UNUSED_ENV_VARS=n";
const MESSAGES: u32 = 1000;

/// Lines of UCX that complain.
fn complaints(text: &str) -> Vec<&str> {
    let complains = |line: &&str| [" WARN ", " ERROR "].iter().any(|word| line.contains(word));
    text.lines().filter(complains).collect()
}

/// Runs a test of `ucx_perftest`, and checks that it measured all messages and had nothing to complain about.
fn perftest(arguments: &str) {
    perftest_of("", arguments);
}

fn perftest_of(environment: &str, arguments: &str) {
    let pair = succeed(
        &format!("{environment} {TRANSPORTS} ucx_perftest"),
        &format!("{arguments} -n {MESSAGES} -w 10"),
    );
    let last = pair
        .client
        .stdout
        .lines()
        .find(|line| line.starts_with("Final:"));
    let figures: Vec<f64> = last
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!(
        figures.first(),
        Some(&f64::from(MESSAGES)),
        "{}",
        pair.report()
    );
    assert!(
        figures[1..].iter().any(|figure| *figure > 0.0),
        "{}",
        pair.report()
    );
    for end in [&pair.server, &pair.client] {
        assert!(complaints(&end.stdout).is_empty(), "{}", pair.report());
    }
}

#[test]
fn ucx_info_finds_both_transports() {
    let _machine = machine();
    // The only device.
    let program = format!("SOFTROCE_ADDRESS=127.97.0.3 {TRANSPORTS} ucx_info");
    let ended = start(&program, "-d").end(Instant::now() + Duration::from_secs(20));
    assert!(ended.succeeded(), "{}", ended.report());
    assert!(complaints(&ended.stdout).is_empty(), "{}", ended.report());
    let mut found: Vec<&str> = Vec::new();
    let mut lines = ended.stdout.lines().filter(|line| line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(transport) = line.strip_prefix("#      Transport: ")
            && lines.next() == Some("#         Device: soft0:1")
        {
            found.push(transport);
        }
    }
    assert_eq!(found, ["rc_verbs", "ud_verbs"], "{}", ended.report());
    let atomics = ended.stdout.matches("atomic_cswap: 64 bit").count();
    assert_eq!(atomics, 1, "{}", ended.report());
}

#[test]
fn transfers_of_the_transport_layer_over_rc() {
    for kind in ["am_lat", "am_bw", "put_lat", "put_bw", "add_mr"] {
        perftest(&format!("-d soft0:1 -x rc_verbs -t {kind}"));
    }
    perftest("-d soft0:1 -x rc_verbs -t am_bw -D zcopy -s 8000");
    perftest("-d soft0:1 -x rc_verbs -t put_bw -D zcopy -s 65536");
    perftest("-d soft0:1 -x rc_verbs -t get -D zcopy -s 65536");
}

#[test]
fn atomics_of_the_transport_layer() {
    for kind in ["add_lat", "fadd", "cswap"] {
        perftest(&format!("-d soft0:1 -x rc_verbs -t {kind}"));
    }
}

#[test]
fn transfers_of_the_transport_layer_over_ud() {
    for kind in ["am_lat", "am_bw"] {
        perftest(&format!("-d soft0:1 -x ud_verbs -t {kind}"));
    }
    perftest("-d soft0:1 -x ud_verbs -t am_bw -D zcopy -s 4000");
    // UCX looks for its address in the IPv6 header before a datagram.
    perftest_of("SOFTROCE_ADDRESS=::1", "-d soft0:1 -x ud_verbs -t am_lat");
}

#[test]
fn messages_of_the_protocol_layer() {
    for kind in ["tag_lat", "tag_bw", "stream_bw", "ucp_am_bw"] {
        perftest(&format!("-t {kind}"));
    }
    perftest("-t tag_bw -s 100000");
    // It sleeps until an event.
    perftest("-t tag_lat -E sleep");
}

#[test]
fn remote_memory_of_the_protocol_layer() {
    for kind in [
        "ucp_put_lat",
        "ucp_get",
        "ucp_add",
        "ucp_fadd",
        "ucp_swap",
        "ucp_cswap",
    ] {
        perftest(&format!("-t {kind}"));
    }
    perftest("-t ucp_put_bw -s 100000");
    perftest("-t ucp_get -s 100000");
}
