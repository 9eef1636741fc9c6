//! Events of CQs and QPs; their objects are not destroyed before the events are acknowledged.

use std::ptr::null_mut;
use std::time::{Duration, Instant};

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;

const RC: u32 = ibv_qp_type::IBV_QPT_RC;

/// A channel, and a CQ whose events go there with this mark.
fn channel_with_cq(end: &End, mark: *mut std::ffi::c_void) -> (*mut ibv_comp_channel, *mut ibv_cq) {
    // SAFETY: an open context.
    unsafe {
        let channel = verbs::create_comp_channel(end.context);
        (
            channel,
            verbs::create_cq(end.context, 256, mark, channel, 0),
        )
    }
}

/// Two RC QPs connected to each other, of which that of `other` has this CQ for its receives.
fn pair_receiving_into(one: &End, other: &End, cq: *mut ibv_cq) -> (*mut ibv_qp, *mut ibv_qp) {
    let mut init = other.init_attr(RC);
    init.recv_cq = cq;
    // SAFETY: live objects.
    unsafe {
        let (qp, peer) = (one.qp(RC), verbs::create_qp(other.pd, &raw mut init));
        connect(qp, RC, other.gid(), (*peer).qp_num);
        connect(peer, RC, one.gid(), (*qp).qp_num);
        (qp, peer)
    }
}

#[test]
fn an_armed_cq_tells_of_a_completion_and_is_not_destroyed_before_the_acknowledgement() {
    let (one, other) = (End::new(), End::new());
    // SAFETY: live objects throughout.
    unsafe {
        let mark = null_mut::<u8>().wrapping_add(0x77).cast();
        let (channel, cq) = channel_with_cq(&other, mark);
        assert!(!cq.is_null());
        assert_eq!((*cq).channel, channel);
        assert_eq!(verbs::destroy_comp_channel(channel), libc::EBUSY);
        let (qp, peer) = pair_receiving_into(&one, &other, cq);

        let (mut event_cq, mut event_mark) = (null_mut(), null_mut());
        let flags = libc::fcntl((*channel).fd, libc::F_GETFL);
        libc::fcntl((*channel).fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        let none = verbs::get_cq_event(channel, &raw mut event_cq, &raw mut event_mark);
        assert_eq!((none, errno()), (-1, libc::EAGAIN));
        libc::fcntl((*channel).fd, libc::F_SETFL, flags);

        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        assert_eq!(other.receive(peer, 1, other.sge(0, 64)), 0);
        let mut sge = one.sge(0, 16);
        assert_eq!(
            send(qp, &mut send_wr(ibv_wr_opcode::IBV_WR_SEND, &mut sge)),
            0
        );
        assert_eq!(
            verbs::get_cq_event(channel, &raw mut event_cq, &raw mut event_mark),
            0
        );
        assert_eq!((event_cq, event_mark), (cq, mark));
        assert_eq!(one.completion().status, ibv_wc_status::IBV_WC_SUCCESS);
        destroy(&[qp, peer]);

        let carried = Carried(cq);
        let destroyer = waiting(move || verbs::destroy_cq(carried.get()));
        assert!(!destroyer.is_finished());
        verbs::ack_cq_events(cq, 1);
        assert_eq!(destroyer.join().unwrap(), 0);
        assert_eq!(verbs::destroy_comp_channel(channel), 0);
    }
}

#[test]
fn a_forbidden_write_fails_here_and_is_told_there() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 16);
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_WRITE, &mut sge);
    wr.wr.rdma = rdma_t {
        remote_addr: other.address() + BUFFER_BYTES as u64 - 8,
        rkey: other.rkey(),
    };
    assert_eq!(send(qp, &mut wr), 0);
    assert_eq!(
        one.completion().status,
        ibv_wc_status::IBV_WC_REM_ACCESS_ERR
    );
    assert_eq!(query(qp).qp_state, ibv_qp_state::IBV_QPS_ERR);
    let mut event: ibv_async_event = blank();
    // SAFETY: live objects throughout.
    unsafe {
        loop {
            assert_eq!(verbs::get_async_event(other.context, &raw mut event), 0);
            if event.event_type == ibv_event_type::IBV_EVENT_QP_ACCESS_ERR {
                break;
            }
            verbs::ack_async_event(&raw mut event);
        }
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
    unsafe {
        let fd = (*one.context).async_fd;
        libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK);
        assert_eq!(verbs::get_async_event(one.context, &raw mut event), -1);
    }
    assert_eq!(errno(), libc::EAGAIN);
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
        connect(qp, RC, other.gid(), (*peer).qp_num);
        connect(peer, RC, one.gid(), (*qp).qp_num);
        for _ in 0..=room {
            let mut sge = one.sge(0, 8);
            let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_WRITE, &mut sge);
            wr.wr.rdma = rdma_t {
                remote_addr: other.address(),
                rkey: other.rkey(),
            };
            assert_eq!(send(qp, &mut wr), 0);
        }
        let mut event: ibv_async_event = blank();
        loop {
            assert_eq!(verbs::get_async_event(one.context, &raw mut event), 0);
            verbs::ack_async_event(&raw mut event);
            if event.event_type == ibv_event_type::IBV_EVENT_CQ_ERR {
                break;
            }
        }
        assert_eq!(event.element.cq, small);
        let mut wc: ibv_wc = blank();
        let deadline = Instant::now() + Duration::from_secs(10);
        while ibv_poll_cq(small, 1, &raw mut wc) >= 0 {
            assert!(Instant::now() < deadline);
        }
        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(small), 0);
    }
}

