//! One session: what a coordinator asks for, one message after the other, until its goodbye. Its client is the coordinator
//! that connected to the server, or rank 0 of a launcher's job, to which the other ranks connect.

use std::{
    io, slice,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use machine::surroundings::Surroundings;
use perftest::Job;
use plan::{Case, Devices, FlowDevice, Sweep};
use protocol::{
    error::{AcceptError, ConnectError, LinkError},
    failure::RunFailure,
    handshake::{Accepted, ServerTerms},
    join::{Join, JoinError, join},
    link::Link,
    message::{
        ExaminationMessage, FileMessage, LessonMessage, Message, PerftestMessage, RunMessage,
        SessionMessage,
    },
    node_report::NodeFacts,
};
use verbs::{Network, Port, PortLimits};

use crate::{
    lesson::serve_lesson,
    memory_needs::admit,
    outcome,
    perftest::{PerftestLaunch, permit, serve_perftest},
    resources::{NodeResources, Route},
    run::Run,
    server::{ServerEvent, ServerLog, ServerOptions},
};

/// Longest pause of a coordinator between two runs of this node, which may have no part in others. That the coordinator
/// lives is known from its heart-beats.
const BETWEEN_RUNS: Duration = Duration::from_secs(7 * 24 * 3600);

/// Serves a session that was accepted, until the coordinator's goodbye.
///
/// # Errors
/// Why it ended early; the coordinator has been told.
pub(super) fn session<G>(
    accepted: Accepted<G>,
    options: &ServerOptions,
    log: &ServerLog,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let Accepted { link, peer, slot } = accepted;
    let client = peer.address;
    log(ServerEvent::Accepted { client });
    let mut runs = 0;
    let ended = serve_session(&link, options, log, stop, &mut runs);
    match &ended {
        Ok(()) => log(ServerEvent::Finished { client, runs }),
        Err(failure) => log(ServerEvent::Broken { client, failure }),
    }
    // The slot is free before the coordinator hears of the failure or sees the connection end, so that it can come again at
    // once.
    drop(slot);
    if let Err(failure) = &ended {
        failure.tell(&link);
    }
    drop(link);
    ended
}

fn serve_session(
    link: &Link,
    options: &ServerOptions,
    log: &ServerLog,
    stop: &AtomicBool,
    runs: &mut u32,
) -> Result<(), RunFailure> {
    let Some((mut resources, mut message)) = first_message(link, options, stop)? else {
        return Ok(());
    };
    loop {
        match message {
            Message::Run(RunMessage::Prepare { case, flows, run, node }) => {
                log(ServerEvent::Run { case: &case.id, run });
                may_run(&case, &flows, node)?;
                admit(&case, node, &resources)?;
                Run::prepare(link, stop, &resources, log, (&case, &flows), (run, node))?.serve()?;
                *runs += 1;
            }
            Message::Run(RunMessage::Admit { case, node }) => {
                admit(&case, node, &resources)?;
                link.send(RunMessage::Admitted)?;
            }
            Message::Run(RunMessage::Show(result)) => {
                log(ServerEvent::Result { result: &result });
            }
            Message::Examination(ExaminationMessage::AskLimits {
                devices,
                network,
                toward,
                rails,
            }) => {
                let port = resources.port();
                let wanted = network.or_else(|| port.toward(toward?));
                resources = suited(resources, link, options, log, (wanted, rails))?;
                let facts = NodeFacts {
                    shows_results: options.shows_results,
                    ..facts(&resources, &devices)?
                };
                link.send(ExaminationMessage::Limits(Box::new(facts)))?;
            }
            Message::Perftest(PerftestMessage::Check { needed }) => {
                let version = permit(options.allow_perftest, &resources, &needed)?;
                link.send(PerftestMessage::Checked { version })?;
            }
            Message::Perftest(PerftestMessage::Start(job)) => {
                log(ServerEvent::Perftest { program: job.program, case: &job.case.id });
                resources = perftest(link, options, resources, &job, stop)?;
            }
            Message::Lesson(LessonMessage::Prepare(lesson)) => {
                log(ServerEvent::Lesson { lesson: &lesson });
                serve_lesson(link, &resources, &lesson, stop)?;
                *runs += 1;
            }
            first @ Message::File(FileMessage::Hello(_)) => {
                let files = options.files.as_ref().ok_or_else(no_files)?;
                return files.serve(link, &resources, first, log, stop);
            }
            Message::Session(SessionMessage::Goodbye) => return Ok(()),
            other => return Err(link.unexpected("prepare or goodbye", &other).into()),
        }
        message = link.recv(BETWEEN_RUNS, stop).map_err(ended)?;
    }
}

/// Checks what a coordinator of this version would not ask for.
fn may_run(case: &Case, flows: &[u32], node: u32) -> Result<(), RunFailure> {
    Sweep::check(case).map_err(|error| RunFailure {
        bad_input: true,
        ..RunFailure::new(format!("the server refuses the case: {error}"), None)
    })?;
    let text = if flows.len() != case.flows.len()
        || !case.flows.iter().all(|flow| flow.from == node || flow.to == node)
    {
        "the server refuses the case: a flow without a number or an end here"
    } else if case.has_shares() {
        "the server refuses the case: a share of a load that it does not know"
    } else {
        return Ok(());
    };
    let hint = "install the same version of rocebench at both ends";
    Err(RunFailure::refused(text, hint))
}

/// The resources, opened anew where the port is to be another or there are to be other rails.
fn suited(
    resources: NodeResources,
    link: &Link,
    options: &ServerOptions,
    log: &ServerLog,
    (wanted_network, wanted_rails): (Option<Network>, Option<Devices>),
) -> Result<NodeResources, RunFailure> {
    let other_network = wanted_network.filter(|network| resources.port().may_move_to(*network));
    let other_rails = wanted_rails.filter(|rails| resources.requested_rails() != Some(rails));
    if other_network.is_none() && other_rails.is_none() {
        return Ok(resources);
    }
    let rails = other_rails.or_else(|| resources.requested_rails().cloned());
    let network = other_network.or_else(|| resources.network());
    drop(resources);
    let reopened = open_resources(link, options, network, rails)?;
    if let Some(text) = reopened.remark() {
        log(ServerEvent::Note { text: &text });
    }
    Ok(reopened)
}

fn ended(error: LinkError) -> RunFailure {
    match error {
        LinkError::Interrupted { .. } => RunFailure::server_stopped(),
        error => error.into(),
    }
}

/// Examines this machine as often as the session begins with that, each time with its device closed. Then the first
/// message that is about something else, with the device open; `None` where the session is over.
fn first_message(
    link: &Link,
    options: &ServerOptions,
    stop: &AtomicBool,
) -> Result<Option<(NodeResources, Message)>, RunFailure> {
    loop {
        // Opened before it is asked for, so that many nodes do it at once.
        let opened = open_resources(link, options, None, None);
        match link.recv(BETWEEN_RUNS, stop).map_err(ended)? {
            Message::Examination(ExaminationMessage::Examine { device }) => {
                drop(opened);
                let examiner = options.examiner.as_ref().ok_or_else(no_examination)?;
                let route = options.route.map_or_else(|| link.route(), Ok)?;
                let found = examiner(&options.resources, route, device.as_ref());
                link.send(ExaminationMessage::Examined(Box::new(found)))?;
            }
            Message::Session(SessionMessage::Goodbye) => return Ok(None),
            message => return Ok(Some((opened?, message))),
        }
    }
}

fn no_examination() -> RunFailure {
    RunFailure::refused(
        "this node cannot examine itself",
        "examine a node that runs `rocebench serve`",
    )
}

fn no_files() -> RunFailure {
    RunFailure::refused(
        "the server receives no files",
        "start it with `rocebench serve --receive DIR`",
    )
}

fn open_resources(
    link: &Link,
    options: &ServerOptions,
    network: Option<Network>,
    rails: Option<Devices>,
) -> Result<NodeResources, RunFailure> {
    let route = Route { network, ..options.route.map_or_else(|| link.route(), Ok)? };
    let mut resources = options.resources.clone();
    resources.rails = rails.or(resources.rails);
    NodeResources::open(resources, Some(route))
        .map_err(|error| RunFailure { message: format!("{}{error}", options.whose), ..error })
}

/// Runs perftest's server, meanwhile with the embedded device closed; returns the resources as they were.
fn perftest(
    link: &Link,
    options: &ServerOptions,
    resources: NodeResources,
    job: &Job,
    stop: &AtomicBool,
) -> Result<NodeResources, RunFailure> {
    let refuse = |message: String, hint: Option<String>| RunFailure {
        bad_input: true,
        ..RunFailure::new(format!("at the server: {message}"), hint)
    };
    permit(options.allow_perftest, &resources, &[])?;
    job.check().map_err(|error| refuse(error.to_string(), None))?;
    admit(&job.case, 1, &resources)?;
    let launch = PerftestLaunch::new(&resources, &job.case)
        .map_err(|error| refuse(error.to_string(), Some(error.hint())))?;
    let network = resources.network();
    let resources = Some(resources).filter(|_| !launch.embedded);
    serve_perftest(link, &launch, job, stop)?;
    resources.map_or_else(|| open_resources(link, options, network, None), Ok)
}

/// The facts of a node at which flows ask for these devices besides.
///
/// # Errors
/// There is none of such a name.
pub(super) fn facts(
    resources: &NodeResources,
    devices: &[FlowDevice],
) -> Result<NodeFacts, RunFailure> {
    let named: Vec<Port> =
        devices.iter().map(|device| resources.port_of(Some(device))).collect::<Result<_, _>>()?;
    let port = resources.port();
    let used = if named.is_empty() { slice::from_ref(port) } else { &named };
    let networks = used.iter().flat_map(|used_port| &used_port.choice.networks);
    let device = outcome::device(port);
    Ok(NodeFacts {
        lossless: outcome::lossless(port, &device),
        surroundings: Surroundings::read(
            port.context.root(),
            &device.name,
            device.port,
            device.numa_node,
        ),
        device,
        limits: PortLimits::new(&port.adapter, &port.info),
        memory: resources.memory_offer(),
        networks: networks.copied().collect(),
        rails: resources.rails(),
        left_out: resources.left_out().to_vec(),
        remark: resources.remark(),
        shows_results: false,
    })
}

/// How long rank 0 may take to listen. A launcher may load the program at each node first.
const FIRST_LIMIT: Duration = Duration::from_secs(60);

/// How long rank 0, which was there, may take to answer again.
const AGAIN_LIMIT: Duration = Duration::from_secs(2);

/// Time between two tries to reach rank 0.
const PAUSE: Duration = Duration::from_millis(50);

/// Where rank 0 of a launcher's job listens.
#[derive(Clone, Debug)]
pub struct Place {
    /// Names or addresses of its host.
    pub hosts: Vec<String>,
    pub port: u16,
}

/// Connects a rank of a launcher's job to rank 0, joins it, and serves the session that rank 0 leads on that connection,
/// until its goodbye. When a session ends early the rank joins again, since rank 0 may go on. `own` is what this rank tells
/// of itself.
///
/// # Errors
/// Rank 0 is not there, refuses, has failed, or has ended before its goodbye; or `stop` is set.
pub fn serve_rank_0(
    place: &Place,
    own: &Join,
    options: &ServerOptions,
    log: &ServerLog,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let terms = ServerTerms::new(options.token.clone(), options.host.clone());
    let mut hosts = place.hosts.clone();
    let mut since = Instant::now();
    // How the last session ended.
    let mut last: Option<RunFailure> = None;
    loop {
        let error = match join(&hosts, place.port, own, &terms, stop) {
            Ok(accepted) => {
                let rank_0 = accepted.peer.address;
                let prefix = format!("{rank_0} gave up: ");
                if hosts.len() > 1 {
                    // The one that answers: its silence tells that rank 0 has ended.
                    hosts = vec![rank_0.ip().to_string()];
                }
                let Err(mut failure) = session(accepted, options, log, stop) else {
                    return Ok(());
                };
                if let Some(reason) = failure.message.strip_prefix(&prefix) {
                    failure.message = reason.to_owned();
                }
                since = Instant::now();
                last = Some(failure);
                thread::sleep(PAUSE);
                continue;
            }
            Err(error) => error,
        };
        let limit = match last {
            Some(_) => AGAIN_LIMIT,
            None => FIRST_LIMIT,
        };
        let may_try_again = !is_final(&error, last.is_some()) && since.elapsed() < limit;
        if !may_try_again || stop.load(Ordering::Relaxed) {
            return Err(why_it_ends(error, last));
        }
        thread::sleep(PAUSE);
    }
}

/// Whether trying again is of no use.
fn is_final(error: &JoinError, was_there: bool) -> bool {
    match error {
        JoinError::Connect(ConnectError::Unreachable { source, .. }) => {
            // Rank 0 listens as long as it lives.
            was_there && source.kind() == io::ErrorKind::ConnectionRefused
        }
        JoinError::Connect(error) => error.is_interrupt(),
        JoinError::Accept(error) => {
            matches!(error, AcceptError::Refused { .. } | AcceptError::Unproven { .. })
        }
    }
}

/// Why this rank ends: what rank 0 said, or else how the last session ended, or that rank 0 is not there.
fn why_it_ends(error: JoinError, last: Option<RunFailure>) -> RunFailure {
    match (error, last) {
        (JoinError::Accept(AcceptError::Refused { why, .. }), _) => why.into(),
        (_, Some(failure)) => failure,
        (JoinError::Connect(error), None) => {
            let hint = match &error {
                ConnectError::Resolve { .. }
                | ConnectError::Unreachable { .. }
                | ConnectError::NoAnswer { .. } => Some(
                    "read rank 0's output; if it runs on another host, give --rank-0 HOST:PORT at all ranks"
                        .to_owned(),
                ),
                error => error.hint(),
            };
            RunFailure { bad_input: false, hint, ..RunFailure::from(error) }
        }
        (JoinError::Accept(error), None) => {
            let hint = match &error {
                AcceptError::Unproven { .. } => Some("give all ranks the same --token".to_owned()),
                error => error.hint(),
            };
            RunFailure::new(format!("joining rank 0: {error}"), hint)
        }
    }
}
