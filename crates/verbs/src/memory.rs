//! Protection domains, and regions of memory that are registered in them. A device has only the [`Access`] with which an MR was registered.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Acquire;

use rdma_sys::{ibv_access_flags, ibv_mr, ibv_pd, ibv_sge, ibv_td};

use crate::error::TeardownToken;
use crate::mapping::{Mapping, Place, Registration};
use crate::{Context, Operation, Teardown, VerbsError, ffi};

pub struct ProtectionDomain {
    context: Arc<Context>,
    raw: NonNull<ibv_pd>,
    deallocated: bool,
}

// SAFETY: a PD may be used from any thread (libibverbs objects are thread-safe) and is never changed.
unsafe impl Send for ProtectionDomain {}
// SAFETY: as above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    /// A PD of this device, by `ibv_alloc_pd(3)`.
    pub fn new(context: &Arc<Context>) -> Result<Arc<Self>, VerbsError> {
        // SAFETY: the context is open.
        let raw = unsafe { (context.library().alloc_pd)(context.raw()) };
        let raw = NonNull::new(raw)
            .ok_or_else(|| VerbsError::last(Operation::AllocPd, context.name()))?;
        Ok(Arc::new(ProtectionDomain { context: Arc::clone(context), raw, deallocated: false }))
    }

    /// The device it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn raw(&self) -> *mut ibv_pd {
        self.raw.as_ptr()
    }
}

impl Teardown for ProtectionDomain {
    const OPERATION: Operation = Operation::DeallocPd;

    fn object(&self) -> String {
        self.context.name().to_owned()
    }

    fn tear_down(&mut self, _: TeardownToken) -> i32 {
        self.deallocated = true;
        // SAFETY: all MRs and QPs made from it held an `Arc` to it, so they are gone; it was not deallocated before.
        unsafe { (self.context.library().dealloc_pd)(self.raw()) }
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        if !self.deallocated {
            self.tear_down(TeardownToken::new());
        }
    }
}

/// A device's access to an MR, besides reading it for this end's own requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No more access: for payloads that are sent or written.
    LocalRead,
    /// This end's own receives and READs write into it.
    LocalWrite,
    /// The peer may RDMA WRITE to it.
    RemoteWrite,
    /// The peer may RDMA READ from it.
    RemoteRead,
    /// The peer may change words of it by atomic operations.
    RemoteAtomic,
}

impl Access {
    /// The fewest flags of `ibv_reg_mr(3)`, by which remote writes and atomics require local write.
    fn flags(self) -> u32 {
        let write = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
        match self {
            Access::LocalRead => 0,
            Access::LocalWrite => write,
            Access::RemoteWrite => write | ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0,
            Access::RemoteRead => ibv_access_flags::IBV_ACCESS_REMOTE_READ.0,
            Access::RemoteAtomic => write | ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0,
        }
    }

    /// The flags as C code with the names of `verbs.h`.
    pub fn c_flags(self) -> &'static str {
        match self {
            Access::LocalRead => "0",
            Access::LocalWrite => "IBV_ACCESS_LOCAL_WRITE",
            Access::RemoteWrite => "IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE",
            Access::RemoteRead => "IBV_ACCESS_REMOTE_READ",
            Access::RemoteAtomic => "IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC",
        }
    }

    /// The flags for `qp_access_flags` as C code.
    pub fn c_qp_flags(self) -> &'static str {
        match self {
            Access::LocalRead | Access::LocalWrite => "0",
            Access::RemoteWrite => "IBV_ACCESS_REMOTE_WRITE",
            Access::RemoteRead => "IBV_ACCESS_REMOTE_READ",
            Access::RemoteAtomic => "IBV_ACCESS_REMOTE_ATOMIC",
        }
    }

    /// The flags (`qp_access_flags`) that let the peer use such memory through a QP.
    pub(super) fn qp_flags(self) -> u32 {
        self.flags() & !ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0
    }
}

/// The order in which a device's writes into an MR reach memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ordering {
    /// In the order in which they were made.
    #[default]
    Strict,
    /// One may pass another, if the library, the kernel and the adapter have it (`IBV_ACCESS_RELAXED_ORDERING`); a completion
    /// passes none.
    Relaxed,
}

impl Ordering {
    fn flags(self) -> u32 {
        match self {
            Ordering::Strict => 0,
            Ordering::Relaxed => ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0,
        }
    }
}

