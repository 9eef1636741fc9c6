//! What a sweep is asked for, and what it tells while it runs.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use node::resources::NodeOptions;
use plan::check::CheckRequest;
use plan::{Case, RailsAsked, Searches, Sweep, stages::Stage};
use protocol::endpoints::ConnectingEnds;
use protocol::failure::RunFailure;
use protocol::handshake::Approach;
use protocol::token::Token;
use report::judge::threshold::Demands;
use results::model::{CaseComparison, CaseConfig, LoadSearch, ResultFile, Run, StageResult, Tool};

use super::ranks::Ranks;

/// How to run a sweep.
pub struct SweepOptions {
    pub sweep: Sweep,
    pub ends: Ends,
    /// Host and port of the server that is each of the sweep's nodes; empty where the nodes are not servers.
    pub servers: Vec<(String, u16)>,
    /// The other ranks of a launcher's job, where the sweep's nodes are its ranks.
    pub ranks: Option<Arc<Ranks>>,
    /// The program's arguments, secrets left out.
    pub command_line: Vec<String>,
    /// Run each case with perftest as well.
    pub against: Option<Against>,
    /// Run the cases in rounds: the first is a victim alone, the others are it beside attackers.
    pub beside: Option<Rounds>,
    /// Search each case for loads as well.
    pub searches: Option<Searches>,
    /// Measure again what looks bad in rounds of pairs.
    pub quick: bool,
    /// Check all paths between rails: the cases are the rounds of pairs.
    pub check: Option<CheckRequest>,
    /// Find out what limits the only case, or the slowest behind the sweep.
    pub why: Option<WhyRequest>,
    /// Which rails flows go between, where nodes have several.
    pub rails: RailsAsked,
    /// Run the cases stage by stage, and judge each stage.
    pub stages: Option<Stages>,
}

impl SweepOptions {
    /// A sweep alone: between two ends or nodes of this process, without comparisons and searches.
    pub fn new(sweep: Sweep, ends: Ends) -> SweepOptions {
        SweepOptions {
            sweep,
            ends,
            servers: Vec::new(),
            ranks: None,
            command_line: Vec::new(),
            against: None,
            beside: None,
            searches: None,
            quick: false,
            check: None,
            why: None,
            rails: RailsAsked::default(),
            stages: None,
        }
    }
}

/// The nodes of this process, and the server that they meet.
#[derive(Clone, Debug)]
pub struct Ends {
    /// The second of two nodes.
    pub target: Target,
    /// Library, device and cores of the nodes in this process.
    pub resources: NodeOptions,
    /// The token shared with the servers.
    pub token: Option<Token>,
    /// How servers are reached.
    pub approach: Approach,
}

impl Ends {
    /// Without a token, and with servers that are there.
    pub fn new(target: Target, resources: NodeOptions) -> Ends {
        Ends { target, resources, token: None, approach: Approach::default() }
    }
}

/// Where the second of two nodes is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A server at this host and port.
    Remote(String, u16),
    Local,
}

/// How many pairs, and how long perftest may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// Least pairs that count; even.
    pub pairs: u32,
    /// Most pairs, failed ones included; even.
    pub max_pairs: u32,
    /// Longest time for each end of perftest beyond its measurement.
    pub limit: Duration,
}

/// Rounds of a victim alone and beside each attacker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Names of the attackers, in the order of the sweep's cases from the second on.
    pub attackers: Vec<String>,
    /// Least rounds that count; even.
    pub least: u32,
    /// Most rounds, those that do not count included; even.
    pub most: u32,
}

/// The stages of an acceptance.
pub struct Stages {
    /// What became of those before the sweep.
    pub done: Vec<StageResult>,
    /// Those of the sweep, with all of its cases.
    pub planned: Vec<PlannedStage>,
    /// No stage begins that would not end by then.
    pub ends_at: Instant,
}

/// A stage of a sweep.
pub struct PlannedStage {
    pub stage: &'static Stage,
    /// Its cases in the sweep.
    pub cases: Range<usize>,
    /// What each of its flows must keep.
    pub demands: Demands,
    /// The words of a command that measures the same.
    pub command: Vec<String>,
}

