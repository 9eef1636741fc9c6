//! The nodes of a session: servers on other hosts, and nodes in this process.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use node::ports::{common, rdma_address, take_facts};
use node::resources::Route;
use plan::{Devices, FlowDevice, Nodes, Sweep};
use protocol::connection::canonical;
use protocol::error::{ConnectError, LinkError};
use protocol::failure::RunFailure;
use protocol::handshake::{PeerInfo, until_servers_listen};
use protocol::link::Link;
use protocol::message::ExaminationMessage;
use protocol::node_report::NodeFacts;
use results::at_once::at_once;
use results::model::SERVER;
use serde_json::Value;
use verbs::{Network, VerbsLibrary};

use super::interface::{Ends, SweepOptions, Target};
use super::ranks::{Missing, Ranks};
use super::session::{Address, LocalServer};

/// A node of a session.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) link: Link,
    pub(crate) peer: PeerInfo,
    /// It speaks for this end of the session: what fails there failed here.
    pub(crate) is_own: bool,
    /// It is in this process.
    pub(crate) is_in_process: bool,
    pub(crate) facts: NodeFacts,
}

impl Node {
    /// What stands before something that is said of it: nothing for this end's own.
    pub(crate) fn whose(&self) -> String {
        if self.is_own { String::new() } else { format!("{}: ", place_of(&self.name)) }
    }
}

/// Nodes that are connected to at a time: enough to hide the way to a host, and few threads.
const AT_A_TIME: usize = 32;

/// A node that is connected to.
type Reached = (Link, PeerInfo);

enum Place {
    /// In this process: a number of [`NodePlaces::locals`].
    Local(usize),
    Remote(String, u16),
    /// A process that a launcher has started, which comes here by itself: the next of [`Ranks`].
    Rank,
}

/// Where the nodes of a sweep are, and those in this process, which last as long as the sweep.
pub(crate) struct NodePlaces {
    names: Vec<String>,
    places: Vec<Place>,
    /// The devices that flows ask for at each node.
    devices: Vec<Vec<FlowDevice>>,
    /// The devices over which flows are to go at once at each node, where the list of nodes names them.
    rails: Vec<Option<Devices>>,
    locals: Vec<LocalServer>,
    ranks: Option<Arc<Ranks>>,
    /// Nodes have not been connected to yet.
    is_first: bool,
    /// The network in which the nodes take their ports, once they are connected, if they have one.
    network: Option<Network>,
    /// Where they have none: the RDMA address toward which each takes its port.
    toward: Vec<Option<IpAddr>>,
}

impl NodePlaces {
    /// The places of a sweep's nodes.
    pub(crate) fn new(options: &SweepOptions) -> NodePlaces {
        let places = match (&options.sweep.nodes, &options.ends.target) {
            (Nodes::TwoEnds, Target::Local) => vec![Place::Local(0), Place::Local(1)],
            (Nodes::TwoEnds, Target::Remote(host, port)) => {
                vec![Place::Local(0), Place::Remote(host.clone(), *port)]
            }
            (Nodes::Local(count), _) => (0..*count as usize).map(Place::Local).collect(),
            (Nodes::Hosts(_), _) => options
                .servers
                .iter()
                .map(|(host, port)| Place::Remote(host.clone(), *port))
                .collect(),
            (Nodes::Ranks(names), _) => (0..names.len())
                .map(|rank| match rank {
                    0 => Place::Local(0),
                    _ => Place::Rank,
                })
                .collect(),
        };
        NodePlaces {
            names: options.sweep.nodes.names(),
            places,
            devices: devices(&options.sweep),
            rails: rails(&options.sweep.nodes),
            locals: Vec::new(),
            ranks: options.ranks.clone(),
            is_first: true,
            network: None,
            toward: Vec::new(),
        }
    }

