//! Accepts one coordinator after another, for ever. A second one is told that the server is busy; one that fails ends
//! its own session only.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::perftest::{Job, Program};
use crate::plan::Flow;

use crate::lesson::serve_lesson;
use crate::node::memory_needs::admit;
use crate::node::perftest_launch::PerftestLaunch;
use crate::node::resources::{NodeOptions, NodeResources, Route};
use crate::plan::flow::FlowDevice;
use crate::plan::rails::Devices;
use crate::protocol::error::{AcceptError, LinkError};
use crate::protocol::examination::NodeExamination;
use crate::protocol::exchange::tell_last;
use crate::protocol::failure::RunFailure;
use crate::protocol::handshake::{Accepted, ServerTerms, accept};
use crate::protocol::handshakes::{Handshake, Handshakes, Most};
use crate::protocol::lesson_message::Lesson;
use crate::protocol::link::Link;
use crate::protocol::message::{BusyInfo, Message};
use crate::protocol::token::Token;
use crate::server::facts::facts;
use crate::server::node_run::NodeRun;
use crate::server::perftest::{permit, serve_perftest};
use crate::server::run::serve_run;
use machine::threads;
use verbs::Network;

/// How often an idle server looks whether it should stop.
const IDLE_TICK: Duration = Duration::from_millis(20);

/// Longest pause of a coordinator between two runs of this node, which may have no part in others. That the coordinator
/// lives is known from its heart-beats.
const BETWEEN_RUNS: Duration = Duration::from_secs(7 * 24 * 3600);

/// How to serve.
pub struct ServerOptions {
    /// Device, cores and library.
    pub resources: NodeOptions,
    /// The token that coordinators must prove.
    pub token: Option<Token>,
    /// Facts of this host.
    pub host: Value,
    /// Where its traffic goes, which decides the port and the GID; `None` for where the control connection comes from.
    pub route: Option<Route>,
    /// What stands before a failure to open the device: `at the server: `, or nothing for the coordinator's own node.
    pub whose: String,
    /// Return after one session.
    pub once: bool,
    /// Start perftest's programs for coordinators.
    pub allow_perftest: bool,
    /// What receives files, where some may come.
    pub files: Option<Arc<dyn FileService>>,
    /// What examines this machine; `None` at a node that none asks for it.
    pub examiner: Option<Arc<Examiner>>,
}

/// Examines this machine with a node's options, the way of its control connection, and the device that is asked for.
pub type Examiner =
    dyn Fn(&NodeOptions, Route, Option<&FlowDevice>) -> NodeExamination + Send + Sync;

