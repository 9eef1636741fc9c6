//! The states of QPs: refused transitions, and the results of `query_qp`. What each transition needs and refuses is tested
//! where it stands: `verbs::transitions` and `verbs::qp_modify`.

use rdma_sys::ibv_qp_state::*;
use rdma_sys::*;

use super::drain;
use crate::support::raw::*;

#[test]
fn each_service_goes_to_rts_and_nothing_else_is_changed() {
    let (end, peer) = two_ends();
    for qp_type in [RC, UC, UD] {
        let qp = end.qp(qp_type);
        let mut attr = attributes(&end, peer.gid(), 0x99);
        for (state, mask) in (1..).zip(masks(qp_type)) {
            attr.qp_state = state;
            // The capacities never change.
            assert_eq!(qp.modify(&mut attr, mask | 0x8_0000), libc::EINVAL);
            assert_eq!(qp.state_now(), state - 1);
            assert_eq!(qp.modify(&mut attr, mask), 0);
            assert_eq!((qp.state_now(), qp.state), (state, state));
        }
    }
}

#[test]
fn what_was_set_is_what_is_told() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    qp.connect(attributes(&end, peer.gid(), 0x99));
    let (told, init) = qp.query();
    assert_eq!(
        (told.qp_state, told.cur_qp_state),
        (IBV_QPS_RTS, IBV_QPS_RTS)
    );
    assert_eq!((told.rq_psn, told.sq_psn), (PSN, PSN));
    assert_eq!(told.dest_qp_num, 0x99);
    assert_eq!(told.path_mtu, ibv_mtu::IBV_MTU_1024);
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
fn values_out_of_range_are_refused() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    type Change = fn(&mut ibv_qp_attr);
    let to_rtr: [(Change, i32); 3] = [
        (|attr| attr.path_mtu = 6, libc::EINVAL),
        (|attr| attr.ah_attr.grh.sgid_index = 1, libc::EINVAL),
        (
            |attr| attr.ah_attr.grh.dgid.raw = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            libc::ETIMEDOUT,
        ),
    ];
    let [init, rtr, _] = masks(RC);
    let mut attr = attributes(&end, peer.gid(), 1);
    attr.qp_state = IBV_QPS_INIT;
    assert_eq!(qp.modify(&mut attr, init), 0);
    for (number, (change, expected)) in to_rtr.into_iter().enumerate() {
        let mut attr = attributes(&end, peer.gid(), 1);
        attr.qp_state = IBV_QPS_RTR;
        change(&mut attr);
        assert_eq!(qp.modify(&mut attr, rtr), expected, "case {number}");
        assert_eq!(qp.state_now(), IBV_QPS_INIT);
    }
}

#[test]
fn transitions_that_there_are_not() {
    let (end, peer) = two_ends();
    let qp = end.qp(RC);
    let mut attr = attributes(&end, peer.gid(), 1);
    let [init, _, rts] = masks(RC);
    for (state, mask, expected) in [
        (7, STATE, libc::EINVAL),
        (IBV_QPS_INIT, init, 0),
        (IBV_QPS_ERR, STATE, 0),
        (IBV_QPS_RTS, rts, libc::EINVAL),
        (IBV_QPS_RESET, STATE, 0),
    ] {
        attr.qp_state = state;
        assert_eq!(qp.modify(&mut attr, mask), expected, "to {state}");
    }
    let told = qp.query().0;
    assert_eq!((told.qp_state, told.port_num, told.timeout), (0, 0, 0));
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
    for (now, expected) in [(IBV_QPS_RTS, libc::EINVAL), (IBV_QPS_SQD, 0)] {
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

#[test]
fn receives_are_refused_in_reset() {
    let end = one_end();
    assert_eq!(end.qp(RC).receive(1, end.sge(0, 8)), libc::EINVAL);
}
