//! Memory before it is registered: ordinary, on huge pages, behind a dmabuf, or a GPU's.

use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::{Arc, OnceLock};
use std::{fmt, fs, io};

use gpu::{Export, Gpu, GpuError, GpuMemory};

use crate::dmabuf::{self, DmabufSource};
use crate::{Operation, VerbsError};

/// Memory that is written to without a look around: a few milliseconds, or a tenth of a second on a starved machine.
const TOUCHED_BYTES: usize = 16 << 20;

/// Bytes of the smallest page that kernels have.
const LEAST_PAGE_BYTES: usize = 4096;

/// Where memory lies.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// On the kernel's ordinary pages: of 4 KiB on x86-64, of 4, 16 or 64 KiB on ARM64.
    Ordinary,
    /// On huge pages that were reserved (`/proc/sys/vm/nr_hugepages`).
    Huge,
    /// On huge pages where the kernel finds some (`madvise(2)`, MADV_HUGEPAGE).
    Transparent,
    /// Behind a dmabuf, of the host's memory.
    Dmabuf {
        /// A memfd will do where no device of the kernel makes one, as for the embedded device.
        takes_memfd: bool,
    },
    /// On a GPU.
    Gpu(Gpu),
}

/// How a device learns of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registration {
    /// By its address, `ibv_reg_mr(3)`.
    Address,
    /// By its dmabuf, `ibv_reg_dmabuf_mr(3)`.
    Dmabuf,
    /// By a GPU's address, `ibv_reg_mr(3)`, which a peer-memory module of the kernel knows.
    PeerMemory,
}

/// Bytes that memory of `bytes` takes on huge pages that the kernel gives without a reservation.
pub fn rounded_to_huge_pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(rounding_bytes(transparent_bytes()) as u64)
}

/// Zeroed memory for MRs that begins on a page: at the place asked for, and on a NUMA node if the kernel can.
///
/// A device may read and write it at any time, so it is never borrowed as a slice.
pub struct Mapping {
    memory: Memory,
    /// Where requests find the first byte: in this process, or on the GPU.
    start: NonNull<u8>,
    length_bytes: usize,
    /// The first copy of a GPU that failed.
    failure: OnceLock<GpuError>,
}

/// Whose the bytes of a mapping are.
enum Memory {
    /// The host's: so many bytes of pages from `mapped`, and the dmabuf that they are behind.
    Host { mapped: NonNull<u8>, mapped_bytes: usize, dmabuf: Option<(OwnedFd, DmabufSource)> },
    /// A GPU's, and its dmabuf where the driver exports one.
    Gpu(GpuMemory, Result<Export, GpuError>),
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
    /// No memory, or none there.
    pub fn new(
        wanted_bytes: usize,
        place: Place,
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
        let mapping = match place {
            Place::Ordinary => {
                let mapped = map(length_bytes, 0).map_err(failed)?;
                Mapping::of_host((mapped, length_bytes), mapped, length_bytes, None)
            }
            Place::Huge => {
                let page_bytes = reserved_bytes();
                let mapped_bytes = rounded(page_bytes)?;
                let mapped =
                    map(mapped_bytes, libc::MAP_HUGETLB).map_err(|_| VerbsError::NoHugePages {
                        needed: (mapped_bytes / page_bytes) as u64,
                        mib: page_bytes >> 20,
                    })?;
                Mapping::of_host((mapped, mapped_bytes), mapped, length_bytes, None)
            }
            Place::Transparent => {
                let rounded = rounded(rounding_bytes(transparent_bytes()))?;
                Mapping::transparent(length_bytes, rounded, failed)?
            }
            Place::Dmabuf { takes_memfd } => {
                let mapped_bytes = rounded(rustix::param::page_size())?;
                let (descriptor, source) = dmabuf::allocate(mapped_bytes, takes_memfd)?;
                let mapped = map_shared(mapped_bytes, &descriptor).map_err(failed)?;
                let dmabuf = Some((descriptor, source));
                Mapping::of_host((mapped, mapped_bytes), mapped, length_bytes, dmabuf)
            }
            Place::Gpu(gpu) => Mapping::of_gpu(gpu, length_bytes)?,
        };
        if let Some(node) = numa_node.filter(|_| !mapping.is_of_gpu()) {
            prefer_node(mapping.start, length_bytes, node);
        }
        Ok(Arc::new(mapping))
    }

    fn of_host(
        (mapped, mapped_bytes): (NonNull<u8>, usize),
        start: NonNull<u8>,
        length_bytes: usize,
        dmabuf: Option<(OwnedFd, DmabufSource)>,
    ) -> Mapping {
        let memory = Memory::Host { mapped, mapped_bytes, dmabuf };
        Mapping { memory, start, length_bytes, failure: OnceLock::new() }
    }

