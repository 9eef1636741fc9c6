//! Events of CQs and QPs; their objects are not destroyed before the events are acknowledged.

use std::ffi::c_void;
use std::ptr::null_mut;

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;
use crate::support::look::SOON;
use testing::wait::wait_until;

/// Two RC QPs connected to each other, of which one receives into a CQ with a channel.
struct Told {
    one: End,
    other: End,
    qp: *mut ibv_qp,
    peer: *mut ibv_qp,
    channel: *mut ibv_comp_channel,
    cq: *mut ibv_cq,
}

/// A channel, and a CQ whose events go there with this mark.
fn channel_with_cq(end: &End, mark: *mut c_void) -> (*mut ibv_comp_channel, *mut ibv_cq) {
    // SAFETY: an open context.
    unsafe {
        let channel = verbs::create_comp_channel(end.context);
        let cq = verbs::create_cq(end.context, 256, mark, channel, 0);
        assert!(!cq.is_null() && (*cq).channel == channel);
        (channel, cq)
    }
}

/// Two QPs connected to each other, of which that of `other` receives into this CQ.
fn pair_receiving_into(one: &End, other: &End, cq: *mut ibv_cq) -> (*mut ibv_qp, *mut ibv_qp) {
    let mut init = other.init_attr(RC);
    init.recv_cq = cq;
    // SAFETY: live objects.
    let (qp, peer) = unsafe { (one.qp(RC), verbs::create_qp(other.pd, &raw mut init)) };
    join(one, qp, other, peer);
    (qp, peer)
}

impl Told {
    fn new(mark: *mut c_void) -> Told {
        let (one, other) = (End::new(), End::new());
        let (channel, cq) = channel_with_cq(&other, mark);
        // SAFETY: an open channel.
        never_block(unsafe { (*channel).fd });
        let (qp, peer) = pair_receiving_into(&one, &other, cq);
        Told {
            one,
            other,
            qp,
            peer,
            channel,
            cq,
        }
    }

    fn arm(&self, solicited_only: bool) {
        // SAFETY: a live CQ.
        let code = unsafe { ibv_req_notify_cq(self.cq, solicited_only.into()) };
        assert_eq!(code, 0);
    }

    /// Has a message arrive, which it has once it is acknowledged.
    fn arrive(&self, flags: u32) {
        assert_eq!(receive(self.peer, 1, self.other.sge(0, 64)), 0);
        let mut sge = self.one.sge(0, 16);
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags |= flags;
        assert_eq!(send(self.qp, &mut wr), 0);
        self.one.succeeds();
    }

    /// Takes the event that waits, if there is one: its CQ and its mark.
    fn take_event(&self) -> Option<(*mut ibv_cq, *mut c_void)> {
        let (mut cq, mut mark) = (null_mut(), null_mut());
        // SAFETY: a live channel and places for the pointers.
        match unsafe { verbs::get_cq_event(self.channel, &raw mut cq, &raw mut mark) } {
            0 => Some((cq, mark)),
            code => {
                assert_eq!((code, errno()), (-1, libc::EAGAIN));
                None
            }
        }
    }

