//! `loop0`.

use std::collections::HashMap;
use std::time::Duration;

use null_verbs::loopback::{corrupt_next_message, fail_next, set_max_delay, set_seed};
use rdma_sys::ibv_qp_state::*;
use rdma_sys::ibv_wc_opcode::{IBV_WC_RDMA_READ, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM};
use rdma_sys::ibv_wc_status::*;
use rdma_sys::ibv_wr_opcode::{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
use rdma_sys::rdma_t;
use testing::verbs_user::*;

use super::Device;

const LOOPBACK: usize = 1;

#[test]
fn a_send_fills_the_peers_receives_in_order() {
    let mut device = Device::open(LOOPBACK);
    device.end.buffer[..8].fill(7);
    let [a, b] = device.pair();
    // The first send is due at once, finds no receive and waits.
    set_max_delay(Duration::ZERO);
    assert_eq!(a.send(1, SIGNALED, device.sge(0, 8)), 0);
    assert!(device.cq.poll(16).is_empty());
    for wr_id in [10, 11] {
        assert_eq!(b.receive(wr_id, device.sge(64, 16)), 0);
    }
    let mut sge = device.sge(0, 8);
    let mut wr = send_wr(IBV_WR_SEND_WITH_IMM, &mut sge);
    wr.imm_data_invalidated_rkey_union.imm_data = 0xfeed;
    assert_eq!(a.post(&mut wr), 0);
    let wcs = device.cq.completions(4);
    assert!(wcs.iter().all(|wc| wc.status == IBV_WC_SUCCESS));
    let received = wcs.iter().filter(|wc| wc.opcode == IBV_WC_RECV).map(|wc| {
        // SAFETY: integers either way; it is zero without immediate data.
        let imm = unsafe { wc.imm_data_invalidated_rkey_union.imm_data };
        (wc.wr_id, wc.byte_len, wc.qp_num, wc.wc_flags, imm)
    });
    let expected = [(10, 8, b.qp_num, 0, 0), (11, 8, b.qp_num, 2, 0xfeed)];
    assert_eq!(received.collect::<Vec<_>>(), expected);
    assert_eq!(device.buffer[64..80], [[7; 8], [0; 8]].concat());
}

#[test]
fn writes_and_reads_move_bytes_and_keep_to_the_region() {
    let mut device = Device::open(LOOPBACK);
    device.end.buffer[..4].copy_from_slice(&[1, 2, 3, 4]);
    let here = device.sge(0, 4);
    let region = device.region(64, 8, ALL_ACCESS);
    let start = region.addr as u64;
    let at = |remote_addr, rkey| rdma_t { remote_addr, rkey };
    let [a, b] = device.pair();
    assert_eq!(a.fetch((1, WRITE), here, at(start + 4, region.rkey)), 0);
    assert_eq!(device.statuses(1), [(1, IBV_WC_SUCCESS)]);
    assert_eq!(device.buffer[64..72], [0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(a.fetch((2, READ), here, at(start + 2, region.rkey)), 0);
    let read = device.completion();
    assert_eq!((read.opcode, read.byte_len), (IBV_WC_RDMA_READ, 4));
    assert_eq!(device.buffer[..4], [0, 0, 1, 2]);
    assert_eq!(b.receive(9, here), 0);
    let write = (3, IBV_WR_RDMA_WRITE_WITH_IMM);
    assert_eq!(a.fetch(write, here, at(start, region.rkey)), 0);
    let with_imm = device.cq.completions(2);
    let received = (IBV_WC_RECV_RDMA_WITH_IMM, 9);
    assert!(with_imm.iter().any(|wc| (wc.opcode, wc.wr_id) == received));

    // One byte too far, before the start, the local key, a read-only region: each with new QPs.
    let read_only = device.region(64, 8, 1);
    for remote in [
        at(start + 5, region.rkey),
        at(start - 1, region.rkey),
        at(start, region.lkey),
        at(start, read_only.rkey),
    ] {
        for opcode in [WRITE, READ] {
            let [requester, responder] = device.pair();
            assert_eq!(responder.receive(20, here), 0);
            assert_eq!(requester.fetch((4, opcode), here, remote), 0);
            assert_eq!(requester.send(5, 0, here), 0);
            let mut outcome = device.statuses(3);
            outcome.sort_unstable();
            let refused = (4, IBV_WC_REM_ACCESS_ERR);
            assert_eq!(outcome, [refused, (5, FLUSHED), (20, FLUSHED)]);
            assert_eq!(device.event_type(), Some(3), "IBV_EVENT_QP_ACCESS_ERR");
        }
    }
}

#[test]
fn the_qps_own_access_flags_count_too() {
    let device = Device::open(LOOPBACK);
    let [a, _b] = device.pair_with(|attr| attr.qp_access_flags = 1);
    assert_eq!(a.fetch((1, WRITE), device.sge(0, 8), device.remote(0)), 0);
    assert_eq!(device.statuses(1), [(1, IBV_WC_REM_ACCESS_ERR)]);
}

#[test]
fn local_keys_are_checked_but_not_for_inline_data() {
    let mut device = Device::open(LOOPBACK);
    let [a, b] = device.pair();
    let receive = device.sge(64, 8);
    let unknown = |length| rdma_sys::ibv_sge { lkey: 0, ..device.sge(0, length) };
    let (short, long) = (unknown(8), unknown(65));
    assert_eq!(b.receive(1, receive), 0);
    device.end.buffer[..8].fill(5);
    assert_eq!(a.send(2, SIGNALED | INLINE, short), 0);
    device.end.buffer[..8].fill(6);
    device.cq.completions(2);
    assert_eq!(device.buffer[64..72], [5; 8], "what it was when posted");
    assert_eq!(a.send(3, SIGNALED | INLINE, long), libc::EINVAL);
    assert_eq!(b.receive(4, receive), 0);
    assert_eq!(a.send(5, SIGNALED, short), 0);
    assert_eq!(device.statuses(1), [(5, IBV_WC_LOC_PROT_ERR)]);
}

#[test]
fn states_and_attributes_are_checked() {
    let device = Device::open(LOOPBACK);
    let [qp, peer] = [device.qp(RC), device.qp(RC)];
    let [init, rtr, rts] = masks(RC);
    type Change = fn(&mut rdma_sys::ibv_qp_attr);
    let modify = |state, mask, change: Change| {
        let mut attr = attributes(&device, device.gid(), peer.qp_num);
        attr.qp_state = state;
        change(&mut attr);
        qp.modify(&mut attr, mask)
    };
    let keep: Change = |_| {};
    let memory = device.sge(0, 8);
    assert_eq!(qp.receive(1, memory), libc::EINVAL);
    assert_eq!(modify(IBV_QPS_RTR, rtr, keep), libc::EINVAL);
    let other_port: Change = |attr| attr.port_num = 2;
    assert_eq!(modify(IBV_QPS_INIT, init, other_port), libc::EINVAL);
    assert_eq!(modify(IBV_QPS_INIT, init, keep), 0);
    assert_eq!(qp.receive(1, memory), 0);
    assert_eq!(qp.send(2, 0, memory), libc::EINVAL);
    let changes: [(Change, i32); 4] = [
        (|attr| attr.ah_attr.is_global = 0, libc::EINVAL),
        (|attr| attr.ah_attr.grh.sgid_index = 2, libc::EINVAL),
        (|attr| attr.ah_attr.grh.dgid.raw = [2; 16], libc::ETIMEDOUT),
        (keep, 0),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let outcome = modify(IBV_QPS_RTR, rtr, change);
        assert_eq!(outcome, expected, "change {number}");
    }
    assert_eq!(modify(IBV_QPS_RTS, rts, keep), 0);
    assert_eq!(qp.move_to(IBV_QPS_ERR), 0);
    assert_eq!(device.statuses(1), [(1, FLUSHED)]);
    assert_eq!([qp.send(3, 0, memory), qp.receive(4, memory)], [0; 2]);
    assert_eq!(device.statuses(2), [(3, FLUSHED), (4, FLUSHED)]);
    assert_eq!(qp.move_to(IBV_QPS_RESET), 0);
}

#[test]
fn a_queue_slot_is_free_when_its_completion_was_polled() {
    let device = Device::open(LOOPBACK);
    set_max_delay(Duration::ZERO);
    let [a, _b] = device.pair();
    let write = |(wr_id, flags)| {
        let mut sge = device.sge(0, 8);
        let mut wr = send_wr(WRITE, &mut sge);
        (wr.wr_id, wr.send_flags) = (wr_id, flags);
        wr.wr.rdma = device.remote(0);
        a.post(&mut wr)
    };
    // Depth 4: two unsignalled, one signalled, one unsignalled. Those are carried out, but not polled.
    let first = [(1, 0), (2, 0), (3, SIGNALED), (4, 0), (5, SIGNALED)];
    assert_eq!(first.map(write), [0, 0, 0, 0, libc::ENOMEM]);
    assert_eq!(device.statuses(1), [(3, IBV_WC_SUCCESS)]);
    // The fourth still waits for a later completion.
    let second = [(5, 0), (6, 0), (7, SIGNALED), (8, SIGNALED)];
    assert_eq!(second.map(write), [0, 0, 0, libc::ENOMEM]);
    assert_eq!(device.statuses(1), [(7, IBV_WC_SUCCESS)]);
    assert_eq!(write((8, SIGNALED)), 0);
}

#[test]
fn a_full_cq_loses_completions_and_says_so_once() {
    let device = Device::open(LOOPBACK);
    let cq = device.new_cq(2);
    let mut init = device.init_attr(RC);
    init.recv_cq = cq.raw;
    init.cap.max_recv_wr = 4;
    let qp = device.qp_with(&mut init);
    let mut attr = attributes(&device, device.gid(), 1);
    attr.qp_state = IBV_QPS_INIT;
    assert_eq!(qp.modify(&mut attr, masks(RC)[0]), 0);
    let codes = [0, 1, 2, 3, 4].map(|wr_id| qp.receive(wr_id, device.sge(0, 8)));
    assert_eq!(codes, [0, 0, 0, 0, libc::ENOMEM]);
    assert_eq!(device.event_type(), None);
    assert_eq!(qp.move_to(IBV_QPS_ERR), 0);
    assert_eq!(statuses(&cq.poll(16)), [(0, FLUSHED), (1, FLUSHED)]);
    assert_eq!(device.event_type(), Some(0), "IBV_EVENT_CQ_ERR");
    assert_eq!(device.event_type(), None);
}

#[test]
fn a_peer_that_is_gone_or_not_ready_ends_the_wait() {
    let device = Device::open(LOOPBACK);
    let memory = device.sge(0, 8);
    let [sender, not_ready] = device.pair_with(|attr| attr.rnr_retry = 2);
    assert_eq!(sender.send(1, 0, memory), 0);
    assert_eq!(device.statuses(1), [(1, IBV_WC_RNR_RETRY_EXC_ERR)]);
    // SAFETY: a live CQ.
    let busy = unsafe { null_verbs::destroy_cq(device.cq.raw) };
    assert_eq!(busy, libc::EBUSY);
    assert_eq!([sender.destroy(), not_ready.destroy()], [0; 2]);
    let [lonely, gone] = device.pair();
    drop(gone);
    assert_eq!(lonely.send(2, 0, memory), 0);
    assert_eq!(device.statuses(1), [(2, IBV_WC_RETRY_EXC_ERR)]);
    // A PSN that the peer does not expect gets no answer either.
    let [ahead, _behind] = device.pair_with(|attr| (attr.sq_psn, attr.rq_psn) = (1, 2));
    assert_eq!(ahead.send(3, 0, memory), 0);
    assert_eq!(device.statuses(1), [(3, IBV_WC_RETRY_EXC_ERR)]);
}

#[test]
fn hooks_corrupt_and_fail_exactly_one_message() {
    let mut device = Device::open(LOOPBACK);
    device.end.buffer[..8].fill(3);
    let [a, b] = device.pair();
    corrupt_next_message(Some(a.qp_num), 5);
    for expected in [!3_u8, 3] {
        assert_eq!(b.receive(1, device.sge(64, 8)), 0);
        assert_eq!(a.send(2, SIGNALED, device.sge(0, 8)), 0);
        device.cq.completions(2);
        assert_eq!(device.buffer[64..72], [3, 3, 3, 3, 3, expected, 3, 3]);
    }
    fail_next(IBV_WC_GENERAL_ERR);
    assert_eq!(a.send(3, 0, device.sge(0, 8)), 0);
    assert_eq!(device.statuses(1), [(3, IBV_WC_GENERAL_ERR)]);
}

#[test]
fn completions_pass_each_other_between_qps_never_within_one() {
    let device = Device::open(LOOPBACK);
    set_seed(1);
    set_max_delay(Duration::from_micros(200));
    let pairs: Vec<_> = (0..8).map(|_| device.pair()).collect();
    let mut overtaken = 0;
    for round in 0..50 {
        let mut posted = Vec::new();
        for wr_id in [2 * round, 2 * round + 1] {
            for [a, _] in &pairs {
                let write = (wr_id, WRITE);
                assert_eq!(a.fetch(write, device.sge(0, 8), device.remote(0)), 0);
                posted.push((a.qp_num, wr_id));
            }
        }
        let done: Vec<_> =
            device.cq.completions(16).iter().map(|wc| (wc.qp_num, wc.wr_id)).collect();
        overtaken += usize::from(done != posted);
        let mut last = HashMap::new();
        for (qpn, wr_id) in done {
            let earlier = last.insert(qpn, wr_id);
            assert!(earlier.is_none_or(|earlier| earlier < wr_id));
        }
    }
    assert!(overtaken > 25, "in {overtaken} of 50 rounds");
}
