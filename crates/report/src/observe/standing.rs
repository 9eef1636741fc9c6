//! Which figures count, and the figures that do: each flow of each case with what it was in each run. Every view, comparison
//! and sum asks here.
//!
//! A flow's figures count where its run is complete, nothing went wrong with the flow, and nothing spoils its rates. A run
//! counts as a whole where each of its flows does.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::Metric;
use results::model::{CaseFlow, CaseResult, DoubtKind, FlowResult, LoadVerdict, ResultFile, Run};
use statistics::median;

/// What is to be done with a run, or with a flow of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Counts,
    /// The user stopped it: it shows nothing, good or bad.
    Stopped,
    /// Its rates may be wrong through no fault of what was measured; the first reason.
    Doubtful(DoubtKind),
    /// It went wrong; the rest of a sentence that begins with the run.
    Bad(String),
}

/// Of one of the run's flows.
pub fn of_flow(run: &Run, flow: &FlowResult) -> Standing {
    of_flows(run, std::slice::from_ref(flow))
}

/// Of the run as a whole.
pub fn of_run(run: &Run) -> Standing {
    of_flows(run, &run.flows)
}

fn of_flows(run: &Run, flows: &[FlowResult]) -> Standing {
    if run.interrupted {
        return Standing::Stopped;
    }
    if let Some(failure) = &run.failure {
        return Standing::Bad(format!("failed: {}", failure.message));
    }
    if !run.complete {
        return Standing::Bad("is not complete".to_owned());
    }
    if let Some(failure) = flows.iter().find_map(|flow| flow.failure.as_ref()) {
        return Standing::Bad(format!("failed: {}", failure.message));
    }
    let errors = flows.iter().map(|flow| flow.totals.errors);
    if let Some(errors) = errors.max().filter(|errors| *errors > 0) {
        return Standing::Bad(format!("has {errors} completions with an error"));
    }
    if let Some(kind) = flows.iter().flat_map(spoilt_by).next() {
        return Standing::Doubtful(kind);
    }
    Standing::Counts
}

impl Standing {
    /// In a few words: `counts`, `stopped`, the doubt's kind, or what went wrong.
    pub fn words(&self) -> &str {
        match self {
            Standing::Counts => "counts",
            Standing::Stopped => "stopped",
            Standing::Doubtful(kind) => kind.name(),
            Standing::Bad(reason) => reason,
        }
    }

    /// Whether its rates are in doubt.
    pub fn is_doubtful(&self) -> bool {
        matches!(self, Standing::Doubtful(_))
    }

    /// Whether there are figures, be they doubtful.
    pub fn has_figures(&self) -> bool {
        matches!(self, Standing::Counts | Standing::Doubtful(_))
    }
}

/// How many of some runs do not count, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// How many runs there are, those that count too.
    pub runs: usize,
    pub stopped: usize,
    pub bad: usize,
    /// Their rates are in doubt, by the first reason of each.
    pub doubtful: BTreeMap<DoubtKind, usize>,
}

impl LeftOut {
    /// Of these runs, or flows of runs.
    pub fn new(standings: impl IntoIterator<Item = impl Borrow<Standing>>) -> LeftOut {
        let mut left_out = LeftOut::default();
        for standing in standings {
            left_out.add(standing.borrow());
        }
        left_out
    }

    pub fn add(&mut self, standing: &Standing) {
        self.runs += 1;
        match standing {
            Standing::Counts => {}
            Standing::Stopped => self.stopped += 1,
            Standing::Bad(_) => self.bad += 1,
            Standing::Doubtful(kind) => *self.doubtful.entry(*kind).or_insert(0) += 1,
        }
    }

    /// How many do not count.
    pub fn count(&self) -> usize {
        self.stopped + self.bad + self.doubtful.values().sum::<usize>()
    }

    /// Each reason, and of how many runs it is.
    pub fn by_reason(&self) -> impl Iterator<Item = (usize, Reason)> + '_ {
        let doubtful = self.doubtful.iter().map(|(kind, count)| (*count, reason(*kind)));
        let others = [(self.bad, FAILED), (self.stopped, STOPPED)];
        others.into_iter().filter(|(count, _)| *count > 0).chain(doubtful)
    }

    /// Each reason with its number: `1 failed`, `2 edge missed`.
    pub fn reasons(&self) -> Vec<String> {
        self.by_reason().map(|(count, reason)| format!("{count} {}", reason.name)).collect()
    }
}

