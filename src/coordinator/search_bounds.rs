//! Which load to try next, and what the trials so far make of the highest load that keeps the limits: a lower bound and
//! an upper bound of it.
//!
//! The way is that of MLRsearch (RFC 9971): short trials first, then trials of the full length; several at a load, which
//! is a lower or an upper bound only if they say so together ([`Evidence`]); the loads between the bounds are undecided.
//!
//! 1. **Bracket**: loads are halved between the highest that kept and the lowest that broke, one trial each, until they
//!    are a goal width apart. One trial may err; it only steers.
//! 2. **Confirm**: trials at either end of the bracket, in turns, until each end is a bound. A load that trials speak
//!    against is left, for one further out: 1, 2, 4 … goal widths.

use std::collections::BTreeMap;

use plan::Searches;
use results::model::{SearchEnd, TrialOutcome};
use statistics::t_quantile;

/// When trials at a load say together that it is a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rule {
    /// By their excesses, which scatter around that of the load.
    #[default]
    ByExcess,
    /// By how many broke it, as in RFC 9971 with a goal loss ratio of 0, an exceed ratio of 1/2 and a duration sum of
    /// [`MOST`] trials: a load is a bound as soon as no further trial of these could change that.
    ByCount,
}

/// How close bounds are to be, as a share of the load; the bounds of a percentile that scatters are further apart.
const GOAL_WIDTH: f64 = 0.01;

/// A trial is short while the bracket is wider than so many goal widths.
const SHORT_ABOVE: u64 = 4;

/// Trials that both bounds take together where nothing is close, for the estimate.
const USUAL_TO_CONFIRM: u32 = 14;

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A trial at a load, in messages a second.
    Try {
        load: u64,
        /// It only steers, and may be short.
        is_short: bool,
    },
    Over(SearchEnd),
}

#[derive(Clone, Debug)]
pub(super) struct Bounds {
    rule: Rule,
    lowest: u64,
    highest: u64,
    loads: BTreeMap<u64, Evidence>,
    trials: u32,
    is_bracketed: bool,
    /// The highest load that kept in the bracket, 0 without.
    kept: u64,
    /// The lowest that broke, above `highest` without.
    broke: u64,
    lower: Candidate,
    upper: Candidate,
}

/// The load that may become a bound.
#[derive(Clone, Copy, Debug, Default)]
struct Candidate {
    load: u64,
    /// Loads that were left before it.
    left: u32,
}

/// A share of a load that is a goal width.
fn goal_width(load: u64) -> u64 {
    ((load as f64 * GOAL_WIDTH) as u64).max(1)
}

/// A load of four digits, so that it is read easily.
fn rounded(load: u64) -> u64 {
    let digits = load.max(1).ilog10();
    let unit = 10u64.pow(digits.saturating_sub(3));
    (load + unit / 2) / unit * unit
}

impl Bounds {
    /// Among loads of `lowest` to `highest` messages a second, both above 0.
    pub(super) fn new(rule: Rule, lowest: u64, highest: u64) -> Bounds {
        let most = highest.max(1);
        Bounds {
            rule,
            lowest: lowest.clamp(1, most),
            highest: most,
            loads: BTreeMap::new(),
            trials: 0,
            is_bracketed: false,
            kept: 0,
            broke: most + 1,
            lower: Candidate::default(),
            upper: Candidate::default(),
        }
    }

    /// Goes on above the highest load, which keeps the limits.
    pub(super) fn raise(&mut self) {
        self.kept = self.highest;
        self.highest = self.highest.saturating_mul(4);
        self.broke = self.highest.saturating_add(1);
        self.is_bracketed = false;
    }

    /// The highest load that keeps the limits for sure below the lowest that breaks them for sure, and that one.
    pub(super) fn found(&self) -> (Option<u64>, Option<u64>) {
        let upper = self
            .loads
            .iter()
            .find(|(_, it)| it.bound() == Some(Bound::Upper))
            .map(|(load, _)| *load);
        let lower = self
            .loads
            .range(..upper.unwrap_or(u64::MAX))
            .rev()
            .find(|(_, it)| it.bound() == Some(Bound::Lower))
            .map(|(load, _)| *load);
        (lower, upper)
    }

    /// Where the limit is by what is known or, before bounds are, by what is believed.
    pub(super) fn within(&self) -> (u64, u64) {
        let (low, high) = if self.is_bracketed {
            (self.lower.load, self.upper.load)
        } else {
            (self.kept, self.broke.min(self.highest))
        };
        let (lower, upper) = self.found();
        (lower.unwrap_or(low), upper.unwrap_or(high))
    }

