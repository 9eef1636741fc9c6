//! Memory windows of both types: bound, used by a peer, invalidated. Which bindings and keys are right is tested where they
//! are looked up, in `src/transport/windows.rs`.

use std::ptr::null_mut;

use ibv_wc_status::{IBV_WC_MW_BIND_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR};
use libc::EINVAL;
use rdma_sys::*;
use softroce::verbs;

use super::transfers::{PLAIN_FIELDS, create_qp, extended_cq, start};
use crate::support::raw::*;

const TYPE_1: u32 = ibv_mw_type::IBV_MW_TYPE_1;
const TYPE_2: u32 = ibv_mw_type::IBV_MW_TYPE_2;
const BIND: u32 = ibv_wr_opcode::IBV_WR_BIND_MW;
const LOCAL_INV: u32 = ibv_wr_opcode::IBV_WR_LOCAL_INV;
const SEND_WITH_INV: u32 = ibv_wr_opcode::IBV_WR_SEND_WITH_INV;
const WITH_INV: u32 = ibv_wc_flags::IBV_WC_WITH_INV.0;
/// Local writing and binding: nothing for peers.
const BINDABLE: i32 = 0x11;
/// What peers may do by a window; that this end may write too means nothing.
const REMOTE: u32 = 0xf;
/// Where windows of these tests begin in the buffer, and their length.
const START: usize = 1024;
const BYTES: u64 = 64;

fn window(end: &End, mw_type: u32) -> Owned<ibv_mw> {
    let ops = &end.context.ops;
    // SAFETY: a live domain.
    let mw = unsafe { ops.alloc_mw.unwrap()(end.pd.raw, mw_type) };
    Owned::new(mw, ops.dealloc_mw.unwrap())
}

/// The part of a region that windows get here.
fn part(end: &End, mr: &Owned<ibv_mr>, length: u64) -> ibv_mw_bind_info {
    let addr = end.address() + START as u64;
    ibv_mw_bind_info { mr: mr.raw, addr, length, mw_access_flags: REMOTE }
}

fn bind_wr(mw: &Owned<ibv_mw>, bind_info: ibv_mw_bind_info) -> ibv_send_wr {
    let mut wr = send_wr(BIND, &mut blank());
    (wr.sg_list, wr.num_sge) = (null_mut(), 0);
    wr.bind_mw_tso_union.bind_mw = bind_mw_t { mw: mw.raw, rkey: mw.rkey ^ 1, bind_info };
    wr
}

fn invalidate_wr(rkey: u32) -> ibv_send_wr {
    let mut wr = send_wr(LOCAL_INV, &mut blank());
    (wr.sg_list, wr.num_sge) = (null_mut(), 0);
    wr.imm_data_invalidated_rkey_union.invalidated_rkey = rkey;
    wr
}

fn send_invalidate_wr(sge: &mut ibv_sge, rkey: u32) -> ibv_send_wr {
    let mut wr = send_wr(SEND_WITH_INV, sge);
    wr.imm_data_invalidated_rkey_union.invalidated_rkey = rkey;
    wr
}

/// Posts the binding of a window.
fn bind(qp: &Qp, mw: &Owned<ibv_mw>, bind_info: ibv_mw_bind_info) -> i32 {
    if mw.type_ == TYPE_2 {
        return qp.post(&mut bind_wr(mw, bind_info));
    }
    let mut info = ibv_mw_bind { wr_id: 77, send_flags: SIGNALED, bind_info };
    // SAFETY: live objects, and a struct of plain data.
    unsafe { (*qp.context).ops.bind_mw.unwrap()(qp.raw, mw.raw, &raw mut info) }
}

/// Binds the window, which succeeds, and gets another key.
#[track_caller]
fn binds(end: &End, qp: &Qp, mw: &Owned<ibv_mw>, bind_info: ibv_mw_bind_info) {
    let before = mw.rkey;
    assert_eq!(bind(qp, mw, bind_info), 0);
    let bound = end.succeeds();
    assert_eq!((bound.wr_id, bound.opcode), (77, ibv_wc_opcode::IBV_WC_BIND_MW));
    assert!(mw.rkey != before && mw.rkey >> 8 == before >> 8);
}

