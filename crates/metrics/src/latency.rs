//! What latency is measured with: the clock of the data path, whose raw readings are turned into nanoseconds afterwards, and
//! recorders of fixed memory that take a sample in a nanosecond or two. Recorders are merged after the window; percentiles
//! since the last look can be had while they are written.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize};

use hdrhistogram::Histogram;
use results::model::{Latency, can_tell};
use zerocopy::FromZeros;

/// A monotonic clock whose readings are cheap (about 9 ns with a usable time-stamp counter, 22 ns
/// without). On x86 making the first one of a process calibrates the counter for up to 200 ms, so make it
/// before anything is measured; on ARM64 the processor says the counter's frequency. Clones are free and agree
/// with each other.
#[derive(Clone, Debug)]
pub struct Clock {
    source: Source,
    /// Nanoseconds of 2^[`SCALE_BITS`] raw units.
    scale: u64,
    is_virtual: bool,
}

/// Where readings come from, which says what a tick is.
#[derive(Clone, Debug)]
enum Source {
    /// A counter that was calibrated, the kernel's clock, or virtual time.
    Quanta(quanta::Clock),
    /// ARM64's counter, which all cores share: `CNTVCT_EL0`.
    #[cfg(target_arch = "aarch64")]
    Counter,
}

/// Leaves 24 bits above for the length of a unit, and the rounding of `scale` below a part in 10^12.
const SCALE_BITS: u32 = 40;

/// Frequencies that a counter may have, in Hz: ARM64's have 1 MHz to 1 GHz. Firmware that forgot to set it leaves any
/// number, often 0.
#[cfg(any(test, target_arch = "aarch64"))]
const FREQUENCIES_HZ: std::ops::RangeInclusive<u64> = 1_000_000..=10_000_000_000;

/// Nanoseconds of 2^[`SCALE_BITS`] ticks of a counter with this frequency; `None` if no counter has it.
#[cfg(any(test, target_arch = "aarch64"))]
fn scale_of(frequency_hz: u64) -> Option<u64> {
    let frequency_hz =
        FREQUENCIES_HZ.contains(&frequency_hz).then_some(u128::from(frequency_hz))?;
    u64::try_from(((1_000_000_000_u128 << SCALE_BITS) + frequency_hz / 2) / frequency_hz).ok()
}

impl Clock {
    pub fn new() -> Self {
        #[cfg(target_arch = "aarch64")]
        {
            use aarch64_cpu::registers::{CNTFRQ_EL0, Readable};
            if let Some(scale) = scale_of(CNTFRQ_EL0.get()) {
                return Clock { source: Source::Counter, scale, is_virtual: false };
            }
        }
        Clock::with_quanta(quanta::Clock::new(), false)
    }

    /// A clock that stands still until its time is advanced. Its readings are nanoseconds.
    pub fn of_virtual_time() -> (Self, VirtualTime) {
        let (inner, source) = quanta::Clock::mock();
        let time = VirtualTime(source);
        // A window's start of 0 means that it has none.
        time.advance(1_000_000_000);
        (Clock::with_quanta(inner, true), time)
    }

    fn with_quanta(clock: quanta::Clock, is_virtual: bool) -> Self {
        let scale = clock.delta_as_nanos(0, 1 << SCALE_BITS);
        Clock { source: Source::Quanta(clock), scale, is_virtual }
    }

    /// Whether its time is advanced by a test, to which the system's other clocks have no relation.
    pub fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// A reading in units of this clock; only [`Clock::ns_between`] gives it a meaning.
    #[inline]
    pub fn raw(&self) -> u64 {
        match &self.source {
            Source::Quanta(clock) => clock.raw(),
            #[cfg(target_arch = "aarch64")]
            Source::Counter => {
                use aarch64_cpu::registers::{CNTVCT_EL0, Readable};
                CNTVCT_EL0.get()
            }
        }
    }

    /// A reading in nanoseconds since some time that all clocks of this process share.
    pub fn ns(&self, raw: u64) -> u64 {
        self.ns_between(0, raw)
    }

