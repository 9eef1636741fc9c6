//! The control functions under libibverbs' names; each calls the device of its context.
//!
//! Pointers that libibverbs would not accept (null, freed, of another library) must not be passed: that is
//! what makes these functions unsafe.
#![expect(clippy::missing_safety_doc, reason = "it is that of all: see above")]

use std::io;
use std::os::raw::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use rdma_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_context_ops, ibv_cq,
    ibv_device, ibv_device_attr, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr,
    ibv_qp_ex, ibv_qp_init_attr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr,
};

use crate::context::{Channel, Context, Source};
use crate::personas::{Adapter, Answer, Device, Engine};
use crate::structs::{self, free, keep, new_srq};
use crate::{loopback, null};

fn set_errno(error: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// Returns the pointer, or null with `errno` set.
fn pointer_or_errno<T>(result: Result<*mut T, c_int>) -> *mut T {
    result.unwrap_or_else(|error| {
        set_errno(error);
        null_mut()
    })
}

fn code(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// What handles a context's WRs.
///
/// # Safety
/// `context` is open.
unsafe fn engine(context: *mut ibv_context) -> Engine {
    // SAFETY: the caller vouches for it.
    unsafe { Context::from_raw(context) }.engine()
}

/// What a context's device says of itself.
///
/// # Safety
/// `context` is open.
unsafe fn table(context: *mut ibv_context) -> &'static Adapter {
    // SAFETY: the caller vouches for it.
    unsafe { Context::from_raw(context) }.table()
}

pub unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    // SAFETY: the caller passes a device of a list.
    let table = unsafe { Device::from_raw(device) }.table;
    pointer_or_errno(table.open.0.and_then(|()| {
        // SAFETY: optional function pointers, for which zero is `None`.
        let mut ops: ibv_context_ops = unsafe { std::mem::zeroed() };
        match table.engine {
            Engine::Null => null::fill_ops(&mut ops),
            Engine::Loopback => loopback::fill_ops(&mut ops),
        }
        // SAFETY: as above.
        unsafe { Context::open(device, ops) }.map_err(|error| code(&error))
    }))
}

/// `ibv_close_device(3)`.
///
/// # Safety
/// As for libibverbs: everything made in the context was destroyed before.
pub unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: made by `Context::open`, and the caller gives it up.
    unsafe { free(context.cast::<Context>()) }
}

pub unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: the caller passes an open context and a writable struct.
    structs::fill_device_attributes(unsafe { table(context) }, unsafe { &mut *attr });
    0
}

/// `ibv_query_port(3)`, the whole struct. EINVAL for a port that it has not.
pub unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: the caller passes an open context and a writable struct.
    unsafe {
        let Some(port) = table(context).port(port.into()) else {
            return libc::EINVAL;
        };
        structs::fill_port_attributes(port, &mut *attr);
    }
    0
}

/// `ibv_query_port_speed(3)`. EINVAL for a port that it has not, EOPNOTSUPP where the adapter's driver has no such function.
pub unsafe extern "C" fn query_port_speed(
    context: *mut ibv_context,
    port: u32,
    speed_100mbit_per_s: *mut u64,
) -> c_int {
    // SAFETY: the caller passes an open context and room for a number.
    unsafe {
        match table(context).port(port).map(|port| port.port_speed_100mbit_per_s) {
            None => return libc::EINVAL,
            Some(0) => return libc::EOPNOTSUPP,
            Some(speed) => *speed_100mbit_per_s = speed,
        }
    }
    0
}

/// `ibv_query_gid_ex(3)`. EINVAL for a port that it has not, ENODATA for an empty entry.
pub unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    // SAFETY: the caller passes an open context and a writable struct.
    unsafe {
        match table(context).port(port) {
            Some(port) if flags == 0 => match structs::fill_gid(port, gid_index, &mut *entry) {
                Some(()) => 0,
                None => libc::ENODATA,
            },
            _ => libc::EINVAL,
        }
    }
}

/// `ibv_get_async_event(3)`: blocks, or fails with EAGAIN if `async_fd` is non-blocking.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    let outcome = unsafe { Context::from_raw(context).next_event(&mut *event) };
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            set_errno(code(&error));
            -1
        }
    }
}

/// `ibv_ack_async_event(3)`: does nothing, since no call waits for it.
pub unsafe extern "C" fn ack_async_event(_event: *mut ibv_async_event) {}

pub unsafe extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    keep(ibv_pd { context, handle: 0 })
}

/// `ibv_dealloc_pd(3)`. EBUSY on `loop0` while the PD has an MR or QP.
pub unsafe extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    // SAFETY: a live protection domain of an open context.
    unsafe {
        if engine((*pd).context) == Engine::Loopback && loopback::pd_in_use(pd) {
            return libc::EBUSY;
        }
        free(pd)
    }
}

