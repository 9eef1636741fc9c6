//! UCX: what `ucx_info` finds, `ucx_perftest` on its transports rc_verbs and ud_verbs, and Open MPI over it.

use crate::child::succeed_alone;
use crate::pair::succeed;

/// The device alone, without shared memory and TCP.
const TRANSPORTS: &str =
    "UCX_TLS=rc_verbs,ud_verbs UCX_NET_DEVICES=soft0:1 UCX_WARN_UNUSED_ENV_VARS=n";
const MESSAGES: u32 = 1000;

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

const RANKS: usize = 4;

/// Runs a benchmark of mpi4py on Open MPI, whose ranks pass a message on in a ring and check it.
fn ring(environment: &str) {
    // mpirun refuses root otherwise.
    let any_user = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    // UCX tells which transports it took.
    let ucx = "UCX_TLS=rc_verbs,ud_verbs,self UCX_NET_DEVICES=soft0:1 UCX_LOG_LEVEL=info";
    let program = format!("{environment} {any_user} {ucx} mpirun.openmpi");
    let arguments = format!(
        "--oversubscribe --tag-output -n {RANKS} --mca pml ucx --mca btl self \
         /usr/bin/python3 -m mpi4py.bench ringtest -n 20000 -l 50"
    );
    let ended = succeed_alone(&program, &arguments);
    let figure = format!("({RANKS} processes, 20000 bytes)");
    assert!(ended.stdout.contains(&figure), "{ended}");
    for rank in 0..RANKS {
        let tag = format!("[1,{rank}]");
        let mut own = ended.stdout.lines().filter(|line| line.starts_with(&tag));
        let has_it = own.any(|line| line.contains("tag(rc_verbs/soft0:1)"));
        assert!(has_it, "rank {rank}: {ended}");
    }
}

#[test]
fn ranks_of_mpi_at_addresses_of_their_own_and_at_one() {
    ring("");
    ring("SOFTROCE_ADDRESS=127.97.0.1");
}