    /// The load from which on the harness did not keep its schedule, where that ended the search.
    pub(super) fn out_of_reach(&self) -> Option<u64> {
        let mut loads = self.loads.iter();
        let found = loads.find(|(_, it)| it.is_out_of_reach());
        found.map(|(load, _)| *load)
    }

    /// How many trials are still to come, about.
    pub(super) fn trials_left(&self) -> u32 {
        if !self.is_bracketed {
            let width = self.broke.saturating_sub(self.kept) / goal_width(self.broke);
            return width.max(1).ilog2() + 1 + USUAL_TO_CONFIRM;
        }
        let left: u32 = [(self.lower, Bound::Lower), (self.upper, Bound::Upper)]
            .into_iter()
            .filter_map(|(candidate, bound)| self.trials_if_open(candidate, bound))
            // Some are left for loads further out.
            .map(|trials| 6u32.saturating_sub(trials).max(1))
            .sum();
        left.min(Searches::MOST_TRIALS.saturating_sub(self.trials)).max(1)
    }

    /// Adds a trial. One that failed says nothing.
    pub(super) fn add(&mut self, load: u64, is_short: bool, outcome: TrialOutcome, excess: f64) {
        self.trials += 1;
        if !is_short {
            let blank = Evidence { rule: self.rule, ..Evidence::default() };
            let evidence = self.loads.entry(load).or_insert(blank);
            match outcome {
                TrialOutcome::Kept | TrialOutcome::Broke => evidence.add(excess),
                TrialOutcome::NotKept => evidence.add_unkept(),
                TrialOutcome::Failed => {}
            }
        }
        if !self.is_bracketed {
            match outcome {
                TrialOutcome::Kept => self.kept = load,
                TrialOutcome::Broke | TrialOutcome::NotKept => self.broke = load,
                TrialOutcome::Failed => {}
            }
        }
    }

    pub(super) fn next(&mut self) -> Next {
        if self.trials >= Searches::MOST_TRIALS {
            return Next::Over(SearchEnd::TrialsSpent);
        }
        if let Some(next) = self.bracket() {
            return next;
        }
        if let Some(end) = self.settle() {
            return Next::Over(end);
        }
        let open = [(self.lower, Bound::Lower), (self.upper, Bound::Upper)].into_iter().filter_map(
            |(candidate, bound)| Some((self.trials_if_open(candidate, bound)?, candidate.load)),
        );
        // In turns, so that what changes over time is not taken for what changes with the load.
        match open.min_by_key(|(trials, _)| *trials) {
            Some((_, load)) => Next::Try { load, is_short: false },
            None if self.evidence(self.upper.load).is_out_of_reach() => {
                Next::Over(SearchEnd::ScheduleNotKept)
            }
            None => match self.found() {
                (Some(_), Some(_)) => Next::Over(SearchEnd::Found),
                _ => Next::Over(SearchEnd::TrialsSpent),
            },
        }
    }

    /// The trials of a candidate that more of them may still show to be the bound.
    fn trials_if_open(&self, candidate: Candidate, bound: Bound) -> Option<u32> {
        let evidence = self.evidence(candidate.load);
        let is_open = evidence.bound() != Some(bound) && !evidence.is_worn_out();
        is_open.then(|| evidence.trials())
    }

    fn evidence(&self, load: u64) -> Evidence {
        self.loads.get(&load).cloned().unwrap_or_default()
    }

    /// The next trial of the bracket, until there is one.
    fn bracket(&mut self) -> Option<Next> {
        if self.is_bracketed {
            return None;
        }
        let (width, goal) = (self.broke - self.kept, goal_width(self.broke));
        if width > goal && self.kept < self.highest && self.broke > self.lowest {
            let is_last = self.broke > self.highest && width <= 3 * goal;
            let load = match self.kept {
                _ if is_last => self.highest,
                0 => rounded(self.broke / 2).max(self.lowest),
                kept => rounded(kept.midpoint(self.broke)).min(self.highest),
            };
            // Rounded, few loads are left.
            if load > self.kept && load < self.broke {
                let is_short = width > SHORT_ABOVE * goal;
                return Some(Next::Try { load, is_short });
            }
        }
        self.is_bracketed = true;
        self.lower = Candidate { load: self.kept.clamp(self.lowest, self.highest), left: 0 };
        self.upper = Candidate { load: self.broke.clamp(self.lowest, self.highest), left: 0 };
        None
    }

