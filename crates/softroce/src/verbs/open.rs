//! Opening a device: the function table of its context, its faults and its capture.

use std::net::IpAddr;
use std::os::raw::{c_int, c_void};
use std::path::PathBuf;
use std::ptr::without_provenance_mut;
use std::sync::{Arc, Once};
use std::{env, io};

use rdma_sys::{ibv_context, ibv_device, ibv_event_type, verbs_context};

use super::context::{Context, Occurrence, Queue, Source};
use super::device::Device;
use super::errno::{complain, pointer_or_errno, zero_or_error};
use super::object::Users;
use super::{cq, domain, errno, limits, port, post, qp_create, rate_limit, srq};
use crate::net;
use crate::net::Faults;
use crate::transport::{Nic, NicOptions, PortListener};

/// The variable with deliberate faults, in the syntax of [`Faults`].
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// The most asynchronous events that wait to be taken: as many as QPs fail at once.
const MOST_EVENTS: usize = 1 << 16;
/// `__VERBS_ABI_IS_EXTENDED`: the `ibv_context` is part of a `verbs_context`.
const EXTENDED_ABI: *mut c_void = without_provenance_mut(usize::MAX);

/// The variable with the file for a capture.
const CAPTURE_VARIABLE: &str = "SOFTROCE_PCAP";

/// What a device does besides its work.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// A file to capture all packets in; the device's address is added to its name.
    pub capture: Option<PathBuf>,
}

impl OpenOptions {
    /// What the environment asks for.
    ///
    /// # Errors
    /// EINVAL for faults that are none, after a line on stderr.
    pub(crate) fn of_environment() -> Result<OpenOptions, c_int> {
        let text = env::var_os(FAULTS_VARIABLE).unwrap_or_default();
        let faults = text.to_string_lossy().parse().map_err(|error| {
            complain(format_args!("{FAULTS_VARIABLE}: {error}"));
            libc::EINVAL
        })?;
        let capture = env::var_os(CAPTURE_VARIABLE).filter(|path| !path.is_empty());
        Ok(OpenOptions { faults, capture: capture.map(PathBuf::from) })
    }
}

/// Says once that asynchronous events are lost.
fn events_are_lost() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        complain(format_args!(
            "{MOST_EVENTS} asynchronous events wait and the oldest are dropped; take them (ibv_get_async_event)"
        ));
    });
}

/// Opens `device` at this address of those that it may have. If it `joins` what this process has open there, the options
/// of the first opening stay, and without an address it is at that which it has in this process; otherwise one on
/// loopback is at an address of this opening's own.
///
/// # Errors
/// The sockets' error, as a [`net::OpenError`] inside, or that of the event file or the capture's.
pub(crate) fn open(
    device: &'static Device,
    address: Option<IpAddr>,
    joins: bool,
    options: OpenOptions,
) -> io::Result<*mut ibv_context> {
    let nic = Nic::open(&NicOptions {
        address,
        joins,
        faults: options.faults,
        capture: options.capture,
        ..NicOptions::default()
    })?;
    let events = Arc::new(Queue::bounded(MOST_EVENTS, events_are_lost)?);
    let queue = Arc::clone(&events);
    let port_listener: Arc<PortListener> = Arc::new(move |is_up| {
        let kind = if is_up {
            ibv_event_type::IBV_EVENT_PORT_ACTIVE
        } else {
            ibv_event_type::IBV_EVENT_PORT_ERR
        };
        let source = Source::Port;
        queue.raise(Occurrence { kind, source }, None);
    });
    nic.listen_to_port(&port_listener);
    // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of which zero is a value
    // (that of PTHREAD_MUTEX_INITIALIZER).
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    verbs.query_port = Some(port::query_port_bytes);
    verbs.query_device_ex = Some(limits::query_device_ex);
    verbs.query_rt_values = Some(limits::query_rt_values);
    verbs.alloc_td = Some(domain::alloc_td);
    verbs.dealloc_td = Some(domain::dealloc_td);
    verbs.alloc_parent_domain = Some(domain::alloc_parent_domain);
    verbs.create_cq_ex = Some(cq::create_cq_ex);
    verbs.create_qp_ex = Some(qp_create::create_qp_ex);
    verbs.modify_qp_rate_limit = Some(rate_limit::modify_qp_rate_limit);
    errno::fill_refused(&mut verbs);
    verbs.context.device = device.verbs();
    // Behind the inline functions of `verbs.h`.
    verbs.context.ops.poll_cq = Some(cq::poll_cq);
    verbs.context.ops.req_notify_cq = Some(cq::req_notify_cq);
    verbs.context.ops.post_send = Some(post::post_send);
    verbs.context.ops.post_recv = Some(post::post_recv);
    verbs.context.ops.post_srq_recv = Some(srq::post_srq_recv);
    verbs.context.cmd_fd = -1;
    verbs.context.async_fd = events.fd();
    verbs.context.num_comp_vectors = limits::completion_vectors();
    verbs.context.abi_compat = EXTENDED_ABI;
    let context =
        Context { nic, device, events, _port_listener: port_listener, users: Users::default() };
    Ok(context.lend(verbs))
}

/// `ibv_open_device(3)`. ENODEV for a device of another library, EINVAL for invalid faults in the environment or an address
/// there that the device cannot have, otherwise the sockets' error, EADDRINUSE if others have the address who do not share it, or that of the capture's file.
/// All but the first also print a line on stderr.
pub unsafe extern "C" fn open_device(device: *mut ibv_device) -> *mut ibv_context {
    pointer_or_errno(open_listed(device))
}

fn open_listed(device: *mut ibv_device) -> Result<*mut ibv_context, c_int> {
    let device = Device::of(device).ok_or(libc::ENODEV)?;
    let address = device.address_now()?;
    open(device, address, true, OpenOptions::of_environment()?).map_err(|error| {
        complain(format_args!("{error}"));
        net::os_error(&error).unwrap_or(libc::EIO)
    })
}

/// `ibv_close_device(3)`.
///
/// # Safety
/// As for libibverbs: everything made in the context was destroyed before.
pub unsafe extern "C" fn close_device(context: *mut ibv_context) -> c_int {
    // SAFETY: made by `open`; the caller gives it up.
    zero_or_error(unsafe { Context::own(context).map(|_| Context::close(context)) })
}
