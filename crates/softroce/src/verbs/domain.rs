//! Protection domains and their memory regions.

use std::os::raw::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rdma_sys::{ibv_access_flags, ibv_context, ibv_mr, ibv_parent_domain_init_attr, ibv_pd};

use super::context::Context;
use super::errno::{code, memory_error, pointer_or_errno, zero_or_error};
use super::mapped;
use super::object::Behind;
use super::refused::refuse;
use super::thread_domain::Td;
use super::users::{Use, Users};
use crate::transport::{Access, Nic, PdId, Region};

/// Flags that a provider may ignore (`IBV_ACCESS_OPTIONAL_RANGE`).
const OPTIONAL_ACCESS: u32 = 0x3ff0_0000;
/// Supported flags. The one for huge pages has no effect.
const KNOWN_ACCESS: u32 = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_READ.0
    | ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0
    | ibv_access_flags::IBV_ACCESS_HUGETLB.0;
const TRANSPORT_ACCESS: u32 = KNOWN_ACCESS & !ibv_access_flags::IBV_ACCESS_HUGETLB.0;
/// `IBV_ACCESS_FLUSH_GLOBAL` and `IBV_ACCESS_FLUSH_PERSISTENT`.
const FLUSH_ACCESS: u32 = 1 << 8 | 1 << 9;
/// Flags of capabilities that this device does not have.
const ABSENT_ACCESS: u32 = FLUSH_ACCESS
    | ibv_access_flags::IBV_ACCESS_MW_BIND.0
    | ibv_access_flags::IBV_ACCESS_ZERO_BASED.0
    | ibv_access_flags::IBV_ACCESS_ON_DEMAND.0;

/// Access flags in the form of the transport. EOPNOTSUPP for missing capabilities, EINVAL for unknown flags.
pub(super) fn access(requested: u32) -> Result<Access, c_int> {
    let flags = requested & !OPTIONAL_ACCESS;
    if flags & ABSENT_ACCESS != 0 {
        refuse("memory for windows, from address 0 on, paged on demand or to be flushed");
        return Err(libc::EOPNOTSUPP);
    }
    if flags & !KNOWN_ACCESS != 0 {
        return Err(libc::EINVAL);
    }
    Ok(Access(flags & TRANSPORT_ACCESS))
}

/// The data of a protection domain.
pub(super) struct Pd {
    pub(super) id: PdId,
    pub(super) users: Users,
    /// The context; of a parent domain also what it joins.
    _uses: Vec<Use>,
}

impl Behind<ibv_pd> for Pd {}

impl Pd {
    fn new(id: PdId, uses: Vec<Use>) -> Pd {
        Pd { id, users: Users::default(), _uses: uses }
    }
}

pub unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let verbs = ibv_pd { context, handle: id };
    // SAFETY: an open context.
    let uses = vec![unsafe { Context::of(context) }.users.begin()];
    Pd::new(PdId(id), uses).lend(verbs)
}

/// `ibv_alloc_parent_domain(3)`, by the pointer in `verbs_context`: what is made in it is as if made in its PD. EOPNOTSUPP
/// for memory of the program's own, EINVAL without a PD and for one of another context.
pub(super) unsafe extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    init: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    // SAFETY: a readable struct of the caller's, with a domain and a thread domain that are null or live.
    let (init, pd, td) = unsafe {
        let init = &*init;
        let td = init.td.as_ref().map(|_| Td::of(init.td));
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
    let (joined, context) = unsafe { (Pd::of(init.pd), Context::of(context)) };
    let mut uses = vec![context.users.begin(), joined.users.begin()];
    uses.extend(td.map(|td| td.users.begin()));
    Pd::new(joined.id, uses).lend(*pd)
}

/// `ibv_dealloc_pd(3)`. EBUSY while it has an MR, QP, SRQ or AH, or is joined to another.
pub unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: a live domain, which goes if nobody uses it.
    zero_or_error(unsafe { Pd::of(pd).users.none().map(|()| drop(Pd::take_back(pd))) })
}

/// The data of a memory region.
struct Mr {
    nic: Arc<Nic>,
    _domain: Use,
}

impl Behind<ibv_mr> for Mr {}

/// # Safety
/// `pd` is live; the memory stays until [`dereg_mr`].
unsafe fn register(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    flags: u32,
) -> Result<*mut ibv_mr, c_int> {
    let access = access(flags)?;
    if length == 0 || iova.checked_add(length as u64).is_none() {
        return Err(libc::EINVAL);
    }
    let (start, length_bytes) = (address.addr() as u64, length as u64);
    let end = start.checked_add(length_bytes).ok_or(libc::EINVAL)?;
    // Not all of it can be read, and written where that is allowed: to fail now, as Linux does, rather than during a
    // transfer. Remote writing needs local writing.
    let is_written = access.allows(Access::LOCAL_WRITE);
    if !mapped::allows(&(start..end), is_written).map_err(|error| code(&error))? {
        return Err(libc::EFAULT);
    }
    // SAFETY: a live domain of an open context.
    let (domain, context) = unsafe { (Pd::of(pd), (*pd).context) };
    // SAFETY: as above.
    let nic = unsafe { Context::own(context) }?.nic.clone();
    let region = Region { pd: domain.id, address: start, length_bytes, iova, access };
    // SAFETY: the caller vouches for the memory, and it is mapped now.
    let key = unsafe { nic.register(region) }.map_err(memory_error)?;
    let verbs = ibv_mr { context, pd, addr: address, length, handle: key, lkey: key, rkey: key };
    let _domain = domain.users.begin();
    Ok(Mr { nic, _domain }.lend(verbs))
}

/// `ibv_reg_mr(3)`. EINVAL for remote write or atomics without local write, for a length of 0 and for bounds that
/// wrap; EFAULT for memory that is not mapped, or not writable where that is allowed; EOPNOTSUPP for on-demand paging, memory windows and zero-based
/// addresses.
///
/// # Safety
/// As for libibverbs: the memory stays until [`dereg_mr`].
pub unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    let iova = address.addr() as u64;
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { register(pd, address, length, iova, access.cast_unsigned()) })
}

/// `ibv_reg_mr_iova(3)`: peers address the region from `iova`.
///
/// # Safety
/// As for [`reg_mr`].
pub unsafe extern "C" fn reg_mr_iova(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { register(pd, address, length, iova, access.cast_unsigned()) })
}

/// `ibv_reg_mr_iova2`, which the macro `ibv_reg_mr(3)` calls if its flags may include optional ones.
///
/// # Safety
/// As for [`reg_mr`].
pub unsafe extern "C" fn reg_mr_iova2(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { register(pd, address, length, iova, access) })
}

pub unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: a live region of an open context.
    zero_or_error(unsafe {
        Context::own((*mr).context).map(|_| {
            let object = Mr::take_back(mr);
            object.inner.nic.deregister(object.verbs.lkey);
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_flags_are_known_or_refused() {
        assert_eq!(access(0xf), Ok(Access(0xf)));
        assert_eq!(access(0x81), Ok(Access::LOCAL_WRITE));
        assert_eq!(access(0x0010_0001), Ok(Access::LOCAL_WRITE));
        for absent in [0x10, 0x20, 0x40, 0x100, 0x200] {
            assert_eq!(access(1 | absent), Err(libc::EOPNOTSUPP));
        }
        assert_eq!(access(0x400), Err(libc::EINVAL));
        assert_eq!(access(0x8000_0000), Err(libc::EINVAL));
    }
}