#[test]
fn who_waits_for_an_event_is_told_of_completions_that_were_left_in_an_armed_cq() {
    let (one, other) = (End::new(), End::new());
    // SAFETY: live objects throughout.
    unsafe {
        let (channel, cq) = channel_with_cq(&other, null_mut());
        let (qp, peer) = pair_receiving_into(&one, &other, cq);
        for wr_id in 0..2 {
            assert_eq!(other.receive(peer, wr_id, other.sge(0, 64)), 0);
            let mut sge = one.sge(0, 16);
            let mut wr = send_wr(ibv_wr_opcode::IBV_WR_SEND, &mut sge);
            assert_eq!(send(qp, &mut wr), 0);
            assert_eq!(one.completion().status, ibv_wc_status::IBV_WC_SUCCESS);
        }
        // Both have arrived: the sends were acknowledged.
        let flags = libc::fcntl((*channel).fd, libc::F_GETFL);
        libc::fcntl((*channel).fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        let (mut event_cq, mut event_mark) = (null_mut(), null_mut());
        let mut event = || verbs::get_cq_event(channel, &raw mut event_cq, &raw mut event_mark);
        assert_eq!(event(), -1, "it was not asked for one");
        assert_eq!(ibv_req_notify_cq(cq, 1), 0);
        assert_eq!(event(), -1, "none of them is solicited");
        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        assert_eq!(event(), 0);
        assert_eq!(event(), -1, "one event for each asking");
        verbs::ack_cq_events(cq, 1);

        let mut wc: [ibv_wc; 4] = std::array::from_fn(|_| blank());
        assert_eq!(ibv_poll_cq(cq, 4, wc.as_mut_ptr()), 2);
        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        assert_eq!(event(), -1, "the CQ is empty");
        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(cq), 0);
        assert_eq!(verbs::destroy_comp_channel(channel), 0);
    }
}

#[test]
fn a_port_that_goes_down_and_comes_up_tells() {
    let options = verbs::OpenOptions {
        faults: "down=100ms+100ms".parse().unwrap(),
        ..verbs::OpenOptions::default()
    };
    let context = verbs::open_with("soft0", options).unwrap().as_ptr();
    // SAFETY: an open context, and structs of its own size.
    unsafe {
        let state = || {
            let mut attr: ibv_port_attr = std::mem::zeroed();
            assert_eq!(verbs::query_port(context, 1, &raw mut attr), 0);
            (attr.state, attr.phys_state)
        };
        let event = || {
            let mut event: ibv_async_event = std::mem::zeroed();
            assert_eq!(verbs::get_async_event(context, &raw mut event), 0);
            assert_eq!(event.element.port_num, 1);
            verbs::ack_async_event(&raw mut event);
            event.event_type
        };
        let (up, down) = (
            (ibv_port_state::IBV_PORT_ACTIVE, 5),
            (ibv_port_state::IBV_PORT_DOWN, 3),
        );
        assert_eq!(state(), up);
        // Nobody polls: the engine wakes for it.
        assert_eq!(event(), ibv_event_type::IBV_EVENT_PORT_ERR);
        assert_eq!(state(), down);
        assert_eq!(event(), ibv_event_type::IBV_EVENT_PORT_ACTIVE);
        assert_eq!(state(), up);
        assert_eq!(verbs::close_device(context), 0);
    }
}

