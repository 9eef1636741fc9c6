//! The server's half of a run that measures set-up: it sets QPs up as the coordinator's rounds ask, beside traffic
//! that it only offers memory for.

use std::sync::atomic::AtomicBool;

use crate::plan::Case;

use crate::node::needs::Side;
use crate::node::rig::{Broken, Rig};
use crate::node::setup::bench::Bench;
use crate::node::setup::steps::StepTimes;
use crate::node::setup::watch::Watch;
use crate::node::setup::way::Way;
use crate::node::station::Station;
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
    station: &Station,
    case: &Case,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let traffic = case.moving();
    let rig = traffic
        .as_ref()
        .map(|traffic| run::set_up(link, station, traffic, stop))
        .transpose()
        .map_err(explain)?;
    let mut times = StepTimes::new(station.clock());
    let driven = drive(link, station, case, stop, rig.as_ref(), &mut times);
    if let Some(rig) = rig {
        rig.finish(driven.is_err())?;
    }
    driven.map_err(explain)?;
    let report = EndReport::of_setup(station.port(), times.told());
    report_to_client(link, stop, report)
}

fn drive(
    link: &Link,
    station: &Station,
    case: &Case,
    stop: &AtomicBool,
    rig: Option<&Rig>,
    times: &mut StepTimes,
) -> Result<(), Broken> {
    let bench = Bench::new(station.port(), case, Side::Server)?;
    let mut watch = Watch::new(link, stop, rig, || ());
    let way = Way::prepare(&bench, Side::Server, &mut watch)?;
    loop {
        match watch.recv(COMMAND_LIMIT)?.0 {
            // The traffic is the client's.
            Message::Start => {}
            Message::SetupRound => {
                let connected = way.connect(&bench, Side::Server, &mut watch, times)?;
                link.send(&Message::Ready)?;
                watch.ready()?;
                bench.destroy(connected, &mut watch, times)?;
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
    let Some(rig) = rig else { return Ok(()) };
    link.send(&Message::Drained(Box::new(rig.drained())))?;
    let peer = rig.await_drained(link, stop)?;
    run::settle(link, rig, stop, &peer)
}
