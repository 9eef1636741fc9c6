//! Throughput of a run in intervals: as many as have room, the slowest one, and the longest stall. It must not know how it is
//! drawn.

/// Columns of a chart; more intervals than that are drawn with their least and most.
pub(super) const COLUMNS: usize = 150;

/// Throughput of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// In seconds from the beginning of the window.
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) gbit_per_s: f64,
}

/// Intervals side by side as one where there are too many: throughput over all of them, the least, the most.
pub(super) fn columns(intervals: &[Interval]) -> Vec<(Interval, f64, f64)> {
    let each = intervals.len().div_ceil(COLUMNS).max(1);
    let join = |part: &[Interval]| {
        let (from, to) = (part.first()?.from, part.last()?.to);
        let moved: f64 = part
            .iter()
            .map(|one| one.gbit_per_s * (one.to - one.from))
            .sum();
        let rates = || part.iter().map(|one| one.gbit_per_s);
        let all = Interval {
            from,
            to,
            gbit_per_s: moved / (to - from),
        };
        Some((
            all,
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        ))
    };
    intervals.chunks(each).filter_map(join).collect()
}

/// The longest stretch of intervals without a message, where there is one.
pub(super) fn stall(intervals: &[Interval]) -> Option<(f64, f64)> {
    let stretches = intervals.chunk_by(|a, b| (a.gbit_per_s == 0.0) == (b.gbit_per_s == 0.0));
    stretches
        .filter(|stretch| stretch.first().is_some_and(|first| first.gbit_per_s == 0.0))
        .filter_map(|stretch| Some((stretch.first()?.from, stretch.last()?.to)))
        .max_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
}

pub(super) fn slowest(intervals: &[Interval]) -> Option<Interval> {
    intervals
        .iter()
        .copied()
        .min_by(|a, b| a.gbit_per_s.total_cmp(&b.gbit_per_s))
}
