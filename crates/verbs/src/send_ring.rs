//! Prebuilt send work requests of one QP. They are built and linked once and never change, so any thread may post any
//! of them.

use std::io;
use std::mem::zeroed;
use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

use super::{MemoryRegion, Operation, QueuePair, VerbsError};

type PostFunction =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> i32;

/// The operation of a send work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOpcode {
    /// SEND.
    Send,
    /// RDMA WRITE to `address`, with the peer's key.
    Write {
        /// Address in the peer's memory.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
    /// RDMA READ from `address`, with the peer's key.
    Read {
        /// Address in the peer's memory.
        address: u64,
        /// The peer's key for it.
        rkey: u32,
    },
}

/// One work request to prebuild.
#[derive(Clone, Copy, Debug)]
pub struct SendTemplate {
    /// Returned in its completion.
    pub wr_id: u64,
    /// The operation.
    pub opcode: SendOpcode,
    /// Offset of its payload in the MR, in bytes.
    pub offset: usize,
    /// Length of its payload, in bytes.
    pub length_bytes: u32,
    /// Whether it raises a completion.
    pub signalled: bool,
    /// Whether its payload is copied into the work request.
    pub inline: bool,
    /// Whether a call of `ibv_post_send` ends with it.
    pub ends_chain: bool,
}

/// Prebuilt work requests, linked into chains; one call of `ibv_post_send` posts one chain.
pub struct SendRing {
    _qp: Arc<QueuePair>,
    /// Keeps the payloads alive as long as the ring.
    _memory: Arc<MemoryRegion>,
    requests: Box<[Request]>,
    /// The `sg_list` pointers point here.
    _sges: Box<[ibv_sge]>,
    /// The QP, which `qp` keeps alive.
    raw_qp: *mut ibv_qp,
    post: PostFunction,
}

/// A work request on three cache lines. The number is odd, so that the first lines of successive requests, which are
/// all that is read of most of them, use every set of the caches.
#[repr(C, align(64))]
struct Request {
    wr: ibv_send_wr,
    _apart: [u8; 64],
}

const _: () = assert!(size_of::<Request>() == 3 * 64);

// SAFETY: the work requests hold pointers only into the ring's own boxes, which do not move, and nothing is
// changed after construction; libibverbs only reads them. The QP may be posted to from any thread.
unsafe impl Send for SendRing {}
// SAFETY: as above.
unsafe impl Sync for SendRing {}

impl SendRing {
    /// Memory of one prebuilt work request, in bytes.
    pub const BYTES_PER_WR: usize = size_of::<Request>() + size_of::<ibv_sge>();

    /// Prebuilds `templates` for `qp`, with payloads in `memory`.
    ///
    /// # Errors
    /// The device has no `post_send`, or a payload is outside of the memory.
    pub fn new(
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
        templates: &[SendTemplate],
    ) -> Result<Self, VerbsError> {
        let invalid = |code| VerbsError::returned(Operation::PostSend, "prebuilding WRs", code);
        // SAFETY: the QP and so its context are alive, and the table of operations is filled.
        let post = unsafe { (*(*qp.raw()).context).ops.post_send };
        let post = post.ok_or_else(|| invalid(libc::EOPNOTSUPP))?;
        let mut sges: Box<[ibv_sge]> = templates
            .iter()
            .map(|template| {
                memory
                    .element(template.offset, template.length_bytes)
                    .ok_or_else(|| invalid(libc::EFAULT))
            })
            .collect::<Result<_, _>>()?;
        let mut requests: Box<[Request]> = templates
            .iter()
            .zip(sges.iter_mut())
            .map(|(template, sge)| Request {
                wr: work_request(template, sge),
                _apart: [0; 64],
            })
            .collect();
        link(&mut requests, templates);
        Ok(SendRing {
            raw_qp: qp.raw(),
            _qp: Arc::clone(qp),
            _memory: Arc::clone(memory),
            requests,
            _sges: sges,
            post,
        })
    }

    /// Posts the chain that begins at `first`, up to the WR that ends it.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EINVAL for a `first` outside of the ring.
    #[inline]
    pub fn post(&self, first: usize) -> Result<(), PostError> {
        let Some(request) = self.requests.get(first) else {
            return Err(PostError(libc::EINVAL));
        };
        let wr = std::ptr::from_ref(&request.wr).cast_mut();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the WR, its chain and their elements live in this ring and their payloads in the MR it
        // keeps; `ibv_post_send` does not write to them.
        let code = unsafe { (self.post)(self.raw_qp, wr, &mut bad) };
        if code == 0 {
            Ok(())
        } else {
            Err(PostError(code))
        }
    }

