//! Error numbers of the transport's errors, and lines on stderr that explain them.
//!
//! Unsupported functions of libibverbs: they fail with EOPNOTSUPP and print a line on stderr, once per feature.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;
use std::os::raw::c_int;
use std::ptr::null_mut;

use provider::{Lock, set_errno};
use rdma_sys::{
    ibv_counters, ibv_dm, ibv_flow, ibv_mr, ibv_qp, ibv_rwq_ind_table, ibv_srq, ibv_wq, ibv_xrcd,
    verbs_context,
};

use crate::transport::{MemoryError, PostError};

/// The return value of a failed post.
pub(crate) fn post_error(error: PostError) -> c_int {
    match error {
        PostError::Full => libc::ENOMEM,
        PostError::Process => libc::EIO,
        PostError::State | PostError::Elements | PostError::Inline | PostError::Operation => {
            libc::EINVAL
        }
    }
}

/// The error number of a failed registration or deregistration.
pub(crate) fn memory_error(error: MemoryError) -> c_int {
    match error {
        MemoryError::Invalid => libc::EINVAL,
        MemoryError::Full => libc::ENOMEM,
        MemoryError::InUse => libc::EBUSY,
    }
}

/// Prints a line on stderr that explains an error number, in one piece, since the ranks of a job often have the same
/// stderr. Without stderr, it is dropped.
pub fn complain(what: std::fmt::Arguments<'_>) {
    let line = format!("softroce: {what}\n");
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Sets `errno` to EOPNOTSUPP, and prints on stderr what is not supported, the first time.
pub fn refuse(what: &'static str) {
    static SAID: Lock<BTreeSet<&'static str>> = Lock::new(BTreeSet::new());
    if SAID.lock().insert(what) {
        complain(format_args!("{what} is not supported"));
    }
    set_errno(libc::EOPNOTSUPP);
}

/// Sets pointers of the `verbs_context` to functions that refuse, named after the inline functions that call them.
/// With a null pointer the inline function would also return EOPNOTSUPP, but without the line.
macro_rules! refusals {
    ($($name:literal $function:ident($($type:ident),*) -> $result:ty = $value:expr;)*) => {
        pub(super) fn fill_refused(verbs: &mut verbs_context) {
            $(verbs.$function = Some($function);)*
        }
        $(unsafe extern "C" fn $function($(_: *mut rdma_sys::$type),*) -> $result {
            refuse($name);
            $value
        })*
    };
}

refusals! {
    "ibv_open_xrcd" open_xrcd(ibv_context, ibv_xrcd_init_attr) -> *mut ibv_xrcd = null_mut();
    "ibv_close_xrcd" close_xrcd(ibv_xrcd) -> c_int = libc::EOPNOTSUPP;
    "ibv_create_srq_ex" create_srq_ex(ibv_context, ibv_srq_init_attr_ex) -> *mut ibv_srq = null_mut();
    "ibv_open_qp" open_qp(ibv_context, ibv_qp_open_attr) -> *mut ibv_qp = null_mut();
    "ibv_create_flow" ibv_create_flow(ibv_qp, ibv_flow_attr) -> *mut ibv_flow = null_mut();
    "ibv_create_wq" create_wq(ibv_context, ibv_wq_init_attr) -> *mut ibv_wq = null_mut();
    "ibv_create_rwq_ind_table" create_rwq_ind_table(ibv_context, ibv_rwq_ind_table_init_attr)
        -> *mut ibv_rwq_ind_table = null_mut();
    "ibv_alloc_dm" alloc_dm(ibv_context, ibv_alloc_dm_attr) -> *mut ibv_dm = null_mut();
    "ibv_alloc_null_mr" alloc_null_mr(ibv_pd) -> *mut ibv_mr = null_mut();
    "ibv_create_counters" create_counters(ibv_context, ibv_counters_init_attr)
        -> *mut ibv_counters = null_mut();
    "ibv_modify_cq" modify_cq(ibv_cq, ibv_modify_cq_attr) -> c_int = libc::EOPNOTSUPP;
}
