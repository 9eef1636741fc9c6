//! What a lesson tells while it happens: steps, each with the calls that were made, what went in and what came back.

use crate::protocol::endpoints::Endpoints;
use settings::Op;
use verbs::{QpState, RecordedPacket, WcStatus};

use super::Mistake;

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The ends have met.
    Begin(Box<Begin>),
    /// A step is done.
    Step(Step),
}

/// Who takes part.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The operation.
    pub op: Op,
    /// What goes wrong on purpose.
    pub mistake: Option<Mistake>,
    /// Bytes of the message.
    pub length_bytes: u32,
    /// This end's device.
    pub device: String,
    /// This end's port.
    pub port: u8,
    /// It is the embedded software device.
    pub embedded: bool,
    /// The address of the other end's server; `None`: it is in this process.
    pub server: Option<String>,
}

/// What a step is about, in the order of the steps.
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

/// A step.
#[derive(Debug)]
pub struct Step {
    /// What it is about.
    pub topic: Topic,
    /// What happened.
    pub parts: Vec<Part>,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one that posts.
    This,
    /// The server.
    Other,
}

/// Something to show in a step.
#[derive(Debug)]
pub enum Part {
    /// A call and what came back.
    Call(Call),
    /// States that a QP told, in order; each was asked for.
    States(End, Vec<QpState>),
    /// What both ends told each other.
    Arrays(Box<Array>),
    /// What memory holds.
    Memory {
        /// Whose it is.
        end: End,
        /// After the transfer.
        after: bool,
        /// Its first byte's address.
        address: u64,
        /// What it holds.
        bytes: Vec<u8>,
        /// Bytes of it that are the message's.
        message_bytes: usize,
    },
    /// How long the completion took, and how often the CQ was found empty before.
    Waited {
        /// From the post, in nanoseconds.
        ns: u64,
        /// Polls that found nothing.
        empty_polls: u64,
    },
    /// The mistake is made here.
    OnPurpose,
    /// What came of it, or of another error.
    Error(String),
    /// The completion says this.
    Failed(WcStatus),
    /// No completion came within so many seconds.
    Silence(u64),
    /// What the other end says of it.
    Theirs(String),
    /// Packets that passed, and this end's QPN.
    Packets {
        /// In their order.
        packets: Vec<RecordedPacket>,
        /// This end's QP: packets for it come in.
        qpn: u32,
    },
    /// Packets pass where this program does not see them.
    Unseen {
        /// On this interface.
        netdev: Option<String>,
        /// The device is software, whose packets the kernel sees.
        software: bool,
    },
}

/// The connection arrays of both ends.
#[derive(Clone, Debug)]
pub struct Array {
    /// This end's.
    pub ours: Endpoints,
    /// The other's.
    pub theirs: Endpoints,
}

/// A call as C code.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who called.
    pub end: End,
    /// The call with its arguments.
    pub code: String,
    /// What its structs held on the way in.
    pub given: Vec<Field>,
    /// What it returned.
    pub returned: String,
    /// What its structs held on the way out.
    pub came: Vec<Field>,
}

/// A member of a struct.
#[derive(Clone, Debug)]
pub struct Field {
    /// Its name in `verbs.h`.
    pub name: &'static str,
    /// Its value, as C code or as a number.
    pub value: String,
    /// A word on it.
    pub note: Option<Note>,
}

/// A word on a value.
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
    pub(crate) fn new(code: impl Into<String>, returned: impl Into<String>) -> Call {
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

    pub(crate) fn given_as(mut self, name: &'static str, value: impl ToString, note: Note) -> Call {
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
        Field {
            name,
            value: value.to_string(),
            note: None,
        }
    }

    fn noted(mut self, note: Note) -> Field {
        self.note = Some(note);
        self
    }
}
