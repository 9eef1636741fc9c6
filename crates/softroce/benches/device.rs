//! Measures the device, and plain UDP with GSO and GRO in the same run: both ends in one process, with a thread each.
//! `cargo bench -p softroce --bench device [SECONDS]`.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::expect_used)]

#[path = "support/connected.rs"]
mod connected;
#[path = "support/datagrams.rs"]
mod datagrams;
#[path = "../tests/device/support/end.rs"]
#[allow(dead_code)] // some of it is for tests
mod end;
#[path = "support/plain_udp.rs"]
mod plain_udp;

use std::time::{Duration, Instant};

use connected::{Load, Op, measure, plan, receive};
use end::{End, Plan, pair};
use softroce::transport::{CompletionKind, Operation, Status};

/// Round trips of a 64-byte SEND answered by another, in nanoseconds, in order of length.
fn ping_pong_ns(rounds: usize) -> Vec<u64> {
    let (client, server) = pair(&plan());
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
        (0..4).for_each(|_| receive(end, 0, 0, bytes));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            plain_udp::pin(1);
            for _ in 0..rounds {
                receive_one(&server);
                send(&server);
                receive(&server, 0, 0, bytes);
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
                    receive(&client, 0, 0, bytes);
                    start.elapsed().as_nanos() as u64
                })
                .collect();
            times.sort_unstable();
            times
        });
        client_thread.join().expect("the client finished")
    })
}

/// Seconds to create and connect this many QPs at both ends, and KiB per QP.
fn connect_many(qps: usize) -> (f64, f64) {
    let before = resident_kib();
    let plan = Plan { qps, memory_bytes: 4096, ..plan() };
    let start = Instant::now();
    let ends = pair(&plan);
    let seconds = start.elapsed().as_secs_f64();
    let each = (resident_kib() - before) / (2 * qps) as f64;
    drop(ends);
    (seconds, each)
}

fn resident_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs work that pins its thread on a separate thread, because engines inherit the pinning of the thread that opens
/// the device.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("the measurement finished"))
}

/// What stands beside the rate of many QPs.
fn of_four(qps: usize, share: f64) -> String {
    if qps > 4 && share.is_finite() {
        format!("{share:.2} of the rate of 4 QPs")
    } else {
        String::new()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given_s = arguments.iter().find_map(|argument| argument.parse().ok());
    let only = arguments
        .iter()
        .find(|argument| argument.parse::<f64>().is_err() && !argument.starts_with('-'));
    let time = Duration::from_secs_f64(given_s.unwrap_or(2.0));
    let wanted =
        |name: &str| only.is_none_or(|only| name.to_lowercase().contains(&only.to_lowercase()));
    // For profiling the device alone.
    let alone = std::env::var_os("ALONE").is_some();
    let small_udp = |bytes| {
        if alone {
            1.0
        } else {
            apart(|| plain_udp::one_way(bytes, 32, time)).unwrap().mpackets_per_s
        }
    };

    println!("{:<44} {:>10} {:>12} {:>8}", "what", "device", "plain UDP", "ratio");
    let mut gbyte_of_four = 0.0;
    for (op, qps) in [
        (Op::Write, 4),
        (Op::Read, 4),
        (Op::Send, 4),
        (Op::Write, 1),
        (Op::Write, 64),
        (Op::Write, 1024),
        (Op::Write, 16_384),
    ] {
        let name = format!("64 KiB {}, {qps} QPs, GB/s", op.name());
        if !wanted(&name) {
            continue;
        }
        let limit = {
            if alone {
                1.0
            } else {
                apart(|| plain_udp::one_way(4112, 15, time)).unwrap().gbyte_per_s
            }
        };
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
            gbyte_of_four = rate;
        }
        let beside = of_four(qps, rate / gbyte_of_four);
        println!("{name:<44} {rate:>10.2} {limit:>12.2} {:>8.2} {beside}", rate / limit);
    }
    let mut mpackets_of_four = 0.0;
    for (op, qps, post_list) in [
        (Op::Write, 4, 32),
        (Op::Send, 4, 32),
        (Op::Read, 4, 32),
        (Op::Write, 4, 1),
        (Op::Send, 4, 1),
        (Op::Write, 16_384, 1),
    ] {
        let lists =
            if post_list == 1 { "one a call".into() } else { format!("lists of {post_list}") };
        let name = format!("64 B {}, {qps} QPs, {lists}, M/s", op.name());
        if !wanted(&name) {
            continue;
        }
        let limit = small_udp(96);
        let load = Load {
            op,
            qps,
            message_bytes: 64,
            post_list,
            lists: if qps > 64 { 1 } else { 128 / post_list },
        };
        let (messages, seconds) = measure(&load, time);
        let rate = messages as f64 / seconds / 1e6;
        if (op, qps, post_list) == (Op::Write, 4, 1) {
            mpackets_of_four = rate;
        }
        let beside = of_four(qps, rate / mpackets_of_four);
        println!("{name:<44} {rate:>10.2} {limit:>12.2} {:>8.2} {beside}", rate / limit);
    }
    let ud_name = "64 B UD SEND, lists of 32, M/s";
    if wanted(ud_name) {
        let limit = small_udp(88);
        let rate = datagrams::received_per_s(time) / 1e6;
        println!("{ud_name:<44} {rate:>10.2} {limit:>12.2} {:>8.2}", rate / limit);
    }
    let ping_pong_name = "64 B SEND ping-pong";
    if wanted(ping_pong_name) {
        let rounds = 100_000;
        let limits = apart(|| plain_udp::ping_pong_ns(92, rounds)).unwrap();
        let round_trips = ping_pong_ns(rounds);
        for percent in [50, 99] {
            let name = format!("{ping_pong_name}, p{percent} round trip, us");
            let quantile = |sorted| plain_udp::quantile_us(sorted, percent);
            let (round_trip, limit) = (quantile(&round_trips), quantile(&limits));
            println!("{name:<44} {round_trip:>10.2} {limit:>12.2} {:>8.2}", round_trip / limit);
        }
    }
    for qps in [4096, 16_384] {
        let name = format!("{qps} QPs created and connected, both ends");
        if !wanted(&name) {
            continue;
        }
        let (seconds, kib) = connect_many(qps);
        println!("{name:<44} {seconds:>8.2} s   {kib:.1} KiB a QP");
    }
}
