//! The memory of regions, parent domains (`ibv_alloc_parent_domain(3)`) and thread domains (`ibv_alloc_td(3)`).
//!
//! Whether memory that is being registered can be read and written is asked of the kernel, which knows what is mapped
//! in this process. Nothing is touched, so that a region of pages that were never used takes no memory. The size of
//! pages is the kernel's matter.

use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::raw::c_int;

use provider::{Behind, Context, Pd, Use, Users, code, pointer_or_errno, zero_or_error};
use rdma_sys::{
    ibv_access_flags, ibv_context, ibv_parent_domain_init_attr, ibv_pd, ibv_td, ibv_td_init_attr,
};

use super::errno::{memory_error, refuse};
use crate::transport::{Access, Nic, PdId, Region};

/// Flags that a provider may ignore (`IBV_ACCESS_OPTIONAL_RANGE`).
const OPTIONAL_ACCESS: u32 = 0x3ff0_0000;
/// Supported flags. The one for huge pages has no effect.
const KNOWN_ACCESS: u32 = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_READ.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0
    | ibv_access_flags::IBV_ACCESS_MW_BIND.0
    | ibv_access_flags::IBV_ACCESS_HUGETLB.0;
/// Flags that the transport looks at. Others mean nothing to a QP, which may have them, as with Linux' drivers: programs
/// ask for `IBV_ACCESS_FLUSH_GLOBAL` and `IBV_ACCESS_MW_BIND` wherever they may be needed.
pub(super) const TRANSPORT_ACCESS: u32 = KNOWN_ACCESS & !ibv_access_flags::IBV_ACCESS_HUGETLB.0;
/// `IBV_ACCESS_FLUSH_GLOBAL` and `IBV_ACCESS_FLUSH_PERSISTENT`, of later versions of verbs.h.
const FLUSH_ACCESS: u32 = 1 << 8 | 1 << 9;
/// Flags of capabilities that this device does not have.
const ABSENT_ACCESS: u32 = FLUSH_ACCESS
    | ibv_access_flags::IBV_ACCESS_ZERO_BASED.0
    | ibv_access_flags::IBV_ACCESS_ON_DEMAND.0;

/// Access flags of memory in the form of the transport. EOPNOTSUPP for missing capabilities, EINVAL for unknown flags.
fn access(requested: u32) -> Result<Access, c_int> {
    let flags = requested & !OPTIONAL_ACCESS;
    if flags & ABSENT_ACCESS != 0 {
        refuse("memory from address 0 on, paged on demand or to be flushed");
        return Err(libc::EOPNOTSUPP);
    }
    if flags & !KNOWN_ACCESS != 0 {
        return Err(libc::EINVAL);
    }
    Ok(Access(flags & TRANSPORT_ACCESS))
}

/// `ibv_alloc_parent_domain(3)`, by the pointer in `verbs_context`: what is made in it is as if made in its PD. EOPNOTSUPP
/// for memory of the program's own, EINVAL without a PD and for one of another context.
pub(super) unsafe extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    attr: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    // SAFETY: a readable struct of the caller's, with a domain and a thread domain that are null or live.
    let (init, pd, td) = unsafe {
        let init = &*attr;
        let td = init.td.as_ref().map(|_| Td::from_raw(init.td));
        (init, init.pd.as_ref(), td)
    };
    if init.comp_mask != 0 {
        refuse("ibv_alloc_parent_domain with allocators");
        return pointer_or_errno(Err(libc::EOPNOTSUPP));
    }
    let Some(pd) = pd.filter(|pd| pd.context == context) else {
        return pointer_or_errno(Err(libc::EINVAL));
    };
    // SAFETY: a live domain of an open context.
    let (joined, context) = unsafe { (Pd::from_raw(init.pd), Context::from_raw(context)) };
    let mut uses = vec![context.users.begin(), joined.users.begin()];
    uses.extend(td.map(|td| td.users.begin()));
    Pd::new(joined.id, uses).lend(*pd)
}

