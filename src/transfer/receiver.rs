//! The receiving end of a session: it looks at the name, registers memory, stores what comes, and puts a file that is
//! whole into its place.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::node::station::Station;
use crate::protocol::error::LinkError;
use crate::protocol::failure::RunFailure;
use crate::protocol::file_message::{FileAccept, FileAck, FileFin, FileHello};
use crate::protocol::link::Link;
use crate::protocol::message::Message;
use crate::server::listener::{FileService, ServerEvent, ServerLog};
use report::text::printable;

use super::channel::{Channel, Side, Worker};
use super::crew;
use super::digest::Digest;
use super::lanes::{self, Bench, Flow, place_failure};
use super::place::{Folder, Incoming, PlaceError};
use super::window::ReceiveWindow;
use super::{name, plain_tcp};

/// Longest pause of a sender between two files.
const BETWEEN_FILES: Duration = Duration::from_secs(3600);

/// Longest that a sender may take for its last words about a file.
const FIN_LIMIT: Duration = Duration::from_secs(60);

/// Receives files into a folder.
pub struct Receiver {
    folder: Arc<Folder>,
    may_replace: bool,
}

impl Receiver {
    /// Into `folder`; what is there is overwritten where a sender asks for it, if `may_replace`.
    pub fn new(folder: Arc<Folder>, may_replace: bool) -> Receiver {
        Receiver {
            folder,
            may_replace,
        }
    }
}

/// The QPs of a session, from its first file to its last.
struct Connected {
    channel: Channel,
    workers: Vec<Worker<ReceiveWindow>>,
    benches: Vec<Bench>,
    chunk_bytes: u32,
    qps: u32,
}

impl FileService for Receiver {
    fn serve(
        &self,
        link: &Link,
        station: &Station,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let mut connected = None;
        let served = self.files(link, station, &mut connected, first, log, stop);
        if let Err(failure) = &served {
            // Before the QPs go, which would be all that the sender saw of it.
            failure.tell(link);
        }
        served
    }
}

impl Receiver {
    fn files(
        &self,
        link: &Link,
        station: &Station,
        connected: &mut Option<Connected>,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let mut next = first;
        loop {
            match next {
                Message::FileHello(hello) => {
                    self.file(link, station, connected, &hello, log, stop)?;
                }
                Message::TcpHello(hello) => {
                    plain_tcp::receive(link, &self.folder, &hello, log, stop)?;
                }
                Message::Goodbye => return Ok(()),
                other => {
                    return Err(link.unexpected("file_hello or goodbye", &other).into());
                }
            }
            next = recv(link, BETWEEN_FILES, stop)?;
        }
    }

    fn file(
        &self,
        link: &Link,
        station: &Station,
        connected: &mut Option<Connected>,
        hello: &FileHello,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let started = Instant::now();
        let FileHello {
            name, size_bytes, ..
        } = hello;
        check_name(name)?;
        let replace = hello.force && self.may_replace;
        self.folder
            .admits(name, replace)
            .map_err(|error| self.refused(&error, hello.force))?;
        let incoming = self
            .folder
            .incoming(name, *size_bytes)
            .map_err(|error| place_failure(&error))?;
        let endpoints = match &hello.channel {
            None => None,
            Some(theirs) => {
                let alive = || link.check().map_err(RunFailure::from);
                let channel = Channel::create(station, theirs.settings, Side::Receiver, alive)?;
                let workers = channel.connect(&theirs.endpoints, ReceiveWindow::new)?;
                let endpoints = channel.endpoints();
                *connected = Some(Connected {
                    benches: workers
                        .iter()
                        .map(|_| Bench::new(theirs.settings.chunk_bytes))
                        .collect(),
                    workers,
                    channel,
                    chunk_bytes: theirs.settings.chunk_bytes,
                    qps: theirs.settings.qps,
                });
                Some(endpoints)
            }
        };
        let Some(connected) = connected.as_mut() else {
            return Err(RunFailure::new(
                "a file was announced without QPs to come over",
                Some("install the same version of rocebench on both ends".into()),
            ));
        };
        link.send(&Message::FileAccept(Box::new(FileAccept { endpoints })))?;
        let digest = connected
            .store(&self.folder, &incoming, hello, link, stop)
            .map_err(|found| crew::reason(link, found, stop))?;
        let sync_seconds = finish(link, &self.folder, &incoming, hello.into(), digest, stop)?;
        incoming
            .publish(name, replace)
            .map_err(|error| place_failure(&error))?;
        link.send(&Message::FileAck(FileAck { sync_seconds }))?;
        log(ServerEvent::File {
            name,
            bytes: *size_bytes,
            seconds: started.elapsed().as_secs_f64(),
            qps: connected.qps,
        });
        Ok(())
    }

