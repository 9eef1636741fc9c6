//! Opening a device: the function table of its context, its faults and its capture; taking and acknowledging its
//! asynchronous events.
//!
//! [`devices`] and [`open_with`] are an interface for Rust programs: they list names and addresses of devices without
//! opening them, since opening takes the address, and open them with the caller's options.

use std::net::IpAddr;
use std::os::raw::{c_int, c_void};
use std::path::PathBuf;
use std::ptr::{NonNull, without_provenance_mut};
use std::sync::{Arc, Once};
use std::{env, io};

use rdma_sys::{ibv_async_event, ibv_context, ibv_device, ibv_event_type, verbs_context};

use super::context::{AsyncEvent, Context, Queue, Source};
use super::cq::Cq;
use super::device::Device;
use super::errno::{code, complain, minus_one_or_zero, pointer_or_errno, zero_or_error};
use super::object::{Behind, Users};
use super::post::Srq;
use super::qp::Qp;
use super::{cq, device, domain, errno, gid, post, qp, qp_create, query};
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
        queue.raise(AsyncEvent { kind, source }, None);
    });
    nic.listen_to_port(&port_listener);
    // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of which zero is a value
    // (that of PTHREAD_MUTEX_INITIALIZER).
    let mut verbs: verbs_context = unsafe { std::mem::zeroed() };
    verbs.sz = size_of::<verbs_context>();
    verbs.query_port = Some(query::query_port_bytes);
    verbs.query_device_ex = Some(query::query_device_ex);
    verbs.query_rt_values = Some(query::query_rt_values);
    verbs.alloc_td = Some(domain::alloc_td);
    verbs.dealloc_td = Some(domain::dealloc_td);
    verbs.alloc_parent_domain = Some(domain::alloc_parent_domain);
    verbs.create_cq_ex = Some(cq::create_cq_ex);
    verbs.create_qp_ex = Some(qp_create::create_qp_ex);
    verbs.modify_qp_rate_limit = Some(qp::modify_qp_rate_limit);
    errno::fill_refused(&mut verbs);
    verbs.context.device = device.verbs();
    // Behind the inline functions of `verbs.h`.
    verbs.context.ops.poll_cq = Some(cq::poll_cq);
    verbs.context.ops.req_notify_cq = Some(cq::req_notify_cq);
    verbs.context.ops.post_send = Some(post::post_send);
    verbs.context.ops.post_recv = Some(post::post_recv);
    verbs.context.ops.post_srq_recv = Some(post::post_srq_recv);
    verbs.context.cmd_fd = -1;
    verbs.context.async_fd = events.fd();
    verbs.context.num_comp_vectors = query::completion_vectors();
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
    let device = Device::from_raw(device).ok_or(libc::ENODEV)?;
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

/// A device of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The device's name in lists: `soft0` and so on.
    pub name: String,
    /// Its address once opened; `None` takes a free one of 127.0.0.0/8.
    pub address: Option<IpAddr>,
}

/// The devices, in the order of [`super::get_device_list`].
///
/// # Errors
/// The system does not report its addresses.
pub fn devices() -> io::Result<Vec<Listing>> {
    let devices = device::devices().map_err(io::Error::from_raw_os_error)?;
    Ok(devices.iter().map(Listing::new).collect())
}

/// The device of this name, also one that is not listed: up to `soft15` those after the list are on loopback.
///
/// # Errors
/// The system does not report its addresses.
pub fn named(name: &str) -> io::Result<Option<Listing>> {
    let device = device::named(name).map_err(io::Error::from_raw_os_error)?;
    Ok(device.map(Listing::new))
}

impl Listing {
    fn new(device: &Device) -> Listing {
        Listing { name: device.name(), address: device.place.address }
    }
}

