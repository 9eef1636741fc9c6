//! One session: what a coordinator asks for, one message after the other, until its goodbye.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::lesson::serve_lesson;
use crate::memory_needs::admit;
use crate::perftest_launch::PerftestLaunch;
use crate::resources::{NodeResources, Route};
use crate::run::Run;
use crate::server::events::{ServerEvent, ServerLog};
use crate::server::facts::facts;
use crate::server::options::ServerOptions;
use crate::server::perftest::{permit, serve_perftest};
use perftest::Job;
use plan::{Case, Devices, Sweep};
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::handshake::Accepted;
use protocol::link::Link;
use protocol::message::{
    ExaminationMessage, FileMessage, LessonMessage, Message, PerftestMessage, RunMessage,
    SessionMessage,
};
use verbs::Network;

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
            Message::Examination(ExaminationMessage::AskLimits {
                devices,
                network,
                toward,
                rails,
            }) => {
                let port = resources.port();
                let network = network.or_else(|| port.toward(toward?));
                resources = suited(resources, link, options, log, (network, rails))?;
                let facts = facts(&resources, &devices)?;
                link.send(ExaminationMessage::Limits(Box::new(facts)))?;
            }
            Message::Perftest(PerftestMessage::Check { programs }) => {
                let version = permit(options.allow_perftest, &resources, &programs)?;
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
            first @ (Message::File(FileMessage::Hello(_))
            | Message::File(FileMessage::TcpHello(_))) => {
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
    (network, rails): (Option<Network>, Option<Devices>),
) -> Result<NodeResources, RunFailure> {
    let network = network.filter(|network| resources.port().may_move_to(*network));
    let others = rails.filter(|rails| resources.requested_rails() != Some(rails));
    if network.is_none() && others.is_none() {
        return Ok(resources);
    }
    let rails = others.or_else(|| resources.requested_rails().cloned());
    let network = network.or_else(|| resources.network());
    drop(resources);
    let resources = open_resources(link, options, network, rails)?;
    if let Some(text) = resources.remark() {
        log(ServerEvent::Note { text: &text });
    }
    Ok(resources)
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
