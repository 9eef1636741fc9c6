//! QPs over time, where one of them stands still.

use serde_json::Value;

use crate::program::{Program, with_others};

/// The packet that is lost, and how long the device waits before it is sent again: 4.096 us times 2 to the 17th.
const LOST: u64 = 600;
const TIMEOUT_SECONDS: f64 = 0.537;

fn list(value: &Value) -> Vec<u64> {
    let values = value.as_array().unwrap().iter();
    values.map(|it| it.as_u64().unwrap()).collect()
}

/// A lost packet with none behind it is missed by a timer alone, so one QP waits while the others go on.
#[test]
fn a_qp_that_waits_for_its_timer_stands_still_in_the_intervals_in_which_it_does() {
    let _machine = with_others();
    let ended = Program::new(&format!(
        "-d soft0 --faults delay=4ms,tx.lose=write#{LOST} --op write -q 4 -t 1 -s 64 --timeout 17 -D 3s --warmup 0"
    ))
    .run()
    .exits(0);
    let flow = &ended.cases()[0]["runs"][0]["flows"][0];
    let timeline = &flow["qp_timeline"];
    let ends = timeline["at_seconds"].as_array().unwrap();
    let ends: Vec<f64> = ends.iter().map(|end| end.as_f64().unwrap()).collect();
    let qps: Vec<Vec<u64>> = timeline["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(list)
        .collect();
    assert_eq!(qps.len(), 4);
    assert!((64..=128).contains(&ends.len()), "{timeline}");
    for (qp, result) in qps.iter().zip(flow["qps"].as_array().unwrap()) {
        assert_eq!(qp.iter().sum::<u64>(), result["messages"], "{timeline}");
    }
    // What all QPs had moved when the longest row of zeros of a QP began, and its length.
    let stall = |qp: &Vec<u64>| {
        let (mut from, mut longest) = (0, (0.0, 0));
        for same in qp.chunk_by(|one, next| (*one == 0) == (*next == 0)) {
            let begins = if from == 0 { 0.0 } else { ends[from - 1] };
            let seconds = ends[from + same.len() - 1] - begins;
            if same[0] == 0 && seconds > longest.0 {
                let before = qps.iter().flat_map(|qp| &qp[..from]).sum();
                longest = (seconds, before);
            }
            from += same.len();
        }
        longest
    };
    let mut stalls: Vec<(f64, u64)> = qps.iter().map(stall).collect();
    stalls.sort_by(|one, other| other.0.total_cmp(&one.0));
    let (seconds, before) = stalls[0];
    let interval = timeline["interval_seconds"].as_f64().unwrap();
    assert!(
        seconds > TIMEOUT_SECONDS - 3.0 * interval,
        "{seconds} s: {timeline}"
    );
    assert!(
        stalls[1].0 < 0.5 * seconds,
        "the others go on: {stalls:?}, {timeline}"
    );
    // It begins in the interval in which the packet was lost, or in the next one.
    let per_interval = qps.iter().flatten().sum::<u64>() / ends.len() as u64;
    assert!(
        before.abs_diff(LOST) <= 3 * per_interval + 8,
        "{before} messages before it: {timeline}"
    );
    ended.shows(&["a QP stood still while others moved in 1 of 1 run"]);
}
