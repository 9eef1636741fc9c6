//! Work requests, as the program passes them to `post_send` and `post_recv`.

use crate::transport::memory::sge::Sge;

use std::net::IpAddr;

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// SEND, into a receive of the peer.
    #[default]
    Send,
    /// RDMA WRITE into the peer's memory.
    Write {
        address: u64,
        /// The key of that memory.
        rkey: u32,
    },
    /// RDMA READ, from the peer's memory.
    Read {
        address: u64,
        /// The key of that memory.
        rkey: u32,
    },
    /// Adds to eight bytes at the peer; returns their old value.
    FetchAdd {
        /// Address at the peer, a multiple of 8.
        address: u64,
        /// The key of that memory.
        rkey: u32,
        add: u64,
    },
    /// Writes `swap` to eight bytes at the peer if they equal `compare`; returns their old value.
    CompareSwap {
        /// Address at the peer, a multiple of 8.
        address: u64,
        /// The key of that memory.
        rkey: u32,
        /// The value to compare with.
        compare: u64,
        swap: u64,
    },
}

/// The location of a request's bytes.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In registered memory, which must not change until the completion.
    Registered(&'a [Sge]),
    /// Anywhere in the process; copied before the call returns (`IBV_SEND_INLINE`), without checking keys.
    Inline(&'a [Sge]),
}

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
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Returned in the completion.
    pub wr_id: u64,
    pub operation: Operation,
    /// Immediate data of a SEND or WRITE in network byte order.
    pub immediate: Option<u32>,
    /// Whether it raises a completion.
    pub signaled: bool,
    /// Whether the receiver's completion raises an event.
    pub solicited: bool,
    /// Whether it waits for earlier READs and atomics.
    pub fence: bool,
    /// The bytes to send; of a READ or atomic the buffer for the result.
    pub payload: Payload<'a>,
    /// The destination; UD only.
    pub datagram: Option<Datagram>,
}

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
    /// The QP's service lacks the operation, or the request lacks an argument (EINVAL).
    #[error("this kind of QP has no such operation")]
    Operation,
}
