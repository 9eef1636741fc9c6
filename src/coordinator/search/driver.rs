//! A search from its first trial to its end: trials at the loads that `bounds` asks for become what the result tells of
//! the search.

use std::time::{Duration, Instant};

use results::model::{
    BEYOND, LatencyLimit, LoadSearch, Run, SearchEnd, Trial, TrialOutcome, fewest_samples,
};
use settings::TimeSpan;

use crate::coordinator::observer::TrialStart;
use crate::coordinator::sweeper::StopReason;
use plan::Goal;

use super::bounds::{Bounds, Next};
use super::judge::judge;

/// A trial is so long that it has samples enough for a percentile but for once in 3 million: so many standard deviations of
/// a Poisson count are left for chance.
const DEVIATIONS: f64 = 5.0;

/// The lowest load that is tried, as a share of the closed loop's maximum.
const LOWEST_SHARE: f64 = 0.01;

/// `--knee` compares with the latency at this share of the closed loop's maximum.
const REFERENCE_SHARE: f64 = 0.1;

/// Trials there, of whose p99 the median counts.
const REFERENCE_TRIALS: usize = 3;

/// How often a schedule may be missed there.
const REFERENCE_MISSES: usize = 3;

/// A short trial is such a part of a whole one.
const SHORT_PART: u64 = 4;

/// A trial that is wanted, at the load of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// Length of its window.
    pub(super) span: TimeSpan,
    /// Differs between all trials of a case.
    pub(super) seed: u32,
}

pub(super) trait Trials {
    /// Runs one; what failed is in it.
    fn run(&mut self, ask: Ask, start: TrialStart<'_>) -> Result<Run, StopReason>;
    fn note(&mut self, text: &str);
}

/// Messages that a trial must be planned to have for a percentile: the mean m of a Poisson count of which
/// m - [`DEVIATIONS`] √m are enough.
fn enough_messages(percentile: f64) -> f64 {
    let fewest = fewest_samples(percentile / 100.0) as f64;
    let root = f64::midpoint(DEVIATIONS, (DEVIATIONS * DEVIATIONS + 4.0 * fewest).sqrt());
    root * root
}

/// Why a search ends before its bounds are found.
enum Cut {
    /// There is no more to learn here.
    Ended(SearchEnd, String),
    Stopped(StopReason),
}

/// Searches for a goal, up to `maximum` messages a second, by trials of a length. What was found so far is there also
/// where the sweep cannot go on.
pub(super) fn search(
    goal: &Goal,
    maximum: f64,
    span: TimeSpan,
    trials: &mut dyn Trials,
) -> (LoadSearch, Result<(), StopReason>) {
    let mut searching = Searching {
        goal,
        span,
        trials,
        found: LoadSearch {
            asked: goal.to_string(),
            maximum_per_second: maximum,
            trial_seconds: seconds(span),
            ..LoadSearch::default()
        },
        beside_windows: Duration::ZERO,
    };
    let done = searching.run();
    let found = &mut searching.found;
    match done {
        Ok(end) => {
            found.end = end;
            (searching.found, Ok(()))
        }
        Err(Cut::Ended(end, note)) => {
            (found.end, found.note) = (end, Some(note));
            (searching.found, Ok(()))
        }
        Err(Cut::Stopped(reason)) => {
            found.end = SearchEnd::Stopped;
            (searching.found, Err(reason))
        }
    }
}

fn seconds(span: TimeSpan) -> f64 {
    Duration::from(span).as_secs_f64()
}

/// The longer of two spans, the second in seconds.
fn at_least(span: TimeSpan, least: f64) -> TimeSpan {
    // Whole milliseconds read easily.
    let least_ns = ((least * 1e3 - 1e-6).ceil() as u64).saturating_mul(1_000_000);
    span.max(TimeSpan::from_ns(least_ns).unwrap_or(TimeSpan::MAX))
}

/// A search on its way.
struct Searching<'a> {
    goal: &'a Goal,
    span: TimeSpan,
    trials: &'a mut dyn Trials,
    found: LoadSearch,
    /// What trials took beside their windows, all together.
    beside_windows: Duration,
}

