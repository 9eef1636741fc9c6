//! QPs over time, where one of them stands still.

use serde_json::Value;

use crate::program::{Program, with_others};

/// The packet that is lost: the first of one of the four QPs. A QP that had no answer yet sends no probe, and waits for its
/// timer: 4.096 us times 2 to the 17th.
const LOST: u64 = 3;
const TIMEOUT_SECONDS: f64 = 0.537;

fn list(value: &Value) -> Vec<u64> {
    let values = value.as_array().unwrap().iter();
    values.map(|it| it.as_u64().unwrap()).collect()
}

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
    // When each QP began to move.
    let idle = |qp: &Vec<u64>| {
        let intervals = qp.iter().take_while(|count| **count == 0).count();
        ends[..intervals].last().copied().unwrap_or(0.0)
    };
    let mut idle: Vec<f64> = qps.iter().map(idle).collect();
    idle.sort_by(f64::total_cmp);
    let interval = timeline["interval_seconds"].as_f64().unwrap();
    assert!(
        idle[3] > TIMEOUT_SECONDS - 3.0 * interval,
        "{idle:?}: {timeline}"
    );
    assert!(idle[2] < 0.5 * idle[3], "the others go on: {timeline}");
    ended.shows(&["a QP stood still while others moved in 1 of 1 run"]);
}