/// How the peer of `end` finds a place of its buffer by a window.
fn remote(end: &End, mw: &Owned<ibv_mw>, offset: usize) -> rdma_t {
    rdma_t { rkey: mw.rkey, ..end.remote(offset) }
}

#[test]
fn a_peer_gets_the_part_that_was_bound_and_no_more() {
    for mw_type in [TYPE_1, TYPE_2] {
        let (mut one, other) = two_ends();
        let mr = other.region(0, BUFFER_BYTES, BINDABLE);
        let mw = window(&other, mw_type);
        let (qp, peer) = pair(&one, &other, RC);
        binds(&other, &peer, &mw, part(&other, &mr, BYTES));
        one.buffer[..8].copy_from_slice(&7_u64.to_ne_bytes());
        let place = remote(&other, &mw, START + 56);
        assert_eq!(qp.fetch((1, WRITE), one.sge(0, 8), place), 0);
        let mut sge = one.sge(8, 8);
        let mut add = send_wr(ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, &mut sge);
        add.wr.atomic =
            atomic_t { remote_addr: place.remote_addr, compare_add: 1, swap: 0, rkey: place.rkey };
        assert_eq!(qp.post(&mut add), 0);
        assert_eq!(qp.fetch((3, READ), one.sge(16, 8), place), 0);
        (0..3).for_each(|_| assert_eq!(one.completion().status, SUCCESS, "type {mw_type}"));
        let words = [8, 16].map(|at| one.buffer[at]);
        assert_eq!(words, [7, 8], "type {mw_type}");
        assert_eq!(qp.fetch((4, WRITE), one.sge(0, 9), place), 0);
        assert_eq!(one.statuses(1), [(4, IBV_WC_REM_ACCESS_ERR)], "type {mw_type}");
    }
}

#[test]
fn a_window_of_type_2_is_for_the_qp_that_bound_it() {
    for (mw_type, expected) in [(TYPE_1, SUCCESS), (TYPE_2, IBV_WC_REM_ACCESS_ERR)] {
        let (one, other) = two_ends();
        let mr = other.region(0, BUFFER_BYTES, BINDABLE);
        let mw = window(&other, mw_type);
        let (_qp, peer) = pair(&one, &other, RC);
        let (stranger, _its_peer) = pair(&one, &other, RC);
        binds(&other, &peer, &mw, part(&other, &mr, BYTES));
        assert_eq!(stranger.fetch((1, READ), one.sge(0, 8), remote(&other, &mw, START)), 0);
        assert_eq!(one.statuses(1), [(1, expected)], "type {mw_type}");
    }
}

