//! `--against perftest`: runs a case with rocebench and with perftest in turns (A B, B A, B A, A B …), until a planned look
//! finds their ratio clear, or there are enough pairs.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use perftest::{Job, MIN_MESSAGES, Program, measuring, note};
use plan::Case;
use report::observe::standing::{self, Standing};
use results::model::{PerftestComparison, PerftestPair};
use settings::Stop;
use statistics::{Turn, Verdict};

use crate::coordinator::against::interim::{self, is_new_first};
use crate::coordinator::against::metric::Metric;
use crate::coordinator::against::perftest_run::{PerftestFailure, ask, run_perftest};
use crate::coordinator::assemble::PathFacts;
use crate::coordinator::nodes::Node;
use crate::coordinator::options::{Against, SweepOptions};
use crate::coordinator::sweeper::{StopReason, Sweeper};
use node::perftest_launch::{PerftestLaunch, equipped};
use node::resources::{NodeResources, Route};
use protocol::failure::RunFailure;
use protocol::message::Message;

/// After so many failed pairs in a row there are no more of the case.
const MOST_FAILURES: u32 = 3;

/// Bounds of the messages of a latency run, which perftest keeps a time of each.
const LATENCY_MESSAGES: std::ops::RangeInclusive<u64> = 1_000..=1_000_000;

fn programs(options: &SweepOptions) -> Vec<Program> {
    let mut programs = Vec::new();
    for program in options.sweep.cases.iter().map(Program::for_case) {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs
}

/// Looks whether this end can run perftest, where that is asked for; perftest's version.
///
/// # Errors
/// What is missing.
pub(crate) fn prepare(
    options: &SweepOptions,
    resources: &NodeResources,
) -> Result<Option<String>, RunFailure> {
    match &options.against {
        Some(_) => equipped(resources, &programs(options)),
        None => Ok(None),
    }
}

/// The same of the server.
///
/// # Errors
/// What is missing there, or that it must not.
pub(crate) fn ask_server(
    options: &SweepOptions,
    nodes: &[Node],
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let remote = nodes.iter().find(|node| !node.is_in_process);
    match (&options.against, remote) {
        (Some(_), Some(server)) => ask(&server.link, &programs(options), stop),
        _ => Ok(()),
    }
}

/// Runs a case in pairs. What they came to is in the sweep's result, after every pair.
pub(crate) fn run_case(
    sweeper: &mut Sweeper<'_>,
    index: usize,
    case: &Case,
    against: &Against,
    version: Option<&str>,
) -> Result<(), StopReason> {
    let mut pairing = Pairing::new(index, case, against, version);
    let mut failures_in_a_row = 0;
    for number in 1..=against.max_pairs {
        let mut pair = pairing.next(number);
        let done = pairing.pair(sweeper, &mut pair);
        failures_in_a_row = match pair.failure {
            Some(_) => failures_in_a_row + 1,
            None => 0,
        };
        let is_over = done.is_err() || failures_in_a_row == MOST_FAILURES;
        pairing.add(pair, is_over || number == against.max_pairs);
        pairing.publish(sweeper);
        done?;
        if is_over || pairing.is_settled() {
            break;
        }
    }
    Ok(())
}

/// A case and what its pairs came to so far.
struct Pairing<'a> {
    index: usize,
    case: &'a Case,
    against: &'a Against,
    program: Program,
    metric: Metric,
    comparison: PerftestComparison,
    /// The path in use, from the first run that connected.
    path: Option<PathFacts>,
    /// Of the first whole run: its messages and its length in seconds.
    whole: Option<(u64, f64)>,
}

impl<'a> Pairing<'a> {
    fn new(index: usize, case: &'a Case, against: &'a Against, version: Option<&str>) -> Self {
        let program = Program::for_case(case);
        let metric = Metric::new(case, program);
        Pairing {
            index,
            case,
            against,
            program,
            metric,
            comparison: PerftestComparison {
                program: program.name().to_owned(),
                version: version.map(str::to_owned),
                metric: metric.name().to_owned(),
                margin: Some(metric.margin()),
                verdict: UNCLEAR.to_owned(),
                ..PerftestComparison::default()
            },
            path: None,
            whole: None,
        }
    }

