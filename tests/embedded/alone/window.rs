//! WindowEdges of the window: single worker threads are stopped over its start and its end, under a cap of bandwidth that
//! the figures must tell all the same, or be marked.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::{Program, Server, alone};
use testing::quiet::tries;

/// Payload in 10^9 bits a second of what the cap of 0.5 lets through at an MTU of 4096, see `truth`.
const CAP_GBIT_PER_S: f64 = 0.5 * 4096.0 / (4096.0 + 44.0);

/// How far a run without a mark may be from the cap.
const WITHIN: f64 = 0.01;

/// Tries on a busy machine.
const TRIES: usize = 6;

const WARMUP_MS: u64 = 200;
const WINDOW_MS: u64 = 500;

/// The threads of the workers, once there are so many; the thread that sends comes first.
fn workers(child: &Child, count: usize) -> Vec<Pid> {
    let tasks = format!("/proc/{}/task", child.id());
    let started = Instant::now();
    loop {
        let mut found: Vec<(String, i32)> = fs::read_dir(&tasks)
            .unwrap()
            .filter_map(|task| {
                let id = task.unwrap().file_name().into_string().unwrap();
                let name = fs::read_to_string(format!("{tasks}/{id}/comm")).ok()?;
                Some((name, id.parse().unwrap()))
            })
            .filter(|(name, _)| name.starts_with("worker-"))
            .collect();
        if found.len() == count {
            found.sort();
            return found.into_iter().map(|(_, id)| Pid::from_raw(id)).collect();
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{found:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stops one thread for a while.
fn stop(thread: Pid, time: Duration) {
    ptrace::seize(thread, Options::empty()).unwrap();
    ptrace::interrupt(thread).unwrap();
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    std::thread::sleep(time);
    ptrace::detach(thread, None).unwrap();
}

/// One run with a worker stopped at `at_ms` after the workers' start; its forward figures.
fn run(words: &str, workers_in_all: usize, at_ms: u64, stopped_ms: u64) -> Value {
    let mut program = Program::new(&format!(
        "-d soft0 --timeout 18 --quiet --faults rate=500M --mtu 4096 -s 64K --op write -q 4 -t 64 \
         --warmup {WARMUP_MS}ms -D {WINDOW_MS}ms {words}"
    ));
    let mut child = program
        .command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let threads = workers(&child, workers_in_all);
    std::thread::sleep(Duration::from_millis(at_ms));
    stop(threads[0], Duration::from_millis(stopped_ms));
    child.wait().unwrap();
    program.json()["cases"][0]["runs"][0].clone()
}

/// Stops over an edge: each run tells the cap or is marked. Returns how many were marked.
#[track_caller]
fn tells_the_cap_or_is_marked(words: &str, workers: usize, stops: &[(u64, u64)]) -> usize {
    let _alone = alone();
    let mut marked = 0;
    for &(at_ms, stopped_ms) in stops {
        // A busy machine may be slower than the cap in truth, never faster.
        let is_slow = |run: &Value| {
            let rate = run["flows"][0]["totals"]["gbit_per_s"].as_f64();
            let is_unmarked = run["flows"][0]["window"]["doubts"]
                .as_array()
                .is_some_and(Vec::is_empty);
            is_unmarked && rate.is_some_and(|rate| rate / CAP_GBIT_PER_S < 1.0 - WITHIN)
        };
        let mut run = Value::Null;
        for _ in tries(TRIES) {
            run = self::run(words, workers, at_ms, stopped_ms);
            if run["complete"] == true && !is_slow(&run) {
                break;
            }
        }
        assert_eq!(run["complete"], true, "{run}");
        let rate = run["flows"][0]["totals"]["gbit_per_s"].as_f64();
        let rate = rate.unwrap_or_else(|| panic!("no rate: {run}"));
        let doubts = run["flows"][0]["window"]["doubts"].as_array().unwrap();
        marked += usize::from(!doubts.is_empty());
        assert!(
            !doubts.is_empty() || (rate / CAP_GBIT_PER_S - 1.0).abs() < WITHIN,
            "{rate} Gb/s of {CAP_GBIT_PER_S}, {words}, stopped at {at_ms} ms for {stopped_ms} ms, {}",
            run["flows"][0]["window"]
        );
        assert_sums(&run);
    }
    marked
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// A flow's rate is that of its window, and the sum of the rates of its node's workers.
fn assert_rates(run: &Value, flow: &Value) {
    let rate = number(&flow["totals"]["bytes"]) * 8e-9 / number(&flow["window"]["seconds"]);
    assert!((rate / number(&flow["totals"]["gbit_per_s"]) - 1.0).abs() < 1e-9);
    let mut nodes = run["nodes"].as_array().unwrap().iter();
    let node = nodes.find(|node| node["name"] == flow["from"]).unwrap();
    let by_worker: f64 = node["workers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|worker| worker["messages"] != 0)
        .map(|worker| {
            number(&worker["messages"]) * 65536.0 * 8e-9 / number(&worker["window_seconds"])
        })
        .sum();
    assert!((by_worker / rate - 1.0).abs() < 1e-9, "{run}");
}

/// The parts make up the whole, and the timeline holds every message.
fn assert_sums(run: &Value) {
    assert_rates(run, &run["flows"][0]);
    let timeline = &run["flows"][0]["timeline"];
    let messages = timeline["messages"].as_array().unwrap();
    let sum: u64 = messages.iter().filter_map(Value::as_u64).sum();
    assert_eq!(sum, run["flows"][0]["totals"]["messages"].as_u64().unwrap());
    let end = number(timeline["at_seconds"].as_array().unwrap().last().unwrap());
    let longest = run["nodes"][0]["workers"].as_array().unwrap().iter();
    let longest = longest.map(|worker| number(&worker["window_seconds"]));
    let longest = longest.fold(0.0, f64::max);
    // A worker that looks at its CQs often enough opens its window up to 1/400 before the edge.
    let most = WINDOW_MS as f64 * 1e-3 * (1.0 + 1.0 / 400.0);
    assert!(
        end <= most + 1e-6 && end >= longest - 1e-3,
        "{end}, {longest}"
    );
}

/// When the window opens and closes, about, after the workers' start.
const START_MS: u64 = WARMUP_MS + 20;
const END_MS: u64 = START_MS + WINDOW_MS;

#[test]
fn a_worker_stopped_over_the_start() {
    let stops = [(START_MS - 100, 130), (START_MS - 10, 18), (START_MS, 18)];
    let marked = tells_the_cap_or_is_marked("", 1, &stops);
    assert!(marked > 0, "no stop was over the start");
}

#[test]
fn a_worker_stopped_over_the_end() {
    let stops = [(END_MS - 100, 150), (END_MS - 10, 18)];
    let marked = tells_the_cap_or_is_marked("", 1, &stops);
    assert!(marked > 0, "no stop was over the end");
}

#[test]
fn one_of_two_workers_stopped_over_either_edge() {
    let long = [(START_MS - 40, 100), (END_MS - 60, 120)];
    let short = [(START_MS - 10, 18), (END_MS - 10, 18)];
    for (words, stops) in [
        ("--workers 2 --cq per-worker", &[long, short].concat()[..]),
        ("--workers 2 --cq shared", &long),
    ] {
        let marked = tells_the_cap_or_is_marked(words, 2, stops);
        assert!(marked > 0, "no stop was over an edge");
    }
}

#[test]
fn a_sleeping_worker_attends_to_the_edges() {
    tells_the_cap_or_is_marked(
        "--poll event",
        1,
        &[(START_MS - 40, 100), (END_MS - 60, 120)],
    );
}

#[test]
fn the_rates_of_both_directions_can_be_recomputed() {
    let _alone = alone();
    let ended = Program::new(
        "-d soft0 --timeout 18 --quiet -b -s 64K --op write -q 4 --workers 2 --cq per-worker \
         --warmup 100ms -D 200ms",
    )
    .run()
    .exits(0);
    let run = &ended.cases()[0]["runs"][0];
    for flow in [0, 1] {
        assert_rates(run, &run["flows"][flow]);
    }
}

#[test]
fn the_first_interval_of_the_timeline_is_like_the_others() {
    let _alone = alone();
    let mut ratios: Vec<f64> = (0..3)
        .map(|_| {
            let ended = Program::new(
                "-d soft0 --timeout 18 --quiet --faults rate=500M --mtu 4096 -s 16K --op write -q 4 \
                 -t 64 -Q 1 --warmup 200ms -D 300ms",
            )
            .run()
            .exits(0);
            let timeline = &ended.cases()[0]["runs"][0]["flows"][0]["timeline"];
            let ends = timeline["at_seconds"].as_array().unwrap();
            let counts = timeline["messages"].as_array().unwrap();
            let mut began = 0.0;
            let mut rates: Vec<f64> = ends
                .iter()
                .zip(counts)
                .map(|(end, count)| {
                    let length = end.as_f64().unwrap() - began;
                    began += length;
                    count.as_f64().unwrap() / length
                })
                .collect();
            let first = rates[0];
            rates.sort_by(f64::total_cmp);
            first / rates[rates.len() / 2]
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    // A worker that comes late to the start has less in it, never more.
    assert!((0.4..1.5).contains(&ratios[1]), "{ratios:?}");
}

#[test]
fn a_stall_across_the_end_is_in_the_latencies() {
    let _alone = alone();
    let server = Server::start("-d soft0");
    let mut program = server.client(&format!(
        "--timeout 20 --quiet -s 64 --op write -t 4 -Q 1 --warmup {WARMUP_MS}ms -D {WINDOW_MS}ms"
    ));
    let mut child = program.command.stdout(Stdio::null()).spawn().unwrap();
    workers(&child, 1);
    std::thread::sleep(Duration::from_millis(END_MS - 280));
    server.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    server.signal(Signal::SIGCONT);
    assert!(child.wait().unwrap().success());
    let run = program.json()["cases"][0]["runs"][0].clone();
    let max_ns = run["flows"][0]["latency_ns"]["max"].as_u64().unwrap();
    assert!(
        max_ns > 400_000_000,
        "{max_ns} ns: {}",
        run["flows"][0]["latency_ns"]
    );
    let stall = run["flows"][0]["timeline"]["longest_stall_seconds"]
        .as_f64()
        .unwrap();
    assert!(stall > 0.2, "{stall} s without a completion");
}