#[test]
fn a_region_is_busy_until_its_window_is_unbound_and_a_domain_until_it_has_gone() {
    type Unbind = fn(&End, &Qp, Owned<ibv_mw>, ibv_mw_bind_info) -> Option<Owned<ibv_mw>>;
    let ways: [(u32, Unbind); 3] = [
        (TYPE_1, |end, peer, mw, nothing| {
            binds(end, peer, &mw, nothing);
            Some(mw)
        }),
        (TYPE_2, |end, peer, mw, _| {
            assert_eq!(peer.post(&mut invalidate_wr(mw.rkey)), 0);
            assert_eq!(end.succeeds().opcode, ibv_wc_opcode::IBV_WC_LOCAL_INV);
            Some(mw)
        }),
        (TYPE_2, |_, _, _, _| None),
    ];
    for (mw_type, unbind) in ways {
        let (one, other) = two_ends();
        let mr = other.region(0, BUFFER_BYTES, BINDABLE);
        let mw = window(&other, mw_type);
        let (qp, peer) = pair(&one, &other, RC);
        binds(&other, &peer, &mw, part(&other, &mr, BYTES));
        let key = remote(&other, &mw, START);
        // SAFETY: a live region, which stays.
        assert_eq!(unsafe { verbs::dereg_mr(mr.raw) }, libc::EBUSY);
        assert_eq!(qp.fetch((1, READ), one.sge(0, 8), key), 0);
        one.succeeds();
        let left = unbind(&other, &peer, mw, part(&other, &mr, 0));
        assert_eq!(qp.fetch((2, READ), one.sge(0, 8), key), 0);
        assert_eq!(one.statuses(1), [(2, IBV_WC_REM_ACCESS_ERR)]);
        assert_eq!(mr.destroy(), 0);
        drop(left);
    }
    let end = one_end();
    // SAFETY: a live domain in an open context.
    let pd = Owned::new(unsafe { verbs::alloc_pd(end.context.raw) }, verbs::dealloc_pd);
    let ops = &end.context.ops;
    // SAFETY: live objects.
    unsafe {
        let mw = Owned::new(ops.alloc_mw.unwrap()(pd.raw, TYPE_1), ops.dealloc_mw.unwrap());
        assert_eq!(verbs::dealloc_pd(pd.raw), libc::EBUSY);
        drop(mw);
    }
}

#[test]
fn a_send_takes_a_window_back() {
    for bytes in [8, 5000] {
        let (one, other) = two_ends();
        let mr = other.region(0, BUFFER_BYTES, BINDABLE);
        let mw = window(&other, TYPE_2);
        let (qp, peer) = pair(&one, &other, RC);
        binds(&other, &peer, &mw, part(&other, &mr, BYTES));
        let key = remote(&other, &mw, START);
        assert_eq!(peer.receive(5, other.sge(START, 6000)), 0);
        assert_eq!(qp.post(&mut send_invalidate_wr(&mut one.sge(0, bytes), mw.rkey)), 0);
        let got = other.succeeds();
        let receive = ibv_wc_opcode::IBV_WC_RECV;
        assert_eq!((got.wr_id, got.opcode, got.byte_len), (5, receive, bytes));
        // SAFETY: the flag says that it is this member.
        let rkey = unsafe { got.imm_data_invalidated_rkey_union.invalidated_rkey };
        assert_eq!((got.wc_flags, rkey), (WITH_INV, key.rkey));
        assert_eq!(one.succeeds().opcode, ibv_wc_opcode::IBV_WC_SEND);
        // It is free for another binding.
        binds(&other, &peer, &mw, part(&other, &mr, BYTES));
        assert_eq!(qp.fetch((1, READ), one.sge(0, 8), key), 0);
        assert_eq!(one.statuses(1), [(1, IBV_WC_REM_ACCESS_ERR)]);
    }
}

#[test]
fn a_key_that_a_send_cannot_take_back_ends_its_receive() {
    let (one, other) = two_ends();
    let mr = other.region(0, BUFFER_BYTES, BINDABLE);
    let [of_type_1, of_other_qp, unbound] = [TYPE_1, TYPE_2, TYPE_2].map(|it| window(&other, it));
    let (stranger, its_peer) = pair(&one, &other, RC);
    for mw in [&of_type_1, &of_other_qp] {
        binds(&other, &its_peer, mw, part(&other, &mr, BYTES));
    }
    let known = [&of_type_1, &of_other_qp, &unbound].map(|mw| mw.rkey);
    for key in known.into_iter().chain([other.mr.rkey, unbound.rkey ^ 0x100]) {
        let (qp, peer) = pair(&one, &other, RC);
        assert_eq!([5, 6].map(|wr_id| peer.receive(wr_id, other.sge(0, 8))), [0; 2]);
        assert_eq!(qp.post(&mut send_invalidate_wr(&mut one.sge(0, 8), key)), 0);
        assert_eq!(other.statuses(2), [(5, IBV_WC_REM_INV_REQ_ERR), (6, FLUSHED)], "{key:#x}");
        assert_eq!(peer.state_now(), ibv_qp_state::IBV_QPS_ERR);
    }
    for mw in [&of_type_1, &of_other_qp] {
        let key = remote(&other, mw, START);
        assert_eq!(stranger.fetch((1, READ), one.sge(0, 8), key), 0);
        one.succeeds();
    }
}