/// What spoils a flow's rates. A run that did not keep its schedule is no result of the load that was asked for.
fn spoilt_by(flow: &FlowResult) -> impl Iterator<Item = DoubtKind> + '_ {
    let doubts = flow.window.doubts.iter().map(|doubt| doubt.kind);
    let load = flow.load.as_ref();
    let is_late = load.is_some_and(|load| load.verdict == LoadVerdict::NotKept);
    let late = is_late.then_some(DoubtKind::ScheduleNotKept);
    doubts.filter(|kind| kind.spoils_rates()).chain(late)
}

/// Why figures do not count, and what helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    /// As a remark: `edge missed`.
    pub name: &'static str,
    pub short: &'static str,
    pub cause: &'static str,
    /// What to do, without a full stop.
    pub remedy: &'static str,
}

const FAILED: Reason = Reason {
    name: "failed",
    short: "the run failed",
    cause: "Runs brought no figures",
    remedy: "Read why in the result file, and run again",
};

const STOPPED: Reason = Reason {
    name: "stopped",
    short: "stopped by you",
    cause: "Runs did not end",
    remedy: "Run again",
};

/// What is behind a doubt.
pub fn reason(kind: DoubtKind) -> Reason {
    let [short, cause, remedy] = match kind {
        DoubtKind::CpuQuota => [
            "CPU quota",
            "A CPU quota stopped the workers",
            "Raise the quota (`docker run --cpus`, a pod's CPU limit, cpu.max), or use fewer workers",
        ],
        DoubtKind::WindowLength | DoubtKind::EdgeMissed => [
            "CPU too busy",
            "The CPU was too busy",
            "Measure longer (-D), or use fewer workers than cores",
        ],
        DoubtKind::WorkerAway => [
            "CPU too busy",
            "The CPU was too busy",
            "Pin workers to cores of their own (--cores), or use fewer workers than cores",
        ],
        DoubtKind::NotTogether => {
            ["flows not together", "Flows did not run together", "Measure longer (-D)"]
        }
        DoubtKind::ScheduleNotKept => [
            "messages posted late",
            "Messages were posted late",
            "Use more --workers on cores of their own (--cores), or lower --rate",
        ],
        DoubtKind::Drift => {
            ["throughput drifted", "Throughput drifted", "Warm up longer (--warmup)"]
        }
    };
    Reason { name: kind.name(), short, cause, remedy }
}

/// Whether a flow's figures count.
pub fn counts(run: &Run, flow: &FlowResult) -> bool {
    of_flow(run, flow) == Standing::Counts
}

/// Whether the run counts as a whole.
pub fn run_counts(run: &Run) -> bool {
    of_run(run) == Standing::Counts
}

/// A flow of a case in one run; the run alone, where the case has no flow.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    pub run: &'a Run,
    /// What the flow moved in it.
    pub moved: Option<&'a FlowResult>,
    pub standing: Standing,
}

impl Observation<'_> {
    /// A figure of it, whether or not it counts; `None` where it was not measured.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let value = metric.of(self.run, self.moved);
        value.filter(|value| value.is_finite())
    }

    pub fn counts(&self) -> bool {
        self.standing == Standing::Counts
    }
}

/// A flow of a case in all runs.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub flow: CaseFlow<'a>,
    /// What was observed, run by run.
    pub runs: Vec<Observation<'a>>,
}

impl<'a> Observed<'a> {
    pub fn new(flow: CaseFlow<'a>) -> Observed<'a> {
        let runs = flow.case.runs.iter().map(|run| {
            let moved = flow.result(run);
            Observation {
                run,
                moved,
                standing: moved.map_or_else(|| of_run(run), |moved| of_flow(run, moved)),
            }
        });
        Observed { runs: runs.collect(), flow }
    }

    /// Of each flow of a case.
    pub fn of_case(case: &'a CaseResult) -> impl Iterator<Item = Observed<'a>> {
        case.flows().map(Observed::new)
    }

    /// Of each flow of each case of a file, in its order.
    pub fn of_file(file: &'a ResultFile) -> impl Iterator<Item = Observed<'a>> {
        file.cases.iter().flat_map(Observed::of_case)
    }

    pub fn counted(&self) -> impl Iterator<Item = &Observation<'a>> {
        self.runs.iter().filter(|observation| observation.counts())
    }

    /// A figure in each run that counts and has it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        let counted = self.counted().filter(|_| self.flow.has(metric));
        counted.filter_map(|it| it.value(metric)).collect()
    }

    /// The median over the runs that count; `None` where none has it.
    pub fn median(&self, metric: Metric) -> Option<f64> {
        median(&self.values(metric))
    }

    /// The median of what is taken from each run that counts; `None` where none has it.
    pub fn median_of(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let figures = self.counted().filter_map(|it| figure(it.run));
        median(&figures.filter(|it| it.is_finite()).collect::<Vec<f64>>())
    }

    /// Median, smallest and largest over the runs that count; `None` where none has it.
    pub fn spread(&self, metric: Metric) -> Option<Spread> {
        Spread::new(self.values(metric))
    }

    /// How many of its runs do not count, by reason.
    pub fn left_out(&self) -> LeftOut {
        LeftOut::new(self.runs.iter().map(|observation| &observation.standing))
    }
}

/// A median of runs and the smallest and largest of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub count: usize,
}