impl Searching<'_> {
    fn run(&mut self) -> Result<SearchEnd, Cut> {
        let lowest = self.lowest()?;
        match self.goal {
            Goal::Slo(slo) => self.found.limits.clone_from(&slo.limits),
            Goal::Knee(factor) => {
                let reference = self.reference(lowest)?;
                self.found.reference_p99_ns = Some(reference);
                self.found.limits = vec![LatencyLimit {
                    percentile: 99.0,
                    // At most so many times, and a limit is what latency is below.
                    below_ns: (reference as f64 * factor.value()).floor() as u64 + 1,
                }];
            }
        }
        let mut bounds = Bounds::new(lowest, self.found.maximum_per_second as u64);
        loop {
            let (load, is_short) = match bounds.next() {
                Next::Try { load, is_short } => (load, is_short),
                Next::Over(end) => return self.ended(end, lowest, &bounds),
            };
            let trial = self.trial(load, is_short, Some(&bounds))?;
            let excess = trial.excess.unwrap_or_default();
            bounds.add(load, is_short, trial.outcome, excess);
            let (lower, upper) = bounds.found();
            self.found.lower_per_second = lower.map(|load| load as f64);
            self.found.upper_per_second = upper.map(|load| load as f64);
        }
    }

    /// Messages a second at which a trial of the usual length has enough beyond the percentile.
    fn fewest_per_second(&self) -> f64 {
        enough_messages(self.goal.rarest()) / seconds(self.span)
    }

    /// The lowest load to try: that of the reference for a knee, else 1 % of the maximum, and such that trials have
    /// messages enough.
    fn lowest(&self) -> Result<u64, Cut> {
        let (maximum, fewest) = (self.found.maximum_per_second, self.fewest_per_second());
        let (lowest, needed) = match self.goal {
            Goal::Slo(_) => (fewest.max(maximum * LOWEST_SHARE), maximum),
            Goal::Knee(_) => (maximum * REFERENCE_SHARE, maximum * REFERENCE_SHARE),
        };
        if fewest > needed {
            let at = match self.goal {
                Goal::Slo(_) => "the closed loop's",
                Goal::Knee(_) => "10 % of the closed loop's",
            };
            return Err(Cut::Ended(
                SearchEnd::TooFewMessages,
                format!("at {at} {maximum:.0} messages a second {}", self.too_few()),
            ));
        }
        Ok((lowest.ceil() as u64).max(1))
    }

    /// `a trial of 1 s may have fewer than 10 messages beyond p99.9; -D 22s has enough from 10 % load on`.
    fn too_few(&self) -> String {
        let percentile = self.goal.rarest();
        let tenth = self.found.maximum_per_second * REFERENCE_SHARE;
        let enough = enough_messages(percentile) / tenth.max(f64::MIN_POSITIVE);
        let span = self.span;
        format!(
            "a trial of {span} may have fewer than {BEYOND} messages beyond p{percentile}; -D {:.0}s has enough from \
             10 % load on",
            enough.ceil()
        )
    }

    /// The p99 that a knee is a multiple of.
    fn reference(&mut self, load: u64) -> Result<u64, Cut> {
        let (mut p99s, mut misses) = (Vec::new(), 0);
        while p99s.len() < REFERENCE_TRIALS {
            let trial = self.trial(load, false, None)?;
            match trial.p99_ns {
                Some(p99) if trial.outcome != TrialOutcome::NotKept => p99s.push(p99),
                _ => misses += 1,
            }
            if misses == REFERENCE_MISSES {
                let note = "rocebench could not keep its schedule at 10 % load: there is no latency to compare with";
                return Err(Cut::Ended(SearchEnd::ScheduleNotKept, note.to_owned()));
            }
        }
        p99s.sort_unstable();
        Ok(p99s[REFERENCE_TRIALS / 2])
    }

    /// The end, with the words that it needs.
    fn ended(&mut self, end: SearchEnd, lowest: u64, bounds: &Bounds) -> Result<SearchEnd, Cut> {
        let by_messages = self.fewest_per_second() > self.found.maximum_per_second * LOWEST_SHARE;
        match end {
            SearchEnd::NoneKeeps if by_messages && matches!(self.goal, Goal::Slo(_)) => {
                let few = self.too_few();
                Err(Cut::Ended(
                    SearchEnd::TooFewMessages,
                    format!(
                        "no load from {lowest} messages a second on keeps the limit, and below it {few}"
                    ),
                ))
            }
            SearchEnd::ScheduleNotKept => {
                let reach = bounds.out_of_reach();
                self.found.upper_per_second = reach.map(|load| load as f64);
                Ok(end)
            }
            end => Ok(end),
        }
    }

    /// A trial, which is in the result then; once more if it fails.
    fn trial(&mut self, load: u64, is_short: bool, bounds: Option<&Bounds>) -> Result<Trial, Cut> {
        let span = if is_short { self.short(load) } else { self.span };
        let mut failed = false;
        loop {
            let number =
                u32::try_from(self.found.trials.len()).unwrap_or(u32::MAX).saturating_add(1);
            let goal = self.found.asked.clone();
            let start = TrialStart {
                goal: &goal,
                number,
                load,
                within: bounds.map(Bounds::within),
                left: self.left(bounds),
            };
            let ask = Ask { span, seed: self.seed(number) };
            let begun = Instant::now();
            let run = self.trials.run(ask, start).map_err(Cut::Stopped)?;
            self.beside_windows += begun.elapsed().saturating_sub(span.into());
            if run.interrupted {
                return Err(Cut::Stopped(StopReason::Interrupted));
            }
            match judge(&run, load, &self.found.limits) {
                Ok(trial) => {
                    let trial = Trial { seconds: seconds(span), ..trial };
                    self.found.trials.push(trial.clone());
                    return Ok(trial);
                }
                Err(why) => {
                    self.found.trials.push(Trial {
                        asked_per_second: load as f64,
                        seconds: seconds(span),
                        outcome: TrialOutcome::Failed,
                        ..Trial::default()
                    });
                    let text =
                        format!("{goal}, trial {number} at {load} messages a second failed: {why}");
                    if failed {
                        return Err(Cut::Ended(SearchEnd::Stopped, text));
                    }
                    self.trials.note(&text);
                    failed = true;
                }
            }
        }
    }

    /// The length of a short trial, with messages enough.
    fn short(&self, load: u64) -> TimeSpan {
        let part = TimeSpan::from_ns(self.span.ns() / SHORT_PART).unwrap_or(self.span);
        let enough = enough_messages(self.goal.rarest()) / load.max(1) as f64;
        at_least(part, enough).min(self.span)
    }

    /// Of two searches of a case no trials have the same.
    fn seed(&self, number: u32) -> u32 {
        match self.goal {
            Goal::Slo(_) => number << 1,
            Goal::Knee(_) => number << 1 | 1,
        }
    }

    /// How long the search still takes, by the trials so far.
    fn left(&self, bounds: Option<&Bounds>) -> Option<Duration> {
        let done = u32::try_from(self.found.trials.len()).ok()?;
        let beside = self.beside_windows.checked_div(done)?;
        let trials = bounds.map(Bounds::trials_left)?;
        Some((beside + Duration::from(self.span)).saturating_mul(trials))
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
