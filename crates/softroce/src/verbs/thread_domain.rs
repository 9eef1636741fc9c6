//! Thread domains (`ibv_alloc_td(3)`): a promise of the program that makes no difference here, since QPs of one device
//! share its locks.

use std::os::raw::c_int;

use rdma_sys::{ibv_context, ibv_td, ibv_td_init_attr};

use super::context::Context;
use super::errno::pointer_or_errno;
use super::users::{Use, Users};

/// A thread domain; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
struct Object {
    verbs: ibv_td,
    users: Users,
    _context: Use,
}

/// Counts a user of a thread domain.
///
/// # Safety
/// `td` is live.
pub(super) unsafe fn begin(td: *mut ibv_td) -> Use {
    // SAFETY: made by `alloc_td`; the reference covers nothing that programs write.
    unsafe { &(*td.cast::<Object>()).users }.begin()
}

/// `ibv_alloc_td(3)`, by the pointer in `verbs_context`. EINVAL for unknown attributes.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn alloc_td(
    context: *mut ibv_context,
    init: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    // SAFETY: a readable struct of the caller's.
    if unsafe { (*init).comp_mask } != 0 {
        return pointer_or_errno(Err(libc::EINVAL));
    }
    let object = Object {
        verbs: ibv_td { context },
        users: Users::default(),
        // SAFETY: an open context.
        _context: unsafe { Context::of(context) }.users.begin(),
    };
    Box::into_raw(Box::new(object)).cast()
}

/// `ibv_dealloc_td(3)`. EBUSY while a parent domain has it.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    let object = td.cast::<Object>();
    // SAFETY: a live domain; made by `alloc_td` from such a box.
    unsafe {
        if (*object).users.any() {
            return libc::EBUSY;
        }
        drop(Box::from_raw(object));
    }
    0
}
