//! Runs the workers on their own threads for one file, and checks the link and device meanwhile.

use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

use machine::threads::{keep_to, spawn_scoped};
use protocol::failure::RunFailure;
use protocol::link::Link;

use super::channel::ChannelWorker;
use super::chunks::{FileProgress, WorkerBuffers};
use super::digest::Digest;

/// Interval of these checks.
const TICK: Duration = Duration::from_millis(20);

/// How long to wait for the peer's reason after an error here.
const REASON_LIMIT: Duration = Duration::from_millis(300);

/// Runs `work` for each worker on its own thread, and calls `watch` at intervals, until all are done or an error
/// occurs; returns the sum of their digests.
pub(super) fn run<W: Send>(
    workers: &mut [ChannelWorker<W>],
    benches: &mut [WorkerBuffers],
    progress: &FileProgress,
    work: &(impl Fn(&mut ChannelWorker<W>, &mut WorkerBuffers) -> Result<Digest, RunFailure> + Sync),
    mut watch: impl FnMut() -> Result<(), RunFailure>,
) -> Result<Digest, RunFailure> {
    let (done, all_done) = bounded(workers.len());
    thread::scope(|scope| {
        let mut failure = None;
        let mut threads = Vec::with_capacity(workers.len());
        for (worker, buffers) in workers.iter_mut().zip(benches) {
            let done = done.clone();
            let spawned = spawn_scoped(scope, "chunks", move || {
                // Where the kernel refuses it runs anywhere, more slowly.
                let _ = keep_to(&worker.cores);
                let result = work(worker, buffers);
                if result.is_err() {
                    progress.halt();
                }
                // The channel has room for all.
                let _ = done.send(());
                result
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    failure = Some(error.into());
                    progress.halt();
                    break;
                }
            }
        }
        let mut running = threads.len();
        while running > 0 {
            match all_done.recv_timeout(TICK) {
                Ok(()) => running -= 1,
                Err(RecvTimeoutError::Timeout) if failure.is_none() => {
                    failure = watch().err();
                    if failure.is_some() {
                        progress.halt();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let mut digest = Digest::default();
        for thread in threads {
            match thread.join() {
                Ok(Ok(part)) => digest.merge(part),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        failure.map_or(Ok(digest), Err)
    })
}

/// The peer's reason for an error, if it sends one, else the error found here: a QP also breaks when the peer gives
/// up.
pub(super) fn reason(link: &Link, found: RunFailure, stop: &AtomicBool) -> RunFailure {
    if found.link_lost || found.interrupted || link.check().is_err() {
        return link.check().err().map_or(found, RunFailure::from);
    }
    match link.recv(REASON_LIMIT, stop) {
        Err(error) if error.is_final() => error.into(),
        _ => found,
    }
}
