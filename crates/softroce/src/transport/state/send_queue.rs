//! The memory of the send queue: a ring of posted requests, and the bytes of inline ones. It must not know packets.
#![allow(unsafe_code)]

use std::slice;

use super::qp_attributes::{Capacities, Kind};
use super::request::{Datagram, Operation, Payload, PostError, SendRequest};
use crate::transport::memory::sge::Sge;
use crate::wire::Psn;

/// A posted request and its progress, in one cache line.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Wqe {
    pub(crate) wr_id: u64,
    pub(crate) operation: Operation,
    pub(crate) length_bytes: u32,
    /// PSN of its first packet, once assigned.
    pub(crate) first_psn: Psn,
    /// Number of its PSNs.
    pub(crate) packets: u32,
    /// Its part of the peer's window.
    pub(crate) charge_bytes: u32,
    immediate: u32,
    flags: u8,
    elements: u8,
}

const SIGNALED: u8 = 1;
const SOLICITED: u8 = 2;
const FENCE: u8 = 4;
const INLINE: u8 = 8;
const IMMEDIATE: u8 = 16;

const _: () = assert!(size_of::<Wqe>() == 64);

impl Wqe {
    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn signaled(&self) -> bool {
        self.has(SIGNALED)
    }

    /// Whether the receiver's completion raises an event.
    pub(crate) fn solicited(&self) -> bool {
        self.has(SOLICITED)
    }

    /// Whether it waits for earlier READs and atomics.
    pub(crate) fn fence(&self) -> bool {
        self.has(FENCE)
    }

    /// Its immediate data, in network byte order.
    pub(crate) fn immediate(&self) -> Option<u32> {
        self.has(IMMEDIATE).then_some(self.immediate)
    }

    /// Whether its answer contains data: a READ or atomic.
    pub(crate) fn is_fetch(&self) -> bool {
        !matches!(self.operation, Operation::Send | Operation::Write { .. })
    }

    pub(crate) fn last_psn(&self) -> Psn {
        self.first_psn.plus(self.packets.saturating_sub(1))
    }
}

