//! How far figures of two cases may be apart by chance.

use crate::observe::{Metric, Spread};
use statistics::LEAST_OBSERVATIONS;

/// Of too few runs to know how they scatter, this many times the usual margin of a metric says nothing.
const FEW_RUNS_MARGINS: f64 = 3.0;

/// Figures of one case, of each run that counts, and their median.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) median: f64,
    /// Whether the runs are too few to know how they scatter.
    pub(super) are_of_few_runs: bool,
    /// How far apart two medians like it may be by chance whatever the runs say, as a share of the larger one.
    tolerance: f64,
    /// Where more runs could lie: the range of the figures, made twice as wide on a logarithmic scale. Few runs seldom have
    /// the extremes, and a case that moves between two speeds says nothing about one that is slower than both.
    reach: [f64; 2],
}

impl Figures {
    /// `None` without a run that counts.
    pub(super) fn new(metric: Metric, of_runs: &[f64]) -> Option<Figures> {
        let spread = Spread::new(of_runs.iter().copied()).filter(|it| it.median > 0.0)?;
        let are_of_few_runs = are_few(spread.count);
        let beyond = (spread.high / spread.low).sqrt();
        Some(Figures {
            median: spread.median,
            are_of_few_runs,
            tolerance: if are_of_few_runs { of_few_runs(metric) } else { metric.default_margin() },
            reach: [spread.low / beyond, spread.high * beyond],
        })
    }

    /// Whether chance may be all that is between them.
    pub(super) fn may_equal(&self, other: &Figures) -> bool {
        let (low, high) = (self.median.min(other.median), self.median.max(other.median));
        let is_near = 1.0 - low / high <= self.tolerance.max(other.tolerance);
        is_near || (self.reach[0] <= other.reach[1] && other.reach[0] <= self.reach[1])
    }
}

/// Whether so many runs are too few to know how they scatter.
pub(super) fn are_few(runs: usize) -> bool {
    runs < LEAST_OBSERVATIONS
}

/// How far apart figures of single runs are for sure: 0.09 is 9 %.
pub(super) fn of_few_runs(metric: Metric) -> f64 {
    FEW_RUNS_MARGINS * metric.default_margin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_equal(one: &[f64], other: &[f64]) -> bool {
        let [one, other] = [one, other].map(|it| Figures::new(Metric::GbitPerS, it).unwrap());
        assert_eq!(one.may_equal(&other), other.may_equal(&one));
        one.may_equal(&other)
    }

    #[test]
    fn single_runs_have_to_be_further_apart() {
        assert!(may_equal(&[100.0], &[92.0]));
        assert!(!may_equal(&[100.0], &[90.0]));
        assert!(!may_equal(&[100.0; 3], &[92.0; 3]));
        assert!(may_equal(&[100.0; 3], &[98.0; 3]));
        assert!(may_equal(&[100.0; 3], &[92.0]), "the other is a single run");
    }

    #[test]
    fn what_runs_scatter_is_no_difference() {
        assert!(may_equal(&[90.0, 100.0, 110.0], &[85.0, 85.0, 85.0]));
        assert!(!may_equal(&[90.0, 100.0, 110.0], &[75.0, 75.0, 75.0]));
        assert_eq!(Figures::new(Metric::GbitPerS, &[]), None);
    }

    #[test]
    fn a_case_with_two_speeds_is_not_like_one_that_is_slower_than_both() {
        let two_speeds = [11.0, 12.0, 29.0, 30.0, 30.0];
        assert!(!may_equal(&two_speeds, &[1.2, 1.3, 1.4]));
        assert!(may_equal(&two_speeds, &[9.0, 10.0, 11.0]));
    }
}
