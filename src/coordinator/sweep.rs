//! A sweep: case by case and run by run, with all nodes, into one result. What fails is recorded, and the sweep goes on where it can.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::tool::tool;
use machine::host;
use node::resources::NodeResources;
use plan::Nodes;
use protocol::failure::RunFailure;
use protocol::link::Link;
use results::model::{Host, Node, ResultFile, SCHEMA_VERSION};
use results::utc_now;

use super::admission;
use super::against::{beside, pairs};
use super::nodes::NodePlaces;
use super::observer::Observer;
use super::options::SweepOptions;
use super::priorities;
use super::quick;
use super::rails::over_rails;
use super::search;

use super::sweeper::{StopReason, SweepOutcome, Sweeper};

/// Runs a sweep.
///
/// # Errors
/// Why it could not begin. What fails later is in the outcome.
pub fn run_sweep(
    options: &SweepOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<SweepOutcome, RunFailure> {
    let own_host = host::read();
    let facts = serde_json::to_value(&own_host).unwrap_or_default();
    // Without a device, or without what is compared with, there is no need to bother the peer.
    let mut version = None;
    if !matches!(options.sweep.nodes, Nodes::Hosts(_)) {
        let resources = NodeResources::open(options.ends.resources.clone(), None)?;
        admission::check_cm(options, &resources)?;
        version = pairs::prepare(options, &resources)?;
    }
    let mut places = NodePlaces::new(options);
    let nodes = places.connect(&options.ends, &facts, stop)?;
    let sweep = over_rails(options, &nodes, observer)?;
    pairs::ask_server(options, &nodes, stop)?;
    admission::check_sweep(&sweep, &nodes)?;
    if let Some(searches) = &options.searches {
        admission::check_sweep(&searches.as_sweep(&options.sweep), &nodes)?;
    }
    let outcome = SweepOutcome {
        result: ResultFile {
            schema_version: SCHEMA_VERSION,
            tool: tool(),
            started_at: utc_now(),
            command_line: options.command_line.clone(),
            nodes: nodes.iter().map(|node| node_of(node, &own_host)).collect(),
            cases: Vec::new(),
            beside: Vec::new(),
        },
        failed_runs: 0,
        only_bad_input: true,
        interrupted: false,
        lost: None,
    };
    for node in nodes.iter().filter(|node| node.is_own) {
        if let Some(text) = &node.facts.remark {
            observer.note(text);
        }
    }
    let lossless: Vec<_> = nodes.iter().map(|node| (&*node.name, &node.facts.lossless)).collect();
    for text in priorities::notes(&sweep.cases, &lossless) {
        observer.note(&text);
    }
    let mut sweeper = Sweeper {
        options,
        sweep: &sweep,
        total: sweep.cases.len(),
        places,
        facts,
        stop,
        observer,
        outcome,
        nodes: Some(nodes),
        said_of_peer: BTreeSet::new(),
    };
    match all_cases(&mut sweeper, version.as_deref()) {
        Ok(()) => {}
        Err(StopReason::Interrupted) => sweeper.outcome.interrupted = true,
        Err(StopReason::Lost(error)) => sweeper.outcome.lost = Some(error),
        Err(StopReason::Broken(error)) => return Err(error),
    }
    Link::part(sweeper.nodes.iter().flatten().map(|node| &node.link), stop);
    if let (Some(ranks), Some(_)) = (&options.ranks, &sweeper.nodes) {
        ranks.release();
    }
    Ok(sweeper.outcome)
}

/// A node and its host.
fn node_of(node: &super::nodes::Node, own_host: &Host) -> Node {
    let host = if node.is_in_process {
        own_host.clone()
    } else {
        // A node that says something else about itself still runs cases.
        serde_json::from_value(node.peer.host.clone()).unwrap_or_else(|_| Host {
            hostname: node.peer.address.ip().to_string(),
            ..Host::default()
        })
    };
    Node { name: node.name.clone(), host, devices: vec![node.facts.device.clone()] }
}

/// All cases, in their order.
fn all_cases(sweeper: &mut Sweeper<'_>, perftest_version: Option<&str>) -> Result<(), StopReason> {
    let sweep = sweeper.sweep;
    if let Some(rounds) = &sweeper.options.beside {
        return beside::run_cases(sweeper, rounds);
    }
    for (index, case) in sweep.cases.iter().enumerate() {
        if let Some(against) = &sweeper.options.against {
            pairs::run_case(sweeper, index, case, against, perftest_version)?;
            continue;
        }
        for number in 1..=sweep.runs() {
            sweeper.run(index, case, number, sweep.runs())?;
        }
        if let Some(searches) = &sweeper.options.searches {
            search::of_case(sweeper, index, case, searches)?;
        }
    }
    if sweeper.options.quick { quick::measure_again(sweeper) } else { Ok(()) }
}
