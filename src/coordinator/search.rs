//! `--slo`, `--knee` and `--loss-search`: searches for the highest load that keeps limits of latency, or loses nothing, by
//! trials at the loads that [`Bounds`] asks for. Each trial is judged, and makes the bounds.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use plan::{Case, Goal, Searches};
use results::model::{
    BEYOND, FlowResult, Latency, LatencyLimit, Load, LoadSearch, LoadVerdict, NotKeptBy,
    PathEventKind, Run, SearchEnd, Trial, TrialOutcome, can_tell, fewest_samples,
};
use settings::{Arrivals, Stop, TimeSpan};

use super::interface::TrialStart;
use super::search_bounds::{Bounds, Next, Rule};
use super::sweeper::{StopReason, Sweeper, median_per_second};

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

/// Searches a case, whose closed loop has run, for each goal. What it came to is in the sweep's result.
pub(super) fn run_case(
    sweeper: &mut Sweeper<'_>,
    index: usize,
    case: &Case,
    searches: &Searches,
) -> Result<(), StopReason> {
    let Some(template) = searches.templates.get(index) else {
        return Ok(());
    };
    // A failed closed loop has told why.
    let Some(closed_loop) = ClosedLoop::new(sweeper, case) else {
        return Ok(());
    };
    let span = match template.stop() {
        Stop::DurationNs(ns) => TimeSpan::from_ns(ns).unwrap_or(TimeSpan::MAX),
        Stop::MessagesPerQp(_) => return Ok(()),
    };
    for goal in &searches.goals {
        let mut trials = CaseTrials { sweeper, index, case, template };
        let (found, done) = search(goal, closed_loop, span, &mut trials);
        publish(sweeper, case, found);
        done?;
    }
    Ok(())
}

/// What the closed loop of a case came to.
#[derive(Clone, Copy)]
struct ClosedLoop {
    /// Messages a second: those of the slower direction, the median of its runs.
    per_second: f64,
    /// Something was lost or sent again: a load without its bursts may be higher.
    is_lossy: bool,
}

impl ClosedLoop {
    fn new(sweeper: &Sweeper<'_>, case: &Case) -> Option<ClosedLoop> {
        let entry = sweeper.outcome.result.cases.last().filter(|entry| entry.id == case.id)?;
        let per_second = median_per_second(entry.runs.iter(), |run: &Run| {
            let rates: Option<Vec<f64>> = run.flows.iter().map(FlowResult::mmsg_per_s).collect();
            rates?.into_iter().reduce(f64::min)
        })?;
        Some(ClosedLoop { per_second, is_lossy: entry.runs.iter().any(|run| losses(run) > 0) })
    }
}

fn publish(sweeper: &mut Sweeper<'_>, case: &Case, found: LoadSearch) {
    let result = &mut sweeper.outcome.result;
    let Some(entry) = result.cases.last_mut().filter(|it| it.id == case.id) else {
        return;
    };
    entry.searches.push(found);
    if let Some(search) = result.cases.last().and_then(|it| it.searches.last()) {
        sweeper.observer.search_finished(case, search, result);
    }
}

struct CaseTrials<'a, 's> {
    sweeper: &'a mut Sweeper<'s>,
    index: usize,
    case: &'a Case,
    template: &'a Case,
}

impl Trials for CaseTrials<'_, '_> {
    fn run(&mut self, request: TrialRequest, start: TrialStart<'_>) -> Result<Run, StopReason> {
        // Trials are independent of each other, and the same again with the same --seed.
        let place = (self.index as u64) << 32 | u64::from(request.seed);
        let seed = fastrand::Rng::with_seed(self.template.seed ^ place.rotate_left(17)).u64(..);
        let trial = self.template.as_trial(start.load, request.span, seed >> 11);
        let total = self.sweeper.options.sweep.cases.len();
        let observer = &mut *self.sweeper.observer;
        observer.trial_started(self.index, total, self.case, start);
        self.sweeper.trial(&trial, start.number)
    }

    fn note(&mut self, text: &str) {
        let text = format!("{}: {text}", self.case.id);
        self.sweeper.observer.note(&text);
    }
}

/// A trial that is wanted, at the load of its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TrialRequest {
    /// The length of the window.
    span: TimeSpan,
    /// Differs between all trials of a case.
    seed: u32,
}

