//! The result of one worker, returned at the end of a run.

use std::fmt;

use metrics::latency::Samples;
use settings::Op;
use verbs::{VerbsError, WcStatus};

use crate::operation::WrongByte;

/// One worker's part of a run: what a thread did for one flow.
pub struct WorkerReport {
    /// Its number among the flow's workers, from 0.
    pub index: usize,
    /// The number of its thread, from 0. Workers of several flows may have one thread.
    pub thread: usize,
    /// The core that the thread was pinned to.
    pub core: Option<usize>,
    /// Raw clock readings when its window opened and closed; `None` unless it did both.
    pub window_raw: Option<(u64, u64)>,
    /// For how long it did not look at its CQs across the start and across the end of the window, in raw clock units.
    pub unattended_raw: [u64; 2],
    /// For how long it was away within its window, in raw clock units: the times between two looks at its CQs that are longer
    /// than a pass. Where a pass takes so long, the thread's CPU time tells that it worked.
    pub away_raw: u64,
    /// Raw clock readings between which it saw no completion for the longest time of its window; `None` where that is short.
    pub stall_raw: Option<(u64, u64)>,
    /// CPU time of the thread in the window, for all of its flows.
    pub cpu_seconds: f64,
    /// Polls of a CQ in the window.
    pub polls: u64,
    /// Polls in the window that found nothing.
    pub empty_polls: u64,
    /// How often in the window the next message found the send queue of its QP full; 0 where each QP is its own source.
    pub blocked: u64,
    /// Its counts of each QP of the run, by index.
    pub qps: Vec<QpReport>,
    /// From the device's stamp of a completion until the worker saw it, with stamps.
    pub notices: Option<Samples>,
    /// An open loop's part; `None` of a closed loop.
    pub load: Option<WorkerLoad>,
    /// Its part in lock-step; `None` of other flows.
    pub steps: Option<WorkerSteps>,
    pub trouble: Trouble,
}

/// What a worker saw of flows in lock-step.
pub struct WorkerSteps {
    /// How long steps and iterations of the node took that began in the window, at the one worker that records them: from what
    /// one needs until what the next one needs is there.
    pub step: Option<Samples>,
    /// Of iterations, without pauses.
    pub iteration: Option<Samples>,
    /// The last steps that the flow ended, by number: nanoseconds until all messages on the worker's QPs were acknowledged.
    pub times: Vec<(u64, u32)>,
}

/// What a worker offered in an open loop.
pub struct WorkerLoad {
    /// Messages planned in the window.
    pub offered: u64,
    /// Of these, messages that were not posted until its end, or until so long after it as they are waited for.
    pub never_sent: u64,
    /// Of these, messages that found the send queue of their QP full, or others waiting for it.
    pub queue_full_messages: u64,
    /// How long send queues were full in the window while messages waited, summed over QPs, in nanoseconds.
    pub queue_full_ns: u64,
    /// Messages of `offered` that were not posted in the window, though their queues had room.
    pub late_with_room: u64,
    /// The times of one message in so many are recorded, chosen at random.
    pub recorded_one_in: u64,
    pub gaps: GapSamples,
    /// By index of the QP: from post to completion seen; `None` of a QP that it does not serve.
    pub service: Vec<Option<Samples>>,
    /// How late it posted, for each QP on which it posts, in the order of their indices.
    pub lateness: Vec<(usize, Samples)>,
}

/// Samples of the times between posts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapSamples {
    /// Messages from the first post of a sample to its last; 0 where none was taken.
    pub messages_of_gap: u64,
    /// Each sample's time, divided by the mean gap between messages.
    pub mean_gaps: Vec<f64>,
}

/// One QP's part of a worker's report.
pub struct QpReport {
    /// Messages of its send queue that had completed when the window opened.
    pub completed_before: u64,
    /// Messages of its send queue that completed in the window.
    pub completed: u64,
    pub completed_bytes: u64,
    /// COMPARE-SWAPs of them that were made.
    pub swaps_made: u64,
    /// Messages received in the window.
    pub received: u64,
    pub received_bytes: u64,
    /// Messages posted since the QP was made.
    pub posted_in_all: u64,
    /// Messages received since the QP was made.
    pub received_in_all: u64,
    /// Latencies of messages posted in the window; `None` where this worker records none.
    pub latency: Option<Samples>,
}

// Errors of a run that workers met: failed completions, refused posts and wrong payloads.

/// Errors of each kind that a worker keeps in full; the rest are only counted.
const KEPT: usize = 8;

/// A completion that did not succeed.
#[derive(Clone, Debug)]
pub struct FailedCompletion {
    /// Raw clock reading when it was polled; orders the errors of several workers.
    pub seen_raw: u64,
    pub qp: usize,
    pub qpn: u32,
    /// The operation; `None` for a receive.
    pub op: Option<Op>,
    pub status: WcStatus,
    /// The vendor's error code; 0 if there is none.
    pub vendor_error: u32,
    /// Payload of the largest packet that messages of this flow have, if none of them has been acknowledged before;
    /// otherwise 0.
    pub untried_packet_bytes: u32,
}

