//! A link that is slower than its sender: nothing is lost for that, and nothing sent twice.

use std::process::Command;

use crate::support::end::{End, Plan};
use crate::support::look::SOON;
use testing::wait::wait_until;

/// Set in the process that runs on the slow link.
const ON_SLOW_LINK: &str = "SOFTROCE_TEST_ON_SLOW_LINK";

/// Loopback at 100 Mb/s, with a queue that is longer than a socket's buffer, which is as large as any process may have it.
const SLOW_LINK: &str = "ip link set lo up && \
    tc qdisc add dev lo root tbf rate 100mbit burst 128kb limit 100mb && \
    exec setpriv --bounding-set=-net_admin \"$@\"";

#[test]
fn a_full_socket_loses_and_delays_nothing_else() {
    if std::env::var_os(ON_SLOW_LINK).is_some() {
        return transfers();
    }
    let own = "sockets::slow_link::a_full_socket_loses_and_delays_nothing_else";
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .args(["sh", "-c", SLOW_LINK, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", own])
        .env(ON_SLOW_LINK, "")
        .output()
        .expect("unshare, of the package util-linux");
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    // A test that is not found succeeds too.
    assert!(
        ended.status.success() && said.contains("1 passed"),
        "needs iproute2, and a kernel that gives users network namespaces and has sch_tbf:\n{said}"
    );
}

/// All connections have it, so that all use one socket.
const FLOW_LABEL: u32 = 5;

fn transfers() {
    // More than one, because the window of each peer is smaller than the socket's buffer.
    const PEERS: usize = 12;
    // So many that the windows grow.
    const EACH: usize = 40;
    const PLACES: usize = 3;
    const BYTES: usize = 64 << 10;
    let mut plan = Plan { memory_bytes: PLACES * BYTES, ..Plan::default() };
    plan.deliveries.timeout = FOR_EVER;
    let mut peers: Vec<End> = (0..PEERS).map(|_| End::new(&plan)).collect();
    let mut from = End::new(&Plan { qps: PEERS, ..plan });
    from.fill();
    for (qp, to) in from.qps.iter().zip(&peers) {
        let back = &to.qps[0];
        from.connect_to(qp, to.nic.address(), back.number(), FLOW_LABEL);
        to.connect_to(back, from.nic.address(), qp.number(), FLOW_LABEL);
    }
    // While the program polls, and while it does not.
    for polls in [true, false] {
        for posted in 0..EACH * PEERS {
            let offset = posted / PEERS % PLACES * BYTES;
            let to = peers[posted % PEERS].write_to(offset);
            from.post(posted % PEERS, to, &[from.sge(offset, BYTES)]);
        }
        if !polls {
            let last = PLACES * BYTES - 1;
            wait_until("the last bytes", SOON, || {
                peers.iter().all(|to| to.byte(last) == from.memory[last])
            });
        }
        from.succeeds(EACH * PEERS);
        for to in &peers {
            assert!(to.memory == from.memory);
        }
        for to in &mut peers {
            to.memory.fill(0);
        }
    }
    assert!(from.counter("packets_waited") > 0, "the link is not slow");
    for nothing in ["send_errors", "timeouts", "go_backs"] {
        assert_eq!(from.counter(nothing), 0, "{nothing}");
    }
}

/// The code of a time-out of more than two hours.
const FOR_EVER: u8 = 31;