#[test]
fn windows_are_bound_and_taken_back_call_by_call() {
    use ibv_qp_create_send_ops_flags as Flags;
    let (one, other) = two_ends();
    let own_cq = extended_cq(&other, PLAIN_FIELDS);
    let cq: *mut ibv_cq_ex = own_cq.raw.cast();
    let send = Flags::IBV_QP_EX_WITH_SEND_WITH_INV.0.into();
    let qp = one.owned(create_qp(&one, one.cq.raw, send));
    let bind = Flags::IBV_QP_EX_WITH_BIND_MW.0.into();
    let peer = other.owned(create_qp(&other, own_cq.raw, bind));
    join(&one, &qp, &other, &peer);
    let mr = other.region(0, BUFFER_BYTES, BINDABLE);
    let mw = window(&other, TYPE_2);
    let info = part(&other, &mr, BYTES);
    assert_eq!(peer.receive(5, other.sge(0, 8)), 0);
    // SAFETY: live objects throughout; the calls come in the order of ibv_wr_post(3).
    unsafe {
        let [qpx, peerx] = [&qp, &peer].map(|qp| verbs::qp_to_qp_ex(qp.raw));
        ((*qpx).wr_flags, (*peerx).wr_flags) = (SIGNALED, SIGNALED);
        ibv_wr_start(peerx);
        ibv_wr_bind_mw(peerx, mw.raw, mw.rkey ^ 1, &raw const info);
        assert_eq!(ibv_wr_complete(peerx), 0);
        start(cq);
        let bound = ((*cq).status, ibv_wc_read_opcode(cq));
        assert_eq!(bound, (SUCCESS, ibv_wc_opcode::IBV_WC_BIND_MW));
        ibv_end_poll(cq);
        ibv_wr_start(qpx);
        ibv_wr_send_inv(qpx, mw.rkey);
        let from = one.sge(0, 8);
        ibv_wr_set_sge(qpx, from.lkey, from.addr, from.length);
        assert_eq!(ibv_wr_complete(qpx), 0);
        start(cq);
        let received = ((*cq).wr_id, ibv_wc_read_wc_flags(cq), ibv_wc_read_invalidated_rkey(cq));
        assert_eq!(received, (5, WITH_INV, mw.rkey));
        ibv_end_poll(cq);
    }
}

#[test]
fn bindings_and_invalidations_are_done_in_their_turn() {
    for qp_type in [RC, UC] {
        let (one, other) = two_ends();
        let mr = one.region(0, BUFFER_BYTES, BINDABLE);
        let mw = window(&one, TYPE_2);
        let (qp, _peer) = pair(&one, &other, qp_type);
        let mut sge = one.sge(0, 8);
        let mut write = send_wr(WRITE, &mut sge);
        write.wr.rdma = other.remote(0);
        write.send_flags = 0;
        let mut bind = bind_wr(&mw, part(&one, &mr, BYTES));
        let mut invalidate = invalidate_wr(bind_key(&bind));
        let mut again = bind_wr(&mw, part(&one, &mr, BYTES));
        (bind.wr_id, invalidate.wr_id, again.wr_id) = (1, 2, 3);
        bind.next = &raw mut invalidate;
        invalidate.next = &raw mut again;
        write.next = &raw mut bind;
        // SAFETY: a list of live requests.
        assert_eq!(unsafe { qp.post_list(&raw mut write) }.0, 0);
        assert_eq!(one.statuses(3), [1, 2, 3].map(|wr_id| (wr_id, SUCCESS)));
        assert!(one.cq.poll(1).is_empty());
    }
}

