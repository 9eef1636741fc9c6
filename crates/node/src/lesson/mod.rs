//! Runs one transfer on one QP step by step, optionally with one real mistake, and reports each step as typed facts.
//!
//! Client `prepare` → `endpoints` both ways → both to RTS → server `ready` → the transfer → client
//! `look` → server `seen`.

mod calls;
mod ends;
mod objects;

use protocol::endpoints::{Endpoints, EndpointsError};
use protocol::lesson::Mistake;
use settings::Op;
use verbs::{Operation, QpState, RecordedPacket, VerbsError, WcStatus};

pub use ends::LessonClient;
pub(crate) use ends::serve_lesson;

/// An event of a lesson.
#[derive(Debug)]
pub enum Event {
    Begin(Box<Begin>),
    Step(Step),
}

/// The two ends and their transfer.
#[derive(Clone, Debug)]
pub struct Begin {
    pub op: Op,
    /// The deliberate mistake, if any.
    pub mistake: Option<Mistake>,
    pub length_bytes: u32,
    pub device: String,
    pub port: u8,
    /// Whether it is the embedded software device.
    pub embedded: bool,
    /// The address of the other end's server; `None` if it is in this process.
    pub server: Option<String>,
}

/// The topics of the steps, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each is the call or the thing of its name
pub enum Topic {
    Open,
    Port,
    Pd,
    Mr,
    Cq,
    Qp,
    Init,
    Exchange,
    Rtr,
    Rts,
    Ready,
    Post,
    Poll,
    Wire,
    Look,
    TearDown,
}

#[derive(Debug)]
pub struct Step {
    pub topic: Topic,
    pub parts: Vec<Part>,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    This,
    Other,
}

/// A part of a step.
#[derive(Debug)]
pub enum Part {
    /// A call and its results.
    Call(Call),
    /// QP states, in order; each was queried.
    States(End, Vec<QpState>),
    /// The arrays that the ends exchanged.
    Arrays(Box<Array>),
    Memory {
        /// The end that has it.
        end: End,
        /// Whether this is after the transfer.
        after: bool,
        /// Address of the first byte.
        address: u64,
        bytes: Vec<u8>,
        /// How many of the bytes are the message's.
        message_bytes: usize,
    },
    /// How long the completion took, and how often the CQ was empty before.
    Waited {
        /// Time since the post, in nanoseconds.
        ns: u64,
        /// Polls that found the CQ empty.
        empty_polls: u64,
    },
    /// Marks where the mistake is made.
    OnPurpose,
    /// An error, caused by the mistake or not.
    Error(String),
    /// The status of a failed completion.
    Failed(WcStatus),
    /// No completion came in this many seconds.
    Silence(u64),
    /// The other end's message about it.
    Theirs(String),
    /// Recorded packets, and this end's QPN.
    Packets {
        packets: Vec<RecordedPacket>,
        /// QPN of this end: packets to it are incoming.
        qpn: u32,
    },
    /// This program cannot record the packets.
    Unseen {
        /// The interface that carries them.
        netdev: Option<String>,
        /// Whether the device is software, whose packets the kernel sees.
        software: bool,
    },
}

/// The connection arrays of both ends.
#[derive(Clone, Debug)]
pub struct Array {
    pub ours: Endpoints,
    pub theirs: Endpoints,
}

/// A call as C code.
#[derive(Clone, Debug)]
pub struct Call {
    pub end: End,
    /// The call with its arguments.
    pub code: String,
    /// Members of its structs before the call.
    pub given: Vec<Field>,
    pub returned: String,
    /// Members of its structs after the call.
    pub came: Vec<Field>,
}

/// A member of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name of the member in `verbs.h`.
    pub name: &'static str,
    /// Its value, as C code or as a number.
    pub value: String,
    pub note: Option<Note>,
}

/// A remark on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words are in the catalogue of texts
pub enum Note {
    TheirQpn,
    TheirPsn,
    OurPsn,
    TheirGid,
    SourceGid,
    SmallerMtu,
    LargerMtu,
    WrongGid,
    WrongRkey,
    TheirAddress,
    TheirRkey,
    Timeout,
    RetryCnt,
    RnrRetry,
    RnrForEver,
    MinRnrTimer,
    RemoteMay,
    RemoteMayNot,
    Signalled,
    OurMemory,
    WrId,
}

