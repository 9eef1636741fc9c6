//! The order of completions, and several threads on one CQ.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use null_verbs::loopback::{set_max_delay, set_seed};
use testing::verbs_user::*;

use super::Device;
use super::loopback::LOOPBACK;

fn write(device: &Device, qp: &Qp, wr_id: u64) {
    assert_eq!(
        qp.fetch((wr_id, WRITE), device.sge(0, 8), device.remote(0)),
        0
    );
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
                write(&device, a, wr_id);
                posted.push((a.qp_num, wr_id));
            }
        }
        let done = device.cq.completions(16);
        let done: Vec<_> = done.iter().map(|wc| (wc.qp_num, wc.wr_id)).collect();
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
    let device = Device::open(LOOPBACK);
    set_max_delay(Duration::from_micros(1));
    let pairs: Vec<_> = (0..4).map(|_| device.pair()).collect();
    let by_qpn: HashMap<u32, &Qp> = pairs.iter().map(|[a, _]| (a.qp_num, a)).collect();
    let (seen, next) = (AtomicU64::new(0), AtomicU64::new(16));
    for (wr_id, qp) in (0..16).zip(by_qpn.values().cycle()) {
        write(&device, qp, wr_id);
    }
    let worker = || {
        let mut mine = Vec::new();
        while seen.load(Relaxed) < MESSAGES {
            for wc in device.cq.poll(16) {
                assert_eq!(wc.status, SUCCESS);
                mine.push(wc.wr_id);
                seen.fetch_add(1, Relaxed);
                let wr_id = next.fetch_add(1, Relaxed);
                if wr_id < MESSAGES {
                    write(&device, by_qpn[&wc.qp_num], wr_id);
                }
            }
        }
        mine
    };
    let mut all: Vec<u64> = std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(worker));
        let taken = threads.into_iter().map(|thread| thread.join().unwrap());
        taken.flatten().collect()
    });
    all.sort_unstable();
    assert_eq!(all, (0..MESSAGES).collect::<Vec<_>>());
}
