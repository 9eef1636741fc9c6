//! The half of a QP that handles requests: its position in the packet sequence and in a message, and the answers due
//! (InfiniBand specification 9.7.4, 9.7.5). It must not know the QP. The folder `responder`
//! handles requests and sends answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use super::path::{Path, SourcePort};
use super::recv_queue::Receive;
use super::repeat_budget::RepeatBudget;
use crate::wire::{Psn, Reth, Syndrome};

/// The most answers due: twice the READs and atomics that a QP may have in flight (8 bits), and as many more.
const MOST_REPLIES: usize = 1024;

#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) source_port: SourcePort,
    pub(crate) expected: Option<Psn>,
    /// Messages completed, 24 bits (MSN).
    pub(crate) completed: u32,
    /// The gap or the missing receive at `expected` was reported; all other packets are dropped until it is filled.
    pub(crate) reported: bool,
    pub(crate) message: Option<Message>,
    pub(crate) receive: Receive,
    /// Whether `receive` is in use.
    pub(crate) has_receive: bool,
    pub(crate) replies: VecDeque<Reply>,
    pub(crate) answered: VecDeque<Answered>,
    pub(crate) max_dest_rd_atomic: usize,
    pub(crate) repeat_budget: RepeatBudget,
    /// Whether a packet came since RTR.
    pub(crate) communicates: bool,
    /// Whether the program was told that a QP in ERR takes no more from its SRQ: it is told once.
    pub(crate) told_last_wqe: bool,
}

/// An incomplete message of several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Goes into `receive`.
    Send,
    /// Goes to memory: the address of the next packet's bytes, and how many are to come.
    Write { address: u64, rkey: u32, rest_bytes: u32, length_bytes: u32 },
}

/// A READ or atomic that was answered, kept to answer it again if the answer is lost.
#[derive(Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) psn: Psn,
    pub(crate) packets: u32,
    pub(crate) what: AnsweredWhat,
}

#[derive(Clone, Copy)]
pub(crate) enum AnsweredWhat {
    Read(Reth),
    Atomic { original: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The PSN that it answers; of a READ the first of the response.
    pub(crate) psn: Psn,
    /// Its message sequence number.
    pub(crate) completed: u32,
    pub(crate) what: ReplyWhat,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReplyWhat {
    Acknowledge,
    Refuse(Syndrome),
    /// `again`: whether it was sent or due before.
    Atomic {
        original: u64,
        again: bool,
    },
    Read {
        reth: Reth,
        /// The address of its bytes here, only to compare it.
        source: usize,
        packets: u32,
        sent_packets: u32,
        again: bool,
    },
}

impl Reply {
    /// Whether it answers a READ or an atomic for the first time.
    fn is_first_fetch(&self) -> bool {
        use ReplyWhat::{Atomic, Read};
        matches!(self.what, Read { again: false, .. } | Atomic { again: false, .. })
    }

    pub(crate) fn last_psn(&self) -> Psn {
        match self.what {
            ReplyWhat::Read { packets, .. } => self.psn.plus(packets - 1),
            _ => self.psn,
        }
    }
}

impl Responder {
    pub(crate) fn connect(&mut self, path: Option<Arc<Path>>, psn: Psn, max_dest_rd_atomic: u8) {
        *self = Responder {
            path,
            expected: Some(psn),
            max_dest_rd_atomic: usize::from(max_dest_rd_atomic),
            ..Responder::default()
        };
    }

    /// The path back, for a packet from the peer's address and port.
    pub(crate) fn path_from(&self, source: SocketAddr) -> Option<&Arc<Path>> {
        let may_be = self.source_port.may_be(source.port());
        let path = self.path.as_ref();
        path.filter(|path| may_be && path.address == source.ip())
    }

    pub(crate) fn expected(&self) -> Psn {
        self.expected.unwrap_or(Psn::ZERO)
    }

    pub(crate) fn owes(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Queues an acknowledgement of all packets up to `psn`; it replaces earlier ones.
    pub(crate) fn acknowledge(&mut self, psn: Psn) {
        if self.replies.back().is_some_and(|last| matches!(last.what, ReplyWhat::Acknowledge)) {
            self.replies.pop_back();
        }
        self.owe(psn, ReplyWhat::Acknowledge);
    }

    /// Queues an answer. One beyond the bound is dropped as if lost: of a peer that follows the rules there are no more
    /// than its READs and atomics, an acknowledgement before each, and a NAK.
    pub(crate) fn owe(&mut self, psn: Psn, what: ReplyWhat) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back(Reply { psn, completed: self.completed, what });
        }
    }

    /// Whether as many READs and atomics wait for their answers as the peer may have in flight.
    pub(crate) fn fetches_full(&self) -> bool {
        let most = self.max_dest_rd_atomic;
        self.replies.len() >= most
            && self.replies.iter().filter(|reply| reply.is_first_fetch()).count() >= most
    }
}