/// Zeroed memory together with its registration.
///
/// A device may read and write it at any time, so it is never borrowed as a slice: bytes are copied in and out.
pub struct MemoryRegion {
    pd: Arc<ProtectionDomain>,
    raw: NonNull<ibv_mr>,
    /// Keeps the memory as long as the MR.
    mapping: Arc<Mapping>,
    /// Of its first byte in the mapping.
    offset: usize,
    /// Only the GPU's library copies.
    is_of_gpu: bool,
    start: NonNull<u8>,
    length_bytes: usize,
    deregistered: bool,
}

// SAFETY: the memory is only reached by raw copies, which have no aliasing rules to break; MRs may be used from any
// thread.
unsafe impl Send for MemoryRegion {}
// SAFETY: as above. Two threads that copy into the same bytes leave either's bytes, as a device would.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// Allocates `length_bytes` of zeroes that begin on a page, on `numa_node` if the kernel can, and registers them with
    /// `access`.
    ///
    /// # Errors
    /// No memory, or the failed registration.
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        length_bytes: usize,
        access: Access,
        numa_node: Option<u32>,
    ) -> Result<Arc<Self>, VerbsError> {
        let mapping = Mapping::new(length_bytes, Place::Ordinary, numa_node)?;
        let rights = (access, Ordering::Strict);
        let range = (0, mapping.length_bytes());
        MemoryRegion::within(pd, &mapping, range, rights, Registration::Address)
    }

    /// Registers bytes from an offset of `mapping`, so many, with this access and ordering, in one of its ways.
    ///
    /// # Errors
    /// The failed registration; EFAULT for bytes outside of the mapping.
    pub fn within(
        pd: &Arc<ProtectionDomain>,
        mapping: &Arc<Mapping>,
        (offset, length_bytes): (usize, usize),
        (access, ordering): (Access, Ordering),
        way: Registration,
    ) -> Result<Arc<Self>, VerbsError> {
        let object = || format!("{} ({length_bytes} bytes)", pd.context().name());
        let operation = match way {
            Registration::Address => Operation::RegMr,
            Registration::Dmabuf => Operation::RegDmabufMr,
            Registration::PeerMemory => Operation::RegPeerMemory,
        };
        let outside = || VerbsError::returned(operation, object(), libc::EFAULT);
        let start = mapping.at(offset, length_bytes).ok_or_else(outside)?;
        let flags = (access.flags() | ordering.flags()).cast_signed();
        let library = pd.context.library();
        let raw = if way == Registration::Dmabuf {
            let (descriptor, before) = mapping.descriptor().ok_or_else(outside)?;
            let (in_dmabuf, iova) = (before + offset as u64, start.as_ptr().addr() as u64);
            // SAFETY: the range is inside the dmabuf, which lives until after the MR is deregistered.
            unsafe {
                (library.reg_dmabuf_mr)(pd.raw(), in_dmabuf, length_bytes, iova, descriptor, flags)
            }
        } else {
            // SAFETY: the range is inside the mapping, which lives until after the MR is deregistered.
            unsafe { (library.reg_mr)(pd.raw(), start.as_ptr().cast(), length_bytes, flags) }
        };
        let raw = NonNull::new(raw).ok_or_else(|| VerbsError::last(operation, object()))?;
        Ok(Arc::new(MemoryRegion {
            pd: Arc::clone(pd),
            raw,
            mapping: Arc::clone(mapping),
            offset,
            is_of_gpu: mapping.is_of_gpu(),
            start,
            length_bytes,
            deregistered: false,
        }))
    }

    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Virtual address of the first byte.
    pub fn address(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The key for this end's own requests.
    pub fn lkey(&self) -> u32 {
        // SAFETY: the MR is registered while `self` lives.
        unsafe { self.raw.as_ref().lkey }
    }

    /// The key for the peer's requests.
    pub fn rkey(&self) -> u32 {
        // SAFETY: the MR is registered while `self` lives.
        unsafe { self.raw.as_ref().rkey }
    }

    /// A scatter/gather element for `length_bytes` at `offset`; `None` if they are not all in the MR.
    pub(super) fn element(&self, offset: usize, length_bytes: u32) -> Option<ibv_sge> {
        let end = offset.checked_add(length_bytes as usize)?;
        (end <= self.length_bytes).then(|| ibv_sge {
            addr: self.address() + offset as u64,
            length: length_bytes,
            lkey: self.lkey(),
        })
    }

    /// Copies `bytes` to `offset`; drops those beyond the end. A failure of a GPU is kept: see [`Mapping::check`].
    pub fn write_at(&self, offset: usize, bytes: &[u8]) {
        let length = self.clamp(offset, bytes.len());
        if self.is_of_gpu {
            return self.mapping.copy_in(self.offset + offset, &bytes[..length]);
        }
        // SAFETY: `offset + length` is inside the mapping; the slice cannot overlap it, since it is
        // never lent out.
        unsafe {
            let target = self.start.as_ptr().add(offset.min(self.length_bytes));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, length);
        }
    }

    /// Copies bytes from `offset` into `into`; returns how many there were before the end, none where a GPU failed.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        let length = self.clamp(offset, into.len());
        if self.is_of_gpu {
            return self.mapping.copy_out(self.offset + offset, &mut into[..length]);
        }
        // SAFETY: as in `write_at`.
        unsafe {
            let source = self.start.as_ptr().add(offset.min(self.length_bytes));
            std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), length);
        }
        length
    }

    /// The byte at `offset`, which the device may write meanwhile; 0 beyond the end, and of a GPU's memory. What the device wrote before it is
    /// then in memory too, on an ordered MR.
    #[inline]
    pub fn byte_at(&self, offset: usize) -> u8 {
        if offset >= self.length_bytes || self.is_of_gpu {
            return 0;
        }
        // SAFETY: it is inside the mapping, which nobody borrows, and any byte is an `AtomicU8`.
        let byte = unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU8>() };
        byte.load(Acquire)
    }

    fn clamp(&self, offset: usize, wanted: usize) -> usize {
        wanted.min(self.length_bytes.saturating_sub(offset))
    }
}

