//! Prebuilt send work requests of one QP. They are linked and filled once; posting them again changes
//! nothing, so any thread may post any of them.

use std::io;
use std::mem::zeroed;
use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode};

use super::{MemoryRegion, Operation, QueuePair, VerbsError};

type PostFunction =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> i32;

/// What a send work request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOpcode {
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendWithImmediate(u32),
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
    /// Comes back in its completion.
    pub wr_id: u64,
    /// What it does.
    pub opcode: SendOpcode,
    /// Where its payload is, from the start of the MR, in bytes.
    pub offset: usize,
    /// Length of its payload, in bytes.
    pub length_bytes: u32,
    /// Whether it completes by a completion of its own.
    pub signalled: bool,
    /// Whether its payload is copied into the work request.
    pub inline: bool,
    /// Whether a call of `ibv_post_send` that reaches it ends with it.
    pub ends_chain: bool,
}

/// Prebuilt work requests, linked into chains, each chain one call of `ibv_post_send`.
pub struct SendRing {
    qp: Arc<QueuePair>,
    /// Kept so that the payloads outlive the ring.
    _memory: Arc<MemoryRegion>,
    wrs: Box<[ibv_send_wr]>,
    /// The `sg_list`s point here.
    _sges: Box<[ibv_sge]>,
    post: PostFunction,
}

// SAFETY: the work requests hold pointers only into the ring's own boxes, which do not move, and
// nothing is changed after construction; libibverbs only reads them.
unsafe impl Send for SendRing {}
// SAFETY: as above.
unsafe impl Sync for SendRing {}

impl SendRing {
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
                let end = template.offset.checked_add(template.length_bytes as usize);
                match end {
                    Some(end) if end <= memory.length_bytes() => Ok(ibv_sge {
                        addr: memory.address() + template.offset as u64,
                        length: template.length_bytes,
                        lkey: memory.lkey(),
                    }),
                    _ => Err(invalid(libc::EFAULT)),
                }
            })
            .collect::<Result<_, _>>()?;
        let mut wrs: Box<[ibv_send_wr]> = templates
            .iter()
            .zip(sges.iter_mut())
            .map(|(template, sge)| work_request(template, sge))
            .collect();
        link(&mut wrs, templates);
        Ok(SendRing {
            qp: Arc::clone(qp),
            _memory: Arc::clone(memory),
            wrs,
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
        let Some(wr) = self.wrs.get(first) else {
            return Err(PostError(libc::EINVAL));
        };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the WR, its chain and their elements live in this ring and their payloads in the MR it
        // keeps; `ibv_post_send` does not write to them.
        let code =
            unsafe { (self.post)(self.qp.raw(), std::ptr::from_ref(wr).cast_mut(), &mut bad) };
        if code == 0 {
            Ok(())
        } else {
            Err(PostError(code))
        }
    }

    /// Posts `count` WRs from `first` on, going round at the end, of which only the last is signalled,
    /// as `wr_id`: the end of a run whose length is no multiple of a batch. It copies them, so it is not
    /// for the steady state.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`.
    pub fn post_tail(&self, first: usize, count: usize, wr_id: u64) -> Result<(), PostError> {
        for k in 0..count {
            let wr = self.wrs.get((first + k) % self.wrs.len().max(1));
            let Some(wr) = wr else {
                return Err(PostError(libc::EINVAL));
            };
            // SAFETY: a bitwise copy of plain data; what it points to lives in the ring.
            let mut copy = unsafe { std::ptr::read(wr) };
            copy.next = std::ptr::null_mut();
            copy.send_flags &= !ibv_send_flags::IBV_SEND_SIGNALED.0;
            if k + 1 == count {
                copy.send_flags |= ibv_send_flags::IBV_SEND_SIGNALED.0;
                copy.wr_id = wr_id;
            }
            let mut bad = std::ptr::null_mut();
            // SAFETY: as in `post`; the copy is only needed for the call.
            let code = unsafe { (self.post)(self.qp.raw(), &mut copy, &mut bad) };
            if code != 0 {
                return Err(PostError(code));
            }
        }
        Ok(())
    }
}

/// `ibv_post_send` or `ibv_post_recv` refused, with this error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostError(i32);

impl PostError {
    pub(super) fn new(code: i32) -> Self {
        PostError(code)
    }

    /// As an error of `operation` on the QP with number `qpn`.
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
        SendOpcode::SendWithImmediate(data) => {
            wr.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
            wr.imm_data_invalidated_rkey_union.imm_data = data.to_be();
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

/// Links each WR to the next, round the ring, but for those that end a chain.
fn link(wrs: &mut [ibv_send_wr], templates: &[SendTemplate]) {
    let start = wrs.as_mut_ptr();
    let length = wrs.len();
    for (index, (wr, template)) in wrs.iter_mut().zip(templates).enumerate() {
        wr.next = if template.ends_chain {
            std::ptr::null_mut()
        } else {
            start.wrapping_add((index + 1) % length)
        };
    }
}
