//! The sending end of a session: sends one file after another over the same QPs, and on request each again over plain
//! TCP. An error ends the session; files that were acknowledged before stay.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use machine::host;
use node::ports::open_at_client;
use node::resources::{NodeOptions, NodeResources};
use protocol::failure::RunFailure;
use protocol::handshake::{Approach, connect, until_servers_listen};
use protocol::link::Link;
use protocol::message::{
    ChannelHello, ChannelSettings, FileAck, FileFin, FileHello, FileMessage, Message,
};
use protocol::token::Token;

use super::channel::{Channel, ChannelWorker, TransferEnd, check_settings};
use super::chunks::{self, FileProgress, SendWindow, WorkerBuffers, peers_reason, run_workers};
use super::files::{Digest, Opened, Source, SourceError, open_source};
use super::plain_tcp;

/// Time limit for the receiver to reserve space, register memory and create its QPs.
const ACCEPT_LIMIT: Duration = Duration::from_secs(120);

/// Time limit for the receiver to sync a file; the link reports a dead receiver earlier.
const ACK_LIMIT: Duration = Duration::from_secs(3600);

/// The files to send, the receiver and the settings.
pub struct SendOptions {
    /// Name or address of the receiver.
    pub host: String,
    /// Port of its control connection.
    pub port: u16,
    /// The secret shared with it.
    pub token: Option<Token>,
    /// How it is reached.
    pub approach: Approach,
    /// This end's device and cores.
    pub resources: NodeOptions,
    /// Settings of the chunks and QPs.
    pub settings: ChannelSettings,
    /// Whether files of the same names may be overwritten.
    pub force: bool,
    /// Whether to send each file over plain TCP as well.
    pub against_tcp: bool,
    pub files: Vec<Source>,
}

/// Receives the progress of a transfer. All calls come from one thread.
pub trait SendObserver {
    /// File number `index` (from 0) starts: over QPs, or over TCP for comparison.
    fn started(&mut self, index: usize, size_bytes: u64, over_tcp: bool);
    /// `bytes` of it have arrived.
    fn moved(&mut self, bytes: u64);
    /// All bytes have arrived; the receiver syncs them to disk.
    fn syncing(&mut self);
    /// A file is complete, and compared if that was requested.
    fn finished(&mut self, report: &FileReport);
    /// A remark for the user.
    fn note(&mut self, text: &str);
}

/// The time of one file in one transport.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct FileTiming {
    /// From the first byte until the receiver has synced the file, in seconds.
    pub seconds: f64,
    /// The part of it that the receiver's final sync took.
    pub sync_seconds: f64,
    /// Size of the file divided by `seconds`, in 10^9 bits a second.
    pub gbit_per_s: f64,
}

impl FileTiming {
    fn new(bytes: u64, seconds: f64, sync_seconds: f64) -> FileTiming {
        FileTiming {
            seconds,
            sync_seconds,
            gbit_per_s: bytes as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE) / 1e9,
        }
    }
}

/// The result of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileReport {
    /// Its name at the receiver.
    pub name: String,
    pub bytes: u64,
    pub digest: Digest,
    pub rdma: FileTiming,
    pub qps: u32,
    /// The transfer over plain TCP, if requested.
    pub tcp: Option<FileTiming>,
}

impl FileReport {
    /// How many times as fast as plain TCP the QPs were.
    pub fn ratio(&self) -> Option<f64> {
        self.tcp.map(|tcp| tcp.seconds / self.rdma.seconds)
    }
}