    /// The reading `ns` after one, or up to a tick less: ticks have 1 to 40 ns.
    pub fn raw_after(&self, start_raw: u64, ns: u64) -> u64 {
        let ticks = (u128::from(ns) << SCALE_BITS) / u128::from(self.scale.max(1));
        start_raw.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX))
    }

    /// Nanoseconds from one raw reading to a later one; 0 when `end_raw` is the earlier, as two
    /// cores' counters may differ by a few ticks.
    #[inline]
    pub fn ns_between(&self, start_raw: u64, end_raw: u64) -> u64 {
        // One multiplication without a branch on the kind of clock: this runs for every sample.
        let ticks = end_raw.saturating_sub(start_raw);
        ((u128::from(ticks) * u128::from(self.scale)) >> SCALE_BITS) as u64
    }
}

/// The time of a clock made by [`Clock::of_virtual_time`] and of its clones.
#[derive(Clone, Debug)]
pub struct VirtualTime(Arc<quanta::Mock>);

impl VirtualTime {
    pub fn advance(&self, ns: u64) {
        self.0.increment(ns);
    }

    /// What [`Clock::raw`] of this clock and its clones reads now.
    pub fn now_ns(&self) -> u64 {
        self.0.value()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

/// The longest latency that is told apart, in nanoseconds; longer ones count as overflows.
pub const HIGHEST_NS: u64 = 60_000_000_000;

/// Memory that histograms of all recorders of a run may take before they become coarser, in bytes.
pub const MEMORY_LIMIT_BYTES: usize = 64 << 20;

/// How finely latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Values are within 1 % of what was recorded.
    Two,
    /// Values are within 0.1 % of what was recorded.
    Three,
}

/// A recorder has at most so many blocks.
const MOST_BLOCKS: usize = 32;

impl Digits {
    /// Two to this power counters cover each power of two and make a block, and how many blocks there are in all.
    fn cut(self) -> (u32, usize) {
        match self {
            Digits::Two => (7, 30),
            Digits::Three => (10, 27),
        }
    }

    /// Blocks of a recorder whose memory is there before the first sample. Of many recorders only what latencies of
    /// one QP mostly lie in, from the shortest to 16 times as much.
    fn ready_blocks(self) -> usize {
        match self {
            Digits::Two => 4,
            Digits::Three => 27,
        }
    }

    /// Memory of one recorder, in bytes: of many recorders without the blocks that rare latencies take.
    pub fn recorder_bytes(self) -> usize {
        let (half_magnitude, _) = self.cut();
        (MOST_BLOCKS + (self.ready_blocks() << half_magnitude)) * size_of::<AtomicU32>()
    }
}

/// The finest resolution with which histograms of that many recorders stay within [`MEMORY_LIMIT_BYTES`].
pub fn digits_for(histograms: usize) -> Digits {
    let (half_magnitude, blocks) = Digits::Three.cut();
    let histogram_bytes = (blocks << half_magnitude) * size_of::<u64>();
    if histograms.saturating_mul(histogram_bytes) <= MEMORY_LIMIT_BYTES {
        Digits::Three
    } else {
        Digits::Two
    }
}

/// The counters of a thread's recorders. Latencies of a QP mostly lie within a few powers of two, and each of these has a
/// block of counters: a recorder takes one with its first sample there. There is room for all, which takes memory when
/// it is first used, as zeroed pages do.
pub struct SampleCounters {
    digits: Digits,
    half_magnitude: u32,
    /// Numbers of the blocks of each recorder; 0 where it has none.
    blocks: Box<[AtomicU32]>,
    /// The low bits of the counters, apart from the high ones, so that what samples touch is small. Only the thread of
    /// their recorder writes them, with plain stores; others may read.
    low: Box<[AtomicU32]>,
    high: Box<[AtomicU16]>,
    /// How many recorders and blocks have been given out. Block 0 is nobody's.
    recorders: AtomicUsize,
    taken: AtomicU32,
}

impl SampleCounters {
    /// Room for so many recorders. Pages that samples will need are touched here, so make it on the thread that records:
    /// they are then on that thread's NUMA node, and few samples pay for a page fault.
    pub fn new(digits: Digits, recorders: usize) -> Arc<SampleCounters> {
        const PAGE: usize = 4096 / size_of::<AtomicU32>();
        let (half_magnitude, blocks) = digits.cut();
        let room = (1 + recorders * blocks) << half_magnitude;
        let counters = SampleCounters {
            digits,
            half_magnitude,
            blocks: zeroed(recorders * MOST_BLOCKS),
            low: zeroed(room),
            high: zeroed(room),
            recorders: AtomicUsize::new(0),
            taken: AtomicU32::new(1),
        };
        let ready = (1 + recorders * digits.ready_blocks()) << half_magnitude;
        for page in [&*counters.blocks, counters.low.get(..ready).unwrap_or_default()] {
            page.iter().step_by(PAGE).for_each(|first| first.store(0, Relaxed));
        }
        Arc::new(counters)
    }

