//! Unsupported functions of libibverbs: they fail with EOPNOTSUPP and print a line on stderr, once per feature.

use std::collections::BTreeSet;
use std::os::raw::c_int;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use rdma_sys::verbs_context;

use super::device::complain;
use super::errno::set_errno;

/// Sets `errno` to EOPNOTSUPP, and prints on stderr what is not supported, the first time.
pub fn refuse(what: &'static str) {
    static SAID: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let fresh = SAID
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(what);
    if fresh {
        complain(format_args!("{what} is not supported"));
    }
    set_errno(libc::EOPNOTSUPP);
}

/// Sets pointers of the `verbs_context` to functions that refuse, named after the inline functions that call them.
/// With a null pointer the inline function would also return EOPNOTSUPP, but without the line.
macro_rules! refusals {
    ($($field:ident: $name:literal => $function:ident($($type:ty),*) -> $result:ty = $value:expr;)*) => {
        pub(super) fn fill(verbs: &mut verbs_context) {
            $(verbs.$field = Some($function);)*
        }
        $(unsafe extern "C" fn $function($(_: $type),*) -> $result {
            refuse($name);
            $value
        })*
    };
}

refusals! {
    open_xrcd: "ibv_open_xrcd" => open_xrcd(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_xrcd_init_attr
    ) -> *mut rdma_sys::ibv_xrcd = null_mut();
    close_xrcd: "ibv_close_xrcd" => close_xrcd(*mut rdma_sys::ibv_xrcd) -> c_int = libc::EOPNOTSUPP;
    create_srq_ex: "ibv_create_srq_ex" => create_srq_ex(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_srq_init_attr_ex
    ) -> *mut rdma_sys::ibv_srq = null_mut();
    open_qp: "ibv_open_qp" => open_qp(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_qp_open_attr
    ) -> *mut rdma_sys::ibv_qp = null_mut();
    ibv_create_flow: "ibv_create_flow" => create_flow(
        *mut rdma_sys::ibv_qp, *mut rdma_sys::ibv_flow_attr
    ) -> *mut rdma_sys::ibv_flow = null_mut();
    create_wq: "ibv_create_wq" => create_wq(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_wq_init_attr
    ) -> *mut rdma_sys::ibv_wq = null_mut();
    create_rwq_ind_table: "ibv_create_rwq_ind_table" => create_rwq_ind_table(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_rwq_ind_table_init_attr
    ) -> *mut rdma_sys::ibv_rwq_ind_table = null_mut();
    alloc_dm: "ibv_alloc_dm" => alloc_dm(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_alloc_dm_attr
    ) -> *mut rdma_sys::ibv_dm = null_mut();
    alloc_null_mr: "ibv_alloc_null_mr" => alloc_null_mr(
        *mut rdma_sys::ibv_pd
    ) -> *mut rdma_sys::ibv_mr = null_mut();
    create_counters: "ibv_create_counters" => create_counters(
        *mut rdma_sys::ibv_context, *mut rdma_sys::ibv_counters_init_attr
    ) -> *mut rdma_sys::ibv_counters = null_mut();
    modify_cq: "ibv_modify_cq" => modify_cq(
        *mut rdma_sys::ibv_cq, *mut rdma_sys::ibv_modify_cq_attr
    ) -> c_int = libc::EOPNOTSUPP;
}
