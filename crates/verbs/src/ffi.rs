//! Corrections of rdma-sys and additions to it, and nothing else.
//!
//! - Its `verbs_get_ctx` compares `abi_compat` with `u32::MAX`, so on 64-bit every extended verb looks
//!   unsupported; [`extended_context`] compares with `usize::MAX`, as `verbs.h` does. The inline functions that go through
//!   it are written again here.
//! - `_ibv_query_gid_ex` and `ibv_reg_mr_iova2` are not bound, nor is anything of libmlx5.
//! - `ibv_event_type` is a Rust enum, unsound to read when a newer library adds a value; [`event_type`]
//!   reads it as a number.

use std::mem::{offset_of, size_of, zeroed};
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use rdma_sys::{
    ibv_async_event, ibv_context, ibv_cq_ex, ibv_cq_init_attr_ex, ibv_device_attr_ex,
    ibv_gid_entry, ibv_mr, ibv_parent_domain_init_attr, ibv_pd, ibv_port_attr, ibv_qp,
    ibv_qp_init_attr_ex, ibv_qp_rate_limit_attr, ibv_td, ibv_td_init_attr, ibv_values_ex,
    ibv_values_mask, verbs_context,
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

    fn ibv_reg_mr_iova2(
        pd: *mut ibv_pd,
        address: *mut c_void,
        length: usize,
        iova: u64,
        access: c_uint,
    ) -> *mut ibv_mr;
}

/// Where the object file begins that has this function; `None` where the loader does not know.
pub(super) fn object_file(function: *const c_void) -> Option<usize> {
    // SAFETY: pointers and nothing else, for which zero is valid.
    let mut info: libc::Dl_info = unsafe { zeroed() };
    // SAFETY: `info` is writable; the loader only looks the address up.
    let found = unsafe { libc::dladdr(function, &mut info) };
    (found != 0).then(|| info.dli_fbase.addr())
}

/// `ibv_reg_mr(3)` as the macro of verbs.h, which takes optional flags too.
pub(super) unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    let iova = address.addr() as u64;
    // SAFETY: forwarded as it came.
    unsafe { ibv_reg_mr_iova2(pd, address, length, iova, access.cast_unsigned()) }
}

/// `ibv_reg_dmabuf_mr(3)`, of a libibverbs that has it (verbs 1.12, January 2021).
pub(super) unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    length: usize,
    iova: u64,
    descriptor: c_int,
    access: c_int,
) -> *mut ibv_mr {
    type Function = unsafe extern "C" fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr;
    // SAFETY: a name with its zero, looked up in what the process has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ibv_reg_dmabuf_mr".as_ptr()) };
    if found.is_null() {
        return without_function();
    }
    // SAFETY: libibverbs' function of this name has this type; the arguments are forwarded as they came.
    unsafe {
        let function = std::mem::transmute::<*mut c_void, Function>(found);
        function(pd, offset, length, iova, descriptor, access)
    }
}

/// `mlx5dv_modify_qp_udp_sport(3)`; EOPNOTSUPP where it is missing, and for QPs of other providers.
pub(super) unsafe extern "C" fn modify_qp_udp_sport(qp: *mut ibv_qp, port: u16) -> c_int {
    type Function = unsafe extern "C" fn(*mut ibv_qp, u16) -> c_int;
    static FUNCTION: OnceLock<Option<Function>> = OnceLock::new();
    let function = FUNCTION.get_or_init(|| {
        // SAFETY: names with their zeros; the library stays open.
        let found = unsafe {
            let library = libc::dlopen(c"libmlx5.so.1".as_ptr(), libc::RTLD_NOW);
            if library.is_null() {
                return None;
            } else {
                libc::dlsym(library, c"mlx5dv_modify_qp_udp_sport".as_ptr())
            }
        };
        // SAFETY: libmlx5's function of this name has this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Function>(found) })
    });
    match function {
        // SAFETY: the caller's QP; the function looks at its provider first.
        Some(function) => unsafe { function(qp, port) },
        None => libc::EOPNOTSUPP,
    }
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

/// Whether the provider has an extended context.
///
/// # Safety
/// As for [`extended_context`].
pub(super) unsafe fn is_extended(context: *mut ibv_context) -> bool {
    // SAFETY: as the caller's.
    unsafe { extended_context(context) }.is_some()
}

/// A function of the extended context, if the provider has it (`verbs_get_ctx_op` of `verbs.h`). The context must be open.
macro_rules! extended {
    ($context:expr, $function:ident) => {
        extended_context($context).and_then(|extended| {
            let least = size_of::<verbs_context>() - offset_of!(verbs_context, $function);
            if (*extended).sz >= least { (*extended).$function } else { None }
        })
    };
}

/// `ibv_modify_qp_rate_limit(3)`; EOPNOTSUPP where the device lacks it.
///
/// # Safety
/// A live QP of a library with libibverbs' layout.
pub(super) unsafe fn modify_qp_rate_limit(
    qp: *mut ibv_qp,
    attr: &mut ibv_qp_rate_limit_attr,
) -> c_int {
    // SAFETY: the caller's QP, of an open context.
    unsafe {
        match extended!((*qp).context, modify_qp_rate_limit) {
            Some(modify) => modify(qp, attr),
            None => libc::EOPNOTSUPP,
        }
    }
}

/// `ibv_query_port` with the whole attribute struct; the bound symbol fills only the part of the old ABI.
pub(super) unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the caller passes an open context and a writable, zeroed struct, as the manual page asks.
    unsafe {
        if let Some(query) = extended!(context, query_port) {
            return query(context, port, attr, size_of::<ibv_port_attr>());
        }
        rdma_sys::ibv_query_port(context, port, attr.cast())
    }
}

