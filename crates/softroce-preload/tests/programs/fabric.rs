//! libfabric's provider `verbs`: connections by rdma_cm, datagrams, and what is built on them.

use crate::child::succeed_alone;
use crate::pair::succeed;

/// The rows of `fi_pingpong`'s tables, one for each size; as many messages have to be acknowledged as were sent.
fn whole_rows(stdout: &str, messages: u32) -> usize {
    let counts = format!("{messages:<8}={messages}");
    let rows = stdout.lines().filter(|line| line.contains('='));
    let whole = rows.map(|row| assert!(row.contains(&counts), "{stdout}"));
    whole.count()
}

#[test]
fn fi_info_finds_datagrams_and_what_is_built_on_them() {
    let ended = succeed_alone("fi_info", "-p verbs -d soft0-dgram");
    for wanted in ["FI_PROTO_IB_UD", "FI_PROTO_RXD"] {
        assert!(ended.stdout.contains(wanted), "{ended}");
    }
}

#[test]
fn fi_pingpong_over_connections() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/fi_msg.sh");
    let arguments = format!("--user --map-root-user --net sh {script}");
    let ended = succeed_alone("unshare", &arguments);
    // 64 B to 1 MiB, at both ends.
    assert_eq!(whole_rows(&ended.stdout, 100), 12, "{ended}");
}

#[test]
fn fi_pingpong_over_datagrams() {
    for (arguments, messages, sizes) in [
        // 64 B to 4 KiB, less than the MTU.
        ("-p verbs -e dgram -d soft0-dgram -I 20 -c", 20, 4),
        // 64 B to 1 MiB.
        ("-p verbs;ofi_rxd -e rdm -d soft0-dgram -I 100 -c", 100, 6),
    ] {
        let pair = succeed("fi_pingpong", arguments);
        for end in [&pair.server, &pair.client] {
            assert_eq!(whole_rows(&end.stdout, messages), sizes, "{pair}");
        }
    }
}
