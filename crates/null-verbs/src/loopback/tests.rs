//! Tests the loopback device through the functions that a program calls.

mod ordering;

use std::time::Duration;

use rdma_sys::ibv_qp_state::{IBV_QPS_ERR, IBV_QPS_RESET};
use rdma_sys::ibv_wc_opcode::{IBV_WC_RDMA_READ, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM};
use rdma_sys::ibv_wc_status::*;
use rdma_sys::ibv_wr_opcode::*;

use super::*;
use crate::testbed::*;

const LOOPBACK: usize = 1;

fn keep(_: &mut rdma_sys::ibv_qp_attr) {}

#[test]
fn a_send_fills_the_peers_receives_in_order() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, b] = device.pair(cq, keep);
    let (mut from, mut to) = ([7_u8; 8], [0_u8; 16]);
    let from = device.mr(&mut from, 0);
    let to_sge = device.mr(&mut to, ALL_ACCESS);
    // The first send is due at once, finds no receive and waits.
    set_max_delay(Duration::ZERO);
    assert_eq!(post(a, 1, IBV_WR_SEND, SIGNALED, from), 0);
    assert!(poll(cq).is_empty());
    assert_eq!(post_receive(b, 10, to_sge), 0);
    assert_eq!(post_receive(b, 11, to_sge), 0);
    let mut sge = from;
    let mut wr = send_wr(2, IBV_WR_SEND_WITH_IMM, SIGNALED, &mut sge);
    wr.imm_data_invalidated_rkey_union.imm_data = 0xfeed;
    assert_eq!(post_wr(a, &mut wr), 0);
    let wcs = wait(cq, 4);
    assert!(wcs.iter().all(|wc| wc.status == IBV_WC_SUCCESS));
    let received: Vec<_> = wcs.iter().filter(|wc| wc.opcode == IBV_WC_RECV).collect();
    assert_eq!([received[0].wr_id, received[1].wr_id], [10, 11]);
    assert!(
        received
            .iter()
            .all(|wc| wc.byte_len == 8 && wc.qp_num == number(b))
    );
    assert_eq!(received[0].wc_flags, 0);
    assert_eq!(received[1].wc_flags, 2);
    // SAFETY: the flags say that it is immediate data.
    let imm = unsafe { received[1].imm_data_invalidated_rkey_union.imm_data };
    assert_eq!(imm, 0xfeed);
    assert_eq!(to, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn writes_and_reads_move_bytes_and_keep_to_the_region() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(64);
    let (mut local, mut remote) = ([1_u8, 2, 3, 4], [0_u8; 8]);
    let here = device.mr(&mut local, ALL_ACCESS);
    let mr = device.mr_pointer(&mut remote, ALL_ACCESS);
    // SAFETY: just registered.
    let (start, lkey, rkey) = unsafe { ((*mr).addr as u64, (*mr).lkey, (*mr).rkey) };

    let [a, b] = device.pair(cq, keep);
    assert_eq!(
        post_remote(a, (1, IBV_WR_RDMA_WRITE), here, (start + 4, rkey)),
        0
    );
    assert_eq!(statuses(&wait(cq, 1)), [(1, IBV_WC_SUCCESS)]);
    assert_eq!(remote, [0, 0, 0, 0, 1, 2, 3, 4]);
    assert_eq!(
        post_remote(a, (2, IBV_WR_RDMA_READ), here, (start + 2, rkey)),
        0
    );
    let read = wait(cq, 1);
    assert_eq!((read[0].opcode, read[0].byte_len), (IBV_WC_RDMA_READ, 4));
    assert_eq!(local, [0, 0, 1, 2]);
    let rest = device.mr(&mut local, 0);
    assert_eq!(post_receive(b, 9, rest), 0);
    assert_eq!(
        post_remote(a, (3, IBV_WR_RDMA_WRITE_WITH_IMM), here, (start, rkey)),
        0
    );
    let with_imm = wait(cq, 2);
    assert!(
        with_imm
            .iter()
            .any(|wc| wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM && wc.wr_id == 9)
    );

    // One byte too far, before the start, the local key, a read-only region: each with new QPs.
    let read_only = device.mr_pointer(&mut remote, 1);
    // SAFETY: just registered.
    let read_only = unsafe { (*read_only).rkey };
    for remote in [
        (start + 5, rkey),
        (start - 1, rkey),
        (start, lkey),
        (start, read_only),
    ] {
        for opcode in [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ] {
            let [a, b] = device.pair(cq, keep);
            assert_eq!(post_receive(b, 20, here), 0);
            assert_eq!(post_remote(a, (4, opcode), here, remote), 0);
            assert_eq!(post(a, 5, IBV_WR_SEND, 0, here), 0);
            let mut outcome = statuses(&wait(cq, 3));
            outcome.sort_unstable();
            let flushed = IBV_WC_WR_FLUSH_ERR;
            assert_eq!(
                outcome,
                [(4, IBV_WC_REM_ACCESS_ERR), (5, flushed), (20, flushed)]
            );
            assert_eq!(device.event(), Some(3), "IBV_EVENT_QP_ACCESS_ERR");
        }
    }
}

