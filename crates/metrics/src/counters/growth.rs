//! What counters grew by between two readings, subtracted as wide as they are, and how a long window is watched so that none
//! wraps twice.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use results::model::PathEventKind;

use super::drivers::Kind;
use super::reading::Reading;

/// What counters grew by from a first reading on, over all that were added since.
#[derive(Clone, Debug)]
pub struct Growth {
    last: Reading,
    /// `None` where the growth is not known.
    grown: BTreeMap<String, Option<u64>>,
}

impl Growth {
    /// Nothing yet, from this reading on.
    pub fn since(first: Reading) -> Growth {
        let names = first.names().filter(|name| counts(&first, name));
        Growth { grown: names.map(|name| (name.clone(), Some(0))).collect(), last: first }
    }

    /// Adds the growth up to this reading. What wrapped in between counts in full where it wrapped once: readings
    /// must not be further apart than a counter takes for half its range.
    pub fn add(&mut self, now: Reading) {
        let names: BTreeSet<&String> = now.names().chain(self.grown.keys()).collect();
        self.grown = names
            .into_iter()
            .filter(|name| counts(&now, name))
            .map(|name| {
                let before = self.last.value(name);
                let after = now.value(name);
                let step = before
                    .zip(after)
                    .and_then(|(before, after)| step(now.kind(name), before, after));
                let so_far = self.grown.get(name).copied().flatten();
                (name.clone(), so_far.zip(step).map(|(sum, step)| sum.saturating_add(step)))
            })
            .collect();
        self.last = now;
    }

    /// Each counter's growth. `None` where it is not known: the counter is at its largest value, went back because
    /// someone cleared it, or was not there all the time.
    pub fn by_counter(&self) -> BTreeMap<String, Option<u64>> {
        self.grown.clone()
    }

    /// What grew and has a meaning: by meaning, the sum and the counters' names.
    pub fn by_meaning(&self) -> BTreeMap<PathEventKind, (u64, Vec<String>)> {
        let mut by_meaning: BTreeMap<PathEventKind, (u64, Vec<String>)> = BTreeMap::new();
        for (name, grown) in &self.grown {
            let (Some(meaning), Some(grown @ 1..)) = (self.last.meaning(name), *grown) else {
                continue;
            };
            let entry = by_meaning.entry(meaning).or_default();
            entry.0 = entry.0.saturating_add(grown);
            entry.1.push(name.clone());
        }
        by_meaning
    }

    pub fn last(&self) -> &Reading {
        &self.last
    }

    /// Whether some counter is so narrow that it may wrap more than once in a long window.
    pub(super) fn needs_watching(&self) -> bool {
        let mut names = self.grown.keys();
        names.any(|name| matches!(self.last.kind(name), Kind::Wraps(bits) if bits < 64))
    }
}

fn counts(reading: &Reading, name: &str) -> bool {
    reading.kind(name) != Kind::Gauge
}

