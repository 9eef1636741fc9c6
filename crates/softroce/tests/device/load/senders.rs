//! Several senders to one receiver: all of them come to their end. How even their shares are is a matter of benchmarks.

use softroce::transport::Status;

use crate::support::end::{End, Plan};
use crate::support::look::SOON;
use testing::wait::wait_or_tell;

const SENDERS: usize = 8;
const MESSAGES: usize = 32;
const MESSAGE_BYTES: usize = 64 << 10;
const DEPTH: usize = 4;
/// What Linux gives by default (`net.core.rmem_max`).
const RECEIVE_BUFFER_BYTES: u32 = 212_992;

/// Has all senders write at once, and returns them and the target.
fn write_all(faults: &str) -> (Vec<End>, End) {
    let plan = Plan {
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
        ..Plan::default()
    };
    let senders: Vec<End> = (0..SENDERS).map(|_| End::new(&plan)).collect();
    let target = End::new(&Plan {
        qps: SENDERS,
        faults: faults.parse().unwrap(),
        ..plan
    });
    for (sender, qp) in senders.iter().zip(&target.qps) {
        sender.connect_qps(&sender.qps[0], &target, qp);
        target.connect_qps(qp, sender, &sender.qps[0]);
    }
    let mut left = [MESSAGES; SENDERS];
    let mut in_flight = [0; SENDERS];
    while left != [0; SENDERS] {
        // One look at each of them.
        let look = || {
            let before = left;
            for (number, sender) in senders.iter().enumerate() {
                while in_flight[number] < DEPTH.min(left[number]) {
                    let offset = number * MESSAGE_BYTES;
                    sender.post(0, target.write_to(offset), &[sender.sge(0, MESSAGE_BYTES)]);
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
            (left != before).then_some(left)
        };
        wait_or_tell(SOON, look, || "a message of any sender".into());
    }
    (senders, target)
}

#[test]
fn senders_to_a_small_buffer_all_come_to_an_end() {
    let (_, target) = write_all("");
    assert_eq!(target.counter("bad_icrc"), 0);
}

#[test]
fn a_slow_link_that_marks_tells_all_its_senders() {
    let (senders, target) = write_all("rx.rate=500M,rx.mark=200us");
    for sender in &senders {
        assert!(sender.counter("rp_cnp_handled") > 0);
    }
    assert!(target.counter("fault_rx_marked") > 0);
}