    /// Connects to all nodes; those of this process are started the first time.
    ///
    /// # Errors
    /// A node cannot be started or reached, or has no device.
    pub(crate) fn connect(
        &mut self,
        ends: &Ends,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<Vec<Node>, Unconnected> {
        // A server that was there and is gone is not waited for.
        let is_first = std::mem::take(&mut self.is_first);
        let wait = if is_first { ends.approach.wait } else { Duration::ZERO };
        let others = self.reach_others(ends, wait, facts, stop)?;
        if self.locals.is_empty() {
            self.start_locals(ends, facts, route_to(&others)?)?;
        }
        // Those of this process one after the other: each opens its device before the next, so that on the embedded one their
        // addresses are in their order.
        let reached: Result<Vec<Option<Node>>, Unconnected> = self
            .places
            .iter()
            .enumerate()
            .map(|(number, place)| match place {
                Place::Local(_) => self.reach_local(number, facts, stop).map(Some),
                Place::Remote(..) | Place::Rank => Ok(None),
            })
            .collect();
        let connected = reached.and_then(|here| Ok((here, self.ask(&others, stop)?)));
        let (here, facts_there) = connected.inspect_err(|error| {
            // They are told why, and do not find out by the end of their links.
            let failure = RunFailure::from(error.clone());
            others.iter().flatten().for_each(|(link, _)| failure.tell(link));
        })?;
        let there =
            others.into_iter().zip(facts_there).enumerate().map(|(number, (other, of_node))| {
                let ((link, peer), node_facts) = other.zip(of_node)?;
                Some(self.node(number, link, peer, node_facts))
            });
        let mut nodes: Vec<Node> =
            here.into_iter().zip(there).filter_map(|(here, there)| here.or(there)).collect();
        if self.network.is_none() && self.toward.is_empty() {
            self.network = common(nodes.iter().map(|node| &node.facts.networks[..]));
            if let Err(failure) = self.move_nodes(&mut nodes, stop) {
                nodes.iter().for_each(|node| failure.tell(&node.link));
                return Err(failure.into());
            }
        }
        Ok(nodes)
    }

    /// Has the nodes whose ports are elsewhere take one in the common network; or else the others that from which packets to the
    /// first node's port leave, and then the first one that from which packets to the second's do.
    fn move_nodes(&mut self, nodes: &mut [Node], stop: &AtomicBool) -> Result<(), RunFailure> {
        self.toward = vec![None; nodes.len()];
        if let Some(network) = self.network {
            let moving: Vec<usize> = (0..)
                .zip(&*nodes)
                .filter(|(_, node)| {
                    let networks = &node.facts.networks;
                    networks.contains(&network) && networks.first() != Some(&network)
                })
                .map(|(number, _)| number)
                .collect();
            return self.ask_again(nodes, &moving, stop);
        }
        for (numbers, other) in [(1..nodes.len(), 0), (0..nodes.len().min(1), 1)] {
            let toward = nodes.get(other).and_then(|it| rdma_address(&it.facts));
            let moving: Vec<usize> = numbers
                .filter(|number| !nodes[*number].facts.networks.is_empty())
                .filter(|_| toward.is_some())
                .collect();
            for number in &moving {
                self.toward[*number] = toward;
            }
            self.ask_again(nodes, &moving, stop)?;
        }
        Ok(())
    }

    /// Asks these nodes again what they have, all of them at once.
    fn ask_again(
        &self,
        nodes: &mut [Node],
        numbers: &[usize],
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        for &number in numbers {
            self.ask_facts(number, &nodes[number].link)
                .map_err(|error| self.failure(number, error))?;
        }
        for &number in numbers {
            nodes[number].facts = take_facts(&nodes[number].link, stop)
                .map_err(|error| self.failure(number, error))?;
        }
        Ok(())
    }

    /// The network in which the first node takes its port, on a machine with this library.
    pub(crate) fn network_of_first(&self, library: &VerbsLibrary) -> Option<Network> {
        self.network.or_else(|| {
            (library.source)(self.toward.first().copied().flatten()?).map(Network::alone)
        })
    }

    /// Connects to the nodes of other processes, to many at a time, and waits so long for servers; `None` for those of this
    /// process.
    fn reach_others(
        &self,
        ends: &Ends,
        wait: Duration,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<Vec<Option<Reached>>, Unconnected> {
        let mut ranks = match &self.ranks {
            Some(ranks) => ranks.take(stop)?,
            None => Vec::new(),
        }
        .into_iter();
        let mut links: Vec<Option<Reached>> = self
            .places
            .iter()
            .map(|place| if matches!(place, Place::Rank) { ranks.next() } else { None })
            .collect();
        let mut errors = Vec::new();
        let connected = until_servers_listen(wait, || {
            let missing: Vec<(usize, Address<'_>)> = (0..)
                .zip(self.places.iter().zip(&links))
                .filter_map(|(number, (place, link))| match (place, link) {
                    (Place::Remote(host, port), None) => {
                        Some((number, Address::new(host, *port, ends)))
                    }
                    _ => None,
                })
                .collect();
            let attempts = at_once(AT_A_TIME, &missing, |(_, address)| address.reach(facts, stop));
            errors.clear();
            for ((number, _), attempt) in missing.iter().zip(attempts) {
                match attempt {
                    Ok(reached) => links[*number] = Some(reached),
                    Err(error) => errors.push((*number, error)),
                }
            }
            let reasons = errors.iter().map(|(_, error)| error.clone()).collect();
            ConnectError::of_many(reasons, self.places.len()).map_or(Ok(()), Err)
        });
        if let Some(failure) = same_server(&self.names, &links, &errors) {
            return Err(failure.into());
        }
        connected.map(|()| links).map_err(|error| {
            let nodes = errors.iter().map(|(number, _)| self.names[*number].clone());
            Unconnected::Unreachable(error, nodes.collect())
        })
    }

    /// What each node of another process has, all of them asked at once.
    fn ask(
        &self,
        others: &[Option<Reached>],
        stop: &AtomicBool,
    ) -> Result<Vec<Option<NodeFacts>>, RunFailure> {
        for (number, other) in others.iter().enumerate() {
            if let Some((link, _)) = other {
                self.ask_facts(number, link).map_err(|error| self.failure(number, error))?;
            }
        }
        others
            .iter()
            .enumerate()
            .map(|(number, other)| {
                other
                    .as_ref()
                    .map(|(link, _)| take_facts(link, stop))
                    .transpose()
                    .map_err(|error| self.failure(number, error))
            })
            .collect()
    }

    /// Asks a node what it has.
    fn ask_facts(&self, number: usize, link: &Link) -> Result<(), LinkError> {
        let devices = self.devices.get(number).cloned().unwrap_or_default();
        link.send(ExaminationMessage::AskLimits {
            devices,
            network: self.network,
            toward: self.toward.get(number).copied().flatten(),
            rails: self.rails.get(number).cloned().flatten(),
        })
    }

    /// A failure of a node's link, or beyond it.
    fn failure(&self, number: usize, error: LinkError) -> RunFailure {
        let is_own = matches!(self.places.get(number), Some(Place::Local(0)));
        let name = self.names.get(number).map_or("", String::as_str);
        failure_of(name, is_own, error)
    }

    /// Connects to a node of this process.
    pub(crate) fn reach_local(
        &self,
        number: usize,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<Node, Unconnected> {
        let local = match self.places.get(number) {
            Some(Place::Local(index)) => self.locals.get(*index),
            _ => None,
        };
        let Some(local) = local else {
            let text =
                format!("node {number} is not in this process: this is a fault of rocebench");
            return Err(RunFailure::new(text, None).into());
        };
        let (link, peer) = local.address().reach(facts, stop)?;
        let node_facts = self
            .ask_facts(number, &link)
            .and_then(|()| take_facts(&link, stop))
            .map_err(|error| self.failure(number, error))?;
        Ok(self.node(number, link, peer, node_facts))
    }

    fn node(&self, number: usize, link: Link, peer: PeerInfo, facts: NodeFacts) -> Node {
        let place = self.places.get(number);
        Node {
            is_own: matches!(place, Some(Place::Local(0))),
            is_in_process: matches!(place, Some(Place::Local(_))),
            name: self.names.get(number).cloned().unwrap_or_default(),
            link,
            peer,
            facts,
        }
    }

    fn start_locals(
        &mut self,
        ends: &Ends,
        facts: &Value,
        route: Option<Route>,
    ) -> Result<(), RunFailure> {
        let count = self.places.iter().filter(|place| matches!(place, Place::Local(_))).count();
        for index in 0..count {
            let (resources, whose) = match index {
                0 => (ends.resources.clone(), String::new()),
                _ => (
                    ends.resources.of_further_node(index),
                    format!("{}: ", place_of(&self.names[index])),
                ),
            };
            let local = LocalServer::start(resources, facts, route, whose)?;
            self.locals.push(local);
        }
        Ok(())
    }
}

/// Where a node is, in a sentence.
pub(super) fn place_of(name: &str) -> String {
    match name {
        SERVER => "at the server".to_owned(),
        name => format!("at {name}"),
    }
}

/// A failure of a node's link or beyond it; of this end's own node, what it says itself, and of one of many, with its
/// name.
pub(super) fn failure_of(name: &str, is_own: bool, error: LinkError) -> RunFailure {
    let failure = match error {
        LinkError::Aborted { why, .. } if is_own => why.into(),
        error if is_own || name == SERVER => error.into(),
        error => {
            let place = format!("{}: ", place_of(name));
            let reason = match &error {
                LinkError::Aborted { why, .. } => why.reason.clone(),
                error => error.to_string(),
            };
            RunFailure {
                message: if reason.starts_with(&place) { reason } else { place + &reason },
                ..error.into()
            }
        }
    };
    RunFailure { nodes: vec![name.to_owned()], ..failure }
}

/// Where the traffic of the nodes of this process goes: along a control connection that leaves this machine, if one does.
fn route_to(links: &[Option<Reached>]) -> Result<Option<Route>, RunFailure> {
    let mut reached = links.iter().flatten().map(|(link, _)| link);
    let first = reached.next();
    let leaving = first.into_iter().chain(reached).find(|link| !link.is_within_host());
    Ok(leaving.or(first).map(Link::route).transpose()?)
}

/// A server that is listed twice under different names: it is busy with the client at the near end of another link.
fn same_server(
    names: &[String],
    links: &[Option<Reached>],
    errors: &[(usize, ConnectError)],
) -> Option<RunFailure> {
    errors.iter().find_map(|(number, error)| {
        let ConnectError::Busy { busy, .. } = error else { return None };
        let other = links.iter().position(|link| {
            let local = link.as_ref().and_then(|(link, _)| link.local().ok());
            local.is_some_and(|address| canonical(address).to_string() == busy.client)
        })?;
        let text = format!("{} and {} are the same server", names[other], names[*number]);
        let hint = "name it once: a node needs a server of its own, on another port with `rocebench serve -p`";
        Some(RunFailure { bad_input: true, ..RunFailure::new(text, Some(hint.to_owned())) })
    })
}

/// The devices of each node that is listed with several.
fn rails(nodes: &Nodes) -> Vec<Option<Devices>> {
    (0..nodes.count())
        .map(|number| {
            let devices = nodes.devices(u32::try_from(number).ok()?);
            devices.filter(|it| it.only().is_none()).cloned()
        })
        .collect()
}

/// The devices that the flows of a sweep ask for at each node.
fn devices(sweep: &Sweep) -> Vec<Vec<FlowDevice>> {
    let mut devices = vec![Vec::new(); sweep.nodes.count()];
    for flow in sweep.cases.iter().flat_map(|case| &case.flows) {
        for (node, device) in [(flow.from, &flow.from_device), (flow.to, &flow.to_device)] {
            if let (Some(known), Some(device)) = (devices.get_mut(node as usize), device)
                && !known.contains(device)
            {
                known.push(device.clone());
            }
        }
    }
    devices
}

/// Why the nodes are not connected.
#[derive(Clone)]
pub(crate) enum Unconnected {
    /// With the nodes that are not there, where it is known which.
    Unreachable(ConnectError, Vec<String>),
    Failed(RunFailure),
}

impl From<Missing> for Unconnected {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::Connect(error) => error.into(),
            Missing::Refused(failure) => Unconnected::Failed(failure),
        }
    }
}

impl From<ConnectError> for Unconnected {
    fn from(error: ConnectError) -> Self {
        Unconnected::Unreachable(error, Vec::new())
    }
}

impl From<RunFailure> for Unconnected {
    fn from(failure: RunFailure) -> Self {
        Unconnected::Failed(failure)
    }
}

impl From<Unconnected> for RunFailure {
    fn from(error: Unconnected) -> Self {
        match error {
            Unconnected::Unreachable(error, nodes) => RunFailure { nodes, ..error.into() },
            Unconnected::Failed(failure) => failure,
        }
    }
}
