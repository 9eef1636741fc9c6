//! The ratio of two medians and its bootstrap interval.

use fastrand::Rng;

/// Resamples drawn for an interval.
const RESAMPLES: usize = 2_000;

/// Where the drawing starts, so that the same figures always give the same interval.
const SEED: u64 = 0x0715_2026;

/// A ratio of medians, new over base, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// Median of the base.
    pub base_median: f64,
    /// Median of what is compared with it.
    pub new_median: f64,
    /// `new_median` / `base_median`.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(middle.checked_sub(1)?)?, upper))
}

/// Ratio of the medians of independent runs, with an interval of the given confidence (0.95); `None`
/// when a side has no run or the base's median is not positive.
pub fn ratio(base: &[f64], new: &[f64], confidence: f64) -> Option<RatioEstimate> {
    estimate(base, new, confidence, |rng, base_draw, new_draw| {
        base_draw
            .iter_mut()
            .for_each(|value| *value = base[rng.usize(..base.len())]);
        new_draw
            .iter_mut()
            .for_each(|value| *value = new[rng.usize(..new.len())]);
    })
}

/// The same of runs made in pairs, which are drawn together: what slows both of a pair does not widen
/// the interval.
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<RatioEstimate> {
    let (base, new): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    estimate(&base, &new, confidence, |rng, base_draw, new_draw| {
        for (base_value, new_value) in base_draw.iter_mut().zip(new_draw) {
            (*base_value, *new_value) = pairs[rng.usize(..pairs.len())];
        }
    })
}

fn estimate(
    base: &[f64],
    new: &[f64],
    confidence: f64,
    draw: impl Fn(&mut Rng, &mut [f64], &mut [f64]),
) -> Option<RatioEstimate> {
    let (base_median, new_median) = (median(base)?, median(new)?);
    if base_median <= 0.0 {
        return None;
    }
    let mut rng = Rng::with_seed(SEED);
    let (mut base_draw, mut new_draw) = (base.to_vec(), new.to_vec());
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            draw(&mut rng, &mut base_draw, &mut new_draw);
            Some(median(&new_draw)? / median(&base_draw)?)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let at = |quantile: f64| {
        let index = (quantile * (ratios.len() - 1) as f64).round() as usize;
        ratios.get(index).copied()
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(RatioEstimate {
        base_median,
        new_median,
        ratio: new_median / base_median,
        low: at(tail)?,
        high: at(1.0 - tail)?,
    })
}
