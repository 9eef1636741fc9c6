//! Protection domains, and memory with its registration. A device has only the [`Access`] with which an MR was registered.

use std::ptr::NonNull;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Acquire;
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use rdma_sys::{ibv_access_flags, ibv_mr, ibv_pd, ibv_sge, ibv_td};

use crate::error::TeardownToken;
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
    _mapping: Arc<Mapping>,
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
        let mapping = Mapping::new(length_bytes, Pages::Usual, numa_node)?;
        MemoryRegion::within(pd, &mapping, 0, mapping.length_bytes(), (access, Ordering::Strict))
    }

    /// Registers `length_bytes` at `offset` of `mapping` with this access and ordering.
    ///
    /// # Errors
    /// The failed registration; EFAULT for bytes outside of the mapping.
    pub fn within(
        pd: &Arc<ProtectionDomain>,
        mapping: &Arc<Mapping>,
        offset: usize,
        length_bytes: usize,
        (access, ordering): (Access, Ordering),
    ) -> Result<Arc<Self>, VerbsError> {
        let object = || format!("{} ({length_bytes} bytes)", pd.context().name());
        let start = mapping
            .at(offset, length_bytes)
            .ok_or_else(|| VerbsError::returned(Operation::RegMr, object(), libc::EFAULT))?;
        // SAFETY: the range is inside the mapping, which lives until after the MR is deregistered.
        let raw = unsafe {
            (pd.context.library().reg_mr)(
                pd.raw(),
                start.as_ptr().cast(),
                length_bytes,
                (access.flags() | ordering.flags()).cast_signed(),
            )
        };
        let raw = NonNull::new(raw).ok_or_else(|| VerbsError::last(Operation::RegMr, object()))?;
        Ok(Arc::new(MemoryRegion {
            pd: Arc::clone(pd),
            raw,
            _mapping: Arc::clone(mapping),
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

    /// Copies `bytes` to `offset`; drops those beyond the end.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) {
        let length = self.clamp(offset, bytes.len());
        // SAFETY: `offset + length` is inside the mapping; the slice cannot overlap it, since it is
        // never lent out.
        unsafe {
            let target = self.start.as_ptr().add(offset.min(self.length_bytes));
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, length);
        }
    }

    /// Copies bytes from `offset` into `into`; returns how many there were before the end.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> usize {
        let length = self.clamp(offset, into.len());
        // SAFETY: as in `write_at`.
        unsafe {
            let source = self.start.as_ptr().add(offset.min(self.length_bytes));
            std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), length);
        }
        length
    }

    /// The byte at `offset`, which the device may write meanwhile; 0 beyond the end. What the device wrote before it is
    /// then in memory too, on an ordered MR.
    #[inline]
    pub fn byte_at(&self, offset: usize) -> u8 {
        if offset >= self.length_bytes {
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

/// Memory that is written to without a look around: a few milliseconds, or a tenth of a second on a starved machine.
const TOUCHED_BYTES: usize = 16 << 20;

/// Bytes of the smallest page that kernels have.
const LEAST_PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's usual pages, of 4 KiB on x86-64.
    Usual,
    /// Huge pages that were reserved (`/proc/sys/vm/nr_hugepages`).
    Huge,
    /// Huge pages where the kernel finds some (`madvise(2)`, MADV_HUGEPAGE).
    Transparent,
}

impl Pages {
    /// Bytes that memory of `bytes` takes on such pages.
    pub fn rounded(self, bytes: u64) -> u64 {
        match self {
            Pages::Usual => bytes,
            Pages::Huge => bytes.next_multiple_of(reserved_bytes() as u64),
            Pages::Transparent => bytes.next_multiple_of(transparent_bytes() as u64),
        }
    }
}

/// Zeroed memory for MRs that begins on a page: of the kind asked for, and on a NUMA node if the kernel can.
///
/// A device may read and write it at any time, so it is never borrowed as a slice.
pub struct Mapping {
    mapped: NonNull<u8>,
    mapped_bytes: usize,
    start: NonNull<u8>,
    length_bytes: usize,
}

// SAFETY: the memory belongs to this object alone and is only reached by raw copies, which have no aliasing rules to
// break.
unsafe impl Send for Mapping {}
// SAFETY: as above. Two threads that copy into the same bytes leave either's bytes, as a device would.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Allocates `wanted_bytes` of zeroes, at least 1.
    ///
    /// # Errors
    /// No memory, or no such pages.
    pub fn new(
        wanted_bytes: usize,
        pages: Pages,
        numa_node: Option<u32>,
    ) -> Result<Arc<Mapping>, VerbsError> {
        let length_bytes = wanted_bytes.max(1);
        let failed = |source| VerbsError::Call {
            operation: Operation::AllocMemory,
            object: format!("{length_bytes} bytes"),
            source,
        };
        let rounded = |page_bytes| {
            length_bytes
                .checked_next_multiple_of(page_bytes)
                .ok_or_else(|| failed(io::Error::from_raw_os_error(libc::ENOMEM)))
        };
        let mapping = match pages {
            Pages::Usual => {
                let mapped = map(length_bytes, 0).map_err(failed)?;
                Mapping { mapped, mapped_bytes: length_bytes, start: mapped, length_bytes }
            }
            Pages::Huge => {
                let page_bytes = reserved_bytes();
                let mapped_bytes = rounded(page_bytes)?;
                let mapped =
                    map(mapped_bytes, libc::MAP_HUGETLB).map_err(|_| VerbsError::NoHugePages {
                        needed: (mapped_bytes / page_bytes) as u64,
                        mib: page_bytes >> 20,
                    })?;
                Mapping { mapped, mapped_bytes, start: mapped, length_bytes }
            }
            Pages::Transparent => {
                Mapping::transparent(length_bytes, rounded(transparent_bytes())?, failed)?
            }
        };
        if let Some(node) = numa_node {
            prefer_node(mapping.start, length_bytes, node);
        }
        Ok(Arc::new(mapping))
    }

    fn transparent(
        length_bytes: usize,
        rounded: usize,
        failed: impl Fn(io::Error) -> VerbsError,
    ) -> Result<Mapping, VerbsError> {
        // Only whole huge pages become one, so the memory begins at a multiple of their size.
        let page_bytes = transparent_bytes();
        let mapped_bytes = rounded + page_bytes;
        let mapped = map(mapped_bytes, 0).map_err(failed)?;
        let ahead = mapped.as_ptr().align_offset(page_bytes);
        // SAFETY: `ahead` is less than the page that was mapped on top.
        let start = unsafe { mapped.add(ahead) };
        let mapping = Mapping { mapped, mapped_bytes, start, length_bytes };
        // SAFETY: a range of the mapping above; the advice changes no contents.
        match unsafe { libc::madvise(start.as_ptr().cast(), rounded, libc::MADV_HUGEPAGE) } {
            0 => Ok(mapping),
            _ => Err(VerbsError::NoTransparentPages),
        }
    }

    /// Writes to each page: one that was never written to is the kernel's single page of zeroes to who reads it. Many take
    /// seconds: `alive` is called between pieces, and may end it.
    ///
    /// # Errors
    /// That of `alive`.
    pub fn touch<E>(&self, alive: impl Fn() -> Result<(), E>) -> Result<(), E> {
        for offset in (0..self.length_bytes).step_by(LEAST_PAGE_BYTES) {
            if offset.is_multiple_of(TOUCHED_BYTES) {
                alive()?;
            }
            // SAFETY: inside the mapping, of which nobody has a reference.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
        Ok(())
    }

    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// The byte at `offset`, from which `length_bytes` more are inside; `None` if they are not.
    pub(super) fn at(&self, offset: usize, length_bytes: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(length_bytes)?;
        // SAFETY: the offset is inside the mapping.
        (end <= self.length_bytes).then(|| unsafe { self.start.add(offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of this length; MRs in it held an `Arc` to it.
        unsafe { libc::munmap(self.mapped.as_ptr().cast(), self.mapped_bytes) };
    }
}

fn map(length_bytes: usize, flags: i32) -> Result<NonNull<u8>, io::Error> {
    // SAFETY: a new anonymous mapping touches no existing memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))
}

/// Asks for pages of `node` (`mbind(2)`, MPOL_PREFERRED). A kernel without NUMA refuses, which is harmless.
fn prefer_node(start: NonNull<u8>, length_bytes: usize, node: u32) {
    const MPOL_PREFERRED: libc::c_int = 1;
    let bits = u64::BITS;
    let mut mask = [0u64; 16];
    let Some(word) = mask.get_mut((node / bits) as usize) else {
        return;
    };
    *word = 1 << (node % bits);
    // SAFETY: the range is a mapping of ours and the mask has the number of bits named.
    unsafe {
        libc::syscall(
            libc::SYS_mbind,
            start.as_ptr(),
            length_bytes,
            MPOL_PREFERRED,
            mask.as_ptr(),
            mask.len() * bits as usize,
            0,
        );
    }
}

// How large this kernel's huge pages are: 2 MiB on x86-64, 512 MiB where usual pages have 64 KiB.

/// Bytes of a huge page where the kernel does not tell.
const USUAL_BYTES: usize = 2 << 20;

/// Bytes of the huge pages that are reserved by `/proc/sys/vm/nr_hugepages`.
pub(super) fn reserved_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        reserved(&meminfo).unwrap_or(USUAL_BYTES)
    })
}

/// Bytes of the huge pages that the kernel gives without a reservation.
pub(super) fn transparent_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
        transparent(&text.unwrap_or_default()).unwrap_or(USUAL_BYTES)
    })
}

