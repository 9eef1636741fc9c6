//! The receiving end of a session: checks the name, registers memory, stores what arrives, and gives a complete file
//! its name.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use node::resources::NodeResources;
use node::server::{FileService, ServerEvent, ServerLog};
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{FileAccept, FileAck, FileHello, FileMessage, Message, SessionMessage};

use super::channel::{Channel, ChannelWorker, TransferEnd};
use super::chunks::{self, FileProgress, ReceiveWindow, WorkerBuffers, peers_reason, run_workers};
use super::files::{Digest, Folder, Incoming, PlaceError, check_received_name, finish_file};
use super::plain_tcp;

/// Time limit between two files.
const BETWEEN_FILES: Duration = Duration::from_secs(3600);

/// Receives files into a folder.
pub struct FileReceiver {
    folder: Arc<Folder>,
    may_replace: bool,
}

impl FileReceiver {
    /// Receives into `folder`; existing files are overwritten if a sender asks for it and `may_replace`.
    pub fn new(folder: Arc<Folder>, may_replace: bool) -> FileReceiver {
        FileReceiver { folder, may_replace }
    }
}

/// The QPs of a session; kept for all its files.
struct ReceivingQps {
    channel: Channel,
    workers: Vec<ChannelWorker<ReceiveWindow>>,
    buffers: Vec<WorkerBuffers>,
    chunk_bytes: u32,
    qps: u32,
}

impl FileService for FileReceiver {
    fn serve(
        &self,
        link: &Link,
        resources: &NodeResources,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let mut connected = None;
        let served = self.files(link, resources, &mut connected, first, log, stop);
        if let Err(failure) = &served {
            // Tell the sender before the QPs are destroyed, which it would otherwise see first.
            failure.tell(link);
        }
        served
    }
}

impl FileReceiver {
    fn files(
        &self,
        link: &Link,
        resources: &NodeResources,
        connected: &mut Option<ReceivingQps>,
        first: Message,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let mut next = first;
        loop {
            match next {
                Message::File(FileMessage::Hello(hello)) => {
                    self.file(link, resources, connected, &hello, log, stop)?;
                }
                Message::File(FileMessage::TcpHello(hello)) => {
                    plain_tcp::receive(link, &self.folder, &hello, log, stop)?;
                }
                Message::Session(SessionMessage::Goodbye) => return Ok(()),
                other => {
                    return Err(link.unexpected("file_hello or goodbye", &other).into());
                }
            }
            next = TransferEnd::Receiver.recv(link, BETWEEN_FILES, stop)?;
        }
    }

    fn file(
        &self,
        link: &Link,
        resources: &NodeResources,
        connected: &mut Option<ReceivingQps>,
        hello: &FileHello,
        log: &ServerLog,
        stop: &AtomicBool,
    ) -> Result<(), RunFailure> {
        let started = Instant::now();
        let FileHello { name, size_bytes, .. } = hello;
        check_received_name(name)?;
        let replace = hello.force && self.may_replace;
        self.folder.admits(name, replace).map_err(|error| self.refused(error, hello.force))?;
        let incoming = self.folder.incoming(name, *size_bytes)?;
        let endpoints = match &hello.channel {
            None => None,
            Some(theirs) => {
                let channel =
                    Channel::create(resources, theirs.settings, TransferEnd::Receiver, || {
                        link.check().map_err(RunFailure::from)
                    })?;
                let workers = channel.connect(&theirs.endpoints, ReceiveWindow::new)?;
                let endpoints = channel.endpoints();
                *connected = Some(ReceivingQps {
                    buffers: workers
                        .iter()
                        .map(|_| WorkerBuffers::new(theirs.settings.chunk_bytes))
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
        link.send(FileMessage::Accept(Box::new(FileAccept { endpoints })))?;
        let digest = connected
            .store(&self.folder, &incoming, hello, link, stop)
            .map_err(|found| peers_reason(link, found, stop))?;
        let sync_seconds = finish_file(link, &self.folder, &incoming, hello.into(), digest, stop)?;
        incoming.publish(name, replace)?;
        link.send(FileMessage::Ack(FileAck { sync_seconds }))?;
        log(ServerEvent::File {
            name,
            bytes: *size_bytes,
            seconds: started.elapsed().as_secs_f64(),
            qps: connected.qps,
        });
        Ok(())
    }

    fn refused(&self, error: PlaceError, force: bool) -> RunFailure {
        let keeps = force && matches!(error, PlaceError::Exists { .. });
        let mut failure = RunFailure::from(error);
        if keeps {
            let hint =
                "this receiver overwrites nothing (--keep-existing): send it under another name";
            failure.hint = Some(hint.into());
        }
        failure
    }
}

impl ReceivingQps {
    fn store(
        &mut self,
        folder: &Folder,
        incoming: &Incoming,
        hello: &FileHello,
        link: &Link,
        stop: &AtomicBool,
    ) -> Result<Digest, RunFailure> {
        let progress = FileProgress::new(hello.size_bytes, self.chunk_bytes, &self.workers);
        if progress.is_empty() {
            return Ok(Digest::default());
        }
        let channel = &self.channel;
        run_workers(
            &mut self.workers,
            &mut self.buffers,
            &progress,
            &|worker, buffers| {
                chunks::receive(worker, buffers, &progress, incoming, &|error| {
                    folder.call(error, "writing", &hello.name, hello.size_bytes)
                })
            },
            || {
                TransferEnd::Receiver.alive(link, stop)?;
                channel.check_device()
            },
        )
    }
}
