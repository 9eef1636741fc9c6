//! The server's half of one run: it does what the coordinator says, step by step, and reports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::datapath::Phase;
use crate::metrics::counters::CounterWatch;
use crate::plan::Case;
use settings::{ConnectMode, Stop};

use crate::node::qp_contexts_by_cm::accept_qps;
use crate::node::resources::NodeResources;
use crate::node::running_node::{self, Broken, Finished, RunningNode};
use crate::node::verbs_objects::{Side, VerbsObjects};
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
    resources: &NodeResources,
    case: &Case,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let node = set_up(link, resources, case, stop).map_err(|broken| explain(broken, None))?;
    let mut counters = None;
    let driven = drive(link, resources, &node, case, stop, &mut counters);
    let finished = node.finish(driven.is_err())?;
    driven.map_err(|broken| explain(broken, Some(&finished)))?;
    let mut report = EndReport {
        counters,
        ..EndReport::of(case, &finished, resources.clock())
    };
    report
        .workers_mut()
        .for_each(|workers| resources.cores().tell_shared(workers));
    report_to_client(link, stop, report)
}

/// The end of a run: what this end measured, and the client's word that it has it.
pub(crate) fn report_to_client(
    link: &Link,
    stop: &AtomicBool,
    report: EndReport,
) -> Result<(), RunFailure> {
    link.send(&Message::Report(Box::new(report)))?;
    match running_node::recv(link, stop, ANSWER_LIMIT, || Ok(()))
        .map_err(|broken| explain(broken, None))?
    {
        Message::RunDone => Ok(()),
        other => Err(link.unexpected("run_done", &other).into()),
    }
}

pub(crate) fn set_up(
    link: &Link,
    resources: &NodeResources,
    case: &Case,
    stop: &AtomicBool,
) -> Result<RunningNode, Broken> {
    let alive = || {
        link.progressed();
        link.check().map_err(RunFailure::from)
    };
    let mut objects = VerbsObjects::create(
        resources.port(),
        case,
        Side::Server,
        resources.numa_node(),
        alive,
    )?;
    let peer = match running_node::recv(link, stop, SETUP_LIMIT, || Ok(()))? {
        Message::Endpoints(peer) => peer,
        other => return Err(link.unexpected("endpoints", &other).into()),
    };
    let qp_contexts = match case.connect {
        ConnectMode::Tcp => objects.connect(&peer, alive)?,
        ConnectMode::Cm => {
            let goes_on = || match stop.load(Ordering::Relaxed) {
                true => Err(RunFailure::server_stopped()),
                false => alive(),
            };
            accept_qps(&mut objects, &peer, link, goes_on)?
        }
    };
    let ours = (case.connect == ConnectMode::Tcp).then(|| objects.endpoints());
    let duties = objects.duties();
    let cores = match duties.sends || duties.receives {
        true => resources.cores_for(case),
        false => Vec::new(),
    };
    let node = RunningNode::start(objects, qp_contexts, case, resources.clock(), &cores)?;
    if let Some(ours) = ours {
        link.send(&Message::Endpoints(Box::new(ours)))?;
    }
    match node.recv(link, stop, SETUP_LIMIT)? {
        Message::Ready => {}
        other => return Err(link.unexpected("ready", &other).into()),
    }
    link.send(&Message::Ready)?;
    Ok(node)
}

fn drive(
    link: &Link,
    resources: &NodeResources,
    node: &RunningNode,
    case: &Case,
    stop: &AtomicBool,
    counters: &mut Option<DeviceCounters>,
) -> Result<(), Broken> {
    let counted = matches!(case.stop(), Stop::MessagesPerQp(_));
    let sends = node.objects().duties().sends;
    let mut started = false;
    let mut measuring = false;
    let mut watch = None;
    loop {
        match node.recv(link, stop, COMMAND_LIMIT)? {
            Message::Start if !started && !measuring => {
                started = true;
                // A receiver's window opens with `measure` alone.
                if sends {
                    node.set_phase(Phase::Warmup);
                }
            }
            Message::Measure if !measuring => {
                measuring = true;
                // A receiver must count from the first message on, and the coordinator sends only after
                // the answer: so no worker may still be about to open its window.
                watch = resources.watch_counters();
                node.start_window(link, stop)?;
                link.send(&Message::Measure)?;
            }
            Message::Stop { now } if started || measuring => {
                if let (true, true, false, Stop::MessagesPerQp(messages)) =
                    (sends, measuring && counted, now, case.stop())
                {
                    let all = messages.saturating_mul(case.qps.into());
                    node.wait(link, stop, |counts| {
                        counts.completed >= all && counts.posted == counts.completed
                    })?;
                }
                let grown = watch.take().and_then(CounterWatch::finish);
                *counters = grown.map(|growth| DeviceCounters::of(&growth, "server"));
                if sends {
                    node.drain(link, stop)?;
                } else if !counted {
                    // Closes the receiver's window; it goes on receiving.
                    node.set_phase(Phase::Drain);
                }
                link.send(&Message::Drained(Box::new(node.drained())))?;
                let peer = node.await_drained(link, stop)?;
                settle(link, node, stop, &peer)?;
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
    node: &RunningNode,
    stop: &AtomicBool,
    peer: &Drained,
) -> Result<(), Broken> {
    node.await_received(link, stop, peer)?;
    node.set_phase(Phase::Drain);
    node.verify(link, peer)
}

pub(crate) fn explain(broken: Broken, finished: Option<&Finished>) -> RunFailure {
    broken.told(finished, RunFailure::server_stopped)
}
