//! What gets lost, doubled or overtaken, at exact instants: packets take 10 µs each way and nothing else takes time.

use softroce::transport::Operation;
use softroce::wire::time_of_code_ns;

use super::pair_with;
use crate::support::end::{End, Plan};

const HOP_NS: u64 = 10_000;
const BYTES: usize = 4 * 4096;

/// 2 ms, and a time-out of more than two hours.
const TIMEOUT: u8 = 9;
const FOR_EVER: u8 = 31;

fn ends(timeout: u8, faults: [&str; 2]) -> (End, End) {
    let mut plan = Plan::on(1, "delay=10us");
    plan.deliveries.timeout = timeout;
    let (mut from, to) = pair_with(&plan, faults);
    from.fill();
    (from, to)
}

#[test]
fn each_loss_costs_what_it_takes_to_notice_it() {
    const NONE: &str = "";
    const GAP: &str = "tx.lose=write#2";
    const TWO_GAPS: &str = "tx.lose=write#2,tx.lose=write#6";
    const END: &str = "tx.lose=write#4";
    const ANSWER: &str = "tx.lose=ack#1";
    const TWICE: &str = "tx.duplicate=100%";
    // What befalls four packets and what their answers, the time-outs and NAKs that tell of it, packets that come again
    // although they had come, and how often something is on its way until the WRITE is complete.
    for (faults, [timeouts, naks, repeated], hops) in [
        ([NONE, NONE], [0, 0, 0], 2),
        ([GAP, NONE], [0, 1, 0], 4),
        ([TWO_GAPS, NONE], [0, 2, 0], 6),
        ([END, NONE], [1, 0, 3], 2),
        ([NONE, ANSWER], [1, 0, 4], 2),
        ([GAP, ANSWER], [1, 1, 1], 2),
        ([TWICE, NONE], [0, 0, 4], 2),
    ] {
        let (from, to) = ends(TIMEOUT, faults);
        let world = from.plan.world.as_ref().unwrap();
        let start_ns = world.now_ns();
        from.post(0, to.write_to(0), &[from.sge(0, BYTES)]);
        from.succeeds(1);
        let takes_ns = timeouts * time_of_code_ns(TIMEOUT) + hops * HOP_NS;
        assert_eq!(world.now_ns() - start_ns, takes_ns, "{faults:?}");
        while world.step() {}
        from.counts("timeouts", timeouts);
        to.counts("naks_sent", naks);
        to.counts("duplicate_requests", repeated);
        assert!(to.memory[..BYTES] == from.memory[..BYTES]);
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
