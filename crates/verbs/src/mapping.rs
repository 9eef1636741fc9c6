//! Memory for MRs: zeroed, on pages of the kind asked for, and on a NUMA node if the kernel can.

use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::{fs, io};

use super::{Operation, VerbsError};

/// Memory that is written to without a look around: a few milliseconds, or a tenth of a second on a starved machine.
const TOUCHED_BYTES: usize = 16 << 20;

/// Bytes of the smallest page that kernels have.
const LEAST_PAGE_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The kernel's usual ones.
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

/// Zeroed memory that begins on a page.
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
    /// Allocates `length_bytes` of zeroes, at least 1.
    ///
    /// # Errors
    /// No memory, or no such pages.
    pub fn new(
        length_bytes: usize,
        pages: Pages,
        numa_node: Option<u32>,
    ) -> Result<Arc<Mapping>, VerbsError> {
        let length_bytes = length_bytes.max(1);
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
                let rounded = rounded(transparent_bytes())?;
                Mapping::transparent(length_bytes, rounded, failed)?
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

    /// Bytes of it.
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
        for (last, told) in [(3, Ok(())), (2, Err("gone")), (1, Err("gone"))] {
            let calls = Cell::new(0);
            let alive = || {
                calls.set(calls.get() + 1);
                if calls.get() == last && told.is_err() { Err("gone") } else { Ok(()) }
            };
            assert_eq!(mapping.touch(alive), told);
            assert_eq!(calls.get(), last);
        }
    }

    #[test]
    fn sizes_are_the_kernels() {
        let told = |kib| format!("HugePages_Total:       0\nHugepagesize:   {kib} kB\n");
        assert_eq!(reserved(&told("    2048")), Some(2 << 20));
        assert_eq!(reserved(&told("  524288")), Some(512 << 20));
        assert_eq!(transparent("536870912\n"), Some(512 << 20));
        for text in ["", "Hugepagesize: 0 kB", "Hugepagesize: x kB", "Hugepagesize: 3 kB"] {
            assert_eq!(reserved(text), None, "{text}");
        }
        assert_eq!(transparent("0"), None);
    }
}