/// The location of a request's bytes.
pub(crate) enum Bytes<'a> {
    Registered(&'a [Sge]),
    Inline(&'a [u8]),
}

/// Requests from `head` to `tail`, numbered from the QP's creation.
#[derive(Default)]
pub(crate) struct SendQueue {
    wqes: Box<[Wqe]>,
    /// For each request room for its elements or its inline bytes.
    room: Box<[Sge]>,
    room_sges: usize,
    /// The destination of each request; UD only.
    destinations: Box<[Option<Datagram>]>,
    max_sges: usize,
    max_inline_bytes: usize,
    pub(crate) head: u64,
    pub(crate) tail: u64,
    /// Bytes of all requests ever posted.
    pub(crate) posted_bytes: u64,
}

/// Longest message (the port's `max_msg_sz`).
pub const MAX_MESSAGE_BYTES: u32 = 1 << 31;

/// Elements that take as much memory as one request's elements or inline bytes.
fn room_sges(max_sges: usize, max_inline_bytes: usize) -> usize {
    max_inline_bytes.div_ceil(size_of::<Sge>()).max(max_sges)
}

/// Memory of a connected QP's queue.
pub(crate) fn send_queue_bytes(capacity: usize, max_sges: usize, max_inline_bytes: usize) -> usize {
    let room = room_sges(max_sges, max_inline_bytes) * size_of::<Sge>();
    capacity.next_power_of_two() * (size_of::<Wqe>() + room)
}

impl SendQueue {
    pub(crate) fn new(kind: Kind, room: &Capacities) -> SendQueue {
        let capacity = (room.send_wrs as usize).next_power_of_two();
        let [max_sges, max_inline_bytes] =
            [room.send_sges, room.inline_bytes].map(|it| it as usize);
        let room_sges = room_sges(max_sges, max_inline_bytes);
        let destinations = match kind {
            Kind::Ud => capacity,
            Kind::Rc | Kind::Uc => 0,
        };
        SendQueue {
            wqes: vec![Wqe::default(); capacity].into(),
            room: vec![Sge::default(); capacity * room_sges].into(),
            room_sges,
            destinations: vec![None; destinations].into(),
            max_sges,
            max_inline_bytes,
            ..SendQueue::default()
        }
    }

    fn slot(&self, index: u64) -> usize {
        (index & (self.wqes.len() as u64 - 1)) as usize
    }

    /// The request with this number, if it is between `head` and `tail`.
    pub(crate) fn get(&self, index: u64) -> Option<&Wqe> {
        if index < self.head || index >= self.tail {
            return None;
        }
        self.wqes.get(self.slot(index))
    }

    pub(crate) fn get_mut(&mut self, index: u64) -> Option<&mut Wqe> {
        if index < self.head || index >= self.tail {
            return None;
        }
        let slot = self.slot(index);
        self.wqes.get_mut(slot)
    }

    /// The location of the bytes of request `index`.
    pub(crate) fn bytes(&self, index: u64) -> Bytes<'_> {
        let slot = self.slot(index);
        let Some(wqe) = self.wqes.get(slot) else {
            return Bytes::Registered(&[]);
        };
        let start = slot * self.room_sges;
        let room = self.room.get(start..).unwrap_or_default();
        if wqe.has(INLINE) {
            // SAFETY: elements are numbers without bytes between them, so all are bytes.
            let room = unsafe { slice::from_raw_parts(room.as_ptr().cast(), size_of_val(room)) };
            let bytes: &[u8] = room;
            Bytes::Inline(bytes.get(..wqe.length_bytes as usize).unwrap_or_default())
        } else {
            Bytes::Registered(room.get(..wqe.elements.into()).unwrap_or_default())
        }
    }

    pub(crate) fn destination(&self, index: u64) -> Option<&Datagram> {
        self.destinations.get(self.slot(index))?.as_ref()
    }

    pub(crate) fn push(
        &mut self,
        request: &SendRequest<'_>,
        signaled: bool,
    ) -> Result<(), PostError> {
        if self.tail - self.head == self.wqes.len() as u64 {
            return Err(PostError::Full);
        }
        let slot = self.slot(self.tail);
        let (payload, elements, length_bytes) = match request.payload {
            Payload::Registered(sges) => (0, sges.len(), self.keep(slot, sges)?),
            Payload::Inline(sges) => (INLINE, 0, self.copy(slot, sges)?),
        };
        if let Some(place) = self.wqes.get_mut(slot) {
            *place = Wqe {
                wr_id: request.wr_id,
                operation: request.operation,
                // Longer than any message: refused when it is sent.
                length_bytes: u32::try_from(length_bytes).unwrap_or(u32::MAX),
                immediate: request.immediate.unwrap_or(0),
                flags: payload
                    | flag_if(signaled, SIGNALED)
                    | flag_if(request.solicited, SOLICITED)
                    | flag_if(request.fence, FENCE)
                    | flag_if(request.immediate.is_some(), IMMEDIATE),
                elements: elements as u8,
                ..Wqe::default()
            };
        }
        if let Some(place) = self.destinations.get_mut(slot) {
            *place = request.datagram;
        }
        self.tail += 1;
        self.posted_bytes += length_bytes;
        Ok(())
    }

    /// Stores the elements; returns their length in bytes.
    fn keep(&mut self, slot: usize, sges: &[Sge]) -> Result<u64, PostError> {
        let start = slot * self.room_sges;
        if sges.len() > self.max_sges {
            return Err(PostError::Elements);
        }
        let room = self.room.get_mut(start..start + sges.len());
        room.ok_or(PostError::Elements)?.copy_from_slice(sges);
        Ok(sges.iter().map(|sge| u64::from(sge.length_bytes)).sum())
    }

    /// Copies the bytes; returns their number.
    fn copy(&mut self, slot: usize, sges: &[Sge]) -> Result<u64, PostError> {
        let start = slot * self.room_sges;
        let room = self.room.get_mut(start..start + self.room_sges).unwrap_or_default();
        // SAFETY: elements are numbers without bytes between them, and any bytes make such numbers.
        let slot_bytes: &mut [u8] =
            unsafe { slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size_of_val(room)) };
        let inline = slot_bytes.get_mut(..self.max_inline_bytes).unwrap_or_default();
        let mut at = 0;
        for sge in sges {
            let length = sge.length_bytes as usize;
            let room = inline.get_mut(at..at + length).ok_or(PostError::Inline)?;
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

fn flag_if(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}
