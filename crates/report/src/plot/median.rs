//! A flow's figure: the median of its case's runs that count.

use crate::compare::Metric;
use crate::results::model::{CaseFlow, CaseResult, FlowResult, LoadVerdict, Run};
use statistics::median;

/// The complete runs.
pub fn complete_runs(case: &CaseResult) -> impl Iterator<Item = &Run> {
    case.runs.iter().filter(|run| run.complete)
}

/// Whether each flow of the run that had planned times posted its messages at them. A run that did not is no result
/// of the load that was asked for.
pub fn kept_schedule(run: &Run) -> bool {
    let mut loads = run.flows.iter().filter_map(|flow| flow.load.as_ref());
    loads.all(|load| load.verdict != LoadVerdict::NotKept)
}

/// The runs that count: complete, and their schedule was kept.
pub fn counted_runs(case: &CaseResult) -> impl Iterator<Item = &Run> {
    complete_runs(case).filter(|run| kept_schedule(run))
}

/// What a flow moved in the runs that count.
pub fn counted_flows<'a>(flow: &CaseFlow<'a>) -> impl Iterator<Item = &'a FlowResult> {
    counted_runs(flow.case).filter_map(|run| flow.result(run))
}

/// Median of a metric; `None` where no run that counts has it.
pub fn metric(flow: &CaseFlow<'_>, metric: Metric) -> Option<f64> {
    by(flow.case, |run| metric.of(run, flow.result(run)))
}

/// Median of what is taken from each run; `None` where no run that counts has it.
pub fn by(case: &CaseResult, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = counted_runs(case)
        .filter_map(figure)
        .filter(|value| value.is_finite())
        .collect();
    median(&values)
}

/// Median share of what the link allows; `None` where there is no limit, as on software devices.
pub fn share_of_limit(flow: &CaseFlow<'_>) -> Option<f64> {
    by(flow.case, |run| {
        flow.result(run)?.limits.as_ref()?.share_of_limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn run(complete: bool, gbit_per_s: Option<f64>) -> Run {
        let mut flow = FlowResult::default();
        flow.totals.gbit_per_s = gbit_per_s;
        Run {
            complete,
            ..sample::run(vec![flow])
        }
    }

    #[test]
    fn a_run_that_did_not_keep_its_schedule_does_not_count() {
        let with = |(verdict, gbit_per_s)| {
            let mut run = run(true, Some(gbit_per_s));
            run.flows[0].load = sample::load_of(verdict);
            run
        };
        let (kept, overloaded) = ((LoadVerdict::Kept, 3.0), (LoadVerdict::Overloaded, 5.0));
        let runs = [kept, (LoadVerdict::NotKept, 900.0), overloaded].map(with);
        let case = sample::case(runs.to_vec());
        let flow = case.flows().next().unwrap();
        assert_eq!(metric(&flow, Metric::GbitPerS), Some(4.0));
        let counts = (complete_runs(&case).count(), counted_flows(&flow).count());
        assert_eq!(counts, (3, 2));
    }

    #[test]
    fn only_complete_runs_count_and_nothing_is_not_zero() {
        let mut case = sample::case(vec![
            run(true, Some(3.0)),
            run(false, Some(900.0)),
            run(true, None),
            run(true, Some(5.0)),
        ]);
        let flow = |case: &CaseResult, of| metric(&case.flows().next().unwrap(), of);
        assert_eq!(flow(&case, Metric::GbitPerS), Some(4.0));
        assert_eq!(flow(&case, Metric::P99Ns), None);
        assert_eq!(share_of_limit(&case.flows().next().unwrap()), None);
        case.runs.truncate(0);
        assert_eq!(flow(&case, Metric::GbitPerS), None);
    }
}