/// [`super::open_device`] by name with these options, ignoring those of the environment. One on loopback is at an address of
/// this opening's own, so that one process can have both ends. Close it with [`super::close_device`].
///
/// # Errors
/// ENODEV for a name that no device has; otherwise the sockets' error, as of [`crate::net::open`], or that of the
/// capture's file.
pub fn open_with(name: &str, options: OpenOptions) -> io::Result<NonNull<ibv_context>> {
    let found = device::named(name).and_then(|device| device.ok_or(libc::ENODEV));
    let device = found.map_err(io::Error::from_raw_os_error)?;
    let open = open(device, device.place.address, false, options)?;
    NonNull::new(open).ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// The device behind a context: its counters, its recorder and the thread of its own.
///
/// # Safety
/// `context` came from [`open_with`] or [`super::open_device`] and is not closed while the device is used.
pub unsafe fn nic<'a>(context: NonNull<ibv_context>) -> &'a Nic {
    // SAFETY: the caller's.
    &unsafe { Context::from_raw(context.as_ptr()) }.nic
}

/// `ibv_get_async_event(3)`: blocks, or fails with EAGAIN if `async_fd` is non-blocking.
pub unsafe extern "C" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    let (own, event) = unsafe { (Context::own(context), &mut *event) };
    minus_one_or_zero(own.and_then(|opened| {
        let occurrence = opened.events.next().map_err(|error| code(&error))?;
        event.event_type = occurrence.kind;
        match occurrence.source {
            Source::Cq(cq) => event.element.cq = cq,
            Source::Qp(qp) => event.element.qp = qp,
            Source::Srq(srq) => event.element.srq = srq,
            Source::Port => event.element.port_num = gid::PORT.into(),
        }
        Ok(())
    }))
}

/// `ibv_ack_async_event(3)`.
///
/// # Safety
/// As for libibverbs: the event came from [`get_async_event`] and was not acknowledged before.
pub unsafe extern "C" fn ack_async_event(taken: *mut ibv_async_event) {
    use ibv_event_type as Type;
    // SAFETY: an event that was taken; its object is not destroyed before this.
    unsafe {
        let event = &*taken;
        match event.event_type {
            Type::IBV_EVENT_CQ_ERR => Cq::from_raw(event.element.cq).async_acks.acknowledge(1),
            Type::IBV_EVENT_SRQ_ERR | Type::IBV_EVENT_SRQ_LIMIT_REACHED => {
                Srq::from_raw(event.element.srq).acks.acknowledge(1);
            }
            Type::IBV_EVENT_QP_FATAL
            | Type::IBV_EVENT_QP_REQ_ERR
            | Type::IBV_EVENT_QP_ACCESS_ERR
            | Type::IBV_EVENT_COMM_EST
            | Type::IBV_EVENT_SQ_DRAINED
            | Type::IBV_EVENT_QP_LAST_WQE_REACHED => {
                Qp::from_raw(event.element.qp).acks.acknowledge(1);
            }
            // Those of the port need none; this device raises no others.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::now_ns;
    use crate::verbs::{OpenOptions, close_device, open_with};

    /// At made-up instants: of an outage during which no thread had a core, nobody is told.
    #[test]
    fn a_port_that_goes_down_and_comes_up_tells() {
        let options =
            OpenOptions { faults: "down=1000s+1000s".parse().unwrap(), ..OpenOptions::default() };
        let context = open_with("soft0", options).unwrap().as_ptr();
        for (after_s, kind) in [
            (1500, ibv_event_type::IBV_EVENT_PORT_ERR),
            (2500, ibv_event_type::IBV_EVENT_PORT_ACTIVE),
        ] {
            // SAFETY: an open context, and an event of plain data.
            unsafe {
                let now_ns = now_ns() + after_s * 1_000_000_000;
                Context::own(context).unwrap().nic.tell_of_port(now_ns);
                let mut event: ibv_async_event = std::mem::zeroed();
                assert_eq!(get_async_event(context, &raw mut event), 0);
                assert_eq!((event.event_type, event.element.port_num), (kind, 1));
                ack_async_event(&raw mut event);
            }
        }
        // SAFETY: an open context, not used again.
        assert_eq!(unsafe { close_device(context) }, 0);
    }
}