    /// Posts copies of the `count` WRs from `first` as one chain, each changed by `edit`, which gets its index in the
    /// chain. The copies cost time, so do not use it in the steady state.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EINVAL for WRs outside of the ring or more than the scratch holds.
    pub fn post_edited(
        &self,
        scratch: &mut SendScratch,
        first: usize,
        count: usize,
        mut edit: impl FnMut(usize, &mut SendEdit<'_>),
    ) -> Result<(), PostError> {
        let requests = self.requests.get(first..first + count);
        let (Some(requests), true) = (requests, count <= scratch.0.capacity()) else {
            return Err(PostError(libc::EINVAL));
        };
        scratch.0.clear();
        for (place, request) in requests.iter().enumerate() {
            // SAFETY: a bitwise copy of plain data; what it points to lives in the ring.
            let mut copy = unsafe { std::ptr::read(&request.wr) };
            copy.next = std::ptr::null_mut();
            edit(place, &mut SendEdit(&mut copy));
            scratch.0.push(copy);
        }
        let start = scratch.0.as_mut_ptr();
        for (place, copy) in scratch
            .0
            .iter_mut()
            .take(count.saturating_sub(1))
            .enumerate()
        {
            copy.next = start.wrapping_add(place + 1);
        }
        if count == 0 {
            return Ok(());
        }
        let mut bad = std::ptr::null_mut();
        // SAFETY: as in `post`; the copies live in the scratch, which is not touched during the call.
        let code = unsafe { (self.post)(self.raw_qp, start, &mut bad) };
        if code == 0 {
            Ok(())
        } else {
            Err(PostError(code))
        }
    }
}

/// A buffer for copies of work requests.
pub struct SendScratch(Vec<ibv_send_wr>);

impl SendScratch {
    /// A buffer for chains of `length` WRs.
    pub fn new(length: usize) -> Self {
        SendScratch(Vec::with_capacity(length))
    }
}

/// A copied work request about to be posted.
pub struct SendEdit<'a>(&'a mut ibv_send_wr);

impl SendEdit<'_> {
    /// Adds immediate data to a SEND.
    pub fn set_immediate(&mut self, data: u32) {
        self.0.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        self.0.imm_data_invalidated_rkey_union.imm_data = data.to_be();
    }

    /// Makes it signalled with another `wr_id`, or not signalled.
    pub fn set_signalled(&mut self, wr_id: Option<u64>) {
        self.0.send_flags &= !ibv_send_flags::IBV_SEND_SIGNALED.0;
        if let Some(wr_id) = wr_id {
            self.0.send_flags |= ibv_send_flags::IBV_SEND_SIGNALED.0;
            self.0.wr_id = wr_id;
        }
    }
}

/// The error number with which `ibv_post_send` or `ibv_post_recv` failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError(i32);

impl PostError {
    pub(super) fn new(code: i32) -> Self {
        PostError(code)
    }

    /// The error of `operation` on the QP with number `qpn`.
    pub fn into_error(self, operation: Operation, qpn: u32) -> VerbsError {
        let code = if self.0 == -1 { 0 } else { self.0.abs() };
        let object = format!("QP {qpn:#08x}");
        VerbsError::Call {
            operation,
            object,
            source: io::Error::from_raw_os_error(code),
        }
    }
}

fn work_request(template: &SendTemplate, sge: &mut ibv_sge) -> ibv_send_wr {
    // SAFETY: plain data, for which zero is valid.
    let mut wr: ibv_send_wr = unsafe { zeroed() };
    wr.wr_id = template.wr_id;
    wr.sg_list = sge;
    wr.num_sge = 1;
    if template.signalled {
        wr.send_flags |= ibv_send_flags::IBV_SEND_SIGNALED.0;
    }
    if template.inline {
        wr.send_flags |= ibv_send_flags::IBV_SEND_INLINE.0;
    }
    let remote = match template.opcode {
        SendOpcode::Send => {
            wr.opcode = ibv_wr_opcode::IBV_WR_SEND;
            None
        }
        SendOpcode::Write { address, rkey } => {
            wr.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE;
            Some((address, rkey))
        }
        SendOpcode::Read { address, rkey } => {
            wr.opcode = ibv_wr_opcode::IBV_WR_RDMA_READ;
            Some((address, rkey))
        }
    };
    if let Some((remote_addr, rkey)) = remote {
        wr.wr.rdma = rdma_sys::rdma_t { remote_addr, rkey };
    }
    wr
}

/// Links each WR to the next in the ring, except at the ends of chains.
fn link(requests: &mut [Request], templates: &[SendTemplate]) {
    let start = requests.as_mut_ptr();
    let length = requests.len();
    for (index, (request, template)) in requests.iter_mut().zip(templates).enumerate() {
        request.wr.next = if template.ends_chain {
            std::ptr::null_mut()
        } else {
            // `wr` is the first field.
            start.wrapping_add((index + 1) % length).cast()
        };
    }
}
