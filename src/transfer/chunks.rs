//! The workers' loops over the chunks of one file: the sender's reads, digests and writes; the receiver's takes,
//! digests and stores. Each worker has its own QPs and CQ, so workers share only counters. Loops allocate nothing and
//! take no lock; they sleep if there is nothing to do.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use crossbeam_channel::{RecvTimeoutError, bounded};
use datapath::FailedCompletion;
use machine::threads::{keep_to, spawn_scoped};
use protocol::failure::RunFailure;
use protocol::link::Link;
use settings::Op;
use verbs::{Completion, ImmediateWrite, Operation, VerbsError, Wakeup, WcBatch, WcStatus};

use super::channel::{ChannelQp, ChannelWorker, ChannelWrId};
use super::files::{Digest, Incoming, PlaceError};

/// How long a worker polls in vain before it sleeps: about the latency that a sleep adds to a completion.
const SPIN: Duration = Duration::from_micros(50);

/// Interval at which the link and the device are checked while workers run.
const TICK: Duration = Duration::from_millis(20);

/// How long to wait for the peer's reason after an error here.
const REASON_LIMIT: Duration = Duration::from_millis(300);

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
            // Fits: files with more chunks are refused before they are sent.
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

/// Runs `work` for each worker on its own thread, and calls `watch` at intervals, until all are done or an error
/// occurs; returns the sum of their digests.
pub(super) fn run_workers<W: Send>(
    workers: &mut [ChannelWorker<W>],
    buffers: &mut [WorkerBuffers],
    progress: &FileProgress,
    work: &(impl Fn(&mut ChannelWorker<W>, &mut WorkerBuffers) -> Result<Digest, RunFailure> + Sync),
    mut watch: impl FnMut() -> Result<(), RunFailure>,
) -> Result<Digest, RunFailure> {
    let (done, ends) = bounded(workers.len());
    thread::scope(|scope| {
        let mut failure = None;
        let mut threads = Vec::with_capacity(workers.len());
        for (worker, own_buffers) in workers.iter_mut().zip(buffers) {
            let is_done = done.clone();
            let spawned = spawn_scoped(scope, "chunks", move || {
                // Where the kernel refuses it runs anywhere, more slowly.
                let _ = keep_to(&worker.cores);
                let result = work(worker, own_buffers);
                if result.is_err() {
                    progress.halt();
                }
                // The channel has room for all.
                let _ = is_done.send(());
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
            match ends.recv_timeout(TICK) {
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
pub(super) fn peers_reason(link: &Link, found: RunFailure, stop: &AtomicBool) -> RunFailure {
    if found.link_lost || found.interrupted || link.check().is_err() {
        return link.check().err().map_or(found, RunFailure::from);
    }
    match link.recv(REASON_LIMIT, stop) {
        Err(error) if error.is_final() => error.into(),
        _ => found,
    }
}

/// The sender's view of one QP: which slots of its memory are free. Both ends count alike: a QP delivers in order, so the n-th
/// chunk of a QP is in slot n modulo the window at both ends, and no slot number is sent.
///
/// A slot is free again when its WRITE has completed, because the device may retransmit
/// it until then, and when the receiver has released it.
#[derive(Clone, Debug)]
pub(super) struct SendWindow {
    slots: u64,
    posted: u64,
    completed: u64,
    credited: u64,
}

/// The peer released more slots than it was sent chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMuchCredit;

impl SendWindow {
    pub(super) fn new(slots: u32) -> Self {
        SendWindow { slots: u64::from(slots.max(1)), posted: 0, completed: 0, credited: 0 }
    }

    /// The slot of the next chunk, if it is free.
    pub(super) fn free_slot(&self) -> Option<u64> {
        let reusable = self.completed.min(self.credited);
        (self.posted - reusable < self.slots).then_some(self.posted % self.slots)
    }

    /// Records that the next chunk was posted, in the free slot.
    pub(super) fn posted(&mut self) {
        self.posted += 1;
    }

    /// Records that a WRITE has completed.
    pub(super) fn completed(&mut self) {
        self.completed += 1;
    }

    /// Records that the receiver has taken this many chunks in total, modulo 2^32; returns how many of them are new.
    pub(super) fn credit(&mut self, taken: u32) -> Result<u64, TooMuchCredit> {
        // Compares with the low 32 bits of the count so far.
        let news = u64::from(taken.wrapping_sub(self.credited as u32));
        if self.credited + news > self.posted {
            return Err(TooMuchCredit);
        }
        self.credited += news;
        Ok(news)
    }

    /// Whether no chunk is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.posted == self.completed && self.posted == self.credited
    }
}

/// The receiver's view of one QP. A credit is the total number of chunks taken, so one credit may stand for several
/// chunks.
#[derive(Clone, Debug)]
pub(super) struct ReceiveWindow {
    slots: u64,
    taken: u64,
    granted: u64,
    telling: u64,
}

impl ReceiveWindow {
    pub(super) fn new(slots: u32) -> Self {
        ReceiveWindow { slots: u64::from(slots.max(1)), taken: 0, granted: 0, telling: 0 }
    }

    /// The slot of the next chunk to arrive.
    pub(super) fn next_slot(&self) -> u64 {
        self.taken % self.slots
    }

    /// Records that the chunk was copied out of its slot.
    pub(super) fn taken(&mut self) {
        self.taken += 1;
    }

    /// The credit to send now; none if nothing has changed, or if earlier credits fill the send queue.
    pub(super) fn credit(&mut self) -> Option<u32> {
        if self.taken == self.granted || self.telling == self.slots {
            return None;
        }
        self.granted = self.taken;
        self.telling += 1;
        // Modulo 2^32.
        Some(self.taken as u32)
    }

    /// Records that a credit's SEND has completed.
    pub(super) fn credit_sent(&mut self) {
        self.telling = self.telling.saturating_sub(1);
    }

    /// Whether chunks were taken that no credit reports yet.
    pub(super) fn owes(&self) -> bool {
        self.taken != self.granted
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// A model of one QP: both ends and the messages between them.
    struct Pair {
        sender: SendWindow,
        receiver: ReceiveWindow,
        /// The chunk in each slot of the receiver.
        slots: Vec<Option<u64>>,
        writes: VecDeque<(u64, u64)>,
        written: u64,
        credits: VecDeque<u32>,
        credits_told: u64,
        sent: u64,
        got: Vec<u64>,
    }

    impl Pair {
        fn starting_at(slots: u32, start: u64) -> Pair {
            let mut sender = SendWindow::new(slots);
            (sender.posted, sender.completed, sender.credited) = (start, start, start);
            let mut receiver = ReceiveWindow::new(slots);
            (receiver.taken, receiver.granted) = (start, start);
            Pair {
                sender,
                receiver,
                slots: vec![None; slots as usize],
                writes: VecDeque::new(),
                written: 0,
                credits: VecDeque::new(),
                credits_told: 0,
                sent: 0,
                got: Vec::new(),
            }
        }

        /// Performs one event; returns whether it was possible.
        fn step(&mut self, what: u8, total: u64) -> bool {
            match what % 6 {
                0 if self.sent < total => {
                    let Some(slot) = self.sender.free_slot() else {
                        return false;
                    };
                    self.sender.posted();
                    self.writes.push_back((slot, self.sent));
                    self.sent += 1;
                    true
                }
                // A WRITE arrives, in order.
                1 => self.writes.pop_front().is_some_and(|(slot, chunk)| {
                    let old = self.slots[slot as usize].replace(chunk);
                    assert_eq!(old, None, "a chunk was overwritten before it was taken");
                    self.written += 1;
                    true
                }),
                // Its acknowledgement arrives, perhaps after the credit.
                2 if self.written > 0 => {
                    self.written -= 1;
                    self.sender.completed();
                    true
                }
                3 => {
                    let slot = self.receiver.next_slot() as usize;
                    self.slots[slot].take().is_some_and(|chunk| {
                        self.got.push(chunk);
                        self.receiver.taken();
                        true
                    })
                }
                4 => self.receiver.credit().is_some_and(|credit| {
                    self.credits.push_back(credit);
                    self.credits_told += 1;
                    assert!(self.credits_told <= self.slots.len() as u64, "send queue");
                    assert!(self.credits.len() <= self.slots.len(), "receive queue");
                    true
                }),
                5 => {
                    if self.credits_told > self.credits.len() as u64 {
                        self.credits_told -= 1;
                        self.receiver.credit_sent();
                        return true;
                    }
                    self.credits
                        .pop_front()
                        .is_some_and(|credit| self.sender.credit(credit).unwrap() > 0)
                }
                _ => false,
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_overwritten_or_stuck_in_any_order(
            slots in 1_u32..6,
            start in prop_oneof![Just(0), Just(u64::from(u32::MAX) - 3), 0..u64::MAX / 2],
            total in 0_u64..40,
            order in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let mut pair = Pair::starting_at(slots, start);
            for what in order {
                pair.step(what, total);
            }
            while (0..6).any(|what| pair.step(what, total)) {}
            prop_assert_eq!(&pair.got, &(0..total).collect::<Vec<_>>());
            prop_assert!(pair.sender.is_idle() && !pair.receiver.owes());
        }

        #[test]
        fn credit_for_what_was_not_sent_is_refused(slots in 1_u32..9, posted in 0_u32..9, more in 1_u32..1000) {
            let mut window = SendWindow::new(slots);
            let mut sent = 0;
            while sent < posted && window.free_slot().is_some() {
                window.posted();
                sent += 1;
            }
            prop_assert_eq!(window.credit(sent + more), Err(TooMuchCredit));
            prop_assert_eq!(window.credit(sent), Ok(u64::from(sent)));
        }
    }

    #[test]
    fn a_slot_is_free_only_when_written_and_given_back() {
        let mut window = SendWindow::new(1);
        assert_eq!(window.free_slot(), Some(0));
        window.posted();
        assert_eq!(window.credit(1), Ok(1));
        assert_eq!(window.free_slot(), None, "it may still be sent again");
        window.completed();
        assert_eq!(window.free_slot(), Some(0));
    }
}
