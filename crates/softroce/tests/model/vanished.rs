//! A peer that disappears: after the configured time an error, then flushes; never a hang.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use softroce::transport::{Deliveries, Operation, State, Status};
use softroce::wire::time_of_code_ns;

use crate::end::{self, Plan};
use crate::scenario::Setup;
use crate::script::Script;
use crate::testbed::{Checked, Trouble};

/// How the peer disappears.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Its QP is destroyed.
    Destroyed,
    /// Its QP is in error, and silent.
    Failed,
    /// Its QP is reset.
    Reset,
}

fn wait(timeout: u8) -> Duration {
    Duration::from_nanos(time_of_code_ns(timeout))
}

fn vanish(way: Way, timeout: u8, retry_count: u8, reads: bool, others: usize) -> Checked {
    let mut script = Script::new(&Setup {
        timeout,
        retry_count,
        ..Setup::plain()
    });
    script.write(0, 3000, Status::Success)?;
    script.testbed.drained()?;
    let peer = &script.testbed.endpoints[1].qp;
    match way {
        Way::Destroyed => peer.destroy(),
        Way::Failed => peer.fail(),
        Way::Reset => peer.reset(),
    }
    script.receive(0, 10, None, Status::FlushError)?;
    let began = Instant::now();
    if reads {
        script.read(0, 3000, Status::RetryExceededError)?;
    } else {
        script.write(0, 3000, Status::RetryExceededError)?;
    }
    for _ in 0..others {
        script.write(0, 3000, Status::FlushError)?;
    }
    script.testbed.drained()?;
    let took = began.elapsed();
    // The specification allows up to four times this time; one second more for a busy machine.
    let least = wait(timeout) * (u32::from(retry_count) + 1);
    let most = least * 4 + Duration::from_secs(1);
    if took < least || took > most {
        return Err(Trouble::Wrong(format!(
            "given up after {took:?}, not {least:?} to {most:?}"
        )));
    }
    script.testbed.memory_fits()?;
    let state = script.testbed.endpoints[0].qp.state();
    if state != State::Err {
        return Err(Trouble::Wrong(format!("the QP is in {state:?}")));
    }
    script.flushes_what_is_posted_now(0)
}

proptest! {
    #![proptest_config(crate::cases(16))]

    #[test]
    fn a_peer_that_vanished_is_given_up_in_time(
        way in prop::sample::select(vec![Way::Destroyed, Way::Failed, Way::Reset]),
        timeout in 9..=12u8,
        retry_count in 0..=7u8,
        reads: bool,
        others in 0..4usize,
    ) {
        crate::verdict(vanish(way, timeout, retry_count, reads, others))?;
    }
}

#[test]
fn a_peer_that_vanishes_amid_requests_leaves_no_request_without_an_end() {
    let mut script = Script::new(&Setup {
        timeout: 10,
        retry_count: 2,
        ..Setup::plain()
    });
    // It is open which of them succeed, so they are counted.
    for round in 0..20 {
        script.write(0, 1000 + round, Status::Success).unwrap();
    }
    script.testbed.poll(1, 1).unwrap();
    script.testbed.endpoints[1].qp.destroy();
    let mut refused = None;
    let began = Instant::now();
    while !script.testbed.endpoints[0].sends.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "a hang");
        match script.testbed.poll(0, 1) {
            Ok(_) => {}
            Err(Trouble::RetriesUsedUp(_)) if refused.is_none() => {
                refused = Some(script.testbed.endpoints[0].sends.len());
                for left in &mut script.testbed.endpoints[0].sends {
                    left.status = Status::FlushError;
                }
            }
            Err(trouble) => panic!("{trouble:?}"),
        }
    }
    let state = script.testbed.endpoints[0].qp.state();
    match refused {
        Some(_) => assert_eq!(state, State::Err),
        None => assert_eq!(state, State::Rts),
    }
}

#[test]
fn qps_that_wait_for_ever_leave_the_window_to_others() {
    let plain = Plan::default();
    let (a, b) = end::pair(&Plan {
        qps: 3,
        deliveries: Deliveries {
            timeout: 0,
            ..plain.deliveries
        },
        ..plain
    });
    let write = |qp, bytes| {
        let target = Operation::Write {
            address: b.address(0),
            rkey: b.key,
        };
        a.post(qp, target, &[a.sge(0, bytes)]);
    };
    for dead in 0..2 {
        b.qps[dead].destroy();
        // Together more than the window.
        write(dead, 3 << 20);
    }
    write(2, 64);
    let began = Instant::now();
    let mut done = 0;
    while done == 0 {
        a.cq.poll(1, |completion| {
            assert_eq!(completion.qpn, a.qps[2].number());
            assert_eq!(completion.status, Status::Success);
            done += 1;
        })
        .unwrap();
        let counters = a.nic.counters();
        assert!(began.elapsed() < Duration::from_secs(20), "{counters:?}");
    }
}

#[test]
fn time_outs_grow_to_what_a_slow_peer_may_need() {
    let mut script = Script::new(&Setup {
        timeout: 11,
        retry_count: 7,
        ..Setup::plain()
    });
    script.testbed.endpoints[1].qp.destroy();
    let began = Instant::now();
    script.write(0, 8, Status::RetryExceededError).unwrap();
    script.testbed.drained().unwrap();
    // One, two, and six times four.
    assert!(began.elapsed() >= wait(11) * 27);
}
