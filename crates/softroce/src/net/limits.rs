//! Limits of a direction, as adapters and networks have them, and their text: `pps=1M,qp_rate=200K,pause=20%/1ms`.
//! [`Impairment`](super::impairment::Impairment) has packets wait for them.

use std::collections::{HashMap, VecDeque};

use super::faults::{FaultsError, probability, rate_bits_per_s, rate_text, time_ns, time_text};

/// The limits of one direction besides its rate in bits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Packets a second, whatever their size.
    pub packets_per_s: Option<f64>,
    pub qp_rate: Option<QpRate>,
    /// How much longer a message occupies the device whose length is no multiple of 64 bytes.
    pub unaligned_ns: Option<u64>,
    pub qp_contexts: Option<QpContexts>,
    pub pause: Option<Pause>,
    /// Only without `slow_path`.
    pub paths: Option<Paths>,
    pub slow_path: Option<SlowPath>,
}

/// What one QP can do, however little the others do: they have the device meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QpRate {
    PacketsPerS(f64),
    BitsPerS(f64),
}

/// Lengths of messages that cost nothing more: a cache line's.
pub const ALIGNED_BYTES: usize = 64;

/// A cache of QP contexts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpContexts {
    pub most: u32,
    /// How much longer a packet occupies the device when the context of its QP is missing.
    pub miss_ns: u64,
}

/// When nothing leaves: for a share of each period, at its beginning. Periods begin with the opening of the device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// From 0 to less than 1.
    pub share: f64,
    pub period_ns: u64,
}

/// Paths that packets are sprayed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// At least 2.
    pub count: u32,
    /// The extra delay of the slowest path; the fastest has none, and the others lie evenly between.
    pub spread_ns: u64,
}

/// The slow one of equal-cost paths: that of all flows whose UDP source port leaves this remainder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowPath {
    pub remainder: u16,
    pub paths: u16,
    pub rate_bits_per_s: f64,
}

/// The most contexts of a cache: a device has no more QPs.
const MOST_CONTEXTS: u32 = 1 << 16;

impl Limits {
    /// Sets the limit of this name. Whether there is one.
    pub(super) fn set(&mut self, part: &str, name: &str, value: &str) -> Result<bool, FaultsError> {
        match name {
            "pps" => {
                self.packets_per_s = some(part, rate_bits_per_s(part, value).ok(), remedy::PPS)?;
            }
            "qp_rate" => self.qp_rate = some(part, QpRate::from_text(value), remedy::QP_RATE)?,
            "unaligned" => self.unaligned_ns = Some(time_ns(part, value)?),
            "qp_cache" => {
                self.qp_contexts = some(part, QpContexts::from_text(value), remedy::QP_CACHE)?;
            }
            "pause" => self.pause = some(part, Pause::from_text(value), remedy::PAUSE)?,
            "paths" => self.paths = some(part, Paths::from_text(value), remedy::PATHS)?,
            "slow_path" => {
                self.slow_path = some(part, SlowPath::from_text(value), remedy::SLOW_PATH)?;
            }
            _ => return Ok(false),
        }
        if self.paths.is_some() && self.slow_path.is_some() {
            return Err(FaultsError::new(part, remedy::PATHS_OR_ONE));
        }
        Ok(true)
    }

