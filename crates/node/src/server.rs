//! A node, as others reach it: accepts one coordinator after another, for ever, and has each served by a session. A second
//! one is told that the server is busy, or waits for the end of a session that ends; one that fails ends its own session
//! only.

use std::{
    io,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use machine::threads;
use perftest::Program;
use plan::FlowDevice;
use protocol::{
    connection::{canonical, tell_last},
    endpoints::ConnectingEnds,
    error::AcceptError,
    failure::RunFailure,
    handshake::{Accepted, ServerTerms, SlotError, accept},
    handshakes::{Handshake, Handshakes, Most, Newcomer},
    lesson::Lesson,
    link::{Link, Pulse},
    message::{BusyInfo, Message},
    node_report::NodeExamination,
    token::Token,
};
use results::model::ResultFile;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;

use crate::{
    resources::{NodeOptions, NodeResources, Route},
    session::session,
};

/// How often an idle server looks whether it should stop.
const IDLE_TICK: Duration = Duration::from_millis(20);

pub struct Server {
    listener: TcpListener,
    options: Arc<ServerOptions>,
    log: ServerLog,
}

impl Server {
    /// A server on a listening socket.
    ///
    /// # Errors
    /// The socket cannot be set not to block.
    pub fn new(listener: TcpListener, options: ServerOptions, log: ServerLog) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Server { listener, options: Arc::new(options), log })
    }

    /// Serves until `stop` is set, or one session has ended where that was asked for: then why that one ended early,
    /// if it did.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(&self, stop: &Arc<AtomicBool>) -> io::Result<Option<RunFailure>> {
        let slot = Slot::new(self.options.once);
        let handshakes = Handshakes::new(Most::SERVER);
        // How the first session ended.
        let served: Arc<OnceLock<Option<RunFailure>>> = Arc::default();
        let mut threads: Vec<thread::JoinHandle<()>> = Vec::new();
        while !stop.load(Ordering::Relaxed) && (!self.options.once || served.get().is_none()) {
            threads.retain(|session| !session.is_finished());
            if handshakes.is_full() {
                thread::sleep(IDLE_TICK);
                continue;
            }
            let (stream, client) = match self.listener.accept() {
                Ok((stream, client)) => (stream, canonical(client)),
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
            let (options, log, stop) =
                (Arc::clone(&self.options), Arc::clone(&self.log), Arc::clone(stop));
            let same = stream.try_clone();
            // It counts until the closure is dropped, which a thread that cannot be had does at once.
            let thread = handshakes.take(&stream, client).and_then(|handshake| {
                Ok(threads::spawn("session", move || {
                    match take(stream, &handshake, &options, &slot, &stop) {
                        Ok(accepted) => {
                            drop(handshake);
                            let ended = session(accepted, &options, &log, &stop);
                            let _ = served.set(ended.err());
                        }
                        Err(error) => log(ServerEvent::Refused { error: &error }),
                    }
                })?)
            });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let source = Arc::new(error);
                    let refusal = AcceptError::NoRoom { client, source };
                    if let Ok(same) = same {
                        tell_last(&same, refusal.to_string(), refusal.hint());
                    }
                    (self.log)(ServerEvent::Refused { error: &refusal });
                    thread::sleep(IDLE_TICK);
                }
            }
        }
        for thread in threads {
            let _ = thread.join();
        }
        Ok(served.get().filter(|_| self.options.once).cloned().flatten())
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
    slot: &Arc<Slot>,
    stop: &AtomicBool,
) -> Result<Accepted<SlotGuard>, AcceptError> {
    let mut terms = ServerTerms::new(options.token.clone(), options.host.clone());
    terms.receives_files = options.files.is_some();
    let mut newcomer = None;
    let accepted = accept(stream, &terms, stop, |client| {
        slot.enter(client, newcomer.get_or_insert_with(|| Newcomer::new(Instant::now())))
    })
    .map_err(|error| match error {
        AcceptError::Handshake { client, .. } if handshake.is_ended() => {
            AcceptError::Crowded { client }
        }
        error => error,
    })?;
    accepted.slot.serves(&accepted.link);
    Ok(accepted)
}

/// How a server serves: its device, its token, and what else it does for coordinators.
pub struct ServerOptions {
    /// The device, cores and verbs library of its runs.
    pub resources: NodeOptions,
    /// The token that coordinators must prove.
    pub token: Option<Token>,
    /// Facts of this host, as results have them.
    pub host: Value,
    /// Where its traffic goes, which decides the port and the GID; `None` for where the control connection comes from.
    pub route: Option<Route>,
    /// What stands before a failure to open the device: `at the server: `, or nothing for the coordinator's own node.
    pub whose: String,
    /// Whether it returns after its first session.
    pub once: bool,
    /// Start perftest's programs for coordinators.
    pub allow_perftest: bool,
    /// Coordinators send it what came of each run.
    pub shows_results: bool,
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
    Accepted {
        client: SocketAddr,
    },
    Run {
        case: &'a str,
        /// Number of the run, from 1.
        run: u32,
    },
    /// Something that a person should know of the last run.
    Note {
        text: &'a str,
    },
    /// The ends of a run's first flow here connect.
    Connecting(ConnectingEnds<'a>),
    /// What came of the last run.
    Result {
        result: &'a ResultFile,
    },
    Lesson {
        lesson: &'a Lesson,
    },
    /// perftest's server is started for a case of this name.
    Perftest {
        program: Program,
        case: &'a str,
    },
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
        runs: u32,
    },
    Broken {
        client: SocketAddr,
        failure: &'a RunFailure,
    },
    /// A connection did not become a session.
    Refused {
        error: &'a AcceptError,
    },
}

