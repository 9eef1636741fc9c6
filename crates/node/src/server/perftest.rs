//! A node's half of a run of perftest: perftest's server, which is started when the coordinator says so, watched, and
//! ended with perftest's client or with the session.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use results::text::seconds_text;

use perftest::{Child, Job, Program, free_port, listens, measuring};

use crate::perftest_launch::{PerftestLaunch, equipped};
use crate::resources::NodeResources;
use protocol::error::LinkError;
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Message, PerftestEnd, PerftestMessage};

/// How often a waiting end looks around.
const TICK: Duration = Duration::from_millis(10);

/// By how much longer this end waits than the coordinator, which starts perftest's client later, with the same limit,
/// and whose failure says more.
const CLIENT_FIRST: Duration = Duration::from_secs(1);

/// Longest that a coordinator takes to say that a run of perftest is over, which has ended here.
const RUN_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Whether a coordinator may have these programs started here, and their version.
///
/// # Errors
/// It may not, or something is missing; the coordinator is to be told.
pub(crate) fn permit(
    allowed: bool,
    resources: &NodeResources,
    programs: &[Program],
) -> Result<Option<String>, RunFailure> {
    if !allowed {
        return Err(RunFailure::refused(
            "the server was not started to run perftest",
            "start it there with `rocebench serve --allow-perftest`",
        ));
    }
    equipped(resources, programs).map_err(|failure| RunFailure {
        message: format!("at the server: {}", failure.message),
        hint: failure.hint.map(|hint| format!("on the server's machine: {hint}")),
        ..failure
    })
}

/// Runs perftest's server for a job that was checked.
///
/// # Errors
/// Why the session ended; perftest is gone by then.
pub(crate) fn serve_perftest(
    link: &Link,
    launch: &PerftestLaunch,
    job: &Job,
    stop: &AtomicBool,
) -> Result<(), RunFailure> {
    let mut told_to_stop = false;
    let end = match start(launch, job) {
        Ok((child, port)) => watch(link, child, port, job, stop, &mut told_to_stop)?,
        Err(status) => PerftestEnd { status, ..PerftestEnd::default() },
    };
    link.send(PerftestMessage::Ended(Box::new(end)))?;
    if told_to_stop {
        return Ok(());
    }
    match link.recv(RUN_LIMIT, stop) {
        Ok(Message::Perftest(PerftestMessage::Stop { .. })) => Ok(()),
        Ok(other) => Err(link.unexpected("perftest_stop", &other).into()),
        Err(error) => Err(explain(error)),
    }
}

fn start(launch: &PerftestLaunch, job: &Job) -> Result<(Child, u16), String> {
    let cannot = |error: &dyn std::fmt::Display| format!("cannot start {}: {error}", job.program);
    let port = free_port().map_err(|error| cannot(&error))?;
    let launch = launch.launch(job, port, None).map_err(|error| cannot(&error))?;
    let child = Child::start(&launch).map_err(|error| cannot(&error))?;
    Ok((child, port))
}

/// Until it has ended, or must.
fn watch(
    link: &Link,
    mut child: Child,
    port: u16,
    job: &Job,
    stop: &AtomicBool,
    told_to_stop: &mut bool,
) -> Result<PerftestEnd, RunFailure> {
    let mut is_listening = false;
    // Until it listens; then with its measurement; and again once the client's end is over.
    let mut limit = job.limit();
    let mut began = Instant::now();
    let mut what = "did not listen";
    let mut why = None;
    while !child.has_ended() {
        match link.recv(TICK, stop) {
            Ok(Message::Perftest(PerftestMessage::Stop { now })) if !*told_to_stop => {
                *told_to_stop = true;
                if now {
                    break;
                }
                (limit, began, what) =
                    (job.limit(), Instant::now(), "did not end after its client");
                is_listening = true;
            }
            Ok(other) => return Err(link.unexpected("perftest_stop", &other).into()),
            Err(LinkError::Overdue { .. }) => {}
            Err(error) => return Err(explain(error)),
        }
        if !is_listening && listens(child.id(), port) {
            is_listening = true;
            limit = measuring(&job.case).unwrap_or_default() + job.limit() + CLIENT_FIRST;
            (began, what) = (Instant::now(), "did not end");
            link.send(PerftestMessage::Started { port })?;
        }
        if began.elapsed() > limit {
            why = Some(format!("{what} within {}", seconds_text(limit.as_secs_f64())));
            break;
        }
    }
    let ended = child.finish();
    Ok(PerftestEnd {
        success: ended.success,
        output: ended.report("server"),
        status: why.unwrap_or(ended.status),
    })
}

fn explain(error: LinkError) -> RunFailure {
    match error {
        LinkError::Interrupted { .. } => RunFailure::server_stopped(),
        error => error.into(),
    }
}
