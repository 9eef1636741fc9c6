//! Corrections of rdma-sys and additions to it, and nothing else.
//!
//! - Its `verbs_get_ctx` compares `abi_compat` with `u32::MAX`, so on 64-bit every extended verb looks
//!   unsupported; [`extended_context`] compares with `usize::MAX`, as `verbs.h` does.
//! - `_ibv_query_gid_ex` is not bound.
//! - `ibv_event_type` is a Rust enum, unsound to read when a newer library adds a value; [`event_type`]
//!   reads it as a number.

use std::mem::{offset_of, size_of, zeroed};
use std::os::raw::c_int;
use std::ptr::null;

use rdma_sys::{
    ibv_async_event, ibv_context, ibv_device_attr_ex, ibv_gid_entry, ibv_packet_pacing_caps,
    ibv_port_attr, ibv_qp, ibv_qp_rate_limit_attr, verbs_context,
};

#[link(name = "ibverbs")]
unsafe extern "C" {
    fn _ibv_query_gid_ex(
        context: *mut ibv_context,
        port: u32,
        gid_index: u32,
        entry: *mut ibv_gid_entry,
        flags: u32,
        entry_size: usize,
    ) -> c_int;
}

/// The extended context around `context`, if the provider has one (`verbs_get_ctx` of `verbs.h`).
///
/// # Safety
/// `context` is an open context of a library with libibverbs' layout.
unsafe fn extended_context(context: *mut ibv_context) -> Option<*mut verbs_context> {
    // SAFETY: the caller vouches for `context`.
    if unsafe { (*context).abi_compat } as usize != usize::MAX {
        return None;
    }
    let offset = offset_of!(verbs_context, context);
    Some(context.cast::<u8>().wrapping_sub(offset).cast())
}

/// What the device tells of limits of QPs' rates by `ibv_query_device_ex(3)`; `None` if it lacks that.
///
/// # Safety
/// `context` is an open context of a library with libibverbs' layout.
pub(super) unsafe fn packet_pacing(context: *mut ibv_context) -> Option<ibv_packet_pacing_caps> {
    // SAFETY: plain data, for which zero is valid.
    let mut attr: ibv_device_attr_ex = unsafe { zeroed() };
    // SAFETY: the caller's context; the entry is read only if the provider's struct has it, and gets a writable struct of
    // the size that it is told.
    let code = unsafe {
        let extended = extended_context(context)?;
        if (*extended).sz <= size_of::<verbs_context>() - offset_of!(verbs_context, query_device_ex)
        {
            return None;
        }
        let query = (*extended).query_device_ex?;
        query(
            context,
            null(),
            &raw mut attr,
            size_of::<ibv_device_attr_ex>(),
        )
    };
    (code == 0).then_some(attr.packet_pacing_caps)
}

/// `ibv_modify_qp_rate_limit(3)`; EOPNOTSUPP where the device lacks it.
///
/// # Safety
/// A live QP of a library with libibverbs' layout.
pub(super) unsafe fn modify_qp_rate_limit(
    qp: *mut ibv_qp,
    attr: &mut ibv_qp_rate_limit_attr,
) -> c_int {
    // SAFETY: as in `packet_pacing`.
    unsafe {
        if let Some(extended) = extended_context((*qp).context)
            && (*extended).sz
                > size_of::<verbs_context>() - offset_of!(verbs_context, modify_qp_rate_limit)
            && let Some(modify) = (*extended).modify_qp_rate_limit
        {
            return modify(qp, attr);
        }
    }
    libc::EOPNOTSUPP
}

/// `ibv_query_port` with the whole attribute struct; the bound symbol fills only the part of the old ABI.
pub(super) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the caller passes an open context and a writable, zeroed struct, as the manual page asks.
    unsafe {
        if let Some(extended) = extended_context(context) {
            let has_entry =
                (*extended).sz > size_of::<verbs_context>() - offset_of!(verbs_context, query_port);
            if let (true, Some(query)) = (has_entry, (*extended).query_port) {
                return query(context, port, attr, size_of::<ibv_port_attr>());
            }
        }
        rdma_sys::ibv_query_port(context, port, attr.cast())
    }
}

/// `ibv_query_gid_ex(3)`.
pub(super) unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    // SAFETY: forwarded as it came; the size is that of the struct behind `entry`.
    unsafe {
        _ibv_query_gid_ex(
            context,
            port,
            gid_index,
            entry,
            flags,
            size_of::<ibv_gid_entry>(),
        )
    }
}

/// The event's type as a number: a newer library may use one that the enum lacks.
///
/// # Safety
/// `event` was filled by `get_async_event`.
pub(super) unsafe fn event_type(event: *const ibv_async_event) -> u32 {
    // SAFETY: the field is a 32-bit enum, valid to read as its representation.
    unsafe { std::ptr::addr_of!((*event).event_type).cast::<u32>().read() }
}