    /// Runs the next pair. Half of the pairs that count begin with each program, also after failures. perftest gets the
    /// path that the ends agreed on, which rocebench's run shows.
    fn next(&self, number: u32) -> PerftestPair {
        let own_first = self.path.is_none() || is_new_first(&counting(&self.comparison), number);
        PerftestPair {
            run: number,
            first: if own_first { OWN } else { "perftest" }.to_owned(),
            ..PerftestPair::default()
        }
    }

    /// One run of each. What failed is in the pair.
    fn pair(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let done = if pair.first == OWN {
            self.own(sweeper, pair).and_then(|()| self.theirs(sweeper, pair))
        } else {
            self.theirs(sweeper, pair).and_then(|()| self.own(sweeper, pair))
        };
        if let Err(StopReason::Interrupted) = &done {
            pair.failure.get_or_insert_with(|| "interrupted".into());
        } else if done.is_err() {
            pair.failure.get_or_insert_with(|| "the sweep ended".into());
        }
        done
    }

    fn own(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let number = pair.run;
        let runs = self.against.pairs.max(number);
        let path = sweeper.run(self.index, self.case, number, runs)?;
        self.path = self.path.or(path);
        let run = sweeper.outcome.result.cases.last();
        let Some(run) = run.and_then(|case| case.runs.last()) else {
            return Ok(());
        };
        let standing = standing::of_run(run);
        if let Standing::Doubtful(_) = standing {
            pair.doubt = Some(standing.words().to_owned());
        }
        if standing.has_figures() {
            pair.rocebench = self.metric.of_run(run);
            if let Some(flow) = run.flows.first() {
                let whole = (flow.totals.messages, flow.window.seconds);
                self.whole.get_or_insert(whole);
            }
        }
        if pair.rocebench.is_none() {
            let why = match standing {
                Standing::Counts | Standing::Doubtful(_) => {
                    "rocebench's run has no figure".to_owned()
                }
                Standing::Stopped => "interrupted".to_owned(),
                Standing::Bad(reason) => format!("rocebench's run {reason}"),
            };
            pair.failure.get_or_insert(why);
        }
        Ok(())
    }

    fn theirs(
        &mut self,
        sweeper: &mut Sweeper<'_>,
        pair: &mut PerftestPair,
    ) -> Result<(), StopReason> {
        let Some(path) = self.path.filter(|_| pair.failure.is_none()) else {
            return Ok(());
        };
        let mut nodes = sweeper.take_nodes()?;
        let Some(server) = nodes.pop() else {
            return Ok(());
        };
        // perftest's client takes the place of this end's node, which may have the device for itself.
        for own in nodes {
            let _ = own.link.send(&Message::Goodbye);
        }
        let job = self.job(path);
        let options = sweeper.options.ends.resources.clone();
        let network = sweeper.places.network_of_first(options.library);
        let route = server.link.route().map_err(RunFailure::from);
        let resources = route
            .and_then(|it| NodeResources::open(options, Some(Route { network, ..it })))
            .map_err(StopReason::Broken)?;
        let launch = PerftestLaunch::new(&resources, self.case).map_err(|error| {
            StopReason::Broken(RunFailure::new(error.to_string(), Some(error.hint())))
        })?;
        // The embedded device is closed, so that other processes may have it; one of the system's stays open.
        let resources = Some(resources).filter(|it| it.port().embedded.is_none());
        self.comparison.arguments = launch.arguments(&job);
        sweeper.observer.phase("perftest", measuring(self.case));
        let (stop, observer) = (sweeper.stop, &mut *sweeper.observer);
        let done = run_perftest(&server.link, &launch, &job, stop, observer);
        drop(resources);
        drop(launch);
        let lost = matches!(&done, Err(failed) if failed.failure.link_lost);
        if !lost && !stop.load(Relaxed) {
            let own = sweeper.reach_own()?;
            sweeper.nodes = Some(vec![own, server]);
        }
        match done {
            Ok(figure) => pair.perftest = self.metric.of_figure(figure),
            Err(PerftestFailure { failure, output }) => {
                pair.failure = Some(failure.message);
                pair.output = output;
                if failure.interrupted {
                    return Err(StopReason::Interrupted);
                }
            }
        }
        Ok(())
    }

