//! Events of CQs and QPs; their objects are not destroyed before the events are acknowledged.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;
use std::thread;

use rdma_sys::*;
use softroce::verbs;

use super::drain;
use crate::support::look::SOON;
use crate::support::raw::*;
use testing::wait::{wait_until, waiting};

struct Channel {
    cq: Owned<ibv_cq>,
    channel: Owned<ibv_comp_channel>,
}

impl Channel {
    fn from_raw(end: &End, mark: *mut c_void) -> Channel {
        let context = end.context.raw;
        // SAFETY: an open context.
        unsafe {
            let channel =
                Owned::new(verbs::create_comp_channel(context), verbs::destroy_comp_channel);
            let cq =
                Owned::new(verbs::create_cq(context, 256, mark, channel.raw, 0), verbs::destroy_cq);
            assert_eq!(cq.channel, channel.raw);
            Channel { cq, channel }
        }
    }

    fn arm(&self, solicited_only: bool) {
        // SAFETY: a live CQ.
        ok(unsafe { ibv_req_notify_cq(self.cq.raw, solicited_only.into()) });
    }

    /// Takes the next event: its CQ and its mark. One that never blocks may have none.
    fn take_event(&self) -> Option<(*mut ibv_cq, *mut c_void)> {
        let (mut cq, mut mark) = (null_mut(), null_mut());
        // SAFETY: a live channel and places for the pointers.
        let code = unsafe { verbs::get_cq_event(self.channel.raw, &mut cq, &mut mark) };
        assert!(code == 0 || (code, errno()) == (-1, libc::EAGAIN));
        (code == 0).then_some((cq, mark))
    }

    fn acknowledge(&self) {
        // SAFETY: a live CQ, of which an event was got.
        unsafe { verbs::ack_cq_events(self.cq.raw, 1) };
    }
}

/// Two QPs connected to each other, of which that of `other` receives into this CQ.
fn pair_receiving_into(one: &End, other: &End, cq: &Owned<ibv_cq>) -> (Qp, Qp) {
    let mut init = other.init_attr(RC);
    init.recv_cq = cq.raw;
    let (qp, peer) = (one.qp(RC), other.qp_with(&mut init));
    join(one, &qp, other, &peer);
    (qp, peer)
}

/// Two RC QPs connected to each other, of which one receives into a CQ with a channel that never blocks.
struct ConnectedPair {
    qp: Qp,
    peer: Qp,
    channel: Channel,
    one: End,
    other: End,
}

impl ConnectedPair {
    fn new(mark: *mut c_void) -> ConnectedPair {
        let (one, other) = two_ends();
        let channel = Channel::from_raw(&other, mark);
        never_block(channel.channel.fd);
        let (qp, peer) = pair_receiving_into(&one, &other, &channel.cq);
        ConnectedPair { qp, peer, channel, one, other }
    }

    /// Has a message arrive, which it has once it is acknowledged.
    fn arrive(&self, flags: u32) {
        assert_eq!(self.peer.receive(1, self.other.sge(0, 64)), 0);
        assert_eq!(self.qp.send(1, SIGNALED | flags, self.one.sge(0, 16)), 0);
        self.one.succeeds();
    }

    /// Whether an event waits. Looks without taking it, as programs do that wait for several things at once.
    fn has_event(&self) -> bool {
        is_readable(self.channel.channel.fd)
    }

    fn poll(&self) -> usize {
        self.channel.cq.poll(4).len()
    }
}

#[test]
fn an_armed_cq_tells_of_a_completion_and_is_not_destroyed_before_the_acknowledgement() {
    let mark = null_mut::<u8>().wrapping_add(0x77).cast();
    let pair = ConnectedPair::new(mark);
    let Channel { cq, channel } = &pair.channel;
    // SAFETY: a live channel.
    let code = unsafe { verbs::destroy_comp_channel(channel.raw) };
    assert_eq!(code, libc::EBUSY);
    assert_eq!(pair.channel.take_event(), None);
    pair.channel.arm(false);
    pair.arrive(0);
    assert_eq!(pair.channel.take_event(), Some((cq.raw, mark)));

    drop((pair.qp, pair.peer));
    let unacknowledged = pair.channel.cq;
    let raw = unacknowledged.raw;
    let destroyer = waiting(move || unacknowledged.destroy());
    assert!(!destroyer.is_finished());
    // SAFETY: live until its event is acknowledged.
    unsafe { verbs::ack_cq_events(raw, 1) };
    assert_eq!(destroyer.join().unwrap(), 0);
}

#[test]
fn a_forbidden_write_fails_here_and_is_told_there() {
    let (one, other) = two_ends();
    let (qp, peer) = pair(&one, &other, RC);
    let write = qp.fetch((1, WRITE), one.sge(0, 16), other.remote(BUFFER_BYTES - 8));
    assert_eq!(write, 0);
    let failed = one.completion().status;
    assert_eq!(failed, ibv_wc_status::IBV_WC_REM_ACCESS_ERR);
    assert_eq!(qp.state_now(), ibv_qp_state::IBV_QPS_ERR);
    let event = other.event(ibv_event_type::IBV_EVENT_QP_ACCESS_ERR);
    // SAFETY: an event of a QP.
    assert_eq!(unsafe { event.element.qp }, peer.raw);
    let destroyer = waiting(move || peer.destroy());
    assert!(!destroyer.is_finished());
    other.acknowledge(event);
    assert_eq!(destroyer.join().unwrap(), 0);
}

#[test]
fn events_that_nobody_took_go_with_their_object() {
    let (one, other) = two_ends();
    let (qp, peer) = pair(&one, &other, RC);
    drain(&qp);
    drop((qp, peer));
    never_block(one.context.async_fd);
    assert!(one.waiting_event().is_none());
    assert_eq!(errno(), libc::EAGAIN);
}

