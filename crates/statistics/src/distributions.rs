//! Probabilities of the beta, Student's t and gamma distributions; and what a few values say of where they lie and how far from the
//! others a value may lie by chance, whatever a few of them are: the median, the median absolute deviation, the reach of a tail.

use std::f64::consts::PI;

/// Logarithm of the gamma function of a positive number (Lanczos' approximation, g = 5, six terms).
pub(super) fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let base = x + 5.5;
    let series = TERMS
        .iter()
        .zip(1..)
        .fold(1.000_000_000_190_015, |sum, (term, n)| sum + term / (x + f64::from(n)));
    (x + 0.5) * base.ln() - base + ((2.0 * PI).sqrt() * series / x).ln()
}

/// Probability that a beta variable with the shapes `a` and `b` is at most `x` (the regularised incomplete
/// beta function, by its continued fraction).
pub(super) fn beta_at_most(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    // The fraction converges fast below the mean only.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(x, a, b) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(1.0 - x, b, a) / b
    }
}

fn away_from_zero(value: f64) -> f64 {
    const LEAST: f64 = 1e-300;
    if value.abs() < LEAST { LEAST } else { value }
}

/// The continued fraction, by Lentz' method.
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut sum = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away_from_zero(1.0 + even * d);
        c = away_from_zero(1.0 + even / c);
        sum *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away_from_zero(1.0 + odd * d);
        c = away_from_zero(1.0 + odd / c);
        let factor = d * c;
        sum *= factor;
        if (factor - 1.0).abs() < 1e-13 {
            break;
        }
    }
    sum
}

/// Probability that Student's t is above `t` (not below 0).
pub(super) fn t_above(t: f64, degrees: f64) -> f64 {
    0.5 * beta_at_most(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The t that a share `tail` (below one half) of Student's distribution of so many degrees of freedom is above.
pub fn t_quantile(tail: f64, degrees: f64) -> f64 {
    let ln_density_at_0 =
        ln_gamma(f64::midpoint(degrees, 1.0)) - ln_gamma(degrees / 2.0) - 0.5 * (degrees * PI).ln();
    // The tail is convex above 0, so Newton's steps from below never go too far.
    let mut t = 0.0;
    for _ in 0..100 {
        let ln_density = ln_density_at_0 - f64::midpoint(degrees, 1.0) * (t * t / degrees).ln_1p();
        let step = (t_above(t, degrees) - tail) / ln_density.exp();
        t += step;
        if step.abs() < 1e-9 * (1.0 + t) {
            break;
        }
    }
    t
}

/// Terms after which a sum is taken as it is. It needs about 9 times the root of the shape, and 200 where that is small.
const MOST_TERMS: u32 = 1_000_000;
/// A term that is smaller than this part of the sum ends it.
const ENOUGH: f64 = 1e-16;

/// Probabilities that a gamma variable of this shape and of scale 1 is at most, and above, `x`, each with its own relative
/// precision: neither is 1 less the other where that would be all rounding. (The regularised incomplete gamma
/// functions P and Q; Abramowitz and Stegun, 6.5.29 and 6.5.31.)
pub(super) fn gamma_at_most_and_above(shape: u64, x: f64) -> (f64, f64) {
    if x <= 0.0 {
        return (0.0, 1.0);
    }
    if x == f64::INFINITY {
        return (1.0, 0.0);
    }
    if shape == 1 {
        return (-(-x).exp_m1(), (-x).exp());
    }
    let real_shape = shape as f64;
    let front = (real_shape * x.ln() - x - ln_gamma(real_shape)).exp();
    if x < real_shape + 1.0 {
        let at_most = (front * gamma_series(real_shape, x)).min(1.0);
        (at_most, 1.0 - at_most)
    } else {
        let above = (front * gamma_fraction(real_shape, x)).min(1.0);
        (1.0 - above, above)
    }
}

/// The power series of P, without its front.
fn gamma_series(shape: f64, x: f64) -> f64 {
    let mut term = 1.0 / shape;
    let mut sum = term;
    for n in 1..MOST_TERMS {
        term *= x / (shape + f64::from(n));
        sum += term;
        if term < sum * ENOUGH {
            break;
        }
    }
    sum
}

/// The continued fraction of Q, without its front, by Lentz' method; `x` is at least `shape` + 1, so that all
/// denominators are above 0.
fn gamma_fraction(shape: f64, x: f64) -> f64 {
    let mut b = x + 1.0 - shape;
    let mut c = f64::INFINITY;
    let mut d = 1.0 / b;
    let mut product = d;
    for n in 1..MOST_TERMS {
        let n = f64::from(n);
        let a = -n * (n - shape);
        b += 2.0;
        d = 1.0 / (a * d + b);
        c = b + a / c;
        let factor = c * d;
        product *= factor;
        if (factor - 1.0).abs() < 4.0 * f64::EPSILON {
            break;
        }
    }
    product
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

    #[test]
    fn beta_with_whole_shapes_is_a_sum_of_binomials() {
        // Third of five order statistics: at least three of five below x.
        let x: f64 = 0.3;
        let expected = 10.0 * x.powi(3) * 0.7f64.powi(2) + 5.0 * x.powi(4) * 0.7 + x.powi(5);
        assert!((beta_at_most(x, 3.0, 3.0) - expected).abs() < 1e-9);
        assert!((beta_at_most(0.5, 4.5, 4.5) - 0.5).abs() < 1e-9);
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

    /// P(n) = 1 - e^-x Σ x^i / i! for i below n.
    #[test]
    fn it_is_a_sum_of_poisson_probabilities() {
        for shape in [2_u64, 3, 7, 40] {
            for x in [1e-6, 0.3, 2.0, 7.0, 39.9, 41.5, 90.0] {
                let mut term = f64::exp(-x);
                let mut above = 0.0;
                let mut at_most = 0.0;
                for i in 0..400_u32 {
                    if u64::from(i) < shape {
                        above += term;
                    } else {
                        at_most += term;
                    }
                    term *= x / f64::from(i + 1);
                }
                let found = gamma_at_most_and_above(shape, x);
                let is_near = |value: f64, exact: f64| {
                    (value - exact).abs() <= 1e-9 * exact || (value - exact).abs() < 1e-14
                };
                assert!(is_near(found.0, at_most), "{shape} {x}: {}", found.0);
                assert!(is_near(found.1, above), "{shape} {x}: {}", found.1);
            }
        }
    }

    /// At its mean: 1/2 + 1/(3 √(2π k)) + …; and a deviation above it, Edgeworth's expansion to the same order.
    #[test]
    fn a_large_shape_is_near_the_normal_distribution() {
        for shape in [10_000_u64, 1_000_000] {
            let k = shape as f64;
            let skew = 1.0 / (3.0 * (2.0 * PI * k).sqrt());
            let (at_mean, _) = gamma_at_most_and_above(shape, k);
            assert!((at_mean - 0.5 - skew).abs() < 0.1 / k, "{at_mean}");
            // Φ(2) = 0.977249868051821; the term of the skew is (1 - z²) e^(-z²/2).
            let exact = 0.977_249_868_051_821 - 3.0 * (-2.0_f64).exp() * skew;
            let (found, above) = gamma_at_most_and_above(shape, k + 2.0 * k.sqrt());
            assert!((found - exact).abs() < 0.2 / k, "{found}, not {exact}");
            assert!((found + above - 1.0).abs() < 1e-12);
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
