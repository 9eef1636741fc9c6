//! What a program asks of a QP: work requests, as they come to `post_send` and `post_recv`.

use std::net::IpAddr;

/// A piece of registered memory; the layout is that of `ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Address in this process.
    pub address: u64,
    /// Bytes.
    pub length_bytes: u32,
    /// Local key of the region that it lies in.
    pub lkey: u32,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// SEND, to a receive that the peer posted.
    Send,
    /// RDMA WRITE, to the peer's memory.
    Write {
        /// Address at the peer.
        address: u64,
        /// Its key.
        rkey: u32,
    },
    /// RDMA READ, from the peer's memory.
    Read {
        /// Address at the peer.
        address: u64,
        /// Its key.
        rkey: u32,
    },
    /// Adds to eight bytes at the peer; what was there comes back.
    FetchAdd {
        /// Address at the peer, a multiple of 8.
        address: u64,
        /// Its key.
        rkey: u32,
        /// Added.
        add: u64,
    },
    /// Puts `swap` in eight bytes at the peer if they are `compare`; what was there comes back.
    CompareSwap {
        /// Address at the peer, a multiple of 8.
        address: u64,
        /// Its key.
        rkey: u32,
        /// Compared with.
        compare: u64,
        /// Put there.
        swap: u64,
    },
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In registered memory, to be left alone until the completion.
    Registered(&'a [Sge]),
    /// Anywhere in the process; copied before the call returns (`IBV_SEND_INLINE`). Keys are not looked at.
    Inline(&'a [Sge]),
}

/// Where a datagram goes (UD).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The peer's address.
    pub address: IpAddr,
    /// Its QP.
    pub qpn: u32,
    /// The queue key it expects.
    pub qkey: u32,
}

/// One work request of the send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub operation: Operation,
    /// Immediate data of a SEND or WRITE, as it stands on the wire: the bytes of a number in network order.
    pub immediate: Option<u32>,
    /// A completion is wanted.
    pub signaled: bool,
    /// The receiver's completion is to raise an event.
    pub solicited: bool,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
    /// The bytes; of a READ or atomic where they go.
    pub payload: Payload<'a>,
    /// UD only.
    pub datagram: Option<Datagram>,
}

/// Why a work request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The queue is full (ENOMEM).
    #[error("the queue is full")]
    Full,
    /// The QP's state takes no such request (EINVAL).
    #[error("the QP is in a state that takes no such request")]
    State,
    /// More scatter/gather elements than the QP has room for (EINVAL).
    #[error("too many scatter/gather elements")]
    Elements,
    /// More inline bytes than the QP has room for (EINVAL).
    #[error("too many inline bytes")]
    Inline,
    /// The operation does not exist on this kind of QP, or lacks what it needs (EINVAL).
    #[error("this kind of QP has no such operation")]
    Operation,
}
