//! Every operation through `ibv_post_send`, between two ends, and through `ibv_create_qp_ex` and `ibv_wr_*`; reading
//! completions field by field (`ibv_create_cq_ex`).

use std::ptr::{null, null_mut};

use rdma_sys::ibv_wc_opcode::*;
use rdma_sys::*;
use softroce::verbs;
use testing::wait::wait_until;

use crate::support::look::SOON;
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
        assert_eq!(got.opcode, IBV_WC_RECV);
        assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_WITH_IMM.0);
        // SAFETY: the flag says that it is this member.
        let immediate = unsafe { got.imm_data_invalidated_rkey_union.imm_data };
        assert_eq!(u32::from_be(immediate), 0x1122_3344);
        let sent = one.succeeds();
        assert_eq!((sent.wr_id, sent.opcode), (77, IBV_WC_SEND));
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
    let exchange = ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP;
    for (opcode, of_atomic, here, kind, expected) in [
        (WRITE, None, 0, IBV_WC_RDMA_WRITE, (7, 7)),
        (add, Some((5, 0)), 8, IBV_WC_FETCH_ADD, (7, 12)),
        (exchange, Some((12, 100)), 8, IBV_WC_COMP_SWAP, (12, 100)),
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

/// Inline bytes are sent from where no result can come to (`ibv_post_send(3)`: "valid only for Send and RDMA Write").
#[test]
fn what_is_fetched_needs_registered_memory() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    for opcode in
        [READ, ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP]
    {
        let mut sge = one.sge(0, 8);
        let mut wr = send_wr(opcode, &mut sge);
        wr.send_flags = SIGNALED | INLINE;
        wr.wr.rdma = other.remote(0);
        assert_eq!(qp.post(&mut wr), libc::EINVAL, "{opcode}");
    }
    assert!(one.cq.poll(1).is_empty());
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
    (path.grh.traffic_class, path.grh.hop_limit) = (0xfc, 9);
    let ah = one.ah(&mut path).unwrap();
    path.port_num = 2;
    assert_eq!(one.ah(&mut path).err(), Some(libc::EINVAL));
    let send = |from: &Qp, flags, (handle, remote_qpn, remote_qkey), mut sge| {
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags |= flags;
        wr.wr.ud = ud_t { ah: handle, remote_qpn, remote_qkey };
        from.post(&mut wr)
    };
    let to_peer = (ah.raw, peer.qp_num, 0x1234);
    assert_eq!(send(&qp, INLINE, to_peer, one.sge(0, 4)), 0);
    one.succeeds();
    let mut got = other.completion();
    assert_eq!(got.byte_len as usize, GRH + 4);
    assert_eq!(got.wc_flags, ibv_wc_flags::IBV_WC_GRH.0);
    // UDP and an IPv4 header, as mlx5 tells it.
    assert_eq!((got.sl, got.src_qp), (8 | 2, qp.qp_num));
    // The type of service and the time to live.
    assert_eq!((other.buffer[21], other.buffer[28]), (0xfc, 9));
    assert_eq!(other.buffer[GRH..GRH + 4], *b"ping");

    let grh = other.buffer.as_ptr().cast_mut().cast();
    // SAFETY: live objects, and the header before the datagram.
    let back = unsafe { verbs::create_ah_from_wc(other.pd.raw, &raw mut got, grh, 1) };
    let back = Owned::new(back, verbs::destroy_ah);
    // The highest bit selects the QP's own key.
    let answer = |handle| send(&peer, 0, (handle, got.src_qp, 1 << 31), other.sge(GRH, 4));
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
    let mut srq_init: ibv_srq_init_attr = blank();
    srq_init.attr.max_wr = 8;
    // SAFETY: live objects throughout.
    unsafe {
        let srq =
            Owned::new(verbs::create_srq(other.pd.raw, &raw mut srq_init), verbs::destroy_srq);
        let mut attr: ibv_srq_attr = blank();
        attr.srq_limit = 9;
        let modify = |limit: &mut ibv_srq_attr, mask| verbs::modify_srq(srq.raw, limit, mask);
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

pub(super) const PLAIN_FIELDS: u64 = 0x7f;
const ALL_OPERATIONS: u64 = 0x7f;

fn create_cq(end: &End, wc_flags: u64) -> *mut ibv_cq {
    let mut init: ibv_cq_init_attr_ex = blank();
    init.cqe = 64;
    init.wc_flags = wc_flags;
    let context = end.context.raw;
    // SAFETY: an open context. A plain CQ begins like an extended one.
    unsafe { extended(context).create_cq_ex.unwrap()(context, &raw mut init).cast() }
}

pub(super) fn extended_cq(end: &End, wc_flags: u64) -> Owned<ibv_cq> {
    Owned::new(create_cq(end, wc_flags), verbs::destroy_cq)
}

pub(super) fn create_qp(end: &End, cq: *mut ibv_cq, operations: u64) -> *mut ibv_qp {
    let plain = end.init_attr(RC);
    let mut init: ibv_qp_init_attr_ex = blank();
    (init.send_cq, init.recv_cq) = (cq, cq);
    (init.qp_type, init.cap) = (plain.qp_type, plain.cap);
    init.pd = end.pd.raw;
    init.send_ops_flags = operations;
    init.comp_mask = ibv_qp_init_attr_mask::IBV_QP_INIT_ATTR_PD.0
        | ibv_qp_init_attr_mask::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.0;
    let context = end.context.raw;
    // SAFETY: live objects.
    unsafe { extended(context).create_qp_ex.unwrap()(context, &raw mut init) }
}

#[track_caller]
pub(super) unsafe fn start(cq: *mut ibv_cq_ex) {
    let mut attr: ibv_poll_cq_attr = blank();
    // SAFETY: a live CQ.
    wait_until(
        "a completion",
        SOON,
        || unsafe { ibv_start_poll(cq, &raw mut attr) } != libc::ENOENT,
    );
}

fn device_attr(end: &End) -> ibv_device_attr_ex {
    let mut attr: ibv_device_attr_ex = blank();
    let bytes = size_of_val(&attr);
    // SAFETY: an open context, and a struct of this size.
    ok(unsafe { verbs::query_device_ex(end.context.raw, null(), &raw mut attr, bytes) });
    attr
}

#[test]
fn what_is_not_there_is_refused() {
    let end = one_end();
    // VLAN, tags, wall-clock stamps.
    for flag in [1 << 8, 1 << 9, 1 << 10, 1 << 11] {
        refused(create_cq(&end, flag), libc::EOPNOTSUPP);
    }
    let tso = u64::from(ibv_qp_create_send_ops_flags::IBV_QP_EX_WITH_TSO.0);
    refused(create_qp(&end, end.cq.raw, tso), libc::EOPNOTSUPP);
    let plain = end.qp(RC);
    // SAFETY: a live QP.
    assert!(unsafe { verbs::qp_to_qp_ex(plain.raw) }.is_null());
}

#[test]
fn a_rate_is_limited_in_rts_within_what_the_device_tells() {
    let (one, other) = two_ends();
    let caps = device_attr(&one).packet_pacing_caps;
    let has = |kind: u32| caps.supported_qpts >> kind & 1 == 1;
    assert!(has(RC) && has(UC) && !has(UD));
    let limit = |qp: &Qp, kbit_per_s: u32| {
        let mut attr: ibv_qp_rate_limit_attr = blank();
        attr.rate_limit = kbit_per_s;
        let limit_rate = extended(one.context.raw).modify_qp_rate_limit.unwrap();
        // SAFETY: a live QP and a readable struct.
        unsafe { limit_rate(qp.raw, &raw mut attr) }
    };
    let (qp, peer) = (one.qp(RC), other.qp(RC));
    let (least, most) = (caps.qp_rate_limit_min, caps.qp_rate_limit_max);
    assert_eq!(limit(&qp, least), libc::EINVAL, "in RESET");
    join(&one, &qp, &other, &peer);
    assert_eq!([least, most, 0].map(|rate| limit(&qp, rate)), [0; 3]);
    let beyond = [least - 1, most + 1];
    assert_eq!(beyond.map(|rate| limit(&qp, rate)), [libc::EINVAL; 2]);
    assert_eq!(limit(&one.qp(UD), least), libc::EOPNOTSUPP);
}

#[test]
fn requests_built_call_by_call_arrive_and_are_read_field_by_field() {
    let (mut one, other) = two_ends();
    one.buffer[..8].copy_from_slice(b"12345678");
    let [own_cq, its_cq] = [&one, &other].map(|end| extended_cq(end, PLAIN_FIELDS));
    let (cq, peer_cq): (*mut ibv_cq_ex, *mut ibv_cq_ex) = (own_cq.raw.cast(), its_cq.raw.cast());
    let qp = one.owned(create_qp(&one, own_cq.raw, ALL_OPERATIONS));
    let peer = other.owned(create_qp(&other, its_cq.raw, ALL_OPERATIONS));
    join(&one, &qp, &other, &peer);
    assert_eq!(peer.receive(9, other.sge(0, 64)), 0);
    assert_eq!(peer.receive(10, other.sge(64, 64)), 0);
    let remote = other.remote(1000);
    // SAFETY: live objects throughout; the calls come in the order of ibv_wr_post(3).
    unsafe {
        let qpx = verbs::qp_to_qp_ex(qp.raw);
        assert_eq!(qpx.cast(), qp.raw);
        let next = |wr_id, flags| {
            (*qpx).wr_id = wr_id;
            (*qpx).wr_flags = SIGNALED | flags;
        };

        ibv_wr_start(qpx);
        next(1, 0);
        ibv_wr_send_imm(qpx, 0x0102_0304_u32.to_be());
        let mut elements = [one.sge(0, 4), one.sge(4, 4)];
        ibv_wr_set_sge_list(qpx, 2, elements.as_mut_ptr());
        next(2, INLINE);
        ibv_wr_rdma_write_imm(qpx, remote.rkey, remote.remote_addr, 5);
        let mut data = [*b"inline", *b"second"];
        ibv_wr_set_inline_data(qpx, data[0].as_mut_ptr().cast(), 6);
        next(3, INLINE);
        ibv_wr_rdma_write(qpx, remote.rkey, remote.remote_addr + 6);
        ibv_wr_set_inline_data(qpx, data[1].as_mut_ptr().cast(), 6);
        next(4, 0);
        ibv_wr_rdma_write(qpx, remote.rkey, remote.remote_addr + 12);
        ibv_wr_set_sge_list(qpx, 2, elements.as_mut_ptr());
        data = [*b"......"; 2];
        assert_eq!(ibv_wr_complete(qpx), 0);
        assert_eq!(data, [*b"......"; 2]);

        // Aborted requests are not sent.
        ibv_wr_start(qpx);
        ibv_wr_send(qpx);
        ibv_wr_abort(qpx);

        start(peer_cq);
        assert_eq!(((*peer_cq).wr_id, (*peer_cq).status), (9, 0));
        assert_eq!(ibv_wc_read_opcode(peer_cq), IBV_WC_RECV);
        assert_eq!(ibv_wc_read_byte_len(peer_cq), 8);
        assert_eq!(u32::from_be(ibv_wc_read_imm_data(peer_cq)), 0x0102_0304);
        let flags = ibv_wc_read_wc_flags(peer_cq);
        assert_eq!(flags, ibv_wc_flags::IBV_WC_WITH_IMM.0);
        assert_eq!(ibv_wc_read_qp_num(peer_cq), peer.qp_num);
        ibv_end_poll(peer_cq);
        start(peer_cq);
        assert_eq!((*peer_cq).wr_id, 10);
        assert_eq!(ibv_wc_read_opcode(peer_cq), IBV_WC_RECV_RDMA_WITH_IMM);
        assert_eq!(ibv_next_poll(peer_cq), libc::ENOENT);
        ibv_end_poll(peer_cq);
        assert_eq!(other.buffer[..8], *b"12345678");
        let read = |wr_id| {
            start(cq);
            assert_eq!(((*cq).wr_id, (*cq).status), (wr_id, 0));
            let opcode = ibv_wc_read_opcode(cq);
            ibv_end_poll(cq);
            opcode
        };
        let writes = [IBV_WC_RDMA_WRITE; 3];
        assert_eq!((read(1), [2, 3, 4].map(read)), (IBV_WC_SEND, writes));
        assert_eq!(other.buffer[1000..1020], *b"inlinesecond12345678");
        ibv_wr_start(qpx);
        next(5, 0);
        ibv_wr_rdma_read(qpx, remote.rkey, remote.remote_addr);
        let into = one.sge(2000, 6);
        ibv_wr_set_sge(qpx, into.lkey, into.addr, into.length);
        assert_eq!(ibv_wr_complete(qpx), 0);
        assert_eq!(read(5), IBV_WC_RDMA_READ);
        assert_eq!(one.buffer[2000..2006], *b"inline");

        // More elements than allowed.
        ibv_wr_start(qpx);
        ibv_wr_send(qpx);
        let mut many = [one.sge(0, 1), one.sge(1, 1), one.sge(2, 1)];
        ibv_wr_set_sge_list(qpx, 3, many.as_mut_ptr());
        assert_eq!(ibv_wr_complete(qpx), libc::EINVAL);
        ibv_wr_start(qpx);
        ibv_wr_send(qpx);
        ibv_wr_set_ud_addr(qpx, null_mut(), 1, 1);
        assert_eq!(ibv_wr_complete(qpx), libc::EINVAL);
    }
}

fn device_clock(end: &End) -> u64 {
    let mut values: ibv_values_ex = blank();
    values.comp_mask = ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0;
    let query = extended(end.context.raw).query_rt_values.unwrap();
    // SAFETY: an open context, and a struct that can be read and written.
    assert_eq!(unsafe { query(end.context.raw, &raw mut values) }, 0);
    assert_eq!(values.raw_clock.tv_sec, 0);
    values.raw_clock.tv_nsec.cast_unsigned()
}

#[test]
fn completions_are_stamped_when_they_come_by_a_clock_that_can_be_read() {
    let (one, other) = two_ends();
    let attr = device_attr(&one);
    let clock = (attr.completion_timestamp_mask, attr.hca_core_clock);
    assert_eq!(clock, (u64::MAX, 1_000_000));
    let stamped = extended_cq(&other, PLAIN_FIELDS | 1 << 7);
    let cq: *mut ibv_cq_ex = stamped.raw.cast();
    let peer = other.owned(create_qp(&other, stamped.raw, ALL_OPERATIONS));
    let qp = one.qp(RC);
    join(&one, &qp, &other, &peer);
    assert_eq!(peer.receive(9, other.sge(0, 64)), 0);
    assert_eq!(peer.receive(10, other.sge(0, 64)), 0);
    let before = device_clock(&other);
    for _ in 0..2 {
        assert_eq!(qp.send(1, SIGNALED, one.sge(0, 4)), 0);
        one.succeeds();
    }
    // SAFETY: a live CQ.
    unsafe {
        start(cq);
        let first = ibv_wc_read_completion_ts(cq);
        // Its sender had the acknowledgements of both.
        assert_eq!(ibv_next_poll(cq), 0);
        let second = ibv_wc_read_completion_ts(cq);
        ibv_end_poll(cq);
        assert!(before <= first && first <= second && second <= device_clock(&other));
    }
}

#[test]
fn a_parent_domain_stands_for_its_domain_and_keeps_it() {
    let end = one_end();
    let context = end.context.raw;
    let verbs_of = extended(context);
    // SAFETY: live objects throughout.
    unsafe {
        let mut td_init = ibv_td_init_attr { comp_mask: 1 };
        let alloc_td = verbs_of.alloc_td.unwrap();
        refused(alloc_td(context, &raw mut td_init), libc::EINVAL);
        td_init.comp_mask = 0;
        let td = alloc_td(context, &raw mut td_init);
        let pd = verbs::alloc_pd(context);
        let mut init: ibv_parent_domain_init_attr = blank();
        (init.pd, init.td) = (pd, td);
        let alloc_parent = verbs_of.alloc_parent_domain.unwrap();
        let parent = alloc_parent(context, &raw mut init);
        assert!(!parent.is_null() && parent != pd);
        let qp = end.owned(verbs::create_qp(parent, &mut end.init_attr(RC)));
        let mut cq_init: ibv_cq_init_attr_ex = blank();
        cq_init.cqe = 64;
        cq_init.comp_mask = ibv_cq_init_attr_mask::IBV_CQ_INIT_ATTR_MASK_PD.0;
        let create_cq_ex = verbs_of.create_cq_ex.unwrap();
        for strange in [null_mut(), one_end().pd.raw] {
            cq_init.parent_domain = strange;
            refused(create_cq_ex(context, &raw mut cq_init), libc::EINVAL);
        }
        cq_init.parent_domain = parent;
        let cq = Owned::new(create_cq_ex(context, &raw mut cq_init).cast(), verbs::destroy_cq);
        let dealloc_td = verbs_of.dealloc_td.unwrap();
        let free = || {
            let of_pds = [parent, pd].map(|pd| verbs::dealloc_pd(pd));
            [of_pds[0], of_pds[1], dealloc_td(td)]
        };
        // Each is kept by what was made of it.
        assert_eq!(free(), [libc::EBUSY; 3]);
        drop(qp);
        assert_eq!(free(), [libc::EBUSY; 3], "the CQ");
        drop(cq);
        assert_eq!(free(), [0; 3]);
        init.pd = null_mut();
        refused(alloc_parent(context, &raw mut init), libc::EINVAL);
    }
}