/// What limits a case is to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhyRequest {
    /// The sweep has one case, which is explained in place of being measured.
    pub is_alone: bool,
    pub budget: Duration,
    /// Changes may ask for more than the case does.
    pub may_load_more: bool,
    /// Window and warm-up of a run.
    pub window: Duration,
    pub warmup: Duration,
}

impl WhyRequest {
    /// Behind a sweep, with windows that are short enough for many changes.
    pub fn within(budget: Duration) -> WhyRequest {
        WhyRequest {
            is_alone: false,
            budget,
            may_load_more: false,
            window: Duration::from_millis(250),
            warmup: Duration::from_millis(100),
        }
    }
}

/// What a sweep tells while it runs. Calls come from one thread; what is of no use is left out.
pub trait Observer {
    /// Case number `index` (from 0) of `total` starts; `run` counts from 1 to `runs`.
    fn run_started(&mut self, _index: usize, _total: usize, _case: &Case, _run: u32, _runs: u32) {}
    /// A trial of case number `index` (from 0) of `total` starts.
    fn trial_started(
        &mut self,
        _index: usize,
        _total: usize,
        _case: &Case,
        _trial: TrialStart<'_>,
    ) {
    }
    /// A search of a case is over; `result` has it and all before it.
    fn search_finished(&mut self, _case: &Case, _search: &LoadSearch, _result: &ResultFile) {}
    /// The ends of the first flow connect.
    fn connects(&mut self, _ends: ConnectingEnds<'_>) {}
    /// Warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, _name: &str, _expected: Option<Duration>) {}
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, _elapsed: Duration, _gbit_per_s: f64, _mmsg_per_s: f64) {}
    /// Whether [`Observer::latency`] is of use: to tell it costs the workers a little.
    fn shows_latency(&self) -> bool {
        false
    }
    /// The 99th percentile of the last second, in nanoseconds, of the flow where it is highest; of up to 16 QPs of each node's
    /// flows.
    fn latency(&mut self, _p99_ns: u64) {}
    /// Events on the path of packets since the window opened, of all nodes, where [`Observer::latency`] is of use; the sample of
    /// that time follows.
    fn path_events(&mut self, _count: u64) {}
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, _elapsed: Duration) {}
    /// The run or the trial has failed. It is over once the nodes that are left have ended it, which takes a while with many
    /// QPs.
    fn failed(&mut self, _failure: &RunFailure) {}
    /// Each of these cases is run once more than was known.
    fn runs_added(&mut self, _cases: &[Case]) {}
    /// A run is over; `result` has it and all before it.
    fn run_finished(&mut self, _config: &CaseConfig, _run: &Run, _result: &ResultFile) {}
    /// Runs of an experiment begin, in a few words and in full.
    fn step(&mut self, _title: &str, _text: &str) {}
    /// What limits a case was found; `result` has it.
    fn diagnosed(&mut self, _case: &Case, _result: &ResultFile) {}
    /// A round of a case and its base is over; `result` has it and all before it.
    fn round_finished(&mut self, _case: &Case, _so_far: &CaseComparison, _result: &ResultFile) {}
    /// A stage is over.
    fn stage_finished(&mut self, _stage: &StageResult) {}
    /// Something that a person should know.
    fn note(&mut self, _text: &str) {}
}

/// A trial of a search over loads, as it starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialStart<'a> {
    /// What is searched for, as it was asked.
    pub goal: &'a str,
    /// Its number in the search, from 1.
    pub number: u32,
    /// Its load, in messages a second.
    pub load: u64,
    /// The loads between which the limit is by now; `None` while that is not known.
    pub within: Option<(u64, u64)>,
    /// How long the search still takes, about; `None` before its first trial is over.
    pub left: Option<Duration>,
}

/// This program with its version, and the revision that it was built from if that is known.
pub fn tool() -> Tool {
    Tool {
        name: env!("CARGO_PKG_NAME").to_owned(),
        version: protocol::PROGRAM_VERSION.to_owned(),
        git: option_env!("ROCEBENCH_GIT").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two checkouts of one version differ in the revision.
    #[test]
    fn a_build_of_a_checkout_knows_its_revision() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let (tool, is_checkout) = (tool(), root.join(".git").exists());
        assert_eq!((&*tool.name, tool.git.is_some()), ("rocebench", is_checkout));
    }
}
