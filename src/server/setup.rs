//! The server's half of a run that measures set-up: it sets QPs up as the coordinator's rounds ask, beside traffic
//! that it only offers memory for.

use std::sync::atomic::AtomicBool;

use crate::plan::Case;

use crate::node::needs::Side;
use crate::node::resources::NodeResources;
use crate::node::running_node::{Broken, RunningNode};
use crate::node::setup::connector::Connector;
use crate::node::setup::objects::SetupObjects;
use crate::node::setup::steps::StepTimes;
use crate::node::setup::watch::Watch;
use crate::protocol::end_report::EndReport;
use crate::protocol::failure::RunFailure;
use crate::protocol::link::Link;
use crate::protocol::message::Message;
use crate::server::run::{self, COMMAND_LIMIT, explain, report_to_client};

/// Serves one run.
///
/// # Errors
/// Why it ended early; the coordinator is still to be told, unless the link is lost.
pub(crate) fn serve_setup(
    link: &Link,
    resources: &NodeResources,
    case: &Case,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let traffic = case.moving();
    let node = traffic
        .as_ref()
        .map(|traffic| run::set_up(link, resources, traffic, stop))
        .transpose()
        .map_err(|broken| explain(broken, None))?;
    let mut times = StepTimes::new(resources.clock());
    let driven = drive(link, resources, case, stop, node.as_ref(), &mut times);
    let finished = node.map(|node| node.finish(driven.is_err())).transpose()?;
    driven.map_err(|broken| explain(broken, finished.as_ref()))?;
    let report = EndReport::of_setup(resources.port(), times.told());
    report_to_client(link, stop, report)
}

fn drive(
    link: &Link,
    resources: &NodeResources,
    case: &Case,
    stop: &AtomicBool,
    node: Option<&RunningNode>,
    times: &mut StepTimes,
) -> Result<(), Broken> {
    let objects = SetupObjects::new(resources.port(), case, Side::Server)?;
    let mut watch = Watch::new(link, stop, node, || ());
    let connector = Connector::prepare(&objects, Side::Server, &mut watch)?;
    loop {
        match watch.recv(COMMAND_LIMIT)?.0 {
            // The traffic is the client's.
            Message::Start => {}
            Message::SetupRound => {
                let connected = connector.connect(&objects, Side::Server, &mut watch, times)?;
                link.send(&Message::Ready)?;
                watch.ready()?;
                objects.destroy(connected, &mut watch, times)?;
                link.send(&Message::SetupGone)?;
            }
            Message::Measure => {
                times.clear();
                link.send(&Message::Measure)?;
            }
            Message::Stop { .. } => break,
            other => {
                let expected = "start, setup_round, measure or stop";
                return Err(link.unexpected(expected, &other).into());
            }
        }
    }
    let Some(node) = node else { return Ok(()) };
    link.send(&Message::Drained(Box::new(node.drained())))?;
    let peer = node.await_drained(link, stop)?;
    run::settle(link, node, stop, &peer)
}