/// `ibv_reg_mr(3)`. EINVAL for remote write without local write.
///
/// # Safety
/// As for libibverbs: the memory stays until [`dereg_mr`].
pub unsafe extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: a live protection domain of an open context.
    pointer_or_errno(unsafe {
        match engine((*pd).context) {
            Engine::Null => Ok(null::reg_mr(pd, address, length)),
            Engine::Loopback => loopback::reg_mr(pd, address, length, access),
        }
    })
}

/// `ibv_reg_dmabuf_mr(3)`, for memory that is never touched: on `null0` alone. EOPNOTSUPP elsewhere.
pub unsafe extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    _offset: u64,
    length: usize,
    _iova: u64,
    _descriptor: c_int,
    _access: c_int,
) -> *mut ibv_mr {
    // SAFETY: a live protection domain of an open context.
    pointer_or_errno(unsafe {
        match engine((*pd).context) {
            Engine::Null => Ok(null::reg_mr(pd, null_mut(), length)),
            Engine::Loopback => Err(libc::EOPNOTSUPP),
        }
    })
}

pub unsafe extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    // SAFETY: a live MR, made by `reg_mr` of either device.
    unsafe {
        if engine((*mr).context) == Engine::Loopback {
            loopback::forget_mr(mr);
        }
        free(mr)
    }
}

/// `ibv_create_comp_channel(3)`. EOPNOTSUPP on `null0`, whose WRs complete before a program could sleep.
pub unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    // SAFETY: the context is open.
    pointer_or_errno(match unsafe { engine(context) } {
        Engine::Null => Err(libc::EOPNOTSUPP),
        Engine::Loopback => Channel::create(context).map_err(|error| code(&error)),
    })
}

/// `ibv_destroy_comp_channel(3)`, but without a check for CQs that still use it.
pub unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    // SAFETY: made by `Channel::create`.
    unsafe { free(channel.cast::<Channel>()) }
}

/// `ibv_get_cq_event(3)`: blocks, or returns -1 with EAGAIN if the descriptor is non-blocking.
pub unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: a live channel, and two writable pointers; the CQ lives, or its events were forgotten.
    unsafe {
        match Channel::from_raw(channel).next() {
            Ok(source) => {
                cq.write(source);
                cq_context.write((*source).cq_context);
                0
            }
            Err(error) => {
                set_errno(code(&error));
                -1
            }
        }
    }
}

/// `ibv_ack_cq_events(3)`: does nothing, since no call waits for it.
pub unsafe extern "C" fn ack_cq_events(_cq: *mut ibv_cq, _events: c_uint) {}

/// `ibv_create_cq(3)`. EINVAL for a size of 0 or above the limit; EOPNOTSUPP on `null0` with a completion channel.
pub unsafe extern "C" fn create_cq(
    context: *mut ibv_context,
    entries: c_int,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    // SAFETY: the context is open.
    let max_cqe = unsafe { table(context) }.max_cqe;
    let size = match u32::try_from(entries) {
        Ok(size) if size > 0 && entries <= max_cqe && vector == 0 => size,
        _ => return pointer_or_errno(Err(libc::EINVAL)),
    };
    // SAFETY: the context is open.
    pointer_or_errno(match unsafe { engine(context) } {
        Engine::Null if !channel.is_null() => Err(libc::EOPNOTSUPP),
        Engine::Null => Ok(null::create_cq(context, size, cq_context)),
        Engine::Loopback => Ok(loopback::create_cq(context, size, cq_context, channel)),
    })
}

/// `ibv_destroy_cq(3)`. EBUSY on `loop0` while a QP uses it.
pub unsafe extern "C" fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    // SAFETY: a live CQ of an open context.
    unsafe {
        let context = Context::from_raw((*cq).context);
        let outcome = match context.engine() {
            Engine::Null => null::destroy_cq(cq),
            Engine::Loopback => loopback::destroy_cq(cq),
        };
        if outcome == 0 {
            context.forget(Source::Cq(cq));
        }
        outcome
    }
}

/// `ibv_create_srq(3)`. EINVAL beyond the device's limits.
pub unsafe extern "C" fn create_srq(
    pd: *mut ibv_pd,
    srq_init_attr: *mut ibv_srq_init_attr,
) -> *mut ibv_srq {
    // SAFETY: a live protection domain of an open context, and a struct that can be read.
    pointer_or_errno(unsafe {
        let init = &*srq_init_attr;
        let table = table((*pd).context);
        let fits = (1..=table.max_srq_wr).contains(&init.attr.max_wr)
            && init.attr.max_sge <= table.max_srq_sge;
        match engine((*pd).context) {
            _ if !fits => Err(libc::EINVAL),
            Engine::Null => Ok(new_srq(pd, init)),
            Engine::Loopback => Ok(loopback::create_srq(pd, init)),
        }
    })
}

/// `ibv_modify_srq(3)`: arms the limit, which `null0` never reaches. EINVAL for anything else on `loop0`.
pub unsafe extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    // SAFETY: a live SRQ and a readable struct; the mask is a set of bits.
    unsafe {
        match engine((*srq).context) {
            Engine::Null => 0,
            Engine::Loopback => loopback::modify_srq(srq, &*attr, mask.cast_unsigned()),
        }
    }
}

