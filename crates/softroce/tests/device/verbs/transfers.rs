//! Every operation through `ibv_post_send`, between two ends.

use std::ptr::null_mut;

use rdma_sys::*;
use softroce::verbs;

use crate::support::raw::*;

#[test]
fn a_send_with_immediate_arrives() {
    let (mut one, other) = two_ends();
    one.buffer[..5000].fill(0xa5);
    for qp_type in [RC, UC] {
        let (qp, peer) = pair(&one, &other, qp_type);
        assert_eq!(peer.receive(5, other.sge(100, 6000)), 0);
        let mut sge = one.sge(0, 5000);
        let mut wr = send_wr(ibv_wr_opcode::IBV_WR_SEND_WITH_IMM, &mut sge);
        wr.imm_data_invalidated_rkey_union.imm_data = 0x1122_3344_u32.to_be();
        assert_eq!(qp.post(&mut wr), 0);
        let got = other.completion();
        assert_eq!((got.wr_id, got.status, got.byte_len), (5, SUCCESS, 5000));
        assert_eq!(got.opcode, ibv_wc_opcode::IBV_WC_RECV);
        assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_WITH_IMM.0);
        // SAFETY: the flag says that it is this member.
        let immediate = unsafe { got.imm_data_invalidated_rkey_union.imm_data };
        assert_eq!(u32::from_be(immediate), 0x1122_3344);
        let sent = one.succeeds();
        assert_eq!((sent.wr_id, sent.opcode), (77, ibv_wc_opcode::IBV_WC_SEND));
        assert_eq!(other.buffer[99..101], [0, 0xa5]);
        assert_eq!(other.buffer[5099..5101], [0xa5, 0]);
    }
}

#[test]
fn memory_is_written_read_and_changed() {
    use ibv_wc_opcode::*;
    let (mut one, other) = two_ends();
    one.buffer[..8].copy_from_slice(&7_u64.to_ne_bytes());
    let (qp, _peer) = pair(&one, &other, RC);
    let remote = other.remote(64);
    let word = |end: &End, at: usize| u64::from_ne_bytes(*end.buffer[at..].first_chunk().unwrap());
    // The place of its eight bytes here, the kind of the completion, and the words here and there after it.
    let add = ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD;
    let swap = ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP;
    for (opcode, of_atomic, here, kind, expected) in [
        (WRITE, None, 0, IBV_WC_RDMA_WRITE, (7, 7)),
        (add, Some((5, 0)), 8, IBV_WC_FETCH_ADD, (7, 12)),
        (swap, Some((12, 100)), 8, IBV_WC_COMP_SWAP, (12, 100)),
        (READ, None, 16, IBV_WC_RDMA_READ, (100, 100)),
    ] {
        let mut sge = one.sge(here, 8);
        let mut wr = send_wr(opcode, &mut sge);
        match of_atomic {
            Some((compare_add, swap)) => {
                wr.wr.atomic = atomic_t {
                    remote_addr: remote.remote_addr,
                    compare_add,
                    swap,
                    rkey: remote.rkey,
                }
            }
            None => wr.wr.rdma = remote,
        }
        assert_eq!(qp.post(&mut wr), 0);
        assert_eq!(one.succeeds().opcode, kind);
        assert_eq!((word(&one, here), word(&other, 64)), expected, "{kind}");
    }
}

#[test]
fn the_request_that_failed_is_named() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 8);
    // No receive is posted, so nothing completes; there are more requests than the queue holds.
    let mut list: Vec<ibv_send_wr> = (0..40).map(|_| send_wr(SEND, &mut sge)).collect();
    let start = list.as_mut_ptr();
    // SAFETY: within the vector.
    unsafe {
        // An unknown operation.
        (*start).opcode = ibv_wr_opcode::IBV_WR_TSO;
        assert_eq!(qp.post_list(start), (libc::EINVAL, start));
        (*start).opcode = SEND;
        (*start.add(1)).num_sge = 3;
        for index in 0..39 {
            (*start.add(index)).next = start.add(index + 1);
        }
        // The one before it is posted.
        assert_eq!(qp.post_list(start), (libc::EINVAL, start.add(1)));
        (*start.add(1)).num_sge = 1;
        let (code, bad) = qp.post_list(start);
        assert_eq!(code, libc::ENOMEM);
        let posted = bad.offset_from(start);
        assert!((15..39).contains(&posted), "{posted}");
    }
}

#[test]
fn the_receive_that_failed_is_named() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 8);
    let mut list: Vec<_> = (0..40).map(|id| receive_wr(id, &mut sge)).collect();
    let start = list.as_mut_ptr();
    let post = |first: usize| {
        let mut bad = null_mut();
        // SAFETY: a live QP, and a list within the vector.
        let code = unsafe { ibv_post_recv(qp.raw, start.add(first), &raw mut bad) };
        // SAFETY: as above.
        (code, unsafe { bad.offset_from(start) })
    };
    for index in 0..39 {
        // SAFETY: within the vector.
        unsafe { (*start.add(index)).next = start.add(index + 1) };
    }
    for (elements, first) in [(3, 2), (-1, 0)] {
        // SAFETY: within the vector.
        unsafe { (*start.add(2)).num_sge = elements };
        assert_eq!(post(first), (libc::EINVAL, 2));
    }
    // Two are posted; the queue holds sixteen.
    assert_eq!(post(3), (libc::ENOMEM, 17));
    assert_eq!(qp.move_to(ibv_qp_state::IBV_QPS_ERR), 0);
    let ended = one.statuses(16).into_iter().map(|(wr_id, _)| wr_id);
    assert!(ended.eq((0..2).chain(3..17)));
}