    /// Each limit with its value's text.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let pps = self.packets_per_s.map(rate_text);
        let qp_rate = self.qp_rate.map(|rate| match rate {
            QpRate::PacketsPerS(per_s) => rate_text(per_s),
            QpRate::BitsPerS(per_s) => format!("{}:bits", rate_text(per_s)),
        });
        let qp_contexts =
            self.qp_contexts.map(|cache| format!("{}:{}", cache.most, time_text(cache.miss_ns)));
        let pause =
            self.pause.map(|pause| format!("{}/{}", pause.share, time_text(pause.period_ns)));
        let paths =
            self.paths.map(|paths| format!("{}~{}", paths.count, time_text(paths.spread_ns)));
        let slow_path = self.slow_path.map(|path| {
            format!("{}/{}:{}", path.remainder, path.paths, rate_text(path.rate_bits_per_s))
        });
        [
            ("pps", pps),
            ("qp_rate", qp_rate),
            ("unaligned", self.unaligned_ns.map(time_text)),
            ("qp_cache", qp_contexts),
            ("pause", pause),
            ("paths", paths),
            ("slow_path", slow_path),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// What was read; an error where nothing was.
fn some<T>(part: &str, read: Option<T>, remedy: &'static str) -> Result<Option<T>, FaultsError> {
    if read.is_some() { Ok(read) } else { Err(FaultsError::new(part, remedy)) }
}

impl QpRate {
    fn from_text(text: &str) -> Option<QpRate> {
        let of_bits = text.strip_suffix(":bits");
        let per_s = rate_bits_per_s(text, of_bits.unwrap_or(text)).ok()?;
        Some(if of_bits.is_some() { QpRate::BitsPerS(per_s) } else { QpRate::PacketsPerS(per_s) })
    }
}

impl QpContexts {
    fn from_text(text: &str) -> Option<QpContexts> {
        let (most, miss) = text.split_once(':')?;
        let most =
            most.trim().parse::<u32>().ok().filter(|most| (1..=MOST_CONTEXTS).contains(most))?;
        Some(QpContexts { most, miss_ns: time_ns(text, miss.trim()).ok()? })
    }
}

impl Pause {
    fn from_text(text: &str) -> Option<Pause> {
        let (share, period) = text.split_once('/')?;
        let share = probability(text, share.trim()).ok()?;
        let pause = Pause { share, period_ns: time_ns(text, period.trim()).ok()? };
        (pause.lasts_ns() < pause.period_ns).then_some(pause)
    }

    fn lasts_ns(&self) -> u64 {
        (self.share * self.period_ns as f64).round() as u64
    }

    /// The number of the pause at this time after the opening, and how much longer it lasts; in picoseconds.
    pub(super) fn at(&self, since_opening_ps: u128) -> Option<(u128, u128)> {
        let period_ps = u128::from(self.period_ns.max(1)) * 1000;
        let end_ps = u128::from(self.lasts_ns()) * 1000;
        let left_ps = end_ps.saturating_sub(since_opening_ps % period_ps);
        (left_ps > 0).then_some((since_opening_ps / period_ps, left_ps))
    }
}

impl Paths {
    fn from_text(text: &str) -> Option<Paths> {
        let (count, spread) = text.split_once('~')?;
        let spread_ns = time_ns(text, spread.trim()).ok()?;
        let paths = Paths { count: count.trim().parse().ok()?, spread_ns };
        Some(paths).filter(|paths| paths.count >= 2)
    }

    /// The extra delay of a path, by its number from 0.
    pub(super) fn delay_ns(&self, path: u32) -> u64 {
        let gaps = u128::from(self.count.saturating_sub(1).max(1));
        (u128::from(self.spread_ns) * u128::from(path) / gaps) as u64
    }
}

impl SlowPath {
    fn from_text(text: &str) -> Option<SlowPath> {
        let (path, rate) = text.split_once(':')?;
        let (remainder, paths) = path.split_once('/')?;
        let (remainder, paths) =
            (remainder.trim().parse::<u16>().ok()?, paths.trim().parse::<u16>().ok()?);
        let rate_bits_per_s = rate_bits_per_s(text, rate.trim()).ok()?;
        (remainder < paths).then_some(SlowPath { remainder, paths, rate_bits_per_s })
    }

    /// Whether packets from this UDP port take it.
    pub(super) fn has(&self, source_port: u16) -> bool {
        source_port.checked_rem(self.paths) == Some(self.remainder)
    }
}

/// The contexts that are in a cache: those of the QPs that were used last. Its memory does not grow.
pub(super) struct QpCache {
    pub contexts: QpContexts,
    /// The last use of each QP. With room for twice as many, the table never has to grow.
    last_uses: HashMap<u32, u64>,
    /// Uses by QPN and number, oldest first. Some are no longer the last one of their QP.
    uses: VecDeque<(u32, u64)>,
    number: u64,
}

impl QpCache {
    pub fn new(contexts: QpContexts) -> QpCache {
        let room = 2 * (contexts.most as usize + 1);
        let (last_uses, uses) = (HashMap::with_capacity(room), VecDeque::with_capacity(room));
        QpCache { contexts, last_uses, uses, number: 0 }
    }

    /// Uses the context of a QP. Whether it was there.
    pub fn has(&mut self, qpn: u32) -> bool {
        if self.uses.back().is_some_and(|(last, _)| *last == qpn) {
            return true;
        }
        // Leaves at most half, so that a packet's share of this does not depend on the size.
        if self.uses.len() == self.uses.capacity() {
            self.uses.retain(|(used, number)| self.last_uses.get(used) == Some(number));
        }
        self.number += 1;
        self.uses.push_back((qpn, self.number));
        let was_there = self.last_uses.insert(qpn, self.number).is_some();
        while self.last_uses.len() > self.contexts.most as usize
            && let Some((oldest, number)) = self.uses.pop_front()
        {
            if self.last_uses.get(&oldest) == Some(&number) {
                self.last_uses.remove(&oldest);
            }
        }
        was_there
    }
}

/// How to write what is wrong.
mod remedy {
    pub const PPS: &str = "is not a rate of packets: give packets a second above 0, as in `pps=1M`";
    pub const QP_RATE: &str = "is not a rate of a QP: give packets a second above 0, as in `qp_rate=200K`, or bits a second, as in \
     `qp_rate=1G:bits`";
    pub const QP_CACHE: &str = "is not a cache of QP contexts: give how many it holds, from 1 to 65536, and how long a packet \
     waits for a missing one, as in `qp_cache=64:2us`";
    pub const PAUSE: &str = "is not a pause: give its share of each period, less than 100%, and the period, as in \
     `pause=20%/1ms`; to stop all packets use `blackhole` or `drop`";
    pub const PATHS: &str = "is not a number of paths with a delay: give how many there are, from 2, and the extra delay of the \
     slowest, as in `paths=4~30us`";
    pub const SLOW_PATH: &str = "is not a slow path: give a remainder of source ports, the number of paths they are divided by, \
     and the path's rate, as in `slow_path=1/4:200M`";
    pub const PATHS_OR_ONE: &str = "contradicts the other: with `paths` each packet takes any path, with `slow_path` each flow \
     keeps its own; leave one out";
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::super::Faults;
    use super::*;

    /// Any limits that go together.
    pub fn some_limits() -> impl Strategy<Value = Limits> {
        let rates = || (1..u64::MAX).prop_map(|thousandths| thousandths as f64 / 1000.0);
        let caches = (1..=MOST_CONTEXTS, any::<u64>())
            .prop_map(|(most, miss_ns)| QpContexts { most, miss_ns });
        let pauses =
            (0.0..0.9, 10..1_u64 << 60).prop_map(|(share, period_ns)| Pause { share, period_ns });
        let sprayed =
            (2..u32::MAX, any::<u64>()).prop_map(|(count, spread_ns)| Paths { count, spread_ns });
        let slow_paths = (1..u16::MAX, any::<u16>(), rates()).prop_map(|(paths, number, rate)| {
            SlowPath { remainder: number % paths, paths, rate_bits_per_s: rate }
        });
        let ways = prop_oneof![
            Just((None, None)),
            sprayed.prop_map(|paths| (Some(paths), None)),
            slow_paths.prop_map(|slow_path| (None, Some(slow_path))),
        ];
        let qp_rates =
            prop_oneof![rates().prop_map(QpRate::PacketsPerS), rates().prop_map(QpRate::BitsPerS)];
        let of_qps = (prop::option::of(qp_rates), prop::option::of(caches));
        let engines = (prop::option::of(rates()), prop::option::of(any::<u64>()));
        let some = (engines, of_qps, prop::option::of(pauses), ways);
        some.prop_map(|(of_device, (qp_rate, qp_contexts), pause, (paths, slow_path))| Limits {
            packets_per_s: of_device.0,
            qp_rate,
            unaligned_ns: of_device.1,
            qp_contexts,
            pause,
            paths,
            slow_path,
        })
    }

    #[test]
    fn engines_and_caches_are_of_both_directions_and_the_network_is_of_the_sending_one() {
        let text = "pps=1M,qp_rate=1G:bits,rx.qp_rate=200K,unaligned=3us,qp_cache=64:2us,pause=20%/1ms,rx.pause=5%/100us,rx.paths=4~30us,slow_path=1/4:200M";
        let faults: Faults = text.parse().unwrap();
        let both = Limits {
            packets_per_s: Some(1e6),
            qp_contexts: Some(QpContexts { most: 64, miss_ns: 2_000 }),
            ..Limits::default()
        };
        let slow_path = SlowPath { remainder: 1, paths: 4, rate_bits_per_s: 2e8 };
        let transmit = Limits {
            qp_rate: Some(QpRate::BitsPerS(1e9)),
            unaligned_ns: Some(3_000),
            pause: Some(Pause { share: 0.2, period_ns: 1_000_000 }),
            slow_path: Some(slow_path),
            ..both
        };
        let receive = Limits {
            qp_rate: Some(QpRate::PacketsPerS(2e5)),
            pause: Some(Pause { share: 0.05, period_ns: 100_000 }),
            paths: Some(Paths { count: 4, spread_ns: 30_000 }),
            ..both
        };
        assert_eq!((faults.transmit.limits, faults.receive.limits), (transmit, receive));
        let shown = "seed=0,pps=1M,tx.qp_rate=1G:bits,tx.unaligned=3us,qp_cache=64:2us,tx.pause=0.2/1ms,\
                    tx.slow_path=1/4:200M,rx.qp_rate=200K,rx.pause=0.05/100us,rx.paths=4~30us";
        assert_eq!(faults.to_string(), shown);
    }

    #[test]
    fn a_cache_keeps_the_contexts_that_were_used_last() {
        let mut cache = QpCache::new(QpContexts { most: 2, miss_ns: 0 });
        let uses = [7, 7, 8, 7, 9, 7, 8, 9, 9];
        let found = uses.map(|qpn| cache.has(qpn));
        // 9 takes the place of 8, 8 that of 9, and 9 that of 7.
        assert_eq!(found, [false, true, false, true, false, true, false, false, true]);
        // In turns, one QP more than there is room for: none is ever found. As many as there is room for: all are.
        let mut large = QpCache::new(QpContexts { most: 64, miss_ns: 0 });
        let (uses_room, table_room) = (large.uses.capacity(), large.last_uses.capacity());
        for (qps, expected) in [(65, 0), (64, 64 * 99)] {
            let hits = (0..100 * qps).filter(|turn| large.has(1000 * qps + turn % qps)).count();
            assert_eq!(hits, expected, "{qps}");
        }
        assert!(large.uses.capacity() == uses_room && large.last_uses.capacity() <= table_room);
    }
}
