//! Work requests of one QP that are built when they are posted, for messages so large that the cost does not matter.
//! Small messages in a steady state use the prebuilt rings.

use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge, ibv_wr_opcode, rdma_t};

use super::qp::PostSend;
use super::{MemoryRegion, Operation, PostError, QueuePair, VerbsError};

type PostRecv = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32;

/// Posts to one QP, with payloads in one MR.
pub struct Poster {
    qp: Arc<QueuePair>,
    memory: Arc<MemoryRegion>,
    post_send: PostSend,
    post_recv: PostRecv,
}

/// An RDMA WRITE with immediate data.
#[derive(Clone, Copy, Debug)]
pub struct ImmediateWrite {
    /// Returned in its completion.
    pub wr_id: u64,
    /// Offset of the payload in the MR, in bytes.
    pub offset: usize,
    /// Length of the payload, in bytes.
    pub length_bytes: u32,
    /// Address in the peer's memory.
    pub address: u64,
    /// The peer's key for it.
    pub rkey: u32,
    /// Immediate data of the peer's receive completion.
    pub immediate: u32,
}

impl Poster {
    /// A poster for `qp` with payloads in `memory`.
    ///
    /// # Errors
    /// The device has no `post_send` or no `post_recv`.
    pub fn new(qp: &Arc<QueuePair>, memory: &Arc<MemoryRegion>) -> Result<Self, VerbsError> {
        let missing =
            |operation| VerbsError::returned(operation, "a device without it", libc::EOPNOTSUPP);
        // SAFETY: the QP and so its context are alive, and the table of operations is filled.
        let ops = unsafe { &(*(*qp.raw()).context).ops };
        Ok(Poster {
            post_send: qp.post_send().ok_or_else(|| missing(Operation::PostSend))?,
            post_recv: ops.post_recv.ok_or_else(|| missing(Operation::PostRecv))?,
            qp: Arc::clone(qp),
            memory: Arc::clone(memory),
        })
    }

    pub fn qpn(&self) -> u32 {
        self.qp.qpn()
    }

    /// The MR of the payloads.
    pub fn memory(&self) -> &MemoryRegion {
        &self.memory
    }

    /// Posts a signalled RDMA WRITE with immediate data.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`; EFAULT for a payload outside of the MR.
    pub fn write(&self, write: &ImmediateWrite) -> Result<(), PostError> {
        let element = self
            .memory
            .element(write.offset, write.length_bytes)
            .ok_or(PostError::new(libc::EFAULT))?;
        let mut wr = signalled(write.wr_id, write.immediate);
        wr.opcode = ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.wr.rdma = rdma_t { remote_addr: write.address, rkey: write.rkey };
        self.post(wr, Some(element))
    }

    /// Posts a signalled SEND of immediate data only.
    ///
    /// # Errors
    /// The error number of `ibv_post_send`.
    pub fn tell(&self, wr_id: u64, immediate: u32) -> Result<(), PostError> {
        let mut wr = signalled(wr_id, immediate);
        wr.opcode = ibv_wr_opcode::IBV_WR_SEND_WITH_IMM;
        self.post(wr, None)
    }

    fn post(&self, mut wr: ibv_send_wr, mut element: Option<ibv_sge>) -> Result<(), PostError> {
        if let Some(element) = &mut element {
            wr.sg_list = element;
            wr.num_sge = 1;
        }
        let mut bad = null_mut();
        // SAFETY: the QP is alive; request and element live during the call, which copies them; the payload is in
        // the MR, which is kept.
        PostError::from_code(unsafe { (self.post_send)(self.qp.raw(), &raw mut wr, &raw mut bad) })
    }

    /// Posts a receive without a buffer, for immediate data.
    ///
    /// # Errors
    /// The error number of `ibv_post_recv`.
    pub fn receive(&self, wr_id: u64) -> Result<(), PostError> {
        let mut wr = ibv_recv_wr { wr_id, next: null_mut(), sg_list: null_mut(), num_sge: 0 };
        let mut bad = null_mut();
        // SAFETY: the QP is alive, and the request lives during the call, which copies it.
        PostError::from_code(unsafe { (self.post_recv)(self.qp.raw(), &raw mut wr, &raw mut bad) })
    }
}

fn signalled(wr_id: u64, immediate: u32) -> ibv_send_wr {
    // SAFETY: plain data, for which zero is valid.
    let mut wr: ibv_send_wr = unsafe { zeroed() };
    wr.wr_id = wr_id;
    wr.send_flags = ibv_send_flags::IBV_SEND_SIGNALED.0;
    wr.imm_data_invalidated_rkey_union.imm_data = immediate.to_be();
    wr
}
