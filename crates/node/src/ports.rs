//! Which ports a node takes: its rails, each with threads of its own, and the network in which the nodes of a session take
//! theirs. Each tells the networks of the ports that it may take, and the one that most have is taken.

use std::{collections::HashMap, net::IpAddr, sync::atomic::AtomicBool};

use plan::Devices;
use protocol::{
    error::LinkError,
    failure::RunFailure,
    link::{ANSWER_LIMIT, Link},
    message::{ExaminationMessage, Message},
    node_report::NodeFacts,
};
use verbs::{Adapters, Network, Port, PortRequest, Route, VerbsError, select_or_embedded};

use crate::resources::{NodeOptions, NodeResources};

/// The ports of a node, its own first.
#[derive(Default)]
pub(crate) struct Rails {
    pub(crate) ports: Vec<Port>,
    /// Of each that was asked for, whether it can be used.
    pub(crate) are_up: Vec<bool>,
    /// Why others cannot be used.
    pub(crate) left_out: Vec<String>,
}

impl Rails {
    /// Opens the devices that are asked for.
    ///
    /// # Errors
    /// There is no device of a name, or none can be used.
    pub(crate) fn open(options: &NodeOptions, route: Option<Route>) -> Result<Rails, RunFailure> {
        let open = |request: &PortRequest| select_or_embedded(options.library, request, route);
        let any = || open(&options.request(options.request.device.as_deref()));
        let requests = match &options.rails {
            None => return Ok(any()?.into()),
            Some(Devices::Named(names)) => {
                names.iter().map(|name| options.request(Some(name))).collect()
            }
            Some(Devices::All) => match any()? {
                embedded if embedded.embedded.is_some() => return Ok(embedded.into()),
                _ => all_ports(options)?,
            },
        };
        let is_all = options.rails == Some(Devices::All);
        let mut rails = Rails::default();
        let mut first = None;
        for request in requests {
            let opened = open(&request);
            rails.are_up.push(opened.is_ok());
            match opened {
                Ok(port) => rails.ports.push(port),
                Err(VerbsError::NoUsablePort { reasons }) => {
                    rails.left_out.extend_from_slice(&reasons);
                    first = first.or(Some(VerbsError::NoUsablePort { reasons }));
                }
                Err(error) if is_all || matches!(error, VerbsError::Call { .. }) => {
                    rails.left_out.push(error.to_string());
                    first = first.or(Some(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if is_all {
            rails.leave_link_local_out();
        }
        match first {
            Some(error) if rails.ports.is_empty() => Err(error.into()),
            _ => Ok(rails),
        }
    }

    /// Leaves ports out that have a link-local address alone, unless all have.
    fn leave_link_local_out(&mut self) {
        if self.ports.iter().all(is_link_local) {
            return;
        }
        let mut ports = std::mem::take(&mut self.ports).into_iter();
        for is_up in self.are_up.iter_mut().filter(|is_up| **is_up) {
            match ports.next() {
                Some(port) if is_link_local(&port) => {
                    *is_up = false;
                    let name = port.context.name();
                    self.left_out.push(format!("{name} has only a link-local address"));
                }
                port => self.ports.extend(port),
            }
        }
    }
}

/// A request for each port of the system's devices.
fn all_ports(options: &NodeOptions) -> Result<Vec<PortRequest>, VerbsError> {
    let known = Adapters::open(options.library, None)?;
    let mut requests = Vec::new();
    for name in &known.names {
        let adapter = known.opened.iter().find(|it| it.name() == name);
        let ports = adapter.map_or(1, |it| it.limits.ports);
        let numbers = options.request.ib_port.map_or(1..=ports, |port| port..=port);
        requests.extend(
            numbers.map(|port| PortRequest { ib_port: Some(port), ..options.request(Some(name)) }),
        );
    }
    Ok(requests)
}

fn is_link_local(port: &Port) -> bool {
    port.info.link_layer.has_gid_addresses()
        && port.gid.is_some_and(|entry| entry.gid.is_link_local())
}

impl From<Port> for Rails {
    fn from(port: Port) -> Rails {
        Rails { ports: vec![port], are_up: vec![true], left_out: Vec::new() }
    }
}

/// The rails in the order in which threads are given to them: one of each NUMA node in turn.
pub(crate) fn rails_in_turn(numa_nodes: &[Option<u32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numa_nodes.len()).collect();
    order.sort_by_key(|&rail| {
        let earlier = &numa_nodes[..rail];
        (earlier.iter().filter(|node| **node == numa_nodes[rail]).count(), rail)
    });
    order
}

/// The threads that serve each rail. Each thread has rails of its own in turn, and only where there are fewer threads than
/// rails several; then of one NUMA node, unless there are fewer threads than those.
pub(crate) fn threads_of_rails(numa_nodes: &[Option<u32>], count: usize) -> Vec<Vec<usize>> {
    let order = rails_in_turn(numa_nodes);
    let mut threads = vec![Vec::new(); order.len()];
    let served = match order.len() {
        0 => 0,
        rails => count.max(rails),
    };
    for thread in 0..served {
        let place = thread % order.len();
        let rail = order[place];
        let near: Vec<usize> = (0..count.min(order.len()))
            .filter(|it| numa_nodes[order[*it]] == numa_nodes[rail])
            .collect();
        threads[rail].push(match (thread < count, near.len()) {
            (true, _) => thread,
            (false, 0) => place % count.max(1),
            (false, some) => near[place % some],
        });
    }
    threads
}

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

/// The address of a node's RoCE port, which other machines may reach.
pub fn rdma_address(facts: &NodeFacts) -> Option<IpAddr> {
    gid_address(facts).filter(|_| !facts.networks.is_empty())
}

/// Whether a node's port reaches its own machine only.
pub fn is_on_loopback(facts: &NodeFacts) -> bool {
    gid_address(facts).is_some_and(|address| address.is_loopback())
}

fn gid_address(facts: &NodeFacts) -> Option<IpAddr> {
    Some(facts.device.gid.as_ref()?.parse::<IpAddr>().ok()?.to_canonical())
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
    fn rails_have_threads_of_their_own_or_share_those_of_their_numa_node() {
        let two_nodes = [Some(0), Some(0), Some(1), Some(1)];
        for (numa, count, wanted) in [
            (&two_nodes[..], 4, vec![vec![0], vec![2], vec![1], vec![3]]),
            (&two_nodes, 2, vec![vec![0], vec![0], vec![1], vec![1]]),
            (&two_nodes, 1, vec![vec![0]; 4]),
            (&[None; 2], 5, vec![vec![0, 2, 4], vec![1, 3]]),
            (&[None; 3], 2, vec![vec![0], vec![1], vec![0]]),
            (&[Some(1), Some(1), Some(1), Some(0)], 3, vec![vec![0], vec![2], vec![2], vec![1]]),
        ] {
            assert_eq!(threads_of_rails(numa, count), wanted, "{numa:?} {count}");
        }
    }

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
