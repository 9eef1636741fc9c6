//! Known truth: the device is told how slow to be, and the program has to find that out.
//!
//! A busy machine adds to what the device does, and never takes away: of a few tries the best one counts, and
//! none may be better than the truth.

pub use testing::md1;

use serde_json::Value;

use crate::program::{Program, alone};
use testing::quiet::tries;

const TRIES: usize = 8;

/// How far a figure may be from the truth.
const WITHIN: f64 = 0.02;

/// Payload's part of what the device's rate counts: at MTU 4096 each packet has an IPv4 header of 20 bytes, UDP's
/// 8, a base transport header of 12 and the invariant CRC of 4.
const PAYLOAD_OF_RATE: f64 = 4096.0 / (4096.0 + 44.0);

/// The figure of a run; or what it said, where the machine was so busy that it failed.
fn measure<F>(words: &str, figure: impl Fn(&Value) -> F) -> Result<F, String> {
    let ended = Program::new(&format!("-d soft0 --timeout 18 --quiet {words}")).run();
    if !ended.status.success() {
        return Err(ended.stderr);
    }
    Ok(figure(&ended.cases()[0]["runs"][0]))
}

/// The figure closest to the truth; `slower` says whether more of it means a slower device.
#[track_caller]
fn finds(truth: f64, slower: bool, words: &str, figure: impl Fn(&Value) -> f64) {
    let mut seen = Vec::new();
    for _ in tries(TRIES) {
        let found = measure(words, &figure).map(|found| found / truth);
        let excess = found.as_ref().map_or(f64::INFINITY, |found| {
            if slower { found - 1.0 } else { 1.0 - found }
        });
        seen.push(found);
        assert!(excess > -WITHIN, "better than the truth: {seen:?}, {words}");
        if excess < WITHIN {
            return;
        }
    }
    panic!("not the truth in {TRIES} tries: {seen:?}, {words}");
}

#[test]
fn a_cap_of_bandwidth_is_found() {
    let _alone = alone();
    for gbit_per_s in [0.5, 1.0] {
        finds(
            gbit_per_s * PAYLOAD_OF_RATE,
            false,
            &format!("--faults rate={gbit_per_s}G --mtu 4096 -q 4 -t 16 -D 500ms --warmup 200ms"),
            |run| run["flows"][0]["totals"]["gbit_per_s"].as_f64().unwrap(),
        );
    }
}

#[test]
fn a_delay_is_found() {
    let _alone = alone();
    for (delay_ms, op) in [(10, "write"), (20, "send"), (20, "read")] {
        finds(
            f64::from(delay_ms) * 1e6,
            true,
            &format!("--faults delay={delay_ms}ms --op {op} -s 64 -t 1 -D 600ms --warmup 100ms"),
            |run| run["flows"][0]["latency_ns"]["p50"].as_f64().unwrap(),
        );
    }
}

#[test]
fn moderation_by_default_tells_the_latency_of_every_message() {
    let _alone = alone();
    for words in [
        "--op write -q 1",
        "--op send -q 4 --cq shared",
        "--op write -q 4 --cq per-qp -t 48",
        "--op read -q 4",
    ] {
        let latency = |moderation: &str| {
            let words = format!(
                "--faults tx.rate=200M,rx.rate=200M --mtu 4096 -s 4096 -D 700ms --warmup 200ms {words} {moderation}"
            );
            let ended = Program::new(&format!("-d soft0 --timeout 18 --quiet {words}")).run();
            let case = &ended.cases()[0];
            let latency = &case["runs"][0]["flows"][0]["latency_ns"];
            // A busy machine may bring no message through.
            let p50 = latency["p50"].as_f64().unwrap_or(f64::INFINITY);
            (case["config"]["signal_every"].as_u64().unwrap(), p50)
        };
        // The tail is what else the machine does: the median alone tells the bias of moderation here. A pause makes
        // it longer, or shorter where the queue ran empty: of several runs the middle one counts.
        let mut seen = [const { Vec::new() }; 2];
        let is_true = tries(2 * TRIES).any(|_| {
            for (seen, moderation) in seen.iter_mut().zip(["-Q 1", ""]) {
                let (every, p50) = latency(moderation);
                assert_eq!(every > 8, moderation.is_empty(), "{words}");
                seen.push(p50);
                seen.sort_by(f64::total_cmp);
            }
            let [each, moderated] = seen.each_ref().map(|it| it[it.len() / 2]);
            (moderated / each - 1.0).abs() < WITHIN
        });
        assert!(is_true, "{words}: {seen:?}");
    }
}

/// In the queue M/D/1, whose server is the link; `scripts/open-loop` has the whole of it, on an idle machine.
#[test]
fn arrivals_of_an_open_loop_wait_as_theory_says() {
    const SERVICE_US: f64 = 400.0;
    const LOAD: f64 = 0.7;
    /// Three standard errors of so short a run, and what its wake-ups and polls take.
    const WAITS_WITHIN: f64 = 0.15;
    let _alone = alone();
    let queue = md1::Md1::new(LOAD).unwrap();
    // 4156 bytes are a WRITE of 4096 with its headers.
    let device = "--op write -s 4096 --mtu 4096 -t 512 --faults rate=83.12M --warmup 300ms";
    let latency_us = |words: &str| {
        measure(&format!("{device} {words}"), |run| {
            let latency = run["flows"][0]["latency_ns"].clone();
            ["p50", "p90"].map(|name| latency[name].as_f64().unwrap() / 1e3)
        })
    };
    let mut seen = Vec::new();
    let is_true = tries(TRIES).any(|_| {
        let idle = latency_us("--rate 250 --arrivals fixed -D 1s");
        let loaded = latency_us(&format!("--rate {:.0} -D 6s", LOAD / SERVICE_US * 1e6));
        let (Ok([idle_us, _]), Ok(loaded_us)) = (&idle, &loaded) else {
            seen.push((idle, loaded));
            return false;
        };
        let is_near = [(loaded_us[0], 0.5), (loaded_us[1], 0.9)].map(|(latency_us, quantile)| {
            let exact_us = queue.wait_quantile(quantile) * SERVICE_US;
            ((latency_us - idle_us) / exact_us - 1.0).abs() < WAITS_WITHIN
        });
        seen.push((idle, loaded));
        is_near == [true, true]
    });
    assert!(is_true, "{seen:?}");
}

#[test]
fn the_timeline_holds_every_message_and_shows_a_stall() {
    let _alone = alone();
    let ended = Program::new(
        "-d soft0 --timeout 18 --quiet --faults delay=200ms -s 64 -t 1 -n 4 --warmup 0",
    )
    .run()
    .exits(0);
    let timeline = &ended.cases()[0]["runs"][0]["flows"][0]["timeline"];
    let list = |name: &str| timeline[name].as_array().unwrap().clone();
    let messages: u64 = list("messages").iter().filter_map(Value::as_u64).sum();
    assert_eq!(messages, 4);
    let ends = list("at_seconds");
    assert!(ends.len() > 40 && ends.len() < 400, "{timeline}");
    assert!(ends.is_sorted_by_key(|end| end.as_f64().unwrap()));
    let stall = timeline["longest_stall_seconds"].as_f64().unwrap();
    assert!(stall > 0.17 && stall < 0.6, "{stall} s between messages");
    let bandwidth = &ended.cases()[0]["runs"][0]["flows"][0]["bandwidth_gbit_per_s"];
    assert_eq!(bandwidth["min"], 0.0);
    assert_eq!(bandwidth["count"], ends.len());
}