impl Spread {
    /// Of figures that are numbers; `None` without one.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let finite: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        Some(Spread {
            median: median(&finite)?,
            low: finite.iter().copied().fold(f64::INFINITY, f64::min),
            high: finite.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            count: finite.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::model::Failure;
    use results::sample::{self, doubt, rows, with};

    fn run() -> Run {
        Run { failure: Some(Failure::default()), ..sample::run(vec![FlowResult::default(); 2]) }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for [damage, reason] in rows(
            "
failure=null; complete=false | is not complete
failure/message=the peer died | failed: the peer died
failure=null; flows/0/totals/errors=1 | has 1 completions with an error
failure=null; flows/1/totals/errors=2 | has 2 completions with an error
",
        ) {
            let run = with(&run(), damage);
            assert_eq!(of_run(&run), Standing::Bad(reason.to_owned()), "{damage}");
        }
    }

    #[test]
    fn doubtful_rates_and_what_the_user_stopped_are_left_out_and_a_drift_is_none() {
        for &kind in DoubtKind::ALL {
            let mut run = with(&run(), "failure=null");
            run.flows[0].window.doubts.push(doubt(kind));
            let expected = match kind {
                DoubtKind::Drift => Standing::Counts,
                kind => Standing::Doubtful(kind),
            };
            assert_eq!(of_run(&run), expected);
        }
        let stopped = with(&run(), "failure=null; interrupted=true; complete=false");
        assert_eq!(of_run(&stopped), Standing::Stopped);
    }

    /// One home: each flow for itself, the run by all of them.
    #[test]
    fn a_doubt_about_one_flow_leaves_the_other() {
        let mut run = with(&run(), "failure=null");
        run.flows[1].window.doubts.push(doubt(DoubtKind::EdgeMissed));
        let doubtful = Standing::Doubtful(DoubtKind::EdgeMissed);
        let of = |flow: usize| of_flow(&run, &run.flows[flow]);
        assert_eq!([of(0), of(1)], [Standing::Counts, doubtful.clone()]);
        assert_eq!(of_run(&run), doubtful);
        let left_out = LeftOut::new([of(0), of(1), Standing::Stopped]);
        assert_eq!((left_out.runs, left_out.count()), (3, 2));
        assert_eq!(left_out.reasons(), ["1 stopped", "1 edge missed"]);
    }

    #[test]
    fn only_complete_runs_that_kept_their_schedule_count_and_nothing_is_not_zero() {
        let runs = [
            (true, Some(LoadVerdict::Kept), Some(3.0)),
            (true, Some(LoadVerdict::NotKept), Some(900.0)),
            (false, None, Some(900.0)),
            (true, None, None),
            (true, Some(LoadVerdict::Overloaded), Some(5.0)),
        ];
        let mut case = sample::case(
            runs.map(|(complete, verdict, gbit_per_s)| {
                let mut flow =
                    FlowResult { load: verdict.and_then(sample::load_of), ..FlowResult::default() };
                flow.totals.gbit_per_s = gbit_per_s;
                Run { complete, ..sample::run(vec![flow]) }
            })
            .to_vec(),
        );
        let observed = Observed::of_case(&case).next().unwrap();
        assert_eq!(observed.median(Metric::GbitPerS), Some(4.0));
        let spread = observed.spread(Metric::GbitPerS).unwrap();
        assert_eq!((spread.low, spread.high, spread.count), (3.0, 5.0, 2));
        assert_eq!(observed.median(Metric::P99Ns), None);
        assert_eq!(observed.counted().count(), 3);
        assert_eq!(observed.left_out().count(), 2);
        case.runs.truncate(0);
        let without_runs = Observed::of_case(&case).next().unwrap();
        assert_eq!(without_runs.median(Metric::GbitPerS), None);
    }
}
