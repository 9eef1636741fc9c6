//! The ratio of two medians and its bootstrap interval: the bootstrap gives the standard error of the
//! logarithm, Student's t the width that so few runs need.

use fastrand::Rng;

use super::special::{beta_at_most, t_quantile};

/// Resamples drawn for the standard error of pairs.
const RESAMPLES: usize = 2_000;

/// Where the drawing starts, so that the same figures always give the same interval.
const SEED: u64 = 0x0715_2026;

/// A figure of nothing counts as this part of the base's median, since it has no logarithm.
const LEAST_PART: f64 = 1e-6;

/// A ratio of medians, new over base, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// Median of the base.
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

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

/// The median of values in order.
pub(super) fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(half.checked_sub(1)?)?, upper))
}

/// Ratio of the medians of independent runs, with an interval of the given confidence (0.95); `None`
/// when a side has no run, a figure is no number, or the base's median is not positive.
///
/// The standard error of each log median is the bootstrap's with all its resamples (Maritz and Jarrett 1978),
/// the degrees of freedom are Welch's and Satterthwaite's.
pub fn ratio(base: &[f64], new: &[f64], confidence: f64) -> Option<RatioEstimate> {
    let (base_median, new_median) = medians(base, new)?;
    let spread = variance_of_log_median(base, base_median)
        .zip(variance_of_log_median(new, base_median))
        .map(|(of_base, of_new)| {
            let degrees = welch(of_base, base.len(), of_new, new.len());
            ((of_base + of_new).sqrt(), degrees)
        });
    Some(interval(base_median, new_median, spread, confidence))
}

/// The same of runs made in pairs, which are drawn together: what slows both of a pair does not widen
/// the interval.
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<RatioEstimate> {
    let (base, new): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (base_median, new_median) = medians(&base, &new)?;
    let spread = (pairs.len() > 1).then(|| {
        let least = base_median * LEAST_PART;
        let mut rng = Rng::with_seed(SEED);
        let (mut base_draw, mut new_draw) = (base, new);
        let (mut sum, mut sum_of_squares) = (0.0, 0.0);
        for _ in 0..RESAMPLES {
            for (base_value, new_value) in base_draw.iter_mut().zip(&mut new_draw) {
                (*base_value, *new_value) = pairs[rng.usize(..pairs.len())];
            }
            base_draw.sort_unstable_by(f64::total_cmp);
            new_draw.sort_unstable_by(f64::total_cmp);
            let at_least = |median: Option<f64>| median.unwrap_or(least).max(least);
            let log = (at_least(middle(&new_draw)) / at_least(middle(&base_draw))).ln();
            sum += log;
            sum_of_squares += log * log;
        }
        let mean = sum / RESAMPLES as f64;
        let variance = (sum_of_squares / RESAMPLES as f64 - mean * mean).max(0.0);
        (variance.sqrt(), (pairs.len() - 1) as f64)
    });
    Some(interval(base_median, new_median, spread, confidence))
}

fn medians(base: &[f64], new: &[f64]) -> Option<(f64, f64)> {
    if base.iter().chain(new).any(|value| !value.is_finite()) {
        return None;
    }
    let (base_median, new_median) = (median(base)?, median(new)?);
    (base_median > 0.0).then_some((base_median, new_median))
}

/// The estimate from a standard error of the log ratio and its degrees of freedom.
fn interval(
    base_median: f64,
    new_median: f64,
    spread: Option<(f64, f64)>,
    confidence: f64,
) -> RatioEstimate {
    let ratio = new_median / base_median;
    let (low, high) = match spread {
        None => (0.0, f64::INFINITY),
        Some((0.0, _)) => (ratio, ratio),
        Some((error, degrees)) => {
            let width = t_quantile((1.0 - confidence) / 2.0, degrees) * error;
            (ratio * (-width).exp(), ratio * width.exp())
        }
    };
    RatioEstimate {
        base_median,
        new_median,
        ratio,
        low,
        high,
    }
}

