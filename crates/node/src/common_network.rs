//! The network in which the nodes of a session take their ports: each tells the networks of the ports that it may take, and the one
//! that most have is taken.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use verbs::{Network, Port};

use crate::resources::{NodeOptions, NodeResources, Route};
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{ExaminationMessage, Message};
use protocol::node_report::NodeFacts;
use protocol::time_limits::ANSWER_LIMIT;

/// The network that most nodes have, of several the one that comes first; `None` if no two have one in common. The networks of
/// a node are in its own order.
pub fn common<'a>(nodes: impl IntoIterator<Item = &'a [Network]>) -> Option<Network> {
    // How many have it, and its place among all.
    let mut found: HashMap<Network, (usize, usize)> = HashMap::new();
    for networks in nodes {
        for (index, network) in networks.iter().enumerate() {
            let place = found.len();
            let (count, _) = found.entry(*network).or_insert((0, place));
            *count += usize::from(!networks[..index].contains(network));
        }
    }
    let best = found
        .into_iter()
        .filter(|(_, (count, _))| *count >= 2)
        .min_by_key(|(_, (count, place))| (std::cmp::Reverse(*count), *place));
    best.map(|(network, _)| network)
}

/// Opens the port at the client of a session of two ends, in the network that both have.
///
/// # Errors
/// No port or no cores as asked for, or as [`agree`].
pub fn open_at_client(
    options: &NodeOptions,
    link: &Link,
    stop: &AtomicBool,
) -> Result<NodeResources, RunFailure> {
    let route = link.route()?;
    let resources = NodeResources::open(options.clone(), Some(route))?;
    let network = agree(link, resources.port(), stop)?;
    if network.is_none() {
        return Ok(resources);
    }
    drop(resources);
    NodeResources::open(options.clone(), Some(Route { network, ..route }))
}

/// Agrees with the server of a session of two ends, which takes its port accordingly, on the network to which this end moves;
/// `None` if its `port` stays.
///
/// # Errors
/// The other end cannot serve, or the link ended.
pub fn agree(link: &Link, port: &Port, stop: &AtomicBool) -> Result<Option<Network>, LinkError> {
    let own = &port.choice.networks;
    if own.is_empty() {
        return Ok(None);
    }
    let ask = |network, toward| {
        let devices = Vec::new();
        link.send(ExaminationMessage::AskLimits { devices, network, toward, rails: None })?;
        take_facts(link, stop)
    };
    let theirs = ask(None, None)?.networks;
    let network = common([&own[..], &theirs]);
    if network.is_some() {
        if network != theirs.first().copied() {
            ask(network, None)?;
        }
        return Ok(network.filter(|it| port.may_move_to(*it)));
    }
    let toward = port.gid.map(|entry| entry.gid.address());
    let there = rdma_address(&ask(None, toward)?);
    Ok(there.and_then(|there| port.toward(there)).filter(|it| port.may_move_to(*it)))
}

/// The address of a node's RoCE port.
pub fn rdma_address(facts: &NodeFacts) -> Option<IpAddr> {
    let address: IpAddr = facts.device.gid.as_ref()?.parse().ok()?;
    (!facts.networks.is_empty()).then(|| address.to_canonical())
}

/// The answer to `ask_limits`.
///
/// # Errors
/// The node cannot serve, or the link ended.
pub fn take_facts(link: &Link, stop: &AtomicBool) -> Result<NodeFacts, LinkError> {
    match link.recv(ANSWER_LIMIT, stop)? {
        Message::Examination(ExaminationMessage::Limits(facts)) => Ok(*facts),
        other => Err(link.unexpected("limits", &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_that_most_nodes_have_is_taken_and_of_several_the_first() {
        for (nodes, taken) in [
            (&["10.1.0.0/24", "10.2.0.0/24"][..], None),
            (&["", "10.2.0.0/24"], None),
            (&["10.1.0.0/24 10.2.0.0/24", "10.2.0.0/24"], Some("10.2.0.0/24")),
            // A node's own order decides between several, the first node's before the others'.
            (&["10.1.0.0/24 10.2.0.0/24", "10.2.0.0/24 10.1.0.0/24"], Some("10.1.0.0/24")),
            (
                &["10.1.0.0/24 10.2.0.0/24", "10.1.0.0/24", "10.2.0.0/24", "10.2.0.0/24"],
                Some("10.2.0.0/24"),
            ),
            // One node that has a network twice is one.
            (&["10.1.0.0/24 10.1.0.0/24", "10.2.0.0/24"], None),
            // The same addresses, but another prefix.
            (&["10.1.0.0/16", "10.1.0.0/24"], None),
            (&["10.1.0.0/24 fd00::/64", "fd00::/64"], Some("fd00::/64")),
        ] {
            let networks: Vec<_> = nodes
                .iter()
                .map(|text| -> Vec<Network> {
                    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
                })
                .collect();
            let found = common(networks.iter().map(Vec::as_slice));
            let taken = taken.map(|text| text.parse().unwrap());
            assert_eq!(found, taken, "{nodes:?}");
        }
    }
}
