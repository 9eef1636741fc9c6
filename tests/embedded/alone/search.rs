//! A search on a device whose limit is known: one server with a fixed service time.
//!
//! A busy machine adds to what the device does: of a few tries one must not contradict the truth.

use serde_json::Value;

use super::truth::md1;
use crate::program::{Program, alone};
use testing::quiet::tries;

const TRIES: usize = 6;

/// How far bounds may miss the truth: that is of an idle machine, and `scripts/open-loop` measures there.
const SLACK: f64 = 1.15;

/// A SEND of 4096 bytes is one packet of 4140 bytes with its headers, half a millisecond at this rate; its ACK takes
/// the other direction.
const DEVICE: &str =
    "-d soft0 --timeout 18 --faults rate=66.24M --op send -q 1 -s 4096 --mtu 4096 -t 256 -r 512";

const SERVICE_NS: f64 = 500e3;

/// 90 % of messages take less than this many services.
const LIMIT: f64 = 3.0;

/// The load, as a share of what the server can, at which 10 % of messages take as long as the limit.
fn true_load(without_waiting_ns: f64) -> f64 {
    let wait = (LIMIT * SERVICE_NS - without_waiting_ns) / SERVICE_NS;
    md1::Md1::highest_load(0.9, wait)
}

/// What a message takes that does not wait, in nanoseconds.
fn without_waiting() -> Option<f64> {
    let words = format!("{DEVICE} --rate 200 --arrivals fixed -D 600ms --warmup 100ms --quiet");
    let ended = Program::new(&words).run();
    let flow = &ended.json["cases"][0]["runs"][0]["flows"][0];
    flow["latency_ns"]["p50"].as_f64()
}

#[test]
fn a_search_finds_the_load_of_a_known_limit() {
    let _alone = alone();
    let mut seen = Vec::new();
    for _ in tries(TRIES) {
        let Some(idle_ns) = without_waiting().filter(|ns| *ns < 1.5 * SERVICE_NS) else {
            seen.push("the machine is busy".to_owned());
            continue;
        };
        let slo = format!("p90<{}us", LIMIT * SERVICE_NS / 1e3);
        let ended = Program::new(&format!(
            "{DEVICE} --slo {slo} -D 500ms --warmup 50ms --quiet"
        ))
        .run();
        let search = &ended.json["cases"][0]["searches"][0];
        let per_second = |name: &str| search[name].as_f64();
        let truth = true_load(idle_ns) * 1e9 / SERVICE_NS;
        let (lower, upper) = (
            per_second("lower_per_second"),
            per_second("upper_per_second"),
        );
        let (end, trials) = (
            &search["end"],
            search["trials"].as_array().map_or(0, Vec::len),
        );
        seen.push(format!(
            "{end}: {lower:?} to {upper:?} in {trials} trials, truly {truth:.0}"
        ));
        let holds = match (end.as_str(), lower, upper) {
            (Some("found"), Some(lower), Some(upper)) => {
                lower < truth * SLACK && upper * SLACK > truth
            }
            // The machine was too busy for loads near the limit, and the search says so.
            (Some("schedule_not_kept"), Some(lower), _) => lower < truth * SLACK,
            _ => false,
        };
        if holds {
            assert_trials(search);
            ended.exits(0).shows(&["keeps it"]);
            return;
        }
    }
    panic!("not the truth in {TRIES} tries: {seen:?}");
}

/// Trials are no runs of the case, and say what they came to.
fn assert_trials(search: &Value) {
    for trial in search["trials"].as_array().unwrap() {
        let excess = trial["excess"].as_f64();
        match trial["outcome"].as_str() {
            Some("kept") => assert!(excess.is_some_and(|it| it <= 1.0), "{trial}"),
            Some("broke") => assert!(excess.is_some_and(|it| it > 1.0), "{trial}"),
            _ => assert!(excess.is_none(), "{trial}"),
        }
    }
}
