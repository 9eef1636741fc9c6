//! How evenly something was shared, and who got less than chance explains.

use super::distributions::gamma_at_most_and_above;

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
    // So many arrivals or fewer: the one after them comes later.
    let (_, chance) = gamma_at_most_and_above(got.saturating_add(1), expected);
    chance * parties as f64 <= FALSE_ALARMS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
