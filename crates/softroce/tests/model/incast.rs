//! Several senders to one receiver whose buffer is that of a process without privileges: all get their share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use softroce::transport::{Operation, Status};

use crate::counter::counter;
use crate::end::{End, Plan};

const SENDERS: usize = 8;
const MESSAGE_BYTES: usize = 64 << 10;
const TIME: Duration = Duration::from_secs(3);
/// What Linux gives by default (`net.core.rmem_max`).
const RECEIVE_BUFFER_BYTES: u32 = 212_992;

#[test]
fn none_of_eight_senders_starves() {
    let plan = Plan {
        receive_buffer_bytes: Some(RECEIVE_BUFFER_BYTES),
        ..Plan::default()
    };
    let senders: Vec<End> = (0..SENDERS).map(|_| End::new(&plan)).collect();
    let target = End::new(&Plan {
        qps: SENDERS,
        ..plan
    });
    for (number, sender) in senders.iter().enumerate() {
        sender.connect_qps(&sender.qps[0], &target, &target.qps[number]);
        target.connect_qps(&target.qps[number], sender, &sender.qps[0]);
    }
    let stop = AtomicBool::new(false);
    let moved: Vec<AtomicU64> = (0..SENDERS).map(|_| AtomicU64::new(0)).collect();
    std::thread::scope(|scope| {
        for (sender, moved) in senders.iter().zip(&moved) {
            let (stop, target) = (&stop, &target);
            scope.spawn(move || {
                let operation = Operation::Write {
                    address: target.address(0),
                    rkey: target.key,
                };
                let mut in_flight = 0;
                while !stop.load(Ordering::Relaxed) {
                    while in_flight < 4 {
                        sender.post(0, operation, &[sender.sge(0, MESSAGE_BYTES)]);
                        in_flight += 1;
                    }
                    let each = |completion: &softroce::transport::Completion| {
                        assert_eq!(completion.status, Status::Success);
                        in_flight -= 1;
                        moved.fetch_add(1, Ordering::Relaxed);
                    };
                    sender.cq.poll(4, each).expect("the CQ has room");
                }
            });
        }
        let began = Instant::now();
        while began.elapsed() < TIME {
            target.cq.poll(1, |_| {}).expect("the CQ has room");
        }
        stop.store(true, Ordering::Relaxed);
    });
    let moved: Vec<u64> = moved.iter().map(|it| it.load(Ordering::Relaxed)).collect();
    let total: u64 = moved.iter().sum();
    let even = total / SENDERS as u64;
    assert!(moved.iter().all(|it| *it >= even / 4), "{moved:?}");
    // The sender asks after packets lost at the end of a window before the time-out, which a busy machine may reach.
    let timeouts = senders.iter().map(|it| counter(&it.nic, "timeouts"));
    let timeouts: u64 = timeouts.sum();
    assert!(
        timeouts < 5 * SENDERS as u64,
        "{timeouts} time-outs, {moved:?}"
    );
}
