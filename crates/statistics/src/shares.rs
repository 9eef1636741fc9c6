//! How evenly something was shared. It must not know what was shared among whom.

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
    let relative = |amount: &f64| amount / even;
    // In shares of the even amount the sum is n, and no square can overflow or lose precision.
    let squares: f64 = amounts.iter().map(|amount| relative(amount).powi(2)).sum();
    Some(Shares {
        jain: (amounts.len() as f64 / squares).min(1.0),
        min_share: amounts.iter().map(relative).fold(f64::INFINITY, f64::min),
        max_share: amounts.iter().map(relative).fold(0.0, f64::max),
    })
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
        let even = Shares {
            jain: 1.0,
            min_share: 1.0,
            max_share: 1.0,
        };
        assert_eq!(shares(&[7.0]), Some(even));
        assert_eq!(shares(&[7.0; 4]), Some(even));
        let alone = Shares {
            jain: 0.25,
            min_share: 0.0,
            max_share: 4.0,
        };
        assert_eq!(shares(&[0.0, 9.0, 0.0, 0.0]), Some(alone));
    }

    proptest! {
        #[test]
        fn stays_within_its_bounds(amounts in proptest::collection::vec(any::<u64>(), 1..100)) {
            let amounts: Vec<f64> = amounts.into_iter().map(|amount| amount as f64).collect();
            if let Some(told) = shares(&amounts) {
                let n = amounts.len() as f64;
                prop_assert!(told.jain >= 1.0 / n - 1e-9 && told.jain <= 1.0);
                prop_assert!(told.min_share <= 1.0 + 1e-9 && told.max_share >= 1.0 - 1e-9);
            } else {
                prop_assert!(amounts.iter().all(|&amount| amount == 0.0));
            }
        }
    }
}
