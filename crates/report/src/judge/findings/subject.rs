//! The cases that are compared, with their figures, and the words by which they are told apart.

use std::collections::HashMap;

use settings::{Row, Settings, telling_apart};

use super::noise::Figures;
use crate::observe::Metric;
use crate::observe::setting_words::words;
use crate::observe::standing;
use crate::results::model::{CaseResult, ResultFile, Run};

/// A case with its runs in all results.
#[derive(Clone, Debug)]
pub(super) struct Subject<'a> {
    pub(super) case: &'a CaseResult,
    runs: Vec<&'a Run>,
}

impl Subject<'_> {
    /// A metric's figures of the runs that count: throughput of all flows together, the worst latency of a flow.
    pub(super) fn figures(&self, metric: Metric) -> Option<Figures> {
        let of_run = |run: &Run| -> Option<f64> {
            if metric.is_of_setup() {
                return metric.of(run, None);
            }
            let flows = run.flows.iter();
            let figures: Option<Vec<f64>> = flows.map(|flow| metric.of(run, Some(flow))).collect();
            let figures = figures.filter(|figures| !figures.is_empty())?;
            match metric.higher_is_better() {
                true => Some(figures.iter().sum()),
                false => figures.into_iter().reduce(f64::max),
            }
        };
        let counted = self
            .runs
            .iter()
            .copied()
            .filter(|run| standing::run_counts(run));
        let figures: Vec<f64> = counted.filter_map(of_run).collect();
        Figures::new(metric, &figures)
    }

    /// Whether its runs are too few to tell how the figure scatters.
    pub(super) fn has_few_runs(&self, metric: Metric) -> bool {
        self.figures(metric).is_some_and(|it| it.are_of_few_runs)
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.case.config.settings
    }
}

/// Each case that moves as much as it can between two nodes, with its runs in all results; `None` where the results are
/// of different nodes or devices.
pub(super) fn subjects<'a>(results: &[&'a ResultFile]) -> Option<Vec<Subject<'a>>> {
    let (first, others) = results.split_first()?;
    if others.iter().any(|other| ground(other) != ground(first)) {
        return None;
    }
    let is_compared = |case: &&CaseResult| {
        let mut flows = case.flows();
        case.config.pattern.is_none() && flows.all(|flow| flow.settings.rate.is_closed())
    };
    let mut subjects: Vec<Subject<'a>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for case in results
        .iter()
        .flat_map(|result| &result.cases)
        .filter(is_compared)
    {
        let place = *places.entry(&case.id).or_insert(subjects.len());
        match subjects.get_mut(place) {
            Some(known) if known.case.config == case.config => known.runs.extend(&case.runs),
            // Another sweep gave another case the same name.
            Some(_) => return None,
            None => subjects.push(Subject {
                case,
                runs: case.runs.iter().collect(),
            }),
        }
    }
    Some(subjects)
}

/// A host, and what carried its traffic: devices with their faults.
type Ground<'a> = (&'a str, Vec<(&'a str, Option<&'a String>)>);

/// The grounds of all nodes.
fn ground(result: &ResultFile) -> Vec<Ground<'_>> {
    let nodes = result.nodes.iter();
    nodes
        .map(|node| {
            let devices = node.devices.iter();
            let devices = devices.map(|device| (&*device.name, device.faults.as_ref()));
            (&*node.host.hostname, devices.collect())
        })
        .collect()
}

/// The settings by which subjects are told apart.
pub(super) fn rows_of(subjects: &[Subject<'_>]) -> Vec<&'static Row> {
    let settings: Vec<Settings> = subjects.iter().map(|it| it.settings().clone()).collect();
    let mut rows = telling_apart(&settings);
    rows.retain(|row| !row.may_differ);
    rows
}

/// `write, 4 QPs, CQ shared`: the values of these settings; the case's name where they are none.
pub(super) fn named(subject: &Subject<'_>, rows: &[&Row]) -> String {
    let told = rows.iter().map(|row| words(row, subject.settings()));
    let told: Vec<String> = told.filter(|words| !words.is_empty()).collect();
    match told.is_empty() {
        true => subject.case.id.clone(),
        false => told.join(", "),
    }
}
