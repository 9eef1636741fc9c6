//! Thread domains (`ibv_alloc_td(3)`): a promise of the program that makes no difference here, since QPs of one device
//! share its locks.

use std::os::raw::c_int;

use rdma_sys::{ibv_context, ibv_td, ibv_td_init_attr};

use super::context::Context;
use super::errno::{pointer_or_errno, zero_or_error};
use super::object::Behind;
use super::users::{Use, Users};

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
        _context: unsafe { Context::of(context) }.users.begin(),
    };
    td.lend(ibv_td { context })
}

/// `ibv_dealloc_td(3)`. EBUSY while a parent domain has it.
pub(super) unsafe extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    // SAFETY: a live domain, which goes if nobody uses it.
    zero_or_error(unsafe { Td::of(td).users.none().map(|()| drop(Td::take_back(td))) })
}
