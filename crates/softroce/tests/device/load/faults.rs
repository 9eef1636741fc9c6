//! Deliberate faults of a device: what they befall, and what not.

use softroce::transport::Status;
use softroce::wire::time_of_code_ns;

use super::pair_with;
use crate::support::end::{End, Plan};

/// Fifteen packets.
const BYTES: usize = 60 << 10;
const TIMEOUT: u8 = 17;

/// Ends at 10.0.0.1, 10.0.0.2 and 10.0.0.3; the first, which meets faults, is connected to both others.
fn three(faults: &str) -> [End; 3] {
    let mut plan = Plan::on(1, "");
    plan.qps = 2;
    (plan.deliveries.timeout, plan.deliveries.retry_count) = (TIMEOUT, 2);
    let ends = [faults, "", ""]
        .map(|faults| End::new(&Plan { faults: faults.parse().unwrap(), ..plan.clone() }));
    let [first, others @ ..] = &ends;
    for (qp, other) in first.qps.iter().zip(others) {
        first.connect_qps(qp, other, &other.qps[0]);
        other.connect_qps(&other.qps[0], first, qp);
    }
    ends
}

#[test]
fn packets_that_leave_a_faulty_link_together_share_a_datagram() {
    for (faults, datagrams) in [("", 2), ("delay=1us", 2), ("tx.lose=write#2", 3)] {
        let (from, to) = pair_with(&Plan::on(1, ""), [faults, ""]);
        from.run(1, 1, BYTES, |_| (to.write_to(0), 0));
        // The first packet has more headers than the others.
        from.counts("datagrams_sent", datagrams);
    }
}

#[test]
fn faults_of_both_directions_befall_packets_and_change_no_data() {
    let faults = "seed=5,drop=5%,duplicate=2%,reorder=2%,corrupt=1%";
    let (mut from, to) = pair_with(&Plan::on(1, ""), [faults, ""]);
    from.fill();
    from.run(30, 4, BYTES, |at| (to.write_to(at * BYTES), at * BYTES));
    let (sent, rest) = (30 * BYTES, 30 * BYTES..60 * BYTES);
    from.memory[rest.clone()].fill(0);
    from.run(30, 4, BYTES, |at| (to.read_from(at * BYTES), sent + at * BYTES));
    assert!(to.memory[..sent] == from.memory[..sent]);
    assert!(to.memory[..sent] == from.memory[rest]);
    while from.plan.world.as_ref().unwrap().step() {}
    for kind in ["dropped", "duplicated", "reordered", "corrupted"] {
        for direction in ["tx", "rx"] {
            let count = from.counter(&format!("fault_{direction}_{kind}"));
            assert!(count > 0, "{direction} {kind}");
        }
    }
    to.counts("packets_received", from.counter("packets_sent"));
    let damaged = from.counter("fault_tx_corrupted");
    let twice = from.counter("fault_tx_duplicated");
    assert!((damaged..=damaged + twice).contains(&to.counter("bad_icrc")));
}

#[test]
fn faults_of_one_peer_befall_its_packets_alone() {
    for faults in ["tx.drop=100%,peer=10.0.0.2", "rx.drop=100%,peer=10.0.0.2"] {
        let [first, second, third] = three(faults);
        for (qp, to) in [&second, &third].into_iter().enumerate() {
            first.post(qp, to.write_to(0), &[first.sge(0, 64)]);
        }
        let ended = first.completions(&first.cq, 2).iter().map(|it| it.status).collect::<Vec<_>>();
        assert_eq!(ended, [Status::Success, Status::RetryExceededError]);
        let dropped = ["fault_tx_dropped", "fault_rx_dropped"].map(|it| first.counter(it));
        assert_eq!(dropped.iter().sum::<u64>(), 3, "each sending");
    }
}

#[test]
fn a_slow_link_to_one_peer_delays_no_other() {
    let [first, second, third] = three("delay=50ms,rate=1M,peer=10.0.0.2");
    let world = first.plan.world.as_ref().unwrap();
    let start_ns = world.now_ns();
    for (qp, to) in [&second, &third].into_iter().enumerate() {
        first.post(qp, to.write_to(0), &[first.sge(0, 64)]);
    }
    // 124 bytes with all headers at 1 Mb/s, and the delay.
    for after_ns in [0, 992_000 + 50_000_000] {
        first.succeeds(1);
        assert_eq!(world.now_ns() - start_ns, after_ns);
    }
}

#[test]
fn packets_vanish_both_ways_while_the_port_is_down() {
    let [first, second, _] = three("down=0s+1s");
    let world = first.plan.world.as_ref().unwrap();
    let start_ns = world.now_ns();
    for (from, to) in [(&first, &second), (&second, &first)] {
        from.post(0, to.write_to(0), &[from.sge(0, 64)]);
    }
    first.succeeds(1);
    second.succeeds(1);
    // Again after a time-out, and after twice that.
    let took_ns = world.now_ns() - start_ns;
    assert_eq!(took_ns, 3 * time_of_code_ns(TIMEOUT));
    for lost in ["fault_tx_dropped", "fault_rx_dropped"] {
        first.counts(lost, 2);
    }
}
