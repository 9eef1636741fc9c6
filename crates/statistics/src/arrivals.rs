//! Whether arrivals are those of a Poisson process of a known rate: the test of Anderson and Darling for the lengths of gaps between
//! them. And how evenly something was shared, and who got less than chance explains.

use super::distributions::gamma_at_most_and_above;

/// Fewer gaps tell nothing about a distribution.
pub const LEAST_GAPS: usize = 50;

/// Probability of gaps at least as far from their distribution as these, if each is the time of
/// `messages_of_gap` arrivals of a Poisson process and no two overlap; `None` of fewer than [`LEAST_GAPS`] gaps, of gaps
/// of no message, and where a gap is no number.
///
/// `gaps` are in units of the process' mean gap between two arrivals, so that their mean is to be `messages_of_gap`. A gap
/// of 0 has a probability of 0: gaps must be long enough for the clock to tell them apart.
///
/// The more gaps, the smaller the deviation that is found: 1,000 gaps find a rate that is 10 % off, 100,000 one
/// that is 1 % off. Fewer, longer gaps (a larger `messages_of_gap`) test the rate as exactly, and the shortest gaps less.
pub fn gaps_p_value(gaps: &[f64], messages_of_gap: u64) -> Option<f64> {
    if gaps.len() < LEAST_GAPS || messages_of_gap == 0 || gaps.iter().any(|gap| gap.is_nan()) {
        return None;
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let probabilities = sorted.into_iter().map(|gap| gamma_at_most_and_above(messages_of_gap, gap));
    let statistic = anderson_darling(&probabilities.collect::<Vec<_>>());
    Some(p_value(gaps.len() as f64, statistic))
}

/// Anderson and Darling's A² of a sorted sample, given as its probabilities under the distribution to be at most,
/// and above, each value. A value that cannot be makes it infinite.
///
/// A² = -n - Σ (2i - 1) (ln F(xᵢ) + ln (1 - F(xₙ₊₁₋ᵢ))) / n (Anderson and Darling 1954, J. Am. Stat. Assoc. 49, 765).
fn anderson_darling(sample: &[(f64, f64)]) -> f64 {
    let n = sample.len() as f64;
    let sum = (sample.iter().zip(sample.iter().rev()))
        .zip(0_u32..)
        .map(|((low, high), i)| (2.0 * f64::from(i) + 1.0) * (low.0.ln() + high.1.ln()))
        .sum::<f64>();
    -n - sum / n
}

/// Probability of an A² at least this large of `n` values that have the distribution (Marsaglia and Marsaglia 2004,
/// "Evaluating the Anderson-Darling distribution", J. Stat. Softw. 9(2)).
fn p_value(n: f64, statistic: f64) -> f64 {
    let above = above_without_end(statistic);
    (above - correction(n, 1.0 - above)).clamp(0.0, 1.0)
}

/// c₀ + c₁ x + c₂ x² + …
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c)
}

/// Probability of a larger A² of infinitely many values, within 2e-5.
fn above_without_end(statistic: f64) -> f64 {
    const BELOW_2: [f64; 6] =
        [2.00012, 0.247_105, -0.064_982_1, 0.034_796_2, -0.011_672_0, 0.001_686_91];
    const FROM_2: [f64; 6] = [1.0776, -2.30695, 0.43424, -0.082_433, 0.008_056, -0.000_314_6];
    if statistic <= 0.0 {
        1.0
    } else if statistic < 2.0 {
        let at_most = (-1.233_714_1 / statistic).exp() / statistic.sqrt();
        1.0 - at_most * polynomial(statistic, &BELOW_2)
    } else if statistic < f64::INFINITY {
        // Not `1.0 - exp(-..)`: the tail keeps its precision.
        -(-polynomial(statistic, &FROM_2).exp()).exp_m1()
    } else {
        0.0
    }
}

/// What is to be added to `at_most`, the probability for infinitely many values of at most this A², for `n` values.
fn correction(n: f64, at_most: f64) -> f64 {
    const ABOVE: [f64; 6] = [-130.2137, 745.2337, -1705.091, 1950.646, -1116.360, 255.7844];
    const BETWEEN: [f64; 6] = [-0.000_226_33, 6.54034, -14.6538, 14.458, -8.259, 1.91864];
    let edge = 0.01265 + 0.1757 / n;
    if at_most > 0.8 {
        // Nothing can be added to 1: the digits that are published leave -0.0006 there.
        (polynomial(at_most, &ABOVE) - polynomial(1.0, &ABOVE)) / n
    } else if at_most < edge {
        let t = at_most / edge;
        let shape = t.sqrt() * (1.0 - t) * (49.0 * t - 102.0);
        shape * (0.0037 / (n * n) + 0.00078 / n + 0.00006) / n
    } else {
        let t = (at_most - edge) / (0.8 - edge);
        polynomial(t, &BETWEEN) * (0.04213 + 0.01365 / n) / n
    }
}

