//! Tries at a measurement that other work on this machine spoils: one of them must show the truth.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How much of the CPUs' time others may take before a try.
const BUSY: f64 = 0.1;

/// How long a try waits at most for the others to finish.
const PATIENCE: Duration = Duration::from_secs(20);

/// Up to so many tries. Each but the first waits until the machine is quiet, for a limited time.
pub fn tries(most: usize) -> impl Iterator<Item = usize> {
    (0..most).inspect(|&number| {
        if number > 0 {
            wait_for_quiet();
        }
    })
}

fn wait_for_quiet() {
    let started = Instant::now();
    let mut before = cpu_ticks();
    while started.elapsed() < PATIENCE {
        sleep(Duration::from_millis(250));
        let now = cpu_ticks();
        let (all, idle) = (now.0 - before.0, now.1 - before.1);
        if idle as f64 >= (1.0 - BUSY) * all as f64 {
            return;
        }
        before = now;
    }
}

/// Time of all CPUs since the machine started, and how much of it they were idle (`/proc/stat`, proc(5)).
fn cpu_ticks() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    // After the name: user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user time.
    let line = stat.lines().next().unwrap();
    let ticks = line.split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.map(|it| it.parse().unwrap()).collect();
    (ticks.iter().sum(), ticks[3] + ticks[4])
}
