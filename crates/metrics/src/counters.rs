//! A device's own counters: read from sysfs or from the embedded device, subtracted as wide as they are, watched in a long
//! window so that none wraps twice, and told by what they mean where the driver is known. Whether a device would show lost
//! packets is decided here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use results::model::{LossUnknownReason, PathEventKind};

use crate::driver_counters::{self as drivers, EMBEDDED_DRIVER, Kind};

/// Where a counter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Driver,
    /// `PortCounters` of the InfiniBand specification, whose names and widths are the same for all drivers.
    PortCounters,
    /// The network interface of the port (`ethtool -S`).
    Interface,
}

/// All counters of a port at one moment. Names and units are the driver's: `port_xmit_data` and `port_rcv_data`
/// count words of 4 bytes, for instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The kernel's driver, [`EMBEDDED_DRIVER`], or nothing where it is not known.
    driver: String,
    values: BTreeMap<String, (Source, u64)>,
}

impl Reading {
    /// What the kernel shows of a port and its device, in files below `root`. `driver` is the name of the driver there. `None`
    /// when the device shows none, as one that the kernel does not know.
    pub fn of_kernel(root: &Path, driver: Option<&str>, device: &str, port: u8) -> Option<Reading> {
        let device_folder = root.join("sys/class/infiniband").join(device);
        let port_folder = device_folder.join("ports").join(port.to_string());
        let mut values = BTreeMap::new();
        // Where several have a name, the first one counts.
        for (folder, source) in [
            (port_folder.join("hw_counters"), Source::Driver),
            // Some are of the whole device, as mana's of ECN.
            (device_folder.join("hw_counters"), Source::Driver),
            (port_folder.join("counters"), Source::PortCounters),
        ] {
            let Ok(entries) = fs::read_dir(folder) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                // `lifespan` is how long the kernel caches the others, in milliseconds.
                if name == "lifespan" {
                    continue;
                }
                // Some counters cannot be read on some devices (EINVAL), or are no number ("N/A").
                let Ok(text) = fs::read_to_string(entry.path()) else {
                    continue;
                };
                if let Ok(value) = text.trim().parse() {
                    values.entry(name).or_insert((source, value));
                }
            }
        }
        (!values.is_empty())
            .then(|| Reading { driver: driver.unwrap_or_default().to_owned(), values })
    }

    pub fn of_embedded(counters: Vec<(&'static str, u64)>) -> Reading {
        let values =
            counters.into_iter().map(|(name, value)| (name.to_owned(), (Source::Driver, value)));
        Reading { driver: EMBEDDED_DRIVER.to_owned(), values: values.collect() }
    }

    /// Adds counters of the driver's that the kernel shows no file of.
    #[must_use]
    pub fn with_optional(mut self, counters: Vec<(String, u64)>) -> Reading {
        let new = counters.into_iter().map(|(name, value)| (name, (Source::Driver, value)));
        self.values.extend(new);
        self
    }

    /// Adds counters of the port's network interface; where both have a name, the device's counts.
    #[must_use]
    pub fn with_interface(mut self, counters: &[(String, u64)]) -> Reading {
        for (name, value) in counters {
            self.values.entry(name.clone()).or_insert((Source::Interface, *value));
        }
        self
    }

    /// Whether some counter of the driver's own would show lost packets, TCP's or others.
    fn shows_loss(&self, of_tcp: bool) -> bool {
        self.values
            .iter()
            .filter(|(_, (source, _))| *source == Source::Driver)
            .filter(|(name, _)| of_tcp || !drivers::is_of_tcp(&self.driver, name))
            .filter_map(|(name, _)| self.meaning(name))
            .any(PathEventKind::follows_loss)
    }

    /// Whether the names of the driver's counters are known.
    fn is_of_known_driver(&self) -> bool {
        drivers::is_driver(&self.driver)
    }

    /// Counters with a known meaning that are not 0: meaning, name and value, by meaning.
    pub fn events(&self) -> Vec<(PathEventKind, &str, u64)> {
        let mut events: Vec<_> = self
            .values
            .iter()
            .filter(|(_, (_, value))| *value > 0)
            .filter_map(|(name, (_, value))| Some((self.meaning(name)?, name.as_str(), *value)))
            .collect();
        events.sort();
        events
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.values.keys()
    }

    /// A counter's value; `None` where it was not read.
    fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).map(|(_, value)| *value)
    }

    fn kind(&self, name: &str) -> Kind {
        match self.values.get(name) {
            Some((Source::PortCounters, _)) => drivers::port_counter(name),
            Some((Source::Interface, _)) => Kind::Wraps(64),
            _ => drivers::driver_counter(&self.driver, name),
        }
    }

    /// What the growth of a counter says; `None` where that is not known.
    pub(crate) fn meaning(&self, name: &str) -> Option<PathEventKind> {
        match self.values.get(name)?.0 {
            Source::PortCounters => drivers::meaning_of_port_counter(name),
            Source::Driver => drivers::meaning(&self.driver, name),
            Source::Interface => drivers::meaning_of_interface_counter(name),
        }
    }
}

/// For how long the kernel keeps a port's counters before it asks the device for them again, in nanoseconds: the `lifespan`
/// below `root`, of which it shows milliseconds.
pub fn lifespan_ns(root: &Path, device: &str, port: u8) -> u64 {
    let device_folder = root.join("sys/class/infiniband").join(device);
    [format!("ports/{port}"), String::new()]
        .iter()
        .filter_map(|folder| {
            fs::read_to_string(device_folder.join(folder).join("hw_counters/lifespan")).ok()
        })
        .filter_map(|text| text.trim().parse::<u32>().ok())
        .max()
        .map_or(0, |ms| u64::from(ms) * 1_000_000)
}

/// Why lost packets would not be seen in what a device shows, whose packets are TCP's if `is_iwarp`; `None` where they would.
pub fn why_loss_is_unknown(reading: Option<&Reading>, is_iwarp: bool) -> Option<LossUnknownReason> {
    let Some(reading) = reading else {
        return Some(LossUnknownReason::NoCounters);
    };
    match (reading.shows_loss(is_iwarp), reading.is_of_known_driver()) {
        (true, _) => None,
        (false, true) => Some(LossUnknownReason::NotCounted),
        (false, false) => Some(LossUnknownReason::UnknownDriver),
    }
}

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
                let grown = before
                    .zip(after)
                    .and_then(|(before, after)| step(now.kind(name), before, after));
                let so_far = self.grown.get(name).copied().flatten();
                (name.clone(), so_far.zip(grown).map(|(sum, step)| sum.saturating_add(step)))
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
    fn needs_watching(&self) -> bool {
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
        let first = Growth::since(read()?);
        let mut growth = Growing::Here(first.clone());
        if first.needs_watching() {
            let (stop, stopped) = bounded::<()>(0);
            let (mut grows, read_again) = (first, read.clone());
            let spawned = thread::Builder::new().name("counters".into()).spawn(move || {
                while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    if let Some(now) = read_again() {
                        grows.add(now);
                    }
                }
                grows
            });
            // Without a thread a short window is still right.
            if let Ok(thread) = spawned {
                growth = Growing::There { thread, stop };
            }
        }
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
#[path = "counters_tests.rs"]
mod tests;
