//! Why flows of a sweep have not passed, in words.

use crate::judge::threshold::{Failure, Relation, Suite};
use crate::observe::Metric;
use crate::observe::format::plural;

/// Flows that a sentence names.
const MOST: usize = 5;

/// All that fails a flow; `None` where it has passed.
pub(in crate::show) fn of_flow(failures: &[Failure]) -> Option<String> {
    let failures: Vec<String> = failures.iter().map(failure).collect();
    (!failures.is_empty()).then(|| failures.join(", and "))
}

fn failure(failure: &Failure) -> String {
    match failure {
        Failure::NoRun => "no run of it counts".to_owned(),
        Failure::NoFlow => "it has no flow whose throughput could be judged".to_owned(),
        Failure::NoMedian => {
            "no other flow has the same settings, so there is no median: give Gb or %link"
                .to_owned()
        }
        Failure::NotKnown {
            metric: Metric::PercentOfLimit,
            ..
        } => "the speed of its link is not known: give Gb or %median".to_owned(),
        Failure::NotKnown {
            metric,
            has_samples,
        } => {
            let name = metric.short_name();
            let what = match metric.is_of_setup() {
                true => "rounds",
                false => "messages",
            };
            match has_samples {
                true => format!(
                    "{name} is not known: too few {what} were timed, measure more of them (-D, -n)"
                ),
                false => format!("{name} was not measured"),
            }
        }
        Failure::True {
            metric,
            figure,
            relation,
            limit,
            of_median,
        } => {
            let [shown, most] = [*figure, *limit].map(|value| metric.text(value));
            let figure = match shown == most && figure != limit {
                // What differs in later digits only.
                true => figure.to_string(),
                false => shown,
            };
            let figure = match metric {
                Metric::PercentOfLimit => format!("{figure} of what its link allows"),
                metric => format!("{} {figure}", metric.short_name()),
            };
            let relation = match relation {
                Relation::Below => "below",
                Relation::AtMost => "not above",
                Relation::Above => "above",
                Relation::AtLeast => "not below",
            };
            let of = of_median.map(|share| (share * 1e6).round() / 1e4);
            let of = of.map(|percent| format!(" ({percent} % of the median)"));
            format!("{figure}, {relation} {most}{}", of.unwrap_or_default())
        }
    }
}

/// What has not passed, as one sentence; `None` where all has.
pub fn failing(suites: &[Suite<'_>]) -> Option<String> {
    let flows: usize = suites.iter().map(|suite| suite.flows.len()).sum();
    let failed = suites.iter().flat_map(|suite| {
        let title = match suites.len() {
            1 => String::new(),
            _ => format!("{}, ", suite.title),
        };
        suite.flows.iter().filter_map(move |flow| {
            let failure = of_flow(&flow.failures)?;
            Some(format!("{title}{}: {failure}", flow.name))
        })
    });
    let failed: Vec<String> = failed.collect();
    let count = failed.len();
    let verb = if count == 1 { "fails" } else { "fail" };
    let mut named = failed
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if count > MOST {
        named += &format!("; and {} more", count - MOST);
    }
    let noun = plural(flows, "flow");
    (count > 0).then(|| format!("{count} of {flows} {noun} {verb}: {named}"))
}
