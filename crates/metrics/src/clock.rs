//! The clock of the data path: raw readings of the CPU's counter, turned into nanoseconds afterwards. A test has one
//! whose time it advances by itself.

use std::sync::Arc;

/// A monotonic clock whose readings are cheap (about 9 ns with a usable time-stamp counter, 22 ns
/// without). Making the first one of a process calibrates the counter for up to 200 ms, so make it
/// before anything is measured; clones are free and agree with each other.
#[derive(Clone, Debug)]
pub struct Clock {
    inner: quanta::Clock,
    /// Nanoseconds of 2^[`SCALE_BITS`] raw units.
    scale: u64,
    is_virtual: bool,
}

/// Leaves 24 bits above for the length of a unit, and the rounding of `scale` below a part in 10^12.
const SCALE_BITS: u32 = 40;

impl Clock {
    pub fn new() -> Self {
        let inner = quanta::Clock::new();
        Clock::with_inner(inner, false)
    }

    /// A clock that stands still until its time is advanced. Its readings are nanoseconds.
    pub fn of_virtual_time() -> (Self, VirtualTime) {
        let (inner, source) = quanta::Clock::mock();
        let time = VirtualTime(source);
        // A window's start of 0 means that it has none.
        time.advance(1_000_000_000);
        (Clock::with_inner(inner, true), time)
    }

    fn with_inner(inner: quanta::Clock, is_virtual: bool) -> Self {
        Clock { scale: inner.delta_as_nanos(0, 1 << SCALE_BITS), inner, is_virtual }
    }

    /// Whether its time is advanced by a test, to which the system's other clocks have no relation.
    pub fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// A reading in units of this clock; only [`Clock::ns_between`] gives it a meaning.
    #[inline]
    pub fn raw(&self) -> u64 {
        self.inner.raw()
    }

    /// A reading in nanoseconds since some time that all clocks of this process share.
    pub fn ns(&self, raw: u64) -> u64 {
        self.ns_between(0, raw)
    }

    /// The reading `ns` after one.
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

    /// What [`Clock::raw`] reads now.
    pub fn now_ns(&self) -> u64 {
        self.0.value()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

#[cfg(test)]
mod tests {
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
        for ns in [0, 1_000, 20_000_000, 7 * 24 * 3600 * 1_000_000_000] {
            let start_raw = clock.raw();
            let told_ns = clock.ns_between(start_raw, clock.raw_after(start_raw, ns));
            assert!(told_ns.abs_diff(ns) <= 2, "{told_ns} for {ns}");
        }
        assert_eq!(clock.raw_after(5, u64::MAX), clock.raw_after(5, u64::MAX));
    }

    #[test]
    fn nanoseconds_are_the_calibrated_clocks() {
        let clock = Clock::new();
        for ticks in [0, 1, 1_000, 123_456_789, 3_600_000_000_000] {
            let exact = clock.inner.delta_as_nanos(0, ticks);
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
}
