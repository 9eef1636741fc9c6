//! Each flow of a sweep, judged by what was asked for. What cannot be judged has not passed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use settings::Settings;

use super::condition::{Condition, Limit, Relation};
use super::demands::Demands;
use crate::judge::mesh::{groups, title};
use crate::observe::{Metric, standing};
use results::model::{CaseResult, FlowConfig, FlowResult, ResultFile, Run};
use statistics::median;

/// A case, or all rounds of a pattern, with its flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite<'a> {
    pub title: String,
    pub cases: Vec<&'a CaseResult>,
    /// Its flows, in the order of the cases.
    pub flows: Vec<Judged>,
}

/// A flow, and whether it keeps what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub name: String,
    /// Payload throughput in 10^9 bits a second, over UC and UD of what was received, the median over the runs that count; `None` where none does.
    pub gbit_per_s: Option<f64>,
    /// Why it has not passed; empty where it has.
    pub failures: Vec<Failure>,
}

/// Why a flow has not passed.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No run of it counts.
    NoRun,
    /// There is no flow that could be judged.
    NoFlow,
    /// No other flow has its settings, so there is no median.
    NoMedian,
    /// A figure is not known.
    NotKnown {
        metric: Metric,
        /// It was measured, but of too little.
        has_samples: bool,
    },
    /// A condition is true, by the median over the runs that count.
    True {
        metric: Metric,
        /// The figure, in the metric's unit.
        figure: f64,
        /// How it lies to the limit.
        relation: Relation,
        /// The limit, in the metric's unit.
        limit: f64,
        /// Of which share, 0 to 1, of the flows' median that is.
        of_median: Option<f64>,
    },
}

/// A flow with the runs that count; of set-up, which is none, with the runs alone.
struct Measured<'a> {
    name: &'a str,
    settings: Option<Settings>,
    runs: Vec<(&'a Run, Option<&'a FlowResult>)>,
}

/// Judges all flows of a sweep, and set-up where conditions are about it; where nothing is demanded each must have a figure.
pub fn judge<'a>(file: &'a ResultFile, demands: &Demands) -> Vec<Suite<'a>> {
    groups(file)
        .into_iter()
        .map(|cases| {
            let flows = cases.iter().flat_map(|case| flows(case));
            let set_ups = cases.iter().filter_map(|case| set_up(case, demands));
            let measured = each_once(flows.chain(set_ups));
            let usual = medians(&measured);
            let mut judged: Vec<Judged> =
                (measured.iter()).map(|flow| flow.judged(demands, &usual)).collect();
            if judged.is_empty() {
                judged.push(Judged {
                    name: "flows".to_owned(),
                    gbit_per_s: None,
                    failures: vec![Failure::NoFlow],
                });
            }
            Suite { title: title(&cases), cases, flows: judged }
        })
        .collect()
}

/// Each flow once, with its runs of all rounds: what looks slow is measured in further ones.
fn each_once<'a>(flows: impl Iterator<Item = Measured<'a>>) -> Vec<Measured<'a>> {
    let (mut measured, mut places) = (Vec::<Measured<'_>>::new(), HashMap::new());
    for flow in flows {
        match places.entry(flow.name) {
            Entry::Occupied(place) => {
                let known: &mut Measured<'_> = &mut measured[*place.get()];
                known.runs.extend(flow.runs);
            }
            Entry::Vacant(place) => {
                place.insert(measured.len());
                measured.push(flow);
            }
        }
    }
    measured
}

fn flows(case: &CaseResult) -> impl Iterator<Item = Measured<'_>> {
    case.config.flows.iter().enumerate().map(move |(index, config): (usize, &FlowConfig)| {
        Measured {
            name: &config.name,
            settings: Some(case.config.flow(index)),
            runs: case
                .runs
                .iter()
                .filter_map(|run| {
                    let flow = flow_at(run, index, &config.name)?;
                    standing::counts(run, flow).then_some((run, Some(flow)))
                })
                .collect(),
        }
    })
}

