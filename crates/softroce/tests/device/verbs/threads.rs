//! Calls on one QP from several threads at once.

use std::sync::mpsc;
use std::thread;

use rdma_sys::*;
use softroce::verbs;

use super::testbed::*;
use crate::support::look::SOON;

const ROUNDS: usize = 5_000;
const OWN_QKEY: u32 = 1 << 31;

#[test]
fn a_datagram_with_the_own_queue_key_is_posted_while_the_qp_is_queried() {
    let end = End::new();
    let qp = end.qp(UD);
    connect(qp, UD, end.gid(), 0);
    let mut attr = attributes(end.gid(), 0);
    // SAFETY: a live domain.
    let ah = unsafe { verbs::create_ah(end.pd, &raw mut attr.ah_attr) };
    assert!(!ah.is_null());
    let (tell, told) = mpsc::channel();
    let (carried_qp, carried_ah, carried_cq) = (Carried(qp), Carried(ah), Carried(end.cq));
    let tell_posted = tell.clone();
    let sge = end.sge(0, 8);
    thread::spawn(move || {
        let mut sge = sge;
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags = 0;
        wr.wr.ud = ud_t {
            ah: carried_ah.get(),
            // Nobody has this number.
            remote_qpn: 2,
            remote_qkey: OWN_QKEY,
        };
        let refused = (0..ROUNDS).filter(|_| {
            let mut wc: ibv_wc = blank();
            // Requests may wait for a poll. SAFETY: a live CQ and room for one.
            assert_eq!(unsafe { ibv_poll_cq(carried_cq.get(), 1, &raw mut wc) }, 0);
            send(carried_qp.get(), &mut wr) != 0
        });
        tell_posted.send(refused.count()).unwrap();
    });
    thread::spawn(move || {
        let told = (0..ROUNDS).map(|_| query(carried_qp.get()).qp_state);
        let others = told.filter(|state| *state != ibv_qp_state::IBV_QPS_RTS);
        tell.send(others.count()).unwrap();
    });
    for _ in 0..2 {
        let wrong = told.recv_timeout(10 * SOON);
        assert_eq!(wrong, Ok(0), "the threads wait for each other");
    }
    // SAFETY: a live handle, not used again.
    assert_eq!(unsafe { verbs::destroy_ah(ah) }, 0);
    destroy(&[qp]);
}
