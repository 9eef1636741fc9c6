//! The nodes that have a part in a run, and what that part is.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use node::needs::EndRoles;
use plan::{Case, Side};
use protocol::failure::RunFailure;
use protocol::message::Message;

use super::nodes::Node;

/// A node that has a part in a run.
pub(crate) struct Member<'a> {
    /// Its number in the session.
    pub(crate) number: u32,
    pub(crate) node: &'a Node,
    /// The ends of flows there, each by its flow's number in the case, in the order of the flows.
    ends: Vec<(u32, Side)>,
}

/// The nodes that have ends of flows; where set-up is measured, all of them.
pub(crate) fn members<'a>(case: &Case, nodes: &'a [Node]) -> Vec<Member<'a>> {
    let mut members: Vec<Member<'_>> =
        (0..).zip(nodes).map(|(number, node)| Member { number, node, ends: Vec::new() }).collect();
    for (flow, number) in case.flows.iter().zip(0..) {
        for (node, side) in [(flow.from, Side::Initiator), (flow.to, Side::Target)] {
            if let Some(member) = members.get_mut(node as usize) {
                member.ends.push((number, side));
            }
        }
    }
    members.retain(|member| case.is_set_up() || !member.ends.is_empty());
    members
}

impl Member<'_> {
    /// What the node is told of a run: the case with its own flows alone, so that what is sent to a node does not grow
    /// with the nodes.
    pub(crate) fn prepare(&self, case: &Case, run: u32) -> Message {
        let mut numbers: Vec<u32> = self.ends.iter().map(|(flow, _)| *flow).collect();
        numbers.dedup();
        let flows = numbers.iter().filter_map(|flow| case.flows.get(*flow as usize));
        Message::Prepare {
            case: Box::new(Case {
                id: case.id.clone(),
                settings: case.settings.clone(),
                flows: flows.cloned().collect(),
            }),
            flows: numbers,
            run,
            node: self.number,
        }
    }

    /// Whether something goes from this node.
    pub(crate) fn sends(&self, case: &Case) -> bool {
        self.ends.iter().any(|(flow, side)| {
            let flow = case.flows.get(*flow as usize);
            flow.is_some_and(|flow| EndRoles::new(flow, *side).initiates)
        })
    }
}

/// For each end at each member what was reported of its other end; `reports` has for each member what it reported of its
/// ends.
///
/// # Errors
/// A node reported more or fewer ends than it has.
pub(crate) fn of_peers<T: Clone>(
    members: &[Member<'_>],
    reports: &[Vec<T>],
) -> Result<Vec<Vec<T>>, RunFailure> {
    let mut known = HashMap::new();
    for (member, reported) in members.iter().zip(reports) {
        if reported.len() != member.ends.len() {
            return Err(not_its_own());
        }
        known.extend(member.ends.iter().copied().zip(reported));
    }
    members
        .iter()
        .map(|member| {
            member
                .ends
                .iter()
                .map(|(flow, side)| {
                    let other = match side {
                        Side::Initiator => Side::Target,
                        Side::Target => Side::Initiator,
                    };
                    known.get(&(*flow, other)).map(|reported| (*reported).clone())
                })
                .collect()
        })
        .collect::<Option<_>>()
        .ok_or_else(not_its_own)
}

fn not_its_own() -> RunFailure {
    RunFailure::new("a node reported flows that are not its own", None)
}

/// Members that may be asked at once, one of each host: what nodes of one host do one after the other does not depend on
/// which of them is faster.
pub(crate) fn one_of_each_host<'m, 'a>(members: &'m [Member<'a>]) -> Vec<Vec<&'m Member<'a>>> {
    let mut waves: Vec<Vec<&Member<'_>>> = Vec::new();
    let mut of_hosts: BTreeMap<Option<IpAddr>, usize> = BTreeMap::new();
    for member in members {
        let link = &member.node.link;
        let host = (!link.is_within_host()).then(|| link.peer().ip());
        let wave = of_hosts.entry(host).or_default();
        match waves.get_mut(*wave) {
            Some(wave) => wave.push(member),
            None => waves.push(vec![member]),
        }
        *wave += 1;
    }
    waves
}