    fn of_gpu(gpu: Gpu, length_bytes: usize) -> Result<Mapping, VerbsError> {
        let memory = gpu.allocate(length_bytes)?;
        let address = without_provenance_mut(memory.address() as usize);
        let start = NonNull::new(address).ok_or_else(|| {
            VerbsError::returned(Operation::AllocMemory, gpu.to_string(), libc::ENOMEM)
        })?;
        let export = memory.export();
        let memory = Memory::Gpu(memory, export);
        Ok(Mapping { memory, start, length_bytes, failure: OnceLock::new() })
    }

    /// The ways in which a device may learn of it, the best first.
    pub fn ways(&self) -> &'static [Registration] {
        match &self.memory {
            Memory::Host { dmabuf: None, .. } => &[Registration::Address],
            Memory::Host { dmabuf: Some(_), .. } => &[Registration::Dmabuf],
            Memory::Gpu(memory, _) if memory.is_of_host() => &[Registration::Address],
            Memory::Gpu(..) => &[Registration::Dmabuf, Registration::PeerMemory],
        }
    }

    /// Why a GPU's memory has no dmabuf.
    pub fn export_error(&self) -> Option<&GpuError> {
        match &self.memory {
            Memory::Gpu(_, export) => export.as_ref().err(),
            Memory::Host { .. } => None,
        }
    }

    /// Its dmabuf, and where its first byte lies in that.
    pub(super) fn descriptor(&self) -> Option<(RawFd, u64)> {
        match &self.memory {
            Memory::Host { dmabuf, .. } => {
                dmabuf.as_ref().map(|(descriptor, _)| (descriptor.as_raw_fd(), 0))
            }
            Memory::Gpu(_, export) => {
                export.as_ref().ok().map(|export| (export.as_fd().as_raw_fd(), export.offset()))
            }
        }
    }

    /// Whether only the library of a GPU copies into it and out of it.
    pub fn is_of_gpu(&self) -> bool {
        matches!(self.memory, Memory::Gpu(..))
    }

    /// Copies into a GPU's memory; keeps a failure.
    pub(super) fn copy_in(&self, offset: usize, bytes: &[u8]) {
        if let Memory::Gpu(memory, _) = &self.memory
            && let Err(error) = memory.write_at(offset, bytes)
        {
            let _ = self.failure.set(error);
        }
    }

    /// Copies from a GPU's memory; returns how many bytes, and keeps a failure.
    pub(super) fn copy_out(&self, offset: usize, into: &mut [u8]) -> usize {
        match &self.memory {
            Memory::Gpu(memory, _) => memory.read_at(offset, into).unwrap_or_else(|error| {
                let _ = self.failure.set(error);
                0
            }),
            Memory::Host { .. } => 0,
        }
    }

    /// Whether a GPU's memory is still there: it is gone when the driver has reset the GPU.
    ///
    /// # Errors
    /// The first failure of a copy, or of one that is made now.
    pub fn check(&self) -> Result<(), VerbsError> {
        self.copy_out(0, &mut [0]);
        self.failure.get().map_or(Ok(()), |error| Err(VerbsError::Gpu(error.clone())))
    }

    fn transparent(
        length_bytes: usize,
        rounded: usize,
        failed: impl Fn(io::Error) -> VerbsError,
    ) -> Result<Mapping, VerbsError> {
        // Only whole huge pages become one, so the memory begins at a multiple of their size.
        let page_bytes = alignment_bytes(length_bytes, transparent_bytes());
        let mapped_bytes = rounded + page_bytes;
        let mapped = map(mapped_bytes, 0).map_err(failed)?;
        let ahead = mapped.as_ptr().align_offset(page_bytes);
        // SAFETY: `ahead` is less than the page that was mapped on top.
        let start = unsafe { mapped.add(ahead) };
        let mapping = Mapping::of_host((mapped, mapped_bytes), start, length_bytes, None);
        // SAFETY: a range of the mapping above; the advice changes no contents.
        match unsafe { libc::madvise(start.as_ptr().cast(), rounded, libc::MADV_HUGEPAGE) } {
            0 => Ok(mapping),
            _ => Err(VerbsError::NoTransparentPages),
        }
    }

    /// Writes to each page of the host: one that was never written to is the kernel's single page of zeroes to who reads it. Many take
    /// seconds: `alive` is called between pieces, and may end it.
    ///
    /// # Errors
    /// That of `alive`.
    pub fn touch<E>(&self, alive: impl Fn() -> Result<(), E>) -> Result<(), E> {
        if self.is_of_gpu() {
            return Ok(());
        }
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
        let start = self.start.as_ptr().wrapping_add(offset);
        if end <= self.length_bytes { NonNull::new(start) } else { None }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if let Memory::Host { mapped, mapped_bytes, .. } = &self.memory {
            // SAFETY: a mapping of this length; MRs in it held an `Arc` to it.
            unsafe { libc::munmap(mapped.as_ptr().cast(), *mapped_bytes) };
        }
    }
}

