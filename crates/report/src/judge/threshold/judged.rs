//! Each flow of a sweep, judged by what was asked for. What cannot be judged has not passed.

use std::collections::HashMap;

use settings::Settings;

use super::asked::Threshold;
use super::condition::Condition;
use super::demands::Demands;
use crate::judge::mesh::Matrix;
use crate::observe::Metric;
use crate::observe::format::exact;
use crate::observe::standing;
use crate::results::model::{CaseResult, FlowConfig, FlowResult, ResultFile, Run};
use statistics::median;

/// Flows that a sentence names.
const MOST: usize = 5;

/// A case, or all rounds of a pattern, with its flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite<'a> {
    /// Its name.
    pub title: String,
    /// Its cases.
    pub cases: Vec<&'a CaseResult>,
    /// Its flows, in the order of the cases.
    pub flows: Vec<Judged>,
}

/// A flow, and whether it reaches what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Name of the flow.
    pub name: String,
    /// Payload throughput in 10^9 bits a second, over UC and UD of what was received, the median over the runs that count; `None` where none does.
    pub gbit_per_s: Option<f64>,
    /// Why it has not passed, with the value.
    pub failure: Option<String>,
}

/// A flow with the figures of the runs that count.
struct Measured {
    name: String,
    settings: Settings,
    gbit_per_s: Vec<f64>,
    of_limit: Vec<f64>,
    link_gbit_per_s: Option<f64>,
    /// The conditions that are true of it, as failures.
    conditions: Vec<String>,
}

/// Judges all flows of a sweep, and set-up where conditions are about it; where nothing is demanded each must have a figure.
pub fn judge<'a>(file: &'a ResultFile, demands: &Demands) -> Vec<Suite<'a>> {
    let matrices = Matrix::all(file);
    let in_matrices: HashMap<&str, usize> = (matrices.iter().enumerate())
        .flat_map(|(index, matrix)| matrix.cases.iter().map(move |id| (&**id, index)))
        .collect();
    let mut suites: Vec<(Option<usize>, Suite<'_>)> = Vec::new();
    for case in &file.cases {
        let matrix = in_matrices.get(&*case.id).copied();
        let mut known = suites.iter_mut();
        if let Some((_, suite)) = known.find(|(of, _)| of.is_some() && *of == matrix) {
            suite.cases.push(case);
            continue;
        }
        let title = matrix.and_then(|index| matrices.get(index));
        let suite = Suite {
            title: title.map_or_else(|| case.id.clone(), Matrix::title),
            cases: vec![case],
            flows: Vec::new(),
        };
        suites.push((matrix, suite));
    }
    for (_, suite) in &mut suites {
        let flows: Vec<Measured> = suite
            .cases
            .iter()
            .flat_map(|case| measured(case, &demands.fail_if))
            .collect();
        let mut alike: Vec<(&Settings, Vec<f64>)> = Vec::new();
        for flow in &flows {
            let figure = median(&flow.gbit_per_s);
            match alike
                .iter_mut()
                .find(|(settings, _)| **settings == flow.settings)
            {
                Some((_, figures)) => figures.extend(figure),
                None => alike.push((&flow.settings, figure.into_iter().collect())),
            }
        }
        let judged = |flow: &Measured| {
            let figures = alike
                .iter()
                .find(|(settings, _)| **settings == flow.settings);
            let figures = figures.filter(|(_, figures)| figures.len() > 1);
            judged(
                flow,
                figures.and_then(|(_, figures)| median(figures)),
                demands.below,
            )
        };
        suite.flows = flows.iter().map(judged).collect();
        let set_up = suite.cases.iter().filter(|case| case.config.is_set_up());
        suite
            .flows
            .extend(set_up.filter_map(|case| set_up_judged(case, demands)));
        if suite.flows.is_empty() {
            suite.flows = vec![Judged {
                name: "flows".to_owned(),
                gbit_per_s: None,
                failure: Some("it has no flow whose throughput could be judged".to_owned()),
            }];
        }
    }
    suites.into_iter().map(|(_, suite)| suite).collect()
}

/// Set-up, as far as conditions are about it, or where nothing else of the case could be judged.
fn set_up_judged(case: &CaseResult, demands: &Demands) -> Option<Judged> {
    let about_it: Vec<&Condition> = demands
        .fail_if
        .iter()
        .filter(|it| it.metric().is_of_setup())
        .collect();
    let is_alone = case.config.flows.is_empty() && demands.below.is_none();
    if about_it.is_empty() && !is_alone {
        return None;
    }
    let runs = case.runs.iter().filter(|run| standing::run_counts(run));
    let runs: Vec<(&Run, Option<&FlowResult>)> = runs.map(|run| (run, None)).collect();
    let failures: Vec<String> = match runs.is_empty() {
        true => vec![NO_RUN.to_owned()],
        false => about_it
            .into_iter()
            .filter_map(|it| is_true(it, &runs))
            .collect(),
    };
    Some(Judged {
        name: "set-up".to_owned(),
        gbit_per_s: None,
        failure: joined(&failures),
    })
}

/// Why a flow fails that has no figure.
const NO_RUN: &str = "no run of it counts";