/// `ibv_query_port_speed(3)`, in 100 Mb/s, of a libibverbs that has it (verbs 1.16, January 2026).
pub(super) unsafe extern "C" fn query_port_speed(
    context: *mut ibv_context,
    port: u32,
    speed_100mbit_per_s: *mut u64,
) -> c_int {
    type Function = unsafe extern "C" fn(*mut ibv_context, u32, *mut u64) -> c_int;
    // SAFETY: a name with its zero, looked up in what the process has loaded.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"ibv_query_port_speed".as_ptr()) };
    if found.is_null() {
        return libc::EOPNOTSUPP;
    }
    // SAFETY: libibverbs' function of this name has this type; the caller passes an open context and room for a number.
    unsafe {
        let function = std::mem::transmute::<*mut libc::c_void, Function>(found);
        function(context, port, speed_100mbit_per_s)
    }
}

/// `ibv_query_gid_ex(3)`, which rdma-sys does not bind.
pub(super) unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    // SAFETY: forwarded as it came; the size is that of the struct behind `entry`.
    unsafe { _ibv_query_gid_ex(context, port, gid_index, entry, flags, size_of::<ibv_gid_entry>()) }
}

/// The event's type as a number: a newer library may use one that the enum lacks.
///
/// # Safety
/// `event` was filled by `get_async_event`.
pub(super) unsafe fn event_type(event: *const ibv_async_event) -> u32 {
    // SAFETY: the field is a 32-bit enum, valid to read as its representation.
    unsafe { std::ptr::addr_of!((*event).event_type).cast::<u32>().read() }
}

fn without_function<T>() -> *mut T {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = libc::EOPNOTSUPP };
    null_mut()
}

/// `ibv_create_cq_ex(3)`.
///
/// # Safety
/// The context is open, and `init` names live objects.
pub(super) unsafe fn create_cq_ex(
    context: *mut ibv_context,
    init: &mut ibv_cq_init_attr_ex,
) -> *mut ibv_cq_ex {
    // SAFETY: as the caller's.
    unsafe {
        extended!(context, create_cq_ex).map_or_else(without_function, |it| it(context, init))
    }
}

/// `ibv_create_qp_ex(3)`.
///
/// # Safety
/// The context is open, and `init` names live objects.
pub(super) unsafe fn create_qp_ex(
    context: *mut ibv_context,
    init: &mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: as the caller's.
    unsafe {
        extended!(context, create_qp_ex).map_or_else(without_function, |it| it(context, init))
    }
}

/// `ibv_query_device_ex(3)`; `None` where it is not there or fails.
///
/// # Safety
/// The context is open.
pub(super) unsafe fn query_device_ex(context: *mut ibv_context) -> Option<ibv_device_attr_ex> {
    // SAFETY: plain data, for which zero is valid; the context is open and the struct writable.
    unsafe {
        let mut attr: ibv_device_attr_ex = zeroed();
        let query = extended!(context, query_device_ex)?;
        let code = query(context, null(), &mut attr, size_of::<ibv_device_attr_ex>());
        (code == 0).then_some(attr)
    }
}

/// The device's clock by `ibv_query_rt_values_ex(3)`, in its ticks.
///
/// # Safety
/// The context is open.
pub(super) unsafe fn query_clock(context: *mut ibv_context) -> Result<u64, c_int> {
    // SAFETY: as the caller's; plain data, for which zero is valid.
    unsafe {
        let query = extended!(context, query_rt_values).ok_or(libc::EOPNOTSUPP)?;
        let mut values: ibv_values_ex = zeroed();
        values.comp_mask = ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0;
        match query(context, &mut values) {
            0 => {
                let seconds = values.raw_clock.tv_sec.cast_unsigned();
                let rest = values.raw_clock.tv_nsec.cast_unsigned();
                Ok(seconds.wrapping_mul(1_000_000_000).wrapping_add(rest))
            }
            code => Err(code),
        }
    }
}

/// `ibv_alloc_td(3)`.
///
/// # Safety
/// The context is open.
pub(super) unsafe fn alloc_td(context: *mut ibv_context) -> *mut ibv_td {
    let mut init = ibv_td_init_attr { comp_mask: 0 };
    // SAFETY: as the caller's.
    unsafe {
        extended!(context, alloc_td).map_or_else(without_function, |it| it(context, &mut init))
    }
}

/// `ibv_dealloc_td(3)`.
///
/// # Safety
/// `td` is live, and nothing uses it any more.
pub(super) unsafe fn dealloc_td(td: *mut ibv_td) -> c_int {
    // SAFETY: as the caller's.
    unsafe { extended!((*td).context, dealloc_td).map_or(libc::EOPNOTSUPP, |it| it(td)) }
}

/// `ibv_alloc_parent_domain(3)` of a PD and a thread domain.
///
/// # Safety
/// `pd` and `td` are live objects of one context.
pub(super) unsafe fn alloc_parent_domain(pd: *mut ibv_pd, td: *mut ibv_td) -> *mut ibv_pd {
    // SAFETY: as the caller's; plain data and optional function pointers, for which zero is valid.
    unsafe {
        let context = (*pd).context;
        let mut init: ibv_parent_domain_init_attr = zeroed();
        (init.pd, init.td) = (pd, td);
        extended!(context, alloc_parent_domain)
            .map_or_else(without_function, |it| it(context, &mut init))
    }
}
