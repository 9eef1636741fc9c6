//! What a sweep tells while it runs.

use std::time::Duration;

use plan::Case;
use protocol::failure::RunFailure;
use results::model::{CaseConfig, LoadSearch, PerftestPair, ResultFile, Run};

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
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, _elapsed: Duration) {}
    /// The run or the trial has failed. It is over once the nodes that are left have ended it, which takes a while with many
    /// QPs.
    fn failed(&mut self, _failure: &RunFailure) {}
    /// There will be these cases too, after all others.
    fn cases_added(&mut self, _cases: &[Case]) {}
    /// A run is over; `result` has it and all before it.
    fn run_finished(&mut self, _config: &CaseConfig, _run: &Run, _result: &ResultFile) {}
    /// A pair of runs is over, of rocebench and of perftest; `result` has it and all before it.
    fn pair_finished(&mut self, _case: &Case, _pair: &PerftestPair, _result: &ResultFile) {}
    /// Something that a person should know.
    fn note(&mut self, _text: &str) {}
}
