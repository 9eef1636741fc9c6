//! The receiver's handling of a file, common to RDMA and TCP: checks the name, compares the checksum, and syncs the
//! file to disk.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use protocol::failure::RunFailure;
use protocol::file_message::{FileFin, FileHello};
use protocol::link::Link;
use protocol::message::Message;
use results::text::printable;

use super::channel::TransferEnd;
use super::digest::Digest;
use super::name;
use super::place::{Folder, Incoming};

/// Time limit for the sender's final message about a file.
const FIN_LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone, Copy)]
pub(super) struct ReceivedFile<'a> {
    pub(super) name: &'a str,
    pub(super) size_bytes: u64,
}

impl<'a> From<&'a FileHello> for ReceivedFile<'a> {
    fn from(hello: &'a FileHello) -> Self {
        ReceivedFile { name: &hello.name, size_bytes: hello.size_bytes }
    }
}

/// Waits for the sender's checksum, compares it, and syncs the file to disk; returns the time that the sync took, in
/// seconds.
pub(super) fn finish(
    link: &Link,
    folder: &Folder,
    incoming: &Incoming,
    received_file: ReceivedFile<'_>,
    digest: Digest,
    stop: &AtomicBool,
) -> Result<f64, RunFailure> {
    let theirs = match TransferEnd::Receiver.recv(link, FIN_LIMIT, stop)? {
        Message::FileFin(FileFin { digest }) => digest,
        other => return Err(link.unexpected("file_fin", &other).into()),
    };
    if theirs.parse() != Ok(digest) {
        let theirs = printable(&theirs, 40);
        return Err(RunFailure::new(
            format!(
                "the receiver discarded {:?}: it arrived with checksum {digest}, and was sent with {theirs}",
                received_file.name
            ),
            Some("send it again, and check memory, cables and firmware: the device or the network corrupts data".into()),
        ));
    }
    let began = Instant::now();
    incoming.sync().map_err(|error| {
        let ReceivedFile { name, size_bytes } = received_file;
        folder.call(error, "syncing", name, size_bytes)
    })?;
    Ok(began.elapsed().as_secs_f64())
}

pub(super) fn check_name(text: &str) -> Result<(), RunFailure> {
    name::check(text).map_err(|error| {
        RunFailure::refused(
            format!("the receiver does not take {:?} as a name: {error}", printable(text, 100)),
            "send it under another name",
        )
    })
}
