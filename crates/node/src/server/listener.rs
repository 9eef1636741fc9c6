//! Accepts one coordinator after another, for ever. A second one is told that the server is busy, or waits for the end of a
//! session that ends; one that fails ends its own session only.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::server::events::{ServerEvent, ServerLog};
use crate::server::options::ServerOptions;
use crate::server::session::session;
use crate::server::slot::{Slot, SlotGuard};
use machine::threads;
use protocol::error::AcceptError;
use protocol::exchange::tell_last;
use protocol::failure::RunFailure;
use protocol::handshake::{Accepted, ServerTerms, accept};
use protocol::handshakes::{Handshake, Handshakes, Most};
use protocol::newcomer::Newcomer;

/// How often an idle server looks whether it should stop.
const IDLE_TICK: Duration = Duration::from_millis(20);

/// A server that listens.
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
