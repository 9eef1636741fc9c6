//! What the trials at one load say together: that it keeps the limits for sure, that it breaks them for sure, or
//! neither yet.
//!
//! A trial's figure is the logarithm of its excess: the share of messages that were above a limit, over the share that
//! the limit allows (1 % for p99); below 0 the trial kept its limits. Queues are busy in bursts, so trials scatter, and
//! their distribution leans: most have less than the mean, a few far more. The share over all time is the mean. So
//! a load
//!
//! - **keeps** the limits if the mean share is below what they allow. Trials are taken for log-normal, of which the mean
//!   is exp(μ + σ²/2), with the confidence bound of D. R. Cox for it (U. Olsson: Confidence Intervals for the Mean of a
//!   Log-Normal Distribution, J. Stat. Educ. 13(1), 2005): m + s²/2 + t·√(s²/n + s⁴/2(n−1)) < 0;
//! - **breaks** them if more than half of the trials do (RFC 9971's exceed ratio 1/2): m − t·√(s²/n) > 0;
//!
//! each with 99 % confidence by Student's t, from 4 trials on. Loads are looked at after each trial, and several are
//! tried: together that comes to 19 of 20 searches at least whose bounds hold the limit (`bounds_tests`).

use statistics::t_quantile;

/// Fewest trials that say something for sure.
const FEWEST: usize = 4;

/// After so many trials a load that says nothing is left alone.
const MOST: usize = 8;

/// How likely a bound is wrong that says something for sure.
const TAIL: f64 = 0.01;

/// Least variance of the logarithms: trials that are equal by chance tell no more than 2 %.
const LEAST_VARIANCE: f64 = 0.0004;

/// Fewest times that a schedule is not kept where the load is out of the harness' reach.
const FEWEST_UNKEPT: u32 = 2;

/// A bound that a load may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    /// It keeps the limits.
    Lower,
    /// It breaks them.
    Upper,
}

/// The trials at one load.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Logarithms of the excess.
    logs: Vec<f64>,
    /// Trials that did not keep their schedule.
    unkept: u32,
}

impl Evidence {
    /// Adds a trial with so many times the messages above a limit that it allows.
    pub(super) fn add(&mut self, excess: f64) {
        self.logs.push(excess.max(f64::MIN_POSITIVE).ln());
    }

    /// Adds a trial that did not keep its schedule.
    pub(super) fn add_unkept(&mut self) {
        self.unkept += 1;
    }

    pub(super) fn trials(&self) -> u32 {
        self.unkept + u32::try_from(self.logs.len()).unwrap_or(u32::MAX)
    }

    /// Whether the harness cannot keep this load's schedule: it did not in half of the trials.
    pub(super) fn is_out_of_reach(&self) -> bool {
        self.unkept >= FEWEST_UNKEPT && self.unkept as usize >= self.logs.len()
    }

    /// What the load is for sure.
    pub(super) fn bound(&self) -> Option<Bound> {
        let count = self.logs.len();
        if count < FEWEST {
            return None;
        }
        let (n, mean) = (count as f64, self.mean());
        let variance = (self.logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0))
            .max(LEAST_VARIANCE);
        let t = t_quantile(TAIL, n - 1.0);
        let of_mean = variance / n;
        let leaning = variance * variance / (2.0 * (n - 1.0));
        if mean + variance / 2.0 + t * (of_mean + leaning).sqrt() < 0.0 {
            Some(Bound::Lower)
        } else if mean - t * of_mean.sqrt() > 0.0 {
            Some(Bound::Upper)
        } else {
            None
        }
    }

    /// Whether more trials are not likely to make it this bound soon: it is the other one, trials speak against it, or
    /// there were enough.
    pub(super) fn is_hopeless_as(&self, bound: Bound) -> bool {
        let sign = match bound {
            Bound::Lower => 1.0,
            Bound::Upper => -1.0,
        };
        let against = self.logs.iter().filter(|log| *log * sign > 0.0).count();
        self.is_worn_out()
            || self.bound().is_some_and(|it| it != bound)
            || against >= 2
            || (self.logs.len() >= 3 && self.mean() * sign > 0.0)
    }

    /// Whether it is left alone.
    pub(super) fn is_worn_out(&self) -> bool {
        self.is_out_of_reach() || self.logs.len() >= MOST
    }

    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.logs.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(excesses: &[f64]) -> Evidence {
        let mut evidence = Evidence::default();
        excesses.iter().for_each(|excess| evidence.add(*excess));
        evidence
    }

    #[test]
    fn four_clear_trials_are_a_bound() {
        assert_eq!(of(&[0.05; 3]).bound(), None);
        assert_eq!(of(&[0.05; 4]).bound(), Some(Bound::Lower));
        assert_eq!(of(&[0.0; 4]).bound(), Some(Bound::Lower));
        assert_eq!(of(&[20.0; 4]).bound(), Some(Bound::Upper));
        assert_eq!(of(&[0.8, 1.2, 0.9, 1.1]).bound(), None);
    }

    #[test]
    fn rare_bursts_count_against_a_lower_bound_by_what_they_weigh() {
        // The mean is above 1, though 7 of 8 kept.
        let bursts = of(&[0.3, 0.2, 0.3, 0.2, 0.3, 0.2, 0.3, 30.0]);
        assert_eq!(bursts.bound(), None);
        assert!(bursts.is_worn_out());
        // Widely scattered, all kept.
        assert_eq!(of(&[0.9, 0.1, 0.9, 0.1, 0.9]).bound(), None);
    }

    #[test]
    fn what_speaks_against_a_bound_ends_its_trials() {
        let broke = of(&[2.0, 0.5, 2.0]);
        assert!(broke.is_hopeless_as(Bound::Lower));
        assert!(!broke.is_hopeless_as(Bound::Upper));
        assert!(of(&[0.9, 0.9]).is_hopeless_as(Bound::Upper));
        assert!(of(&[0.01, 0.01, 1.1, 0.01]).mean() < 0.0);
        assert!(!of(&[1.01, 0.5, 0.5]).is_hopeless_as(Bound::Lower));
        assert!(!of(&[]).is_hopeless_as(Bound::Lower));
        let mut unkept = Evidence::default();
        unkept.add_unkept();
        assert!(!unkept.is_out_of_reach());
        unkept.add_unkept();
        assert!(unkept.is_hopeless_as(Bound::Upper) && unkept.trials() == 2);
        (0..3).for_each(|_| unkept.add(2.0));
        assert!(!unkept.is_out_of_reach(), "the machine was busy for a while");
    }
}
