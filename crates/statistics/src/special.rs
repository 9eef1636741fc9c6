//! The two distributions that are needed: beta and Student's t.

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
        ln_front.exp() * fraction(x, a, b) / a
    } else {
        1.0 - ln_front.exp() * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction, by Lentz' method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const LEAST: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < LEAST { LEAST } else { value };
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
    let density =
        |t: f64| (ln_density_at_0 - f64::midpoint(degrees, 1.0) * (t * t / degrees).ln_1p()).exp();
    // The tail is convex above 0, so Newton's steps from below never go too far.
    let mut t = 0.0;
    for _ in 0..100 {
        let step = (t_above(t, degrees) - tail) / density(t);
        t += step;
        if step.abs() < 1e-9 * (1.0 + t) {
            break;
        }
    }
    t
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
}