/// `ibv_destroy_srq(3)`. EBUSY on `loop0` while a QP uses it.
pub unsafe extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    // SAFETY: a live SRQ of an open context.
    unsafe {
        let context = Context::from_raw((*srq).context);
        let outcome = match context.engine() {
            Engine::Null => free(srq),
            Engine::Loopback => loopback::destroy_srq(srq),
        };
        if outcome == 0 {
            context.forget(Source::Srq(srq));
        }
        outcome
    }
}

/// `ibv_create_qp(3)`: of the services that the device has. EINVAL beyond its limits, ENOMEM beyond its number of QPs.
pub unsafe extern "C" fn create_qp(
    pd: *mut ibv_pd,
    qp_init_attr: *mut ibv_qp_init_attr,
) -> *mut ibv_qp {
    // SAFETY: a live protection domain of an open context, and a struct that can be read and written.
    pointer_or_errno(unsafe {
        let init = &mut *qp_init_attr;
        let context = Context::from_raw((*pd).context);
        check_init(init, context.table()).and_then(|()| match context.engine() {
            Engine::Null => null::create_qp(pd, init),
            Engine::Loopback => loopback::create_qp(pd, init),
        })
    })
}

fn check_init(init: &ibv_qp_init_attr, table: &Adapter) -> Result<(), c_int> {
    use rdma_sys::ibv_qp_type::{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
    let cap = &init.cap;
    let fits = cap.max_send_wr <= table.max_qp_wr
        && cap.max_recv_wr <= table.max_qp_wr
        && cap.max_send_sge <= table.max_sge
        && cap.max_recv_sge <= table.max_sge
        && cap.max_inline_data <= table.max_inline_bytes;
    let complete = !init.send_cq.is_null() && !init.recv_cq.is_null();
    let Answer(served) = match init.qp_type {
        IBV_QPT_RC => table.services.rc,
        IBV_QPT_UC => table.services.uc,
        IBV_QPT_UD => table.services.ud,
        _ => Answer(Err(libc::EINVAL)),
    };
    served?;
    (fits && complete).then_some(()).ok_or(libc::EINVAL)
}

/// `ibv_qp_to_qp_ex(3)`: null, since there is no `ibv_wr_post(3)` here.
pub unsafe extern "C" fn qp_to_qp_ex(_qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    null_mut()
}

/// `ibv_query_qp(3)`: all attributes, whatever the mask.
pub unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: a live QP and two writable structs.
    unsafe {
        match engine((*qp).context) {
            Engine::Null => null::query_qp(qp, attr, init),
            Engine::Loopback => loopback::query_qp(qp, attr, init),
        }
    }
}

/// `mlx5dv_modify_qp_udp_sport(3)`, as the table says: for RC and UC QPs in RTS.
pub unsafe extern "C" fn modify_qp_udp_sport(qp: *mut ibv_qp, _port: u16) -> c_int {
    use rdma_sys::{ibv_qp_state::IBV_QPS_RTS, ibv_qp_type::IBV_QPT_UD};
    // SAFETY: a live QP of an open context.
    let (table, kind, state) =
        unsafe { (Context::from_raw((*qp).context).table(), (*qp).qp_type, (*qp).state) };
    match table.udp_sport {
        Answer(Err(code)) => code,
        _ if kind == IBV_QPT_UD || state != IBV_QPS_RTS => libc::EOPNOTSUPP,
        Answer(Ok(())) => 0,
    }
}

/// `ibv_modify_qp(3)`. `loop0` checks the transition, its attributes and their values (EINVAL), and that the
/// destination GID is its own (ETIMEDOUT); `null0` checks nothing.
pub unsafe extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: a live QP and a readable struct; the mask is a set of bits.
    unsafe {
        let attr_mask = mask.cast_unsigned();
        match engine((*qp).context) {
            Engine::Null => null::modify_qp(qp, &*attr, attr_mask),
            Engine::Loopback => loopback::modify_qp(qp, &*attr, attr_mask),
        }
    }
}

pub unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: a live QP of an open context.
    unsafe {
        Context::from_raw((*qp).context).forget(Source::Qp(qp));
        match engine((*qp).context) {
            Engine::Null => null::destroy_qp(qp),
            Engine::Loopback => loopback::destroy_qp(qp),
        }
    }
}

/// `ibv_create_ah(3)`, on `null0` to wherever. EOPNOTSUPP on `loop0`, which has no UD QPs.
pub unsafe extern "C" fn create_ah(pd: *mut ibv_pd, _attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: a live protection domain of an open context.
    pointer_or_errno(unsafe {
        match engine((*pd).context) {
            Engine::Null => Ok(keep(ibv_ah { context: (*pd).context, pd, handle: 0 })),
            Engine::Loopback => Err(libc::EOPNOTSUPP),
        }
    })
}

pub unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: a live address handle, which only `null0` makes.
    unsafe { free(ah) }
}
