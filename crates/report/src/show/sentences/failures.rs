//! Why flows of a sweep failed a condition, in words.

use crate::judge::threshold::{Failure, Relation, Suite};
use crate::observe::Metric;
use crate::observe::format::plural;

/// Flows that a sentence names.
const MOST: usize = 5;

/// Every reason why a flow failed; `None` if it passed.
pub(in crate::show) fn of_flow(failures: &[Failure]) -> Option<String> {
    let texts: Vec<String> = failures.iter().map(failure).collect();
    (!texts.is_empty()).then(|| texts.join(", and "))
}

fn failure(failure: &Failure) -> String {
    match failure {
        Failure::NoRun => "no run counts".to_owned(),
        Failure::NoFlow => "no flow has a throughput to judge".to_owned(),
        Failure::NoMedian => {
            "no other flow has the same settings, so there is no median: give Gb or %link"
                .to_owned()
        }
        Failure::NotKnown { metric: Metric::PercentOfLimit, .. } => {
            "its link speed is unknown: give Gb or %median".to_owned()
        }
        Failure::NotKnown { metric, has_samples } => {
            let name = metric.short_name();
            let what = if metric.is_of_setup() { "rounds" } else { "messages" };
            if *has_samples {
                format!("{name} is unknown: too few {what} were timed; measure more (-D, -n)")
            } else {
                format!("{name} was not measured")
            }
        }
        Failure::True { metric, figure, relation, limit, of_median } => {
            let [shown, most] = [*figure, *limit].map(|value| metric.text(value));
            let differs_in_later_digits = shown == most && figure != limit;
            let figure = if differs_in_later_digits { figure.to_string() } else { shown };
            let figure = match metric {
                Metric::PercentOfLimit => format!("{figure} of its link's limit"),
                metric => format!("{} {figure}", metric.short_name()),
            };
            let relation = match relation {
                Relation::Below => "below",
                Relation::AtMost => "not above",
                Relation::Above => "above",
                Relation::AtLeast => "not below",
            };
            let of = of_median
                .map(|share| (share * 1e6).round() / 1e4)
                .map(|percent| format!(" ({percent} % of the median)"));
            format!("{figure}, {relation} {most}{}", of.unwrap_or_default())
        }
    }
}

/// The flows that failed, in one sentence; `None` if all passed.
pub fn failing(suites: &[Suite<'_>]) -> Option<String> {
    let flows: usize = suites.iter().map(|suite| suite.flows.len()).sum();
    let failed: Vec<String> = suites
        .iter()
        .flat_map(|suite| {
            let title = match suites.len() {
                1 => String::new(),
                _ => format!("{}, ", suite.title),
            };
            suite.flows.iter().filter_map(move |flow| {
                let failure = of_flow(&flow.failures)?;
                Some(format!("{title}{}: {failure}", flow.name))
            })
        })
        .collect();
    let count = failed.len();
    let verb = if count == 1 { "fails" } else { "fail" };
    let mut named = failed.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
    if count > MOST {
        named += &format!("; and {} more", count - MOST);
    }
    let noun = plural(flows, "flow");
    (count > 0).then(|| format!("{count} of {flows} {noun} {verb}: {named}"))
}