    fn refused(&self, error: &PlaceError, force: bool) -> RunFailure {
        let mut failure = place_failure(error);
        if force && matches!(error, PlaceError::Exists { .. }) {
            let hint =
                "this receiver overwrites nothing (--keep-existing): send it under another name";
            failure.hint = Some(hint.into());
        }
        failure
    }
}

impl Connected {
    fn store(
        &mut self,
        folder: &Folder,
        incoming: &Incoming,
        hello: &FileHello,
        link: &Link,
        stop: &AtomicBool,
    ) -> Result<Digest, RunFailure> {
        let flow = Flow::new(hello.size_bytes, self.chunk_bytes, &self.workers);
        if flow.is_empty() {
            return Ok(Digest::default());
        }
        let unwritten = |error| folder.call(error, "writing", &hello.name, hello.size_bytes);
        let channel = &self.channel;
        crew::run(
            &mut self.workers,
            &mut self.benches,
            &flow,
            &|worker, bench| lanes::receive(worker, bench, &flow, incoming, &unwritten),
            || {
                alive(link, stop)?;
                channel.check_device()
            },
        )
    }
}

/// What is received, by either way.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) size_bytes: u64,
}

impl<'a> From<&'a FileHello> for Subject<'a> {
    fn from(hello: &'a FileHello) -> Self {
        Subject {
            name: &hello.name,
            size_bytes: hello.size_bytes,
        }
    }
}

/// Waits for the sender's checksum, compares, and brings the file to the disk; how long that took, in seconds.
pub(super) fn finish(
    link: &Link,
    folder: &Folder,
    incoming: &Incoming,
    subject: Subject<'_>,
    digest: Digest,
    stop: &AtomicBool,
) -> Result<f64, RunFailure> {
    let theirs = match recv(link, FIN_LIMIT, stop)? {
        Message::FileFin(FileFin { digest }) => digest,
        other => return Err(link.unexpected("file_fin", &other).into()),
    };
    if theirs.parse() != Ok(digest) {
        let theirs = printable(&theirs, 40);
        return Err(RunFailure::new(
            format!(
                "{:?} arrived with checksum {digest} and was sent with {theirs}: it was thrown away",
                subject.name
            ),
            Some("the device or the network corrupts data: send it again, and check memory, cables and firmware".into()),
        ));
    }
    let began = Instant::now();
    incoming.sync().map_err(|error| {
        let Subject { name, size_bytes } = subject;
        place_failure(&folder.call(error, "syncing", name, size_bytes))
    })?;
    Ok(began.elapsed().as_secs_f64())
}

/// Refuses a name that is none.
pub(super) fn check_name(text: &str) -> Result<(), RunFailure> {
    name::check(text).map_err(|error| {
        RunFailure::refused(
            format!(
                "the receiver does not take {:?} as a name: {error}",
                printable(text, 100)
            ),
            "send it under another name",
        )
    })
}

/// The sender lives, and nobody wants this end to stop.
pub(super) fn alive(link: &Link, stop: &AtomicBool) -> Result<(), RunFailure> {
    if stop.load(std::sync::atomic::Ordering::Relaxed) {
        return Err(stopped());
    }
    Ok(link.check()?)
}

/// The next message; a wish to stop has words of its own.
pub(super) fn recv(link: &Link, limit: Duration, stop: &AtomicBool) -> Result<Message, RunFailure> {
    link.recv(limit, stop).map_err(|error| match error {
        LinkError::Interrupted { .. } => stopped(),
        error => error.into(),
    })
}

fn stopped() -> RunFailure {
    RunFailure::server_stopped()
}
