//! Prebuilt receive work requests of one QP. They never change, so any thread may post any of them.

use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_recv_wr, ibv_sge};

use super::{MemoryRegion, Operation, PostError, QueuePair, VerbsError};

type PostFunction =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32;

/// One receive to prebuild.
#[derive(Clone, Copy, Debug)]
pub struct RecvTemplate {
    /// Returned in its completion.
    pub wr_id: u64,
    /// Offset of its buffer in the MR, in bytes.
    pub offset: usize,
    /// Length of its buffer, in bytes.
    pub length_bytes: u32,
}

/// Prebuilt receives: either linked into one chain, of which one call can post any tail, or posted one by one.
pub struct RecvRing {
    qp: Arc<QueuePair>,
    _memory: Arc<MemoryRegion>,
    wrs: Box<[ibv_recv_wr]>,
    _sges: Box<[ibv_sge]>,
    post: PostFunction,
}

// SAFETY: the work requests hold pointers only into the ring's own boxes, which do not move, and
// nothing is changed after construction; libibverbs only reads them.
unsafe impl Send for RecvRing {}
// SAFETY: as above.
unsafe impl Sync for RecvRing {}

impl RecvRing {
    /// Memory of one prebuilt receive, in bytes.
    pub const BYTES_PER_WR: usize = size_of::<ibv_recv_wr>() + size_of::<ibv_sge>();

    /// Prebuilds `templates` for `qp` with buffers in `memory`; `linked` links them into one chain.
    ///
    /// # Errors
    /// The device has no `post_recv`, or a buffer is outside of the memory.
    pub fn new(
        qp: &Arc<QueuePair>,
        memory: &Arc<MemoryRegion>,
        templates: &[RecvTemplate],
        linked: bool,
    ) -> Result<Self, VerbsError> {
        let invalid = |code| VerbsError::returned(Operation::PostRecv, "prebuilding WRs", code);
        // SAFETY: the QP and so its context are alive, and the table of operations is filled.
        let post = unsafe { (*(*qp.raw()).context).ops.post_recv };
        let post = post.ok_or_else(|| invalid(libc::EOPNOTSUPP))?;
        let mut sges: Box<[ibv_sge]> = templates
            .iter()
            .map(|template| {
                memory
                    .element(template.offset, template.length_bytes)
                    .ok_or_else(|| invalid(libc::EFAULT))
            })
            .collect::<Result<_, _>>()?;
        let mut wrs: Box<[ibv_recv_wr]> = templates
            .iter()
            .zip(sges.iter_mut())
            .map(|(template, sge)| ibv_recv_wr {
                wr_id: template.wr_id,
                next: std::ptr::null_mut(),
                sg_list: sge,
                num_sge: 1,
            })
            .collect();
        if linked {
            let start = wrs.as_mut_ptr();
            let last = wrs.len().saturating_sub(1);
            for (index, wr) in wrs.iter_mut().take(last).enumerate() {
                wr.next = start.wrapping_add(index + 1);
            }
        }
        Ok(RecvRing {
            qp: Arc::clone(qp),
            _memory: Arc::clone(memory),
            wrs,
            _sges: sges,
            post,
        })
    }

    /// Number of prebuilt receives.
    pub fn len(&self) -> usize {
        self.wrs.len()
    }

    /// Whether there are no receives.
    pub fn is_empty(&self) -> bool {
        self.wrs.is_empty()
    }

    /// Posts from `first` to the end of its chain: in a linked ring the last `len() - first` receives, otherwise one
    /// receive.
    ///
    /// # Errors
    /// The error number of `ibv_post_recv`; EINVAL for a `first` outside of the ring.
    #[inline]
    pub fn post(&self, first: usize) -> Result<(), PostError> {
        let Some(wr) = self.wrs.get(first) else {
            return Err(PostError::new(libc::EINVAL));
        };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the WR, its chain and their elements live in this ring and their buffers in the MR it
        // keeps; `ibv_post_recv` does not write to them.
        let code =
            unsafe { (self.post)(self.qp.raw(), std::ptr::from_ref(wr).cast_mut(), &mut bad) };
        if code == 0 {
            Ok(())
        } else {
            Err(PostError::new(code))
        }
    }
}