#[test]
fn the_qps_own_access_flags_count_too() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, _] = device.pair(cq, |attr| attr.qp_access_flags = 1);
    let mut memory = [0_u8; 8];
    let mr = device.mr_pointer(&mut memory, ALL_ACCESS);
    // SAFETY: just registered.
    let (start, lkey, rkey) = unsafe { ((*mr).addr as u64, (*mr).lkey, (*mr).rkey) };
    assert_eq!(
        post_remote(a, (1, IBV_WR_RDMA_WRITE), sge(&memory, lkey), (start, rkey)),
        0
    );
    assert_eq!(statuses(&wait(cq, 1)), [(1, IBV_WC_REM_ACCESS_ERR)]);
}

#[test]
fn a_receive_too_small_fails_both_ends() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, b] = device.pair(cq, keep);
    let (mut from, mut to) = ([0_u8; 8], [0_u8; 7]);
    let (from, to) = (device.mr(&mut from, 0), device.mr(&mut to, 1));
    assert_eq!(post_receive(b, 1, to), 0);
    assert_eq!(post(a, 2, IBV_WR_SEND, 0, from), 0);
    let mut outcome = statuses(&wait(cq, 2));
    outcome.sort_unstable();
    assert_eq!(
        outcome,
        [(1, IBV_WC_LOC_LEN_ERR), (2, IBV_WC_REM_INV_REQ_ERR)]
    );
    // In ERR, WRs are accepted and flushed.
    assert_eq!(post(a, 3, IBV_WR_SEND, 0, from), 0);
    assert_eq!(post_receive(b, 4, to), 0);
    let expected = [(3, IBV_WC_WR_FLUSH_ERR), (4, IBV_WC_WR_FLUSH_ERR)];
    assert_eq!(statuses(&wait(cq, 2)), expected);
}

#[test]
fn local_keys_are_checked_but_not_for_inline_data() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, b] = device.pair(cq, keep);
    let mut to = [0_u8; 8];
    let receive = device.mr(&mut to, 1);
    assert_eq!(post_receive(b, 1, receive), 0);
    let mut from = [5_u8; 8];
    assert_eq!(post(a, 2, IBV_WR_SEND, SIGNALED | INLINE, sge(&from, 0)), 0);
    from.fill(6);
    assert_eq!(wait(cq, 2).len(), 2);
    assert_eq!(to, [5; 8], "inline data is what it was when posted");
    assert_eq!(
        post(a, 3, IBV_WR_SEND, SIGNALED | INLINE, sge(&[0; 65], 0)),
        libc::EINVAL
    );
    assert_eq!(post_receive(b, 4, receive), 0);
    assert_eq!(post(a, 5, IBV_WR_SEND, SIGNALED, sge(&from, 0)), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(5, IBV_WC_LOC_PROT_ERR)]);
}

#[test]
fn states_and_attributes_are_checked() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [qp, peer] = [device.qp(cq), device.qp(cq)];
    let [init, rtr, rts] = transitions();
    let attr = || attributes(number(peer));
    let mut memory = [0_u8; 8];
    let memory = device.mr(&mut memory, 1);
    assert_eq!(post_receive(qp, 1, memory), libc::EINVAL);
    assert_eq!(modify(qp, attr(), rtr), libc::EINVAL);
    let mut other_port = attr();
    other_port.port_num = 2;
    assert_eq!(modify(qp, other_port, init), libc::EINVAL);
    assert_eq!(modify(qp, attr(), init), 0);
    assert_eq!(post_receive(qp, 1, memory), 0);
    assert_eq!(post(qp, 2, IBV_WR_SEND, 0, memory), libc::EINVAL);
    let (mut no_grh, mut wrong_gid, mut elsewhere) = (attr(), attr(), attr());
    no_grh.ah_attr.is_global = 0;
    wrong_gid.ah_attr.grh.sgid_index = 2;
    elsewhere.ah_attr.grh.dgid.raw = [2; 16];
    assert_eq!(modify(qp, no_grh, rtr), libc::EINVAL);
    assert_eq!(modify(qp, wrong_gid, rtr), libc::EINVAL);
    assert_eq!(modify(qp, elsewhere, rtr), libc::ETIMEDOUT);
    assert_eq!(modify(qp, attr(), rtr), 0);
    assert_eq!(modify(qp, attr(), rts), 0);
    assert_eq!(modify(qp, attr(), (IBV_QPS_ERR, 0)), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(1, IBV_WC_WR_FLUSH_ERR)]);
    assert_eq!(modify(qp, attr(), (IBV_QPS_RESET, 0)), 0);
}