trait Trials {
    /// Runs one; what failed is in it.
    fn run(&mut self, request: TrialRequest, start: TrialStart<'_>) -> Result<Run, StopReason>;
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

/// Searches for a goal, up to the rate of the closed loop, by trials of a length. What was found so far is there also
/// where the sweep cannot go on.
fn search(
    goal: &Goal,
    closed_loop: ClosedLoop,
    span: TimeSpan,
    trials: &mut dyn Trials,
) -> (LoadSearch, Result<(), StopReason>) {
    let mut searching = Searching {
        goal,
        span,
        trials,
        found: LoadSearch {
            asked: goal.to_string(),
            maximum_per_second: closed_loop.per_second,
            trial_seconds: seconds(span),
            ..LoadSearch::default()
        },
        goes_beyond: closed_loop.is_lossy && *goal == Goal::ZeroLoss,
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
    /// The closed loop's rate is no limit.
    goes_beyond: bool,
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
            Goal::ZeroLoss => {}
        }
        let rule = if *self.goal == Goal::ZeroLoss { Rule::ByCount } else { Rule::ByExcess };
        let mut bounds = Bounds::new(rule, lowest, self.found.maximum_per_second as u64);
        loop {
            let (load, is_short) = match bounds.next() {
                Next::Try { load, is_short } => (load, is_short),
                Next::Over(SearchEnd::AllKeep) if self.goes_beyond => {
                    bounds.raise();
                    continue;
                }
                Next::Over(end) => return self.ended(end, lowest, &bounds),
            };
            let trial = self.trial(load, is_short, Some(&bounds))?;
            // Of losses trials are counted: a figure on either side of 1 will do.
            let counted = if trial.outcome == TrialOutcome::Broke { 2.0 } else { 0.5 };
            let excess = trial.excess.unwrap_or(counted);
            bounds.add(load, is_short, trial.outcome, excess);
            let (lower, upper) = bounds.found();
            self.found.lower_per_second = lower.map(|it| it as f64);
            self.found.upper_per_second = upper.map(|it| it as f64);
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
            Goal::Slo(_) | Goal::ZeroLoss => (fewest.max(maximum * LOWEST_SHARE), maximum),
            Goal::Knee(_) => (maximum * REFERENCE_SHARE, maximum * REFERENCE_SHARE),
        };
        if fewest > needed {
            let at = match self.goal {
                Goal::Slo(_) | Goal::ZeroLoss => "the closed loop's",
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
            SearchEnd::NoneKeeps if by_messages && !matches!(self.goal, Goal::Knee(_)) => {
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
            let request = TrialRequest { span, seed: self.seed(number) };
            let begun = Instant::now();
            let run = self.trials.run(request, start).map_err(Cut::Stopped)?;
            self.beside_windows += begun.elapsed().saturating_sub(span.into());
            if run.interrupted {
                return Err(Cut::Stopped(StopReason::Interrupted));
            }
            let by_latency = judge(&run, load, &self.found.limits);
            let judged = match self.goal {
                Goal::ZeroLoss => by_latency.and_then(|trial| judge_losses(&run, &trial)),
                Goal::Slo(_) | Goal::Knee(_) => by_latency,
            };
            match judged {
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
            Goal::ZeroLoss => !number,
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

/// The share of messages that a percentile leaves above it.
fn share_above(percentile: f64) -> f64 {
    1.0 - percentile / 100.0
}

/// What a run at `load` messages a second says: nothing where its schedule was not kept or it has failed.
///
/// # Errors
/// It failed, and why.
fn judge(run: &Run, load: u64, limits: &[LatencyLimit]) -> Result<Trial, String> {
    if !run.complete {
        let failure = run.failure.as_ref();
        return Err(failure.map_or_else(String::new, |it| it.message.clone()));
    }
    let (mut trial, mut excesses) = (Trial::default(), Vec::new());
    trial.asked_per_second = load as f64;
    trial.achieved_per_second = f64::INFINITY;
    for flow in &run.flows {
        let lacks = |what: &str| format!("the flow `{}` has no {what}", flow.name);
        let outcome = flow.load.as_ref().ok_or_else(|| lacks("load"))?;
        trial.achieved_per_second = trial.achieved_per_second.min(outcome.achieved_per_second);
        trial.lateness_p99_ns = trial.lateness_p99_ns.max(lateness_p99(flow));
        let Some(latency) = &flow.latency_ns else {
            if outcome.verdict != LoadVerdict::NotKept {
                return Err(lacks("latency"));
            }
            trial.outcome = TrialOutcome::NotKept;
            continue;
        };
        // Lateness spoils the percentiles that it does, and a search asks for its own.
        let is_late = outcome.not_kept_by.is_some_and(|by| by != NotKeptBy::Lateness);
        if is_late || limits.iter().any(|limit| is_spoilt(latency, limit)) {
            trial.outcome = TrialOutcome::NotKept;
        }
        // Of two directions the slower one is told.
        trial.p50_ns = trial.p50_ns.max(latency.p50);
        trial.p99_ns = trial.p99_ns.max(latency.p99);
        trial.p99_9_ns = trial.p99_9_ns.max(latency.p99_9);
        let histogram = latency.histogram().map_err(|error| error.to_string())?;
        for limit in limits {
            excesses.push(excess_of(&histogram, limit)?);
        }
    }
    if trial.outcome != TrialOutcome::NotKept {
        trial.excess = excesses.into_iter().reduce(f64::max);
        trial.outcome = match trial.excess {
            Some(excess) if excess > 1.0 => TrialOutcome::Broke,
            _ => TrialOutcome::Kept,
        };
    }
    Ok(trial)
}

/// A trial as a search for losses takes it: it broke its load where something was lost or sent again, or messages piled up.
///
/// # Errors
/// It is not known whether something was lost, and why.
fn judge_losses(run: &Run, trial: &Trial) -> Result<Trial, String> {
    let are_counted = run.flows.iter().all(|flow| flow.delivery.is_some());
    if let Some(unknown) = run.loss_unknown.first().filter(|_| !are_counted) {
        return Err(format!("packets that are sent again cannot be seen at {}", unknown.words()));
    }
    let losses = losses(run);
    let mut loads = run.flows.iter().filter_map(|flow| flow.load.as_ref());
    let outcome = match trial.outcome {
        TrialOutcome::Kept
            if losses > 0 || loads.any(|load| load.verdict == LoadVerdict::Overloaded) =>
        {
            TrialOutcome::Broke
        }
        // Messages that were late came in bursts, and even those lost nothing.
        TrialOutcome::NotKept if losses == 0 && loads.all(was_offered) => TrialOutcome::Kept,
        outcome => outcome,
    };
    Ok(Trial { outcome, losses: Some(losses), ..trial.clone() })
}

/// Messages that a run lost, and what the devices counted of packets lost or sent again.
fn losses(run: &Run) -> u64 {
    let events = (run.path_events.iter())
        .filter(|event| event.kind.is_loss() || event.kind == PathEventKind::ReceiverNotReady)
        .map(|event| event.count);
    let messages =
        run.flows.iter().filter_map(|flow| flow.delivery.as_ref()).map(|delivery| delivery.lost);
    events.chain(messages).fold(0, u64::saturating_add)
}

/// Whether messages were posted in the window, if not at their times, and did not pile up.
fn was_offered(load: &Load) -> bool {
    let offered = load.offered as f64;
    let missing = offered * (1.0 - load.achieved_per_second / load.offered_per_second);
    matches!(load.not_kept_by, None | Some(NotKeptBy::Gaps | NotKeptBy::Lateness))
        && !Load::is_overload(Arrivals::Poisson, offered, missing)
}

fn lateness_p99(flow: &FlowResult) -> Option<u64> {
    flow.lateness_ns.as_ref()?.p99
}

/// Whether there are messages enough for the percentile of a limit, which is not told because messages were posted late.
fn is_spoilt(latency: &Latency, limit: &LatencyLimit) -> bool {
    let mut percentiles = latency.percentiles();
    percentiles.any(|(of, ns)| of.percent == limit.percentile && ns.is_none())
        && can_tell(latency.count, limit.percentile / 100.0)
}

/// The share of messages that took at least as long as a limit, over the share that it allows. None at all are taken
/// for half a message.
fn excess_of(histogram: &Histogram<u64>, limit: &LatencyLimit) -> Result<f64, String> {
    let allowed = share_above(limit.percentile);
    let samples = histogram.len();
    if !can_tell(samples, limit.percentile / 100.0) {
        let percentile = limit.percentile;
        return Err(format!("{samples} messages are too few for p{percentile}"));
    }
    let above = histogram.count_between(limit.below_ns, u64::MAX);
    Ok((above as f64).max(0.5) / (samples as f64 * allowed))
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
