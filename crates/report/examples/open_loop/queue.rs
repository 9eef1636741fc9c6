//! Waits of Poisson arrivals at a server with a fixed service time, beside those of M/D/1.

use hdrhistogram::Histogram;

use crate::{Checked, number, only_open_loop, open_loops, percent_off};
use queueing::Md1;

/// How far the mean wait and p99 may be off, in percent.
const MEAN_WITHIN: f64 = 5.0;
const P99_WITHIN: f64 = 10.0;

/// Prints a row a run. What else than waiting a message takes is as in `idle`, where none messages, and independent of its wait:
/// so the mean wait is the mean latency less that of `idle`, and p99 is compared with that of the sum of both.
pub fn table(service_us: &str, idle: &str, files: &[&str]) -> Checked {
    let service_us = number(service_us, "SERVICE_US")?;
    let idle = only_open_loop(idle)?;
    let idle_mean_us = idle.latency.mean / 1e3;
    let without_waiting = idle.latency.histogram().map_err(|error| error.to_string())?;
    let idle_us = |quantile| without_waiting.value_at_quantile(quantile) as f64 / 1e3;
    println!(
        "One message is served in {service_us:.1} us. Without waiting its latency is {idle_mean_us:.1} us on average, {:.1} us in the median, p99 {:.1} us, p99.9 {:.1} us.\n",
        idle_us(0.5),
        idle_us(0.99),
        idle_us(0.999),
    );
    println!(
        "| load | messages | mean wait, us | M/D/1 | off | p99 of latency, us | M/D/1 and the rest | off | lateness p99, us | schedule |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut broken = Vec::new();
    if !idle.is_kept() {
        broken.push(format!("without waiting: {}", idle.verdict()));
    }
    for run in open_loops(files)? {
        let load = run.load.asked_per_second * service_us * 1e-6;
        let Some(queue) = Md1::new(load) else {
            return Err(format!("a load of {load:.3} keeps no server of {service_us} us stable"));
        };
        let Some(p99) = run.latency.p99 else {
            return Err("a run with fewer than 100 messages".into());
        };
        let mean_us = run.latency.mean / 1e3 - idle_mean_us;
        let p99_us = p99 as f64 / 1e3;
        let exact_mean_us = queue.mean_wait() * service_us;
        let exact_p99_us = quantile_of_sum(&queue, service_us, &without_waiting, 0.99);
        let mean_off = percent_off(mean_us, exact_mean_us);
        let p99_off = percent_off(p99_us, exact_p99_us);
        println!(
            "| {:.0} % | {} | {mean_us:.1} | {exact_mean_us:.1} | {mean_off:+.1} % | {p99_us:.1} | {exact_p99_us:.1} | {p99_off:+.1} % | {:.1} | {} |",
            load * 100.0,
            run.latency.count,
            run.lateness_p99_us,
            run.verdict(),
        );
        let at = format!("at {:.0} % load", load * 100.0);
        for (what, off, within) in
            [("mean wait", mean_off, MEAN_WITHIN), ("p99", p99_off, P99_WITHIN)]
        {
            if off.abs() > within {
                broken.push(format!("{at} the {what} is {off:+.1} % off, not within {within} %"));
            }
        }
        if !run.is_kept() {
            broken.push(format!("{at}: {}", run.verdict()));
        }
    }
    Ok(broken)
}

/// The latency in microseconds that a share of `quantile` does not exceed: a wait and, independent of it, what a message
/// takes that does not wait.
fn quantile_of_sum(queue: &Md1, service_us: f64, rest: &Histogram<u64>, quantile: f64) -> f64 {
    let messages = rest.len() as f64;
    let at_most = |latency_us: f64| -> f64 {
        let of_value = |value_ns: u64, count: u64| {
            let wait = (latency_us - value_ns as f64 / 1e3) / service_us;
            queue.wait_at_most(wait) * count as f64 / messages
        };
        rest.iter_recorded().map(|it| of_value(it.value_iterated_to(), it.count_at_value())).sum()
    };
    let most_us = rest.max() as f64 / 1e3 + queue.wait_quantile(quantile) * service_us;
    let (mut low, mut high) = (0.0, most_us);
    for _ in 0..40 {
        let mid = f64::midpoint(low, high);
        if at_most(mid) < quantile { low = mid } else { high = mid }
    }
    high
}
