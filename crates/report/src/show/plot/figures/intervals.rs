//! Throughput of a run in intervals: as many as have room, the slowest one, the longest stall, and how steady it
//! was: 1 is steady, 0 stood still for a hundredth of it.

/// Columns of a chart; more intervals than that are drawn with their least and most.
pub(super) const COLUMNS: usize = 150;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// In seconds from the beginning of the window.
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) gbit_per_s: f64,
}

impl Interval {
    pub(super) fn middle_ns(&self) -> f64 {
        f64::midpoint(self.from, self.to) * 1e9
    }
}

/// Intervals side by side as one where there are too many: throughput over all of them, the least, the most.
pub(super) fn columns(intervals: &[Interval]) -> Vec<(Interval, f64, f64)> {
    let each = intervals.len().div_ceil(COLUMNS).max(1);
    intervals
        .chunks(each)
        .filter_map(|part| {
            let (from, to) = (part.first()?.from, part.last()?.to);
            let moved: f64 = part.iter().map(|one| one.gbit_per_s * (one.to - one.from)).sum();
            let rates = part.iter().map(|one| one.gbit_per_s);
            let whole = Interval { from, to, gbit_per_s: moved / (to - from) };
            let least = rates.clone().fold(f64::INFINITY, f64::min);
            Some((whole, least, rates.fold(0.0, f64::max)))
        })
        .collect()
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
    intervals.iter().copied().min_by(|a, b| a.gbit_per_s.total_cmp(&b.gbit_per_s))
}

/// The slowest hundredth's part of the median, for throughput in intervals.
pub(super) fn steadiness_of_rates(rates: impl Iterator<Item = f64>) -> f64 {
    let (middle, slow) = middle_and_slow(rates.collect());
    if middle > 0.0 { slow / middle } else { 0.0 }
}

/// The same of an open loop's messages in intervals. Arrivals by chance are not steady by themselves: what chance explains,
/// three standard deviations of a Poisson count, is not held against them.
pub(super) fn steadiness_of_arrivals(messages: &[u64]) -> f64 {
    let (middle, slow) = middle_and_slow(messages.iter().map(|&count| count as f64).collect());
    if middle > 0.0 { ((slow + 3.0 * middle.sqrt()) / middle).min(1.0) } else { 1.0 }
}

fn middle_and_slow(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let [middle, slow] =
        [values.len() / 2, values.len() / 100].map(|at| values.get(at).copied().unwrap_or(0.0));
    (middle, slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_not_unsteady_and_a_stall_is() {
        let mut counts = vec![100; 100];
        counts.extend([75; 2]);
        assert!(steadiness_of_rates(counts.iter().map(|&count| count as f64)) < 0.9);
        assert_eq!(steadiness_of_arrivals(&counts), 1.0);
        counts[..2].fill(0);
        assert!(steadiness_of_arrivals(&counts) < 0.4);
        // Too few arrive to judge an interval.
        assert_eq!(steadiness_of_arrivals(&[0, 1, 0, 0, 2]), 1.0);
        assert_eq!(steadiness_of_rates([0.0, 0.0].into_iter()), 0.0);
    }
}
