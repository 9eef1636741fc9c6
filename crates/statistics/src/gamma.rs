//! The gamma distribution with a whole shape: how long as many independent exponential gaps take together.

use super::special::ln_gamma;

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
    let shape = shape as f64;
    let front = (shape * x.ln() - x - ln_gamma(shape)).exp();
    if x < shape + 1.0 {
        let at_most = (front * series(shape, x)).min(1.0);
        (at_most, 1.0 - at_most)
    } else {
        let above = (front * fraction(shape, x)).min(1.0);
        (1.0 - above, above)
    }
}

/// The power series of P, without its front.
fn series(shape: f64, x: f64) -> f64 {
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
fn fraction(shape: f64, x: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Upper points of chi-square over 2: half of the degrees of freedom is the shape.
    #[test]
    fn quantiles_are_those_of_the_tables() {
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
                let is_near = |found: f64, exact: f64| {
                    (found - exact).abs() <= 1e-9 * exact || (found - exact).abs() < 1e-14
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
            let skew = 1.0 / (3.0 * (2.0 * std::f64::consts::PI * k).sqrt());
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
        let (_, above) = gamma_at_most_and_above(2, 600.0);
        assert!((above / (601.0 * (-600.0_f64).exp()) - 1.0).abs() < 1e-9);
        let (at_most, _) = gamma_at_most_and_above(2, 1e-9);
        assert!((at_most / 5e-19 - 1.0).abs() < 1e-8);
        assert_eq!(gamma_at_most_and_above(3, 0.0), (0.0, 1.0));
    }
}
