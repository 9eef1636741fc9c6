//! How the coordinator comes to an other end: a server on another host, or one in this process.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::coordinator::options::{Ends, Target};
use crate::node::resources::{NodeResources, Route};
use crate::protocol::error::ConnectError;
use crate::protocol::failure::RunFailure;
use crate::protocol::handshake::{PeerInfo, connect};
use crate::protocol::link::Link;
use crate::protocol::token::Token;
use crate::server::listener::{Server, ServerOptions};

/// The other end in this process.
pub(crate) struct LocalServer {
    port: u16,
    token: Token,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    pub(crate) fn start(ends: &Ends, facts: &Value) -> std::io::Result<LocalServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        // Nobody else on this machine gets into a private session.
        let secret = crate::protocol::token::nonce()?;
        let token = Token::new(secret).map_err(std::io::Error::other)?;
        let server_options = ServerOptions {
            resources: ends.resources.of_the_other_end(),
            token: Some(token.clone()),
            host: facts.clone(),
            once: false,
            allow_perftest: true,
            files: None,
        };
        let server = Server::new(
            listener,
            server_options,
            Arc::new(|event| {
                tracing::debug!(?event, "the end in this process");
            }),
        )?;
        let stop = Arc::new(AtomicBool::new(false));
        let for_server = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                if let Err(error) = server.run(&for_server) {
                    tracing::warn!(%error, "the end in this process stopped listening");
                }
            })?;
        Ok(LocalServer {
            port,
            token,
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection with the port for it.
pub(crate) struct Session {
    pub(crate) link: Link,
    pub(crate) peer: PeerInfo,
    pub(crate) resources: NodeResources,
}

/// Connects to the other end; for so long again where a server says that it is busy.
///
/// # Errors
/// It cannot be reached, or does not take this end.
pub(crate) fn reach(
    ends: &Ends,
    local: Option<&LocalServer>,
    facts: &Value,
    stop: &AtomicBool,
    busy_limit: Duration,
) -> Result<(Link, PeerInfo), ConnectError> {
    let loopback = Ipv4Addr::LOCALHOST.to_string();
    let (host, port, token) = match (&ends.target, local) {
        (Target::Remote(host, port), _) => (host.as_str(), *port, ends.token.as_ref()),
        (Target::Local, local) => (
            loopback.as_str(),
            local.map_or(0, |local| local.port),
            local.map(|local| &local.token),
        ),
    };
    let started = Instant::now();
    loop {
        match connect(host, port, token, facts, stop) {
            Err(ConnectError::Busy { .. }) if started.elapsed() < busy_limit => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

fn open_resources(ends: &Ends, link: &Link) -> Result<NodeResources, RunFailure> {
    let route = Route::between(link.local()?.ip(), link.peer().ip());
    NodeResources::open(ends.resources.clone(), Some(route))
}

impl Session {
    /// The first session with the other end, which is started where it is to be in this process.
    ///
    /// # Errors
    /// It cannot be started or reached, or this end has no port or no cores as asked for.
    pub(crate) fn begin(
        ends: &Ends,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<(Option<LocalServer>, Session), RunFailure> {
        let local = match ends.target {
            Target::Local => Some(LocalServer::start(ends, facts).map_err(|error| {
                let text = format!("cannot start the other end in this process: {error}");
                RunFailure::new(text, None)
            })?),
            Target::Remote(..) => None,
        };
        let (link, peer) = reach(ends, local.as_ref(), facts, stop, Duration::ZERO)?;
        Ok((local, Session::open(ends, link, peer)?))
    }

    /// A session over a link, with the port that leads there.
    ///
    /// # Errors
    /// No port or no cores as asked for.
    pub(crate) fn open(ends: &Ends, link: Link, peer: PeerInfo) -> Result<Session, RunFailure> {
        Ok(Session {
            resources: open_resources(ends, &link)?,
            link,
            peer,
        })
    }

    /// Does something with the embedded device closed, so that other processes may have it; one of the system's
    /// stays open. The session ends where the device cannot be opened again.
    pub(crate) fn aside<T>(
        self,
        ends: &Ends,
        body: impl FnOnce(&Link) -> T,
    ) -> (T, Result<Session, RunFailure>) {
        let Session {
            link,
            peer,
            resources,
        } = self;
        let resources = Some(resources).filter(|resources| resources.port().embedded.is_none());
        let done = body(&link);
        let resources = resources.map_or_else(|| open_resources(ends, &link), Ok);
        let session = resources.map(|resources| Session {
            link,
            peer,
            resources,
        });
        (done, session)
    }
}
