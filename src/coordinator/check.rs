//! `mesh --check`: the rounds in which each rail meets each other one, and once more those in which a path is slow or unknown.

use plan::check::{CheckRequest, over_rails};
use plan::{Case, NodeRails, Sweep};
use report::judge::check::Check;
use results::{history::shorten, text::printable};

use super::nodes::Node;
use super::sweep::{MOST_CHARACTERS, check_sweep};
use super::sweeper::{StopReason, Sweeper};

/// Checks all paths between the sweeper's nodes: `pairs` are the rounds of pairs of nodes (see [`plan::check`]). Its cases
/// stand in the result behind those that are there; [`Check::of_file`] judges them.
///
/// # Errors
/// The nodes cannot run the rounds, or the sweep cannot go on.
pub(crate) fn run_rounds(
    sweeper: &mut Sweeper<'_>,
    pairs: &Sweep,
    request: CheckRequest,
) -> Result<(), StopReason> {
    let nodes = sweeper.take_nodes()?;
    let rails: Vec<NodeRails> =
        nodes.iter().map(|node| (node.name.clone(), node.facts.rails.clone())).collect();
    let rounds = over_rails(pairs, &rails, request);
    check_sweep(&rounds, &nodes).map_err(StopReason::Broken)?;
    for (node, result) in nodes.iter().zip(&mut sweeper.outcome.result.nodes) {
        result.left_out = left_out(node, &nodes);
    }
    sweeper.nodes = Some(nodes);
    let first = sweeper.outcome.result.cases.len();
    sweeper.total = sweeper.total.saturating_sub(pairs.cases.len()) + rounds.cases.len();
    let further = rounds.cases.get(pairs.cases.len()..).unwrap_or_default();
    sweeper.observer.runs_added(further);
    for (index, case) in (first..).zip(&rounds.cases) {
        run(sweeper, (index, case), 1)?;
    }
    let doubtful = Check::of_file(&sweeper.outcome.result)
        .map_or_else(Vec::new, |check| check.doubtful_cases());
    let again: Vec<_> =
        (first..).zip(&rounds.cases).filter(|(_, case)| doubtful.contains(&case.id)).collect();
    for (index, case) in again {
        sweeper.observer.runs_added(std::slice::from_ref(case));
        run(sweeper, (index, case), 2)?;
    }
    Ok(())
}

/// Does a run of a round, and keeps of it what tells whether paths work: there may be a hundred thousand.
fn run(
    sweeper: &mut Sweeper<'_>,
    (index, case): (usize, &Case),
    number: u32,
) -> Result<(), StopReason> {
    sweeper.run(index, case, number, number)?;
    let entry = sweeper.outcome.result.cases.get_mut(index);
    if let Some(kept) = entry.and_then(|entry| entry.runs.last_mut()) {
        shorten(kept);
        kept.nodes.iter_mut().for_each(|node| node.workers.clear());
        for flow in &mut kept.flows {
            (flow.bandwidth_gbit_per_s, flow.limits) = (None, None);
            flow.window.doubts.clear();
        }
    }
    Ok(())
}

/// Why rails of a node cannot be checked; none where no other node has them either.
fn left_out(node: &Node, nodes: &[Node]) -> Vec<String> {
    let mut missing = (0..).zip(&node.facts.rails).filter(|(_, rail)| rail.is_none());
    let is_elsewhere = missing.any(|(place, _): (usize, _)| {
        nodes.iter().any(|other| matches!(other.facts.rails.get(place), Some(Some(_))))
    });
    if !is_elsewhere {
        return Vec::new();
    }
    node.facts.left_out.iter().map(|why| printable(why, MOST_CHARACTERS)).collect()
}