/// How long one who waits does so before looking again at the session that is in the way.
const TICK: Duration = Duration::from_millis(20);

/// The place of the one session of a server: who has it, and how one who comes meanwhile waits for its end.
#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    freed: Condvar,
    /// There is one session only.
    once: bool,
}

#[derive(Debug)]
enum State {
    Free,
    Held(Holder),
    /// The only session is over.
    Over,
}

#[derive(Debug)]
struct Holder {
    client: SocketAddr,
    since: Instant,
    /// Shows whether the session lives; `None` during the handshake.
    link: Option<Pulse>,
}

/// The session, given back when dropped.
#[derive(Debug)]
pub(super) struct SlotGuard(Arc<Slot>);

impl Slot {
    pub(super) fn new(once: bool) -> Arc<Slot> {
        Arc::new(Slot { state: Mutex::new(State::Free), freed: Condvar::new(), once })
    }

    /// Takes the slot for `client`; where it may soon be free, waits a moment for that.
    ///
    /// # Errors
    /// It is taken: for good, or the client is to ask again.
    pub(super) fn enter(
        self: &Arc<Self>,
        client: SocketAddr,
        newcomer: &mut Newcomer,
    ) -> Result<SlotGuard, SlotError> {
        let mut state = self.lock();
        let now = Instant::now();
        match &*state {
            State::Free => {
                *state = State::Held(Holder { client, since: now, link: None });
                Ok(SlotGuard(Arc::clone(self)))
            }
            State::Over => Err(SlotError::Over),
            State::Held(Holder { client: held_by, since, link }) => {
                if newcomer.may_wait(link.as_ref().map(Pulse::signs), now) {
                    let waited = self.freed.wait_timeout(state, TICK);
                    drop(waited.unwrap_or_else(PoisonError::into_inner));
                    return Err(SlotError::Ending);
                }
                Err(SlotError::Busy(BusyInfo {
                    client: held_by.to_string(),
                    since_seconds: since.elapsed().as_secs(),
                }))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotGuard {
    /// The handshake is done: from now on this link shows whether the session lives.
    pub(super) fn serves(&self, link: &Link) {
        if let State::Held(holder) = &mut *self.0.lock() {
            holder.link = Some(link.pulse());
        }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let was_session = matches!(&*state, State::Held(holder) if holder.link.is_some());
        *state = if was_session && self.0.once { State::Over } else { State::Free };
        self.0.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn newcomer() -> Newcomer {
        Newcomer::new(Instant::now())
    }

    /// A link, and its peer, which says nothing.
    fn link() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, address) = listener.accept().unwrap();
        (Link::new(near, address).unwrap(), peer)
    }

    #[test]
    fn one_is_asked_to_wait_until_a_handshake_has_failed() {
        let slot = Slot::new(true);
        let first = slot.enter(address(1), &mut newcomer()).unwrap();
        let mut second = newcomer();
        assert_eq!(slot.enter(address(2), &mut second).unwrap_err(), SlotError::Ending);
        drop(first);
        slot.enter(address(2), &mut second).unwrap();
    }

    #[test]
    fn a_session_whose_client_has_closed_is_waited_for() {
        let slot = Slot::new(false);
        let first = slot.enter(address(1), &mut newcomer()).unwrap();
        let (link, peer) = link();
        first.serves(&link);
        let mut second = newcomer();
        drop(peer);
        assert_eq!(slot.enter(address(2), &mut second).unwrap_err(), SlotError::Ending);
        drop(first);
        slot.enter(address(2), &mut second).unwrap();
    }

    #[test]
    fn after_the_only_session_there_is_none() {
        let slot = Slot::new(true);
        let only = slot.enter(address(1), &mut newcomer()).unwrap();
        let (link, _peer) = link();
        only.serves(&link);
        drop(only);
        assert_eq!(slot.enter(address(2), &mut newcomer()).unwrap_err(), SlotError::Over);
    }

    #[test]
    fn one_who_has_waited_long_enough_hears_who_has_the_slot() {
        let slot = Slot::new(false);
        let first = address(1);
        let _held = slot.enter(first, &mut newcomer()).unwrap();
        let long_ago = Instant::now().checked_sub(protocol::handshakes::END_LIMIT).unwrap();
        let busy = slot.enter(address(2), &mut Newcomer::new(long_ago)).unwrap_err();
        assert!(
            matches!(busy, SlotError::Busy(BusyInfo { client, .. }) if client == first.to_string())
        );
    }
}
