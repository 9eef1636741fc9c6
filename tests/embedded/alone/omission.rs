//! Coordinated omission, by example: what a closed loop tells of a server that stops, what arrivals would see that do
//! not wait for each other, and what an open loop tells. The figures of docs/results.md are this test's:
//! `cargo test --release --test embedded omission -- --nocapture`.
#![allow(clippy::print_stderr)]

use std::time::Duration;

use serde_json::Value;

use crate::program::{Server, alone};
use testing::lag::Lag;
use testing::quiet::tries;

const WINDOW_S: f64 = 3.0;
const STOP: Duration = Duration::from_millis(300);
/// Part of the time in which arrivals keep the device busy.
const LOAD: f64 = 0.25;

/// What a run with one message in flight told.
struct ClosedLoop {
    p50_ns: f64,
    p99_ns: f64,
    max_ns: f64,
    /// Messages outside the stop.
    messages: u64,
    /// Begin and end of the longest stall, from the start of the window.
    stop_s: (f64, f64),
    window_s: f64,
}

impl ClosedLoop {
    fn of(run: &Value) -> ClosedLoop {
        let latency = |name: &str| run["flows"][0]["latency_ns"][name].as_f64().unwrap();
        let list = |name: &str| {
            let values = run["flows"][0]["timeline"][name].as_array().unwrap().iter();
            values.map(|it| it.as_f64().unwrap()).collect::<Vec<_>>()
        };
        let (ends, counts) = (list("at_seconds"), list("messages"));
        let mut stop_s: (f64, f64) = (0.0, 0.0);
        let mut last = 0.0;
        for (&end, &count) in ends.iter().zip(&counts) {
            if count > 0.0 {
                last = end;
            } else if end - last > stop_s.1 - stop_s.0 {
                stop_s = (last, end);
            }
        }
        ClosedLoop {
            p50_ns: latency("p50"),
            p99_ns: latency("p99"),
            max_ns: latency("max"),
            messages: run["flows"][0]["totals"]["messages"].as_u64().unwrap(),
            stop_s,
            window_s: run["flows"][0]["window"]["seconds"].as_f64().unwrap(),
        }
    }

    /// The 99th percentile, in nanoseconds, of arrivals at even distances that load the same server by [`LOAD`] and
    /// wait in turn: the server takes as long for each as it took for one of the closed loop, and stops as it did.
    fn p99_of_arrivals_ns(&self) -> f64 {
        let (stops, goes_on) = self.stop_s;
        let service = (self.window_s - (goes_on - stops)) / self.messages as f64;
        let distance = service / LOAD;
        let mut free = 0.0_f64;
        let mut latencies = Vec::new();
        for arrival in (0..).map(|number| f64::from(number) * distance) {
            if arrival >= self.window_s {
                break;
            }
            let begins = free.max(arrival);
            let ends = begins + service;
            free = if begins < goes_on && ends > stops {
                ends + (goes_on - stops.max(begins))
            } else {
                ends
            };
            latencies.push(free - arrival);
        }
        latencies.sort_by(f64::total_cmp);
        let rank = (latencies.len() as f64 * 0.99).ceil() as usize;
        latencies[rank - 1] * 1e9
    }
}

fn measure() -> ClosedLoop {
    let server = Server::start("-d soft0");
    let mut client = server.client(&format!(
        "--op write -s 64 -t 1 -Q 1 -D {WINDOW_S}s --warmup 500ms --timeout 18 --quiet"
    ));
    let child = client.command.spawn().unwrap();
    server.has_said(", run 1");
    std::thread::sleep(Duration::from_secs(2));
    server.stop_for(STOP);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0));
    ClosedLoop::of(&client.json()["cases"][0]["runs"][0])
}