    /// The next recorder; those beyond the room record nothing.
    pub fn recorder(self: &Arc<SampleCounters>) -> Samples {
        let number = self.recorders.fetch_add(1, Relaxed);
        let first = number * MOST_BLOCKS;
        Samples { counters: LiveCounters { first, counters: Arc::clone(self) }, overflows: 0 }
    }
}

/// Zeros, in pages that take no memory before they are used.
fn zeroed<T: FromZeros>(length: usize) -> Box<[T]> {
    #[expect(clippy::expect_used, reason = "as with any box: no memory")]
    <[T]>::new_box_zeroed_with_elems(length).expect("memory for recorders")
}

/// Latencies of one QP while its worker runs: counters cut exactly as the histogram's, without its
/// running totals, which the counters give afterwards. A sample costs a third of the histogram's own
/// `record`.
pub struct Samples {
    counters: LiveCounters,
    overflows: u64,
}

impl Samples {
    /// No samples yet, in counters of its own.
    pub fn new(digits: Digits) -> Self {
        SampleCounters::new(digits, 1).recorder()
    }

    /// Adds a sample. One above [`HIGHEST_NS`] is counted there, and as an overflow.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        let mut value = latency_ns.max(1);
        if value > HIGHEST_NS {
            self.overflows += 1;
            value = HIGHEST_NS;
        }
        let LiveCounters { first, counters } = &self.counters;
        let half_magnitude = counters.half_magnitude;
        let one_by_one = (2 << half_magnitude) - 1;
        let bucket = (63 - half_magnitude) - (value | one_by_one).leading_zeros();
        let index = ((u64::from(bucket) << half_magnitude) + (value >> bucket)) as usize;
        let Some(block) = counters.blocks.get(first + (index >> half_magnitude)) else {
            return;
        };
        let number = match block.load(Relaxed) {
            0 => counters.take(block),
            number => number,
        };
        let place = counters.place(number, index);
        if let Some(count) = counters.low.get(place) {
            let next = count.load(Relaxed).wrapping_add(1);
            count.store(next, Relaxed);
            if next == 0 {
                counters.carry(place);
            }
        }
    }

    /// The counters, to be read while samples are added.
    pub fn live(&self) -> LiveCounters {
        self.counters.clone()
    }

    pub fn count(&self) -> u64 {
        self.counters.counts().map(|(_, count)| count).sum()
    }
}

impl SampleCounters {
    #[cold]
    fn take(&self, block: &AtomicU32) -> u32 {
        let number = self.taken.fetch_add(1, Relaxed);
        block.store(number, Relaxed);
        number
    }

    #[cold]
    fn carry(&self, place: usize) {
        if let Some(count) = self.high.get(place) {
            count.store(count.load(Relaxed).saturating_add(1), Relaxed);
        }
    }

    /// The place of a recorder's counter `index` in block `number`.
    fn place(&self, number: u32, index: usize) -> usize {
        ((number as usize) << self.half_magnitude) | index & ((1 << self.half_magnitude) - 1)
    }
}

/// The smallest value that the counter at `index` counts, and how many it counts as one.
fn counted_from(index: u64, half_magnitude: u32) -> (u64, u64) {
    let bucket = (index >> half_magnitude).saturating_sub(1);
    ((index - (bucket << half_magnitude)) << bucket, 1 << bucket)
}

