//! The events of a lesson: its steps, each with the calls made, their arguments and their results.

use protocol::endpoints::Endpoints;
use settings::Op;
use verbs::{QpState, RecordedPacket, WcStatus};

use protocol::mistake::Mistake;

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
    /// Its name in `verbs.h`.
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

    pub(crate) fn of(mut self, end: End) -> Call {
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
