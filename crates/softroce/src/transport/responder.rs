//! The half of a QP that takes requests: where it stands in the sequence of packets and in a message, and what it
//! owes (InfiniBand specification 9.7.4, 9.7.5). It must not know the QP; requests are taken in
//! [`super::inbound_requests`] and [`super::unreliable`], answers are sent by [`super::replies`].

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
    /// The gap or missing receive at `expected` was reported; until it is filled all else is dropped.
    pub(super) reported: bool,
    pub(super) message: Option<Message>,
    pub(super) receive: Receive,
    /// `receive` is in use.
    pub(super) has_receive: bool,
    pub(super) replies: VecDeque<Reply>,
    pub(super) answered: VecDeque<Answered>,
    pub(super) max_dest_rd_atomic: usize,
    /// A packet came since RTR.
    pub(super) communicates: bool,
}

/// A message of several packets that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// It goes to the receive that was taken for it.
    Send,
    /// It goes to memory: where the next packet's bytes belong, and how many are to come.
    Write {
        address: u64,
        rkey: u32,
        rest_bytes: u32,
        length_bytes: u32,
    },
}

/// A READ or atomic that was answered, to be answered again should the answer be lost.
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

/// Something owed. `completed` is the message sequence number that goes with it.
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

    /// The PSN that it answers, of a READ that of the response's last packet.
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

    /// Owes an acknowledgement of all up to `psn`; one answers for all before it.
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
