//! Measures the device, and plain UDP with GSO and GRO in the same run: both ends in one process, with a thread each.
//! `cargo bench -p softroce --bench device [SECONDS]`.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::expect_used
)]

#[path = "../tests/support/end.rs"]
mod end;
#[path = "support/plain_udp.rs"]
mod plain_udp;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use end::{End, Plan, pair, request};
use softroce::transport::{CompletionKind, Operation, Status};

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Write,
    Read,
    Send,
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Write => "WRITE",
            Op::Read => "READ",
            Op::Send => "SEND",
        }
    }
}

/// The parameters of one measurement.
struct Load {
    op: Op,
    qps: usize,
    message_bytes: usize,
    /// Requests per call; the last is signalled.
    post_list: usize,
    /// Outstanding calls per QP.
    lists: usize,
}

/// Returns messages and seconds.
fn measure(load: &Load, time: Duration) -> (u64, f64) {
    let depth = load.post_list * load.lists;
    let plan = Plan {
        qps: load.qps,
        memory_bytes: load.qps * load.message_bytes * 2,
        send_wrs: depth as u32,
        recv_wrs: 2 * depth as u32,
        ..Plan::default()
    };
    let (client, server) = pair(&plan);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if load.op == Op::Send {
            for qp in 0..load.qps {
                for _ in 0..2 * depth {
                    receive(&server, qp, load.message_bytes);
                }
            }
            let serve = || {
                plain_udp::pin(1);
                while !stop.load(Ordering::Relaxed) {
                    let mut used: Vec<u64> = Vec::with_capacity(64);
                    let _ = server.cq.poll(64, |completion| used.push(completion.wr_id));
                    for qp in used {
                        receive(&server, qp as usize, load.message_bytes);
                    }
                }
            };
            named("server")
                .spawn_scoped(scope, serve)
                .expect("a thread");
        }
        // A separate thread: the main thread and the engines that it starts stay unpinned.
        let client_thread = named("client")
            .spawn_scoped(scope, || drive(&client, &server, load, time))
            .expect("a thread");
        let result = client_thread.join().expect("the client finished");
        stop.store(true, Ordering::Relaxed);
        if std::env::var_os("COUNTERS").is_some() {
            for (end, name) in [(&client, "client"), (&server, "server")] {
                let counters = end
                    .nic
                    .counters()
                    .into_iter()
                    .filter(|(_, count)| *count > 0);
                println!("  {name} {:?}", counters.collect::<Vec<_>>());
            }
        }
        result
    })
}

fn named(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.into())
}

fn receive(end: &End, qp: usize, bytes: usize) {
    let sge = end.sge(qp * bytes, bytes);
    end.qps[qp].post_recv(qp as u64, &[sge]).unwrap();
}

/// The client: keeps the lists of every QP outstanding.
fn drive(client: &End, server: &End, load: &Load, time: Duration) -> (u64, f64) {
    plain_udp::pin(0);
    let post = |qp: usize| {
        let sge = [client.sge(qp * load.message_bytes, load.message_bytes)];
        let (address, rkey) = (server.address(qp * load.message_bytes), server.key);
        let operation = match load.op {
            Op::Write => Operation::Write { address, rkey },
            Op::Read => Operation::Read { address, rkey },
            Op::Send => Operation::Send,
        };
        let mut left = load.post_list;
        let next = || {
            left = left.checked_sub(1)?;
            let mut request = request(qp as u64, operation, &sge);
            request.signaled = left == 0;
            Some(request)
        };
        // SAFETY: nothing is inline.
        unsafe { client.qps[qp].post_send(next) }.unwrap();
    };
    for _ in 0..load.lists {
        (0..load.qps).for_each(post);
    }
    let warm_up = Duration::from_millis(200);
    let begin = Instant::now();
    let mut start = None;
    let mut messages = 0;
    let mut done: Vec<usize> = Vec::with_capacity(64);
    loop {
        done.clear();
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

/// Median round trip of a 64-byte SEND answered by another.
fn ping_pong_p50_ns(rounds: usize) -> u64 {
    let (client, server) = pair(&Plan::default());
    let bytes = 64;
    let receive_one = |end: &End| {
        let mut arrived = false;
        while !arrived {
            end.cq
                .poll(4, |completion| {
                    assert_eq!(completion.status, Status::Success);
                    arrived |= completion.kind == CompletionKind::Receive;
                })
                .expect("the CQ has room");
        }
    };
    let send = |end: &End| end.post(0, Operation::Send, &[end.sge(0, bytes)]);
    for end in [&client, &server] {
        (0..4).for_each(|_| receive(end, 0, bytes));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            plain_udp::pin(1);
            for _ in 0..rounds {
                receive_one(&server);
                send(&server);
                receive(&server, 0, bytes);
            }
            // Waits for the acknowledgement of the last answer.
            for _ in 0..1000 {
                server.cq.poll(1, |_| {}).expect("the CQ has room");
            }
        });
        let client_thread = scope.spawn(|| {
            plain_udp::pin(0);
            let mut times: Vec<u64> = (0..rounds)
                .map(|_| {
                    let start = Instant::now();
                    send(&client);
                    receive_one(&client);
                    receive(&client, 0, bytes);
                    start.elapsed().as_nanos() as u64
                })
                .collect();
            plain_udp::median(&mut times)
        });
        client_thread.join().expect("the client finished")
    })
}

