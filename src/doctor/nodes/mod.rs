//! Many nodes examined together: each tells facts of itself, and what differs between them is found. A difference is
//! told by what most nodes have.

mod differences;
pub mod table;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use differences::{ASPECTS, Spread, clock_findings};
use machine::host;
use node::resources::NodeOptions;
use plan::FlowDevice;
use protocol::{
    PROGRAM_VERSION,
    failure::RunFailure,
    handshake::{Approach, ClockOffset, PeerInfo, connect, until_servers_listen},
    link::Link,
    message::{ExaminationMessage, Message, SessionMessage},
    node_report::{Check, Finding, NodeExamination, State},
    token::Token,
};
use results::{
    at_once::at_once,
    model::{Host, Tool},
};
use serde::Serialize;
use serde_json::Value;

use super::Machine;
use super::examine::examine_node;
use super::inventory::SCHEMA_VERSION;
use super::peer::not_reached;
use crate::coordinator::{interface::tool, ranks::Ranks};

/// What was found at many nodes and between them.
#[derive(Serialize)]
pub struct NodesReport {
    pub schema_version: u32,
    pub tool: Tool,
    /// When, RFC 3339 in UTC.
    pub started_at: String,
    /// The nodes, in the order of the list.
    pub nodes: Vec<NodeEntry>,
    /// What all have that tell it, by the name of the fact.
    pub common: BTreeMap<&'static str, String>,
    /// Facts that no node tells.
    pub unknown: Vec<&'static str>,
    /// What was found: nodes that were not reached, differences, and what the nodes found themselves.
    pub findings: Vec<NodesFinding>,
    /// Whether the user stopped it.
    pub interrupted: bool,
    #[serde(skip)]
    spreads: Vec<Spread>,
}

#[derive(Clone, Debug, Serialize)]
pub struct NodeEntry {
    /// As the list names it.
    pub name: String,
    /// Its address; `null` when it was not reached, as all that follows.
    pub address: Option<SocketAddr>,
    pub version: Option<String>,
    pub host: Option<Host>,
    /// Its clock against this machine's.
    pub clock: Option<Clock>,
    /// What it told of itself, but for its findings.
    pub examination: Option<NodeExamination>,
}

/// A clock against this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// Positive when it is ahead, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset is at most so far from it.
    pub uncertainty_ns: u64,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// A node was not reached or not examined.
    Reach,
    /// Nodes differ; `nodes` are those that differ from most.
    Difference,
    /// Found by each of `nodes` at itself.
    Own,
}

/// A finding, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodesFinding {
    pub scope: Scope,
    pub nodes: Vec<String>,
    #[serde(flatten)]
    pub finding: Finding,
}

/// Asks all nodes and compares them.
pub fn examine_nodes(
    nodes: &[NodeAddress],
    token: Option<&Token>,
    approach: Approach,
    stop: &AtomicBool,
) -> NodesReport {
    let started_at = results::utc_now();
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let answers = ask_all(nodes, token, approach, &facts, stop);
    let names = nodes.iter().map(|node| node.name.clone()).collect();
    NodesReport {
        started_at,
        interrupted: stop.load(Ordering::Relaxed),
        ..NodesReport::new(names, answers)
    }
}

/// Asks all ranks of a launcher's job and compares them; the first, this process, is a node with these options.
///
/// # Errors
/// A rank is gone.
pub fn examine_ranks(
    names: Vec<String>,
    ranks: &Ranks,
    options: &NodeOptions,
    stop: &AtomicBool,
) -> Result<NodesReport, RunFailure> {
    let joined = ranks.take(stop)?;
    let (first, _) = joined.first().ok_or_else(|| RunFailure::new("there is one rank", None))?;
    let own = Answer {
        address: first.local()?,
        version: PROGRAM_VERSION.to_owned(),
        host: host::read(),
        clock: Some(ClockOffset { offset_ns: 0, uncertainty_ns: 0 }),
        examination: examine_node(&Machine::this(), options, first.route()?, None, ranks.port()),
    };
    let others = at_once(AT_ONCE, &joined, |(link, peer)| ask(link, peer.clone(), None, stop));
    ranks.put_back(joined);
    let answers = std::iter::once(Ok(own)).chain(others).collect();
    let interrupted = stop.load(Ordering::Relaxed);
    Ok(NodesReport { interrupted, ..NodesReport::new(names, answers) })
}

