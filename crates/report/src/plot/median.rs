//! A flow's figure: the median of its case's complete runs.

use crate::compare::Metric;
use crate::results::model::{CaseFlow, CaseResult, FlowResult, Run};
use crate::statistics::median;

/// The complete runs, which alone are drawn.
pub fn complete_runs(case: &CaseResult) -> impl Iterator<Item = &Run> {
    case.runs.iter().filter(|run| run.complete)
}

/// What a flow moved in the complete runs.
pub fn complete_flows<'a>(flow: &CaseFlow<'a>) -> impl Iterator<Item = &'a FlowResult> {
    complete_runs(flow.case).filter_map(|run| flow.result(run))
}

/// Median of a metric; `None` where no complete run has it.
pub fn metric(flow: &CaseFlow<'_>, metric: Metric) -> Option<f64> {
    by(flow.case, |run| metric.of(run, flow.result(run)))
}

/// Median of what is taken from each run; `None` where no complete run has it.
pub fn by(case: &CaseResult, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = complete_runs(case)
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
    use crate::results::model::Totals;

    fn run(complete: bool, gbit_per_s: Option<f64>) -> Run {
        Run {
            complete,
            flows: vec![FlowResult {
                totals: Totals {
                    gbit_per_s,
                    ..Totals::default()
                },
                ..FlowResult::default()
            }],
            ..Run::default()
        }
    }

    #[test]
    fn only_complete_runs_count_and_nothing_is_not_zero() {
        let mut case = CaseResult {
            runs: vec![
                run(true, Some(3.0)),
                run(false, Some(900.0)),
                run(true, None),
                run(true, Some(5.0)),
            ],
            ..CaseResult::default()
        };
        let flow = |case: &CaseResult, of| metric(&case.flows().next().unwrap(), of);
        assert_eq!(flow(&case, Metric::GbitPerS), Some(4.0));
        assert_eq!(flow(&case, Metric::P99Ns), None);
        assert_eq!(share_of_limit(&case.flows().next().unwrap()), None);
        case.runs.truncate(0);
        assert_eq!(flow(&case, Metric::GbitPerS), None);
    }
}
