//! QPs over time, where one of them stands still.

use serde_json::Value;

use testing::server::call;

/// The packet that is lost: the first of one of the four QPs. A QP that had no answer yet sends no probe, and waits for its
/// timer: 4.096 us times 2 to the 16th.
const LOST: u64 = 3;

fn list(value: &Value) -> Vec<u64> {
    let values = value.as_array().unwrap().iter();
    values.map(|it| it.as_u64().unwrap()).collect()
}

#[test]
fn a_qp_that_waits_for_its_timer_stands_still_in_the_intervals_in_which_it_does() {
    let ended = call(&format!(
        "-d soft0 --faults delay=4ms,tx.lose=write#{LOST} --op write -q 4 -t 1 -s 64 --timeout 16 -D 1s --warmup 0"
    ))
    .run()
    .exits(0);
    let flow = &ended.first_flow();
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
    assert!(qps.iter().all(|qp| qp.len() == ends.len()), "{timeline}");
    for (qp, result) in qps.iter().zip(flow["qps"].as_array().unwrap()) {
        assert_eq!(qp.iter().sum::<u64>(), result["messages"], "{timeline}");
    }
    // When each QP began to move: one after all others.
    let idle = |qp: &Vec<u64>| qp.iter().take_while(|count| **count == 0).count();
    let mut idle: Vec<usize> = qps.iter().map(idle).collect();
    idle.sort_unstable();
    assert!(idle[2] < idle[3], "{idle:?}: {timeline}");
}
