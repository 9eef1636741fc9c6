//! A flow's figures: medians over the runs that count.

use crate::observe::Metric;
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

    #[test]
    fn only_complete_runs_that_kept_their_schedule_count_and_nothing_is_not_zero() {
        let run = |(complete, verdict, gbit_per_s): (_, Option<LoadVerdict>, _)| {
            let mut flow = FlowResult {
                load: verdict.and_then(sample::load_of),
                ..FlowResult::default()
            };
            flow.totals.gbit_per_s = gbit_per_s;
            Run {
                complete,
                ..sample::run(vec![flow])
            }
        };
        let runs = [
            (true, Some(LoadVerdict::Kept), Some(3.0)),
            (true, Some(LoadVerdict::NotKept), Some(900.0)),
            (false, None, Some(900.0)),
            (true, None, None),
            (true, Some(LoadVerdict::Overloaded), Some(5.0)),
        ];
        let mut case = sample::case(runs.map(run).to_vec());
        let flow = |case: &CaseResult, of| metric(&case.flows().next().unwrap(), of);
        assert_eq!(flow(&case, Metric::GbitPerS), Some(4.0));
        assert_eq!(flow(&case, Metric::P99Ns), None);
        let of_case = case.flows().next().unwrap();
        assert_eq!(share_of_limit(&of_case), None);
        assert_eq!(counted_flows(&of_case).count(), 3);
        case.runs.truncate(0);
        assert_eq!(flow(&case, Metric::GbitPerS), None);
    }
}