    /// Whether an event waits. Looks without taking it, as programs do that wait for several things at once.
    fn has_event(&self) -> bool {
        let mut poll = libc::pollfd {
            // SAFETY: a live channel.
            fd: unsafe { (*self.channel).fd },
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd.
        unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
    }

    fn acknowledge(&self) {
        // SAFETY: a live CQ, of which an event was got.
        unsafe { verbs::ack_cq_events(self.cq, 1) };
    }

    /// How many completions it holds, up to four.
    fn poll(&self) -> i32 {
        let mut wc: [ibv_wc; 4] = std::array::from_fn(|_| blank());
        // SAFETY: a live CQ and room for so many.
        unsafe { ibv_poll_cq(self.cq, 4, wc.as_mut_ptr()) }
    }

    fn end(self) {
        destroy(&[self.qp, self.peer]);
        // SAFETY: live objects, not used again.
        unsafe {
            assert_eq!(verbs::destroy_cq(self.cq), 0);
            assert_eq!(verbs::destroy_comp_channel(self.channel), 0);
        }
    }
}

#[test]
fn an_armed_cq_tells_of_a_completion_and_is_not_destroyed_before_the_acknowledgement() {
    let mark = null_mut::<u8>().wrapping_add(0x77).cast();
    let told = Told::new(mark);
    // SAFETY: a live channel.
    let code = unsafe { verbs::destroy_comp_channel(told.channel) };
    assert_eq!(code, libc::EBUSY);
    assert_eq!(told.take_event(), None);
    told.arm(false);
    told.arrive(0);
    assert_eq!(told.take_event(), Some((told.cq, mark)));
    destroy(&[told.qp, told.peer]);

    let carried = Carried(told.cq);
    // SAFETY: a live CQ, not used again but for the acknowledgement.
    let destroyer = waiting(move || unsafe { verbs::destroy_cq(carried.get()) });
    assert!(!destroyer.is_finished());
    told.acknowledge();
    assert_eq!(destroyer.join().unwrap(), 0);
    // SAFETY: live, and not used again.
    assert_eq!(unsafe { verbs::destroy_comp_channel(told.channel) }, 0);
}

#[test]
fn a_forbidden_write_fails_here_and_is_told_there() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 16);
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_WRITE, &mut sge);
    wr.wr.rdma = other.remote(BUFFER_BYTES - 8);
    assert_eq!(send(qp, &mut wr), 0);
    assert_eq!(
        one.completion().status,
        ibv_wc_status::IBV_WC_REM_ACCESS_ERR
    );
    assert_eq!(query(qp).qp_state, ibv_qp_state::IBV_QPS_ERR);
    let mut event = other.event(ibv_event_type::IBV_EVENT_QP_ACCESS_ERR);
    // SAFETY: live objects throughout.
    unsafe {
        assert_eq!(event.element.qp, peer);
        let carried = Carried(peer);
        let destroyer = waiting(move || verbs::destroy_qp(carried.get()));
        assert!(!destroyer.is_finished());
        verbs::ack_async_event(&raw mut event);
        assert_eq!(destroyer.join().unwrap(), 0);
    }
    destroy(&[qp]);
}

#[test]
fn events_that_nobody_took_go_with_their_object() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    drain(qp);
    destroy(&[qp, peer]);
    let mut event: ibv_async_event = blank();
    // SAFETY: an open context.
    let code = unsafe {
        never_block((*one.context).async_fd);
        verbs::get_async_event(one.context, &raw mut event)
    };
    assert_eq!((code, errno()), (-1, libc::EAGAIN));
}

#[test]
fn a_cq_without_room_is_an_event_and_an_error() {
    let (one, other) = (End::new(), End::new());
    // SAFETY: live objects throughout.
    unsafe {
        let small = verbs::create_cq(one.context, 1, null_mut(), null_mut(), 0);
        let room = (*small).cqe.cast_unsigned();
        let mut init = one.init_attr(RC);
        init.send_cq = small;
        init.cap.max_send_wr = room + 8;
        let qp = verbs::create_qp(one.pd, &raw mut init);
        let peer = other.qp(RC);
        join(&one, qp, &other, peer);
        for _ in 0..=room {
            let mut sge = one.sge(0, 8);
            let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_WRITE, &mut sge);
            wr.wr.rdma = other.remote(0);
            assert_eq!(send(qp, &mut wr), 0);
        }
        let mut event = one.event(ibv_event_type::IBV_EVENT_CQ_ERR);
        assert_eq!(event.element.cq, small);
        verbs::ack_async_event(&raw mut event);
        let mut wc: ibv_wc = blank();
        let fails = || ibv_poll_cq(small, 1, &raw mut wc) < 0;
        wait_until("an error of the CQ", SOON, fails);
        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(small), 0);
    }
}

#[test]
fn who_waits_for_an_event_is_told_of_completions_that_were_left_in_an_armed_cq() {
    let told = Told::new(null_mut());
    told.arrive(0);
    told.arrive(0);
    assert_eq!(told.take_event(), None, "it was not asked for one");
    told.arm(true);
    assert_eq!(told.take_event(), None, "none of them is solicited");
    told.arm(false);
    assert!(told.take_event().is_some());
    assert_eq!(told.take_event(), None, "one event for each asking");
    told.acknowledge();
    assert_eq!(told.poll(), 2);
    told.arm(false);
    assert_eq!(told.take_event(), None, "the CQ is empty");
    told.end();
}