impl NodesReport {
    /// Of the answers of these nodes.
    fn new(names: Vec<String>, answers: Vec<NodeAnswer>) -> NodesReport {
        let spreads: Vec<Spread> = ASPECTS
            .iter()
            .map(|aspect| {
                Spread::new(
                    aspect,
                    answers.iter().map(|answer| (aspect.value)(answer.as_ref().ok()?)).collect(),
                )
            })
            .collect();
        let common = spreads.iter().filter_map(|spread| {
            let group = spread.common()?;
            Some((spread.aspect.name, group.value.clone()))
        });
        let unknown = spreads.iter().filter(|spread| spread.groups.is_empty());
        NodesReport {
            schema_version: SCHEMA_VERSION,
            tool: tool(),
            started_at: String::new(),
            common: common.collect(),
            unknown: unknown.map(|spread| spread.aspect.name).collect(),
            findings: findings(&names, &answers, &spreads),
            nodes: names
                .into_iter()
                .zip(answers)
                .map(|(name, answer)| entry(name, answer.ok()))
                .collect(),
            interrupted: false,
            spreads,
        }
    }

    /// How many findings have this state.
    pub fn count(&self, state: State) -> usize {
        self.findings.iter().filter(|it| it.finding.state == state).count()
    }

    /// Nodes that told of themselves.
    fn answered(&self) -> usize {
        self.nodes.iter().filter(|node| node.examination.is_some()).count()
    }
}

fn entry(name: String, answer: Option<Answer>) -> NodeEntry {
    let Some(answer) = answer else {
        return NodeEntry {
            name,
            address: None,
            version: None,
            host: None,
            clock: None,
            examination: None,
        };
    };
    NodeEntry {
        name,
        address: Some(answer.address),
        version: Some(answer.version),
        host: Some(answer.host),
        clock: answer.clock.and_then(clock),
        examination: Some(NodeExamination { findings: Vec::new(), ..answer.examination }),
    }
}

/// `None` for one that is farther off than 292 years.
fn clock(offset: ClockOffset) -> Option<Clock> {
    Some(Clock {
        offset_ns: i64::try_from(offset.offset_ns).ok()?,
        uncertainty_ns: offset.uncertainty_ns,
    })
}

fn findings(names: &[String], answers: &[NodeAnswer], spreads: &[Spread]) -> Vec<NodesFinding> {
    let mut findings = Vec::new();
    for (number, answer) in answers.iter().enumerate() {
        if let Err(finding) = answer {
            findings.push(nodes_finding(names, Scope::Reach, &[number], (**finding).clone()));
        }
    }
    for spread in spreads {
        if let Some(finding) = spread.finding(names) {
            findings.push(nodes_finding(names, Scope::Difference, &spread.odd(), finding));
        }
    }
    let offsets: Vec<_> = answers.iter().map(|answer| answer.as_ref().ok()?.clock).collect();
    for (nodes, finding) in clock_findings(names, &offsets) {
        findings.push(nodes_finding(names, Scope::Difference, &nodes, finding));
    }
    for (finding, nodes) in own_findings(answers) {
        findings.push(nodes_finding(names, Scope::Own, &nodes, finding.clone()));
    }
    findings
}

fn nodes_finding(
    names: &[String],
    scope: Scope,
    nodes: &[usize],
    finding: Finding,
) -> NodesFinding {
    NodesFinding {
        scope,
        nodes: nodes.iter().filter_map(|it| names.get(*it).cloned()).collect(),
        finding,
    }
}

