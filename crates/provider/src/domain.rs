//! Protection domains and their memory regions.

use std::os::fd::RawFd;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use rdma_sys::{ibv_context, ibv_mr, ibv_pd};
use rustix::param::page_size;

use crate::context::Context;
use crate::engine::Region;
use crate::errno::{pointer_or_errno, zero_or_error};
use crate::object::{Behind, Use, Users};

/// The data of a protection domain.
pub struct Pd {
    /// Its number, the same for domains that are joined.
    pub id: u32,
    /// What was made in it.
    pub users: Users,
    _uses: Vec<Use>,
}

impl Behind<ibv_pd> for Pd {}

impl Pd {
    /// A domain that uses the context, and of a parent domain also what it joins.
    pub fn new(id: u32, uses: Vec<Use>) -> Pd {
        Pd { id, users: Users::default(), _uses: uses }
    }
}

/// `ibv_alloc_pd(3)`. ENOMEM beyond the device's number of domains.
pub unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // SAFETY: an open context.
    let open = unsafe { Context::from_raw(context) };
    let counted = open.made.pds.begin_within(open.limits.attributes.max_pd);
    pointer_or_errno(counted.map(|counted| {
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Pd::new(id, vec![open.users.begin(), counted]).lend(ibv_pd { context, handle: id })
    }))
}

/// `ibv_dealloc_pd(3)`. EBUSY while it has an MR, MW, QP, SRQ or AH, or is joined to another.
pub unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: a live domain, which goes if nobody uses it.
    zero_or_error(unsafe { Pd::from_raw(pd).users.none().map(|()| drop(Pd::take_back(pd))) })
}

/// The data of a memory region.
struct Mr {
    _domain: Use,
    /// Memory that goes with the region.
    _mapped: Option<Box<dyn Send>>,
}

impl Behind<ibv_mr> for Mr {}

/// Registers memory, or what is behind a descriptor, from the offset on that `address` is then.
///
/// # Safety
/// `pd` is live; memory without a descriptor stays until [`dereg_mr`].
unsafe fn register(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    iova: u64,
    access: u32,
    descriptor: Option<RawFd>,
) -> Result<*mut ibv_mr, c_int> {
    let (start, length_bytes) = (address.addr() as u64, length as u64);
    let wraps = [start, iova].iter().any(|start| start.checked_add(length_bytes).is_none());
    // Linux takes regions by their pages (`ib_umem_get`).
    let has_no_page = length == 0 && start % page_size() as u64 == 0;
    if has_no_page || wraps {
        return Err(libc::EINVAL);
    }
    // SAFETY: a live domain of an open context.
    let (domain, open) = unsafe { (Pd::from_raw(pd), Context::own((*pd).context)?) };
    let region = Region { pd: domain.id, address: start, length_bytes, iova, access };
    let (keys, mapped) = match descriptor {
        // SAFETY: the caller vouches for the memory.
        None => (unsafe { open.engine().register(region) }?, None),
        Some(descriptor) => {
            let region = Region { address: 0, ..region };
            let (keys, mapped) = open.engine().register_descriptor(descriptor, start, region)?;
            (keys, Some(mapped))
        }
    };
    let [lkey, rkey] = keys;
    // SAFETY: a live domain.
    let context = unsafe { (*pd).context };
    let verbs = ibv_mr { context, pd, addr: address, length, handle: lkey, lkey, rkey };
    Ok(Mr { _domain: domain.users.begin(), _mapped: mapped }.lend(verbs))
}

/// `ibv_reg_mr(3)`. EINVAL for remote write or atomics without local write, for a length of 0 at the start of a page and for
/// bounds that wrap; otherwise the engine's errors.
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
    pointer_or_errno(unsafe { register(pd, address, length, iova, access.cast_unsigned(), None) })
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
    pointer_or_errno(unsafe { register(pd, address, length, iova, access.cast_unsigned(), None) })
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
    pointer_or_errno(unsafe { register(pd, address, length, iova, access, None) })
}

/// `ibv_reg_dmabuf_mr(3)`: peers and this end's own requests address the region from `iova`. Errors as for [`reg_mr`], and
/// EOPNOTSUPP where the engine cannot.
pub unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    length: usize,
    iova: u64,
    descriptor: c_int,
    access: c_int,
) -> *mut ibv_mr {
    let (access, start) = (access.cast_unsigned(), without_provenance_mut(offset as usize));
    // SAFETY: as the caller's.
    pointer_or_errno(unsafe { register(pd, start, length, iova, access, Some(descriptor)) })
}

/// `ibv_dereg_mr(3)`. EBUSY while a memory window is bound to it.
pub unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: a live region of an open context.
    zero_or_error(unsafe {
        Context::own((*mr).context).and_then(|context| {
            context.engine().deregister((*mr).lkey)?;
            drop(Mr::take_back(mr));
            Ok(())
        })
    })
}
