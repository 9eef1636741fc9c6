//! A peer that disappears: after the configured number of time-outs an error, then flushes; never a hang.

use softroce::transport::{Qp, State, Status};

use super::scenario::Setup;
use super::script::Script;
use crate::support::end::{Plan, pair};
use crate::support::look::counter;

/// 2 ms.
const TIMEOUT: u8 = 9;

#[test]
fn a_peer_that_vanished_is_given_up_after_so_many_time_outs() {
    let destroyed: fn(&Qp) = Qp::destroy;
    for (vanish, retry_count, reads, others) in [
        (destroyed, 0, false, 19),
        (destroyed, 7, true, 0),
        (Qp::fail, 2, true, 2),
        (Qp::fail, 0, false, 0),
        (Qp::reset, 1, false, 1),
        (Qp::reset, 3, true, 3),
    ] {
        let mut script = Script::new(&Setup { timeout: TIMEOUT, retry_count, ..Setup::plain() });
        script.write(0, 3000, Status::Success);
        script.testbed.drained();
        vanish(&script.testbed.endpoints[1].qp);
        script.receive(0, 10, None, Status::FlushError);
        if reads {
            script.read(0, 3000, Status::RetryExceededError);
        } else {
            script.write(0, 3000, Status::RetryExceededError);
        }
        for _ in 0..others {
            script.write(0, 3000, Status::FlushError);
        }
        script.testbed.drained();
        let timeouts = counter(&script.testbed.sides[0].nic, "timeouts");
        assert_eq!(timeouts, u64::from(retry_count) + 1);
        script.testbed.memory_fits();
        assert_eq!(script.testbed.endpoints[0].qp.state(), State::Err);
        script.flushes_what_is_posted_now(0);
    }
}

#[test]
fn qps_that_wait_for_ever_leave_the_window_to_others() {
    let mut plan = Plan::on(1, "");
    (plan.qps, plan.deliveries.timeout) = (3, 0);
    let (a, b) = pair(&plan);
    for dead in 0..2 {
        b.qps[dead].destroy();
        // Together more than the window.
        a.post(dead, b.write_to(0), &[a.sge(0, 3 << 20)]);
    }
    a.post(2, b.write_to(0), &[a.sge(0, 64)]);
    let done = a.completion();
    let expected = (a.qps[2].number(), Status::Success);
    assert_eq!((done.qpn, done.status), expected);
}