/// Of `/proc/meminfo`: the default size.
fn reserved(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    page(kib.checked_mul(1024)?)
}

fn transparent(text: &str) -> Option<usize> {
    page(text.trim().parse().ok()?)
}

fn page(bytes: usize) -> Option<usize> {
    bytes.is_power_of_two().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_range_is_inside_or_none() {
        let mapping = Mapping::new(10_000, Pages::Usual, None).unwrap();
        let start = mapping.at(0, 10_000).unwrap();
        assert_eq!(start.addr().get() % 4096, 0);
        assert!(mapping.at(9_999, 1).is_some());
        for (offset, length) in [(9_999, 2), (10_001, 0), (usize::MAX, 1)] {
            assert!(mapping.at(offset, length).is_none(), "{offset} {length}");
        }
    }

    #[test]
    fn huge_pages_are_there_or_the_error_says_how_many_are_missing() {
        // More than any machine that tests run on has reserved.
        let error = Mapping::new(1 << 46, Pages::Huge, None).err().unwrap();
        assert!(error.is_bad_input());
        let text = error.to_string();
        let pages = (1_usize << 46) / reserved_bytes();
        assert!(text.contains(&format!("takes {pages} huge pages")), "{text}");
        assert!(error.hint().unwrap().contains("/proc/sys/vm/nr_hugepages"));
    }

    #[test]
    fn transparent_huge_pages_begin_on_one() {
        match Mapping::new(3 << 20, Pages::Transparent, None) {
            Ok(mapping) => {
                let start = mapping.at(0, 3 << 20).unwrap();
                assert_eq!(start.addr().get() % transparent_bytes(), 0);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("transparent huge pages"), "{text}");
            }
        }
        assert_eq!(Pages::Transparent.rounded(1), transparent_bytes() as u64);
        assert_eq!(Pages::Usual.rounded(1), 1);
    }

    #[test]
    fn touching_looks_around_between_pieces() {
        let mapping = Mapping::new(2 * TOUCHED_BYTES + 1, Pages::Usual, None).unwrap();
        for (last, expected) in [(3, Ok(())), (2, Err("gone")), (1, Err("gone"))] {
            let calls = Cell::new(0);
            let alive = || {
                calls.set(calls.get() + 1);
                if calls.get() == last && expected.is_err() { Err("gone") } else { Ok(()) }
            };
            assert_eq!(mapping.touch(alive), expected);
            assert_eq!(calls.get(), last);
        }
    }

    #[test]
    fn sizes_are_the_kernels() {
        let meminfo = |kib| format!("HugePages_Total:       0\nHugepagesize:   {kib} kB\n");
        assert_eq!(reserved(&meminfo("    2048")), Some(2 << 20));
        assert_eq!(reserved(&meminfo("  524288")), Some(512 << 20));
        assert_eq!(transparent("536870912\n"), Some(512 << 20));
        for text in ["", "Hugepagesize: 0 kB", "Hugepagesize: x kB", "Hugepagesize: 3 kB"] {
            assert_eq!(reserved(text), None, "{text}");
        }
        assert_eq!(transparent("0"), None);
    }
}