/// Why a condition makes these runs fail, by the median of its metric; `None` where it does not.
fn is_true(condition: &Condition, runs: &[(&Run, Option<&FlowResult>)]) -> Option<String> {
    let metric = condition.metric();
    let figures = runs.iter().filter_map(|(run, flow)| metric.of(run, *flow));
    match median(&figures.collect::<Vec<f64>>()) {
        Some(figure) => condition.failure(figure),
        None => {
            let has_samples = runs
                .iter()
                .any(|(run, flow)| metric.has_samples(run, *flow));
            Some(condition.unknown(has_samples))
        }
    }
}

fn joined(failures: &[String]) -> Option<String> {
    (!failures.is_empty()).then(|| failures.join(", and "))
}

/// Each flow of a case.
fn measured<'a>(case: &'a CaseResult, fail_if: &[Condition]) -> Vec<Measured> {
    let flows = case.config.flows.iter().enumerate();
    let measured = |(index, config): (usize, &FlowConfig)| {
        let of_run = |run: &'a Run| {
            // A run's flows are in the order of the case's, which saves looking for each of thousands.
            let at_place = run.flows.get(index).filter(|flow| flow.name == config.name);
            let flow = at_place.or_else(|| run.flow(&config.name))?;
            standing::counts(run, flow).then_some((run, Some(flow)))
        };
        let counted: Vec<(&Run, Option<&FlowResult>)> =
            case.runs.iter().filter_map(of_run).collect();
        let settings = case.config.flow(index);
        let about_it = fail_if.iter().filter(|it| match it.metric() {
            // A QP alone shares with none.
            Metric::Fairness => settings.qps > 1,
            metric => !metric.is_of_setup(),
        });
        let conditions = about_it.filter_map(|it| is_true(it, &counted)).collect();
        let runs: Vec<&FlowResult> = counted.into_iter().filter_map(|(_, flow)| flow).collect();
        let limits = || runs.iter().filter_map(|flow| flow.limits.as_ref());
        Measured {
            name: config.name.clone(),
            settings,
            gbit_per_s: runs.iter().filter_map(|flow| flow.gbit_per_s()).collect(),
            of_limit: limits()
                .filter_map(|limits| limits.share_of_limit)
                .collect(),
            link_gbit_per_s: limits().next().map(|limits| limits.link_gbit_per_s),
            conditions,
        }
    };
    flows.map(measured).collect()
}

fn judged(flow: &Measured, usual: Option<f64>, threshold: Option<Threshold>) -> Judged {
    let gbit_per_s = median(&flow.gbit_per_s);
    let failures: Vec<String> = match gbit_per_s {
        None => vec![NO_RUN.to_owned()],
        Some(reached) => {
            let slow = threshold.and_then(|it| failure(flow, reached, usual, it));
            slow.into_iter()
                .chain(flow.conditions.iter().cloned())
                .collect()
        }
    };
    Judged {
        name: flow.name.clone(),
        gbit_per_s,
        failure: joined(&failures),
    }
}

/// Why a flow that reaches so much has not passed; `usual` is the median of flows like it.
fn failure(
    flow: &Measured,
    reached: f64,
    usual: Option<f64>,
    threshold: Threshold,
) -> Option<String> {
    let text = exact;
    let below = |least: f64, of: &str| {
        let [reached_text, least_text] = [reached, least].map(text);
        (reached < least).then(|| format!("{reached_text} Gb/s, below {least_text}{of}"))
    };
    match threshold {
        Threshold::GbitPerS(least) => below(least, ""),
        Threshold::OfMedian(share) => {
            let Some(middle) = usual else {
                let text =
                    "no other flow has the same settings, so there is no median: give Gb or %link";
                return Some(text.to_owned());
            };
            let percent = (share * 1e6).round() / 1e4;
            below(
                share * middle,
                &format!(" ({percent} % of the median {})", text(middle)),
            )
        }
        Threshold::OfLink(share) => {
            let Some(of_limit) = median(&flow.of_limit) else {
                let text = "the speed of its link is not known: give Gb or %median";
                return Some(text.to_owned());
            };
            let link = flow.link_gbit_per_s.map(text).unwrap_or_default();
            (of_limit < share).then(|| {
                format!(
                    "{} Gb/s, {:.1} % of what its link of {link} Gb/s allows",
                    text(reached),
                    of_limit * 100.0
                )
            })
        }
    }
}

/// What has not passed, as one sentence; `None` where all has.
pub fn failing(suites: &[Suite<'_>]) -> Option<String> {
    let flows: usize = suites.iter().map(|suite| suite.flows.len()).sum();
    let failed = suites.iter().flat_map(|suite| {
        suite.flows.iter().filter_map(|flow| {
            let failure = flow.failure.as_ref()?;
            let of_suite = match suites.len() {
                1 => String::new(),
                _ => format!("{}, ", suite.title),
            };
            Some(format!("{of_suite}{}: {failure}", flow.name))
        })
    });
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() {
        return None;
    }
    let verb = if failed.len() == 1 { "fails" } else { "fail" };
    let mut named = failed
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    if failed.len() > MOST {
        named += &format!("; and {} more", failed.len() - MOST);
    }
    let noun = if flows == 1 { "flow" } else { "flows" };
    Some(format!(
        "{} of {flows} {noun} {verb}: {named}",
        failed.len()
    ))
}

#[cfg(test)]
mod tests;
