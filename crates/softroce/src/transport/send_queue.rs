//! The memory of the send queue: a ring of posted requests, and the bytes of inline ones. It must not know packets.
#![allow(unsafe_code)]

use super::request::{Datagram, Operation, Payload, PostError, SendRequest, Sge};
use crate::wire::Psn;

/// A posted request and its progress.
#[derive(Clone, Copy)]
pub(super) struct Wqe {
    pub(super) wr_id: u64,
    pub(super) operation: Operation,
    pub(super) immediate: Option<u32>,
    pub(super) signaled: bool,
    pub(super) solicited: bool,
    pub(super) fence: bool,
    inline: bool,
    elements: u8,
    pub(super) length_bytes: u32,
    pub(super) datagram: Option<Datagram>,
    /// PSN of its first packet, once assigned.
    pub(super) first_psn: Psn,
    /// Number of its PSNs.
    pub(super) packets: u32,
}

impl Wqe {
    const EMPTY: Wqe = Wqe {
        wr_id: 0,
        operation: Operation::Send,
        immediate: None,
        signaled: false,
        solicited: false,
        fence: false,
        inline: false,
        elements: 0,
        length_bytes: 0,
        datagram: None,
        first_psn: Psn::ZERO,
        packets: 0,
    };

    /// Whether its answer contains data: a READ or atomic.
    pub(super) fn is_fetch(&self) -> bool {
        !matches!(self.operation, Operation::Send | Operation::Write { .. })
    }

    /// PSN of its last packet.
    pub(super) fn last_psn(&self) -> Psn {
        self.first_psn.plus(self.packets.saturating_sub(1))
    }
}

/// The location of a request's bytes.
pub(super) enum Bytes<'a> {
    Registered(&'a [Sge]),
    Inline(&'a [u8]),
}

/// Requests from `head` to `tail`, numbered from the QP's creation.
pub(super) struct SendQueue {
    wqes: Box<[Wqe]>,
    sges: Box<[Sge]>,
    inline: Box<[u8]>,
    max_sges: usize,
    max_inline_bytes: usize,
    pub(super) head: u64,
    pub(super) tail: u64,
}

/// Longest message (the port's `max_msg_sz`).
pub const MAX_MESSAGE_BYTES: u32 = 1 << 31;

impl SendQueue {
    pub(super) fn new(capacity: usize, max_sges: usize, max_inline_bytes: usize) -> SendQueue {
        let capacity = capacity.next_power_of_two();
        SendQueue {
            wqes: vec![Wqe::EMPTY; capacity].into(),
            sges: vec![Sge::default(); capacity * max_sges].into(),
            inline: vec![0; capacity * max_inline_bytes].into(),
            max_sges,
            max_inline_bytes,
            head: 0,
            tail: 0,
        }
    }

    fn slot(&self, index: u64) -> usize {
        (index & (self.wqes.len() as u64 - 1)) as usize
    }

    /// The request with this number, if it is between `head` and `tail`.
    pub(super) fn get(&self, index: u64) -> Option<&Wqe> {
        if index < self.head || index >= self.tail {
            return None;
        }
        self.wqes.get(self.slot(index))
    }

    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut Wqe> {
        if index < self.head || index >= self.tail {
            return None;
        }
        let slot = self.slot(index);
        self.wqes.get_mut(slot)
    }

    /// The location of the bytes of request `index`.
    pub(super) fn bytes(&self, index: u64) -> Bytes<'_> {
        let slot = self.slot(index);
        let Some(wqe) = self.wqes.get(slot) else {
            return Bytes::Registered(&[]);
        };
        if wqe.inline {
            let start = slot * self.max_inline_bytes;
            let end = start + wqe.length_bytes as usize;
            Bytes::Inline(self.inline.get(start..end).unwrap_or_default())
        } else {
            let start = slot * self.max_sges;
            let end = start + usize::from(wqe.elements);
            Bytes::Registered(self.sges.get(start..end).unwrap_or_default())
        }
    }

    /// Adds a request.
    pub(super) fn push(
        &mut self,
        request: &SendRequest<'_>,
        signaled: bool,
    ) -> Result<(), PostError> {
        if self.tail - self.head == self.wqes.len() as u64 {
            return Err(PostError::Full);
        }
        let slot = self.slot(self.tail);
        let (inline, elements, length_bytes) = match request.payload {
            Payload::Registered(sges) => (false, sges.len(), self.keep(slot, sges)?),
            Payload::Inline(sges) => (true, 0, self.copy(slot, sges)?),
        };
        let wqe = Wqe {
            wr_id: request.wr_id,
            operation: request.operation,
            immediate: request.immediate,
            signaled,
            solicited: request.solicited,
            fence: request.fence,
            inline,
            elements: elements as u8,
            // Longer than any message: refused when it is sent.
            length_bytes: u32::try_from(length_bytes).unwrap_or(u32::MAX),
            datagram: request.datagram,
            first_psn: Psn::ZERO,
            packets: 0,
        };
        if let Some(place) = self.wqes.get_mut(slot) {
            *place = wqe;
        }
        self.tail += 1;
        Ok(())
    }

    /// Stores the elements; returns their length in bytes.
    fn keep(&mut self, slot: usize, sges: &[Sge]) -> Result<u64, PostError> {
        let start = slot * self.max_sges;
        if sges.len() > self.max_sges {
            return Err(PostError::Elements);
        }
        let room = self.sges.get_mut(start..start + sges.len());
        room.ok_or(PostError::Elements)?.copy_from_slice(sges);
        Ok(sges.iter().map(|sge| u64::from(sge.length_bytes)).sum())
    }

    /// Copies the bytes; returns their number.
    fn copy(&mut self, slot: usize, sges: &[Sge]) -> Result<u64, PostError> {
        let start = slot * self.max_inline_bytes;
        let all = self.inline.get_mut(start..start + self.max_inline_bytes);
        let all = all.unwrap_or_default();
        let mut at = 0;
        for sge in sges {
            let length = sge.length_bytes as usize;
            let room = all.get_mut(at..at + length).ok_or(PostError::Inline)?;
            // SAFETY: `Payload::Inline` promises readable bytes for the duration of the call; they cannot
            // overlap this queue's own memory.
            unsafe {
                let from = std::ptr::with_exposed_provenance::<u8>(sge.address as usize);
                std::ptr::copy_nonoverlapping(from, room.as_mut_ptr(), length);
            }
            at += length;
        }
        Ok(at as u64)
    }
}
