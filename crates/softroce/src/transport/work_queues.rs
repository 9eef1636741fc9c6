//! What programs post: work requests, the ring of a QP's send queue with the opcodes and headers of its packets, and
//! queues of receives.
#![allow(unsafe_code)]

use std::net::IpAddr;
use std::slice;

use provider::{Lock, Operation, Payload, Sge};

use crate::transport::memory::PdId;
use crate::wire::{AtomicEth, Opcode, Psn, Reth, Service};

/// The destination of a datagram (UD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub address: IpAddr,
    pub qpn: u32,
    /// Its queue key. One with the highest bit set means the sending QP's own (specification 10.2.5).
    pub qkey: u32,
    /// Flow label of the address handle, for the source port; 0 derives it from the QPNs.
    pub flow_label: u32,
    /// Type of service byte of the packet.
    pub traffic_class: u8,
    /// Time to live; 0 leaves the system's.
    pub hop_limit: u8,
}

/// One work request of the send queue.
pub type SendRequest<'a> = provider::SendRequest<'a, Datagram>;

/// Why a work request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The queue is full (ENOMEM).
    #[error("the queue is full")]
    Full,
    /// The QP's state does not allow the request (EINVAL).
    #[error("the QP is in a state that takes no such request")]
    State,
    /// More scatter/gather elements than the QP allows (EINVAL).
    #[error("too many scatter/gather elements")]
    Elements,
    /// More inline bytes than the QP allows (EINVAL).
    #[error("too many inline bytes")]
    Inline,
    /// The QP is of the process that this one was forked from (EIO).
    #[error("the device was opened before a fork; open it again")]
    Process,
    /// The QP's service lacks the operation, or the request lacks an argument or has one too many (EINVAL).
    #[error("this kind of QP has no such operation")]
    Operation,
}

/// Sizes of a QP's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    pub send_wrs: u32,
    pub recv_wrs: u32,
    pub send_sges: u32,
    pub recv_sges: u32,
    pub inline_bytes: u32,
}

/// A posted request and its progress, in one cache line: 64 bytes, also where processors fetch two at once.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct Wqe {
    pub(crate) wr_id: u64,
    pub(crate) operation: Operation,
    pub(crate) length_bytes: u32,
    /// PSN of its first packet, once assigned.
    pub(crate) first_psn: Psn,
    /// How many PSNs it takes; a READ takes those of its response.
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

    /// The key that it invalidates at the peer.
    pub(crate) fn invalidated(&self) -> Option<u32> {
        match self.operation {
            Operation::SendInvalidate { rkey } => Some(rkey),
            _ => None,
        }
    }

    /// Whether its answer contains data: a READ or atomic.
    pub(crate) fn is_fetch(&self) -> bool {
        self.operation.is_fetch()
    }

    /// Whether it sends nothing: it is done when its turn comes.
    pub(crate) fn is_local(&self) -> bool {
        self.operation.is_local()
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
    max_requests: u64,
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
    pub(crate) fn new(kind: Service, room: &Capacities) -> SendQueue {
        let capacity = (room.send_wrs as usize).next_power_of_two();
        let [max_sges, max_inline_bytes] =
            [room.send_sges, room.inline_bytes].map(|it| it as usize);
        let room_sges = room_sges(max_sges, max_inline_bytes);
        let destinations = match kind {
            Service::Ud => capacity,
            Service::Rc | Service::Uc => 0,
        };
        SendQueue {
            wqes: vec![Wqe::default(); capacity].into(),
            room: vec![Sge::default(); capacity * room_sges].into(),
            room_sges,
            destinations: vec![None; destinations].into(),
            max_requests: room.send_wrs.into(),
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
        if self.tail - self.head == self.max_requests {
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
            let to = inline.get_mut(at..at + length).ok_or(PostError::Inline)?;
            // SAFETY: `Payload::Inline` promises readable bytes for the duration of the call; they cannot
            // overlap this queue's own memory.
            unsafe {
                let from = std::ptr::with_exposed_provenance::<u8>(sge.address as usize);
                std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), length);
            }
            at += length;
        }
        Ok(at as u64)
    }
}

fn flag_if(is_set: bool, flag: u8) -> u8 {
    if is_set { flag } else { 0 }
}

/// The most bytes of one READ request packet; longer READs are split. This end must limit the answers in flight,
/// since they overrun its own socket.
const READ_REQUEST_BYTES: u32 = 64 << 10;
/// The default partition, with full membership; the device has no other.
pub(crate) const PKEY: u16 = 0xffff;

/// The most packets in the answer to one READ request packet.
pub(crate) fn read_part_packets(mtu_bytes: u32) -> u32 {
    (READ_REQUEST_BYTES / mtu_bytes).max(1)
}

pub(crate) fn opcode(wqe: &Wqe, first: bool, last: bool) -> Opcode {
    let write = matches!(wqe.operation, Operation::Write { .. });
    let immediate = wqe.immediate().is_some();
    match (write, first, last, immediate) {
        (false, true, true, _) if wqe.invalidated().is_some() => Opcode::SendOnlyInvalidate,
        (false, false, true, _) if wqe.invalidated().is_some() => Opcode::SendLastInvalidate,
        (false, true, true, false) => Opcode::SendOnly,
        (false, true, true, true) => Opcode::SendOnlyImmediate,
        (false, true, false, _) => Opcode::SendFirst,
        (false, false, false, _) => Opcode::SendMiddle,
        (false, false, true, false) => Opcode::SendLast,
        (false, false, true, true) => Opcode::SendLastImmediate,
        (true, true, true, false) => Opcode::WriteOnly,
        (true, true, true, true) => Opcode::WriteOnlyImmediate,
        (true, true, false, _) => Opcode::WriteFirst,
        (true, false, false, _) => Opcode::WriteMiddle,
        (true, false, true, false) => Opcode::WriteLast,
        (true, false, true, true) => Opcode::WriteLastImmediate,
    }
}

