//! Datagrams (UD) from one device of this process to another, with a thread for each end.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use softroce::transport::{CompletionKind, Datagram, Kind, Operation, Status};

use crate::connected::plan;
use crate::connected::{named, print_counters, receive};
use crate::end::{Plan, QKEY, pair, request};
use crate::plain_udp;

const MESSAGE_BYTES: usize = 64;
/// Bytes of a receive: the global header precedes the datagram.
const RECEIVE_BYTES: usize = 40 + MESSAGE_BYTES;
/// Requests a call, all to one address; the last is signalled.
const POST_LIST: usize = 32;
/// Calls on their way.
const LISTS: usize = 4;
const RECEIVES: usize = 2048;

/// Datagrams that arrive in a second. The sender does not wait for the receiver, so others may be lost.
pub fn received_per_s(time: Duration) -> f64 {
    let plan = Plan {
        kind: Kind::Ud,
        memory_bytes: RECEIVE_BYTES,
        send_wrs: (POST_LIST * LISTS) as u32,
        recv_wrs: RECEIVES as u32,
        ..plan()
    };
    let (client, server) = pair(&plan);
    let to = Datagram {
        address: server.nic.address(),
        qpn: server.qps[0].number(),
        qkey: QKEY,
        flow_label: 0,
        traffic_class: 0,
        hop_limit: 0,
    };
    let stop = AtomicBool::new(false);
    let received = AtomicU64::new(0);
    (0..RECEIVES).for_each(|_| receive(&server, 0, 0, RECEIVE_BYTES));
    std::thread::scope(|scope| {
        named("server")
            .spawn_scoped(scope, || {
                plain_udp::pin(1);
                while !stop.load(Ordering::Relaxed) {
                    let polled = server
                        .cq
                        .poll(64, |completion| {
                            assert_eq!(completion.status, Status::Success);
                        })
                        .expect("the CQ has room");
                    (0..polled).for_each(|_| receive(&server, 0, 0, RECEIVE_BYTES));
                    received.fetch_add(polled as u64, Ordering::Relaxed);
                }
            })
            .expect("a thread");
        named("client")
            .spawn_scoped(scope, || {
                plain_udp::pin(0);
                let sge = [client.sge(0, MESSAGE_BYTES)];
                let post = || {
                    let mut left = POST_LIST;
                    // SAFETY: nothing is inline.
                    unsafe {
                        client.qps[0].post_send(|| {
                            left = left.checked_sub(1)?;
                            let mut request = request(0, Operation::Send, &sge);
                            request.datagram = Some(to);
                            request.signaled = left == 0;
                            Some(request)
                        })
                    }
                    .expect("the queue has room");
                };
                (0..LISTS).for_each(|_| post());
                while !stop.load(Ordering::Relaxed) {
                    let done = client.cq.poll(16, |completion| {
                        assert_eq!(completion.status, Status::Success);
                        assert!(completion.kind == CompletionKind::Send);
                    });
                    (0..done.expect("the CQ has room")).for_each(|_| post());
                }
            })
            .expect("a thread");
        std::thread::sleep(Duration::from_millis(200));
        let (start, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(time);
        let arrived = received.load(Ordering::Relaxed) - before;
        let rate = arrived as f64 / start.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        print_counters(&client, &server);
        rate
    })
}
