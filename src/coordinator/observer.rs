//! What a sweep tells while it runs.

use std::time::Duration;

use crate::plan::Case;
use report::results::model::{CaseConfig, PerftestPair, ResultFile, Run};

/// What a sweep tells while it runs. Calls come from one thread.
pub trait Observer {
    /// Case number `index` (from 0) of `total` starts; `run` counts from 1 to `runs`.
    fn run_started(&mut self, index: usize, total: usize, case: &Case, run: u32, runs: u32);
    /// Warm-up, measure, drain; with the time it is expected to take, where that is known.
    fn phase(&mut self, name: &str, expected: Option<Duration>);
    /// The rate now, `elapsed` into the phase.
    fn sample(&mut self, elapsed: Duration, gbit_per_s: f64, mmsg_per_s: f64);
    /// Time passes in a phase without a rate.
    fn waiting(&mut self, elapsed: Duration);
    /// A run is over; `result` has it and all before it.
    fn run_finished(&mut self, config: &CaseConfig, run: &Run, result: &ResultFile);
    /// A pair of runs is over, of rocebench and of perftest; `result` has it and all before it.
    fn pair_finished(&mut self, case: &Case, pair: &PerftestPair, result: &ResultFile);
    /// Something that a person should know.
    fn note(&mut self, text: &str);
}