impl Call {
    pub fn new(code: impl Into<String>, returned: impl Into<String>) -> Call {
        Call {
            end: End::This,
            code: code.into(),
            given: Vec::new(),
            returned: returned.into(),
            came: Vec::new(),
        }
    }

    pub(crate) fn at(mut self, end: End) -> Call {
        self.end = end;
        self
    }

    pub(crate) fn given(mut self, name: &'static str, value: impl ToString) -> Call {
        self.given.push(Field::new(name, value));
        self
    }

    pub fn given_as(mut self, name: &'static str, value: impl ToString, note: Note) -> Call {
        self.given.push(Field::new(name, value).noted(note));
        self
    }

    pub(crate) fn came(mut self, name: &'static str, value: impl ToString) -> Call {
        self.came.push(Field::new(name, value));
        self
    }

    pub(crate) fn came_as(mut self, name: &'static str, value: impl ToString, note: Note) -> Call {
        self.came.push(Field::new(name, value).noted(note));
        self
    }
}

impl Field {
    #[allow(clippy::needless_pass_by_value)] // callers give literals, numbers and fresh text
    fn new(name: &'static str, value: impl ToString) -> Field {
        Field { name, value: value.to_string(), note: None }
    }

    fn noted(mut self, note: Note) -> Field {
        self.note = Some(note);
        self
    }
}

/// The outcome of a lesson.
#[derive(Debug)]
pub struct Outcome {
    /// The error, if there was one.
    pub error: Option<ObservedError>,
    pub arrived: bool,
}

/// The error that a mistake caused.
#[derive(Debug)]
pub enum ObservedError {
    Call(VerbsError),
    /// A completion with an error.
    Completion(WcStatus),
    /// The ends' arrays do not fit each other.
    Array(EndpointsError),
    NoCompletion,
}

impl ObservedError {
    /// Whether `mistake` can cause it. Devices differ in where they detect one.
    pub fn is_caused_by(&self, mistake: Mistake) -> bool {
        let refused_at_rtr = matches!(
            self,
            ObservedError::Call(VerbsError::Call { operation: Operation::ModifyToRtr { .. }, .. })
        );
        match mistake {
            Mistake::Gid => refused_at_rtr || completes_as(self, &[WcStatus::RETRY_EXC_ERR.0]),
            Mistake::Rkey => completes_as(self, &[10]),
            Mistake::NoRecv => completes_as(self, &[13]),
            Mistake::QpCount => matches!(self, ObservedError::Array(EndpointsError::Count { .. })),
            // Refused as invalid, reported as an error by the other end, or dropped silently.
            Mistake::Mtu => {
                refused_at_rtr || completes_as(self, &[9, 11, WcStatus::RETRY_EXC_ERR.0])
            }
        }
    }
}

fn completes_as(error: &ObservedError, codes: &[u32]) -> bool {
    matches!(error, ObservedError::Completion(status) if codes.contains(&status.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_errors_are_not_the_promised_ones() {
        let refused = || {
            ObservedError::Call(VerbsError::Call {
                operation: Operation::ModifyToRtr { gid_index: None },
                object: String::new(),
                source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
            })
        };
        assert!(refused().is_caused_by(Mistake::Gid));
        assert!(!refused().is_caused_by(Mistake::Rkey));
        assert!(ObservedError::Completion(WcStatus(10)).is_caused_by(Mistake::Rkey));
        for &mistake in Mistake::ALL {
            assert!(!ObservedError::NoCompletion.is_caused_by(mistake));
            assert!(!ObservedError::Completion(WcStatus::FLUSHED).is_caused_by(mistake));
        }
        let count = EndpointsError::Count { expected: 2, got: 1 };
        assert!(ObservedError::Array(count).is_caused_by(Mistake::QpCount));
        assert!(!ObservedError::Array(EndpointsError::Mtu(1)).is_caused_by(Mistake::QpCount));
    }
}