#[test]
fn a_queue_slot_is_free_when_its_completion_was_polled() {
    let device = OpenDevice::open(LOOPBACK);
    set_max_delay(Duration::ZERO);
    let cq = device.cq(16);
    let [a, _] = device.pair(cq, keep);
    let mut memory = [0_u8; 8];
    let mr = device.mr_pointer(&mut memory, ALL_ACCESS);
    // SAFETY: just registered.
    let (start, lkey, rkey) = unsafe { ((*mr).addr as u64, (*mr).lkey, (*mr).rkey) };
    let mut here = sge(&memory, lkey);
    let mut write = |wr_id, flags| {
        let mut wr = send_wr(wr_id, IBV_WR_RDMA_WRITE, flags, &mut here);
        wr.wr.rdma.remote_addr = start;
        wr.wr.rdma.rkey = rkey;
        post_wr(a, &mut wr)
    };
    // Depth 4: two unsignalled, one signalled, one unsignalled.
    assert_eq!(
        [write(1, 0), write(2, 0), write(3, SIGNALED), write(4, 0)],
        [0; 4]
    );
    assert_eq!(
        write(5, SIGNALED),
        libc::ENOMEM,
        "carried out, but not polled"
    );
    assert_eq!(statuses(&wait(cq, 1)), [(3, IBV_WC_SUCCESS)]);
    assert_eq!([write(5, 0), write(6, 0), write(7, SIGNALED)], [0; 3]);
    assert_eq!(
        write(8, SIGNALED),
        libc::ENOMEM,
        "the fourth still waits for a later completion"
    );
    assert_eq!(statuses(&wait(cq, 1)), [(7, IBV_WC_SUCCESS)]);
    assert_eq!(write(8, SIGNALED), 0);
}

#[test]
fn a_full_cq_loses_completions_and_says_so_once() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(2);
    let qp = device.qp(cq);
    assert_eq!(modify(qp, attributes(1), transitions()[0]), 0);
    let mut memory = [0_u8; 8];
    let memory = device.mr(&mut memory, 1);
    for wr_id in 0..4 {
        assert_eq!(post_receive(qp, wr_id, memory), 0);
    }
    assert_eq!(post_receive(qp, 4, memory), libc::ENOMEM);
    assert_eq!(device.event(), None);
    assert_eq!(modify(qp, attributes(1), (IBV_QPS_ERR, 0)), 0);
    let flushed = [(0, IBV_WC_WR_FLUSH_ERR), (1, IBV_WC_WR_FLUSH_ERR)];
    assert_eq!(statuses(&poll(cq)), flushed);
    assert_eq!(device.event(), Some(0), "IBV_EVENT_CQ_ERR");
    assert_eq!(device.event(), None);
}

#[test]
fn a_peer_that_is_gone_or_not_ready_ends_the_wait() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, b] = device.pair(cq, |attr| attr.rnr_retry = 2);
    let mut memory = [0_u8; 8];
    let memory = device.mr(&mut memory, 1);
    assert_eq!(post(a, 1, IBV_WR_SEND, 0, memory), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(1, IBV_WC_RNR_RETRY_EXC_ERR)]);
    // SAFETY: both are live, and not used again.
    unsafe {
        assert_eq!(crate::destroy_cq(cq), libc::EBUSY);
        assert_eq!(crate::destroy_qp(b), 0);
    }
    let [a, b] = device.pair(cq, keep);
    // SAFETY: as above.
    assert_eq!(unsafe { crate::destroy_qp(b) }, 0);
    assert_eq!(post(a, 2, IBV_WR_SEND, 0, memory), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(2, IBV_WC_RETRY_EXC_ERR)]);
    // A PSN that the peer does not expect gets no answer either.
    let pair = [device.qp(cq), device.qp(cq)];
    connect(pair[0], number(pair[1]), |attr| attr.sq_psn = 1);
    connect(pair[1], number(pair[0]), |attr| attr.rq_psn = 2);
    assert_eq!(post(pair[0], 3, IBV_WR_SEND, 0, memory), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(3, IBV_WC_RETRY_EXC_ERR)]);
}

#[test]
fn hooks_corrupt_and_fail_exactly_one_message() {
    let device = OpenDevice::open(LOOPBACK);
    let cq = device.cq(16);
    let [a, b] = device.pair(cq, keep);
    let (mut from, mut to) = ([3_u8; 8], [0_u8; 8]);
    let (from, receive) = (device.mr(&mut from, 0), device.mr(&mut to, 1));
    corrupt_next_message(Some(number(a)), 5);
    for expected in [!3_u8, 3] {
        assert_eq!(post_receive(b, 1, receive), 0);
        assert_eq!(post(a, 2, IBV_WR_SEND, SIGNALED, from), 0);
        assert_eq!(wait(cq, 2).len(), 2);
        assert_eq!(to, [3, 3, 3, 3, 3, expected, 3, 3]);
    }
    fail_next(IBV_WC_GENERAL_ERR);
    assert_eq!(post(a, 3, IBV_WR_SEND, 0, from), 0);
    assert_eq!(statuses(&wait(cq, 1)), [(3, IBV_WC_GENERAL_ERR)]);
}
