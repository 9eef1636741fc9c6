//! Each flow of a sweep, judged by what was asked for. What cannot be judged has not passed.

use std::collections::HashMap;

use settings::Settings;

use super::asked::Threshold;
use crate::mesh::Matrix;
use crate::results::model::{CaseResult, FlowConfig, FlowResult, ResultFile, Run};
use crate::results::number::digits;
use crate::statistics::median;

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
    /// Why it has not passed.
    pub failure: Option<String>,
}

/// A flow with the figures of the runs that count.
struct Measured {
    name: String,
    settings: Settings,
    gbit_per_s: Vec<f64>,
    of_limit: Vec<f64>,
    link_gbit_per_s: Option<f64>,
}

/// Judges all flows of a sweep; without a threshold each must have a figure.
pub fn judge(file: &ResultFile, threshold: Option<Threshold>) -> Vec<Suite<'_>> {
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
        let flows: Vec<Measured> = suite.cases.iter().flat_map(|case| measured(case)).collect();
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
                threshold,
            )
        };
        suite.flows = flows.iter().map(judged).collect();
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

/// Each flow of a case.
fn measured<'a>(case: &'a CaseResult) -> Vec<Measured> {
    let flows = case.config.flows.iter().enumerate();
    let measured = |(index, config): (usize, &FlowConfig)| {
        let of_run = |run: &'a Run| {
            // A run's flows are in the order of the case's, which saves looking for each of thousands.
            let at_place = run.flows.get(index).filter(|flow| flow.name == config.name);
            let flow = at_place.or_else(|| run.flow(&config.name))?;
            run.counts(flow).then_some(flow)
        };
        let runs: Vec<&FlowResult> = case.runs.iter().filter_map(of_run).collect();
        let limits = || runs.iter().filter_map(|flow| flow.limits.as_ref());
        Measured {
            name: config.name.clone(),
            settings: case.config.flow(index),
            gbit_per_s: runs.iter().filter_map(|flow| flow.gbit_per_s()).collect(),
            of_limit: limits()
                .filter_map(|limits| limits.share_of_limit)
                .collect(),
            link_gbit_per_s: limits().next().map(|limits| limits.link_gbit_per_s),
        }
    };
    flows.map(measured).collect()
}

fn judged(flow: &Measured, usual: Option<f64>, threshold: Option<Threshold>) -> Judged {
    let gbit_per_s = median(&flow.gbit_per_s);
    let failure = match (gbit_per_s, threshold) {
        (None, _) => Some("no run of it counts".to_owned()),
        (_, None) => None,
        (Some(reached), Some(threshold)) => failure(flow, reached, usual, threshold),
    };
    Judged {
        name: flow.name.clone(),
        gbit_per_s,
        failure,
    }
}

/// Why a flow that reaches so much has not passed; `usual` is the median of flows like it.
fn failure(
    flow: &Measured,
    reached: f64,
    usual: Option<f64>,
    threshold: Threshold,
) -> Option<String> {
    let text = |gbit_per_s: f64| format!("{gbit_per_s:.*}", digits(gbit_per_s));
    let below = |least: f64, of: &str| {
        let [reached_text, least_text] = [reached, least].map(text);
        (reached < least).then(|| format!("{reached_text} Gb/s, below {least_text}{of}"))
    };
    match threshold {
        Threshold::GbitPerS(least) => below(least, ""),
        Threshold::OfMedian(share) => {
            let Some(middle) = usual else {
                let text = "no other flow is like it, to have a median of: ask for Gb or %link";
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
                let text = "the speed of its link is not known: ask for Gb or %median";
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
