//! The ratio of two medians and its interval.

use super::deals::Deals;
use super::median::median;
use super::shift::Shift;

/// A figure of nothing counts as this part of the base's median, since it has no logarithm.
const LEAST_PART: f64 = 1e-6;

/// A ratio of medians, new over base, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    pub base_median: f64,
    /// Median of what is compared with it.
    pub new_median: f64,
    /// `new_median` / `base_median`.
    pub ratio: f64,
    /// Lower end of the interval; 0 when there are too few runs for one.
    pub low: f64,
    /// Upper end of the interval; infinite when there are too few runs for one.
    pub high: f64,
}

/// Ratio of the medians of independent runs, with an interval of the given confidence (0.95); `None`
/// when a side has no run, a figure is no number, or the base's median is not positive.
pub fn ratio(base: &[f64], new: &[f64], confidence: f64) -> Option<RatioEstimate> {
    let logs = Logs::of(base, new)?;
    let deals = Deals::of(base.len(), new.len());
    let shift = Shift::of(&logs.base, &logs.new, &deals, (1.0 - confidence) / 2.0)?;
    Some(logs.estimate(&shift, &[]))
}

/// Logarithms of both sides' figures.
#[derive(Clone, Debug)]
pub(super) struct Logs {
    base_median: f64,
    new_median: f64,
    pub(super) base: Vec<f64>,
    pub(super) new: Vec<f64>,
}

impl Logs {
    pub(super) fn of(base: &[f64], new: &[f64]) -> Option<Logs> {
        if base.iter().chain(new).any(|value| !value.is_finite()) {
            return None;
        }
        let (base_median, new_median) = (median(base)?, median(new)?);
        let least = base_median * LEAST_PART;
        let logs = |values: &[f64]| values.iter().map(|value| value.max(least).ln()).collect();
        (base_median > 0.0).then(|| Logs {
            base_median,
            new_median,
            base: logs(base),
            new: logs(new),
        })
    }

    pub(super) fn ratio(&self) -> f64 {
        self.new_median / self.base_median
    }

    /// The ratio with the interval of `shift`, which agrees with what is said of the shifts in `asked`.
    pub(super) fn estimate(&self, shift: &Shift<'_>, asked: &[f64]) -> RatioEstimate {
        let (low, high) = shift.interval(asked);
        let ratio = self.ratio();
        RatioEstimate {
            base_median: self.base_median,
            new_median: self.new_median,
            ratio,
            low: low.exp().min(ratio),
            high: high.exp().max(ratio),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [9.8, 10.0, 10.1, 10.3, 9.9];
    const NEW: [f64; 5] = [9.1, 9.0, 9.3, 8.8, 9.05];

    #[test]
    fn an_interval_holds_its_estimate_and_widens_with_confidence() {
        let narrow = ratio(&BASE, &NEW, 0.95).unwrap();
        let wide = ratio(&BASE, &NEW, 0.99).unwrap();
        assert!((narrow.ratio - 0.905).abs() < 1e-9);
        assert!(wide.low < narrow.low && narrow.low < narrow.ratio);
        assert!(narrow.ratio < narrow.high && narrow.high < wide.high);
        assert!(narrow.high < 1.0, "{narrow:?}");
    }

    #[test]
    fn swapped_sides_give_the_inverse() {
        let there = ratio(&BASE, &NEW, 0.95).unwrap();
        let back = ratio(&NEW, &BASE, 0.95).unwrap();
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((there.low * back.high - 1.0).abs() < 1e-6);
    }

    #[test]
    fn figures_of_nothing_and_too_few() {
        assert_eq!(ratio(&[], &[1.0], 0.95), None);
        assert_eq!(ratio(&[0.0, 0.0], &[1.0, 1.0], 0.95), None);
        assert_eq!(ratio(&[f64::NAN, 1.0], &[1.0, 1.0], 0.95), None);
        let one = ratio(&[2.0], &[1.0], 0.95).unwrap();
        assert_eq!((one.ratio, one.low, one.high), (0.5, 0.0, f64::INFINITY));
        let stopped = ratio(&[2.0, 2.1, 1.9, 2.0], &[0.0; 4], 0.95).unwrap();
        assert_eq!((stopped.ratio, stopped.low), (0.0, 0.0));
        assert!(stopped.high < 2e-6);
        let same = ratio(&[2.0; 5], &[2.0; 5], 0.95).unwrap();
        assert_eq!((same.ratio, same.low, same.high), (1.0, 1.0, 1.0));
    }
}
