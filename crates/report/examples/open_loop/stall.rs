//! Latencies of arrivals where the other end stood still, beside what their schedule says.

use crate::{Checked, flows, number, open_loops, percent_off};

/// How far p99 may be off, in percent.
const P99_WITHIN: f64 = 10.0;

/// The latency that a share of `above` of the messages exceed, in the unit of `stopped`.
///
/// Who comes at a time t after the stop waits for its rest, and for those before it: `stopped` - t + load t. That is until the
/// queue is empty, `stopped` / (1 - load) after it began; all others do not wait.
fn quantile(stopped: f64, load: f64, window: f64, above: f64) -> f64 {
    (stopped - (1.0 - load) * above * window).max(0.0)
}

/// Prints a row a run.
pub fn table(stopped_ms: &str, files: &[&str]) -> Checked {
    let stopped_ms = number(stopped_ms, "STOPPED_MS")?;
    println!(
        "| stopped, ms | load | messages | p50, us | p99, ms | expected | off | max, ms | schedule |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut broken = Vec::new();
    for run in open_loops(files)? {
        let (Some(maximum), Some(p99)) = (run.load.maximum_per_second, run.latency.p99) else {
            return Err("give --rate as a share, and 100 messages at least".into());
        };
        let load = run.load.asked_per_second / maximum;
        let exact_ms = quantile(stopped_ms, load, run.window_ms, 0.01);
        let p99_ms = p99 as f64 / 1e6;
        let off = percent_off(p99_ms, exact_ms);
        println!(
            "| {stopped_ms:.1} | {:.0} % | {} | {:.1} | {p99_ms:.1} | {exact_ms:.1} | {off:+.1} % | {:.1} | {} |",
            load * 100.0,
            run.latency.count,
            run.latency.p50.unwrap_or_default() as f64 / 1e3,
            run.latency.max as f64 / 1e6,
            run.verdict(),
        );
        if off.abs() > P99_WITHIN {
            broken.push(format!("after a stop p99 is {off:+.1} % off, not within {P99_WITHIN} %"));
        }
    }
    Ok(broken)
}

/// Prints a line a run of a closed loop. Nothing is promised of it.
pub fn closed(stopped_ms: &str, files: &[&str]) -> Checked {
    let stopped_ms = number(stopped_ms, "STOPPED_MS")?;
    for latency in flows(files)?.filter_map(|flow| flow.latency_ns) {
        let Some(p99) = latency.p99 else {
            return Err("a run with fewer than 100 messages".into());
        };
        println!(
            "A closed loop of one message that was stopped for {stopped_ms:.1} ms tells a p50 of {:.1} us, a p99 of {:.1} us and a longest of {:.1} ms.",
            latency.p50.unwrap_or_default() as f64 / 1e3,
            p99 as f64 / 1e3,
            latency.max as f64 / 1e6,
        );
    }
    Ok(Vec::new())
}
