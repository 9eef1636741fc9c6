//! Opening a device: the function table of its context, and its faults.

use std::env;
use std::io;
use std::os::raw::{c_int, c_void};
use std::ptr::without_provenance_mut;
use std::sync::Arc;

use rdma_sys::{ibv_context, ibv_context_ops, ibv_device, verbs_context};

use super::context::Context;
use super::device::{Device, complain};
use super::errno::pointer_or_errno;
use super::events::Queue;
use super::{cq, cq_extended, limits, port, post, qp_create, refused, srq};
use crate::net::{self, Faults};
use crate::transport::{Nic, NicOptions};

/// The variable with deliberate faults, in the syntax of [`Faults`].
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// `__VERBS_ABI_IS_EXTENDED`: the `ibv_context` is part of a `verbs_context`.
const EXTENDED_ABI: *mut c_void = without_provenance_mut(usize::MAX);

fn faults() -> Result<Faults, c_int> {
    let Some(text) = env::var_os(FAULTS_VARIABLE) else {
        return Ok(Faults::default());
    };
    text.to_string_lossy().parse().map_err(|error| {
        complain(format_args!("{FAULTS_VARIABLE}: {error}"));
        libc::EINVAL
    })
}

/// The functions behind the inline functions of `verbs.h`.
fn operations() -> ibv_context_ops {
    // SAFETY: optional function pointers, for which zero is `None`.
    let mut ops: ibv_context_ops = unsafe { std::mem::zeroed() };
    ops.poll_cq = Some(cq::poll_cq);
    ops.req_notify_cq = Some(cq::req_notify_cq);
    ops.post_send = Some(post::post_send);
    ops.post_recv = Some(post::post_recv);
    ops.post_srq_recv = Some(srq::post_srq_recv);
    ops
}

/// Opens `device` with these faults. If this process has opened its address before, the faults of the first opening
/// stay.
///
/// # Errors
/// The sockets' error, as a [`net::OpenError`] inside, or that of the event file.
pub(super) fn open(device: &'static Device, faults: Faults) -> io::Result<*mut ibv_context> {
    let nic = Nic::open(&NicOptions {
        address: device.place.address,
        faults,
    })?;
    let events = Arc::new(Queue::new()?);
    // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of which zero is a value
    // (that of PTHREAD_MUTEX_INITIALIZER).
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    verbs.query_port = Some(port::query_port_bytes);
    verbs.query_device_ex = Some(limits::query_device_ex);
    verbs.create_cq_ex = Some(cq_extended::create_cq_ex);
    verbs.create_qp_ex = Some(qp_create::create_qp_ex);
    refused::fill(&mut verbs);
    verbs.context.device = device.verbs();
    verbs.context.ops = operations();
    verbs.context.cmd_fd = -1;
    verbs.context.async_fd = events.fd();
    verbs.context.num_comp_vectors = 1;
    verbs.context.abi_compat = EXTENDED_ABI;
    let context = Context {
        nic,
        device,
        events,
    };
    Ok(context.lend(verbs))
}

/// `ibv_open_device(3)`. ENODEV for a device of another library, EINVAL for invalid faults in the environment,
/// otherwise the sockets' error: EADDRINUSE if another process has the address. The latter two also print a line on
/// stderr.
///
/// # Safety
/// As for libibverbs.
pub unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    let open = |device| {
        let device = Device::of(device).ok_or(libc::ENODEV)?;
        open(device, faults()?).map_err(|error| {
            complain(format_args!("{error}"));
            net::os_error(&error).unwrap_or(libc::EIO)
        })
    };
    pointer_or_errno(open(device))
}

/// `ibv_close_device(3)`.
///
/// # Safety
/// As for libibverbs: everything made in the context was destroyed before.
pub unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: made by `open`; the caller gives it up.
    unsafe { Context::close(context) };
    0
}