/// The counters of a recorder, which may be being written.
#[derive(Clone)]
pub struct LiveCounters {
    /// Its first place in `counters.blocks`.
    first: usize,
    counters: Arc<SampleCounters>,
}

impl LiveCounters {
    /// The largest value that the counter at `index` counts, in nanoseconds.
    fn highest_ns(&self, index: u64) -> u64 {
        let (value, width) = counted_from(index, self.counters.half_magnitude);
        value + (width - 1)
    }

    /// How many counters there are.
    fn len(&self) -> usize {
        let (half_magnitude, blocks) = self.counters.digits.cut();
        blocks << half_magnitude
    }

    /// The index and the place of each counter of the blocks that it has.
    fn places(&self) -> impl Iterator<Item = (usize, usize)> {
        let half_magnitude = self.counters.half_magnitude;
        let own = self.counters.blocks.get(self.first..self.first + MOST_BLOCKS);
        own.unwrap_or_default()
            .iter()
            .map(|block| block.load(Relaxed))
            .enumerate()
            .filter(|(_, number)| *number > 0)
            .flat_map(move |(block, number)| {
                let first = block << half_magnitude;
                (first..first + (1 << half_magnitude))
                    .map(move |index| (index, self.counters.place(number, index)))
            })
    }

    /// Values that were counted, the smallest of each counter, and how often.
    fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let SampleCounters { half_magnitude, low, high, .. } = &*self.counters;
        self.places().filter_map(move |(index, place)| {
            let low_part = low.get(place)?.load(Relaxed);
            let high_part = high.get(place)?.load(Relaxed);
            let count = u64::from(high_part) << u32::BITS | u64::from(low_part);
            (count > 0).then(|| (counted_from(index as u64, *half_magnitude).0, count))
        })
    }
}

/// Latencies of one QP or of several.
#[derive(Clone, Debug)]
pub struct Recorder {
    histogram: Histogram<u64>,
    overflows: u64,
}

impl Recorder {
    pub fn new(digits: Digits) -> Self {
        let digits = match digits {
            Digits::Two => 2,
            Digits::Three => 3,
        };
        #[expect(clippy::expect_used, reason = "the bounds are constants that tests create")]
        let mut histogram =
            Histogram::new_with_bounds(1, HIGHEST_NS, digits).expect("valid histogram bounds");
        histogram.auto(false);
        histogram.reset();
        Recorder { histogram, overflows: 0 }
    }

    /// Adds a sample. One above [`HIGHEST_NS`] is counted there, and as an overflow.
    #[inline]
    pub fn record(&mut self, latency_ns: u64) {
        if latency_ns > HIGHEST_NS {
            self.overflows += 1;
        }
        self.histogram.saturating_record(latency_ns.clamp(1, HIGHEST_NS));
    }

    /// Forgets all samples, as between warm-up and measurement.
    pub fn clear(&mut self) {
        self.histogram.reset();
        self.overflows = 0;
    }

    /// Adds all samples of a QP.
    fn add(&mut self, samples: &Samples) {
        for (value, count) in samples.counters.counts() {
            self.histogram.saturating_record_n(value, count);
        }
        self.overflows += samples.overflows;
    }

    /// All samples of several QPs in one; `None` of none. The distribution is what counts:
    /// percentiles are read from this, never averaged.
    pub fn merged<'a>(samples: impl IntoIterator<Item = &'a Samples>) -> Option<Recorder> {
        let mut merged: Option<Recorder> = None;
        for of_qp in samples {
            merged.get_or_insert_with(|| Recorder::new(of_qp.counters.counters.digits)).add(of_qp);
        }
        merged
    }

    /// The distribution of the samples, in nanoseconds.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// How many samples were above [`HIGHEST_NS`]; they count there too.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// What a result tells of them; `None` of none.
    pub fn latency(&self) -> Option<Latency> {
        Latency::from_histogram(&self.histogram, self.overflows)
    }

    /// The same in whole nanoseconds and without the histogram, for a result of very many.
    pub fn latency_in_brief(&self) -> Option<Latency> {
        let figures = Latency::without_histogram(&self.histogram, self.overflows)?;
        Some(Latency { mean: figures.mean.round(), stddev: figures.stddev.round(), ..figures })
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }
}

