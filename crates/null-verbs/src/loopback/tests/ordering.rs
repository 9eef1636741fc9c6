//! The order of completions, and several threads on one CQ.

use std::collections::HashMap;
use std::time::Duration;

use rdma_sys::ibv_wc_status::IBV_WC_SUCCESS;
use rdma_sys::ibv_wr_opcode::IBV_WR_RDMA_WRITE;

use super::{LOOPBACK, keep};
use crate::loopback::{set_max_delay, set_seed};
use crate::testbed::*;

#[test]
fn completions_pass_each_other_between_qps_never_within_one() {
    let device = OpenDevice::open(LOOPBACK);
    set_seed(1);
    set_max_delay(Duration::from_micros(200));
    let cq = device.cq(256);
    let pairs: Vec<_> = (0..8).map(|_| device.pair(cq, keep)).collect();
    let mut memory = [0_u8; 8];
    let mr = device.mr_pointer(&mut memory, ALL_ACCESS);
    // SAFETY: just registered.
    let (start, lkey, rkey) = unsafe { ((*mr).addr as u64, (*mr).lkey, (*mr).rkey) };
    let mut overtaken = 0;
    for round in 0..50 {
        let mut posted = Vec::new();
        for wr_id in [2 * round, 2 * round + 1] {
            for [a, _] in &pairs {
                let write = (wr_id, IBV_WR_RDMA_WRITE);
                assert_eq!(post_remote(*a, write, sge(&memory, lkey), (start, rkey)), 0);
                posted.push((number(*a), wr_id));
            }
        }
        let done: Vec<_> = wait(cq, 16)
            .iter()
            .map(|wc| (wc.qp_num, wc.wr_id))
            .collect();
        overtaken += usize::from(done != posted);
        let mut last = HashMap::new();
        for (qpn, wr_id) in done {
            let earlier = last.insert(qpn, wr_id);
            assert!(earlier.is_none_or(|earlier| earlier < wr_id));
        }
    }
    assert!(
        overtaken > 25,
        "the order changed in {overtaken} of 50 rounds"
    );
}

#[test]
fn several_threads_lose_and_double_nothing() {
    const MESSAGES: u64 = 2000;
    let device = OpenDevice::open(LOOPBACK);
    set_max_delay(Duration::from_micros(1));
    let shared = device.cq(64);
    let pairs: Vec<_> = (0..4).map(|_| device.pair(shared, keep)).collect();
    let mut memory = [0_u8; 8];
    let mr = device.mr_pointer(&mut memory, ALL_ACCESS);
    // SAFETY: just registered.
    let (start, lkey, rkey) = unsafe { ((*mr).addr as u64, (*mr).lkey, (*mr).rkey) };
    let by_qpn: HashMap<u32, usize> = pairs
        .iter()
        .map(|[a, _]| (number(*a), *a as usize))
        .collect();
    let seen = std::sync::atomic::AtomicU64::new(0);
    let next = std::sync::atomic::AtomicU64::new(16);
    let write = |qp: usize, wr_id| {
        let local = rdma_sys::ibv_sge {
            addr: start,
            length: 8,
            lkey,
        };
        post_remote(
            qp as *mut _,
            (wr_id, IBV_WR_RDMA_WRITE),
            local,
            (start, rkey),
        )
    };
    for (index, qp) in by_qpn.values().cycle().take(16).enumerate() {
        assert_eq!(write(*qp, index as u64), 0);
    }
    let cq = shared as usize;
    let relaxed = std::sync::atomic::Ordering::Relaxed;
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let worker = || {
            let mut mine = Vec::new();
            while seen.load(relaxed) < MESSAGES {
                for wc in poll(cq as *mut _) {
                    assert_eq!(wc.status, IBV_WC_SUCCESS);
                    mine.push(wc.wr_id);
                    seen.fetch_add(1, relaxed);
                    let wr_id = next.fetch_add(1, relaxed);
                    if wr_id < MESSAGES {
                        assert_eq!(write(by_qpn[&wc.qp_num], wr_id), 0);
                    }
                }
            }
            mine
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(worker)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    assert_eq!(all, (0..MESSAGES).collect::<Vec<_>>());
}
