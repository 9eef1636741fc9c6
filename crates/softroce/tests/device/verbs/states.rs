//! The states of QPs: refused transitions, and the results of `query_qp`. What each transition needs and refuses is tested
//! where it stands: `verbs::transitions` and `verbs::qp_modify`.

use libc::{EINVAL, ETIMEDOUT};
use rdma_sys::ibv_qp_state::*;
use rdma_sys::*;

use super::drain;
use crate::support::raw::*;

#[test]
fn what_was_set_is_what_is_told() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    qp.connect(attributes(&end, peer.gid(), 0x99));
    let (told, init) = qp.query();
    assert_eq!([told.qp_state, told.cur_qp_state], [IBV_QPS_RTS; 2]);
    let numbers = [told.rq_psn, told.sq_psn, told.dest_qp_num, told.path_mtu];
    assert_eq!(numbers, [PSN, PSN, 0x99, ibv_mtu::IBV_MTU_1024]);
    assert_eq!((told.timeout, told.retry_cnt, told.rnr_retry), (17, 7, 7));
    assert_eq!((told.max_rd_atomic, told.max_dest_rd_atomic), (4, 4));
    assert_eq!((told.min_rnr_timer, told.port_num), (1, 1));
    assert_eq!(told.qp_access_flags, ALL_ACCESS.cast_unsigned());
    // SAFETY: both members of the union are the same bytes.
    unsafe { assert_eq!(told.ah_attr.grh.dgid.raw, peer.gid().raw) };
    assert_eq!((told.cap.max_send_wr, told.cap.max_inline_data), (16, 64));
    assert_eq!((init.send_cq, init.recv_cq), (end.cq.raw, end.cq.raw));
    assert_eq!(init.qp_type, RC);
}

#[test]
fn what_is_refused_leaves_the_state() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    assert_eq!(qp.receive(1, end.sge(0, 8)), EINVAL, "in RESET");
    let [init, rtr, rts] = masks(RC);
    const CAP: u32 = ibv_qp_attr_mask::IBV_QP_CAP.0;
    let (there, nowhere) = (peer.gid(), ibv_gid { raw: [0xfd; 16] });
    for (state, mask, mtu, gid, expected, then) in [
        (7, STATE, 3, there, EINVAL, IBV_QPS_RESET),
        // The capacities never change.
        (IBV_QPS_INIT, init | CAP, 3, there, EINVAL, IBV_QPS_RESET),
        (IBV_QPS_INIT, init, 3, there, 0, IBV_QPS_INIT),
        (IBV_QPS_RTR, rtr, 6, there, EINVAL, IBV_QPS_INIT),
        (IBV_QPS_RTR, rtr, 3, nowhere, ETIMEDOUT, IBV_QPS_INIT),
        (IBV_QPS_ERR, STATE, 3, there, 0, IBV_QPS_ERR),
        (IBV_QPS_RTS, rts, 3, there, EINVAL, IBV_QPS_ERR),
        (IBV_QPS_RESET, STATE, 3, there, 0, IBV_QPS_RESET),
    ] {
        let mut attr = attributes(&end, gid, 1);
        (attr.qp_state, attr.path_mtu) = (state, mtu);
        let outcome = (qp.modify(&mut attr, mask), qp.state_now(), qp.state);
        assert_eq!(outcome, (expected, then, then), "to {state}, MTU {mtu}");
    }
    let told = qp.query().0;
    assert_eq!((told.port_num, told.timeout), (0, 0));
}

#[test]
fn the_send_queue_drains_and_goes_on() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    drain(&qp);
    let event = one.next_event();
    assert!(event.event_type == ibv_event_type::IBV_EVENT_SQ_DRAINED);
    // SAFETY: an event of a QP.
    assert_eq!(unsafe { event.element.qp }, qp.raw);
    one.acknowledge(event);
    let mut told = qp.query().0;
    assert_eq!((told.qp_state, told.sq_draining), (IBV_QPS_SQD, 0));
    told.qp_state = IBV_QPS_RTS;
    // That it is in RTS, which is wrong, and in SQD.
    for (now, expected) in [(IBV_QPS_RTS, EINVAL), (IBV_QPS_SQD, 0)] {
        told.cur_qp_state = now;
        assert_eq!(qp.modify(&mut told, STATE | 2), expected);
    }
    assert_eq!(qp.state_now(), IBV_QPS_RTS);
}

#[test]
fn an_error_flushes_what_was_posted() {
    let (one, other) = two_ends();
    let (qp, _peer) = pair(&one, &other, RC);
    for wr_id in 0..3 {
        assert_eq!(qp.receive(wr_id, one.sge(0, 8)), 0);
    }
    assert_eq!(qp.move_to(IBV_QPS_ERR), 0);
    let ended = one.cq.completions(3);
    assert_eq!(statuses(&ended), [0, 1, 2].map(|wr_id| (wr_id, FLUSHED)));
    assert!(ended.iter().all(|wc| wc.qp_num == qp.qp_num));
}