impl Teardown for MemoryRegion {
    const OPERATION: Operation = Operation::DeregMr;

    fn object(&self) -> String {
        format!("{} ({} bytes)", self.pd.context.name(), self.length_bytes)
    }

    fn tear_down(&mut self, _: TeardownToken) -> i32 {
        self.deregistered = true;
        // SAFETY: rings that refer to it hold an `Arc`, so no QP of ours still uses it; it was not deregistered
        // before, and nobody reads its keys any more.
        unsafe { (self.pd.context.library().dereg_mr)(self.raw.as_ptr()) }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        if !self.deregistered {
            self.tear_down(TeardownToken::new());
        }
    }
}

/// A thread domain, with the parent domain that joins it to a PD: QPs are made in that. What one thread alone uses, the
/// library does not lock (`ibv_alloc_td(3)`).
pub struct ThreadDomain {
    pd: Arc<ProtectionDomain>,
    parent: NonNull<ibv_pd>,
    raw: NonNull<ibv_td>,
}

// SAFETY: a domain is only named when QPs are made in it, which the library locks, and never changes.
unsafe impl Send for ThreadDomain {}
// SAFETY: as above.
unsafe impl Sync for ThreadDomain {}

impl ThreadDomain {
    /// `ibv_alloc_td(3)` and `ibv_alloc_parent_domain(3)` of `pd`.
    ///
    /// # Errors
    /// The failed call: EOPNOTSUPP on a device without them.
    pub fn new(pd: &Arc<ProtectionDomain>) -> Result<Arc<Self>, VerbsError> {
        let context = pd.context();
        let failed = |operation| VerbsError::last(operation, context.name());
        // SAFETY: the context is open.
        let raw = NonNull::new(unsafe { ffi::alloc_td(context.raw()) })
            .ok_or_else(|| failed(Operation::AllocTd))?;
        // SAFETY: both are alive and of one context.
        let parent = NonNull::new(unsafe { ffi::alloc_parent_domain(pd.raw(), raw.as_ptr()) });
        let Some(parent) = parent else {
            let error = failed(Operation::AllocParentDomain);
            // SAFETY: made above, and nothing uses it.
            unsafe { ffi::dealloc_td(raw.as_ptr()) };
            return Err(error);
        };
        Ok(Arc::new(ThreadDomain { pd: Arc::clone(pd), parent, raw }))
    }

    pub(super) fn raw(&self) -> *mut ibv_pd {
        self.parent.as_ptr()
    }
}

impl Drop for ThreadDomain {
    fn drop(&mut self) {
        // SAFETY: QPs made in it held an `Arc` to it, so they are gone; neither was deallocated before.
        unsafe {
            (self.pd.context().library().dealloc_pd)(self.parent.as_ptr());
            ffi::dealloc_td(self.raw.as_ptr());
        }
    }
}
