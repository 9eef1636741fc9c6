//! What timers cost does not depend on the number of QPs.

use std::time::{Duration, Instant};

use softroce::transport::{Nic, Operation, Status};

use crate::completion::completion;
use crate::counter::counter;
use crate::end::{End, Plan, pair};

const QPS: usize = 500;

fn timer_checks(nic: &Nic) -> u64 {
    counter(nic, "timer_checks")
}

fn ends(faults: &str) -> (End, End) {
    pair(&Plan {
        qps: QPS,
        memory_bytes: 1 << 16,
        send_wrs: 4,
        recv_wrs: 4,
        faults: faults.parse().unwrap(),
        ..Plan::default()
    })
}

#[test]
fn delayed_packets_of_one_qp_look_at_no_other() {
    const ROUNDS: usize = 100;
    let (from, to) = ends("delay=20us");
    let write = Operation::Write {
        address: to.address(0),
        rkey: to.key,
    };
    for _ in 0..ROUNDS {
        from.post(0, write, &[from.sge(0, 64)]);
        assert_eq!(completion(&from).status, Status::Success);
    }
    let checks = timer_checks(&from.nic) + timer_checks(&to.nic);
    // One QP has a timer, and it is looked at once a time-out of 67 ms.
    assert!(checks < QPS as u64 / 2, "{checks}");
}

#[test]
fn pauses_of_one_qp_look_at_no_other() {
    let (from, to) = ends("");
    // No receive is posted: a receiver that is not ready asks for a pause, again and again.
    from.post(0, Operation::Send, &[from.sge(0, 64)]);
    let until = Instant::now() + Duration::from_millis(50);
    while Instant::now() < until {
        assert_eq!(from.cq.poll(1, |_| ()), Ok(0));
    }
    let paused = timer_checks(&from.nic);
    assert!((1..QPS as u64 / 2).contains(&paused), "{paused}");
    drop(to);
}
