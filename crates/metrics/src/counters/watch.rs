//! Counters over a window, read often enough for those that wrap.

use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use super::growth::Growth;
use super::reading::Reading;

/// Between two readings in a window. A counter of 32 bits takes longer for half its range on any device: it would
/// have to count 10^9 in a second.
const EVERY: Duration = Duration::from_secs(2);

/// Watches counters grow, from its start to its end, on a thread of its own where some may wrap more than once.
pub struct CounterWatch {
    read: Box<dyn Fn() -> Option<Reading> + Send>,
    growth: Growing,
}

enum Growing {
    Here(Growth),
    There { thread: JoinHandle<Growth>, stop: Sender<()> },
}

impl CounterWatch {
    /// Begins with a reading; `None` when `read` gives none.
    pub fn start(read: impl Fn() -> Option<Reading> + Clone + Send + 'static) -> Option<Self> {
        CounterWatch::every(EVERY, read)
    }

    fn every(
        pause: Duration,
        read: impl Fn() -> Option<Reading> + Clone + Send + 'static,
    ) -> Option<Self> {
        let growth = Growth::since(read()?);
        let growth = if growth.needs_watching() {
            let (stop, stopped) = bounded::<()>(0);
            let (mut grows, read) = (growth.clone(), read.clone());
            let thread = std::thread::Builder::new().name("counters".into()).spawn(move || {
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    if let Some(now) = read() {
                        grows.add(now);
                    }
                }
                grows
            });
            match thread {
                Ok(thread) => Growing::There { thread, stop },
                // Without a thread a short window is still right.
                Err(_) => Growing::Here(growth),
            }
        } else {
            Growing::Here(growth)
        };
        Some(CounterWatch { read: Box::new(read), growth })
    }

    /// Ends with a reading; `None` when there is none any more.
    pub fn finish(self) -> Option<Growth> {
        let mut growth = match self.growth {
            Growing::Here(growth) => growth,
            Growing::There { thread, stop } => {
                drop(stop);
                thread.join().ok()?
            }
        };
        growth.add((self.read)()?);
        Some(growth)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use testing::wait::wait_until;

    use super::super::reading::tests::{sysfs, write};
    use super::*;

    const COUNTER: &str = "hw_counters/rx_write_requests";

    #[test]
    fn a_counter_that_wraps_twice_in_a_window_counts_in_full() {
        let root = sysfs("mlx5_0", &[(COUNTER, "0")]);
        let path = root.path().to_owned();
        let reads = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&reads);
        let watch = CounterWatch::every(Duration::from_millis(1), move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Reading::of_kernel(&path, Some("mlx5_core"), "mlx5_0", 1)
        })
        .unwrap();
        let total = 10_000_000_000_u64;
        for step in 1..=10_u64 {
            let value = (total / 10 * step) & u64::from(u32::MAX);
            // Whole or not at all, as a file of the kernel is.
            write(root.path(), "mlx5_0", &[("next", &value.to_string())]);
            let port = root.path().join("sys/class/infiniband/mlx5_0/ports/1");
            std::fs::rename(port.join("next"), port.join(COUNTER)).unwrap();
            // The second reading from now on begins when the first has been added.
            let before = reads.load(Ordering::SeqCst);
            wait_until("two readings", Duration::from_secs(1), || {
                reads.load(Ordering::SeqCst) >= before + 2
            });
        }
        let grown = watch.finish().unwrap().by_counter();
        assert_eq!(grown["rx_write_requests"], Some(total));
    }

    #[test]
    fn counters_that_never_wrap_are_read_twice() {
        let reads = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&reads);
        let watch = CounterWatch::every(Duration::from_millis(1), move || {
            let so_far = counted.fetch_add(1, Ordering::SeqCst);
            Some(Reading::of_embedded(vec![("timeouts", 10 + so_far * 3)]))
        })
        .unwrap();
        assert!(matches!(watch.growth, Growing::Here(_)));
        assert_eq!(watch.finish().unwrap().by_counter()["timeouts"], Some(3));
        assert_eq!(reads.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_device_without_counters_is_not_watched() {
        assert!(CounterWatch::start(|| None).is_none());
    }
}