/// Sends the files. Files reported as finished are complete, even if a later one fails.
///
/// # Errors
/// Why not all were sent.
pub fn send_files(
    options: &SendOptions,
    stop: &AtomicBool,
    observer: &mut dyn SendObserver,
) -> Result<(), RunFailure> {
    check_settings(&options.settings)?;
    // Check first that this end has a device, before contacting the peer.
    drop(NodeResources::open(options.resources.clone(), None)?);
    let facts = serde_json::to_value(host::read()).unwrap_or_default();
    let token = options.token.as_ref();
    let (link, peer) = until_servers_listen(options.approach.wait, || {
        connect(&options.host, options.port, options.approach.from, token, &facts, stop)
    })?;
    if !peer.receives_files {
        return Err(RunFailure::refused(
            format!("the rocebench at {} receives no files", peer.address),
            "start it with `rocebench serve --receive DIR`",
        ));
    }
    let resources = open_at_client(&options.resources, &link, stop)?;
    if let Some(text) = resources.remark() {
        observer.note(&text);
    }
    let mut session =
        Session { options, link: &link, resources: &resources, stop, observer, connected: None };
    let sent = (0..options.files.len()).try_for_each(|index| session.file(index));
    if let Err(failure) = &sent {
        let reason = RunFailure {
            message: if failure.interrupted {
                "the sender was stopped".into()
            } else {
                failure.message.clone()
            },
            ..failure.clone()
        };
        // The receiver discards its file even if this does not arrive.
        reason.tell(&link);
    }
    sent?;
    Link::part([&link], stop);
    Ok(())
}

/// The QPs, from the first file on.
struct SendingQps {
    channel: Channel,
    workers: Vec<ChannelWorker<SendWindow>>,
    buffers: Vec<WorkerBuffers>,
}

struct Session<'a> {
    options: &'a SendOptions,
    link: &'a Link,
    resources: &'a NodeResources,
    stop: &'a AtomicBool,
    observer: &'a mut dyn SendObserver,
    connected: Option<SendingQps>,
}

