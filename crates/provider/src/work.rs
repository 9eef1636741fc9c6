//! Work requests as programs post them, for engines that do not walk verbs' structs themselves.

use std::os::raw::c_int;
use std::slice;

use rdma_sys::{ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

use crate::errno::zero_or_error;
use crate::mw::Binding;

/// A piece of registered memory; the layout is that of `ibv_sge`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Its address in this process.
    pub address: u64,
    pub length_bytes: u32,
    /// The local key of its region.
    pub lkey: u32,
}

// Elements are posted as they are: both structs are an address, a length and a key.
const _: () =
    assert!(size_of::<Sge>() == size_of::<ibv_sge>() && align_of::<Sge>() == align_of::<ibv_sge>());

/// The operation of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// SEND, into a receive of the peer.
    #[default]
    Send,
    /// SEND that also invalidates a memory window of the peer.
    SendInvalidate { rkey: u32 },
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
    /// Binds a memory window of this end, or unbinds one: what a [`Binding`] has, without its padding.
    Bind { rkey: u32, new_rkey: u32, lkey: u32, access: u8, address: u64, length_bytes: u64 },
    /// Invalidates a memory window of this end.
    Invalidate { rkey: u32 },
}

impl Operation {
    /// Whether the peer answers with data: a READ or atomic.
    pub fn is_fetch(self) -> bool {
        use Operation::{CompareSwap, FetchAdd, Read};
        matches!(self, Read { .. } | FetchAdd { .. } | CompareSwap { .. })
    }

    /// Whether it is done at this end, without a packet.
    pub fn is_local(self) -> bool {
        matches!(self, Operation::Bind { .. } | Operation::Invalidate { .. })
    }
}

/// The location of a request's bytes.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In registered memory, which must not change until the completion.
    Registered(&'a [Sge]),
    /// Anywhere in the process; copied before the call returns (`IBV_SEND_INLINE`), without checking keys.
    Inline(&'a [Sge]),
}

/// One work request of the send queue.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a, D = ()> {
    /// The program's own number, which the completion returns.
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
    /// Where a UD QP sends it; `None` for connected QPs.
    pub datagram: Option<D>,
}

impl<'a, D> SendRequest<'a, D> {
    /// A request to `datagram`, if its QP is one of datagrams.
    ///
    /// # Safety
    /// As for libibverbs: what the request points to is there, its unions are those of its operation.
    ///
    /// # Errors
    /// EINVAL for unknown operations, and as of [`Binding::of_type_2`].
    #[inline(always)]
    pub unsafe fn from_wr(wr: &ibv_send_wr, datagram: Option<D>) -> Result<Self, c_int> {
        use ibv_wr_opcode as Opcode;
        // SAFETY: the member that the operation needs; of the others the bytes are read, which all are numbers.
        let (rdma, atomic, immediate) =
            unsafe { (wr.wr.rdma, wr.wr.atomic, wr.imm_data_invalidated_rkey_union.imm_data) };
        let (address, rkey) = (rdma.remote_addr, rdma.rkey);
        let write = Operation::Write { address, rkey };
        let (operation, immediate) = match wr.opcode {
            Opcode::IBV_WR_SEND => (Operation::Send, None),
            Opcode::IBV_WR_SEND_WITH_IMM => (Operation::Send, Some(immediate)),
            Opcode::IBV_WR_SEND_WITH_INV => (Operation::SendInvalidate { rkey: immediate }, None),
            Opcode::IBV_WR_RDMA_WRITE => (write, None),
            Opcode::IBV_WR_RDMA_WRITE_WITH_IMM => (write, Some(immediate)),
            Opcode::IBV_WR_RDMA_READ => (Operation::Read { address, rkey }, None),
            Opcode::IBV_WR_ATOMIC_FETCH_AND_ADD => (
                Operation::FetchAdd {
                    address: atomic.remote_addr,
                    rkey: atomic.rkey,
                    add: atomic.compare_add,
                },
                None,
            ),
            Opcode::IBV_WR_ATOMIC_CMP_AND_SWP => (
                Operation::CompareSwap {
                    address: atomic.remote_addr,
                    rkey: atomic.rkey,
                    compare: atomic.compare_add,
                    swap: atomic.swap,
                },
                None,
            ),
            Opcode::IBV_WR_LOCAL_INV => (Operation::Invalidate { rkey: immediate }, None),
            Opcode::IBV_WR_BIND_MW => {
                // SAFETY: this operation has this member, with a live window and a region that is live or null.
                let binding = unsafe {
                    let bind = wr.bind_mw_tso_union.bind_mw;
                    Binding::of_type_2(bind.mw, bind.rkey, &bind.bind_info)?
                };
                (binding.into(), None)
            }
            _ => return Err(libc::EINVAL),
        };
        let has = |flag: ibv_send_flags| wr.send_flags & flag.0 != 0;
        // SAFETY: the caller's list.
        let sges = unsafe { elements(wr.sg_list, wr.num_sge) }?;
        Ok(SendRequest {
            wr_id: wr.wr_id,
            operation,
            immediate,
            signaled: has(ibv_send_flags::IBV_SEND_SIGNALED),
            solicited: has(ibv_send_flags::IBV_SEND_SOLICITED),
            fence: has(ibv_send_flags::IBV_SEND_FENCE),
            payload: if has(ibv_send_flags::IBV_SEND_INLINE) {
                Payload::Inline(sges)
            } else {
                Payload::Registered(sges)
            },
            datagram,
        })
    }
}

/// An array of a C caller.
///
/// # Safety
/// There are so many at `start`, or none.
#[inline(always)]
pub unsafe fn array<'a, T>(start: *const T, count: usize) -> &'a [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for them.
    unsafe { slice::from_raw_parts(start, count) }
}

/// The elements of a request. EINVAL for a negative number of them.
///
/// # Safety
/// `list` has so many.
#[inline(always)]
unsafe fn elements<'a>(list: *const ibv_sge, count: c_int) -> Result<&'a [Sge], c_int> {
    let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
    // SAFETY: the caller's; both structs have the same layout.
    Ok(unsafe { array(list.cast::<Sge>(), count) })
}

/// Posts a list of requests; returns 0, or the error of the one that is refused, which `bad` is then. Those before it are
/// posted.
///
/// # Safety
/// `first` is a list of requests, or null, and `bad` is writable, or null.
#[inline(always)]
pub unsafe fn post_list<W>(
    first: *mut W,
    bad: *mut *mut W,
    next: fn(&W) -> *mut W,
    mut post: impl FnMut(&W) -> Result<(), c_int>,
) -> c_int {
    let mut at = first;
    // SAFETY: null, or the next of the caller's list.
    while let Some(request) = unsafe { at.as_ref() } {
        if let Err(error) = post(request) {
            if !bad.is_null() {
                // SAFETY: the caller's.
                unsafe { bad.write(at) };
            }
            return zero_or_error(Err(error));
        }
        at = next(request);
    }
    0
}

/// Posts a list of receives, each with its number and its elements. As [`post_list`].
///
/// # Safety
/// As of [`post_list`]; each request has as many elements as it says.
#[inline(always)]
pub unsafe fn post_receives(
    first: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
    mut post: impl FnMut(u64, &[Sge]) -> Result<(), c_int>,
) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        post_list(
            first,
            bad,
            |request| request.next,
            |request| post(request.wr_id, elements(request.sg_list, request.num_sge)?),
        )
    }
}
