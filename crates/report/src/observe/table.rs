//! Observations: each flow of each case with what it was in each run, and the figures of those runs that count. Views
//! and judgements take their figures from here.

use super::metric::Metric;
use super::standing::{self, LeftOut, Standing};
use results::model::{CaseFlow, CaseResult, FlowResult, ResultFile, Run};
use statistics::median;

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
                standing: moved
                    .map_or_else(|| standing::of_run(run), |moved| standing::of_flow(run, moved)),
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

    /// A figure in each run that counts and has it. Figures of set-up are the case's, and stand at its first flow.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        if metric.is_of_setup() && !self.flow.is_first() {
            Vec::new()
        } else {
            self.counted().filter_map(|it| it.value(metric)).collect()
        }
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
    use results::model::LoadVerdict;
    use results::sample;

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
        let observed = Observed::of_case(&case).next().unwrap();
        assert_eq!(observed.median(Metric::GbitPerS), None);
    }
}
