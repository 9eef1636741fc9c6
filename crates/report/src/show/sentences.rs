//! The sentences of findings, for terminal, page, JSON and JUnit.

mod failures;
mod nodes;
mod rails;

use settings::listed;

use crate::judge::findings::{Finding, Problem, ProblemKind, Shape};
use crate::observe::Metric;
use crate::observe::format::plural;

pub use failures::failing;
pub(super) use failures::of_flow;
pub(super) use nodes::number;
pub use nodes::of_nodes;
use rails::{rails_differ, slow_rail};

/// What a finding says, as one sentence or two.
pub fn sentence(finding: &Finding) -> String {
    match finding {
        Finding::Best { metric, low, high, cases, of_cases, names } => {
            best(*metric, [*low, *high], [*cases, *of_cases], names)
        }
        Finding::NoClearWinner { metric, low, high, cases } => format!(
            "No clear winner in {}: {cases} cases from {}. The runs scatter too much.",
            metric.noun(),
            metric.range(*low, *high)
        ),
        Finding::FewRuns { chance } => {
            let shares: Vec<String> = chance
                .iter()
                .map(|(metric, share)| format!("{:.0} % in {}", share * 100.0, metric.noun()))
                .collect();
            format!(
                "Use --runs 5: with so few runs, differences up to {} may be chance.",
                listed(&shares)
            )
        }
        Finding::Scaling { metric, shape, from, to, of } => {
            scaling(*metric, *shape, [from, to], of)
        }
        Finding::SlowRail(rail) => slow_rail(rail),
        Finding::RailsDiffer(rail) => rails_differ(rail),
        Finding::Wrong(problem) => wrong(problem),
        Finding::NothingWrong { runs: 1 } => "Nothing looks wrong in the run.".to_owned(),
        Finding::NothingWrong { runs } => format!("Nothing looks wrong in {runs} runs."),
        Finding::Nodes { finding, .. } => of_nodes(finding),
    }
}

fn best(
    metric: Metric,
    [low, high]: [f64; 2],
    [cases, of]: [usize; 2],
    names: &[String],
) -> String {
    let range = metric.range(low, high);
    let noun = metric.noun();
    if cases == of {
        let cases = match of {
            2 => "Both cases".to_owned(),
            of => format!("All {of} cases"),
        };
        return format!("{cases} have about the same {noun}: {range}.");
    }
    let most = if metric.higher_is_better() { "Most" } else { "Lowest" };
    match names {
        [name] if cases == 1 => format!("{most} {noun}: {range} with {name}."),
        [] => format!("{most} {noun}: {range} in {cases} of {of} cases."),
        [one, two] if cases == 2 => format!("{most} {noun}: {range} with {one}, and with {two}."),
        names => format!("{most} {noun}: {range} in {cases} of {of} cases ({}).", names.join(", ")),
    }
}

fn scaling(metric: Metric, shape: Shape, [from, to]: [&(String, f64); 2], of: &str) -> String {
    let noun = match metric {
        Metric::GbitPerS => "Throughput".to_owned(),
        other => format!("The number of {}", other.noun()),
    };
    let [from, to] = [from, to].map(|(words, value)| format!("{words} ({})", metric.text(*value)));
    let change = match shape {
        Shape::Level => format!("is about the same from {from} to {to}"),
        Shape::Falls => format!("falls from {from} to {to}"),
        Shape::Grows => format!("grows from {from} to {to}"),
        Shape::StillGrows => format!("still grows at the end, from {from} to {to}"),
        Shape::GrowsUntil => format!("grows until {from}, and no further until {to}"),
        Shape::HighestThenFalls => format!("is highest with {from}, and falls until {to}"),
        Shape::Highest => format!("is highest with {from}"),
    };
    let of = match of {
        "" => String::new(),
        of => format!(" ({of})"),
    };
    format!("{noun} {change}{of}.")
}

