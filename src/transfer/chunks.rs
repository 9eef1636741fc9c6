//! The workers' loops over the chunks of one file: the sender's reads, digests and writes; the receiver's takes,
//! digests and stores. Each worker has its own QPs and CQ, so workers share only counters. Loops allocate nothing and
//! take no lock; they sleep if there is nothing to do.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datapath::FailedCompletion;
use protocol::failure::RunFailure;
use settings::Op;
use verbs::{Completion, ImmediateWrite, Operation, VerbsError, Wakeup, WcBatch, WcStatus};

use super::channel::{ChannelQp, ChannelWorker, ChannelWrId};
use super::digest::Digest;
use super::place::{Incoming, PlaceError};
use super::window::{ReceiveWindow, SendWindow};

/// How long a worker polls in vain before it sleeps: about the latency that a sleep adds to a completion.
const SPIN: Duration = Duration::from_micros(50);

/// For the status that a receiver returns after losing its place in a message.
const LOSSY_SOFT_ROCE: &str = "Soft-RoCE can report this when packets of a message were lost: --chunk 4K --window 64 \
                               sends one packet a message, and a higher --timeout helps";

/// The progress of one file, which is cut into chunks.
pub(super) struct FileProgress {
    pub(super) size_bytes: u64,
    pub(super) chunk_bytes: u64,
    chunks: u64,
    /// The next chunk that no worker has taken.
    next: AtomicU64,
    /// Chunks that have arrived at the receiver.
    done: AtomicU64,
    halted: AtomicBool,
    wakeups: Vec<Arc<Wakeup>>,
}

impl FileProgress {
    pub(super) fn new<W>(
        size_bytes: u64,
        chunk_bytes: u32,
        workers: &[ChannelWorker<W>],
    ) -> FileProgress {
        let chunk_bytes = u64::from(chunk_bytes);
        FileProgress {
            size_bytes,
            chunk_bytes,
            chunks: size_bytes.div_ceil(chunk_bytes),
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            halted: AtomicBool::new(false),
            wakeups: workers.iter().map(|worker| Arc::clone(worker.sleeper.wakeup())).collect(),
        }
    }

    /// Whether the file is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    pub(super) fn done_bytes(&self) -> u64 {
        let done = self.done.load(Ordering::Relaxed);
        done.saturating_mul(self.chunk_bytes).min(self.size_bytes)
    }

    pub(super) fn halt(&self) {
        self.halted.store(true, Ordering::Release);
        self.wake();
    }

    fn wake(&self) {
        for wakeup in &self.wakeups {
            wakeup.wake();
        }
    }

    fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    /// Offset of chunk `index` in the file.
    fn start(&self, index: u64) -> u64 {
        index * self.chunk_bytes
    }

    /// Length of chunk `index`; fits a u32, as every chunk does.
    fn length(&self, index: u64) -> usize {
        self.chunk_bytes.min(self.size_bytes - self.start(index)) as usize
    }
}

/// Buffers that a worker keeps between files.
pub(super) struct WorkerBuffers {
    batch: WcBatch,
    scratch: Vec<u8>,
}

impl WorkerBuffers {
    pub(super) fn new(chunk_bytes: u32) -> WorkerBuffers {
        WorkerBuffers { batch: WcBatch::new(), scratch: vec![0; chunk_bytes as usize] }
    }
}

/// The failure to read a source to its end.
pub(super) fn unreadable(name: &str, error: &io::Error) -> RunFailure {
    let (text, hint) = match error.kind() {
        io::ErrorKind::UnexpectedEof => (
            format!("{name:?} became shorter while it was sent"),
            "send it again when no program writes to it",
        ),
        _ => (format!("reading {name:?}: {error}"), "look at the file and at `dmesg`"),
    };
    RunFailure::new(text, Some(hint.into()))
}