/// Recorders that are read together, one interval after the other.
pub struct IntervalLatency {
    /// Each with its counts at the last look.
    of_recorders: Vec<(LiveCounters, Box<[u32]>)>,
    /// Counts of the interval; memory that is kept from one look to the next.
    interval: Box<[u64]>,
}

impl IntervalLatency {
    /// The first interval begins now. All memory is taken here.
    pub fn new(recorders: Vec<LiveCounters>) -> IntervalLatency {
        let counters = recorders.iter().map(LiveCounters::len).max().unwrap_or(0);
        let mut latency = IntervalLatency {
            of_recorders: recorders
                .into_iter()
                .map(|recorder| {
                    let counts = vec![0; recorder.len()].into();
                    (recorder, counts)
                })
                .collect(),
            interval: vec![0; counters].into(),
        };
        latency.look();
        latency
    }

    /// Counts what came since the last look; returns how many samples.
    fn look(&mut self) -> u64 {
        self.interval.fill(0);
        let mut samples = 0;
        for (recorder, last_counts) in &mut self.of_recorders {
            for (index, place) in recorder.places() {
                if let Some(count) = recorder.counters.low.get(place)
                    && let Some(last) = last_counts.get_mut(index)
                    && let Some(sum) = self.interval.get_mut(index)
                {
                    let now = count.load(Relaxed);
                    // The counter may have passed 2^32 once.
                    let grown = u64::from(now.wrapping_sub(std::mem::replace(last, now)));
                    *sum += grown;
                    samples += grown;
                }
            }
        }
        samples
    }