/// The RDMA header of a WRITE or READ from its byte `start`.
pub(crate) fn reth(wqe: &Wqe, start: u32, length_bytes: u32) -> Option<Reth> {
    match wqe.operation {
        Operation::Write { address, rkey } | Operation::Read { address, rkey } => {
            Some(Reth { address: address.wrapping_add(start.into()), rkey, length_bytes })
        }
        _ => None,
    }
}

pub(crate) fn atomic_header(wqe: &Wqe) -> (Opcode, Option<AtomicEth>) {
    match wqe.operation {
        Operation::FetchAdd { address, rkey, add } => {
            let header = AtomicEth { address, rkey, swap_or_add: add, compare: 0 };
            (Opcode::FetchAdd, Some(header))
        }
        Operation::CompareSwap { address, rkey, compare, swap } => {
            let header = AtomicEth { address, rkey, swap_or_add: swap, compare };
            (Opcode::CompareSwap, Some(header))
        }
        _ => (Opcode::FetchAdd, None),
    }
}

/// Receives that wait for messages; taken in order.
pub struct RecvQueue {
    /// That of their memory, whichever a QP has that takes them.
    pub(crate) pd: PdId,
    max_sges: usize,
    ring: Lock<Ring>,
    on_limit: Option<Box<dyn Fn() + Send + Sync>>,
}

struct Ring {
    /// `wr_id` and number of elements of each.
    receives: Box<[(u64, usize)]>,
    sges: Box<[Sge]>,
    first: usize,
    count: usize,
    limit: usize,
}

/// A receive taken from a queue, and how far it is filled.
#[derive(Default)]
pub(crate) struct Receive {
    pub(crate) wr_id: u64,
    pub(crate) sges: Vec<Sge>,
    pub(crate) filled_bytes: u32,
}

impl Receive {
    pub(crate) fn room_bytes(&self) -> u64 {
        self.sges.iter().map(|sge| u64::from(sge.length_bytes)).sum()
    }
}

impl RecvQueue {
    /// A queue of `capacity` receives of at most `max_sges` elements. `on_limit` is called when fewer than the armed
    /// limit are left (SRQ); it must not call the transport.
    pub fn new(
        pd: PdId,
        capacity: usize,
        max_sges: usize,
        on_limit: Option<Box<dyn Fn() + Send + Sync>>,
    ) -> RecvQueue {
        RecvQueue {
            pd,
            max_sges,
            ring: Lock::new(Ring {
                receives: vec![(0, 0); capacity].into(),
                sges: vec![Sge::default(); capacity * max_sges].into(),
                first: 0,
                count: 0,
                limit: 0,
            }),
            on_limit,
        }
    }

    /// Adds a receive.
    ///
    /// # Errors
    /// [`PostError::Full`], [`PostError::Elements`].
    pub fn post(&self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        if sges.len() > self.max_sges {
            return Err(PostError::Elements);
        }
        let mut ring = self.ring.lock();
        let ring = &mut *ring;
        let capacity = ring.receives.len();
        if ring.count == capacity {
            return Err(PostError::Full);
        }
        let mut index = ring.first + ring.count;
        if index >= capacity {
            index -= capacity;
        }
        if let Some(receive) = ring.receives.get_mut(index) {
            *receive = (wr_id, sges.len());
        }
        let start = index * self.max_sges;
        if let Some(room) = ring.sges.get_mut(start..start + sges.len()) {
            room.copy_from_slice(sges);
        }
        ring.count += 1;
        Ok(())
    }

    /// Arms the limit event; 0 disarms it.
    pub fn set_limit(&self, limit: usize) {
        self.ring.lock().limit = limit;
    }

    pub fn limit(&self) -> usize {
        self.ring.lock().limit
    }

    /// Moves the oldest receive into `receive`, reusing its memory; `false` if there is none.
    pub(crate) fn take(&self, receive: &mut Receive) -> bool {
        let mut guard = self.ring.lock();
        let ring = &mut *guard;
        if ring.count == 0 {
            return false;
        }
        let Some(&(wr_id, elements)) = ring.receives.get(ring.first) else {
            return false;
        };
        let start = ring.first * self.max_sges;
        receive.wr_id = wr_id;
        receive.filled_bytes = 0;
        receive.sges.clear();
        let sges = ring.sges.get(start..start + elements);
        receive.sges.extend_from_slice(sges.unwrap_or_default());
        ring.first += 1;
        if ring.first == ring.receives.len() {
            ring.first = 0;
        }
        ring.count -= 1;
        let reached = ring.count < ring.limit;
        if reached {
            ring.limit = 0;
        }
        drop(guard);
        if reached && let Some(on_limit) = &self.on_limit {
            on_limit();
        }
        true
    }

    pub(crate) fn clear(&self) {
        self.ring.lock().count = 0;
    }
}