fn bind_key(wr: &ibv_send_wr) -> u32 {
    // SAFETY: a request to bind.
    unsafe { wr.bind_mw_tso_union.bind_mw.rkey }
}

#[test]
fn a_binding_that_fails_ends_its_qp() {
    let (one, other) = two_ends();
    let plain = one.region(0, BUFFER_BYTES, 0xf);
    let mr = one.region(0, BUFFER_BYTES, BINDABLE);
    for mw_type in [TYPE_1, TYPE_2] {
        let mw = window(&one, mw_type);
        let (qp, _peer) = pair(&one, &other, RC);
        assert_eq!(bind(&qp, &mw, part(&one, &plain, BYTES)), 0);
        let failed = one.completion();
        let bind_mw = ibv_wc_opcode::IBV_WC_BIND_MW;
        assert_eq!((failed.status, failed.opcode), (IBV_WC_MW_BIND_ERR, bind_mw));
        assert_eq!(qp.state_now(), ibv_qp_state::IBV_QPS_ERR);
        assert_eq!(bind(&qp, &mw, part(&one, &mr, BYTES)), 0);
        assert_eq!(one.completion().status, FLUSHED);
    }
    let mw = window(&one, TYPE_2);
    let (owner, _its_peer) = pair(&one, &other, RC);
    let (stranger, _other_peer) = pair(&one, &other, RC);
    binds(&one, &owner, &mw, part(&one, &mr, BYTES));
    // Unsignalled, of a window that another QP has bound.
    let mut invalidate = invalidate_wr(mw.rkey);
    invalidate.send_flags = 0;
    assert_eq!(stranger.post(&mut invalidate), 0);
    assert_eq!(one.completion().status, IBV_WC_MW_BIND_ERR);
    assert_eq!(bind(&owner, &mw, part(&one, &mr, BYTES)), 0);
    assert_eq!(one.completion().status, IBV_WC_MW_BIND_ERR);
}

#[test]
fn windows_are_told_of_and_what_cannot_be_posted_is_refused() {
    let (one, other) = two_ends();
    let mut attr: ibv_device_attr = blank();
    // SAFETY: an open context and a writable struct.
    ok(unsafe { verbs::query_device(one.context.raw, &raw mut attr) });
    use ibv_device_cap_flags as Cap;
    let caps = Cap::IBV_DEVICE_MEM_WINDOW.0
        | Cap::IBV_DEVICE_MEM_WINDOW_TYPE_2B.0
        | Cap::IBV_DEVICE_MEM_MGT_EXTENSIONS.0;
    assert_eq!((attr.device_cap_flags & caps, attr.max_mw), (caps, 65536));
    // SAFETY: a live domain.
    refused(unsafe { one.context.ops.alloc_mw.unwrap()(one.pd.raw, 3) }, EINVAL);
    let mr = one.region(0, BUFFER_BYTES, BINDABLE);
    let info = part(&one, &mr, BYTES);
    let [first, second] = [TYPE_1, TYPE_2].map(|mw_type| window(&one, mw_type));
    let (qp, _peer) = pair(&one, &other, RC);
    let (datagrams, _datagram_peer) = pair(&one, &other, UD);
    let keys = [first.rkey, second.rkey];
    let (unreliable, _its_peer) = pair(&one, &other, UC);
    let mut sge = one.sge(0, 8);
    assert_eq!(unreliable.post(&mut send_invalidate_wr(&mut sge, second.rkey)), EINVAL);
    assert_eq!(qp.post(&mut bind_wr(&first, info)), EINVAL);
    assert_eq!(bind(&datagrams, &first, info), EINVAL);
    for mw in [&first, &second] {
        assert_eq!(bind(&qp, mw, ibv_mw_bind_info { mw_access_flags: 0x10, ..info }), EINVAL);
        assert_eq!(bind(&qp, mw, ibv_mw_bind_info { mr: null_mut(), ..info }), EINVAL);
    }
    assert_eq!([first.rkey, second.rkey], keys);
    assert!(one.cq.poll(1).is_empty());
}
