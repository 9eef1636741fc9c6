//! `ibv_create_qp_ex`, `ibv_wr_*`, `ibv_create_cq_ex`, and reading completions field by field.

use std::ptr::{null, null_mut};

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;
use crate::support::look::SOON;
use testing::wait::wait_until;

const PLAIN_FIELDS: u64 = 0x7f;

fn create_cq(end: &End, wc_flags: u64) -> *mut ibv_cq_ex {
    let mut init: ibv_cq_init_attr_ex = blank();
    init.cqe = 64;
    init.wc_flags = wc_flags;
    // SAFETY: an open context.
    unsafe { extended(end.context).create_cq_ex.unwrap()(end.context, &raw mut init) }
}

fn create_qp(end: &End, cq: *mut ibv_cq, operations: u64) -> *mut ibv_qp {
    let plain = end.init_attr(RC);
    let mut init: ibv_qp_init_attr_ex = blank();
    init.send_cq = cq;
    init.recv_cq = cq;
    init.qp_type = RC;
    init.cap = plain.cap;
    init.pd = end.pd;
    init.send_ops_flags = operations;
    init.comp_mask = ibv_qp_init_attr_mask::IBV_QP_INIT_ATTR_PD.0
        | ibv_qp_init_attr_mask::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.0;
    // SAFETY: live objects.
    unsafe { extended(end.context).create_qp_ex.unwrap()(end.context, &raw mut init) }
}

/// Waits until `start_poll` has a completion.
#[track_caller]
unsafe fn start(cq: *mut ibv_cq_ex) {
    let mut attr: ibv_poll_cq_attr = blank();
    // SAFETY: a live CQ.
    let has_one = || unsafe { ibv_start_poll(cq, &raw mut attr) } != libc::ENOENT;
    wait_until("a completion", SOON, has_one);
}

#[test]
fn what_is_not_there_is_refused() {
    let end = End::new();
    // VLAN, tags, wall-clock stamps.
    for flag in [1 << 8, 1 << 9, 1 << 10, 1 << 11] {
        assert!(create_cq(&end, flag).is_null());
        assert_eq!(errno(), libc::EOPNOTSUPP);
    }
    let tso = u64::from(ibv_qp_create_send_ops_flags::IBV_QP_EX_WITH_TSO.0);
    assert!(create_qp(&end, end.cq, tso).is_null());
    assert_eq!(errno(), libc::EOPNOTSUPP);
    let plain = end.qp(RC);
    // SAFETY: a live QP.
    assert!(unsafe { verbs::qp_to_qp_ex(plain) }.is_null());
    destroy(&[plain]);
}

#[test]
fn a_rate_is_limited_in_rts_within_what_the_device_tells() {
    let (one, other) = (End::new(), End::new());
    let verbs = extended(one.context);
    let mut attr: ibv_device_attr_ex = blank();
    // SAFETY: an open context, and a struct of this size.
    let queried = unsafe {
        verbs.query_device_ex.unwrap()(one.context, null(), &raw mut attr, size_of_val(&attr))
    };
    assert_eq!(queried, 0);
    let caps = attr.packet_pacing_caps;
    let has = |kind: u32| caps.supported_qpts >> kind & 1 == 1;
    assert!(has(RC) && has(UC) && !has(UD));
    let limit = |qp: *mut ibv_qp, kbit_per_s: u32| {
        let mut attr: ibv_qp_rate_limit_attr = blank();
        attr.rate_limit = kbit_per_s;
        // SAFETY: a live QP and a readable struct.
        unsafe { verbs.modify_qp_rate_limit.unwrap()(qp, &raw mut attr) }
    };
    let (qp, peer) = (one.qp(RC), other.qp(RC));
    assert_eq!(limit(qp, caps.qp_rate_limit_min), libc::EINVAL, "in RESET");
    join(&one, qp, &other, peer);
    for kbit_per_s in [caps.qp_rate_limit_min, caps.qp_rate_limit_max, 0] {
        assert_eq!(limit(qp, kbit_per_s), 0);
    }
    for kbit_per_s in [caps.qp_rate_limit_min - 1, caps.qp_rate_limit_max + 1] {
        assert_eq!(limit(qp, kbit_per_s), libc::EINVAL);
    }
    let datagrams = one.qp(UD);
    assert_eq!(limit(datagrams, caps.qp_rate_limit_min), libc::EOPNOTSUPP);
    destroy(&[qp, peer, datagrams]);
}