/// Seconds to create and connect this many QPs at both ends, and KiB per QP.
fn connect_many(qps: usize) -> (f64, f64) {
    let before = resident_kib();
    let plan = Plan {
        qps,
        memory_bytes: 4096,
        ..Plan::default()
    };
    let start = Instant::now();
    let ends = pair(&plan);
    let seconds = start.elapsed().as_secs_f64();
    let each = (resident_kib() - before) / (2 * qps) as f64;
    drop(ends);
    (seconds, each)
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs work that pins its thread on a separate thread, because engines inherit the pinning of the thread that opens
/// the device.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("the measurement finished"))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = arguments.iter().find_map(|argument| argument.parse().ok());
    let only = arguments
        .iter()
        .find(|argument| argument.parse::<f64>().is_err() && !argument.starts_with('-'));
    let time = Duration::from_secs_f64(seconds.unwrap_or(2.0));
    let wanted =
        |name: &str| only.is_none_or(|only| name.to_lowercase().contains(&only.to_lowercase()));
    // For profiling the device alone.
    let alone = std::env::var_os("ALONE").is_some();
    let udp = || match alone {
        true => 1.0,
        false => {
            apart(|| plain_udp::one_way(4112, 15, time))
                .unwrap()
                .gbyte_per_s
        }
    };

    println!(
        "{:<44} {:>10} {:>12} {:>8}",
        "what", "device", "plain UDP", "ratio"
    );
    let mut four = 0.0;
    for (op, qps) in [
        (Op::Write, 4),
        (Op::Read, 4),
        (Op::Send, 4),
        (Op::Write, 1),
        (Op::Write, 64),
        (Op::Write, 1024),
    ] {
        let name = format!("64 KiB {}, {qps} QPs, GB/s", op.name());
        if !wanted(&name) {
            continue;
        }
        let limit = udp();
        let load = Load {
            op,
            qps,
            message_bytes: 64 << 10,
            post_list: 1,
            lists: if qps > 64 { 1 } else { 16 },
        };
        let (messages, seconds) = measure(&load, time);
        let rate = messages as f64 * 65_536.0 / seconds / 1e9;
        if op == Op::Write && qps == 4 {
            four = rate;
        }
        let beside = if qps > 4 {
            format!("{:.2} of the rate of 4 QPs", rate / four)
        } else {
            String::new()
        };
        println!(
            "{name:<44} {rate:>10.2} {limit:>12.2} {:>8.2} {beside}",
            rate / limit
        );
    }
    for op in [Op::Write, Op::Send, Op::Read] {
        let name = format!("64 B {}, 4 QPs, lists of 32, M/s", op.name());
        if !wanted(&name) {
            continue;
        }
        let limit = apart(|| plain_udp::one_way(96, 32, time))
            .unwrap()
            .mpackets_per_s;
        let load = Load {
            op,
            qps: 4,
            message_bytes: 64,
            post_list: 32,
            lists: 4,
        };
        let (messages, seconds) = measure(&load, time);
        let rate = messages as f64 / seconds / 1e6;
        println!(
            "{name:<44} {rate:>10.2} {limit:>12.2} {:>8.2}",
            rate / limit
        );
    }
    let name = "64 B SEND ping-pong, p50 round trip, us";
    if wanted(name) {
        let rounds = 100_000;
        let limit = apart(|| plain_udp::ping_pong_p50_ns(92, rounds)).unwrap() as f64 / 1e3;
        let round_trip = ping_pong_p50_ns(rounds) as f64 / 1e3;
        println!(
            "{name:<44} {round_trip:>10.2} {limit:>12.2} {:>8.2}",
            round_trip / limit
        );
    }
    let name = "4,096 QPs created and connected, both ends";
    if wanted(name) {
        let (seconds, kib) = connect_many(4096);
        println!("{name:<44} {seconds:>8.2} s   {kib:.1} KiB a QP");
    }
}
