//! Load on reliable connections between two devices of this process, with a thread for each end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use softroce::transport::{CompletionKind, Deliveries, Operation, Status, Wire};

use crate::end::{End, Plan, pair, request};
use crate::plain_udp;

/// The plan of all ends; `SOFTROCE_WIRE=udp` has them use sockets.
pub fn plan() -> Plan {
    let by_sockets = std::env::var_os("SOFTROCE_WIRE").is_some_and(|wire| wire == "udp");
    Plan { wire: if by_sockets { Wire::Udp } else { Wire::Memory }, ..Plan::default() }
}

/// What is measured.
#[derive(Clone, Copy, PartialEq)]
pub enum Op {
    Write,
    Read,
    Send,
}

impl Op {
    /// Its name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Op::Write => "WRITE",
            Op::Read => "READ",
            Op::Send => "SEND",
        }
    }
}

/// The parameters of one measurement.
pub struct Load {
    pub op: Op,
    pub qps: usize,
    pub message_bytes: usize,
    /// Requests per call; the last is signalled.
    pub post_list: usize,
    /// Outstanding calls per QP.
    pub lists: usize,
}

/// The most buffers of an end: many QPs share them.
const BUFFERS: usize = 1024;

impl Load {
    /// Offset of a QP's buffer.
    fn offset(&self, qp: usize) -> usize {
        qp % BUFFERS * self.message_bytes
    }
}

/// READs that a QP may have in flight: what the device reports.
const MAX_READS: u8 = 128;

/// Returns messages and seconds.
pub fn measure(load: &Load, time: Duration) -> (u64, f64) {
    let depth = load.post_list * load.lists;
    let plan = Plan {
        qps: load.qps,
        memory_bytes: load.qps.min(BUFFERS) * load.message_bytes,
        send_wrs: depth as u32,
        recv_wrs: if load.op == Op::Send { 2 * depth as u32 } else { 1 },
        deliveries: Deliveries { max_rd_atomic: MAX_READS, ..Plan::default().deliveries },
        ..plan()
    };
    let (client, server) = pair(&plan);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if load.op == Op::Send {
            for qp in 0..load.qps {
                for _ in 0..2 * depth {
                    receive(&server, qp, load.offset(qp), load.message_bytes);
                }
            }
            named("server")
                .spawn_scoped(scope, || {
                    plain_udp::pin(1);
                    while !stop.load(Ordering::Relaxed) {
                        let mut used: Vec<u64> = Vec::with_capacity(64);
                        let _ = server.cq.poll(64, |completion| used.push(completion.wr_id));
                        for qp in used {
                            let qp = qp as usize;
                            receive(&server, qp, load.offset(qp), load.message_bytes);
                        }
                    }
                })
                .expect("a thread");
        }
        // As a run does: devices' own threads keep off the core of the worker that posts.
        for end in [&client, &server] {
            end.nic.place_engine(&plain_udp::cores_but(0));
        }
        // A separate thread: the main thread stays unpinned.
        let client_thread = named("client")
            .spawn_scoped(scope, || drive(&client, &server, load, time))
            .expect("a thread");
        let result = client_thread.join().expect("the client finished");
        stop.store(true, Ordering::Relaxed);
        print_counters(&client, &server);
        result
    })
}

/// Prints what both devices counted, if the environment has COUNTERS.
pub fn print_counters(client: &End, server: &End) {
    if std::env::var_os("COUNTERS").is_none() {
        return;
    }
    for (end, name) in [(client, "client"), (server, "server")] {
        let counted: Vec<_> =
            end.nic.counters().into_iter().filter(|(_, count)| *count > 0).collect();
        println!("  {name} {counted:?}");
    }
}

/// A thread of this name, for profiles.
pub fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.into())
}

/// Posts a receive.
pub fn receive(end: &End, qp: usize, offset: usize, bytes: usize) {
    let sge = end.sge(offset, bytes);
    end.qps[qp].post_recv(qp as u64, &[sge]).unwrap();
}

/// The client: keeps the lists of every QP outstanding.
fn drive(client: &End, server: &End, load: &Load, time: Duration) -> (u64, f64) {
    plain_udp::pin(0);
    let post = |qp: usize| {
        let sge = [client.sge(load.offset(qp), load.message_bytes)];
        let (address, rkey) = (server.address(load.offset(qp)), server.key);
        let operation = match load.op {
            Op::Write => Operation::Write { address, rkey },
            Op::Read => Operation::Read { address, rkey },
            Op::Send => Operation::Send,
        };
        let mut left = load.post_list;
        // SAFETY: nothing is inline.
        unsafe {
            client.qps[qp].post_send(|| {
                left = left.checked_sub(1)?;
                let mut request = request(qp as u64, operation, &sge);
                request.signaled = left == 0;
                Some(request)
            })
        }
        .unwrap();
    };
    for _ in 0..load.lists {
        (0..load.qps).for_each(post);
    }
    let warm_up = Duration::from_millis(200);
    let begin = Instant::now();
    let mut start = None;
    let mut messages = 0;
    let mut done: Vec<usize> = Vec::with_capacity(64);
    // For counting cycles and instructions on a machine that has other work.
    let one_thread = std::env::var_os("ONE_THREAD").is_some() && load.op != Op::Send;
    loop {
        done.clear();
        if one_thread {
            server.cq.poll(16, |_| {}).expect("the CQ has room");
        }
        client
            .cq
            .poll(16, |completion| {
                assert_eq!(completion.status, Status::Success);
                assert!(completion.kind != CompletionKind::Receive);
                done.push(completion.wr_id as usize);
            })
            .expect("the CQ has room");
        if start.is_some() {
            messages += (done.len() * load.post_list) as u64;
        }
        let now = Instant::now();
        match start {
            None if now - begin > warm_up => start = Some(now),
            Some(start) if now - start > time => return (messages, (now - start).as_secs_f64()),
            _ => {}
        }
        done.drain(..).for_each(post);
    }
}
