//! Every operation through `ibv_post_send`, between two ends.

use std::ptr::null_mut;

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;

#[test]
fn a_send_with_immediate_arrives() {
    let (mut one, other) = (End::new(), End::new());
    one.buffer[..5000].fill(0xa5);
    for qp_type in [RC, UC] {
        let (qp, peer) = pair(&one, &other, qp_type);
        assert_eq!(receive(peer, 5, other.sge(100, 6000)), 0);
        let mut sge = one.sge(0, 5000);
        let mut wr = send_wr(ibv_wr_opcode::IBV_WR_SEND_WITH_IMM, &mut sge);
        wr.imm_data_invalidated_rkey_union.imm_data = 0x1122_3344_u32.to_be();
        assert_eq!(send(qp, &mut wr), 0);
        let got = other.completion();
        assert_eq!((got.wr_id, got.status, got.byte_len), (5, SUCCESS, 5000));
        assert_eq!(got.opcode, ibv_wc_opcode::IBV_WC_RECV);
        assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_WITH_IMM.0);
        // SAFETY: the flag says that it is this member.
        let immediate = unsafe { got.imm_data_invalidated_rkey_union.imm_data };
        assert_eq!(u32::from_be(immediate), 0x1122_3344);
        let sent = one.completion();
        assert_eq!((sent.wr_id, sent.status), (77, SUCCESS));
        assert_eq!(sent.opcode, ibv_wc_opcode::IBV_WC_SEND);
        assert_eq!(other.buffer[99..101], [0, 0xa5]);
        assert_eq!(other.buffer[5099..5101], [0xa5, 0]);
        destroy(&[qp, peer]);
    }
}

#[test]
fn memory_is_written_read_and_changed() {
    let (mut one, other) = (End::new(), End::new());
    one.buffer[..8].copy_from_slice(&7_u64.to_ne_bytes());
    let (qp, peer) = pair(&one, &other, RC);
    let run = |wr: &mut ibv_send_wr, expected: u32| {
        assert_eq!(send(qp, wr), 0);
        let wc = one.completion();
        assert_eq!((wc.status, wc.opcode), (SUCCESS, expected));
    };
    let remote = other.remote(64);
    let word = |end: &End, at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&end.buffer[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    let mut sge = one.sge(0, 8);
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_WRITE, &mut sge);
    wr.wr.rdma = remote;
    run(&mut wr, ibv_wc_opcode::IBV_WC_RDMA_WRITE);
    assert_eq!(word(&other, 64), 7);

    let mut sge = one.sge(8, 8);
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, &mut sge);
    let mut atomic = atomic_t {
        remote_addr: remote.remote_addr,
        compare_add: 5,
        swap: 0,
        rkey: remote.rkey,
    };
    wr.wr.atomic = atomic;
    run(&mut wr, ibv_wc_opcode::IBV_WC_FETCH_ADD);
    assert_eq!((word(&one, 8), word(&other, 64)), (7, 12));

    atomic.compare_add = 12;
    atomic.swap = 100;
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP, &mut sge);
    wr.wr.atomic = atomic;
    run(&mut wr, ibv_wc_opcode::IBV_WC_COMP_SWAP);
    assert_eq!((word(&one, 8), word(&other, 64)), (12, 100));

    let mut sge = one.sge(16, 8);
    let mut wr = send_wr(ibv_wr_opcode::IBV_WR_RDMA_READ, &mut sge);
    wr.wr.rdma = remote;
    run(&mut wr, ibv_wc_opcode::IBV_WC_RDMA_READ);
    assert_eq!(word(&one, 16), 100);
    destroy(&[qp, peer]);
}

#[test]
fn the_request_that_failed_is_named() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    let mut sge = one.sge(0, 8);
    // No receive is posted, so nothing completes; there are more requests than the queue holds.
    let mut list: Vec<ibv_send_wr> = (0..40).map(|_| send_wr(SEND, &mut sge)).collect();
    let start = list.as_mut_ptr();
    let mut bad = null_mut();
    // SAFETY: a list within the vector, and a live QP.
    unsafe {
        // An unknown operation.
        (*start).opcode = ibv_wr_opcode::IBV_WR_TSO;
        assert_eq!(ibv_post_send(qp, start, &raw mut bad), libc::EINVAL);
        assert_eq!(bad, start);
        (*start).opcode = SEND;
        (*start.add(1)).num_sge = 3;
        for index in 0..39 {
            (*start.add(index)).next = start.add(index + 1);
        }
        assert_eq!(ibv_post_send(qp, start, &raw mut bad), libc::EINVAL);
        assert_eq!(bad, start.add(1), "the one before it is posted");
        (*start.add(1)).num_sge = 1;
        assert_eq!(ibv_post_send(qp, start, &raw mut bad), libc::ENOMEM);
        let posted = bad.offset_from(start);
        assert!((15..39).contains(&posted), "{posted}");
    }
    destroy(&[qp, peer]);
}

