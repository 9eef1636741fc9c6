//! Faults leave GSO batches together: what a loss costs is not hidden by a system call a packet.

use std::time::{Duration, Instant};

use softroce::transport::{Operation, Status};

use crate::counter::counter;
use crate::end::{Plan, pair};

/// System calls and lost packets of 64 KiB WRITEs on a link with these faults.
fn datagrams_sent(faults: &str) -> (u64, u64) {
    const MESSAGES: usize = 400;
    const BYTES: usize = 64 << 10;
    const DEPTH: usize = 4;
    let (from, to) = pair(&Plan {
        faults: faults.parse().unwrap(),
        ..Plan::default()
    });
    let write = Operation::Write {
        address: to.address(0),
        rkey: to.key,
    };
    let began = Instant::now();
    let (mut posted, mut done) = (0, 0);
    while done < MESSAGES {
        while posted < MESSAGES && posted - done < DEPTH {
            from.post(0, write, &[from.sge(0, BYTES)]);
            posted += 1;
        }
        done += from
            .cq
            .poll(DEPTH, |it| assert_eq!(it.status, Status::Success))
            .unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "a hang");
    }
    let of = |name| counter(&from.nic, name);
    (of("datagrams_sent"), of("fault_tx_dropped"))
}

#[test]
fn a_rare_loss_costs_few_system_calls() {
    let (without, _) = datagrams_sent("");
    let (with, lost) = datagrams_sent("seed=7,drop=0.1%");
    assert!(lost > 0);
    // After a loss the messages in flight are sent again; packets one by one would be 17 times as many.
    assert!(with < 2 * without, "{with} instead of {without}");
}