/// Registers memory. EOPNOTSUPP for on-demand paging and zero-based addresses; EINVAL for remote write or
/// atomics without local write; EFAULT for memory that is not mapped, or not writable where that is allowed.
///
/// # Safety
/// The memory stays until it is deregistered.
pub(super) unsafe fn register(nic: &Nic, region: provider::Region) -> Result<u32, c_int> {
    let access = access(region.access)?;
    let provider::Region { pd, address, length_bytes, iova, .. } = region;
    // Not all of it can be read, and written where that is allowed: to fail now, as Linux does, rather than during a
    // transfer. Remote writing needs local writing.
    let is_written = access.allows(Access::LOCAL_WRITE);
    // One of no bytes has a page too.
    let range = address..address.saturating_add(length_bytes.max(1));
    if !allows(&range, is_written).map_err(|error| code(&error))? {
        return Err(libc::EFAULT);
    }
    let checked = Region { pd: PdId(pd), address, length_bytes, iova, access };
    // SAFETY: the caller vouches for the memory, and it is mapped now.
    unsafe { nic.register(checked) }.map_err(memory_error)
}

/// The data of a thread domain.
pub(super) struct Td {
    pub(super) users: Users,
    _context: Use,
}

impl Behind<ibv_td> for Td {}

/// `ibv_alloc_td(3)`, by the pointer in `verbs_context`. EINVAL for unknown attributes.
pub(super) unsafe extern "C" fn alloc_td(
    context: *mut ibv_context,
    init: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    // SAFETY: a readable struct of the caller's.
    if unsafe { (*init).comp_mask } != 0 {
        return pointer_or_errno(Err(libc::EINVAL));
    }
    let td = Td {
        users: Users::default(),
        // SAFETY: an open context.
        _context: unsafe { Context::from_raw(context) }.users.begin(),
    };
    td.lend(ibv_td { context })
}

/// `ibv_dealloc_td(3)`. EBUSY while a parent domain has it.
pub(super) unsafe extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    // SAFETY: a live domain, which goes if nobody uses it.
    zero_or_error(unsafe { Td::from_raw(td).users.none().map(|()| drop(Td::take_back(td))) })
}

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
    // Linux before 6.11 does not know the query (ENOTTY), nor do emulators (ENOSYS) and sandboxes (EPERM, EINVAL).
    covers(range, write, |address| query(&maps, address)).or_else(|_| read(maps, range, write))
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
        match at_or_after(address)? {
            Some(Mapping { range: mapped, readable: true, writable })
                if mapped.start <= address && (writable || !write) =>
            {
                address = mapped.end;
            }
            _ => return Ok(false),
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

/// The kernel's `struct procmap_query` (linux/fs.h).
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

/// Asks for one mapping, however many there are: Linux 6.11 and later.
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

    use rustix::param::page_size;

    use super::*;

    #[test]
    fn access_flags_are_known_or_refused() {
        assert_eq!(access(0x1f), Ok(Access(0x1f)));
        assert_eq!(access(0x81), Ok(Access::LOCAL_WRITE));
        assert_eq!(access(0x0010_0001), Ok(Access::LOCAL_WRITE));
        for absent in [0x20, 0x40, 0x100, 0x200] {
            assert_eq!(access(1 | absent), Err(libc::EOPNOTSUPP));
        }
        assert_eq!(access(0x400), Err(libc::EINVAL));
        assert_eq!(access(0x8000_0000), Err(libc::EINVAL));
    }

    /// Three pages, of which the second has other rights.
    struct Pages {
        start: *mut libc::c_void,
        page: usize,
    }

    impl Pages {
        fn new(rights: i32) -> Pages {
            let page = page_size();
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
        let unreadable = Pages::new(libc::PROT_NONE);
        assert!(!both_ways(&unreadable.range(0..3), false));
        assert!(both_ways(&unreadable.range(2..3), false));
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
