//! The half of a QP that handles requests: its position in the packet sequence and in a message, and the answers due
//! (InfiniBand specification 9.7.4, 9.7.5). It must not know the QP. [`super::inbound_requests`] and
//! [`super::unreliable`] handle requests; [`super::replies`] sends answers.

use std::collections::VecDeque;

use super::path::Path;
use super::recv_queue::Receive;
use crate::wire::{Psn, Reth, Syndrome};

/// The receiving half.
#[derive(Default)]
pub(super) struct Responder {
    pub(super) path: Option<Path>,
    pub(super) expected: Option<Psn>,
    /// Messages completed, 24 bits (MSN).
    pub(super) completed: u32,
    /// The gap or the missing receive at `expected` was reported; all other packets are dropped until it is filled.
    pub(super) reported: bool,
    pub(super) message: Option<Message>,
    pub(super) receive: Receive,
    /// Whether `receive` is in use.
    pub(super) has_receive: bool,
    pub(super) replies: VecDeque<Reply>,
    pub(super) answered: VecDeque<Answered>,
    pub(super) max_dest_rd_atomic: usize,
    /// Whether a packet came since RTR.
    pub(super) communicates: bool,
}

/// An incomplete message of several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Goes into `receive`.
    Send,
    /// Goes to memory: the address of the next packet's bytes, and how many are to come.
    Write {
        address: u64,
        rkey: u32,
        rest_bytes: u32,
        length_bytes: u32,
    },
}

/// A READ or atomic that was answered, kept to answer it again if the answer is lost.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub(super) psn: Psn,
    pub(super) packets: u32,
    pub(super) what: AnsweredWhat,
}

#[derive(Clone, Copy)]
pub(super) enum AnsweredWhat {
    Read(Reth),
    Atomic { original: u64 },
}

/// An answer to send. `completed` is its message sequence number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Acknowledge {
        psn: Psn,
        completed: u32,
    },
    Refuse {
        psn: Psn,
        syndrome: Syndrome,
        completed: u32,
    },
    Atomic {
        psn: Psn,
        original: u64,
        completed: u32,
    },
    Read {
        psn: Psn,
        reth: Reth,
        packets: u32,
        sent_packets: u32,
        completed: u32,
    },
}

impl Reply {
    pub(super) fn read(psn: Psn, reth: Reth, packets: u32, completed: u32) -> Reply {
        Reply::Read {
            psn,
            reth,
            packets,
            sent_packets: 0,
            completed,
        }
    }

    /// The PSN that it answers; for a READ that of the last packet of the response.
    pub(super) fn psn(&self) -> Psn {
        match *self {
            Reply::Acknowledge { psn, .. }
            | Reply::Refuse { psn, .. }
            | Reply::Atomic { psn, .. } => psn,
            Reply::Read { psn, packets, .. } => psn.plus(packets - 1),
        }
    }
}

impl Responder {
    pub(super) fn connect(&mut self, path: Option<Path>, psn: Psn, max_dest_rd_atomic: u8) {
        *self = Responder {
            path,
            expected: Some(psn),
            max_dest_rd_atomic: usize::from(max_dest_rd_atomic),
            ..Responder::default()
        };
    }

    pub(super) fn expected(&self) -> Psn {
        self.expected.unwrap_or(Psn::ZERO)
    }

    pub(super) fn owes(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Queues an acknowledgement of all packets up to `psn`; it replaces earlier ones.
    pub(super) fn acknowledge(&mut self, psn: Psn) {
        let completed = self.completed;
        if let Some(Reply::Acknowledge {
            psn: last,
            completed: count,
        }) = self.replies.back_mut()
        {
            *last = psn;
            *count = completed;
        } else {
            self.owe(Reply::Acknowledge { psn, completed });
        }
    }

    pub(super) fn owe(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }
}
