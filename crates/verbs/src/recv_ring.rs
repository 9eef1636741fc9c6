//! Prebuilt receive work requests of one QP, or of an SRQ. They never change, so any thread may post any of them. Only where
//! they walk through memory, the poster of one first changes its addresses, and one thread posts them all.

use std::slice;
use std::sync::Arc;

use rdma_sys::{ibv_qp, ibv_recv_wr, ibv_sge, ibv_srq};

use crate::walk::{Buffer, Walker, elements};
use crate::{MemoryRegion, Operation, PostError, QueuePair, SharedReceiveQueue, VerbsError, Walk};

type PostToQp = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32;
type PostToSrq = unsafe extern "C" fn(*mut ibv_srq, *mut ibv_recv_wr, *mut *mut ibv_recv_wr) -> i32;

#[derive(Clone, Copy, Debug)]
pub struct RecvTemplate {
    /// A number of the caller's, returned in its completion.
    pub wr_id: u64,
    /// Offset of its buffer in the MR, in bytes.
    pub offset: usize,
    /// Length of its buffer, in bytes.
    pub length_bytes: u32,
    /// Elements that the buffer is cut into; one for each byte if those are fewer.
    pub sges: u32,
}

enum Queue {
    Own(Arc<QueuePair>, PostToQp),
    Shared(Arc<SharedReceiveQueue>, PostToSrq),
}

/// Prebuilt receives: either linked into one chain, of which one call can post any tail, or posted one by one.
pub struct RecvRing {
    queue: Queue,
    memory: Arc<MemoryRegion>,
    wrs: Box<[ibv_recv_wr]>,
    _sges: Box<[ibv_sge]>,
    walker: Option<Walker>,
}

// SAFETY: the work requests hold pointers only into the ring's own boxes, which do not move; libibverbs only reads them.
// After construction only addresses change, by atomic stores of a thread that posts; were there two at a time, addresses
// would be wrong, and the device does not go beyond the MR.
unsafe impl Send for RecvRing {}
// SAFETY: as above.
unsafe impl Sync for RecvRing {}

impl RecvRing {
    /// Memory of one prebuilt receive with so many elements, in bytes.
    pub const fn bytes_per_wr(sges: u32) -> usize {
        size_of::<ibv_recv_wr>() + sges as usize * size_of::<ibv_sge>()
    }

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
        // SAFETY: the QP and so its context are alive, and the table of operations is filled.
        let post = unsafe { (*(*qp.raw()).context).ops.post_recv }
            .ok_or_else(|| invalid(libc::EOPNOTSUPP))?;
        RecvRing::with_templates(Queue::Own(Arc::clone(qp), post), memory, templates, linked)
    }

    /// The same for all QPs of `srq`.
    ///
    /// # Errors
    /// The device has no `post_srq_recv`, or a buffer is outside of the memory.
    pub fn shared(
        srq: &Arc<SharedReceiveQueue>,
        memory: &Arc<MemoryRegion>,
        templates: &[RecvTemplate],
        linked: bool,
    ) -> Result<Self, VerbsError> {
        // SAFETY: the SRQ and so its context are alive, and the table of operations is filled.
        let post = unsafe { (*(*srq.raw()).context).ops.post_srq_recv }
            .ok_or_else(|| invalid(libc::EOPNOTSUPP))?;
        RecvRing::with_templates(Queue::Shared(Arc::clone(srq), post), memory, templates, linked)
    }

    fn with_templates(
        queue: Queue,
        memory: &Arc<MemoryRegion>,
        templates: &[RecvTemplate],
        linked: bool,
    ) -> Result<Self, VerbsError> {
        let buffers = templates.iter().map(|template| Buffer {
            offset: template.offset,
            length_bytes: template.length_bytes,
            sges: template.sges,
        });
        let (sges, lists) = elements(memory, buffers).ok_or_else(|| invalid(libc::EFAULT))?;
        let mut wrs: Box<[ibv_recv_wr]> = templates
            .iter()
            .zip(lists)
            .map(|(template, (sg_list, num_sge))| ibv_recv_wr {
                wr_id: template.wr_id,
                next: std::ptr::null_mut(),
                sg_list,
                // A length of 0 means 2^31 to some devices.
                num_sge: if template.length_bytes > 0 { num_sge } else { 0 },
            })
            .collect();
        if linked {
            let start = wrs.as_mut_ptr();
            let last = wrs.len().saturating_sub(1);
            for (index, wr) in wrs.iter_mut().take(last).enumerate() {
                wr.next = start.wrapping_add(index + 1);
            }
        }
        Ok(RecvRing { queue, memory: Arc::clone(memory), wrs, _sges: sges, walker: None })
    }

    /// Memory of a walk of one prebuilt receive, in bytes.
    pub const WALK_BYTES_PER_WR: usize = Walker::BYTES_PER_WR;

    /// Has each receive use another of `walk`'s cells each time it is posted. They are in those of the first lap, and of one
    /// ring only one thread may post.
    ///
    /// # Errors
    /// EFAULT for receives that are not in their cells, and for cells outside of the memory.
    pub fn walking(mut self, walk: Walk) -> Result<Self, VerbsError> {
        if walk.laps() > 1 {
            // SAFETY: the elements of each receive, which the ring keeps.
            let lists = self
                .wrs
                .iter()
                .map(|wr| unsafe { slice::from_raw_parts(wr.sg_list, wr.num_sge.max(0) as usize) });
            let walker = Walker::new(walk, &self.memory, lists);
            self.walker = Some(walker.ok_or_else(|| invalid(libc::EFAULT))?);
        }
        Ok(self)
    }

    /// The lap of the walk in which receive `position` was posted last.
    pub fn last_lap(&self, position: usize) -> u64 {
        let walker = self.walker.as_ref();
        walker.map_or(0, |walker| walker.last_lap(position))
    }

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
    /// The error number of `ibv_post_recv` or `ibv_post_srq_recv`; EINVAL for a `first` outside of the ring.
    #[inline]
    pub fn post(&self, first: usize) -> Result<(), PostError> {
        let Some(wr) = self.wrs.get(first) else {
            return Err(PostError::new(libc::EINVAL));
        };
        if let Some(walker) = &self.walker {
            self.advance_chain(walker, first);
        }
        let wr = std::ptr::from_ref(wr).cast_mut();
        let mut bad = std::ptr::null_mut();
        // SAFETY: the WR, its chain and their elements live in this ring and their buffers in the MR it
        // keeps; posting does not write to them. The queue keeps its QP or SRQ alive.
        PostError::from_code(unsafe {
            match &self.queue {
                Queue::Own(qp, post) => post(qp.raw(), wr, &mut bad),
                Queue::Shared(srq, post) => post(srq.raw(), wr, &mut bad),
            }
        })
    }

    /// Moves the receives of the chain that begins at `first` to the cells of this use.
    #[inline(never)] // so that posting stays short where nothing walks
    fn advance_chain(&self, walker: &Walker, first: usize) {
        for (wr, position) in self.wrs.iter().zip(0..).skip(first) {
            // SAFETY: the receive's elements, which the ring keeps.
            unsafe { walker.advance(position, wr.sg_list, wr.num_sge) };
            if wr.next.is_null() {
                return;
            }
        }
    }
}

fn invalid(code: i32) -> VerbsError {
    VerbsError::returned(Operation::PostRecv, "prebuilding WRs", code)
}
