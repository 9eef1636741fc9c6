//! Errors of a run that workers met: failed completions, refused posts and wrong payloads. Keeps the first real error
//! apart from the flushes that follow it.

use std::fmt;

use settings::Op;
use verbs::{VerbsError, WcStatus};

use super::pattern::WrongByte;

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
    /// The vendor's error code.
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

/// All errors that one worker met.
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