    fn job(&self, path: PathFacts) -> Job {
        let (own_messages, own_seconds) = self.whole.unwrap_or((0, 0.0));
        let messages = match self.case.stop() {
            Stop::MessagesPerQp(messages) => Some(messages.max(MIN_MESSAGES)),
            // Only a counted run of it prints a median.
            Stop::DurationNs(_) if self.program.is_latency() => {
                Some(own_messages.clamp(*LATENCY_MESSAGES.start(), *LATENCY_MESSAGES.end()))
            }
            Stop::DurationNs(_) => None,
        };
        // A counted run may be so much slower than ours.
        let counted = match messages {
            Some(_) => Duration::try_from_secs_f64(own_seconds * 10.0).unwrap_or_default(),
            None => Duration::ZERO,
        };
        let limit = (self.against.limit + counted).min(perftest::LONGEST_LIMIT);
        Job {
            program: self.program,
            case: self.case.clone(),
            mtu_bytes: path.mtu_bytes,
            outstanding_reads: path.outstanding_reads,
            messages,
            limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// More pairs would change nothing, or are not asked for.
    fn is_settled(&self) -> bool {
        let enough = counting(&self.comparison).len() >= self.against.pairs as usize;
        enough && self.comparison.verdict != UNCLEAR
    }

    fn add(&mut self, pair: PerftestPair, is_last: bool) {
        let comparison = &mut self.comparison;
        comparison.pairs.push(pair);
        let turns = counting(comparison);
        let planned = (self.against.pairs, self.against.max_pairs);
        let metric = (self.metric.margin(), self.metric.higher_is_better());
        let result = interim::look(&turns, planned, metric, is_last);
        comparison.rocebench_median = result.estimate.map(|it| it.new_median);
        comparison.perftest_median = result.estimate.map(|it| it.base_median);
        comparison.ratio = result.estimate.map(|it| it.ratio);
        (comparison.ratio_low, comparison.ratio_high) = result.interval.unzip();
        let word = match result.verdict {
            Verdict::Better => "faster",
            Verdict::Equal => "equal",
            Verdict::Worse => "slower",
            Verdict::Unclear => UNCLEAR,
        };
        let mut notes: Vec<String> = note(self.case).into_iter().collect();
        let count = comparison.pairs.len();
        let in_doubt =
            comparison.pairs.iter().filter(|it| it.failure.is_none() && it.doubt.is_some()).count();
        let why = "do not count, since rocebench's run is in doubt";
        for (left_out, what) in [(count - turns.len() - in_doubt, "failed"), (in_doubt, why)] {
            if left_out > 0 {
                notes.push(format!("{left_out} of {count} pairs {what}"));
            }
        }
        notes.extend(interim::note(turns.len(), "pairs", is_last, result.verdict));
        comparison.note = (!notes.is_empty()).then(|| notes.join("; "));
        self.comparison.verdict = word.to_owned();
    }

    fn publish(&self, sweeper: &mut Sweeper<'_>) {
        let result = &mut sweeper.outcome.result;
        if let Some(entry) = result.cases.last_mut().filter(|it| it.id == self.case.id) {
            entry.perftest = Some(self.comparison.clone());
        }
        if let Some(pair) = self.comparison.pairs.last() {
            sweeper.observer.pair_finished(self.case, pair, &sweeper.outcome.result);
        }
    }
}

const UNCLEAR: &str = "unclear";

/// Names rocebench in a pair.
const OWN: &str = "rocebench";

fn counting(comparison: &PerftestComparison) -> Vec<Turn> {
    comparison
        .pairs
        .iter()
        .filter_map(|pair| {
            let (new, base) = pair.counted()?;
            Some(Turn { new_first: pair.first == OWN, base, new })
        })
        .collect()
}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