/// What nodes found at themselves, each finding once with the nodes that have it in the same words.
fn own_findings(answers: &[NodeAnswer]) -> Vec<(&Finding, Vec<usize>)> {
    let mut own: Vec<(&Finding, Vec<usize>)> = Vec::new();
    let mut places: HashMap<&Finding, usize> = HashMap::new();
    for (number, answer) in answers.iter().enumerate() {
        for finding in answer.iter().flat_map(|it| &it.examination.findings) {
            let place = *places.entry(finding).or_insert(own.len());
            match own.get_mut(place) {
                Some((_, nodes)) if nodes.last() != Some(&number) => nodes.push(number),
                Some(_) => {}
                None => own.push((finding, vec![number])),
            }
        }
    }
    own
}

/// Nodes that are asked at once.
const AT_ONCE: usize = 64;

/// How long a node may examine itself: programs such as `nft` and `ethtool` run there.
const PATIENCE: Duration = Duration::from_secs(60);

/// Findings of one node that are kept.
const MOST_FINDINGS: usize = 100;
/// Priorities that Ethernet has, 0 to 7.
const PRIORITIES: usize = 8;
/// Values that the six bits of a DSCP have.
const DSCPS: usize = 64;

const REACH: Check = Check::new("reach", "a node that is not examined may be the one that differs");

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    pub name: String,
    pub host: String,
    /// TCP port of the control connection.
    pub port: u16,
    /// The device to examine there; the server's own without.
    pub device: Option<FlowDevice>,
}

#[derive(Clone, Debug)]
struct Answer {
    address: SocketAddr,
    version: String,
    host: Host,
    clock: Option<ClockOffset>,
    examination: NodeExamination,
}

/// An answer, or why there is none.
type NodeAnswer = Result<Answer, Box<Finding>>;

/// Asks all, each as [`ask`]; in their order.
fn ask_all(
    nodes: &[NodeAddress],
    token: Option<&Token>,
    approach: Approach,
    facts: &Value,
    stop: &AtomicBool,
) -> Vec<NodeAnswer> {
    at_once(AT_ONCE, nodes, |node| {
        let reached = until_servers_listen(approach.wait, || {
            connect(&node.host, node.port, approach.from, token, facts, stop)
        });
        let (link, peer) = reached.map_err(|error| Box::new(not_reached(&error, node.port)))?;
        let answer = ask(&link, peer, node.device.clone(), stop)?;
        Link::part([&link], stop);
        Ok(answer)
    })
}

/// Asks one; else why there is no answer.
fn ask(link: &Link, peer: PeerInfo, device: Option<FlowDevice>, stop: &AtomicBool) -> NodeAnswer {
    let answer =
        link.send(ExaminationMessage::Examine { device }).and_then(|()| link.recv(PATIENCE, stop));
    let examination = match answer {
        Ok(Message::Examination(ExaminationMessage::Examined(examination))) => {
            bounded(*examination)
        }
        Ok(Message::Session(SessionMessage::Abort(why))) => {
            let mut finding = unexamined(&why.reason);
            finding.remedy = why.hint.or(finding.remedy);
            return Err(finding);
        }
        Ok(other) => return Err(unexamined(&link.unexpected("examined", &other).to_string())),
        Err(error) => return Err(unexamined(&error.to_string())),
    };
    Ok(Answer {
        address: peer.address,
        version: peer.version,
        host: serde_json::from_value(peer.host).unwrap_or_default(),
        clock: peer.clock,
        examination,
    })
}

fn unexamined(found: &str) -> Box<Finding> {
    let remedy = "look at the output of `rocebench serve` there, and try again";
    Box::new(REACH.broken(found, remedy))
}

/// No more than there can be: strings were made short and printable when the message came.
fn bounded(mut examination: NodeExamination) -> NodeExamination {
    examination.findings.truncate(MOST_FINDINGS);
    let lossless = &mut examination.lossless;
    for priorities in [&mut lossless.pfc_priorities, &mut lossless.ecn_priorities] {
        priorities.iter_mut().for_each(|it| it.truncate(PRIORITIES));
    }
    lossless.dscp_priorities.iter_mut().for_each(|it| it.truncate(DSCPS));
    examination
}

#[cfg(test)]
mod tests;
