//! UCX: what `ucx_info` finds, and `ucx_perftest` on its transports rc_verbs and ud_verbs.

use crate::child::succeed_alone;
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

/// Runs tests of `ucx_perftest`, each with these arguments and its own, and checks that it had all messages and nothing
/// to complain about.
fn perftest(environment: &str, arguments: &str, own: &[&str]) {
    for own in own {
        let pair = succeed(
            &format!("{environment} {TRANSPORTS} ucx_perftest"),
            &format!("{arguments} -t {own} -n {MESSAGES} -w 10"),
        );
        let mut lines = pair.client.stdout.lines();
        let last = lines.find(|line| line.starts_with("Final:"));
        let messages = last.and_then(|line| line.split_whitespace().nth(1));
        assert_eq!(messages, Some(MESSAGES.to_string().as_str()), "{pair}");
        for end in [&pair.server, &pair.client] {
            assert!(complaints(&end.stdout).is_empty(), "{pair}");
        }
    }
}

#[test]
fn ucx_info_finds_both_transports() {
    // The only device.
    let program = format!("SOFTROCE_ADDRESS=127.97.0.3 {TRANSPORTS} ucx_info");
    let ended = succeed_alone(&program, "-d");
    assert!(complaints(&ended.stdout).is_empty(), "{ended}");
    let mut found: Vec<&str> = Vec::new();
    let mut lines = ended.stdout.lines().filter(|line| line.starts_with('#'));
    while let Some(line) = lines.next() {
        if let Some(transport) = line.strip_prefix("#      Transport: ")
            && lines.next() == Some("#         Device: soft0:1")
        {
            found.push(transport);
        }
    }
    assert_eq!(found, ["rc_verbs", "ud_verbs"], "{ended}");
    let atomics = ended.stdout.matches("atomic_cswap: 64 bit").count();
    assert_eq!(atomics, 1, "{ended}");
}

#[test]
fn the_transport_layer() {
    const RC: [&str; 7] = [
        "am_lat",
        "am_bw -D zcopy -s 8000",
        "put_bw -D zcopy -s 65536",
        "get -D zcopy -s 65536",
        "add_mr",
        "fadd",
        "cswap",
    ];
    perftest("", "-d soft0:1 -x rc_verbs", &RC);
    let ud = "-d soft0:1 -x ud_verbs";
    perftest("", ud, &["am_lat", "am_bw -D zcopy -s 4000"]);
    // UCX looks for its address in the IPv6 header before a datagram.
    perftest("SOFTROCE_ADDRESS=::1", ud, &["am_lat"]);
}

#[test]
fn the_protocol_layer() {
    const TESTS: [&str; 9] = [
        "tag_bw -s 100000",
        // It sleeps until an event.
        "tag_lat -E sleep",
        "stream_bw",
        "ucp_am_bw",
        "ucp_add",
        "ucp_fadd",
        "ucp_cswap",
        "ucp_put_bw -s 100000",
        "ucp_get -s 100000",
    ];
    perftest("", "", &TESTS);
}
