//! The server's half of one run: it does what the coordinator says, step by step, and reports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::datapath::Phase;
use crate::metrics::counters::CounterWatch;
use crate::plan::{Case, ConnectMode, Stop};

use crate::node::fabric::{Fabric, Side};
use crate::node::lanes_by_cm::accept_lanes;
use crate::node::rig::{self, Broken, Rig};
use crate::node::station::Station;
use crate::protocol::end_report::{DeviceCounters, EndReport};
use crate::protocol::failure::RunFailure;
use crate::protocol::link::Link;
use crate::protocol::message::{Drained, Message};
use crate::protocol::time_limits::{ANSWER_LIMIT, SETUP_LIMIT};

/// Longest time between two commands in a run: the longest measurement, and then some.
pub(crate) const COMMAND_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Serves one run.
///
/// # Errors
/// Why it ended early; the coordinator is still to be told, unless the link is lost.
pub(crate) fn serve_run(
    link: &Link,
    station: &Station,
    case: &Case,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let rig = set_up(link, station, case, stop).map_err(explain)?;
    let mut counters = None;
    let driven = drive(link, station, &rig, case, stop, &mut counters);
    let finished = rig.finish(driven.is_err())?;
    match driven {
        Ok(()) => {}
        Err(Broken::Workers) => {
            return Err(
                RunFailure::from_trouble(&finished.troubles()).unwrap_or_else(|| {
                    RunFailure::new(
                        "a worker stopped without a reason: this is a fault of rocebench",
                        None,
                    )
                }),
            );
        }
        Err(broken) => return Err(explain(broken)),
    }
    let mut report = EndReport {
        counters,
        ..EndReport::of(case, &finished, station.clock())
    };
    report
        .workers_mut()
        .for_each(|workers| station.cores().tell_shared(workers));
    report_to_client(link, stop, report)
}

/// The end of a run: what this end measured, and the client's word that it has it.
pub(crate) fn report_to_client(
    link: &Link,
    stop: &AtomicBool,
    report: EndReport,
) -> Result<(), RunFailure> {
    link.send(&Message::Report(Box::new(report)))?;
    match rig::recv(link, stop, ANSWER_LIMIT, || Ok(())).map_err(explain)? {
        Message::RunDone => Ok(()),
        other => Err(link.unexpected("run_done", &other).into()),
    }
}

pub(crate) fn set_up(
    link: &Link,
    station: &Station,
    case: &Case,
    stop: &AtomicBool,
) -> Result<Rig, Broken> {
    let alive = || {
        link.progressed();
        link.check().map_err(RunFailure::from)
    };
    let mut fabric = Fabric::create(
        station.port(),
        case,
        Side::Server,
        station.numa_node(),
        alive,
    )?;
    let peer = match rig::recv(link, stop, SETUP_LIMIT, || Ok(()))? {
        Message::Endpoints(peer) => peer,
        other => return Err(link.unexpected("endpoints", &other).into()),
    };
    let lanes = match case.connect {
        ConnectMode::Tcp => fabric.connect(&peer, alive)?,
        ConnectMode::Cm => {
            let goes_on = || match stop.load(Ordering::Relaxed) {
                true => Err(explain(Broken::Interrupted)),
                false => alive(),
            };
            accept_lanes(&mut fabric, &peer, link, goes_on)?
        }
    };
    let ours = (case.connect == ConnectMode::Tcp).then(|| fabric.endpoints());
    let duties = fabric.duties();
    let cores = match duties.sends || duties.receives {
        true => station.cores_for(case),
        false => Vec::new(),
    };
    let rig = Rig::start(fabric, lanes, case, station.clock(), &cores)?;
    if let Some(ours) = ours {
        link.send(&Message::Endpoints(Box::new(ours)))?;
    }
    match rig.recv(link, stop, SETUP_LIMIT)? {
        Message::Ready => {}
        other => return Err(link.unexpected("ready", &other).into()),
    }
    link.send(&Message::Ready)?;
    Ok(rig)
}

fn drive(
    link: &Link,
    station: &Station,
    rig: &Rig,
    case: &Case,
    stop: &AtomicBool,
    counters: &mut Option<DeviceCounters>,
) -> Result<(), Broken> {
    let counted = matches!(case.stop, Stop::MessagesPerQp(_));
    let sends = rig.fabric().duties().sends;
    let mut started = false;
    let mut measuring = false;
    let mut watch = None;
    loop {
        match rig.recv(link, stop, COMMAND_LIMIT)? {
            Message::Start if !started && !measuring => {
                started = true;
                // A receiver's window opens with `measure` alone.
                if sends {
                    rig.set_phase(Phase::Warmup);
                }
            }
            Message::Measure if !measuring => {
                measuring = true;
                // A receiver must count from the first message on, and the coordinator sends only after
                // the answer: so no worker may still be about to open its window.
                watch = station.watch_counters();
                rig.start_window(link, stop)?;
                link.send(&Message::Measure)?;
            }
            Message::Stop { now } if started || measuring => {
                if let (true, true, false, Stop::MessagesPerQp(messages)) =
                    (sends, measuring && counted, now, case.stop)
                {
                    let all = messages.saturating_mul(case.qps.into());
                    rig.wait(link, stop, |counts| {
                        counts.completed >= all && counts.posted == counts.completed
                    })?;
                }
                let grown = watch.take().and_then(CounterWatch::finish);
                *counters = grown.map(|growth| DeviceCounters::of(&growth, "server"));
                if sends {
                    rig.drain(link, stop)?;
                } else if !counted {
                    // Closes the receiver's window; it goes on receiving.
                    rig.set_phase(Phase::Drain);
                }
                link.send(&Message::Drained(Box::new(rig.drained())))?;
                let peer = rig.await_drained(link, stop)?;
                settle(link, rig, stop, &peer)?;
                if measuring {
                    return Ok(());
                }
                started = false;
            }
            other => return Err(link.unexpected("start, measure or stop", &other).into()),
        }
    }
}

/// Waits for all that was sent to this end, closes its window, and checks what only shows at the end.
pub(crate) fn settle(
    link: &Link,
    rig: &Rig,
    stop: &AtomicBool,
    peer: &Drained,
) -> Result<(), Broken> {
    rig.await_received(link, stop, peer)?;
    rig.set_phase(Phase::Drain);
    rig.verify(link, peer)
}

pub(crate) fn explain(broken: Broken) -> RunFailure {
    match broken {
        Broken::Known(failure) => failure,
        Broken::Interrupted => RunFailure::server_stopped(),
        Broken::Workers => RunFailure::new("a worker stopped without a reason", None),
    }
}