/// What a server does with files that are sent to it.
pub trait FileService: Send + Sync {
    /// Does what `first` and the messages after it ask for, until the sender says goodbye.
    ///
    /// # Errors
    /// Why the session ended early; the sender is still to be told.
    fn serve(
        &self,
        link: &Link,
        resources: &NodeResources,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure>;
}

/// What happens on a server, as it tells a person. Called from several threads.
pub type ServerLog = Arc<dyn Fn(ServerEvent<'_>) + Send + Sync>;

/// An event on a server.
#[derive(Debug)]
#[allow(missing_docs)] // Some fields say what they are.
pub enum ServerEvent<'a> {
    /// A session begins.
    Accepted { client: SocketAddr },
    /// A run begins.
    Run {
        /// Name of the case.
        case: &'a str,
        /// Number of the run, from 1.
        run: u32,
    },
    /// Something that a person should know of the last run.
    Note {
        /// As a sentence.
        text: &'a str,
    },
    /// A lesson begins.
    Lesson {
        /// What is done.
        lesson: &'a Lesson,
    },
    /// perftest's server is started.
    Perftest {
        program: Program,
        /// Name of the case.
        case: &'a str,
    },
    /// A file was received.
    File {
        name: &'a str,
        bytes: u64,
        /// From the first word about it to its place.
        seconds: f64,
        /// QPs that it came over; 0 if it came over TCP, to compare, and was thrown away.
        qps: u32,
    },
    /// A session ended as it should.
    Finished {
        client: SocketAddr,
        /// Runs that were served.
        runs: u32,
    },
    /// A session ended otherwise.
    Broken {
        client: SocketAddr,
        failure: &'a RunFailure,
    },
    /// A connection did not become a session.
    Refused { error: &'a AcceptError },
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    options: Arc<ServerOptions>,
    log: ServerLog,
}

/// Who has the session.
type Slot = Arc<Mutex<Option<(SocketAddr, Instant)>>>;

/// The session, given back when dropped.
struct SlotGuard(Slot);

impl Drop for SlotGuard {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Server {
    /// A server on a listening socket.
    ///
    /// # Errors
    /// The socket cannot be set not to block.
    pub fn new(listener: TcpListener, options: ServerOptions, log: ServerLog) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Server {
            listener,
            options: Arc::new(options),
            log,
        })
    }

    /// Serves until `stop` is set, or one session has ended where that was asked for: then why that one ended early,
    /// if it did.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(&self, stop: &Arc<AtomicBool>) -> io::Result<Option<RunFailure>> {
        let slot = Slot::default();
        let handshakes = Handshakes::new(Most::SERVER);
        // How the first session ended.
        let served: Arc<OnceLock<Option<RunFailure>>> = Arc::default();
        let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
        let ends = || stop.load(Ordering::Relaxed) || self.options.once && served.get().is_some();
        while !ends() {
            threads.retain(|thread| !thread.is_finished());
            if handshakes.is_full() {
                thread::sleep(IDLE_TICK);
                continue;
            }
            let (stream, client) = match self.listener.accept() {
                Ok(connection) => connection,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait_for_connection(&self.listener);
                    continue;
                }
                Err(error) if is_transient(&error) => {
                    thread::sleep(IDLE_TICK);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (slot, served) = (Arc::clone(&slot), Arc::clone(&served));
            let (options, log, stop) = (
                Arc::clone(&self.options),
                Arc::clone(&self.log),
                Arc::clone(stop),
            );
            let same = stream.try_clone();
            // It counts until the closure is dropped, which a thread that cannot be had does at once.
            let thread = handshakes.take(&stream, client).and_then(|handshake| {
                let body = move || match take(stream, &handshake, &options, &slot, &stop) {
                    Ok(accepted) => {
                        drop(handshake);
                        let ended = session(accepted, &options, &log, &stop);
                        let _ = served.set(ended.err());
                    }
                    Err(error) => log(ServerEvent::Refused { error: &error }),
                };
                Ok(threads::spawn("session", body)?)
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let source = Arc::new(error);
                    let error = AcceptError::NoRoom { client, source };
                    if let Ok(same) = same {
                        tell_last(&same, error.to_string(), error.hint());
                    }
                    (self.log)(ServerEvent::Refused { error: &error });
                    thread::sleep(IDLE_TICK);
                }
            }
        }
        for thread in threads {
            let _ = thread.join();
        }
        Ok(served
            .get()
            .filter(|_| self.options.once)
            .cloned()
            .flatten())
    }
}

/// Waits until somebody connects, or it is time to look whether to stop.
fn wait_for_connection(listener: &TcpListener) {
    let mut listening = [PollFd::new(listener, PollFlags::IN)];
    let tick = Timespec::try_from(IDLE_TICK).ok();
    // What was wrong with it, accepting tells.
    if poll(&mut listening, tick.as_ref()).is_err() {
        thread::sleep(IDLE_TICK);
    }
}

/// Errors of one connection, or of a moment, not of the listener.
fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    ) || matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
    )
}