#[test]
fn requests_built_call_by_call_arrive_and_are_read_field_by_field() {
    let (mut one, other) = (End::new(), End::new());
    one.buffer[..8].copy_from_slice(b"12345678");
    let (cq, peer_cq) = (
        create_cq(&one, PLAIN_FIELDS),
        create_cq(&other, PLAIN_FIELDS),
    );
    assert!(!cq.is_null() && !peer_cq.is_null());
    let operations = 0x7f;
    let qp = create_qp(&one, cq.cast(), operations);
    let peer = create_qp(&other, peer_cq.cast(), operations);
    assert!(!qp.is_null() && !peer.is_null());
    // SAFETY: live objects throughout; the calls come in the order of ibv_wr_post(3).
    unsafe {
        join(&one, qp, &other, peer);
        assert_eq!(receive(peer, 9, other.sge(0, 64)), 0);
        assert_eq!(receive(peer, 10, other.sge(64, 64)), 0);
        let qpx = verbs::qp_to_qp_ex(qp);
        assert_eq!(qpx.cast(), qp);

        ibv_wr_start(qpx);
        (*qpx).wr_id = 1;
        (*qpx).wr_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        ibv_wr_send_imm(qpx, 0x0102_0304_u32.to_be());
        let mut elements = [one.sge(0, 4), one.sge(4, 4)];
        ibv_wr_set_sge_list(qpx, 2, elements.as_mut_ptr());
        (*qpx).wr_id = 2;
        (*qpx).wr_flags = ibv_send_flags::IBV_SEND_SIGNALED.0 | ibv_send_flags::IBV_SEND_INLINE.0;
        ibv_wr_rdma_write_imm(qpx, other.rkey(), other.address() + 1000, 5);
        let mut data = *b"inline";
        ibv_wr_set_inline_data(qpx, data.as_mut_ptr().cast(), data.len());
        data = *b"......";
        assert_eq!(ibv_wr_complete(qpx), 0);
        assert_eq!(data, *b"......");

        // Aborted requests are not sent.
        ibv_wr_start(qpx);
        ibv_wr_send(qpx);
        ibv_wr_abort(qpx);

        start(peer_cq);
        assert_eq!(((*peer_cq).wr_id, (*peer_cq).status), (9, 0));
        assert_eq!(ibv_wc_read_opcode(peer_cq), ibv_wc_opcode::IBV_WC_RECV);
        assert_eq!(ibv_wc_read_byte_len(peer_cq), 8);
        assert_eq!(u32::from_be(ibv_wc_read_imm_data(peer_cq)), 0x0102_0304);
        assert_eq!(
            ibv_wc_read_wc_flags(peer_cq),
            ibv_wc_flags::IBV_WC_WITH_IMM.0
        );
        assert_eq!(ibv_wc_read_qp_num(peer_cq), (*peer).qp_num);
        ibv_end_poll(peer_cq);
        start(peer_cq);
        assert_eq!((*peer_cq).wr_id, 10);
        let opcode = ibv_wc_read_opcode(peer_cq);
        assert_eq!(opcode, ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM);
        assert_eq!(ibv_next_poll(peer_cq), libc::ENOENT);
        ibv_end_poll(peer_cq);
        assert_eq!(other.buffer[..8], *b"12345678");
        assert_eq!(other.buffer[1000..1006], *b"inline");
        for wr_id in [1, 2] {
            start(cq);
            assert_eq!(((*cq).wr_id, (*cq).status), (wr_id, 0));
            ibv_end_poll(cq);
        }

        ibv_wr_start(qpx);
        (*qpx).wr_id = 3;
        (*qpx).wr_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
        ibv_wr_rdma_read(qpx, other.rkey(), other.address() + 1000);
        let into = one.sge(2000, 6);
        ibv_wr_set_sge(qpx, into.lkey, into.addr, into.length);
        assert_eq!(ibv_wr_complete(qpx), 0);
        start(cq);
        assert_eq!(ibv_wc_read_opcode(cq), ibv_wc_opcode::IBV_WC_RDMA_READ);
        ibv_end_poll(cq);
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

        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(cq.cast()), 0);
        assert_eq!(verbs::destroy_cq(peer_cq.cast()), 0);
    }
}