/// Sends chunks until none is left and the receiver has released all slots; returns the digest of this worker's
/// chunks.
pub(super) fn send(
    worker: &mut ChannelWorker<SendWindow>,
    buffers: &mut WorkerBuffers,
    progress: &FileProgress,
    file: &File,
    name: &str,
) -> Result<Digest, RunFailure> {
    let mut digest = Digest::default();
    let mut idle = IdleSince::default();
    let mut exhausted = false;
    loop {
        if progress.is_halted() {
            return Ok(digest);
        }
        let mut moved = false;
        for place in 0..worker.qps.len() {
            let Some(slot) = worker.qps[place].window.free_slot() else {
                continue;
            };
            let index = if exhausted {
                progress.chunks
            } else {
                progress.next.fetch_add(1, Ordering::Relaxed)
            };
            if index >= progress.chunks {
                exhausted = true;
                break;
            }
            let chunk = &mut buffers.scratch[..progress.length(index)];
            file.read_exact_at(chunk, progress.start(index))
                .map_err(|error| unreadable(name, &error))?;
            digest.add(index, chunk);
            let qp = &mut worker.qps[place];
            post_chunk(qp, place, progress, slot, index, chunk)?;
            moved = true;
            // Poll meanwhile: on the embedded device, polling does the device's work.
            take_credits(worker, buffers, progress)?;
        }
        moved |= take_credits(worker, buffers, progress)?;
        if exhausted && worker.qps.iter().all(|qp| qp.window.is_idle()) {
            return Ok(digest);
        }
        idle.after(moved, worker)?;
    }
}

fn post_chunk(
    qp: &mut ChannelQp<SendWindow>,
    place: usize,
    progress: &FileProgress,
    slot: u64,
    index: u64,
    chunk: &[u8],
) -> Result<(), RunFailure> {
    let start = slot * progress.chunk_bytes;
    let offset = qp.offset + start as usize;
    qp.poster.memory().write_at(offset, chunk);
    qp.poster
        .write(&ImmediateWrite {
            wr_id: ChannelWrId::send(place).0,
            offset,
            length_bytes: chunk.len() as u32,
            address: qp.address + start,
            rkey: qp.rkey,
            // Fits: `source` refuses files with more chunks.
            immediate: index as u32,
        })
        .map_err(|error| error.into_error(Operation::PostSend, qp.poster.qpn()))?;
    qp.window.posted();
    Ok(())
}

/// Handles completions at the sender; returns whether there were any.
fn take_credits(
    worker: &mut ChannelWorker<SendWindow>,
    buffers: &mut WorkerBuffers,
    progress: &FileProgress,
) -> Result<bool, RunFailure> {
    let completions = worker.cq.poll(&mut buffers.batch)?;
    for completion in completions {
        let id = ChannelWrId(completion.wr_id());
        let Some(qp) = worker.qps.get_mut(id.qp()) else {
            continue;
        };
        succeeded(completion, qp, Op::Write)?;
        if !id.is_receive() {
            qp.window.completed();
            continue;
        }
        let taken = completion.immediate().ok_or_else(out_of_step)?;
        let news = qp.window.credit(taken).map_err(|_| out_of_step())?;
        progress.done.fetch_add(news, Ordering::Relaxed);
        expect_more(qp, id.qp())?;
    }
    Ok(!completions.is_empty())
}