#[test]
fn a_cq_without_room_is_an_event_and_an_error() {
    let (one, other) = two_ends();
    let small = one.new_cq(1);
    let room = small.cqe.cast_unsigned();
    let mut init = one.init_attr(RC);
    init.send_cq = small.raw;
    init.cap.max_send_wr = room + 8;
    let (qp, peer) = (one.qp_with(&mut init), other.qp(RC));
    join(&one, &qp, &other, &peer);
    for _ in 0..=room {
        assert_eq!(qp.fetch((1, WRITE), one.sge(0, 8), other.remote(0)), 0);
    }
    let event = one.event(ibv_event_type::IBV_EVENT_CQ_ERR);
    // SAFETY: an event of a CQ.
    assert_eq!(unsafe { event.element.cq }, small.raw);
    one.acknowledge(event);
    let mut wc: ibv_wc = blank();
    // SAFETY: a live CQ and room for one.
    wait_until(
        "an error of the CQ",
        SOON,
        || unsafe { ibv_poll_cq(small.raw, 1, &raw mut wc) } < 0,
    );
}

#[test]
fn who_waits_for_an_event_is_told_of_completions_that_were_left_in_an_armed_cq() {
    let pair = ConnectedPair::new(null_mut());
    let channel = &pair.channel;
    pair.arrive(0);
    pair.arrive(0);
    assert_eq!(channel.take_event(), None, "it was not asked for one");
    channel.arm(true);
    assert_eq!(channel.take_event(), None, "none of them is solicited");
    channel.arm(false);
    assert!(channel.take_event().is_some());
    assert_eq!(channel.take_event(), None, "one event for each asking");
    channel.acknowledge();
    assert_eq!(pair.poll(), 2);
    channel.arm(false);
    assert_eq!(channel.take_event(), None, "the CQ is empty");
}

#[test]
fn a_request_for_an_event_tells_at_once_of_what_came_since_the_cq_was_empty() {
    let pair = ConnectedPair::new(null_mut());
    let channel = &pair.channel;
    let take = || {
        assert!(pair.has_event());
        assert!(channel.take_event().is_some());
        channel.acknowledge();
    };
    pair.arrive(0);
    channel.arm(true);
    assert!(!pair.has_event(), "it is not solicited");
    channel.arm(false);
    take();
    // It knows of it now, whether it has taken it or not.
    channel.arm(false);
    assert!(!pair.has_event());
    assert_eq!(pair.poll(), 1);

    // The request of before still holds.
    pair.arrive(0);
    take();
    assert_eq!(pair.poll(), 1);
    pair.arrive(ibv_send_flags::IBV_SEND_SOLICITED.0);
    channel.arm(true);
    take();
    assert_eq!(pair.poll(), 1);
}

#[test]
fn a_port_that_is_down_says_so() {
    let context = open("down=0s+1000s");
    let mut attr: ibv_port_attr = blank();
    // SAFETY: an open context.
    ok(unsafe { verbs::query_port(context.raw, 1, &raw mut attr) });
    let down = (ibv_port_state::IBV_PORT_DOWN, 3);
    assert_eq!((attr.state, attr.phys_state), down);
}

fn of_number(qps: &[Qp], number: u32) -> &Qp {
    qps.iter().find(|qp| qp.qp_num == number).unwrap()
}

/// A program that sleeps may take the first event for that of its own SEND, as `ib_send_lat -e` does.
#[test]
fn an_answer_of_a_program_that_sleeps_does_not_overtake_the_acknowledgement() {
    const QPS: usize = 32;
    const ROUNDS: usize = 100;
    let (one, other) = two_ends();
    let channel = Channel::from_raw(&other, null_mut());
    let (qps, peers): (Vec<Qp>, Vec<Qp>) =
        (0..QPS).map(|_| pair_receiving_into(&one, &other, &channel.cq)).unzip();
    for (qp, peer) in qps.iter().zip(&peers) {
        assert_eq!(qp.receive(0, one.sge(0, 16)), 0);
        assert_eq!(peer.receive(0, other.sge(0, 16)), 0);
    }
    channel.arm(false);
    // The thread keeps all if this one fails.
    let server = Arc::new((peers, channel, other));
    let answers = Arc::clone(&server);
    let answering = thread::spawn(move || {
        let (answering_peers, events, end) = &*answers;
        let mut left = QPS * ROUNDS;
        while left > 0 {
            assert!(events.take_event().is_some());
            events.acknowledge();
            events.arm(false);
            while let Some(wc) = events.cq.poll(1).pop() {
                let peer = of_number(answering_peers, wc.qp_num);
                assert_eq!(peer.receive(0, end.sge(0, 16)), 0);
                assert_eq!(peer.send(0, 0, end.sge(0, 16)), 0);
                left -= 1;
            }
        }
    });
    for _ in 0..ROUNDS {
        for qp in &qps {
            assert_eq!(qp.send(0, SIGNALED, one.sge(0, 16)), 0);
        }
        let mut acknowledged = Vec::new();
        for _ in 0..2 * QPS {
            let wc = one.succeeds();
            if wc.opcode == ibv_wc_opcode::IBV_WC_SEND {
                acknowledged.push(wc.qp_num);
                continue;
            }
            assert!(acknowledged.contains(&wc.qp_num), "the answer came first");
            let qp = of_number(&qps, wc.qp_num);
            assert_eq!(qp.receive(0, one.sge(0, 16)), 0);
        }
    }
    answering.join().unwrap();
}
