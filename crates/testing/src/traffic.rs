//! Waiting for traffic: packets that a device of the kernel has sent.

use std::time::{Duration, Instant};

/// What a device has sent since this was made.
pub struct Traffic {
    device: &'static str,
    before: u64,
}

impl Traffic {
    pub fn of(device: &'static str) -> Traffic {
        Traffic {
            device,
            before: sent(device),
        }
    }

    /// Waits for so many packets; when they were there.
    #[track_caller]
    pub fn await_packets(&self, count: u64) -> Instant {
        let started = Instant::now();
        loop {
            let sent = sent(self.device) - self.before;
            if sent >= count {
                return Instant::now();
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "{} has sent {sent} packets",
                self.device
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn sent(device: &str) -> u64 {
    let file = format!("/sys/class/infiniband/{device}/ports/1/hw_counters/sent_pkts");
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|error| panic!("{file}: {error}"));
    text.trim().parse().unwrap()
}
