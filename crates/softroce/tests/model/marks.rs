//! Marked packets: transfers stay right, senders slow down, and without marks nothing is different.

use std::time::{Duration, Instant};

use softroce::transport::{Operation, Status};

use crate::counter::counter;
use crate::end::{End, Plan, pair};

const MESSAGES: usize = 64;
const BYTES: usize = 64 << 10;
/// In flight at once.
const DEPTH: usize = 8;

fn plan(faults: &str) -> Plan {
    Plan {
        memory_bytes: MESSAGES * BYTES,
        faults: faults.parse().unwrap(),
        ..Plan::default()
    }
}

/// Moves all of the memory of one end to the other, by a program that polls at both.
fn transfer(from: &End, to: &End, operation: impl Fn(usize) -> Operation) {
    let (mut posted, mut done) = (0, 0);
    let began = Instant::now();
    while done < MESSAGES {
        while posted < MESSAGES && posted - done < DEPTH {
            from.post(0, operation(posted), &[from.sge(posted * BYTES, BYTES)]);
            posted += 1;
        }
        let each = |completion: &softroce::transport::Completion| {
            assert_eq!(completion.status, Status::Success);
            done += 1;
        };
        from.cq.poll(DEPTH, each).unwrap();
        to.cq.poll(1, |_| {}).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "a hang");
    }
}

fn fill(end: &mut End) {
    for (byte, at) in end.memory.iter_mut().zip(0_usize..) {
        *byte = (at * 7 + at / 4096) as u8;
    }
}

#[test]
fn writes_that_meet_marks_slow_down_and_lose_nothing() {
    for (sends, receives) in [("tx.mark=100%", ""), ("", "rx.mark=100%")] {
        let (mut a, b) = (End::new(&plan(sends)), End::new(&plan(receives)));
        a.connect(&b);
        b.connect(&a);
        fill(&mut a);
        transfer(&a, &b, |at| Operation::Write {
            address: b.address(at * BYTES),
            rkey: b.key,
        });
        assert!(a.memory == b.memory);
        assert!(counter(&b.nic, "np_ecn_marked_roce_packets") >= (MESSAGES * BYTES / 4096) as u64);
        assert!(counter(&b.nic, "np_cnp_sent") > 0);
        assert!(counter(&a.nic, "rp_cnp_handled") > 0);
        assert!(counter(&a.nic, "rate_waits") > 0);
    }
}

#[test]
fn a_reader_that_gets_marks_asks_for_less() {
    let (a, mut b) = pair(&plan("rx.mark=100%"));
    fill(&mut b);
    transfer(&a, &b, |at| Operation::Read {
        address: b.address(at * BYTES),
        rkey: b.key,
    });
    assert!(a.memory == b.memory);
    assert!(counter(&a.nic, "np_cnp_sent") > 0);
    assert!(counter(&b.nic, "rp_cnp_handled") > 0);
    assert!(counter(&a.nic, "rate_waits") > 0);
}

#[test]
fn without_marks_nobody_is_told_or_waits() {
    let (mut a, b) = pair(&plan("none"));
    fill(&mut a);
    transfer(&a, &b, |at| Operation::Write {
        address: b.address(at * BYTES),
        rkey: b.key,
    });
    for end in [&a, &b] {
        for name in [
            "np_ecn_marked_roce_packets",
            "np_cnp_sent",
            "rp_cnp_handled",
            "rp_cnp_ignored",
            "rate_waits",
        ] {
            assert_eq!(counter(&end.nic, name), 0, "{name}");
        }
    }
}

#[test]
fn a_slow_link_that_marks_slows_all_its_senders_down() {
    const SENDERS: usize = 4;
    let senders: Vec<End> = (0..SENDERS).map(|_| End::new(&plan("none"))).collect();
    let target = End::new(&Plan {
        qps: SENDERS,
        memory_bytes: SENDERS * BYTES,
        ..plan("rx.rate=500M,rx.mark=200us")
    });
    for (sender, qp) in senders.iter().zip(&target.qps) {
        sender.connect_qps(&sender.qps[0], &target, qp);
        target.connect_qps(qp, sender, &sender.qps[0]);
    }
    let mut left = [MESSAGES; SENDERS];
    let mut in_flight = [0; SENDERS];
    let began = Instant::now();
    while left != [0; SENDERS] {
        for (number, sender) in senders.iter().enumerate() {
            while in_flight[number] < DEPTH.min(left[number]) {
                let write = Operation::Write {
                    address: target.address(number * BYTES),
                    rkey: target.key,
                };
                sender.post(0, write, &[sender.sge(0, BYTES)]);
                in_flight[number] += 1;
            }
            let each = |completion: &softroce::transport::Completion| {
                assert_eq!(completion.status, Status::Success);
                in_flight[number] -= 1;
                left[number] -= 1;
            };
            sender.cq.poll(DEPTH, each).unwrap();
        }
        target.cq.poll(1, |_| {}).unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "a hang");
    }
    for sender in &senders {
        assert!(counter(&sender.nic, "rp_cnp_handled") > 0);
        assert!(counter(&sender.nic, "rate_waits") > 0);
    }
    assert!(counter(&target.nic, "fault_rx_marked") > 0);
}