/// Of runs in which all are served alike, at most this part has a party that is called starved. It is reached with few
/// arrivals only: of 4,096 parties with 200 each, none has less than half in all but one of 10^11 runs.
const FALSE_ALARMS: f64 = 1e-4;

/// How evenly several parties were served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Jain's index, from 1/n (one party has all) to 1 (all have the same).
    pub jain: f64,
    /// The least served party's amount over an even share; 1 is even, 0 is starved.
    pub min_share: f64,
    /// The best served party's amount over an even share; at most n.
    pub max_share: f64,
}

/// Jain's index, (Σx)² / (n·Σx²), and the extreme shares. `None` when nothing was served, or nobody
/// asked: nothing says then whether it was fair.
///
/// Source: R. Jain, D.-M. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination for
/// Resource Allocation in Shared Computer Systems", DEC Research Report TR-301, September 1984.
pub fn shares(amounts: &[f64]) -> Option<Shares> {
    let total: f64 = amounts.iter().sum();
    if total == 0.0 {
        return None;
    }
    let even = total / amounts.len() as f64;
    // In shares of the even amount the sum is n, and no square can overflow or lose precision.
    let squares: f64 = amounts.iter().map(|amount| (amount / even).powi(2)).sum();
    Some(Shares {
        jain: (amounts.len() as f64 / squares).min(1.0),
        min_share: amounts.iter().map(|amount| amount / even).fold(f64::INFINITY, f64::min),
        max_share: amounts.iter().map(|amount| amount / even).fold(0.0, f64::max),
    })
}

/// Whether one of so many parties was starved: it got less than half of what it was to get, and less than chance explains.
///
/// Parties that are served alike get Poisson counts, or binomial ones of a given sum, whose lower tail is the lighter
/// (T. W. Anderson, S. M. Samuels, "Some Inequalities Among Binomial and Poisson Probabilities", Proc. Fifth Berkeley
/// Symp. 1, 1967). The probability of so small a count, times the number of parties (Bonferroni), bounds how often any of
/// them is called starved by chance.
pub fn is_starved(got: u64, expected: f64, parties: usize) -> bool {
    if got as f64 >= expected / 2.0 {
        return false;
    }
    poisson_at_most(got, expected) * parties as f64 <= FALSE_ALARMS
}