/// Stores chunks until the workers together have all; returns the digest of this worker's chunks.
pub(super) fn receive(
    worker: &mut ChannelWorker<ReceiveWindow>,
    buffers: &mut WorkerBuffers,
    progress: &FileProgress,
    file: &Incoming,
    unwritten: &(dyn Fn(io::Error) -> PlaceError + Sync),
) -> Result<Digest, RunFailure> {
    let mut digest = Digest::default();
    let mut idle = IdleSince::default();
    loop {
        if progress.is_halted() {
            return Ok(digest);
        }
        let is_done = progress.done.load(Ordering::Relaxed) >= progress.chunks;
        if is_done && worker.qps.iter().all(|qp| !qp.window.owes()) {
            return Ok(digest);
        }
        let completions = worker.cq.poll(&mut buffers.batch)?;
        for completion in completions {
            let id = ChannelWrId(completion.wr_id());
            let Some(qp) = worker.qps.get_mut(id.qp()) else {
                continue;
            };
            succeeded(completion, qp, Op::Send)?;
            if id.is_receive() {
                let index = chunk_of(completion, progress)?;
                let slot = qp.window.next_slot() * progress.chunk_bytes;
                let chunk = &mut buffers.scratch[..progress.length(index)];
                qp.poster.memory().read_at(qp.offset + slot as usize, chunk);
                digest.add(index, chunk);
                file.write_at(chunk, progress.start(index)).map_err(unwritten)?;
                qp.window.taken();
                expect_more(qp, id.qp())?;
                if progress.done.fetch_add(1, Ordering::Relaxed) + 1 == progress.chunks {
                    progress.wake();
                }
            } else {
                qp.window.credit_sent();
            }
            if let Some(taken) = qp.window.credit() {
                qp.poster
                    .tell(ChannelWrId::send(id.qp()).0, taken)
                    .map_err(|error| error.into_error(Operation::PostSend, qp.poster.qpn()))?;
            }
        }
        let moved = !completions.is_empty();
        idle.after(moved, worker)?;
    }
}

/// The chunk that a receive's completion announces; checks its number and length.
fn chunk_of(completion: &Completion, progress: &FileProgress) -> Result<u64, RunFailure> {
    let index = u64::from(completion.immediate().ok_or_else(out_of_step)?);
    let fits = index < progress.chunks && progress.length(index) == completion.byte_len() as usize;
    fits.then_some(index).ok_or_else(out_of_step)
}

fn out_of_step() -> RunFailure {
    RunFailure::new(
        "the peer sent a chunk or a credit that does not fit the file",
        Some("install the same version of rocebench on both ends".into()),
    )
}

fn expect_more<W>(qp: &ChannelQp<W>, place: usize) -> Result<(), RunFailure> {
    qp.poster
        .receive(ChannelWrId::receive(place).0)
        .map_err(|error| error.into_error(Operation::PostRecv, qp.poster.qpn()))?;
    Ok(())
}

fn succeeded<W>(completion: &Completion, qp: &mut ChannelQp<W>, op: Op) -> Result<(), RunFailure> {
    if completion.is_success() {
        qp.untried_packet_bytes = 0;
        return Ok(());
    }
    let status = completion.status();
    let failed = FailedCompletion {
        seen_raw: 0,
        qp: qp.index,
        qpn: qp.poster.qpn(),
        op: (!ChannelWrId(completion.wr_id()).is_receive()).then_some(op),
        status,
        vendor_error: completion.vendor_error(),
        untried_packet_bytes: qp.untried_packet_bytes,
    };
    let hint = match status {
        WcStatus::REM_INV_REQ_ERR => LOSSY_SOFT_ROCE.to_owned(),
        _ => failed.remedy(),
    };
    Err(RunFailure::new(failed.to_string(), Some(hint)))
}

/// Since when a worker has had nothing to do.
#[derive(Default)]
struct IdleSince(Option<Instant>);

impl IdleSince {
    /// Called after each pass; `moved` is whether it moved a chunk. Polls on for a while, then sleeps until a
    /// completion or the wakeup.
    fn after<W>(&mut self, moved: bool, worker: &mut ChannelWorker<W>) -> Result<(), VerbsError> {
        if moved {
            self.0 = None;
            return Ok(());
        }
        if self.0.get_or_insert_with(Instant::now).elapsed() < SPIN {
            std::hint::spin_loop();
            return Ok(());
        }
        // Poll again after arming: a completion from before brings no event.
        if worker.cq.arm()? {
            return Ok(());
        }
        worker.sleeper.wait(None)
    }
}