#[test]
fn a_request_for_an_event_tells_at_once_of_what_came_since_the_cq_was_empty() {
    let told = Told::new(null_mut());
    let take = || {
        assert!(told.has_event());
        assert!(told.take_event().is_some());
        told.acknowledge();
    };
    told.arrive(0);
    told.arm(true);
    assert!(!told.has_event(), "it is not solicited");
    told.arm(false);
    take();
    // It knows of it now, whether it has taken it or not.
    told.arm(false);
    assert!(!told.has_event());
    assert_eq!(told.poll(), 1);

    // The request of before still holds.
    told.arrive(0);
    take();
    assert_eq!(told.poll(), 1);
    told.arrive(ibv_send_flags::IBV_SEND_SOLICITED.0);
    told.arm(true);
    take();
    assert_eq!(told.poll(), 1);
    told.end();
}

#[test]
fn a_port_that_is_down_says_so() {
    let context = open("down=0s+1000s");
    let mut attr: ibv_port_attr = blank();
    // SAFETY: an open context, which is closed last.
    unsafe {
        assert_eq!(verbs::query_port(context, 1, &raw mut attr), 0);
        assert_eq!(verbs::close_device(context), 0);
    }
    assert_eq!(attr.state, ibv_port_state::IBV_PORT_DOWN);
    assert_eq!(attr.phys_state, 3);
}

/// A program that sleeps may take the first event for that of its own SEND, as `ib_send_lat -e` does.
#[test]
fn an_answer_of_a_program_that_sleeps_does_not_overtake_the_acknowledgement() {
    const QPS: usize = 32;
    const ROUNDS: usize = 100;
    let (one, other) = (End::new(), End::new());
    // SAFETY: live objects throughout.
    unsafe {
        let (channel, cq) = channel_with_cq(&other, null_mut());
        let pairs: Vec<_> = (0..QPS)
            .map(|_| pair_receiving_into(&one, &other, cq))
            .collect();
        let own_number = |(qp, _): &(*mut ibv_qp, _)| (**qp).qp_num;
        let peers: Vec<_> = pairs.iter().map(|&(_, peer)| Carried(peer)).collect();
        for &(qp, peer) in &pairs {
            assert_eq!(receive(qp, 0, one.sge(0, 16)), 0);
            assert_eq!(receive(peer, 0, other.sge(0, 16)), 0);
        }
        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        let sge = Carried(Box::into_raw(Box::new(other.sge(0, 16))));
        let (answers, waits_on) = (Carried(cq), Carried(channel));
        let answering = std::thread::spawn(move || {
            let (cq, sge) = (answers.get(), sge.get());
            let peers: Vec<_> = peers.into_iter().map(Carried::get).collect();
            let mut left = QPS * ROUNDS;
            while left > 0 {
                let (mut event_cq, mut mark) = (null_mut(), null_mut());
                let got = verbs::get_cq_event(waits_on.get(), &raw mut event_cq, &raw mut mark);
                assert_eq!(got, 0);
                verbs::ack_cq_events(cq, 1);
                assert_eq!(ibv_req_notify_cq(cq, 0), 0);
                let mut wc: ibv_wc = blank();
                while ibv_poll_cq(cq, 1, &raw mut wc) == 1 {
                    let peer = *peers
                        .iter()
                        .find(|peer| (***peer).qp_num == wc.qp_num)
                        .unwrap();
                    assert_eq!(receive(peer, 0, *sge), 0);
                    let mut answer = send_wr(SEND, &mut *sge);
                    answer.send_flags = 0;
                    assert_eq!(send(peer, &mut answer), 0);
                    left -= 1;
                }
            }
            drop(Box::from_raw(sge));
        });
        for _ in 0..ROUNDS {
            pairs.iter().for_each(|&(qp, _)| one.send(qp, 16));
            let mut acknowledged = Vec::new();
            for _ in 0..2 * QPS {
                let wc = one.succeeds();
                if wc.opcode == ibv_wc_opcode::IBV_WC_SEND {
                    acknowledged.push(wc.qp_num);
                    continue;
                }
                assert!(acknowledged.contains(&wc.qp_num), "the answer came first");
                let pair = pairs.iter().find(|pair| own_number(pair) == wc.qp_num);
                assert_eq!(receive(pair.unwrap().0, 0, one.sge(0, 16)), 0);
            }
        }
        answering.join().unwrap();
        for (qp, peer) in pairs {
            destroy(&[qp, peer]);
        }
        assert_eq!(verbs::destroy_cq(cq), 0);
        assert_eq!(verbs::destroy_comp_channel(channel), 0);
    }
}
