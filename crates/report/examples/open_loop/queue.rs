//! Waits of Poisson arrivals at a server with a fixed service time, beside those of M/D/1.

use crate::md1::Md1;
use crate::{Checked, number, open_loops, percent_off};

/// How far the mean wait and p99 may be off, in percent.
const MEAN_WITHIN: f64 = 5.0;
const P99_WITHIN: f64 = 10.0;

/// Prints a row a run. A wait is a latency less that of a message that does not wait: the mean less the mean of `idle`, and p99 less
/// its median, since what else delays a message is alike in all runs.
pub fn table(service_us: &str, idle: &str, files: &[&str]) -> Checked {
    let service_us = number(service_us, "SERVICE_US")?;
    let idle = open_loops(&[idle])?;
    let [idle] = idle.as_slice() else {
        return Err("IDLE has more than one run".into());
    };
    let (idle_mean_us, idle_p50_us) = (idle.latency.mean / 1e3, idle.latency.p50 as f64 / 1e3);
    println!(
        "One message is served in {service_us:.1} us. Without waiting its latency is {idle_mean_us:.1} us (p50 {idle_p50_us:.1} us).\n"
    );
    println!(
        "| load | messages | mean wait, us | M/D/1 | off | p99 of waits, us | M/D/1 | off | lateness p99, us | schedule |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|");
    let mut broken = Vec::new();
    if !idle.is_kept() {
        broken.push(format!("without waiting: {}", idle.verdict()));
    }
    for run in open_loops(files)? {
        let load = run.load.asked_per_second * service_us * 1e-6;
        let Some(queue) = Md1::new(load) else {
            return Err(format!(
                "a load of {load:.3} keeps no server of {service_us} us stable"
            ));
        };
        let Some(p99) = run.latency.p99 else {
            return Err("a run with fewer than 100 messages".into());
        };
        let mean_us = run.latency.mean / 1e3 - idle_mean_us;
        let p99_us = p99 as f64 / 1e3 - idle_p50_us;
        let exact_mean_us = queue.mean_wait() * service_us;
        let exact_p99_us = queue.wait_quantile(0.99) * service_us;
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
        for (what, off, within) in [
            ("mean wait", mean_off, MEAN_WITHIN),
            ("p99", p99_off, P99_WITHIN),
        ] {
            if off.abs() > within {
                broken.push(format!(
                    "{at} the {what} is {off:+.1} % off, not within {within} %"
                ));
            }
        }
        if !run.is_kept() {
            broken.push(format!("{at}: {}", run.verdict()));
        }
    }
    Ok(broken)
}