/// Payload of a packet that fits a frame with 1500 bytes.
const COMMON_PACKET_BYTES: u32 = 1024;

/// What to do where only large packets may be lost.
const LARGE_PACKETS: &str = "try --mtu 1024: if it works, something between the hosts drops frames above 1500 bytes, \
                             so raise its MTU; otherwise ";

impl FailedCompletion {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        let is_about_size = self.status == WcStatus::RETRY_EXC_ERR
            && self.untried_packet_bytes > COMMON_PACKET_BYTES;
        let first = if is_about_size { LARGE_PACKETS } else { "" };
        format!("{first}{}", self.status.remedy())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A SEND's payload in the receiver's buffer.
    ReceiveBuffer,
    /// What a WRITE or an atomic operation left in the target's memory.
    TargetMemory,
    /// What a READ or an atomic operation fetched, in the initiator's memory.
    LocalMemory,
}

/// A payload that failed verification.
#[derive(Clone, Debug)]
pub enum Mismatch {
    Byte {
        place: Place,
        qp: u32,
        /// Position in the sender's ring.
        position: u32,
        /// How often that position was used before, modulo 2^16.
        sequence: u16,
        size_bytes: u32,
        wrong: WrongByte,
    },
    /// A message has a wrong length.
    Length { qp: u32, found_bytes: u32, expected_bytes: u32 },
    /// 8 bytes of an atomic operation have a value that they cannot have.
    Word {
        place: Place,
        /// Index of the QP, the first of those that use the word.
        qp: u32,
        /// Position in the sender's ring, the first of those that use the word.
        position: u32,
        found: u64,
        /// The only right value; `None` where several are.
        expected: Option<u64>,
    },
    /// Messages of a ring position were lost or duplicated.
    Count {
        qp: u32,
        /// Position in the sender's ring.
        position: u32,
        found: u64,
        expected: u64,
    },
}

/// All errors that one worker met. Keeps the first real error apart from the flushes that follow it.
#[derive(Debug, Default)]
pub struct Trouble {
    /// The first few failed completions that are causes.
    pub failed: Vec<FailedCompletion>,
    /// Number of failed completions that are causes.
    pub failed_count: u64,
    /// Completions flushed after another error.
    pub flushed_count: u64,
    /// The first flushed completion, if it came before any cause.
    pub first_flush: Option<FailedCompletion>,
    /// The first few wrong payloads.
    pub mismatches: Vec<Mismatch>,
    pub mismatch_count: u64,
    /// A post or a poll that was refused.
    pub refused: Option<VerbsError>,
}

impl Trouble {
    /// Reserves all memory that it can need, so that nothing allocates later.
    pub fn new() -> Self {
        Trouble {
            failed: Vec::with_capacity(KEPT),
            mismatches: Vec::with_capacity(KEPT),
            ..Trouble::default()
        }
    }

    pub fn completion(&mut self, failed: FailedCompletion) {
        if failed.status.is_flush() {
            self.flushed_count += 1;
            self.first_flush.get_or_insert(failed);
        } else {
            self.failed_count += 1;
            if self.failed.len() < KEPT {
                self.failed.push(failed);
            }
        }
    }

    pub fn mismatch(&mut self, mismatch: Mismatch) {
        self.mismatch_count += 1;
        if self.mismatches.len() < KEPT {
            self.mismatches.push(mismatch);
        }
    }

    /// The error count of a result: causes and wrong payloads, without their consequences.
    pub fn errors(&self) -> u64 {
        self.failed_count + self.mismatch_count + u64::from(self.refused.is_some())
    }
}

impl fmt::Display for FailedCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(f, "{} ", op.name().to_uppercase())?,
            None => f.write_str("receive ")?,
        }
        write!(f, "on QP {} (number {:#08x}) failed with {}", self.qp, self.qpn, self.status)?;
        if self.vendor_error != 0 {
            write!(f, ", vendor error {:#x}", self.vendor_error)?;
        }
        write!(f, ": {}", self.status.meaning())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Place::ReceiveBuffer => "the receive buffer",
            Place::TargetMemory => "the target's memory",
            Place::LocalMemory => "the initiator's memory",
        })
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Byte { place, qp, position, sequence, size_bytes, wrong } => write!(
                f,
                "wrong payload in {place}: QP {qp}, slot {position}, sequence {sequence}: byte {} of {size_bytes} \
                 is {:#04x} and should be {:#04x}",
                wrong.byte, wrong.found, wrong.expected
            ),
            Mismatch::Length { qp, found_bytes, expected_bytes } => write!(
                f,
                "wrong length on QP {qp}: {found_bytes} bytes arrived of a message of {expected_bytes}"
            ),
            Mismatch::Word { place, qp, position, found, expected } => {
                write!(f, "wrong value in {place}: QP {qp}, slot {position}: {found:#x}")?;
                match expected {
                    Some(expected) => write!(f, ", and {expected:#x} was added"),
                    None => f.write_str(", which no operation writes"),
                }
            }
            Mismatch::Count { qp, position, found, expected } => write!(
                f,
                "messages lost or doubled on QP {qp}, slot {position}: {found} arrived of {expected}"
            ),
        }
    }
}
