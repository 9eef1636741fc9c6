//! Asks servers for their examinations, many at a time.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;

use crate::coordinator::session::at_once;
use crate::doctor::peer::not_reached;
use plan::flow::FlowDevice;
use protocol::clock_offset::ClockOffset;
use protocol::examination::NodeExamination;
use protocol::finding::{Finding, State};
use protocol::handshake::connect;
use protocol::link::Link;
use protocol::message::{ExaminationMessage, Message, SessionMessage};
use protocol::token::Token;
use results::model::Host;

/// Nodes that are asked at once.
const AT_ONCE: usize = 64;

/// How long a node may examine itself: programs such as `nft` and `ethtool` run there.
const PATIENCE: Duration = Duration::from_secs(60);

/// Findings of one node that are kept.
const MOST_FINDINGS: usize = 100;
/// Priorities of Ethernet.
const PRIORITIES: usize = 8;
/// Values of a DSCP.
const DSCPS: usize = 64;

const WHY_ASKED: &str = "a node that is not examined may be the one that differs";

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
pub(super) struct Answer {
    pub(super) address: SocketAddr,
    pub(super) version: String,
    pub(super) host: Host,
    pub(super) clock: Option<ClockOffset>,
    pub(super) examination: NodeExamination,
}

/// An answer, or why there is none.
pub(super) type Asked = Result<Answer, Box<Finding>>;

/// Asks all, each as [`ask`]; in their order.
pub(super) fn ask_all(
    nodes: &[NodeAddress],
    token: Option<&Token>,
    facts: &Value,
    stop: &AtomicBool,
) -> Vec<Asked> {
    at_once(AT_ONCE, nodes, |node| ask(node, token, facts, stop))
}

/// Asks one; else why there is no answer.
fn ask(node: &NodeAddress, token: Option<&Token>, facts: &Value, stop: &AtomicBool) -> Asked {
    let (link, peer) = connect(&node.host, node.port, token, facts, stop)
        .map_err(|error| Box::new(not_reached(&error, node.port)))?;
    let device = node.device.clone();
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
    Link::part([&link], stop);
    Ok(Answer {
        address: peer.address,
        version: peer.version,
        host: serde_json::from_value(peer.host).unwrap_or_default(),
        clock: peer.clock,
        examination,
    })
}

fn unexamined(found: &str) -> Box<Finding> {
    let finding = Finding::new("reach", State::Broken, found, WHY_ASKED);
    Box::new(finding.remedy("look at the output of `rocebench serve` there, and try again"))
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
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_no_more_than_there_can_be() {
        let mut examination = NodeExamination {
            findings: vec![*unexamined("x"); 1000],
            ..NodeExamination::default()
        };
        examination.lossless.pfc_priorities = Some(vec![3; 1000]);
        examination.lossless.dscp_priorities = Some(vec![(3, 3); 1000]);
        let kept = bounded(examination);
        assert_eq!(kept.findings.len(), MOST_FINDINGS);
        assert_eq!(kept.lossless.pfc_priorities, Some(vec![3; PRIORITIES]));
        assert_eq!(kept.lossless.dscp_priorities.unwrap().len(), DSCPS);
    }

    #[test]
    fn a_node_that_is_not_there_is_told_and_the_others_are_asked() {
        // Nothing listens below 10.
        let nodes: Vec<_> = (1..9)
            .map(|port| NodeAddress {
                name: format!("n{port}"),
                host: "127.0.0.1".into(),
                port,
                device: None,
            })
            .collect();
        let answers = ask_all(&nodes, None, &Value::Null, &AtomicBool::new(false));
        assert_eq!(answers.len(), nodes.len());
        for answer in answers {
            let finding = answer.unwrap_err();
            assert_eq!(finding.check, "reach");
            assert!(finding.remedy.unwrap().contains("rocebench serve"));
        }
    }
}
