//! The ends of a run's flows at a node: their verbs objects, and how they are connected to the other ends, whose arrays
//! come from the coordinator.

use std::ops::Range;

use crate::connect_cm::{Listener, check_port};
use crate::flow_end::FlowEnd;
use crate::needs::{EndRoles, effective_workers};
use crate::node_threads::NodeThreads;
use crate::qp_contexts_by_cm::{accept_qps, dial_qps};
use crate::running_node::{self, EarlyEnd, RunningNode};
use crate::server::node_run::NodeRun;
use crate::verbs_objects::VerbsObjects;
use datapath::QpContext;
use plan::{Flow, Side};
use protocol::failure::RunFailure;
use protocol::message::{EndArray, Message};
use protocol::time_limits::SETUP_LIMIT;
use settings::ConnectMode;

/// Whether this node's ports can be connected as the case asks.
pub(crate) fn check(run: &NodeRun<'_>) -> Result<(), RunFailure> {
    if run.case.is_set_up() && run.case.connect == ConnectMode::Cm {
        check_port(run.resources.port())?;
    }
    let mut ends = run.case.ends_at(run.number);
    ends.try_for_each(|(_, flow, side)| {
        let port = run.resources.port_of(flow.device(side))?;
        match flow.connect {
            ConnectMode::Cm => check_port(&port),
            ConnectMode::Tcp => Ok(()),
        }
    })
}

/// Creates and connects all ends at this node, with workers that wait.
///
/// # Errors
/// A failed call, an array that does not fit, or the end of the run.
pub(crate) fn connect(run: &NodeRun<'_>) -> Result<RunningNode, EarlyEnd> {
    let (link, stop) = (run.link, run.stop);
    let recv = || running_node::recv(link, stop, SETUP_LIMIT, || Ok(()));
    match recv()? {
        Message::Create => {}
        other => return Err(link.unexpected("create", &other).into()),
    }
    let count = workers(run);
    let mut groups = run.resources.threads_of_rails(count);
    let over_none = groups.len();
    groups.extend((0..Flow::WORKER_SETS).map(|set| worker_set(run, set).collect()));
    let mut threads = NodeThreads::in_groups(count, run.case.poll, groups);
    let mut made = Vec::new();
    for (index, flow, side) in run.case.ends_at(run.number) {
        let port = &run.resources.port_of(flow.device(side))?;
        let numa_node = run.resources.numa_node_at(port);
        let mut flow = flow.clone();
        let rail = run.resources.rail_of(port);
        let of_group = threads.take_group(rail.unwrap_or(over_none + usize::from(flow.worker_set)));
        if rail.is_some() {
            flow.workers = flow.workers.min(u32::try_from(of_group).unwrap_or(u32::MAX));
        }
        let objects =
            VerbsObjects::create(port, &flow, side, numa_node, &mut threads, || run.alive())?;
        let listener = match (flow.connect, side) {
            (ConnectMode::Cm, Side::Target) => Some(Listener::open(port)?),
            _ => None,
        };
        let end = FlowEnd {
            number: run.flows.get(index).copied().unwrap_or_default(),
            flow,
            side,
            objects,
        };
        made.push((end, listener));
    }
    let arrays = made.iter().map(|(end, listener)| EndArray {
        flow: end.number,
        side: end.side,
        endpoints: end.objects.endpoints(),
        listening: listener.as_ref().map(Listener::listening),
    });
    // All nodes have reserved their cores by now.
    let cores = run.resources.cores();
    let note = cores.new_sharing_warning(run.case.poll, workers(run));
    if let Some(text) = &note {
        (run.note)(text);
    }
    let mut embedded = made
        .iter()
        .map(|(end, _)| &end.objects.port().context)
        .filter(|it| it.library().is_embedded())
        .peekable();
    if embedded.peek().is_some() {
        let free = cores.without_workers();
        embedded.for_each(|context| context.place_engine(&free));
    }
    link.send(&Message::Created { arrays: arrays.collect(), note })?;
    let peers = match recv()? {
        Message::Connect(peers) => peers,
        other => return Err(link.unexpected("connect", &other).into()),
    };
    let expected = made.len();
    if peers.len() != expected {
        let text = format!("{} arrays came for {expected} ends of flows", peers.len());
        return Err(RunFailure::new(text, None).into());
    }
    let mut ends = Vec::with_capacity(expected);
    for ((mut end, listener), peer) in made.into_iter().zip(&peers) {
        let qp_contexts = qp_contexts(run, &mut end, listener.as_ref(), peer)?;
        ends.push((end, qp_contexts));
    }
    let cores = run.resources.cores_for(workers(run));
    let node = RunningNode::start(ends, &threads, &cores, run.resources.clock(), run.run)?;
    link.send(&Message::Ready)?;
    Ok(node)
}

/// Worker threads that have work at this node.
pub(crate) fn workers(run: &NodeRun<'_>) -> usize {
    worker_set(run, Flow::WORKER_SETS - 1).end
}

/// Those of them that serve the flows of a set, behind those of the sets before it: as many as the case has, unless all its flows
/// have work for fewer.
fn worker_set(run: &NodeRun<'_>, set: u8) -> Range<usize> {
    let count = |set: u8| {
        let needed: usize = run
            .case
            .ends_at(run.number)
            .filter(|(_, flow, side)| {
                let roles = EndRoles::new(flow, *side);
                flow.worker_set == set && (roles.sends || roles.receives)
            })
            .map(|(_, flow, _)| effective_workers(flow))
            .sum();
        needed.min(run.case.workers as usize)
    };
    let first = (0..set).map(count).sum();
    first..first + count(set)
}

fn qp_contexts(
    run: &NodeRun<'_>,
    end: &mut FlowEnd,
    listener: Option<&Listener>,
    peer: &EndArray,
) -> Result<Vec<QpContext>, RunFailure> {
    let (objects, endpoints) = (&mut end.objects, &peer.endpoints);
    let alive = || run.alive();
    match (end.flow.connect, listener, &peer.listening) {
        (ConnectMode::Tcp, ..) => objects.connect(endpoints, alive),
        (ConnectMode::Cm, Some(listener), _) => accept_qps(objects, endpoints, listener, alive),
        (ConnectMode::Cm, None, Some(listening)) => dial_qps(objects, endpoints, listening, alive),
        (ConnectMode::Cm, None, None) => {
            Err(RunFailure::new("the other end does not say where it listens for rdma_cm", None))
        }
    }
}
