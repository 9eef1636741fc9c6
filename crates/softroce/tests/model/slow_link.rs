//! A link that is slower than its sender: nothing is lost for that, and nothing sent twice.

use std::process::Command;
use std::time::{Duration, Instant};

use softroce::transport::{Completion, Operation, Status};

use crate::counter::counter;
use crate::end::{End, Plan, pair};

/// Set in the process that runs on the slow link.
const ON_SLOW_LINK: &str = "SOFTROCE_TEST_ON_SLOW_LINK";

/// Loopback at 500 Mb/s, with a queue that is longer than a socket's buffer.
const SLOW_LINK: &str = "ip link set lo up && \
    tc qdisc add dev lo root tbf rate 500mbit burst 128kb limit 100mb && exec \"$@\"";

#[test]
fn a_full_socket_loses_and_delays_nothing_else() {
    if std::env::var_os(ON_SLOW_LINK).is_some() {
        return transfers();
    }
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .args(["sh", "-c", SLOW_LINK, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "slow_link::a_full_socket_loses_and_delays_nothing_else",
        ])
        .env(ON_SLOW_LINK, "")
        .output()
        .expect("unshare, of the package util-linux");
    // A test that is not found succeeds too.
    let is_done = String::from_utf8_lossy(&ended.stdout).contains("1 passed");
    assert!(
        ended.status.success() && is_done,
        "needs iproute2, and a kernel that gives users network namespaces and has sch_tbf:\n{}{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr),
    );
}

/// Polls until so many WRITEs have succeeded, with pauses; returns how often it polled.
fn complete(end: &End, mut wanted: usize, pause: Duration) -> u64 {
    let began = Instant::now();
    let mut polls = 0;
    while wanted > 0 {
        std::thread::sleep(pause);
        let each = |completion: &Completion| assert_eq!(completion.status, Status::Success);
        wanted -= end.cq.poll(wanted, each).unwrap();
        polls += 1;
        assert!(began.elapsed() < Duration::from_secs(60), "a hang");
    }
    polls
}

/// All connections have it, so that all use one socket.
const FLOW_LABEL: u32 = 5;

fn transfers() {
    // More than one, because the window of each peer is smaller than the socket's buffer.
    const PEERS: usize = 12;
    const MESSAGES: usize = 100 * PEERS;
    const BYTES: usize = 64 << 10;
    let mut plan = Plan {
        memory_bytes: PEERS * BYTES,
        ..Plan::default()
    };
    plan.deliveries.timeout = 18;
    let peers: Vec<End> = (0..PEERS).map(|_| End::new(&plan)).collect();
    let mut from = End::new(&Plan { qps: PEERS, ..plan });
    for (byte, at) in from.memory.iter_mut().zip(0_usize..) {
        *byte = (at * 7 + at / 4096) as u8;
    }
    for (qp, to) in from.qps.iter().zip(&peers) {
        let back = &to.qps[0];
        from.connect_to(qp, to.nic.address(), back.number(), FLOW_LABEL);
        to.connect_to(back, from.nic.address(), qp.number(), FLOW_LABEL);
    }
    // While the program polls, and while it does not.
    for pause in [Duration::ZERO, Duration::from_millis(20)] {
        for posted in 0..MESSAGES {
            let offset = posted / PEERS % PEERS * BYTES;
            let to = &peers[posted % PEERS];
            let write = Operation::Write {
                address: to.address(offset),
                rkey: to.key,
            };
            from.post(posted % PEERS, write, &[from.sge(offset, BYTES)]);
        }
        let (waited, tried) = (
            counter(&from.nic, "packets_waited"),
            counter(&from.nic, "room_attempts"),
        );
        let polls = complete(&from, MESSAGES, pause);
        let tried = counter(&from.nic, "room_attempts") - tried;
        let waited = counter(&from.nic, "packets_waited") - waited;
        assert!(waited > 0, "the link is not slow");
        assert!(
            pause > Duration::ZERO || tried * 4 < polls,
            "{tried} attempts to send in {polls} polls"
        );
    }
    for to in &peers {
        assert!(to.memory == from.memory);
    }
    for nothing in ["send_errors", "timeouts", "go_backs"] {
        assert_eq!(counter(&from.nic, nothing), 0, "{nothing}");
    }
}

/// All QPs post at once to a link of 83 Mb/s on which the last answer came in microseconds.
#[test]
fn what_waits_in_the_queue_of_a_link_is_not_sent_again() {
    const QPS: usize = 16;
    const BURSTS: usize = 8;
    const BYTES: usize = 64 << 10;
    let mut plan = Plan {
        qps: QPS,
        faults: "tx.rate=83M".parse().unwrap(),
        ..Plan::default()
    };
    plan.deliveries.timeout = 18;
    let (from, to) = pair(&plan);
    let write = Operation::Write {
        address: to.address(0),
        rkey: to.key,
    };
    // A window as large as it gets.
    for _ in 0..2 * QPS {
        from.post(0, write, &[from.sge(0, BYTES)]);
    }
    complete(&from, 2 * QPS, Duration::ZERO);
    for _ in 0..BURSTS {
        for _ in 0..50 {
            from.post(0, write, &[from.sge(0, 64)]);
            complete(&from, 1, Duration::ZERO);
        }
        for qp in 0..QPS {
            from.post(qp, write, &[from.sge(0, BYTES)]);
        }
        complete(&from, QPS, Duration::ZERO);
    }
    let packets = (BURSTS * QPS * BYTES / plan.mtu_bytes as usize) as u64;
    let repeated = counter(&to.nic, "duplicate_requests");
    assert!(
        repeated < packets / 20,
        "{repeated} of {packets} packets twice, {} probes",
        counter(&from.nic, "probes")
    );
}

#[test]
fn a_packet_lost_at_the_end_is_asked_after_before_the_time_out() {
    const BEFORE: usize = 40;
    let mut plan = Plan {
        qps: 2,
        faults: format!("tx.lose=write#{}", BEFORE + 1).parse().unwrap(),
        ..Plan::default()
    };
    plan.deliveries.timeout = 18;
    let (from, to) = pair(&plan);
    let write = Operation::Write {
        address: to.address(0),
        rkey: to.key,
    };
    for posted in 0..=BEFORE {
        from.post(posted % 2, write, &[from.sge(0, 64)]);
        complete(&from, 1, Duration::ZERO);
    }
    assert_eq!(counter(&from.nic, "timeouts"), 0);
    assert!(counter(&from.nic, "probes") > 0);
}