fn device_clock(end: &End) -> u64 {
    let mut values: ibv_values_ex = blank();
    values.comp_mask = ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0;
    let query = extended(end.context).query_rt_values.unwrap();
    // SAFETY: an open context, and a struct that can be read and written.
    assert_eq!(unsafe { query(end.context, &raw mut values) }, 0);
    assert_eq!(values.raw_clock.tv_sec, 0);
    values.raw_clock.tv_nsec.cast_unsigned()
}

#[test]
fn completions_are_stamped_when_they_come_by_a_clock_that_can_be_read() {
    let (one, other) = (End::new(), End::new());
    let mut attr: ibv_device_attr_ex = blank();
    let bytes = size_of::<ibv_device_attr_ex>();
    // SAFETY: an open context and a writable struct of so many bytes.
    let code = unsafe { verbs::query_device_ex(one.context, null(), &raw mut attr, bytes) };
    assert_eq!(code, 0);
    assert_eq!(
        (attr.completion_timestamp_mask, attr.hca_core_clock),
        (u64::MAX, 1_000_000)
    );
    let cq = create_cq(&other, PLAIN_FIELDS | 1 << 7);
    assert!(!cq.is_null());
    let (qp, peer) = (one.qp(RC), create_qp(&other, cq.cast(), 0x7f));
    // SAFETY: live objects throughout.
    unsafe {
        join(&one, qp, &other, peer);
        assert_eq!(receive(peer, 9, other.sge(0, 64)), 0);
        assert_eq!(receive(peer, 10, other.sge(0, 64)), 0);
        let before = device_clock(&other);
        for _ in 0..2 {
            one.send(qp, 4);
            one.succeeds();
        }
        start(cq);
        let first = ibv_wc_read_completion_ts(cq);
        while ibv_next_poll(cq) != 0 {
            ibv_end_poll(cq);
            start(cq);
        }
        let second = ibv_wc_read_completion_ts(cq);
        ibv_end_poll(cq);
        assert!(before <= first && first <= second && second <= device_clock(&other));
        destroy(&[qp, peer]);
        assert_eq!(verbs::destroy_cq(cq.cast()), 0);
    }
}

#[test]
fn a_parent_domain_stands_for_its_domain_and_keeps_it() {
    let end = End::new();
    let verbs_of = extended(end.context);
    // SAFETY: live objects throughout.
    unsafe {
        let mut td_init = ibv_td_init_attr { comp_mask: 1 };
        let alloc_td = verbs_of.alloc_td.unwrap();
        assert!(alloc_td(end.context, &raw mut td_init).is_null());
        assert_eq!(errno(), libc::EINVAL);
        td_init.comp_mask = 0;
        let td = alloc_td(end.context, &raw mut td_init);
        let pd = verbs::alloc_pd(end.context);
        let mut init: ibv_parent_domain_init_attr = blank();
        (init.pd, init.td) = (pd, td);
        let parent = verbs_of.alloc_parent_domain.unwrap()(end.context, &raw mut init);
        assert!(!parent.is_null() && parent != pd);
        let mut attr = end.init_attr(RC);
        let qp = verbs::create_qp(parent, &raw mut attr);
        assert!(!qp.is_null());
        // Each is kept by what was made of it.
        assert_eq!(verbs::dealloc_pd(parent), libc::EBUSY);
        assert_eq!(verbs::dealloc_pd(pd), libc::EBUSY);
        assert_eq!(verbs_of.dealloc_td.unwrap()(td), libc::EBUSY);
        destroy(&[qp]);
        assert_eq!(verbs::dealloc_pd(parent), 0);
        assert_eq!(verbs::dealloc_pd(pd), 0);
        assert_eq!(verbs_of.dealloc_td.unwrap()(td), 0);
        init.pd = null_mut();
        assert!(verbs_of.alloc_parent_domain.unwrap()(end.context, &raw mut init).is_null());
        assert_eq!(errno(), libc::EINVAL);
    }
}
