//! A thousand QPs on a machine whose cores are taken: whoever waits for a core answers late, but nothing fails.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use softroce::transport::{CompletionKind, Operation, Status};

use crate::end::{self, End, Plan, request};

const QPS: usize = 1024;
const LIST: usize = 32;
const BYTES: usize = 64;
/// Threads that want a core.
const SPINNERS: usize = 8;
const TIME: Duration = Duration::from_secs(2);

fn receive(end: &End, qp: usize) {
    end.qps[qp]
        .post_recv(qp as u64, &[end.sge(qp * BYTES, BYTES)])
        .unwrap();
}

/// Keeps a list of SENDs of each QP on its way for this long; returns the errors.
fn drive(client: &End, time: Duration) -> BTreeMap<u32, usize> {
    let post = |qp: usize| {
        let sge = [client.sge(qp * BYTES, BYTES)];
        let mut left = LIST;
        let next = || {
            left = left.checked_sub(1)?;
            let mut request = request(qp as u64, Operation::Send, &sge);
            request.signaled = left == 0;
            Some(request)
        };
        // SAFETY: nothing is inline.
        unsafe { client.qps[qp].post_send(next) }.unwrap();
    };
    (0..QPS).for_each(post);
    let began = Instant::now();
    let mut errors = BTreeMap::new();
    let mut done = Vec::with_capacity(16);
    while began.elapsed() < time {
        client
            .cq
            .poll(16, |completion| match completion.status {
                Status::Success => done.push(completion.wr_id as usize),
                other => *errors.entry(other as u32).or_default() += 1,
            })
            .unwrap();
        done.drain(..).for_each(post);
    }
    errors
}

#[test]
fn a_thousand_qps_survive_busy_cores() {
    let (client, server) = end::pair(&Plan {
        qps: QPS,
        memory_bytes: QPS * BYTES,
        send_wrs: LIST as u32,
        recv_wrs: 2 * LIST as u32,
        ..Plan::default()
    });
    for qp in 0..QPS {
        (0..2 * LIST).for_each(|_| receive(&server, qp));
    }
    let stop = AtomicBool::new(false);
    let errors = std::thread::scope(|scope| {
        for _ in 0..SPINNERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        scope.spawn(|| {
            let mut used = Vec::with_capacity(64);
            while !stop.load(Ordering::Relaxed) {
                server
                    .cq
                    .poll(64, |completion| {
                        assert_eq!(completion.kind, CompletionKind::Receive);
                        used.push(completion.wr_id as usize);
                    })
                    .unwrap();
                used.drain(..).for_each(|qp| receive(&server, qp));
            }
        });
        let errors = drive(&client, TIME);
        stop.store(true, Ordering::Relaxed);
        errors
    });
    let counters = [&client, &server].map(|end| {
        let all = end.nic.counters().into_iter();
        all.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    });
    assert_eq!(errors, BTreeMap::new(), "{counters:?}");
}