impl fmt::Display for Mapping {
    /// Whose memory it is: `the system heap`, `NVIDIA H200 at 0000:65:00.0`; empty for the usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.memory {
            Memory::Host { dmabuf: Some((_, source)), .. } => write!(f, "{source}"),
            Memory::Host { dmabuf: None, .. } => Ok(()),
            Memory::Gpu(memory, _) => {
                let gpu = memory.gpu();
                let [name, address] =
                    [gpu.name(), gpu.pci_address()].map(Result::unwrap_or_default);
                write!(f, "{name} at {address}")
            }
        }
    }
}

/// Maps so many bytes of a dmabuf.
fn map_shared(length_bytes: usize, descriptor: &OwnedFd) -> Result<NonNull<u8>, io::Error> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping touches no existing memory.
    result_of_mmap(unsafe {
        let file = descriptor.as_raw_fd();
        libc::mmap(std::ptr::null_mut(), length_bytes, rights, libc::MAP_SHARED, file, 0)
    })
}

fn map(length_bytes: usize, flags: i32) -> Result<NonNull<u8>, io::Error> {
    // SAFETY: a new anonymous mapping touches no existing memory.
    result_of_mmap(unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
            -1,
            0,
        )
    })
}

fn result_of_mmap(start: *mut libc::c_void) -> Result<NonNull<u8>, io::Error> {
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

/// What memory on transparent huge pages is rounded up to. Where they have 512 MiB a buffer's end stays on smaller ones: the
/// kernel has some of 2 MiB there too (`hugepages-2048kB`, since Linux 6.8).
fn rounding_bytes(transparent_bytes: usize) -> usize {
    transparent_bytes.min(USUAL_BYTES)
}

/// What the first byte of so much memory is aligned to, so that huge pages of the largest size that fits begin there.
fn alignment_bytes(length_bytes: usize, transparent_bytes: usize) -> usize {
    if length_bytes < transparent_bytes {
        rounding_bytes(transparent_bytes)
    } else {
        transparent_bytes
    }
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
        let mapping = Mapping::new(10_000, Place::Ordinary, None).unwrap();
        let start = mapping.at(0, 10_000).unwrap();
        assert_eq!(start.addr().get() % rustix::param::page_size(), 0);
        assert!(mapping.at(9_999, 1).is_some());
        for (offset, length) in [(9_999, 2), (10_001, 0), (usize::MAX, 1)] {
            assert!(mapping.at(offset, length).is_none(), "{offset} {length}");
        }
    }

    #[test]
    fn huge_pages_are_there_or_the_error_says_how_many_are_missing() {
        // More than any machine that tests run on has reserved.
        let error = Mapping::new(1 << 46, Place::Huge, None).err().unwrap();
        assert!(error.is_bad_input());
        let text = error.to_string();
        let pages = (1_usize << 46) / reserved_bytes();
        assert!(text.contains(&format!("takes {pages} huge pages")), "{text}");
        assert!(error.hint().unwrap().contains("/proc/sys/vm/nr_hugepages"));
    }

    #[test]
    fn transparent_huge_pages_begin_on_one() {
        match Mapping::new(3 << 20, Place::Transparent, None) {
            Ok(mapping) => {
                let start = mapping.at(0, 3 << 20).unwrap();
                assert_eq!(start.addr().get() % (2 << 20).min(transparent_bytes()), 0);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("transparent huge pages"), "{text}");
            }
        }
    }

    #[test]
    fn a_small_buffer_does_not_take_a_page_of_512_mib() {
        const MIB: usize = 1 << 20;
        for (length_mib, page_mib, alignment_mib) in
            [(1, 2, 2), (3, 2, 2), (1, 512, 2), (511, 512, 2), (512, 512, 512), (513, 512, 512)]
        {
            let alignment = alignment_bytes(length_mib * MIB, page_mib * MIB);
            assert_eq!(alignment, alignment_mib * MIB, "{length_mib} {page_mib}");
        }
        assert_eq!([2, 512].map(|mib| rounding_bytes(mib * MIB)), [2 * MIB; 2]);
    }

    #[test]
    fn memory_behind_a_dmabuf_is_there_too() {
        let mapping = Mapping::new(10_000, Place::Dmabuf { takes_memfd: true }, None).unwrap();
        assert_eq!(mapping.ways(), [Registration::Dmabuf]);
        let (descriptor, offset) = mapping.descriptor().unwrap();
        assert!(descriptor >= 0 && offset == 0);
        assert!(mapping.at(9_999, 1).is_some() && mapping.at(9_999, 2).is_none());
        mapping.touch(|| Ok::<(), ()>(())).unwrap();
        assert!(mapping.to_string().len() > 1 && mapping.check().is_ok());
    }

    #[test]
    fn touching_looks_around_between_pieces() {
        let mapping = Mapping::new(2 * TOUCHED_BYTES + 1, Place::Ordinary, None).unwrap();
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