    /// Leaves candidates that trials speak against; the end, if there is nowhere to go.
    fn settle(&mut self) -> Option<SearchEnd> {
        while self.is_left(self.lower, Bound::Lower) && self.lower.load > self.lowest {
            let step = goal_width(self.lower.load) << self.lower.left.min(16);
            let load = rounded(self.lower.load.saturating_sub(step)).max(self.lowest);
            self.lower =
                Candidate { load: load.min(self.lower.load - 1), left: self.lower.left + 1 };
        }
        let at_lowest = self.evidence(self.lower.load);
        if at_lowest.is_out_of_reach() {
            return Some(SearchEnd::ScheduleNotKept);
        }
        if at_lowest.bound() == Some(Bound::Upper) {
            return Some(SearchEnd::NoneKeeps);
        }
        while self.is_left(self.upper, Bound::Upper) && self.upper.load < self.highest {
            let step = goal_width(self.upper.load) << self.upper.left.min(16);
            let load = rounded(self.upper.load + step).min(self.highest);
            self.upper =
                Candidate { load: load.max(self.upper.load + 1), left: self.upper.left + 1 };
        }
        let is_lower = self.evidence(self.upper.load).bound() == Some(Bound::Lower);
        (is_lower && self.upper.load == self.highest).then_some(SearchEnd::AllKeep)
    }

    /// Whether a load is not the bound that it was tried for. Above one that is out of reach there is nothing to try.
    fn is_left(&self, candidate: Candidate, bound: Bound) -> bool {
        let evidence = self.evidence(candidate.load);
        match bound {
            Bound::Upper if evidence.is_out_of_reach() => false,
            bound => evidence.bound() != Some(bound) && evidence.is_hopeless_as(bound),
        }
    }
}

/// A bound that a load may be: a lower one keeps the limits, an upper one breaks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Lower,
    Upper,
}

/// What the trials at one load say together: that it keeps the limits for sure, that it breaks them for sure, or
/// neither yet.
///
/// A trial's figure is the logarithm of its excess: the share of messages that were above a limit, over the share that
/// the limit allows (1 % for p99); below 0 the trial kept its limits. Queues are busy in bursts, so trials scatter, and
/// their distribution leans: most have less than the mean, a few far more. The share over all time is the mean. So
/// a load
///
/// - **keeps** the limits if the mean share is below what they allow. Trials are taken for log-normal, of which the mean
///   is exp(μ + σ²/2), with the confidence bound of D. R. Cox for it (U. Olsson: Confidence Intervals for the Mean of a
///   Log-Normal Distribution, J. Stat. Educ. 13(1), 2005): m + s²/2 + t·√(s²/n + s⁴/2(n−1)) < 0;
/// - **breaks** them if more than half of the trials do (RFC 9971's exceed ratio 1/2): m − t·√(s²/n) > 0;
///
/// each with 99 % confidence by Student's t, from 4 trials on. Loads are looked at after each trial, and several are
/// tried: together that comes to 19 of 20 searches at least whose bounds hold the limit (`search_bounds_tests`).
#[derive(Clone, Debug, Default)]
struct Evidence {
    rule: Rule,
    /// Natural logarithms of the trials' excess.
    logs: Vec<f64>,
    /// Trials that did not keep their schedule.
    unkept: u32,
}

impl Evidence {
    /// Adds a trial with so many times the messages above a limit that it allows.
    fn add(&mut self, excess: f64) {
        self.logs.push(excess.max(f64::MIN_POSITIVE).ln());
    }

    /// Adds a trial that did not keep its schedule.
    fn add_unkept(&mut self) {
        self.unkept += 1;
    }

    fn trials(&self) -> u32 {
        self.unkept + u32::try_from(self.logs.len()).unwrap_or(u32::MAX)
    }

    /// Whether the harness cannot keep this load's schedule: it did not in half of the trials.
    fn is_out_of_reach(&self) -> bool {
        self.unkept >= FEWEST_UNKEPT && self.unkept as usize >= self.logs.len()
    }

    /// What the load is for sure.
    fn bound(&self) -> Option<Bound> {
        let count = self.logs.len();
        if self.rule == Rule::ByCount {
            let broke = self.logs.iter().filter(|log| **log > 0.0).count();
            let is_lower = count - broke >= MOST / 2;
            return (is_lower || broke > MOST / 2).then_some(if is_lower {
                Bound::Lower
            } else {
                Bound::Upper
            });
        }
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
    fn is_hopeless_as(&self, bound: Bound) -> bool {
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
    fn is_worn_out(&self) -> bool {
        self.is_out_of_reach() || self.logs.len() >= MOST
    }

    fn mean(&self) -> f64 {
        self.logs.iter().sum::<f64>() / self.logs.len().max(1) as f64
    }
}

#[cfg(test)]
#[path = "search_bounds_tests.rs"]
mod tests;