impl Session<'_> {
    fn file(&mut self, index: usize) -> Result<(), RunFailure> {
        let source = &self.options.files[index];
        let opened = open_source(&source.path).map_err(|error| not_read(&error))?;
        let size_bytes = opened.size_bytes;
        if self.options.against_tcp {
            // Neither transport should wait for this end's disk.
            plain_tcp::warm(&opened.file, source, self.stop)?;
        }
        let (digest, rdma) = self.by_rdma(index, &opened)?;
        let tcp = if self.options.against_tcp {
            Some(self.by_tcp(index, &opened, digest)?)
        } else {
            None
        };
        self.observer.finished(&FileReport {
            name: source.name.clone(),
            bytes: size_bytes,
            digest,
            rdma,
            qps: self.options.settings.qps,
            tcp,
        });
        Ok(())
    }

    fn by_rdma(
        &mut self,
        index: usize,
        opened: &Opened,
    ) -> Result<(Digest, FileTiming), RunFailure> {
        let source = &self.options.files[index];
        let size_bytes = opened.size_bytes;
        self.greet(source, size_bytes)?;
        self.observer.started(index, size_bytes, false);
        let began = Instant::now();
        let digest = self
            .write(source, opened)
            .map_err(|found| peers_reason(self.link, found, self.stop))?;
        if opened.has_changed().map_err(|error| chunks::unreadable(&source.name, &error))? {
            return Err(RunFailure::new(
                format!(
                    "{:?} was written to, or its attributes were changed, while it was sent",
                    source.name
                ),
                Some("send it again when no program changes it".into()),
            ));
        }
        let sync_seconds = self.fin(digest)?;
        let seconds = began.elapsed().as_secs_f64();
        Ok((digest, FileTiming::new(size_bytes, seconds, sync_seconds)))
    }

    /// Announces a file; connects the QPs for the first one.
    fn greet(&mut self, source: &Source, size_bytes: u64) -> Result<(), RunFailure> {
        let settings = self.options.settings;
        let fresh = match &self.connected {
            Some(_) => None,
            None => Some(Channel::create(self.resources, settings, TransferEnd::Sender, || {
                self.link.check().map_err(RunFailure::from)
            })?),
        };
        let hello = FileHello {
            name: source.name.clone(),
            size_bytes,
            force: self.options.force,
            channel: fresh
                .as_ref()
                .map(|channel| ChannelHello { settings, endpoints: channel.endpoints() }),
        };
        self.link.send(FileMessage::Hello(Box::new(hello)))?;
        let accept = match self.recv(ACCEPT_LIMIT)? {
            Message::File(FileMessage::Accept(accept)) => accept,
            other => return Err(self.link.unexpected("file_accept", &other).into()),
        };
        let Some(channel) = fresh else { return Ok(()) };
        let Some(peer) = accept.endpoints else {
            return Err(RunFailure::new(
                "the receiver answered without its QPs",
                Some("install the same version of rocebench on both ends".into()),
            ));
        };
        let workers = channel.connect(&peer, SendWindow::new)?;
        self.connected = Some(SendingQps {
            buffers: workers.iter().map(|_| WorkerBuffers::new(settings.chunk_bytes)).collect(),
            workers,
            channel,
        });
        Ok(())
    }

    fn write(&mut self, source: &Source, opened: &Opened) -> Result<Digest, RunFailure> {
        let Some(connected) = &mut self.connected else {
            return Ok(Digest::default());
        };
        let chunk_bytes = self.options.settings.chunk_bytes;
        let progress = FileProgress::new(opened.size_bytes, chunk_bytes, &connected.workers);
        if progress.is_empty() {
            return Ok(Digest::default());
        }
        let channel = &connected.channel;
        run_workers(
            &mut connected.workers,
            &mut connected.buffers,
            &progress,
            &|worker, buffers| chunks::send(worker, buffers, &progress, &opened.file, &source.name),
            || {
                self.observer.moved(progress.done_bytes());
                TransferEnd::Sender.alive(self.link, self.stop)?;
                channel.check_device()
            },
        )
    }

    fn by_tcp(
        &mut self,
        index: usize,
        opened: &Opened,
        rdma: Digest,
    ) -> Result<FileTiming, RunFailure> {
        let source = &self.options.files[index];
        let size_bytes = opened.size_bytes;
        let chunk_bytes = self.options.settings.chunk_bytes;
        let mut stream =
            plain_tcp::open(self.link, &source.name, size_bytes, chunk_bytes, self.stop)?;
        self.observer.started(index, size_bytes, true);
        let began = Instant::now();
        let digest = plain_tcp::send(&mut stream, opened, &source.name, chunk_bytes, |bytes| {
            self.observer.moved(bytes);
            TransferEnd::Sender.alive(self.link, self.stop)
        })
        .map_err(|found| peers_reason(self.link, found, self.stop))?;
        if digest != rdma {
            return Err(RunFailure::new(
                format!("{:?} was written to while it was sent again over TCP", source.name),
                Some("send it again when no program writes to it".into()),
            ));
        }
        let sync_seconds = self.fin(digest)?;
        let seconds = began.elapsed().as_secs_f64();
        Ok(FileTiming::new(size_bytes, seconds, sync_seconds))
    }

    /// Sends the checksum and waits until the receiver has synced the file; returns how long that took there, in
    /// seconds.
    fn fin(&mut self, digest: Digest) -> Result<f64, RunFailure> {
        self.observer.syncing();
        self.link.send(FileMessage::Fin(FileFin { digest: digest.to_string() }))?;
        match self.recv(ACK_LIMIT)? {
            Message::File(FileMessage::Ack(FileAck { sync_seconds })) => Ok(sync_seconds),
            other => Err(self.link.unexpected("file_ack", &other).into()),
        }
    }

    fn recv(&self, limit: Duration) -> Result<Message, RunFailure> {
        TransferEnd::Sender.recv(self.link, limit, self.stop)
    }
}

fn not_read(error: &SourceError) -> RunFailure {
    RunFailure::new(error.to_string(), Some(error.hint().into()))
}
