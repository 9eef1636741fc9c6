//! A case's figure: the median of its complete runs.

use crate::compare::Metric;
use crate::results::model::{CaseResult, Run};
use crate::statistics::median;

/// The complete runs, which alone are drawn.
pub fn complete_runs(case: &CaseResult) -> impl Iterator<Item = &Run> {
    case.runs.iter().filter(|run| run.complete)
}

/// Median of a metric; `None` where no complete run has it.
pub fn metric(case: &CaseResult, metric: Metric) -> Option<f64> {
    by(case, |run| metric.of(run))
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
pub fn share_of_limit(case: &CaseResult) -> Option<f64> {
    by(case, |run| run.forward.limits.as_ref()?.share_of_limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{Direction, Totals};

    fn run(complete: bool, gbit_per_s: Option<f64>) -> Run {
        Run {
            complete,
            forward: Direction {
                totals: Totals {
                    gbit_per_s,
                    ..Totals::default()
                },
                ..Direction::default()
            },
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
        assert_eq!(metric(&case, Metric::GbitPerS), Some(4.0));
        assert_eq!(metric(&case, Metric::P99Ns), None);
        assert_eq!(share_of_limit(&case), None);
        case.runs.truncate(0);
        assert_eq!(metric(&case, Metric::GbitPerS), None);
    }
}