#[test]
fn datagrams_are_answered_by_their_completions() {
    const GRH: usize = 40;
    let (mut one, other) = (End::new(), End::new());
    one.buffer[..4].copy_from_slice(b"ping");
    let (qp, peer) = pair(&one, &other, UD);
    assert_eq!(receive(peer, 1, other.sge(0, 100)), 0);
    assert_eq!(receive(qp, 2, one.sge(1000, 100)), 0);
    let mut to = attributes(other.gid(), 0).ah_attr;
    // SAFETY: live objects throughout.
    unsafe {
        let ah = verbs::create_ah(one.pd, &raw mut to);
        let mut sge = one.sge(0, 4);
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags |= ibv_send_flags::IBV_SEND_INLINE.0;
        wr.wr.ud = ud_t {
            ah,
            remote_qpn: (*peer).qp_num,
            remote_qkey: 0x1234,
        };
        assert_eq!(send(qp, &mut wr), 0);
        one.succeeds();
        let mut got = other.completion();
        assert_eq!(got.byte_len as usize, GRH + 4);
        assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_GRH.0);
        // UDP and an IPv4 header, as mlx5 tells it.
        assert_eq!(got.sl, 8 | 2);
        assert_eq!(got.src_qp, (*qp).qp_num);
        assert_eq!(other.buffer[GRH..GRH + 4], *b"ping");

        let grh = other.buffer.as_ptr().cast_mut().cast();
        let back = verbs::create_ah_from_wc(other.pd, &raw mut got, grh, 1);
        assert!(!back.is_null(), "errno {}", errno());
        let mut sge = other.sge(GRH, 4);
        let mut wr = send_wr(SEND, &mut sge);
        wr.wr.ud = ud_t {
            ah: back,
            remote_qpn: got.src_qp,
            // The highest bit selects the QP's own key.
            remote_qkey: 0x8000_0000,
        };
        assert_eq!(send(peer, &mut wr), 0);
        assert_eq!(one.completion().wr_id, 2);
        assert_eq!(one.buffer[1000 + GRH..1000 + GRH + 4], *b"ping");

        wr.wr.ud.ah = null_mut();
        assert_eq!(send(peer, &mut wr), libc::EINVAL);
        assert_eq!(verbs::dealloc_pd(one.pd), libc::EBUSY);
        assert_eq!(verbs::destroy_ah(ah), 0);
        assert_eq!(verbs::destroy_ah(back), 0);
    }
    destroy(&[qp, peer]);
}

#[test]
fn an_srq_serves_several_qps_and_tells_when_it_runs_low() {
    let (one, other) = (End::new(), End::new());
    let mut init: ibv_srq_init_attr = blank();
    init.attr.max_wr = 8;
    // SAFETY: live objects throughout.
    unsafe {
        let srq = verbs::create_srq(other.pd, &raw mut init);
        assert!(!srq.is_null());
        let mut attr: ibv_srq_attr = blank();
        attr.srq_limit = 9;
        assert_eq!(verbs::modify_srq(srq, &raw mut attr, 2), libc::EINVAL);
        assert_eq!(verbs::modify_srq(srq, &raw mut attr, 1), libc::EOPNOTSUPP);
        let qps: Vec<_> = (0..2)
            .map(|_| {
                let mut init = other.init_attr(RC);
                init.srq = srq;
                let peer = verbs::create_qp(other.pd, &raw mut init);
                assert_eq!(init.cap.max_recv_wr, 0);
                let qp = one.qp(RC);
                join(&one, qp, &other, peer);
                assert_eq!(receive(peer, 0, other.sge(0, 8)), libc::EINVAL);
                (qp, peer)
            })
            .collect();
        assert_eq!(verbs::destroy_srq(srq), libc::EBUSY);
        let mut sge = other.sge(0, 64);
        for wr_id in 0..3 {
            let mut bad = null_mut();
            let mut wr = ibv_recv_wr {
                wr_id,
                next: null_mut(),
                sg_list: &raw mut sge,
                num_sge: 1,
            };
            assert_eq!(ibv_post_srq_recv(srq, &raw mut wr, &raw mut bad), 0);
        }
        attr.srq_limit = 2;
        assert_eq!(verbs::modify_srq(srq, &raw mut attr, 2), 0);
        assert_eq!(verbs::query_srq(srq, &raw mut attr), 0);
        assert_eq!((attr.max_wr, attr.max_sge, attr.srq_limit), (8, 1, 2));
        for (wr_id, (qp, peer)) in (0..).zip(&qps) {
            one.send(*qp, 16);
            let got = other.completion();
            assert_eq!((got.wr_id, got.qp_num), (wr_id, (**peer).qp_num));
            one.succeeds();
        }
        let mut event = other.event(ibv_event_type::IBV_EVENT_SRQ_LIMIT_REACHED);
        assert_eq!(event.element.srq, srq);
        verbs::ack_async_event(&raw mut event);
        verbs::query_srq(srq, &raw mut attr);
        assert_eq!(attr.srq_limit, 0, "the event disarms it");
        for (qp, peer) in qps {
            destroy(&[qp, peer]);
        }
        assert_eq!(verbs::destroy_srq(srq), 0);
    }
}
