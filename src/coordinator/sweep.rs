//! The coordinator: it runs a sweep, case by case and run by run, against a server on another host or in
//! this process, and puts the result together. What fails is recorded, and the sweep goes on where it can.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use crate::machine::host;
use crate::node::outcome;
use crate::node::resources::NodeResources;
use crate::protocol::failure::RunFailure;
use crate::protocol::handshake::PeerInfo;
use crate::protocol::message::Message;
use report::results::model::{Host, ResultFile, SCHEMA_VERSION};
use report::results::utc_now;

use super::admission;
use super::against::pairs;
use super::observer::Observer;
use super::options::SweepOptions;
use super::session::Session;
use super::sweeper::{Halt, SweepOutcome, Sweeper};

/// Runs a sweep.
///
/// # Errors
/// Why it could not begin. What fails later is in the outcome.
pub fn run_sweep(
    options: &SweepOptions,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<SweepOutcome, RunFailure> {
    let mut own_host = host::read();
    let facts = serde_json::to_value(&own_host).unwrap_or_default();
    // Without a device, or without what is compared with, there is no need to bother the peer.
    admission::check_faults(options)?;
    let resources = NodeResources::open(options.ends.resources.clone(), None)?;
    admission::check_cm(options, &resources)?;
    let version = pairs::prepare(options, &resources)?;
    drop(resources);
    let (local, first) = Session::begin(&options.ends, &facts, stop)?;
    pairs::ask_server(options, &first, stop)?;
    admission::check_sweep(&options.sweep, &first, stop)?;
    own_host.device = Some(outcome::device(first.resources.port()));
    let outcome = SweepOutcome {
        result: ResultFile {
            schema_version: SCHEMA_VERSION,
            tool: host::tool(),
            started_at: utc_now(),
            command_line: options.command_line.clone(),
            host: own_host,
            peer: local.is_none().then(|| peer_host(&first.peer)),
            cases: Vec::new(),
        },
        failed_runs: 0,
        only_bad_input: true,
        interrupted: false,
        lost: None,
    };
    if let Some(text) = first.resources.remark() {
        observer.note(&text);
    }
    let mut sweeper = Sweeper {
        options,
        local,
        facts,
        stop,
        observer,
        outcome,
        session: Some(first),
        said_of_peer: BTreeSet::new(),
    };
    match all_cases(&mut sweeper, version.as_deref()) {
        Ok(()) => {}
        Err(Halt::Interrupted) => sweeper.outcome.interrupted = true,
        Err(Halt::Lost(error)) => sweeper.outcome.lost = Some(error),
        Err(Halt::Broken(error)) => return Err(error),
    }
    if let Some(session) = sweeper.session {
        // The server ends the session by itself if this does not arrive.
        let _ = session.link.send(&Message::Goodbye);
    }
    Ok(sweeper.outcome)
}

fn peer_host(peer: &PeerInfo) -> Host {
    // A server that says something else about itself still runs cases.
    serde_json::from_value(peer.host.clone()).unwrap_or_else(|_| Host {
        hostname: peer.address.ip().to_string(),
        ..Host::default()
    })
}

/// All cases, in their order.
fn all_cases(sweeper: &mut Sweeper<'_>, perftest_version: Option<&str>) -> Result<(), Halt> {
    let sweep = &sweeper.options.sweep;
    for (index, case) in sweep.cases.iter().enumerate() {
        if let Some(against) = &sweeper.options.against {
            pairs::run_case(sweeper, index, case, against, perftest_version)?;
            continue;
        }
        for number in 1..=sweep.runs() {
            sweeper.run(index, case, number, sweep.runs())?;
        }
    }
    Ok(())
}
