//! The server's half of a run that measures set-up: it sets QPs up as the coordinator's rounds ask, beside traffic
//! that it only offers memory for.

use std::sync::atomic::AtomicBool;

use crate::plan::Case;

use super::end_report::EndReport;
use super::failure::RunFailure;
use super::link::Link;
use super::message::Message;
use super::needs::Side;
use super::rig::{Broken, Rig};
use super::serve_run::{self, COMMAND_LIMIT, explain, report_to_client};
use super::setup_bench::Bench;
use super::setup_steps::StepTimes;
use super::setup_watch::Watch;
use super::station::Station;

/// Serves one run.
///
/// # Errors
/// Why it ended early; the coordinator is still to be told, unless the link is lost.
pub(super) fn serve_setup(
    link: &Link,
    station: &Station,
    case: &Case,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let traffic = case.moving();
    let rig = traffic
        .as_ref()
        .map(|traffic| serve_run::set_up(link, station, traffic, stop))
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
    let mut bench = Bench::new(station.port(), case, Side::Server)?;
    let mut watch = Watch::new(link, stop, rig, || ());
    bench.arrange(Side::Server, &mut watch)?;
    loop {
        match watch.recv(COMMAND_LIMIT)?.0 {
            // The traffic is the client's.
            Message::Start => {}
            Message::SetupRound => {
                let connected = bench.connect(Side::Server, &mut watch, times)?;
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
    serve_run::settle(link, rig, stop, &peer)
}
