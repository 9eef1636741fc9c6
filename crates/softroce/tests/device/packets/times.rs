//! The protocol's times, at exact instants: time-outs, pauses, probes, and what repeated READs may cost.

use softroce::transport::{Kind, Status};
use softroce::wire::{Opcode, Packet, Syndrome, time_of_code_ns};

use super::{MTU, PSN, connected_by, plan};
use crate::support::end::End;
use crate::support::peer::Peer;

const MS: u64 = 1_000_000;
const TIMEOUT: u8 = 14;

/// With so many QPs, which repeat what is lost so often.
fn timed(qps: usize, retry_count: u8) -> (Peer, End) {
    let mut plan = plan(Kind::Rc);
    (plan.qps, plan.send_wrs) = (qps, 64);
    plan.deliveries.timeout = TIMEOUT;
    plan.deliveries.retry_count = retry_count;
    plan.deliveries.rnr_retry = retry_count;
    connected_by(&plan)
}

#[test]
fn time_outs_double_up_to_four_times_and_then_the_peer_is_given_up() {
    for retry_count in [0, 1, 7] {
        let (peer, device) = timed(1, retry_count);
        let mut before_ns = peer.world.now_ns();
        let mut waited = || {
            let now_ns = peer.world.now_ns();
            let waited_ns = now_ns - std::mem::replace(&mut before_ns, now_ns);
            waited_ns as f64 / time_of_code_ns(TIMEOUT) as f64
        };
        device.post_send(8);
        let mut all = Vec::new();
        for _ in 0..=retry_count {
            peer.answer();
            all.push(waited());
        }
        let status = device.completion().status;
        all.push(waited());
        let expected = [0.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0];
        assert_eq!(all, expected[..all.len()]);
        assert_eq!(status, Status::RetryExceededError);
        peer.is_left_alone();
        device.counts("timeouts", u64::from(retry_count) + 1);
    }
}

#[test]
fn a_pause_is_as_long_as_a_receiver_that_is_not_ready_asks_for() {
    for (timer, pause_ns) in [(1, 10_000), (14, 1_280_000), (0, 655_360_000)] {
        let (peer, device) = timed(1, 2);
        let not_ready = device.answer_with(Syndrome::RnrNak { timer }, PSN);
        device.post_send(8);
        peer.answer();
        for _ in 0..2 {
            let told_ns = peer.world.now_ns();
            peer.send(&device, &not_ready);
            peer.answer();
            assert_eq!(peer.world.now_ns() - told_ns, pause_ns);
        }
        peer.send(&device, &not_ready);
        let status = device.completion().status;
        assert_eq!(status, Status::RnrRetryExceededError);
        peer.is_left_alone();
    }
}

#[test]
fn what_may_wait_in_the_queue_of_a_link_is_not_asked_after() {
    let (peer, device) = timed(2, 7);
    let start_ns = peer.world.now_ns();
    let answer = |at_ns: u64, psn: u32| {
        peer.world.run_until(at_ns);
        peer.send(&device, &device.acknowledgement(psn));
        peer.world.run_until(at_ns);
    };
    device.post_send(8);
    answer(start_ns + 10_000, PSN);
    // Both at once, on a link that takes long for the first.
    let posted_ns = start_ns + 100 * MS;
    peer.world.run_until(posted_ns);
    device.post_send(60 * MTU);
    device.post(1, device.write_to(0), &[device.sge(0, 64)]);
    answer(posted_ns + 7 * MS, PSN + 17);
    while peer.world.fabric().take(peer.address).is_some() {}
    // The first asks after the least time before a probe, the second after twice that, since the first's packets are before
    // its own.
    for (of, after_ns) in [(PSN + 60, 15 * MS), (PSN, 23 * MS)] {
        let packet = peer.answer();
        let psn = Packet::parse_body(&packet).unwrap().psn.value();
        let came_ns = peer.world.now_ns() - posted_ns;
        assert_eq!((psn, came_ns), (of & 0x00ff_ffff, after_ns));
    }
    device.counts("probes", 2);
    device.counts("timeouts", 0);
}

#[test]
fn an_answer_that_waits_in_the_receive_buffer_is_in_time() {
    let (peer, device) = timed(1, 7);
    device.post_send(8);
    peer.answer();
    peer.send(&device, &device.acknowledgement(PSN));
    let late_ns = peer.world.now_ns() + 3 * time_of_code_ns(TIMEOUT) / 2;
    peer.world.fabric().advance_to(late_ns);
    device.succeeds(1);
    device.counts("timeouts", 0);
}

#[test]
fn a_read_that_is_repeated_again_and_again_is_answered_within_a_budget() {
    const TIMES: u64 = 2000;
    let (peer, device) = timed(1, 7);
    let length_bytes = device.memory.len() as u32;
    let read =
        Packet { extended: device.reth(length_bytes), ..device.packet(Opcode::ReadRequest, PSN) };
    let send = |times: u64| (0..times).for_each(|_| peer.send(&device, &read));
    send(1 + TIMES);
    device.counts("duplicate_requests", TIMES);
    // The burst of 4 MiB.
    let answered = (4 << 20) / u64::from(length_bytes);
    device.counts("unanswered_duplicates", TIMES - answered);
    // Time earns a byte in 16 ns.
    let earned_ns = peer.world.now_ns() + 16 * u64::from(length_bytes);
    peer.world.run_until(earned_ns);
    send(2);
    device.counts("unanswered_duplicates", TIMES - answered + 1);
}
