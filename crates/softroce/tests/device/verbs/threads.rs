//! Calls on one QP from several threads at once.

use std::sync::{Arc, mpsc};
use std::thread;

use rdma_sys::*;

use crate::support::look::SOON;
use crate::support::raw::*;

const ROUNDS: usize = 5_000;
const OWN_QKEY: u32 = 1 << 31;

#[test]
fn a_datagram_with_the_own_queue_key_is_posted_while_the_qp_is_queried() {
    let end = one_end();
    let qp = end.qp(UD);
    qp.connect(attributes(&end, end.gid(), 0));
    let ah = end.ah(&mut attributes(&end, end.gid(), 0).ah_attr).unwrap();
    // Threads that wait for each other never end, and keep all.
    let shared = Arc::new((qp, ah, end));
    let (tell, told) = mpsc::channel();
    let in_thread = |count_wrong: fn(&Qp, &Owned<ibv_ah>, &End) -> usize| {
        let (shared, tell) = (Arc::clone(&shared), tell.clone());
        thread::spawn(move || {
            let wrong = count_wrong(&shared.0, &shared.1, &shared.2);
            drop(shared);
            tell.send(wrong).unwrap();
        });
    };
    in_thread(|qp, ah, end| {
        let mut sge = end.sge(0, 8);
        let mut wr = send_wr(SEND, &mut sge);
        wr.send_flags = 0;
        wr.wr.ud = ud_t {
            ah: ah.raw,
            // Nobody has this number.
            remote_qpn: 2,
            remote_qkey: OWN_QKEY,
        };
        (0..ROUNDS)
            .filter(|_| {
                // Requests may wait for a poll.
                assert!(end.cq.poll(1).is_empty());
                qp.post(&mut wr) != 0
            })
            .count()
    });
    in_thread(|qp, _, _| {
        (0..ROUNDS)
            .map(|_| qp.state_now())
            .filter(|state| *state != ibv_qp_state::IBV_QPS_RTS)
            .count()
    });
    for _ in 0..2 {
        let wrong = told.recv_timeout(10 * SOON);
        assert_eq!(wrong, Ok(0), "the threads wait for each other");
    }
}
