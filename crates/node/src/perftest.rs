//! A node's end of a run of perftest: with the device, cores and library of the node's own resources, so that both programs
//! use the same; and perftest's server, which is started when the coordinator says so, watched, and ended with perftest's
//! client or with the session.

use std::{
    ffi::OsString,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use machine::threads::HeldCore;
use perftest::{
    Child, Job, Launch, LibraryError, MissingProgram, Needed, Place, Program, arguments,
    find_library, free_port, listens, measuring,
};
use plan::Case;
use protocol::{
    error::LinkError,
    failure::RunFailure,
    link::Link,
    message::{Message, PerftestEnd, PerftestMessage},
};
use results::text::seconds_text;

use crate::{needs::effective_workers, resources::NodeResources};

/// The variable that tells programs on the embedded device which faults to make.
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// The variable that names a file for a capture to them.
const CAPTURE_VARIABLE: &str = "SOFTROCE_PCAP";

/// One end's contribution to each command line and environment of perftest.
#[derive(Clone, Debug)]
pub struct PerftestLaunch {
    device: String,
    ib_port: u8,
    gid_index: Option<u8>,
    pkey_index: u16,
    environment: Vec<(&'static str, Option<OsString>)>,
    cores: Vec<Arc<HeldCore>>,
    /// Whether the device is the embedded one. `soft0` has its address alone, so it must be closed while perftest runs;
    /// its threads then also leave perftest's cores alone.
    pub(crate) embedded: bool,
}

impl PerftestLaunch {
    /// The launch of an end for a case.
    ///
    /// # Errors
    /// No library for perftest on the embedded device.
    pub fn new(resources: &NodeResources, case: &Case) -> Result<PerftestLaunch, LibraryError> {
        let port = resources.port();
        let embedded = port.embedded.as_ref();
        let environment = match embedded {
            Some(embedded) => vec![
                ("LD_PRELOAD", Some(preload()?)),
                (FAULTS_VARIABLE, embedded.faults.map(|faults| faults.to_string().into())),
                (CAPTURE_VARIABLE, embedded.pcap.as_ref().map(|path| path.clone().into())),
            ],
            None => Vec::new(),
        };
        Ok(PerftestLaunch {
            device: port.context.name().to_owned(),
            ib_port: port.info.port,
            gid_index: port.gid.filter(|_| port.has_grh()).map(|entry| entry.index),
            pkey_index: port.pkey_index,
            environment,
            cores: cores(resources, case),
            embedded: embedded.is_some(),
        })
    }

    /// The arguments for a job, without the peer's address.
    pub fn arguments(&self, job: &Job) -> Vec<String> {
        let place = Place {
            device: self.device.clone(),
            ib_port: self.ib_port,
            gid_index: self.gid_index,
            pkey_index: self.pkey_index,
        };
        arguments(job, &place)
    }

    /// The process to start for a job; perftest's client is given the address of its server.
    ///
    /// # Errors
    /// The program is not installed.
    pub fn launch(
        &self,
        job: &Job,
        tcp_port: u16,
        server: Option<&str>,
    ) -> Result<Launch, MissingProgram> {
        let port = ["-p".to_owned(), tcp_port.to_string()];
        let arguments =
            port.into_iter().chain(self.arguments(job)).chain(server.map(str::to_owned)).collect();
        Ok(Launch {
            path: job.program.find()?,
            arguments,
            environment: (self.environment.iter())
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            cores: self.cores.iter().map(|held| held.core()).collect(),
            input: Vec::new(),
        })
    }
}

/// The cores of rocebench's workers at this node, which no other node of this host uses. The embedded device's engine
/// is a thread of perftest's process and must not share a core with a loop that never yields, so it gets another
/// core.
fn cores(resources: &NodeResources, case: &Case) -> Vec<Arc<HeldCore>> {
    let engines = usize::from(resources.port().embedded.is_some());
    resources.cores().hold(effective_workers(case) + engines)
}

fn preload() -> Result<OsString, LibraryError> {
    let mut value = find_library()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    Ok(value)
}

/// Checks that this end can run these programs; returns the version that the first one reports.
///
/// # Errors
/// The missing program, and the package that has it; or the options that its build lacks.
pub fn equipped(
    resources: &NodeResources,
    needed: &[Needed],
) -> Result<Option<String>, RunFailure> {
    let mut files = Vec::new();
    for of_case in needed {
        let file = (of_case.program.find())
            .map_err(|error| RunFailure::refused(error.to_string(), error.hint()))?;
        let lacking = Program::lacks(&file, *of_case);
        if !lacking.is_empty() {
            return Err(RunFailure::refused(
                format!("{} has no {}", file.display(), lacking.join(" and no ")),
                "build perftest with CUDA (./configure CUDA_H_PATH=.../cuda.h) or ROCm (--enable-rocm)",
            ));
        }
        files.push(file);
    }
    if resources.port().embedded.is_some() {
        find_library().map_err(|error| RunFailure::refused(error.to_string(), error.hint()))?;
    }
    Ok(files.first().and_then(|file| Program::version(file)))
}

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
    needed: &[Needed],
) -> Result<Option<String>, RunFailure> {
    if !allowed {
        return Err(RunFailure::refused(
            "the server was not started to run perftest",
            "start it there with `rocebench serve --allow-perftest`",
        ));
    }
    equipped(resources, needed).map_err(|failure| RunFailure {
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
    let process = launch.launch(job, port, None).map_err(|error| cannot(&error))?;
    let child = Child::start(&process).map_err(|error| cannot(&error))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::NodeOptions;
    use machine::threads::CoreLocks;
    use plan::Sweep;
    use settings::Given;
    use verbs::{PortRequest, VerbsLibrary};

    #[test]
    fn perftest_has_the_cores_of_the_workers_at_its_end_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let resources = || {
            let options = NodeOptions {
                library: VerbsLibrary::system(),
                request: PortRequest { device: Some("soft0".into()), ..PortRequest::default() },
                rails: None,
                number: 0,
                placed_faults: Vec::new(),
                cores: Some(vec![2, 3, 4, 5]),
                core_locks: CoreLocks::within(folder.path().to_owned()),
                memory_limit: None,
            };
            NodeResources::open(options, None).unwrap()
        };
        let case = Sweep::new(&Given::default()).unwrap().cases.remove(0);
        let (client, server) = (resources(), resources());
        let workers = [client.cores_for(1), server.cores_for(1)];
        assert_eq!(workers, [[Some(2)], [Some(3)]]);
        let numbers =
            |held: &[Arc<HeldCore>]| -> Vec<_> { held.iter().map(|held| held.core()).collect() };
        let held = [cores(&client, &case), cores(&server, &case)];
        assert_eq!([numbers(&held[0]), numbers(&held[1])], [[2, 4], [3, 5]]);
        // While perftest runs, the embedded device is closed but keeps its cores.
        drop((client, server));
        let other = resources().cores_for(1);
        assert_eq!(other, [Some(2)]);
        let mut held = held.iter().flatten();
        assert!(held.all(|held| held.others() == 0), "it left");
    }
}
