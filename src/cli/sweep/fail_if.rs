//! `--fail-if`: conditions that no case of a sweep can fulfil are refused.

use report::judge::threshold::Condition;
use report::observe::Metric;

use plan::Sweep;

use crate::cli::terminal::errors::Failure;

/// Checks that each condition is about something that a case measures.
pub(in crate::cli) fn conditions_apply(
    conditions: &[Condition],
    sweep: &Sweep,
) -> Result<(), Failure> {
    let cases = &sweep.cases;
    for condition in conditions {
        let metric = condition.metric;
        let of_latency = metric.unit() == "ns" && !metric.is_of_setup();
        let mut flows = cases.iter().flat_map(|case| &case.flows);
        let (why, hint) = if metric.is_of_setup() {
            if cases.iter().any(|case| case.is_set_up()) {
                continue;
            }
            ("is about set-up, but no case measures it", "add --op connect")
        } else if cases.iter().all(|case| case.flows.is_empty()) {
            ("is about traffic, but --traffic-qps 0 has none", "raise --traffic-qps")
        } else if of_latency && flows.all(|flow| flow.no_latency) {
            ("is about latency, but --no-latency records none", "leave --no-latency out")
        } else if metric == Metric::Fairness && flows.all(|flow| flow.qps < 2) {
            ("is about fairness between QPs, but every flow has only one", "give more QPs (-q)")
        } else {
            continue;
        };
        return Err(Failure::bad_input(format!("--fail-if {condition} {why}"))
            .with_hint(format!("{hint}, or leave the condition out")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::{from_words, has};

    #[test]
    fn conditions_about_nothing_are_refused() {
        let refused = |condition: &str, flags: &str| {
            let sweep = Sweep::new(&from_words(flags)).unwrap();
            conditions_apply(&[condition.parse().unwrap()], &sweep).map_err(|it| it.text())
        };
        let none = "op=connect traffic-qps=0";
        let of_set_up = "--fail-if connections<100 is about set-up";
        let quiet = ("no-latency=true", "--no-latency records none");
        for (condition, flags, words) in [
            ("connections<100", "", of_set_up),
            ("gbit<1", none, "--fail-if gbit<1 is about traffic"),
            ("p99>20us", quiet.0, quiet.1),
            ("jain<0.9", "qps=1", "every flow has only one"),
        ] {
            has(refused(condition, flags).unwrap_err(), [words]);
        }
        assert_eq!(refused("setup>1ms", none), Ok(()));
        assert_eq!(refused("gbit<1", "op=connect"), Ok(()));
        assert_eq!(refused("p99>20us", ""), Ok(()));
        assert_eq!(refused("jain<0.9", "qps=1,2"), Ok(()));
    }
}
