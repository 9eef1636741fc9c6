//! The nodes of a session: servers on other hosts, and nodes in this process. It must not know what they are for.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::coordinator::options::{Ends, SweepOptions, Target};
use crate::coordinator::session::{Address, LocalServer, reach};
use crate::node::resources::Route;
use crate::plan::Nodes;
use crate::protocol::error::{ConnectError, LinkError};
use crate::protocol::failure::RunFailure;
use crate::protocol::handshake::PeerInfo;
use crate::protocol::link::Link;
use crate::protocol::message::Message;
use crate::protocol::node_report::NodeFacts;
use crate::protocol::time_limits::ANSWER_LIMIT;
use report::results::model::SERVER;

/// A node of a session.
pub(crate) struct Node {
    /// Its name in results.
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
        match self.is_own {
            true => String::new(),
            false => place_of(&self.name),
        }
    }
}

/// Where a node is.
enum Place {
    /// In this process: a number of [`NodePlaces::locals`].
    Local(usize),
    Remote(String, u16),
}

/// Where the nodes of a sweep are, and those in this process, which last as long as the sweep.
pub(crate) struct NodePlaces {
    names: Vec<String>,
    places: Vec<Place>,
    locals: Vec<LocalServer>,
}

impl NodePlaces {
    /// The places of a sweep's nodes.
    pub(crate) fn of(options: &SweepOptions) -> NodePlaces {
        let remote = |(host, port): &(String, u16)| Place::Remote(host.clone(), *port);
        let places = match (&options.sweep.nodes, &options.ends.target) {
            (Nodes::TwoEnds, Target::Local) => vec![Place::Local(0), Place::Local(1)],
            (Nodes::TwoEnds, Target::Remote(host, port)) => {
                vec![Place::Local(0), Place::Remote(host.clone(), *port)]
            }
            (Nodes::Local(count), _) => (0..*count as usize).map(Place::Local).collect(),
            (Nodes::Hosts(_), _) => options.servers.iter().map(remote).collect(),
        };
        NodePlaces {
            names: options.sweep.nodes.names(),
            places,
            locals: Vec::new(),
        }
    }

    /// Connects to all nodes; those of this process are started the first time. Asks again for so long where a server
    /// says that it is busy.
    ///
    /// # Errors
    /// A node cannot be started or reached, or has no device.
    pub(crate) fn connect(
        &mut self,
        ends: &Ends,
        facts: &Value,
        stop: &AtomicBool,
        busy_limit: Duration,
    ) -> Result<Vec<Node>, Unconnected> {
        let mut links: Vec<Option<(Link, PeerInfo)>> = self.places.iter().map(|_| None).collect();
        for (place, link) in self.places.iter().zip(&mut links) {
            if let Place::Remote(host, port) = place {
                let address = Address {
                    host,
                    port: *port,
                    token: ends.token.as_ref(),
                };
                *link = Some(reach(&address, facts, stop, busy_limit)?);
            }
        }
        if self.locals.is_empty() {
            // The traffic of the nodes here goes where the first of the others is.
            let first = links.iter().flatten().next();
            let route = first.map(|(link, _)| link.route()).transpose();
            let route = route.map_err(RunFailure::from)?;
            self.start_locals(ends, facts, route)?;
        }
        let mut nodes = Vec::with_capacity(links.len());
        for (number, link) in links.into_iter().enumerate() {
            nodes.push(match link {
                Some((link, peer)) => self.node(number, link, peer, stop)?,
                None => self.reach_local(number, facts, stop, busy_limit)?,
            });
        }
        Ok(nodes)
    }

    /// Connects to a node of this process.
    ///
    /// # Errors
    /// It has no device.
    pub(crate) fn reach_local(
        &self,
        number: usize,
        facts: &Value,
        stop: &AtomicBool,
        busy_limit: Duration,
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
        let (link, peer) = reach(&local.address(), facts, stop, busy_limit)?;
        Ok(self.node(number, link, peer, stop)?)
    }

    fn node(
        &self,
        number: usize,
        link: Link,
        peer: PeerInfo,
        stop: &AtomicBool,
    ) -> Result<Node, RunFailure> {
        let place = self.places.get(number);
        let is_own = matches!(place, Some(Place::Local(0)));
        let facts = ask_facts(&link, stop).map_err(|error| failure_of(is_own, error))?;
        Ok(Node {
            is_own,
            is_in_process: matches!(place, Some(Place::Local(_))),
            name: self.names.get(number).cloned().unwrap_or_default(),
            link,
            peer,
            facts,
        })
    }

    fn start_locals(
        &mut self,
        ends: &Ends,
        facts: &Value,
        route: Option<Route>,
    ) -> Result<(), RunFailure> {
        let count = self
            .places
            .iter()
            .filter(|place| matches!(place, Place::Local(_)))
            .count();
        for index in 0..count {
            let (resources, whose) = match index {
                0 => (ends.resources.clone(), String::new()),
                _ => (
                    ends.resources.of_the_other_end(),
                    place_of(&self.names[index]),
                ),
            };
            let local = LocalServer::start(resources, facts, route, whose)?;
            self.locals.push(local);
        }
        Ok(())
    }
}

/// What stands before something that is said of a node.
fn place_of(name: &str) -> String {
    match name {
        SERVER => "at the server: ".to_owned(),
        name => format!("at {name}: "),
    }
}

/// A failure of a node's link or beyond it; of this end's own node, what it says itself.
pub(super) fn failure_of(is_own: bool, error: LinkError) -> RunFailure {
    match error {
        LinkError::Aborted {
            reason,
            hint,
            bad_input,
            ..
        } if is_own => RunFailure {
            bad_input,
            ..RunFailure::new(reason, hint)
        },
        error => error.into(),
    }
}

/// Why the nodes are not connected.
pub(crate) enum Unconnected {
    /// One cannot be reached.
    Unreachable(ConnectError),
    /// One cannot serve.
    Failed(RunFailure),
}

impl From<ConnectError> for Unconnected {
    fn from(error: ConnectError) -> Self {
        Unconnected::Unreachable(error)
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
            Unconnected::Unreachable(error) => error.into(),
            Unconnected::Failed(failure) => failure,
        }
    }
}

fn ask_facts(link: &Link, stop: &AtomicBool) -> Result<NodeFacts, LinkError> {
    link.send(&Message::AskLimits)?;
    match link.recv(ANSWER_LIMIT, stop)? {
        Message::Limits(facts) => Ok(*facts),
        other => Err(link.unexpected("limits", &other)),
    }
}