/// A run's flows are in the order of the case's, which saves looking for each of thousands.
fn flow_at<'a>(run: &'a Run, index: usize, name: &str) -> Option<&'a FlowResult> {
    run.flows.get(index).filter(|flow| flow.name == name).or_else(|| run.flow(name))
}

/// Set-up, as far as conditions are about it, or where nothing else of the case could be judged.
fn set_up<'a>(case: &'a CaseResult, demands: &Demands) -> Option<Measured<'a>> {
    let is_asked = demands.fail_if.iter().any(|it| it.metric.is_of_setup());
    let is_alone = case.config.flows.is_empty() && demands.below.is_none();
    let runs = case.runs.iter().filter(|run| standing::run_counts(run));
    (case.config.is_set_up() && (is_asked || is_alone)).then(|| Measured {
        name: "set-up",
        settings: None,
        runs: runs.map(|run| (run, None)).collect(),
    })
}

/// The medians of the throughputs of flows with equal settings, where there are two or more.
type Usual<'a> = Vec<(&'a Settings, Option<f64>)>;

fn medians<'f>(flows: &'f [Measured<'_>]) -> Usual<'f> {
    let mut alike: Vec<(&Settings, Vec<f64>)> = Vec::new();
    for flow in flows {
        let (Some(settings), Some(figure)) = (&flow.settings, flow.median(Metric::GbitPerS)) else {
            continue;
        };
        match alike.iter_mut().find(|(known, _)| *known == settings) {
            Some((_, figures)) => figures.push(figure),
            None => alike.push((settings, vec![figure])),
        }
    }
    alike
        .into_iter()
        .map(|(settings, figures)| (settings, median(&figures).filter(|_| figures.len() > 1)))
        .collect()
}

impl Measured<'_> {
    fn median(&self, metric: Metric) -> Option<f64> {
        let figures = self.runs.iter().map(|(run, flow)| metric.of(run, *flow));
        median(&figures.flatten().collect::<Vec<f64>>())
    }

    fn judged(&self, demands: &Demands, usual: &Usual<'_>) -> Judged {
        let gbit_per_s = self.median(Metric::GbitPerS);
        let has_figure = match &self.settings {
            Some(_) => gbit_per_s.is_some(),
            None => !self.runs.is_empty(),
        };
        let about_it = demands.conditions().filter(|it| self.is_asked(it.metric));
        Judged {
            name: self.name.to_owned(),
            gbit_per_s,
            failures: if has_figure {
                about_it.filter_map(|it| self.failure(it, usual)).collect()
            } else {
                vec![Failure::NoRun]
            },
        }
    }

    /// Whether a condition on a metric is about it. A QP alone shares with none.
    fn is_asked(&self, metric: Metric) -> bool {
        match &self.settings {
            Some(settings) if metric == Metric::Fairness => settings.qps > 1,
            settings => metric.is_of_setup() == settings.is_none(),
        }
    }

    /// Why a condition makes it fail; `None` where it does not.
    fn failure(&self, condition: &Condition, usual: &Usual<'_>) -> Option<Failure> {
        let metric = condition.metric;
        let Some(figure) = self.median(metric) else {
            let mut runs = self.runs.iter();
            return Some(Failure::NotKnown {
                metric,
                has_samples: runs.any(|(run, flow)| metric.has_samples(run, *flow)),
            });
        };
        let (limit, of_median) = match condition.limit {
            Limit::Value(limit) => (limit, None),
            Limit::OfMedian(share) => {
                let settings = self.settings.as_ref();
                let alike = usual.iter().find(|(known, _)| Some(*known) == settings);
                let Some(middle) = alike.and_then(|(_, usual)| *usual) else {
                    return Some(Failure::NoMedian);
                };
                (share * middle, Some(share))
            }
        };
        let relation = condition.relation;
        relation.holds(figure, limit).then_some(Failure::True {
            metric,
            figure,
            relation,
            limit,
            of_median,
        })
    }
}

#[cfg(test)]
mod tests;
