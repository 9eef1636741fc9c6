//! How the coordinator reaches a node: a server on another host, or one in this process. A lesson is one such session.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use machine::{host, threads};
use node::lesson::{Begin, Event, LessonClient, Outcome, Step};
use node::ports::open_at_client;
use node::resources::{NodeOptions, NodeResources, Route};
use node::server::{Server, ServerOptions};
use protocol::error::ConnectError;
use protocol::failure::RunFailure;
use protocol::handshake::{PeerInfo, connect, until_servers_listen};
use protocol::lesson::Lesson;
use protocol::link::Link;
use protocol::token::Token;
use serde_json::Value;

use super::interface::{Ends, Target};

/// A connection to one server, with this end's port; for what posts from here, such as a lesson.
pub(crate) struct Session {
    pub(crate) link: Link,
    pub(crate) peer: PeerInfo,
    pub(crate) resources: NodeResources,
}

impl Session {
    /// A session with the server, which is started where it is to be in this process.
    ///
    /// # Errors
    /// It cannot be started or reached, or this end has no port or no cores as asked for.
    pub(crate) fn begin(
        ends: &Ends,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<(Option<LocalServer>, Session), RunFailure> {
        let (local, (link, peer)) = match &ends.target {
            Target::Remote(host, port) => {
                let address = Address::new(host, *port, ends);
                let limit = ends.approach.wait;
                (None, until_servers_listen(limit, || address.reach(facts, stop))?)
            }
            Target::Local => {
                let other = ends.resources.of_further_node(1);
                let local = LocalServer::start(other, facts, None, "at the server: ".to_owned())?;
                let reached = local.address().reach(facts, stop)?;
                (Some(local), reached)
            }
        };
        let session =
            Session { resources: open_at_client(&ends.resources, &link, stop)?, link, peer };
        Ok((local, session))
    }
}

/// How to give a lesson.
pub struct LessonOptions {
    pub lesson: Lesson,
    pub text: String,
    pub ends: Ends,
}

/// Gives a lesson, and tells it while it happens.
///
/// # Errors
/// Why it could not be given. An error that the lesson is about is in the outcome.
pub fn run_lesson(
    options: &LessonOptions,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<Outcome, RunFailure> {
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let (local, session) = Session::begin(&options.ends, &facts, stop)?;
    let Session { link, peer, resources } = session;
    let port = resources.port().clone();
    // The lesson closes the device itself.
    drop(resources);
    tell(Event::Begin(Box::new(Begin {
        op: options.lesson.op,
        mistake: options.lesson.mistake,
        length_bytes: options.lesson.length_bytes,
        device: port.context.name().to_owned(),
        port: port.info.port,
        embedded: port.embedded.is_some(),
        server: local.is_none().then(|| peer.address.to_string()),
    })));
    let mut client = LessonClient {
        link: &link,
        lesson: &options.lesson,
        stop,
        tell: &mut |topic, parts| tell(Event::Step(Step { topic, parts })),
    };
    let result = client.give(port, &options.text);
    match &result {
        Ok(_) => Link::part([&link], stop),
        Err(failure) => failure.tell(&link),
    }
    result
}

/// Where a server is reached.
pub(crate) struct Address<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// The address of this end; that of the route without.
    pub(crate) from: Option<IpAddr>,
    pub(crate) token: Option<&'a Token>,
}

const LOOPBACK: &str = "127.0.0.1";

impl<'a> Address<'a> {
    /// One of another process, as these ends reach it.
    pub(crate) fn new(host: &'a str, port: u16, ends: &'a Ends) -> Address<'a> {
        Address { host, port, from: ends.approach.from, token: ends.token.as_ref() }
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// It cannot be reached, or does not take this end.
    pub(crate) fn reach(
        &self,
        facts: &Value,
        stop: &AtomicBool,
    ) -> Result<(Link, PeerInfo), ConnectError> {
        connect(self.host, self.port, self.from, self.token, facts, stop)
    }
}

/// A node in this process.
pub(crate) struct LocalServer {
    port: u16,
    token: Token,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LocalServer {
    /// Starts a node on `resources` whose traffic goes along `route`; `whose` as in [`ServerOptions`].
    ///
    /// # Errors
    /// It cannot listen on loopback, or there is no thread for it.
    pub(crate) fn start(
        resources: NodeOptions,
        facts: &Value,
        route: Option<Route>,
        whose: String,
    ) -> Result<LocalServer, RunFailure> {
        LocalServer::listen(resources, facts, route, whose).map_err(|error| {
            let text = format!("cannot start a node in this process: {error}");
            let of_loopback = (error.kind() == ErrorKind::AddrNotAvailable)
                .then_some("bring loopback up: `ip link set lo up`");
            let hint = of_loopback.or_else(|| threads::remedy(&error));
            RunFailure::new(text, hint.map(str::to_owned))
        })
    }

    fn listen(
        resources: NodeOptions,
        facts: &Value,
        route: Option<Route>,
        whose: String,
    ) -> std::io::Result<LocalServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        // Nobody else on this machine gets into a private session.
        let secret = protocol::token::nonce()?;
        let token = Token::new(secret).map_err(std::io::Error::other)?;
        let server_options = ServerOptions {
            resources,
            token: Some(token.clone()),
            host: facts.clone(),
            route,
            whose,
            once: false,
            allow_perftest: true,
            shows_results: false,
            files: None,
            examiner: None,
        };
        let server = Server::new(
            listener,
            server_options,
            Arc::new(|event| {
                tracing::debug!(?event, "the node in this process");
            }),
        )?;
        let stop = Arc::new(AtomicBool::new(false));
        let for_server = Arc::clone(&stop);
        let thread = threads::spawn("server", move || {
            if let Err(error) = server.run(&for_server) {
                tracing::warn!(%error, "the node in this process stopped listening");
            }
        })?;
        Ok(LocalServer { port, token, stop, thread: Some(thread) })
    }

    pub(crate) fn address(&self) -> Address<'_> {
        Address { host: LOOPBACK, port: self.port, from: None, token: Some(&self.token) }
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