/// What is wrong, and what helps.
fn wrong(problem: &Problem) -> String {
    let Problem { kind, count, of, case, most, counts, .. } = problem;
    let runs = format!("{count} of {of} {}", plural(*of, "run"));
    let counts = counts
        .iter()
        .map(|(name, count)| match kind {
            ProblemKind::Unreliable => name.clone(),
            ProblemKind::Starved => format!("{name} {count}"),
            _ => format!("{count} {name}"),
        })
        .collect::<Vec<_>>()
        .join(", ");
    let text = match kind {
        ProblemKind::Failed => format!("{runs} failed"),
        ProblemKind::Unreliable => {
            let are = if *count == 1 { "is" } else { "are" };
            format!("{runs} {are} unreliable: {counts}")
        }
        ProblemKind::Overloaded => format!("{runs} served less than was offered"),
        ProblemKind::ReceiverDisagrees => {
            format!("Sender and receiver disagree by more than 2 % in {runs}")
        }
        ProblemKind::MessagesLost => {
            let most = match most * 100.0 {
                ..0.01 => "less than 0.01".to_owned(),
                most => format!("up to {most:.2}"),
            };
            format!("{runs} lost messages, {most} %")
        }
        ProblemKind::PacketsLost => format!("{runs} lost packets or had late ones: {counts}"),
        ProblemKind::ReceiverNotReady => {
            format!("{runs} found no receive posted at the receiver")
        }
        ProblemKind::NotSettled => format!("Throughput did not settle in the warm-up of {runs}"),
        ProblemKind::Stalled => format!(
            "{runs} had a QP that stood still while others moved, for up to {:.0} ms",
            most * 1e3
        ),
        ProblemKind::Starved => {
            format!("{runs} starved a QP: {counts} got {most:.2} of its share")
        }
        ProblemKind::Uneven => {
            format!("{runs} served QPs unevenly: Jain's index down to {most:.2}")
        }
        ProblemKind::CoresShared => format!("Workers shared cores in {runs}"),
        ProblemKind::Drift => format!("Throughput drifted in {runs}"),
        ProblemKind::Scatter => format!(
            "{count} of {of} {} scatter in throughput, by up to {:.0} %",
            plural(*of, "case"),
            most * 100.0
        ),
    };
    let first = match count {
        1 => case.clone(),
        _ if *kind == ProblemKind::Scatter => format!("most {case}"),
        _ => format!("first {case}"),
    };
    match remedy(problem) {
        "" => format!("{text} ({first})."),
        remedy => format!("{text} ({first}). {}.", remedy.trim_end_matches('.')),
    }
}

/// What helps; empty where nothing is known.
pub(super) fn remedy(problem: &Problem) -> &str {
    match problem.kind {
        ProblemKind::Overloaded => "Lower --rate, or use more QPs",
        ProblemKind::ReceiverDisagrees | ProblemKind::NotSettled => "Measure longer (-D)",
        ProblemKind::MessagesLost => "Post more receives (--rx-depth), or lower --rate",
        ProblemKind::PacketsLost => {
            "Look for a link with errors and for switches without flow control (rocebench doctor)"
        }
        ProblemKind::ReceiverNotReady => "Post more receives (--rx-depth)",
        ProblemKind::CoresShared => "Use fewer --workers, or name --cores",
        ProblemKind::Drift => "Warm up longer (--warmup)",
        ProblemKind::Scatter => "Measure longer (-D) and more often (--runs)",
        _ => &problem.hint,
    }
}

/// Findings in a few sentences: the best cases, the gravest problem, and the names of the other problems.
pub fn short(findings: &[Finding]) -> Vec<(bool, String)> {
    let (wrong, right): (Vec<&Finding>, Vec<&Finding>) =
        findings.iter().partition(|finding| finding.is_wrong());
    let mut sentences: Vec<(bool, String)> = right.iter().map(|it| (false, sentence(it))).collect();
    if let Some((gravest, others)) = wrong.split_first() {
        sentences.push((true, sentence(gravest)));
        let names: Vec<String> = others
            .iter()
            .map(|finding| match finding {
                Finding::Wrong(problem) => {
                    format!("{} ({} of {})", problem.kind.name(), problem.count, problem.of)
                }
                other => sentence(other).trim_end_matches('.').to_owned(),
            })
            .collect();
        if !names.is_empty() {
            sentences.push((true, format!("Also: {}.", names.join("; "))));
        }
    }
    sentences
}

#[cfg(test)]
mod tests;
