//! Several senders to one receiver: all of them come to their end. How even their shares are is a matter of benchmarks.

use std::thread;

use crate::support::end::{End, Plan};

const SENDERS: usize = 8;
const MESSAGES: usize = 32;
const MESSAGE_BYTES: usize = 64 << 10;
const DEPTH: usize = 4;
/// What Linux gives by default (`net.core.rmem_max`).
const RECEIVE_BUFFER_BYTES: u32 = 212_992;

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
    thread::scope(|scope| {
        for (number, sender) in senders.iter().enumerate() {
            let to = target.write_to(number * MESSAGE_BYTES);
            scope.spawn(move || sender.run(MESSAGES, DEPTH, MESSAGE_BYTES, |_| (to, 0)));
        }
    });
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