    /// The 99th percentile of the interval that ends now, in nanoseconds; `None` of too few samples.
    pub fn p99_ns(&mut self) -> Option<u64> {
        let samples = self.look();
        let (recorder, _) = self.of_recorders.first()?;
        // As the histogram does: the smallest value that 99 % do not exceed.
        let mut rank = samples - samples / 100;
        let index = self.interval.iter().position(|&count| {
            rank = rank.saturating_sub(count);
            rank == 0
        })?;
        can_tell(samples, 0.99).then(|| recorder.highest_ns(index as u64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn virtual_time_passes_only_when_it_is_advanced() {
        let (clock, time) = Clock::of_virtual_time();
        let clone = clock.clone();
        let start_raw = clock.raw();
        assert_eq!(clone.raw(), start_raw);
        for ns in [1, 999, 86_400_000_000_000] {
            let before_raw = clock.raw();
            time.advance(ns);
            assert_eq!(clone.ns_between(before_raw, clone.raw()), ns);
            assert_eq!(clock.raw_after(before_raw, ns), clone.raw());
        }
        assert_eq!(time.now_ns(), clock.raw());
    }

    #[test]
    fn a_reading_ahead_is_so_many_nanoseconds_away() {
        let clock = Clock::new();
        let most = 2 + clock.ns_between(0, 1);
        for ns in [0, 1_000, 20_000_000, 7 * 24 * 3600 * 1_000_000_000] {
            let start_raw = clock.raw();
            let distance_ns = clock.ns_between(start_raw, clock.raw_after(start_raw, ns));
            assert!(distance_ns.abs_diff(ns) <= most, "{distance_ns} for {ns}");
        }
        assert_eq!(clock.raw_after(5, u64::MAX), clock.raw_after(5, u64::MAX));
    }

    #[test]
    fn ticks_last_as_the_frequency_says() {
        let clock = |frequency_hz| Clock {
            scale: scale_of(frequency_hz).unwrap(),
            ..Clock::of_virtual_time().0
        };
        for (frequency_hz, tick_ns) in
            [(1_000_000_000, 1), (62_500_000, 16), (25_000_000, 40), (1_000_000, 1000)]
        {
            let clock = clock(frequency_hz);
            assert_eq!(clock.ns_between(3, 4), tick_ns);
            assert_eq!(clock.ns_between(0, frequency_hz * 86_400), 86_400_000_000_000);
            // A time between two ticks is the earlier one's.
            assert_eq!(clock.raw_after(7, 10 * tick_ns), 17);
            assert_eq!(clock.raw_after(7, 11 * tick_ns - 1), 17);
        }
        // 24 MHz: a third of a nanosecond is left of each tick. In a day it is not a nanosecond off.
        assert_eq!(clock(24_000_000).ns_between(0, 24_000_000 * 86_400), 86_400_000_000_000);
        for wrong_hz in [0, 1, 32_768, 100_000_000_000, u64::MAX] {
            assert_eq!(scale_of(wrong_hz), None, "{wrong_hz}");
        }
    }

    #[test]
    fn nanoseconds_are_the_calibrated_clocks() {
        let quanta = quanta::Clock::new();
        let clock = Clock::with_quanta(quanta.clone(), false);
        for ticks in [0, 1, 1_000, 123_456_789, 3_600_000_000_000] {
            let exact = quanta.delta_as_nanos(0, ticks);
            let ours = clock.ns_between(7, 7 + ticks);
            let most = 1 + exact / 1_000_000_000;
            assert!(ours.abs_diff(exact) <= most, "{ours} for {exact}");
        }
    }

    #[test]
    fn readings_in_reverse_order_are_zero_apart() {
        let clock = Clock::new();
        let earlier = clock.raw();
        assert_eq!(clock.ns_between(earlier + 1000, earlier), 0);
        assert_eq!(clock.ns_between(earlier, earlier), 0);
    }

    #[test]
    fn counters_are_those_of_the_histogram() {
        for digits in [Digits::Two, Digits::Three] {
            let histogram = Recorder::new(digits).histogram;
            assert_eq!(histogram.distinct_values(), Samples::new(digits).counters.len());
            assert!(digits.cut().1 <= MOST_BLOCKS);
        }
        let most = MEMORY_LIMIT_BYTES / (27 << 10) / 8;
        assert_eq!(digits_for(most), Digits::Three);
        assert_eq!(digits_for(most + 1), Digits::Two);
        assert_eq!(digits_for(usize::MAX), Digits::Two);
    }

    #[test]
    fn a_counter_passes_two_to_the_power_of_32() {
        let mut samples = Samples::new(Digits::Three);
        samples.record(5);
        let (_, place) = samples.counters.places().nth(5).unwrap();
        samples.counters.counters.low[place].store(u32::MAX - 1, Relaxed);
        (0..3).for_each(|_| samples.record(5));
        assert_eq!(samples.count(), (1 << 32) + 1);
        let recorder = Recorder::merged([&samples]).unwrap();
        assert_eq!(recorder.histogram().count_at(5), (1 << 32) + 1);
        assert_eq!(recorder.count(), (1 << 32) + 1);
    }

    #[test]
    fn what_is_beyond_the_room_is_not_recorded() {
        let counters = SampleCounters::new(Digits::Two, 1);
        let mut recorders = [counters.recorder(), counters.recorder()];
        recorders.iter_mut().for_each(|samples| samples.record(7));
        assert_eq!(recorders.map(|samples| samples.count()), [1, 0]);
    }

    #[test]
    fn overflows_are_counted_and_kept_at_the_upper_end() {
        let mut recorder = Recorder::new(Digits::Two);
        recorder.record(HIGHEST_NS);
        recorder.record(HIGHEST_NS + 1);
        recorder.record(u64::MAX);
        recorder.record(0);
        assert_eq!((recorder.count(), recorder.overflows()), (4, 2));
        assert!(recorder.histogram().max() >= HIGHEST_NS);
        assert_eq!(recorder.histogram().min(), 1);
        recorder.clear();
        assert_eq!((recorder.count(), recorder.overflows()), (0, 0));
    }

    #[test]
    fn nothing_merges_to_nothing() {
        assert!(Recorder::merged([]).is_none());
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        let spread = prop_oneof![
            4 => 1..1_000u64,
            4 => 1_000..10_000_000u64,
            4 => 1..=HIGHEST_NS,
            1 => HIGHEST_NS + 1..=u64::MAX,
        ];
        proptest::collection::vec(spread, 0..400)
    }

    fn recorded(digits: Digits, values: &[u64]) -> Recorder {
        let mut recorder = Recorder::new(digits);
        values.iter().for_each(|&value| recorder.record(value));
        recorder
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn merged_samples_are_the_histogram_that_recording_gives(
            mut parts in proptest::collection::vec(latencies(), 1..5), digits in 0..2,
        ) {
            parts[0].extend([0, 1, 2047, 2048, 4095, HIGHEST_NS - 1, HIGHEST_NS, u64::MAX]);
            let digits = if digits == 0 { Digits::Two } else { Digits::Three };
            let counters = SampleCounters::new(digits, parts.len());
            let mut of_qps: Vec<_> = parts.iter().map(|_| counters.recorder()).collect();
            let longest = parts.iter().map(Vec::len).max().unwrap();
            // In turns, so that their blocks lie between each other's.
            for index in 0..longest {
                for (samples, part) in of_qps.iter_mut().zip(&parts) {
                    part.get(index).into_iter().for_each(|&value| samples.record(value));
                }
            }
            for (samples, part) in of_qps.iter().zip(&parts) {
                prop_assert_eq!(samples.count() as usize, part.len());
                let alone = Recorder::merged([samples]).unwrap();
                let expected = recorded(digits, part);
                prop_assert_eq!(alone.histogram(), expected.histogram());
            }
            let ours = Recorder::merged(&of_qps).unwrap();
            let expected = recorded(digits, &parts.concat());
            prop_assert_eq!(ours.histogram(), expected.histogram());
            prop_assert_eq!(ours.histogram().max(), expected.histogram().max());
            prop_assert_eq!(ours.histogram().min(), expected.histogram().min());
            for percent in 0..=1000 {
                let quantile = f64::from(percent) / 1000.0;
                let [ours, expected] =
                    [&ours, &expected].map(|it| it.histogram().value_at_quantile(quantile));
                prop_assert_eq!(ours, expected);
            }
            prop_assert_eq!(ours.overflows(), expected.overflows());
        }

        #[test]
        fn percentiles_are_within_the_digits(mut values in latencies(), percent in 0.1..100.0f64) {
            prop_assume!(!values.is_empty());
            values.iter_mut().for_each(|value| *value = (*value).min(HIGHEST_NS));
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            for (digits, error) in [(Digits::Two, 0.01), (Digits::Three, 0.001)] {
                let recorder = recorded(digits, &values);
                let ns = recorder.histogram().value_at_quantile(percent / 100.0) as f64;
                prop_assert!(ns >= exact && ns <= exact * (1.0 + error) + 1.0, "{} for {}", ns, exact);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn p99_is_that_of_what_came_since_the_last_look(
            before in proptest::collection::vec(1..50_000_000_u64, 900..1100),
            since in proptest::collection::vec(1..50_000_000_u64, 1000..2000),
            digits in 0..2,
        ) {
            let digits = if digits == 0 { Digits::Two } else { Digits::Three };
            let counters = SampleCounters::new(digits, 2);
            let mut of_qps = [counters.recorder(), counters.recorder()];
            let mut interval = IntervalLatency::new(of_qps.iter().map(Samples::live).collect());
            prop_assert_eq!(interval.p99_ns(), None);
            before.iter().for_each(|&ns| of_qps[0].record(ns));
            prop_assert_eq!(interval.p99_ns().is_some(), before.len() >= 1000);
            let mut alone = Samples::new(digits);
            for (place, &ns) in since.iter().enumerate() {
                of_qps[place % 2].record(ns);
                alone.record(ns);
            }
            let expected = Recorder::merged([&alone]).unwrap().histogram().value_at_quantile(0.99);
            prop_assert_eq!(interval.p99_ns(), Some(expected));
            prop_assert_eq!(interval.p99_ns(), None);
        }
    }
}