#[test]
fn a_request_for_an_event_tells_at_once_of_what_came_since_the_cq_was_empty() {
    let (one, other) = (End::new(), End::new());
    // SAFETY: live objects throughout.
    unsafe {
        let (channel, cq) = channel_with_cq(&other, null_mut());
        let (qp, peer) = pair_receiving_into(&one, &other, cq);
        let arrive = |flags: u32| {
            assert_eq!(other.receive(peer, 1, other.sge(0, 64)), 0);
            let mut sge = one.sge(0, 16);
            let mut wr = send_wr(ibv_wr_opcode::IBV_WR_SEND, &mut sge);
            wr.send_flags |= flags;
            assert_eq!(send(qp, &mut wr), 0);
            // It has arrived once it is acknowledged.
            assert_eq!(one.completion().status, ibv_wc_status::IBV_WC_SUCCESS);
        };
        // Looks without taking the event, as programs do that wait for several things at once.
        let has_event = || {
            let mut poll = libc::pollfd {
                fd: (*channel).fd,
                events: libc::POLLIN,
                revents: 0,
            };
            libc::poll(&raw mut poll, 1, 0) == 1
        };
        let (mut event_cq, mut event_mark) = (null_mut(), null_mut());
        let mut take_event = || {
            let outcome = verbs::get_cq_event(channel, &raw mut event_cq, &raw mut event_mark);
            assert_eq!(outcome, 0);
            verbs::ack_cq_events(cq, 1);
        };
        let mut wc: [ibv_wc; 4] = std::array::from_fn(|_| blank());

        arrive(0);
        assert_eq!(ibv_req_notify_cq(cq, 1), 0);
        assert!(!has_event(), "it is not solicited");
        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        assert!(has_event());
        take_event();
        // It knows of it now, whether it has taken it or not.
        assert_eq!(ibv_req_notify_cq(cq, 0), 0);
        assert!(!has_event());
        assert_eq!(ibv_poll_cq(cq, 4, wc.as_mut_ptr()), 1);

        // The request of before still holds.
        arrive(0);
        assert!(has_event());
        take_event();
        assert_eq!(ibv_poll_cq(cq, 4, wc.as_mut_ptr()), 1);
        arrive(ibv_send_flags::IBV_SEND_SOLICITED.0);
        assert_eq!(ibv_req_notify_cq(cq, 1), 0);
        assert!(has_event());
        take_event();
        assert_eq!(ibv_poll_cq(cq, 4, wc.as_mut_ptr()), 1);
        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(cq), 0);
        assert_eq!(verbs::destroy_comp_channel(channel), 0);
    }
}

/// A program that sleeps may take the first event for that of its own SEND, as `ib_send_lat -e` does.
#[test]
fn an_answer_of_a_program_that_sleeps_does_not_overtake_the_acknowledgement() {
    const QPS: usize = 32;
    const ROUNDS: usize = 400;
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
            assert_eq!(one.receive(qp, 0, one.sge(0, 16)), 0);
            assert_eq!(other.receive(peer, 0, other.sge(0, 16)), 0);
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
                    let mut answer = send_wr(ibv_wr_opcode::IBV_WR_SEND, &mut *sge);
                    answer.send_flags = 0;
                    assert_eq!(send(peer, &mut answer), 0);
                    left -= 1;
                }
            }
            drop(Box::from_raw(sge));
        });
        for _ in 0..ROUNDS {
            let mut sge = one.sge(0, 16);
            for &(qp, _) in &pairs {
                let mut wr = send_wr(ibv_wr_opcode::IBV_WR_SEND, &mut sge);
                assert_eq!(send(qp, &mut wr), 0);
            }
            let mut acknowledged = Vec::new();
            for _ in 0..2 * QPS {
                let wc = one.completion();
                assert_eq!(wc.status, ibv_wc_status::IBV_WC_SUCCESS);
                if wc.opcode == ibv_wc_opcode::IBV_WC_SEND {
                    acknowledged.push(wc.qp_num);
                    continue;
                }
                assert!(acknowledged.contains(&wc.qp_num), "the answer came first");
                let pair = pairs.iter().find(|pair| own_number(pair) == wc.qp_num);
                assert_eq!(one.receive(pair.unwrap().0, 0, one.sge(0, 16)), 0);
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
