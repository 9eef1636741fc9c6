//! What is mapped in this process, as the kernel says: whether memory that is being registered can be read and written.
//! It must not know regions.
//!
//! Nothing is touched, so that a region of pages that were never used takes no memory. The size of pages is the kernel's
//! matter.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::fd::AsRawFd;

/// Every mapping of the process, ordered by address (proc_pid_maps(5)).
const MAPS: &str = "/proc/self/maps";

struct Mapping {
    range: Range<u64>,
    readable: bool,
    writable: bool,
}

/// Whether all bytes of the range can be read, and written if `write`. Without /proc it is believed.
///
/// # Errors
/// The file could not be read.
pub(super) fn allows(range: &Range<u64>, write: bool) -> io::Result<bool> {
    let Ok(maps) = File::open(MAPS) else {
        return Ok(true);
    };
    match covers(range, write, |address| query(&maps, address)) {
        // Linux before 6.11.
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => read(maps, range, write),
        answer => answer,
    }
}

/// As [`allows`], by reading all mappings: the longer way.
fn read(maps: File, range: &Range<u64>, write: bool) -> io::Result<bool> {
    let mut lines = BufReader::new(maps).lines();
    covers(range, write, |address| {
        for line in lines.by_ref() {
            if let Some(mapping) = parse(&line?)
                && mapping.range.end > address
            {
                return Ok(Some(mapping));
            }
        }
        Ok(None)
    })
}

/// Whether mappings cover the range without a gap. `at_or_after` finds the first one that ends after an address; the
/// addresses grow.
fn covers(
    range: &Range<u64>,
    write: bool,
    mut at_or_after: impl FnMut(u64) -> io::Result<Option<Mapping>>,
) -> io::Result<bool> {
    let mut address = range.start;
    while address < range.end {
        match at_or_after(address)?
            .filter(|it| it.range.start <= address && it.readable && (it.writable || !write))
        {
            Some(mapping) => address = mapping.range.end,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// A line such as `7f31c000-7f31d000 r--p 00000000 00:00 0 [name]`.
fn parse(line: &str) -> Option<Mapping> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        range: number(start)?..number(end)?,
        readable: rest.starts_with('r'),
        writable: rest.get(1..2) == Some("w"),
    })
}

/// `struct procmap_query` of linux/fs.h.
#[repr(C)]
#[derive(Default)]
struct Query {
    size: u64,
    query_flags: u64,
    query_addr: u64,
    vma_start: u64,
    vma_end: u64,
    vma_flags: u64,
    vma_page_size: u64,
    vma_offset: u64,
    inode: u64,
    dev_major: u32,
    dev_minor: u32,
    vma_name_size: u32,
    build_id_size: u32,
    vma_name_addr: u64,
    build_id_addr: u64,
}

/// `PROCMAP_QUERY`: _IOWR('f', 17, struct procmap_query).
const PROCMAP_QUERY: libc::c_ulong =
    3 << 30 | (size_of::<Query>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 17;
/// The flags of a mapping.
const READABLE: u64 = 1;
const WRITABLE: u64 = 2;
/// Asks for the mapping of the address, or the next one.
const COVERING_OR_NEXT: u64 = 0x10;

/// Asks for one mapping, however many there are. ENOTTY before Linux 6.11.
fn query(maps: &File, address: u64) -> io::Result<Option<Mapping>> {
    let mut query = Query {
        size: size_of::<Query>() as u64,
        query_flags: COVERING_OR_NEXT,
        query_addr: address,
        ..Query::default()
    };
    // SAFETY: an open file and the struct that this request reads and writes; it names no other memory.
    if unsafe { libc::ioctl(maps.as_raw_fd(), PROCMAP_QUERY as _, &raw mut query) } < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT) => Ok(None),
            _ => Err(error),
        };
    }
    Ok(Some(Mapping {
        range: query.vma_start..query.vma_end,
        readable: query.vma_flags & READABLE != 0,
        writable: query.vma_flags & WRITABLE != 0,
    }))
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    /// Three pages, of which the second has other rights.
    struct Pages {
        start: *mut libc::c_void,
        page: usize,
    }

    impl Pages {
        fn new(rights: i32) -> Pages {
            // SAFETY: has no preconditions.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping anywhere, and a page in the middle of it.
            let start = unsafe {
                let start = libc::mmap(null_mut(), 3 * page, both, kind, -1, 0);
                assert_ne!(start, libc::MAP_FAILED);
                let changed = libc::mprotect(start.byte_add(page), page, rights);
                assert_eq!(changed, 0);
                start
            };
            Pages { start, page }
        }

        /// From this page to before that one.
        fn range(&self, pages: Range<usize>) -> Range<u64> {
            let at = |page| (self.start.addr() + page * self.page) as u64;
            at(pages.start) + 1..at(pages.end)
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: mapped in `new`, and nobody refers to it.
            unsafe { libc::munmap(self.start, 3 * self.page) };
        }
    }

    fn both_ways(range: &Range<u64>, write: bool) -> bool {
        let short = allows(range, write).unwrap();
        let long = read(File::open(MAPS).unwrap(), range, write).unwrap();
        assert_eq!(short, long);
        short
    }

    #[test]
    fn rights_count_on_every_page() {
        let pages = Pages::new(libc::PROT_READ);
        assert!(both_ways(&pages.range(0..3), false));
        assert!(!both_ways(&pages.range(0..3), true));
        assert!(!both_ways(&pages.range(1..2), true));
        assert!(both_ways(&pages.range(0..1), true));
        assert!(both_ways(&pages.range(2..3), true));
        let pages = Pages::new(libc::PROT_NONE);
        assert!(!both_ways(&pages.range(0..3), false));
        assert!(both_ways(&pages.range(2..3), false));
    }

    #[test]
    fn a_gap_is_found() {
        let pages = Pages::new(libc::PROT_READ);
        // SAFETY: the page in the middle, which nobody refers to.
        unsafe { libc::munmap(pages.start.byte_add(pages.page), pages.page) };
        assert!(!both_ways(&pages.range(0..3), false));
        assert!(!both_ways(&pages.range(1..2), false));
        assert!(!both_ways(&(0..4096), false));
        assert!(!both_ways(&(u64::MAX - 10..u64::MAX), false));
    }
}