/// From one value to the next; `None` when that is not known.
fn step(kind: Kind, before: u64, after: u64) -> Option<u64> {
    match kind {
        Kind::Wraps(bits) if bits < 64 && before.max(after) >> bits == 0 => {
            let mask = (1 << bits) - 1;
            let grown = after.wrapping_sub(before) & mask;
            // Further forth than back: it was cleared.
            (grown <= mask / 2).then_some(grown)
        }
        Kind::Saturates(bits) if bits < 64 && after == (1 << bits) - 1 => None,
        Kind::Saturates(_) if after == u64::MAX => None,
        _ => after.checked_sub(before),
    }
}

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

    /// What a port's counters grew by over readings of these files.
    fn growth(driver: &str, readings: &[&[(&str, &str)]]) -> Growth {
        let root = sysfs("dev0", readings[0]);
        let read = || Reading::of_kernel(root.path(), Some(driver), "dev0", 1).unwrap();
        let mut growth = Growth::since(read());
        for files in &readings[1..] {
            let _ = std::fs::remove_dir_all(root.path().join("sys"));
            write(root.path(), "dev0", files);
            growth.add(read());
        }
        growth
    }

    fn told(growth: &Growth) -> Vec<(String, Option<u64>)> {
        growth.by_counter().into_iter().collect()
    }

    fn grown(driver: &str, path: &str, values: &[&str]) -> Option<u64> {
        let readings: Vec<_> = values.iter().map(|value| [(path, *value)]).collect();
        let readings: Vec<&[_]> = readings.iter().map(|reading| &reading[..]).collect();
        told(&growth(driver, &readings))[0].1
    }

    #[test]
    fn a_counter_of_32_bits_wraps_where_the_driver_says_so_and_a_cleared_one_is_not_told() {
        let (narrow, wide) = ("hw_counters/out_of_sequence", "hw_counters/np_cnp_sent");
        let (errors, data) = ("counters/port_rcv_errors", "counters/port_xmit_data");
        for (driver, counter, values, expected) in [
            ("mlx5_core", narrow, &["4294967290", "4"][..], Some(10)),
            ("mlx5_core", narrow, &["4294967295", "0", "0"], Some(1)),
            ("bnxt_en", narrow, &["4294967290", "4"], None),
            ("bnxt_en", narrow, &["4294967290", "4294967300"], Some(10)),
            ("mlx5_core", wide, &["4294967290", "4"], None),
            ("mlx5_core", narrow, &["9", "2"], None),
            ("mlx5_core", narrow, &["9", "2", "700"], None),
            ("rdma_rxe", "hw_counters/sent_pkts", &["9", "2"], None),
            ("mlx5_core", "counters/port_rcv_data", &["9", "2"], None),
            ("mlx5_core", errors, &["65500", "65534"], Some(34)),
            ("mlx5_core", data, &["4294967295", "4294967299"], Some(4)),
            // The driver's own of the same name is another, and does not saturate.
            ("rdma_rxe", "hw_counters/link_downed", &["3", "255"], Some(252)),
        ] {
            let told = grown(driver, counter, values);
            assert_eq!(told, expected, "{driver} {counter} {values:?}");
        }
    }

    #[test]
    fn what_wrapped_past_its_start_counts_in_full_when_it_was_read_in_between() {
        let counter = "hw_counters/rx_write_requests";
        let often = "4000000000 1000000000 3000000000 500000000 2500000000 4100000000";
        let often: Vec<&str> = often.split(' ').collect();
        let whole = 2 * (1_u64 << 32) + 4_100_000_000 - 4_000_000_000;
        assert_eq!(grown("mlx5_core", counter, &often), Some(whole));
        // Two wraps between two readings leave no trace: only half a range apart are they told from each other.
        let seldom = [often[0], often[5]];
        assert_eq!(grown("mlx5_core", counter, &seldom), Some(100_000_000));
    }

    #[test]
    fn a_counter_at_its_largest_value_is_not_told() {
        for (name, before, largest) in [
            ("port_rcv_errors", "65500", "65535"),
            ("port_rcv_errors", "65535", "65535"),
            ("link_downed", "3", "255"),
            ("local_link_integrity_errors", "1", "15"),
            ("port_xmit_data", "9", "4294967295"),
            ("unicast_xmit_packets", "9", "18446744073709551615"),
        ] {
            let path = format!("counters/{name}");
            for driver in ["mlx5_core", "an unknown one"] {
                assert_eq!(grown(driver, &path, &[before, largest]), None, "{name}");
            }
        }
    }

    #[test]
    fn what_was_not_there_all_the_time_is_not_told_and_a_gauge_never() {
        let [packets, gone, new, gauge] =
            ["rx_pkts", "gone", "new", "active_qps"].map(|name| format!("hw_counters/{name}"));
        let growth = growth(
            "bnxt_en",
            &[
                &[(&packets, "5"), (&gone, "1"), (&gauge, "7")],
                &[(&packets, "12"), (&new, "4"), (&gauge, "2")],
                &[(&packets, "12"), (&new, "6"), (&gone, "3")],
            ],
        );
        let expected = [("gone", None), ("new", None), ("rx_pkts", Some(7))];
        assert_eq!(told(&growth), expected.map(|(name, grown)| (name.to_owned(), grown)));
    }

    #[test]
    fn growth_is_summed_by_meaning() {
        let readings = [["5", "1", "7", "7"], ["8", "3", "99", "7"]].map(|values| {
            let [retries, duplicates, sent, not_ready] = values;
            [
                ("hw_counters/completer_retry_err", retries),
                ("hw_counters/duplicate_request", duplicates),
                ("hw_counters/sent_pkts", sent),
                ("hw_counters/send_rnr_err", not_ready),
            ]
        });
        let growth = growth("rdma_rxe", &[&readings[0], &readings[1]]);
        let names = ["completer_retry_err", "duplicate_request"].map(str::to_owned);
        let resent = [(PathEventKind::Resent, (5, names.to_vec()))];
        assert_eq!(growth.by_meaning(), resent.into());
    }

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
