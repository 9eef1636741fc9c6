//! What gets lost, doubled or overtaken, at exact instants: packets take 10 µs each way and nothing else takes time.

use softroce::transport::{Deliveries, Operation};
use softroce::wire::time_of_code_ns;

use super::{on, pair_with};
use crate::support::end::{End, Plan};

const HOP_NS: u64 = 10_000;
const BYTES: usize = 4 * 4096;

/// 2 ms, and a time-out of more than two hours.
const TIMEOUT: u8 = 9;
const FOR_EVER: u8 = 31;

fn ends(timeout: u8, faults: [&str; 2]) -> (End, End) {
    let plain = Plan::default();
    let deliveries = Deliveries {
        timeout,
        ..plain.deliveries
    };
    let plan = on(
        1,
        "delay=10us",
        Plan {
            deliveries,
            ..plain
        },
    );
    let (mut from, to) = pair_with(&plan, faults);
    from.fill();
    (from, to)
}

#[test]
fn each_loss_costs_what_it_takes_to_notice_it() {
    let timeout_ns = time_of_code_ns(TIMEOUT);
    // What of four packets and their answer is lost, how often it is a time-out or a NAK that tells, how many come again
    // that had come, and when the WRITE is complete.
    for (lost, faults, [timeouts, naks, repeated], takes_ns) in [
        ("nothing", ["", ""], [0, 0, 0], 2 * HOP_NS),
        ("a packet", ["tx.lose=write#2", ""], [0, 1, 0], 4 * HOP_NS),
        (
            "the last",
            ["tx.lose=write#4", ""],
            [1, 0, 3],
            timeout_ns + 2 * HOP_NS,
        ),
        (
            "the answer",
            ["", "tx.lose=ack#1"],
            [1, 0, 4],
            timeout_ns + 2 * HOP_NS,
        ),
        (
            "a packet and the NAK",
            ["tx.lose=write#2", "tx.lose=ack#1"],
            [1, 1, 1],
            timeout_ns + 2 * HOP_NS,
        ),
        (
            "nothing, but all is doubled",
            ["tx.duplicate=100%", ""],
            [0, 0, 4],
            2 * HOP_NS,
        ),
    ] {
        let (from, to) = ends(TIMEOUT, faults);
        let world = from.plan.world.as_ref().unwrap();
        let start_ns = world.now_ns();
        from.post(0, to.write_to(0), &[from.sge(0, BYTES)]);
        from.succeeds(1);
        assert_eq!(world.now_ns() - start_ns, takes_ns, "{lost}");
        while world.step() {}
        from.counts("timeouts", timeouts);
        to.counts("naks_sent", naks);
        to.counts("duplicate_requests", repeated);
        assert!(to.memory[..BYTES] == from.memory[..BYTES], "{lost}");
    }
}

#[test]
fn a_receive_that_comes_late_costs_the_pause_that_the_receiver_asks_for() {
    /// What the code of an end means.
    const PAUSE_NS: u64 = 640_000;
    for late_ns in [PAUSE_NS / 2, 3 * PAUSE_NS / 2] {
        let (from, to) = ends(TIMEOUT, ["", ""]);
        let world = from.plan.world.as_ref().unwrap();
        let start_ns = world.now_ns();
        from.post(0, Operation::Send, &[from.sge(0, BYTES)]);
        world.run_until(start_ns + late_ns);
        to.qps[0].post_recv(1, &[to.sge(0, BYTES)]).unwrap();
        from.succeeds(1);
        to.succeeds(1);
        // Each time it is refused, and in the end taken.
        let pauses = late_ns.div_ceil(PAUSE_NS);
        let takes_ns = pauses * (PAUSE_NS + 2 * HOP_NS) + 2 * HOP_NS;
        assert_eq!(world.now_ns() - start_ns, takes_ns);
        to.counts("rnr_naks_sent", pauses);
        from.counts("timeouts", 0);
        assert!(to.memory[..BYTES] == from.memory[..BYTES]);
    }
}

#[test]
fn a_packet_lost_at_the_end_is_asked_after_before_the_time_out() {
    const BEFORE: usize = 40;
    let (from, to) = ends(FOR_EVER, [&format!("tx.lose=write#{}", BEFORE + 1), ""]);
    let world = from.plan.world.as_ref().unwrap();
    from.run(BEFORE, 1, 64, |_| (to.write_to(0), 0));
    let start_ns = world.now_ns();
    from.run(1, 1, 64, |_| (to.write_to(0), 0));
    // The least time before a probe, and its way there and back.
    assert_eq!(world.now_ns() - start_ns, 8_000_000 + 2 * HOP_NS);
    from.counts("probes", 1);
    from.counts("timeouts", 0);
}