fn take(
    stream: TcpStream,
    handshake: &Handshake,
    options: &ServerOptions,
    slot: &Slot,
    stop: &AtomicBool,
) -> Result<Accepted<SlotGuard>, AcceptError> {
    let mut terms = ServerTerms::new(options.token.clone(), options.host.clone());
    terms.receives_files = options.files.is_some();
    let acquire = |client| {
        let mut taken = slot.lock().unwrap_or_else(PoisonError::into_inner);
        match *taken {
            None => {
                *taken = Some((client, Instant::now()));
                Ok(SlotGuard(Arc::clone(slot)))
            }
            Some((other, since)) => Err(BusyInfo {
                client: other.to_string(),
                since_seconds: since.elapsed().as_secs(),
            }),
        }
    };
    accept(stream, &terms, stop, acquire).map_err(|error| match error {
        AcceptError::Handshake { client, .. } if handshake.is_ended() => {
            AcceptError::Crowded { client }
        }
        error => error,
    })
}

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
    let Some((mut resources, first)) = first_message(link, options, stop)? else {
        return Ok(());
    };
    let mut first = Some(Ok(first));
    loop {
        match first
            .take()
            .unwrap_or_else(|| link.recv(BETWEEN_RUNS, stop))
        {
            Ok(Message::Prepare {
                case,
                flows,
                run,
                node,
            }) => {
                log(ServerEvent::Run {
                    case: &case.id,
                    run,
                });
                crate::plan::Sweep::check(&case).map_err(|error| RunFailure {
                    bad_input: true,
                    ..RunFailure::new(format!("the server refuses the case: {error}"), None)
                })?;
                let is_here = |flow: &Flow| flow.from == node || flow.to == node;
                if flows.len() != case.flows.len() || !case.flows.iter().all(is_here) {
                    let text =
                        "the server refuses the case: a flow without a number or an end here";
                    return Err(RunFailure::refused(
                        text,
                        "install the same version of rocebench at both ends",
                    ));
                }
                if case.has_shares() {
                    let text =
                        "the server refuses the case: a share of a load that it does not know";
                    return Err(RunFailure::refused(
                        text,
                        "install the same version of rocebench at both ends",
                    ));
                }
                admit(&case, node, &resources)?;
                serve_run(&NodeRun {
                    link,
                    resources: &resources,
                    case: &case,
                    flows: &flows,
                    run,
                    number: node,
                    stop,
                    note: &|text| log(ServerEvent::Note { text }),
                })?;
                *runs += 1;
            }
            Ok(Message::AskLimits {
                devices,
                network,
                toward,
                rails,
            }) => {
                let port = resources.port();
                let network = network.or_else(|| port.toward(toward?));
                let network = network.filter(|network| port.may_move_to(*network));
                let others = rails.filter(|rails| resources.asked_rails() != Some(rails));
                if network.is_some() || others.is_some() {
                    let rails = others.or_else(|| resources.asked_rails().cloned());
                    let network = network.or_else(|| resources.network());
                    drop(resources);
                    resources = open_resources(link, options, network, rails)?;
                    if let Some(text) = resources.remark() {
                        log(ServerEvent::Note { text: &text });
                    }
                }
                let facts = facts(&resources, &devices)?;
                link.send(&Message::Limits(Box::new(facts)))?;
            }
            Ok(Message::PerftestCheck { programs }) => {
                let version = permit(options.allow_perftest, &resources, &programs)?;
                link.send(&Message::PerftestChecked { version })?;
            }
            Ok(Message::PerftestStart(job)) => {
                log(ServerEvent::Perftest {
                    program: job.program,
                    case: &job.case.id,
                });
                resources = perftest(link, options, resources, &job, stop)?;
            }
            Ok(Message::Explain(lesson)) => {
                log(ServerEvent::Lesson { lesson: &lesson });
                serve_lesson(link, &resources, &lesson, stop)?;
                *runs += 1;
            }
            Ok(first @ (Message::FileHello(_) | Message::TcpHello(_))) => {
                let files = options.files.as_ref().ok_or_else(no_files)?;
                return files.serve(link, &resources, first, log, stop);
            }
            Ok(Message::Goodbye) => return Ok(()),
            Ok(other) => return Err(link.unexpected("prepare or goodbye", &other).into()),
            Err(error) => return Err(ended(error)),
        }
    }
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
            Message::Examine { device } => {
                drop(opened);
                let examiner = options.examiner.as_ref().ok_or_else(no_examination)?;
                let route = options.route.map_or_else(|| link.route(), Ok)?;
                let found = examiner(&options.resources, route, device.as_ref());
                link.send(&Message::Examined(Box::new(found)))?;
            }
            Message::Goodbye => return Ok(None),
            message => return Ok(Some((opened?, message))),
        }
    }
}

fn no_examination() -> RunFailure {
    RunFailure::refused(
        "this node does not examine itself",
        "ask a node where `rocebench serve` runs",
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
    let route = Route {
        network,
        ..options.route.map_or_else(|| link.route(), Ok)?
    };
    let mut resources = options.resources.clone();
    resources.rails = rails.or(resources.rails);
    NodeResources::open(resources, Some(route)).map_err(|error| RunFailure {
        message: format!("{}{error}", options.whose),
        ..error
    })
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
    job.check()
        .map_err(|error| refuse(error.to_string(), None))?;
    admit(&job.case, 1, &resources)?;
    let launch = PerftestLaunch::of(&resources, &job.case)
        .map_err(|error| refuse(error.to_string(), Some(error.hint())))?;
    let network = resources.network();
    let resources = Some(resources).filter(|_| !launch.embedded);
    serve_perftest(link, &launch, job, stop)?;
    resources.map_or_else(|| open_resources(link, options, network, None), Ok)
}
