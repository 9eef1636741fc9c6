//! One case that is measured window after window on the same QPs, for hours or days.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use machine::host;
use plan::Case;
use protocol::failure::RunFailure;
use protocol::link::Link;
use results::model::{CaseResult, ResultFile};

use super::interface::{Observer, SweepOptions};
use super::nodes::Node;
use super::run::{QpsOfRun, leave};
use super::sweep::{begin, node_of};
use super::sweeper::{Sweeper, record};

/// What came next.
#[derive(Debug)]
pub enum Taken {
    /// A window is over. The result has all nodes as they are now, and the one case with this run alone; a run that failed has
    /// its `failure` and `complete: false`.
    Sample(Box<ResultFile>),
    /// Nodes cannot be reached, or do not take the case any more; those of the failure, where it names some. The next call tries
    /// again.
    Away(RunFailure),
    /// The user's wish to stop.
    Stopped,
}

/// Where samples come from: nodes, or a test's made-up ones.
pub trait Samples {
    /// Waits for the next window, or tries to reach nodes that are away, with a pause.
    fn take(&mut self) -> Taken;
}

/// First pause before nodes that are away are tried again, doubled with each try up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How often the wish to stop is looked for meanwhile.
const TICK: Duration = Duration::from_millis(10);

/// The samples of one case at its nodes. Each is a run with its warm-up and its drain, so that all that was sent is accounted for;
/// the QPs stay from one to the next as long as nothing fails.
pub struct Soak<'a> {
    sweeper: Sweeper<'a>,
    case: Case,
    /// Of the next run.
    number: u32,
    are_kept: bool,
    /// Before the next run.
    pause: Duration,
}

impl<'a> Soak<'a> {
    /// Connects the nodes, and checks the only case of the sweep.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub fn begin(
        options: &'a SweepOptions,
        stop: &'a AtomicBool,
        observer: &'a mut dyn Observer,
    ) -> Result<Soak<'a>, RunFailure> {
        let (sweeper, _) = begin(options, stop, observer)?;
        let case = match &sweeper.sweep.cases[..] {
            [case] => case.clone(),
            cases => {
                let text = format!("a soak has one case, and this sweep has {}", cases.len());
                return Err(RunFailure::refused(text, "give one value for each setting"));
            }
        };
        Ok(Soak { sweeper, case, number: 1, are_kept: false, pause: Duration::ZERO })
    }

    /// The nodes, which are connected anew after a failure.
    fn nodes(&mut self) -> Result<Vec<Node>, RunFailure> {
        let sweeper = &mut self.sweeper;
        if let Some(nodes) = sweeper.nodes.take() {
            return Ok(nodes);
        }
        let nodes = sweeper.places.connect(&sweeper.options.ends, &sweeper.facts, sweeper.stop)?;
        let own_host = host::read();
        sweeper.outcome.result.nodes = nodes.iter().map(|node| node_of(node, &own_host)).collect();
        Ok(nodes)
    }

    /// Waits for the pause; returns whether the user wishes to stop.
    fn stops_after_pause(&self) -> bool {
        let began = Instant::now();
        while !self.sweeper.stop.load(Ordering::Relaxed) {
            let left = self.pause.saturating_sub(began.elapsed());
            if left.is_zero() {
                return false;
            }
            thread::sleep(left.min(TICK));
        }
        true
    }

    fn pause_longer(&mut self) {
        self.pause = (2 * self.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
    }
}

impl Samples for Soak<'_> {
    fn take(&mut self) -> Taken {
        if self.stops_after_pause() {
            return Taken::Stopped;
        }
        let nodes = match self.nodes() {
            Ok(nodes) => nodes,
            Err(failure) if failure.interrupted => return Taken::Stopped,
            Err(failure) => {
                self.pause_longer();
                return Taken::Away(failure);
            }
        };
        let qps = QpsOfRun { are_kept: self.are_kept, keep: true };
        self.sweeper.observer.run_started(0, 1, &self.case, self.number, self.number);
        let done = self.sweeper.run_with(&nodes, &self.case, (self.number, qps));
        self.number = self.number.saturating_add(1);
        self.are_kept = done.failure.is_none();
        let is_interrupted = done.failure.as_ref().is_some_and(|it| it.interrupted);
        if let (true, Some(failure)) = (done.goes_on, &done.failure) {
            // Those that have kept their QPs give them up, and all begin afresh.
            nodes.iter().for_each(|node| failure.tell(&node.link));
        }
        let outcome = &mut self.sweeper.outcome;
        record(outcome, &nodes, (0, &self.case), done, self.sweeper.observer);
        let cases = outcome.result.cases.iter_mut().map(|case| {
            let runs = std::mem::take(&mut case.runs);
            CaseResult { runs, ..case.clone() }
        });
        let own_cases: Vec<CaseResult> = cases.collect();
        let mut sample = outcome.result.with_cases(own_cases);
        if let Some(run) = sample.cases.iter().find_map(|case| case.runs.last()) {
            sample.started_at.clone_from(&run.started_at);
        }
        if self.are_kept {
            self.pause = Duration::ZERO;
            self.sweeper.nodes = Some(nodes);
        } else {
            self.pause_longer();
        }
        if is_interrupted { Taken::Stopped } else { Taken::Sample(Box::new(sample)) }
    }
}

impl Drop for Soak<'_> {
    fn drop(&mut self) {
        if let Some(nodes) = self.sweeper.nodes.take() {
            // A link that is lost has nothing to leave.
            if !self.are_kept || leave(&nodes, &self.case).is_ok() {
                Link::part(nodes.iter().map(|node| &node.link), self.sweeper.stop);
            }
        }
    }
}