#[test]
fn datagrams_are_answered_by_their_completions() {
    const GRH: usize = 40;
    let (mut one, other) = two_ends();
    one.buffer[..4].copy_from_slice(b"ping");
    let (qp, peer) = pair(&one, &other, UD);
    assert_eq!(peer.receive(1, other.sge(0, 100)), 0);
    assert_eq!(qp.receive(2, one.sge(1000, 100)), 0);
    let mut path = attributes(&one, other.gid(), 0).ah_attr;
    let ah = one.ah(&mut path).unwrap();
    path.port_num = 2;
    assert_eq!(one.ah(&mut path).err(), Some(libc::EINVAL));
    let send = |qp: &Qp, flags, (ah, remote_qpn, remote_qkey), mut sge| {
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags |= flags;
        wr.wr.ud = ud_t { ah, remote_qpn, remote_qkey };
        qp.post(&mut wr)
    };
    let to_peer = (ah.raw, peer.qp_num, 0x1234);
    assert_eq!(send(&qp, INLINE, to_peer, one.sge(0, 4)), 0);
    one.succeeds();
    let mut got = other.completion();
    assert_eq!(got.byte_len as usize, GRH + 4);
    assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_GRH.0);
    // UDP and an IPv4 header, as mlx5 tells it.
    assert_eq!((got.sl, got.src_qp), (8 | 2, qp.qp_num));
    assert_eq!(other.buffer[GRH..GRH + 4], *b"ping");

    let grh = other.buffer.as_ptr().cast_mut().cast();
    // SAFETY: live objects, and the header before the datagram.
    let back = unsafe { verbs::create_ah_from_wc(other.pd.raw, &raw mut got, grh, 1) };
    let back = Owned::new(back, verbs::destroy_ah);
    // The highest bit selects the QP's own key.
    let answer = |ah| send(&peer, 0, (ah, got.src_qp, 1 << 31), other.sge(GRH, 4));
    assert_eq!(answer(back.raw), 0);
    assert_eq!(one.completion().wr_id, 2);
    assert_eq!(one.buffer[1000 + GRH..1000 + GRH + 4], *b"ping");

    assert_eq!(answer(null_mut()), libc::EINVAL);
    // SAFETY: a live PD.
    assert_eq!(unsafe { verbs::dealloc_pd(one.pd.raw) }, libc::EBUSY);
}

#[test]
fn an_srq_serves_several_qps_and_tells_when_it_runs_low() {
    let (one, other) = two_ends();
    let mut init: ibv_srq_init_attr = blank();
    init.attr.max_wr = 8;
    // SAFETY: live objects throughout.
    unsafe {
        let srq = Owned::new(verbs::create_srq(other.pd.raw, &raw mut init), verbs::destroy_srq);
        let mut attr: ibv_srq_attr = blank();
        attr.srq_limit = 9;
        let modify = |attr: &mut ibv_srq_attr, mask| verbs::modify_srq(srq.raw, attr, mask);
        assert_eq!(modify(&mut attr, 2), libc::EINVAL);
        assert_eq!(modify(&mut attr, 1), libc::EOPNOTSUPP);
        let qps = [(); 2].map(|()| {
            let mut init = other.init_attr(RC);
            init.srq = srq.raw;
            let (qp, peer) = (one.qp(RC), other.qp_with(&mut init));
            assert_eq!(init.cap.max_recv_wr, 0);
            join(&one, &qp, &other, &peer);
            assert_eq!(peer.receive(0, other.sge(0, 8)), libc::EINVAL);
            (qp, peer)
        });
        assert_eq!(verbs::destroy_srq(srq.raw), libc::EBUSY);
        let mut sge = other.sge(0, 64);
        for wr_id in 0..3 {
            let mut wr = receive_wr(wr_id, &mut sge);
            ok(ibv_post_srq_recv(srq.raw, &raw mut wr, &mut null_mut()));
        }
        attr.srq_limit = 2;
        assert_eq!(modify(&mut attr, 2), 0);
        ok(verbs::query_srq(srq.raw, &raw mut attr));
        assert_eq!((attr.max_wr, attr.max_sge, attr.srq_limit), (8, 1, 2));
        never_block(other.context.async_fd);
        for (wr_id, (qp, peer)) in (0..).zip(&qps) {
            assert!(other.waiting_event().is_none(), "{wr_id}");
            assert_eq!(qp.send(0, SIGNALED, one.sge(0, 16)), 0);
            let got = other.completion();
            assert_eq!((got.wr_id, got.qp_num), (wr_id, peer.qp_num));
            one.succeeds();
        }
        let event = other.event(ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED);
        assert_eq!(event.element.srq, srq.raw);
        other.acknowledge(event);
        ok(verbs::query_srq(srq.raw, &raw mut attr));
        assert_eq!(attr.srq_limit, 0, "the event disarms it");
        assert_eq!(qps[0].0.send(0, SIGNALED, one.sge(0, 16)), 0);
        one.succeeds();
        assert!(other.waiting_event().is_none(), "once");
    }
}