/// Variance over all resamples of the logarithm of the median; `None` of a single run.
fn variance_of_log_median(values: &[f64], base_median: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let least = base_median * LEAST_PART;
    let mut logs: Vec<f64> = values.iter().map(|value| value.max(least).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let count = logs.len() as f64;
    // Rank of the median; with an even number it lies between two.
    let shape = f64::midpoint(count, 1.0);
    let centre = middle(&logs)?;
    let (mut below, mut mean, mut square) = (0.0, 0.0, 0.0);
    for (index, log) in logs.iter().enumerate() {
        let up_to = beta_at_most((index + 1) as f64 / count, shape, shape);
        let weight = up_to - below;
        below = up_to;
        mean += weight * (log - centre);
        square += weight * (log - centre) * (log - centre);
    }
    Some((square - mean * mean).max(0.0))
}

/// Welch's and Satterthwaite's degrees of freedom of a difference.
fn welch(base: f64, base_count: usize, new: f64, new_count: usize) -> f64 {
    let part = |variance: f64, count: usize| variance * variance / (count - 1) as f64;
    let below = part(base, base_count) + part(new, new_count);
    if below > 0.0 {
        (base + new) * (base + new) / below
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn an_interval_holds_its_estimate_and_widens_with_confidence() {
        let (base, new) = ([9.8, 10.0, 10.1, 10.3, 9.9], [9.1, 9.0, 9.3, 8.8, 9.05]);
        let narrow = ratio(&base, &new, 0.95).unwrap();
        let wide = ratio(&base, &new, 0.999).unwrap();
        assert!((narrow.ratio - 0.905).abs() < 1e-9);
        assert!(wide.low < narrow.low && narrow.low < narrow.ratio);
        assert!(narrow.ratio < narrow.high && narrow.high < wide.high);
        assert!(narrow.high < 1.0, "{narrow:?}");
    }

    #[test]
    fn swapped_sides_give_the_inverse() {
        let (base, new) = ([9.8, 10.0, 10.1, 10.3], [9.1, 9.0, 9.3, 8.8, 9.05]);
        let there = ratio(&base, &new, 0.95).unwrap();
        let back = ratio(&new, &base, 0.95).unwrap();
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert!((there.low * back.high - 1.0).abs() < 1e-9);
    }

    #[test]
    fn pairs_that_go_up_and_down_together_are_told_apart_better() {
        let pairs: Vec<(f64, f64)> = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
            .map(|value| (value, value * 0.9))
            .to_vec();
        let paired = paired_ratio(&pairs, 0.95).unwrap();
        let (base, new): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let apart = ratio(&base, &new, 0.95).unwrap();
        assert!((paired.ratio - 0.9).abs() < 1e-12);
        assert!(paired.high - paired.low < 1e-6, "{paired:?}");
        assert!(apart.high - apart.low > 0.5, "{apart:?}");
    }

    #[test]
    fn figures_of_nothing_and_too_few() {
        assert_eq!(ratio(&[], &[1.0], 0.95), None);
        assert_eq!(ratio(&[0.0, 0.0], &[1.0, 1.0], 0.95), None);
        assert_eq!(ratio(&[f64::NAN, 1.0], &[1.0, 1.0], 0.95), None);
        let one = ratio(&[2.0], &[1.0, 1.0], 0.95).unwrap();
        assert_eq!((one.ratio, one.low, one.high), (0.5, 0.0, f64::INFINITY));
        let stopped = ratio(&[2.0, 2.1, 1.9], &[0.0; 3], 0.95).unwrap();
        assert_eq!((stopped.ratio, stopped.low, stopped.high), (0.0, 0.0, 0.0));
        let same = ratio(&[2.0; 5], &[2.0; 5], 0.95).unwrap();
        assert_eq!((same.ratio, same.low, same.high), (1.0, 1.0, 1.0));
    }
}
