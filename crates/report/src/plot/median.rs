//! A flow's figures: medians over the runs that count.

use crate::compare::Metric;
use crate::observe::standing::median_of;
use crate::results::model::CaseFlow;

/// Median of a metric; `None` where no run that counts has it.
pub fn metric(flow: &CaseFlow<'_>, metric: Metric) -> Option<f64> {
    median_of(flow, |run| metric.of(run, flow.result(run)))
}

/// Median share of what the link allows; `None` where there is no limit, as on software devices.
pub fn share_of_limit(flow: &CaseFlow<'_>) -> Option<f64> {
    median_of(flow, |run| {
        flow.result(run)?.limits.as_ref()?.share_of_limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::standing::counted_flows;
    use crate::results::model::{CaseResult, FlowResult, LoadVerdict, Run};
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
        assert_eq!(counted_flows(&flow).count(), 2);
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
