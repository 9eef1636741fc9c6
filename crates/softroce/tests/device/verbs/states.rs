//! The states of QPs: refused transitions, and the results of `query_qp`.

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;

// What each transition needs and refuses is tested where it stands: `verbs::transitions` and `verbs::qp_modify`.

#[test]
fn each_service_goes_to_rts_and_nothing_else_is_changed() {
    let (end, peer) = (End::new(), End::new());
    for qp_type in [RC, UC, UD] {
        let qp = end.qp(qp_type);
        let mut attr = attributes(peer.gid(), 0x99);
        for (state, mask) in (1..).zip(masks(qp_type)) {
            attr.qp_state = state;
            // The capacities never change.
            assert_eq!(modify(qp, &mut attr, mask | 0x8_0000), libc::EINVAL);
            assert_eq!(query(qp).qp_state, state - 1);
            assert_eq!(modify(qp, &mut attr, mask), 0);
            assert_eq!(query(qp).qp_state, state);
            // SAFETY: a live QP.
            assert_eq!(unsafe { (*qp).state }, state);
        }
        destroy(&[qp]);
    }
}

#[test]
fn what_was_set_is_what_is_told() {
    let (end, peer) = (End::new(), End::new());
    let qp = end.qp(RC);
    connect(qp, RC, peer.gid(), 0x99);
    let told = query(qp);
    assert_eq!(told.qp_state, ibv_qp_state::IBV_QPS_RTS);
    assert_eq!(told.cur_qp_state, ibv_qp_state::IBV_QPS_RTS);
    assert_eq!((told.rq_psn, told.sq_psn), (PSN, PSN));
    assert_eq!(told.dest_qp_num, 0x99);
    assert_eq!(told.path_mtu, ibv_mtu::IBV_MTU_1024);
    assert_eq!((told.timeout, told.retry_cnt, told.rnr_retry), (17, 7, 7));
    assert_eq!((told.max_rd_atomic, told.max_dest_rd_atomic), (4, 4));
    assert_eq!((told.min_rnr_timer, told.port_num), (1, 1));
    assert_eq!(told.qp_access_flags, ALL_ACCESS.cast_unsigned());
    // SAFETY: both members of the union are the same bytes.
    unsafe { assert_eq!(told.ah_attr.grh.dgid.raw, peer.gid().raw) };
    assert_eq!(told.cap.max_send_wr, 16);
    assert_eq!(told.cap.max_inline_data, 64);
    let mut attr = blank();
    let mut init: ibv_qp_init_attr = blank();
    // SAFETY: a live QP.
    unsafe { verbs::query_qp(qp, &raw mut attr, 0, &raw mut init) };
    assert_eq!((init.send_cq, init.recv_cq), (end.cq, end.cq));
    assert_eq!(init.qp_type, RC);
    destroy(&[qp]);
}

#[test]
fn values_out_of_range_are_refused() {
    let (end, peer) = (End::new(), End::new());
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
    let mut attr = attributes(peer.gid(), 1);
    attr.qp_state = ibv_qp_state::IBV_QPS_INIT;
    assert_eq!(modify(qp, &mut attr, init), 0);
    for (number, (change, expected)) in to_rtr.into_iter().enumerate() {
        let mut attr = attributes(peer.gid(), 1);
        attr.qp_state = ibv_qp_state::IBV_QPS_RTR;
        change(&mut attr);
        assert_eq!(modify(qp, &mut attr, rtr), expected, "case {number}");
        assert_eq!(query(qp).qp_state, ibv_qp_state::IBV_QPS_INIT);
    }
    destroy(&[qp]);
}

#[test]
fn transitions_that_there_are_not() {
    let (end, peer) = (End::new(), End::new());
    let qp = end.qp(RC);
    let mut attr = attributes(peer.gid(), 1);
    let [init, _, rts] = masks(RC);
    attr.qp_state = 7;
    assert_eq!(modify(qp, &mut attr, STATE), libc::EINVAL);
    attr.qp_state = 1;
    assert_eq!(modify(qp, &mut attr, init), 0);
    attr.qp_state = 6;
    assert_eq!(modify(qp, &mut attr, STATE), 0);
    attr.qp_state = 3;
    assert_eq!(modify(qp, &mut attr, rts), libc::EINVAL);
    attr.qp_state = 0;
    assert_eq!(modify(qp, &mut attr, STATE), 0);
    let told = query(qp);
    assert_eq!((told.qp_state, told.port_num, told.timeout), (0, 0, 0));
    destroy(&[qp]);
}

#[test]
fn the_send_queue_drains_and_goes_on() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    let mut attr = drain(qp);
    let mut event = next_event(one.context);
    assert!(event.event_type == ibv_event_type::IBV_EVENT_SQ_DRAINED);
    // SAFETY: an event of a QP, which was just got.
    unsafe {
        assert_eq!(event.element.qp, qp);
        verbs::ack_async_event(&raw mut event);
    }
    let told = query(qp);
    assert_eq!((told.qp_state, told.sq_draining), (4, 0));
    attr.cur_qp_state = ibv_qp_state::IBV_QPS_RTS;
    attr.qp_state = ibv_qp_state::IBV_QPS_RTS;
    assert_eq!(
        modify(qp, &mut attr, STATE | 2),
        libc::EINVAL,
        "it is in SQD"
    );
    attr.cur_qp_state = ibv_qp_state::IBV_QPS_SQD;
    assert_eq!(modify(qp, &mut attr, STATE | 2), 0);
    assert_eq!(query(qp).qp_state, ibv_qp_state::IBV_QPS_RTS);
    destroy(&[qp, peer]);
}

#[test]
fn an_error_flushes_what_was_posted() {
    let (one, other) = (End::new(), End::new());
    let (qp, peer) = pair(&one, &other, RC);
    for wr_id in 0..3 {
        assert_eq!(receive(qp, wr_id, one.sge(0, 8)), 0);
    }
    let mut attr: ibv_qp_attr = blank();
    attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
    assert_eq!(modify(qp, &mut attr, STATE), 0);
    for wr_id in 0..3 {
        let wc = one.completion();
        assert_eq!(
            (wc.wr_id, wc.status),
            (wr_id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR)
        );
        // SAFETY: a live QP.
        assert_eq!(wc.qp_num, unsafe { (*qp).qp_num });
    }
    destroy(&[qp, peer]);
}

#[test]
fn receives_are_refused_in_reset() {
    let end = End::new();
    let qp = end.qp(RC);
    assert_eq!(receive(qp, 1, end.sge(0, 8)), libc::EINVAL);
    destroy(&[qp]);
}
