//! A whole sweep: the matrix's cases in order, all checked, and how often each runs.

use std::collections::HashSet;
use std::time::Duration;

use settings::{Given, ROWS, Scope, Settings, Stop};

use super::case::{Case, MOST_FLOWS};
use super::error::PlanError;
use super::flow::{Flow, FlowDevice};
use super::flow_table::FlowTable;
use super::matrix::Axes;
use super::node_list::MOST_NODES;
use super::nodes::Nodes;

/// Cases in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// At least one; ids are unique.
    pub cases: Vec<Case>,
    /// The nodes between which their flows go.
    pub nodes: Nodes,
}

/// Checks combinations of settings, of the case as a whole and of each flow.
fn check(case: &Case) -> Result<(), PlanError> {
    check_scope(case, case, Scope::Case)?;
    let is_alone = matches!(case.flows.as_slice(), [flow] if flow.name == Flow::FORWARD);
    case.flows.iter().try_for_each(|flow| {
        let checked = check_scope(case, flow, Scope::Flow);
        checked.map_err(|error| if is_alone { error } else { error.in_flow(&flow.name) })
    })
}

fn check_scope(case: &Case, settings: &Settings, scope: Scope) -> Result<(), PlanError> {
    match settings.misfit(scope) {
        None => Ok(()),
        Some(misfit) => Err(PlanError::Misfit { misfit, case: Some(case.id.clone()) }),
    }
}

/// What every plan guarantees about its flows, but a peer may break.
fn check_flows(case: &Case) -> Result<(), PlanError> {
    let usual = if case.is_set_up() { 0..=1 } else { 1..=MOST_FLOWS };
    if !usual.contains(&case.flows.len()) {
        return refused(case, "it has no flow, or too many");
    }
    let mut names = HashSet::new();
    for flow in &case.flows {
        if !Flow::is_name_of_plan(&flow.name) || !names.insert(&flow.name) {
            return refused(case, "a flow has no name of its own");
        }
        if flow.from.max(flow.to) >= MOST_NODES {
            return refused(case, "a flow goes from or to no node");
        }
        let mut devices = [&flow.from_device, &flow.to_device].into_iter().flatten();
        if !devices.all(|it| FlowDevice::is_name(&it.name) && it.ib_port != Some(0)) {
            return refused(case, "a flow asks for a device without a name");
        }
        if flow.worker_set >= Flow::WORKER_SETS {
            return refused(case, "a flow asks for workers that no plan has");
        }
        if flow.is_set_up() {
            return refused(case, "set-up is not a flow");
        }
        let mut of_case = ROWS.iter().filter(|row| row.scope == Scope::Case);
        if !case.is_set_up() && !of_case.all(|row| row.is_equal(flow, case)) {
            return refused(case, "a flow differs in what holds for all of them");
        }
        check_ranges(flow)?;
    }
    Ok(())
}

fn refused(case: &Case, why: &'static str) -> Result<(), PlanError> {
    Err(PlanError::NoCase { case: case.id.clone(), why })
}

fn check_ranges(settings: &Settings) -> Result<(), PlanError> {
    let mut scratch = Settings::default();
    for row in ROWS {
        row.read(&mut scratch, &row.text(settings))?;
    }
    Ok(())
}

impl Sweep {
    /// Every requested case between two ends, with defaults for all other settings.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn new(given: &Given) -> Result<Sweep, PlanError> {
        Sweep::with_flows(given, &[], Nodes::TwoEnds)
    }

    /// Every case of these flows between these nodes. Flows without a value of their own take it from `given`; without flows
    /// there is one, from the first node to the second.
    pub fn with_flows(
        given: &Given,
        flows: &[FlowTable],
        nodes: Nodes,
    ) -> Result<Sweep, PlanError> {
        match (flows.is_empty(), given.has("pattern")) {
            (false, true) => return Err(PlanError::PatternWithFlows),
            (true, false) if nodes.count() > 2 => {
                return Err(PlanError::NoFlows { nodes: nodes.count() });
            }
            _ => {}
        }
        let mut cases = Axes::new(given, flows, &nodes)?.cases()?;
        for flow in cases.iter_mut().flat_map(|case| &mut case.flows) {
            flow.from_device = flow.from_device.take().or_else(|| nodes.device(flow.from));
            flow.to_device = flow.to_device.take().or_else(|| nodes.device(flow.to));
        }
        cases.iter().try_for_each(check)?;
        Ok(Sweep { cases, nodes })
    }

    /// Checks a case that no plan made, such as a peer's: every range, its flows, and combinations of settings.
    ///
    /// # Errors
    /// The first setting, or combination of settings, that cannot be run.
    pub fn check(case: &Case) -> Result<(), PlanError> {
        check_ranges(case)?;
        check_flows(case)?;
        check(case)
    }

    /// How often each case is run.
    pub fn runs(&self) -> u32 {
        self.cases.first().map_or(1, |case| case.runs)
    }

    /// The most workers that any case has at a node.
    pub fn max_workers(&self) -> u32 {
        self.cases
            .iter()
            .map(|case| {
                let last_set = case.flows.iter().map(|flow| flow.worker_set).max().unwrap_or(0);
                case.workers * (u32::from(last_set) + 1)
            })
            .max()
            .unwrap_or(0)
    }

    /// The longest that all runs' warm-ups and measurements take together, connecting and draining
    /// not counted; `None` when runs end after a number of messages.
    pub fn longest(&self) -> Option<Duration> {
        let one_round =
            self.cases.iter().try_fold(Duration::ZERO, |sum, case| match case.stop() {
                Stop::DurationNs(ns) => Some(
                    sum.saturating_add(case.warmup.longest())
                        .saturating_add(Duration::from_nanos(ns)),
                ),
                Stop::MessagesPerQp(_) => None,
            })?;
        Some(one_round.saturating_mul(self.runs()))
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