/// The chance of so many arrivals or fewer where `mean` are expected and each comes by itself.
pub fn poisson_at_most(got: u64, mean: f64) -> f64 {
    // The one after them comes later.
    gamma_at_most_and_above(got.saturating_add(1), mean).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// So many gaps of a Poisson process of rate 1.
    fn poisson_gaps(seed: u64, gaps: usize, messages_of_gap: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        (0..gaps).map(|_| (0..messages_of_gap).map(|_| -(1.0 - random.f64()).ln()).sum()).collect()
    }

    /// Of so many samples, how many a test at `level` refuses.
    fn refused(samples: u64, level: f64, gaps: impl Fn(u64) -> Vec<f64>, of: u64) -> u64 {
        (0..samples).filter(|seed| gaps_p_value(&gaps(*seed), of).unwrap() < level).count() as u64
    }

    /// The same probability by the exact series (Anderson and Darling 1952, Ann. Math. Stat. 23, 193), its integrals summed
    /// in small steps.
    fn above_by_series(statistic: f64) -> f64 {
        use std::f64::consts::PI;
        const STEP: f64 = 0.005;
        let mut coefficient = 1.0;
        let mut at_most = 0.0;
        for j in 0..6 {
            let j = f64::from(j);
            let odd = 4.0 * j + 1.0;
            let fall = (odd * PI).powi(2) / (8.0 * statistic);
            let steps = (8.0 / fall.sqrt() / STEP) as u32;
            let integral = (0..steps).map(|step| {
                let square = (f64::from(step) * STEP).powi(2);
                let height = (statistic / (8.0 * (square + 1.0)) - fall * (1.0 + square)).exp();
                if step == 0 { height / 2.0 } else { height }
            });
            at_most += coefficient * odd * integral.sum::<f64>() * STEP;
            coefficient *= (-0.5 - j) / (j + 1.0);
        }
        1.0 - (2.0 * PI).sqrt() / statistic * at_most
    }

    #[test]
    fn points_are_those_of_the_series_and_the_tables() {
        for statistic in [0.2, 0.5, 1.0, 1.9, 2.0, 2.5, 4.0, 6.0, 8.0, 12.0] {
            let (found, exact) = (above_without_end(statistic), above_by_series(statistic));
            let error = (found - exact).abs();
            assert!(error < 2e-5, "{statistic}: {found}, not {exact}");
        }
        // Anderson and Darling 1954, table 2; Stephens 1974, J. Am. Stat. Assoc. 69, 730.
        for (statistic, above) in [(1.933, 0.10), (2.492, 0.05), (3.878, 0.010)] {
            let found = above_without_end(statistic);
            assert!((found - above).abs() < 5e-5, "{statistic}: {found}");
        }
        assert_eq!(above_without_end(0.0), 1.0);
        assert_eq!(above_without_end(f64::INFINITY), 0.0);
        // The tail goes on, down to nothing.
        let tail = [6.0, 8.0, 10.0, 20.0].map(above_without_end);
        assert!(tail.is_sorted_by(|more, less| more > less) && tail[3] < 1e-9);
    }

    /// Shares of samples of four values whose p-value is at most so much: right with the correction, wrong without.
    #[test]
    fn the_correction_is_right_for_few_values() {
        const SAMPLES: usize = 200_000;
        let mut random = fastrand::Rng::with_seed(4);
        let mut statistics = (0..SAMPLES)
            .map(|_| {
                let mut values: [f64; 4] = std::array::from_fn(|_| random.f64());
                values.sort_by(f64::total_cmp);
                anderson_darling(&values.map(|value| (value, 1.0 - value)))
            })
            .collect::<Vec<_>>();
        statistics.sort_by(f64::total_cmp);
        let worst = |p_value: &dyn Fn(f64) -> f64| {
            let errors = [0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9].map(|above| {
                let at = ((1.0 - above) * SAMPLES as f64) as usize;
                (p_value(statistics[at]) - above).abs()
            });
            errors.into_iter().fold(0.0, f64::max)
        };
        // The share of a half is known within 0.0011 (a standard deviation).
        let (with, without) = (worst(&|it| p_value(4.0, it)), worst(&above_without_end));
        assert!(with < 0.003 && without > 0.006, "{with}, {without}");
    }

    #[test]
    fn the_statistic_is_that_of_its_formula() {
        // Two values: -2 - (ln u1 (1 - u2) + 3 ln u2 (1 - u1)) / 2.
        let (low, high): (f64, f64) = (0.2, 0.7);
        let exact = -2.0 - ((low * 0.3).ln() + 3.0 * (high * 0.8).ln()) / 2.0;
        let found = anderson_darling(&[(low, 0.8), (high, 0.3)]);
        assert!((found - exact).abs() < 1e-12);
    }

    #[test]
    fn the_level_is_held() {
        for (of, gaps, samples) in
            [(1, 50, 4000), (1, 1000, 4000), (20, 200, 1000), (2000, 50, 1000)]
        {
            for level in [0.05, 0.01, 0.001] {
                let found = refused(samples, level, |seed| poisson_gaps(seed, gaps, of), of);
                // Within four standard deviations of what chance has, and one.
                let (mean, found) = (samples as f64 * level, found as f64);
                let within = 4.0 * (mean * (1.0 - level)).sqrt() + 1.0;
                assert!((found - mean).abs() < within, "{of}: {found} at {level}");
            }
        }
    }

    #[test]
    fn what_is_no_poisson_process_is_found() {
        let level = 0.001;
        // Fixed gaps, with the jitter of a clock.
        let fixed = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            (0..100).map(|_| 0.95 + 0.1 * random.f64()).collect()
        };
        assert_eq!(refused(100, level, fixed, 1), 100);
        // A rate that is 10 % too low or too high; in longer gaps too.
        for (gaps, of) in [(5000, 1), (500, 10)] {
            for factor in [0.9, 1.1] {
                let wrong = |seed| {
                    poisson_gaps(seed, gaps, of).into_iter().map(|gap| gap * factor).collect()
                };
                assert!(refused(100, level, wrong, of) > 95, "{factor} {of}");
            }
        }
        // Pairs: every second arrival is held until the next. The rate is right.
        let pairs = |seed| {
            let gaps = poisson_gaps(seed, 400, 1);
            gaps.chunks_exact(2).flat_map(|pair| [pair[0] + pair[1], 1e-3]).collect()
        };
        assert_eq!(refused(100, level, pairs, 1), 100);
        // A stall: arrivals of a tenth of the time come at once at its end.
        let stall = |seed| {
            let mut gaps = poisson_gaps(seed, 1000, 1);
            let held = gaps[..100].iter().sum();
            gaps[..100].fill(1e-3);
            gaps[0] = held;
            gaps
        };
        assert_eq!(refused(100, level, stall, 1), 100);
    }

    #[test]
    fn what_cannot_be_tested_is_not() {
        let gaps = poisson_gaps(1, 50, 1);
        assert!(gaps_p_value(&gaps, 1).is_some());
        assert_eq!(gaps_p_value(&gaps[1..], 1), None);
        assert_eq!(gaps_p_value(&gaps, 0), None);
        assert_eq!(gaps_p_value(&[f64::NAN; 50], 1), None);
        // Times that a Poisson process cannot have.
        for impossible in [0.0, -1.0, f64::INFINITY] {
            assert_eq!(gaps_p_value(&[impossible; 60], 3), Some(0.0));
        }
        assert_eq!(gaps_p_value(&[1e5; 60], 1_000_000), Some(0.0));
    }

    #[test]
    fn no_traffic_is_neither_fair_nor_unfair() {
        assert_eq!(shares(&[]), None);
        assert_eq!(shares(&[0.0; 3]), None);
    }

    #[test]
    fn the_extremes() {
        let even = Shares { jain: 1.0, min_share: 1.0, max_share: 1.0 };
        assert_eq!(shares(&[7.0]), Some(even));
        assert_eq!(shares(&[7.0; 4]), Some(even));
        let alone = Shares { jain: 0.25, min_share: 0.0, max_share: 4.0 };
        assert_eq!(shares(&[0.0, 9.0, 0.0, 0.0]), Some(alone));
    }

    /// e^-m Σ m^i / i!
    fn poisson_at_most(count: u64, mean: f64) -> f64 {
        let terms = (1..=count).scan((-mean).exp(), |term, i| {
            *term *= mean / i as f64;
            Some(*term)
        });
        (-mean).exp() + terms.sum::<f64>()
    }

    #[test]
    fn chance_starves_none_of_many_parties_more_often_than_told() {
        for parties in [2, 256, 4096] {
            for mean in [1.0, 12.0, 24.0, 36.0, 100.0, 600.0] {
                let most = (0..1000).filter(|got| is_starved(*got, mean, parties)).max();
                let Some(most) = most else { continue };
                assert!((0..most).all(|got| is_starved(got, mean, parties)));
                let chance = poisson_at_most(most, mean) * parties as f64;
                assert!(chance <= 1e-4, "{parties} {mean}: {most}");
                // One more is not starved: it is half, or chance explains it.
                let one_more = poisson_at_most(most + 1, mean) * parties as f64;
                let is_half = (most + 1) as f64 >= mean / 2.0;
                assert!(is_half || one_more > 1e-4, "{parties} {mean}: {most}");
            }
        }
        assert!(poisson_at_most(99, 200.0) * 4096.0 < 1e-11);
        for (got, mean, parties, expected) in [
            // 256 parties with 24 each: 3 have a chance of 2.5 in 10^5, 4 one of 1.6 in 10^4.
            (3, 24.0, 256, true),
            (4, 24.0, 256, false),
            (0, 1.0, 2, false),
            (499_999, 1e6, 4096, true),
            (500_000, 1e6, 4096, false),
            (0, 0.0, 4, false),
        ] {
            let result = is_starved(got, mean, parties);
            assert_eq!(result, expected, "{got} of {mean} among {parties}");
        }
    }

    proptest! {
        #[test]
        fn stays_within_its_bounds(amounts in proptest::collection::vec(any::<u64>(), 1..100)) {
            let amounts: Vec<f64> = amounts.into_iter().map(|amount| amount as f64).collect();
            if let Some(result) = shares(&amounts) {
                let n = amounts.len() as f64;
                prop_assert!(result.jain >= 1.0 / n - 1e-9 && result.jain <= 1.0);
                prop_assert!(result.min_share <= 1.0 + 1e-9 && result.max_share >= 1.0 - 1e-9);
            } else {
                prop_assert!(amounts.iter().all(|&amount| amount == 0.0));
            }
        }
    }
}
