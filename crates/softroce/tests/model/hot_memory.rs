//! Memory that changes while the peer reads it: each READ completes with bytes that were there at some time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use softroce::transport::{Operation, Status};

use crate::counter::counter;
use crate::end::{Plan, pair};

const READ_BYTES: usize = 4096;
const READS: usize = 4000;

#[test]
fn reads_of_an_object_that_is_being_updated_all_complete() {
    let mut plan = Plan::default();
    // One second: a busy machine is no time-out.
    plan.deliveries.timeout = 18;
    let (client, server) = pair(&plan);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = server.address(0);
            let mut value = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                for word in 0..READ_BYTES as u64 / 8 {
                    let at = std::ptr::with_exposed_provenance_mut((start + word * 8) as usize);
                    // SAFETY: aligned, and memory of the server's, which all use as atomics meanwhile.
                    let word = unsafe { AtomicU64::from_ptr(at) };
                    word.store(value, Ordering::Relaxed);
                }
            }
        });
        let operation = Operation::Read {
            address: server.address(0),
            rkey: server.key,
        };
        let (mut posted, mut done) = (0, 0);
        let mut failed = Vec::new();
        while done < READS && failed.is_empty() {
            while posted < READS && posted - done < 8 {
                client.post(0, operation, &[client.sge(0, READ_BYTES)]);
                posted += 1;
            }
            let each = |completion: &softroce::transport::Completion| {
                done += 1;
                if completion.status != Status::Success {
                    failed.push(completion.status);
                }
            };
            client.cq.poll(8, each).expect("the CQ has room");
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(failed, []);
    });
    for name in ["bad_icrc", "timeouts"] {
        assert_eq!(counter(&client.nic, name), 0, "{name}");
    }
}
