//! The cases that are compared, with their figures, and the words that distinguish them.

use std::collections::HashMap;

use settings::{Row, Settings, telling_apart};

use super::noise::Figures;
use crate::observe::Metric;
use crate::observe::setting_words::words;
use crate::observe::standing;
use results::model::{CaseResult, ResultFile, Run};

/// Cases that move as much as they can between two nodes, each with its runs in all results.
pub(super) struct Compared<'a> {
    cases: Vec<(&'a CaseResult, Vec<&'a Run>)>,
    pub(super) rows: Vec<&'static Row>,
    /// The figures by which they are compared, that which scales first: of transfers, or of set-ups where there are no
    /// transfers.
    pub(super) metrics: [Metric; 2],
}

pub(super) struct Subject<'a> {
    pub(super) case: &'a CaseResult,
    pub(super) figures: Figures,
}

impl<'a> Compared<'a> {
    /// `None` where the results are of different nodes or devices, or there are no two cases.
    pub(super) fn new(results: &[&'a ResultFile]) -> Option<Compared<'a>> {
        let (first, others) = results.split_first()?;
        if others.iter().any(|other| host_devices(other) != host_devices(first)) {
            return None;
        }
        let mut cases: Vec<(&'a CaseResult, Vec<&'a Run>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for case in results.iter().flat_map(|result| &result.cases).filter(|case| {
            let mut flows = case.flows();
            case.config.pattern.is_none() && flows.all(|flow| flow.settings.rate.is_closed())
        }) {
            let place = *places.entry(&case.id).or_insert(cases.len());
            match cases.get_mut(place) {
                Some((known, runs)) if known.config == case.config => runs.extend(&case.runs),
                // Another sweep gave another case the same name.
                Some(_) => return None,
                None => cases.push((case, case.runs.iter().collect())),
            }
        }
        let (set_ups, transfers): (Vec<_>, Vec<_>) =
            cases.into_iter().partition(|(case, _)| case.config.is_set_up());
        let (cases, metrics) = if transfers.is_empty() {
            (set_ups, [Metric::ConnectionsPerS, Metric::SetupP99Ns])
        } else {
            (transfers, [Metric::GbitPerS, Metric::P99Ns])
        };
        let settings = cases.iter().map(|(case, _)| case.config.settings.clone());
        let mut rows = telling_apart(&settings.collect::<Vec<_>>());
        rows.retain(|row| !row.may_differ);
        (cases.len() > 1).then_some(Compared { cases, rows, metrics })
    }

    pub(super) fn subjects(&self, metric: Metric) -> Vec<Subject<'a>> {
        self.cases
            .iter()
            .filter_map(|(case, runs)| {
                let figures: Vec<f64> = runs
                    .iter()
                    .filter(|run| standing::run_counts(run))
                    .filter_map(|run| of_run(run, metric))
                    .collect();
                let figures = Figures::new(metric, &figures)?;
                Some(Subject { case, figures })
            })
            .collect()
    }
}

/// Throughput of all flows together, the worst latency of a flow.
fn of_run(run: &Run, metric: Metric) -> Option<f64> {
    if metric.is_of_setup() {
        return metric.of(run, None);
    }
    let figures: Vec<f64> =
        run.flows.iter().map(|flow| metric.of(run, Some(flow))).collect::<Option<_>>()?;
    figures.into_iter().reduce(if metric.higher_is_better() {
        |one, other| one + other
    } else {
        f64::max
    })
}

impl Subject<'_> {
    pub(super) fn settings(&self) -> &Settings {
        &self.case.config.settings
    }

    /// Whether it has the same of these settings as another.
    pub(super) fn is_like(&self, other: &Subject<'_>, rows: &[&Row]) -> bool {
        rows.iter().all(|row| row.is_equal(self.settings(), other.settings()))
    }

    /// `write, 4 QPs, CQ shared`: the values of these settings; the case's name where they are none.
    pub(super) fn named(&self, rows: &[&Row]) -> String {
        let values: Vec<String> = rows
            .iter()
            .map(|row| words(row, self.settings()))
            .filter(|words| !words.is_empty())
            .collect();
        if values.is_empty() { self.case.id.clone() } else { values.join(", ") }
    }
}

/// A host, and what carried its traffic: devices with their faults.
type HostDevices<'a> = (&'a str, Vec<(&'a str, Option<&'a String>)>);

fn host_devices(result: &ResultFile) -> Vec<HostDevices<'_>> {
    result
        .nodes
        .iter()
        .map(|node| {
            let devices = node.devices.iter().map(|device| (&*device.name, device.faults.as_ref()));
            (&*node.host.hostname, devices.collect())
        })
        .collect()
}
