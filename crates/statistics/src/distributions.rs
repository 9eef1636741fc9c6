//! Probabilities of Student's t and gamma distributions; and what a few values say of where they lie and how far from the
//! others a value may lie by chance, whatever a few of them are: the median, the median absolute deviation, the reach of a tail.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};
use statrs::function::gamma::{gamma_lr, gamma_ur};

/// The t that a share `tail` (below one half) of Student's distribution of so many degrees of freedom is above; infinite where
/// there is none.
pub fn t_quantile(tail: f64, degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| -t.inverse_cdf(tail))
}

/// The probability of so many successes or more in so many trials, each of which succeeds with this chance; 1 where that is no
/// probability.
pub fn binomial_at_least(successes: u64, trials: u64, chance: f64) -> f64 {
    match (Binomial::new(chance, trials), successes.checked_sub(1)) {
        (Ok(binomial), Some(below)) => binomial.sf(below),
        _ => 1.0,
    }
}

/// Probabilities that a gamma variable of this shape and of scale 1 is at most, and above, `x`, each with its own relative
/// precision: neither is 1 less the other where that would be all rounding.
pub(super) fn gamma_at_most_and_above(shape: u64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        (0.0, 1.0)
    } else if x == f64::INFINITY {
        (1.0, 0.0)
    } else {
        (gamma_lr(shape as f64, x), gamma_ur(shape as f64, x))
    }
}

/// The median; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

/// The median of values in order.
fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(*sorted.get(half.checked_sub(1)?)?, upper))
}

/// Makes the median absolute deviation the standard deviation of normal values: 1 / Φ⁻¹(3/4).
const OF_NORMAL: f64 = 1.4826;
/// Fewer values tell nothing of their tail.
const LEAST_OF_TAIL: usize = 2;

/// How much values scatter: their median absolute deviation from their median (MAD), scaled to the standard deviation of
/// normal ones. `None` of fewer than two.
///
/// Source: F. R. Hampel, "The Influence Curve and its Role in Robust Estimation", J. Amer. Statist. Assoc. 69 (1974).
pub fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values).filter(|_| values.len() > 1)?;
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    Some(OF_NORMAL * median(&away)?)
}

/// Pulls extremes in: at either end one of ten becomes as far out as the next.
pub(super) fn winsorise(values: &mut [f64]) {
    let pulled = (values.len() + 5) / 10;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mirrored = sorted.len().checked_sub(pulled + 1);
    let Some((low, high)) = sorted.get(pulled).zip(mirrored.map(|at| sorted[at])) else {
        return;
    };
    // Of two values both are pulled.
    if *low <= high {
        for value in values {
            *value = value.clamp(*low, high);
        }
    }
}

/// What is known of a scatter besides the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// The standard deviation is at least so much.
    pub least: f64,
    /// How heavy the tail may be: the shape of a generalised Pareto distribution, 0 for an exponential tail; Student's t
    /// of 4 degrees of freedom has 1/4.
    pub tail: f64,
}

/// How far below the median of `others` the lowest of `tests` values like them lies by chance at most; it does more
/// seldom than `chance`. Infinite where nothing can be said.
///
/// The larger of two: the MAD times Student's quantile with Bonferroni's correction, whose degrees of freedom say how few
/// values there are; and where there are enough, what their lowest fifth tells of the tail, as excesses over a threshold
/// (J. Pickands, "Statistical Inference Using Extreme Order Statistics", Ann. Statist. 3 (1975)), whose scale is told by
/// the median excess, so that up to half of them may be outliers themselves.
pub fn reach(others: &[f64], scatter: Scatter, tests: usize, chance: f64) -> f64 {
    let count = others.len();
    let (Some(middle), Some(own)) = (median(others), spread(others)) else {
        return f64::INFINITY;
    };
    let mut below: Vec<f64> = others.iter().map(|value| middle - value).collect();
    below.sort_by(|one, two| two.total_cmp(one));
    let lower: Vec<f64> = below.iter().copied().filter(|it| *it > 0.0).collect();
    let lower_spread = OF_NORMAL * median(&lower).unwrap_or(0.0);
    let spread = own.max(lower_spread).max(scatter.least);
    let degrees = (count as f64 - 1.0) * 0.5;
    let count_of_tests = tests.max(1) as f64;
    let by_spread = spread * t_quantile(chance / count_of_tests, degrees);
    let lowest = (count / 5).min(10).max(count / 100);
    if lowest < LEAST_OF_TAIL {
        return by_spread;
    }
    let threshold = below.get(lowest).copied().unwrap_or(0.0).max(0.0);
    let excesses: Vec<f64> = below.iter().take(lowest).map(|it| it - threshold).collect();
    let excess = median(&excesses).unwrap_or(0.0);
    let shape = scatter.tail.max(1e-3);
    let scale = excess * shape / (2f64.powf(shape) - 1.0);
    let beyond = lowest as f64 / count as f64 * count_of_tests / chance;
    let by_tail = threshold + scale * (beyond.powf(shape) - 1.0) / shape;
    by_spread.max(by_tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three coins two show heads or more in four of eight cases.
    #[test]
    fn successes_beyond_chance() {
        for (successes, expected) in [(0, 1.0), (1, 0.875), (2, 0.5), (3, 0.125), (4, 0.0)] {
            let found = binomial_at_least(successes, 3, 0.5);
            assert!((found - expected).abs() < 1e-12, "{successes}: {found}");
        }
        assert_eq!(binomial_at_least(1, 3, 2.0), 1.0);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (tail, degrees, t) in [
            (0.025, 1.0, 12.706),
            (0.025, 4.0, 2.776),
            (0.025, 8.0, 2.306),
            (0.0005, 8.0, 5.041),
            (0.025, 1e6, 1.960),
        ] {
            let found = t_quantile(tail, degrees);
            assert!((found - t).abs() < 6e-4, "{degrees}: {found}, not {t}");
        }
    }

    /// Upper points of chi-square over 2: half of the degrees of freedom is the shape.
    #[test]
    fn gamma_quantiles_are_those_of_the_tables() {
        for (degrees, chi_square, above) in [
            (2, 5.991_464_547, 0.05),
            (4, 9.487_729_037, 0.05),
            (10, 3.940_299_136, 0.95),
            (20, 31.410_432_844, 0.05),
            (100, 135.806_723_166, 0.01),
            (1000, 1_074.679_449_0, 0.05),
        ] {
            let (_, found) = gamma_at_most_and_above(degrees / 2, chi_square / 2.0);
            assert!((found - above).abs() < 1e-8, "{degrees}: {found}");
        }
    }

    #[test]
    fn tails_keep_their_precision() {
        let (at_most, above) = gamma_at_most_and_above(1, 1e-12);
        assert!((at_most / 1e-12 - 1.0).abs() < 1e-11 && above < 1.0);
        // Q(2, x) = (1 + x) e^-x, P(2, x) is about x²/2.
        let (_, far_above) = gamma_at_most_and_above(2, 600.0);
        assert!((far_above / (601.0 * (-600.0_f64).exp()) - 1.0).abs() < 1e-9);
        let (just_above_zero, _) = gamma_at_most_and_above(2, 1e-9);
        assert!((just_above_zero / 5e-19 - 1.0).abs() < 1e-8);
        assert_eq!(gamma_at_most_and_above(3, 0.0), (0.0, 1.0));
    }

    #[test]
    fn medians_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