#[test]
fn a_closed_loop_hides_a_stop_that_arrivals_would_see() {
    let _alone = alone();
    let told = measure();
    let arrivals_ns = told.p99_of_arrivals_ns();
    let ms = |ns: f64| ns / 1e6;
    eprintln!(
        "{} messages, stopped for {:.0} ms: closed loop p50 {:.4} ms, p99 {:.4} ms, max {:.1} ms; arrivals at 25 % p99 {:.1} ms",
        told.messages,
        (told.stop_s.1 - told.stop_s.0) * 1e3,
        ms(told.p50_ns),
        ms(told.p99_ns),
        ms(told.max_ns),
        ms(arrivals_ns)
    );
    let stopped_ns = (told.stop_s.1 - told.stop_s.0) * 1e9;
    assert!(stopped_ns >= 0.9 * STOP.as_nanos() as f64, "{stopped_ns}");
    assert!(
        told.max_ns >= 0.9 * STOP.as_nanos() as f64,
        "the stop is in the distribution"
    );
    assert!(
        arrivals_ns >= 0.6 * stopped_ns,
        "{arrivals_ns} of {stopped_ns}"
    );
    assert!(
        told.p99_ns <= 0.1 * arrivals_ns,
        "{} and {arrivals_ns}",
        told.p99_ns
    );
}

/// What an open loop told of a server that stopped.
struct OpenLoop {
    /// From the signal that stopped it on, with the time in which this machine ran nothing that was due.
    stopped: Duration,
    p99_s: f64,
    /// What it waited for the other end: the time of the stop.
    longest_s: f64,
    load: f64,
    window_s: f64,
}

impl OpenLoop {
    fn measure() -> OpenLoop {
        let server = Server::start("-d soft0");
        let mut client = server.client(&format!(
            "--op write -s 64 --rate 25% -D {WINDOW_S}s --warmup 500ms --timeout 18 --quiet"
        ));
        let child = client.command.spawn().unwrap();
        // The first run is the closed loop whose maximum the rate is a share of.
        server.has_said_times(", run 1", 2);
        std::thread::sleep(Duration::from_secs(2));
        let lag = Lag::watch();
        let stopped = server.stop_for(STOP);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0));
        let json = client.json();
        let cases = json["cases"].as_array().unwrap();
        let flow = &cases.last().unwrap()["runs"][0]["flows"][0];
        let load = |name: &str| flow["load"][name].as_f64().unwrap();
        OpenLoop {
            stopped: stopped + lag.so_far(),
            p99_s: flow["latency_ns"]["p99"].as_f64().unwrap() * 1e-9,
            longest_s: flow["latency_ns"]["max"].as_f64().unwrap() * 1e-9,
            load: load("asked_per_second") / load("maximum_per_second"),
            window_s: flow["window"]["seconds"].as_f64().unwrap(),
        }
    }

    /// Who comes at a time t after the stop waits for its rest, and for all who came before him: stop - t + load t,
    /// until nobody waits. So 1 % of all come before t = 1 % of the window, and wait longer.
    fn p99_of_schedule_s(&self) -> f64 {
        self.longest_s - (1.0 - self.load) * 0.01 * self.window_s
    }
}

#[test]
fn an_open_loop_tells_of_a_stop_what_its_schedule_says() {
    let _alone = alone();
    // Another stop of the machine's own in the same window makes more messages late than the schedule says.
    let mut seen = Vec::new();
    let is_as_planned = tries(4).any(|_| {
        let told = OpenLoop::measure();
        assert!((told.load - LOAD).abs() < 0.001, "{}", told.load);
        let schedule_s = told.p99_of_schedule_s();
        seen.push(format!(
            "stopped for {:.0} to {:.0} ms at {:.1} % load: open loop p99 {:.1} ms, its schedule {:.1} ms",
            told.longest_s * 1e3,
            told.stopped.as_secs_f64() * 1e3,
            told.load * 100.0,
            told.p99_s * 1e3,
            schedule_s * 1e3
        ));
        let stopped_s = 0.9 * STOP.as_secs_f64()..1.5 * told.stopped.as_secs_f64();
        stopped_s.contains(&told.longest_s) && (0.9..1.1).contains(&(told.p99_s / schedule_s))
    });
    for line in &seen {
        eprintln!("{line}");
    }
    assert!(is_as_planned, "{seen:?}");
}
