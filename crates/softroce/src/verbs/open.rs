//! The device as `provider`'s engine, and opening it: the function table of its context, its faults and its capture.
//!
//! [`devices`] and [`open_with`] are an interface for Rust programs: they list names and addresses of devices without
//! opening them, since opening takes the address, and open them with the caller's options.

use std::net::IpAddr;
use std::os::fd::RawFd;
use std::os::raw::c_int;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Once};
use std::{env, io};

use provider::{
    AsyncEvent, CqRequest, Description, EXTENDED_ABI, Engine, Limits, Objects, Port, QpRequest,
    Queue, Region, Source, SrqRequest, pointer_or_errno,
};
use rdma_sys::{
    ibv_ah_attr, ibv_context, ibv_device, ibv_event_type, ibv_gid_entry, ibv_mw_type, ibv_qp_type,
    verbs_context,
};

use super::cq::Cq;
use super::device::Device;
use super::errno::complain;
use super::gid::Destination;
use super::post::Srq;
use super::qp::Qp;
use super::{cq, device, dmabuf, domain, errno, gid, post, qp, query};
use crate::net;
use crate::net::Faults;
use crate::transport::{Nic, NicOptions, PdId, PortListener, WindowType, Wire};

/// The variable with deliberate faults, in the syntax of [`Faults`].
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";
/// The most asynchronous events that wait to be taken: as many as QPs fail at once.
const MOST_EVENTS: usize = 1 << 16;

/// The variable with the file for a capture.
const CAPTURE_VARIABLE: &str = "SOFTROCE_PCAP";

/// The variable with the way of packets within a process: `auto`, or `udp` for sockets.
const WIRE_VARIABLE: &str = "SOFTROCE_WIRE";

/// What a device does besides its work.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// A file to capture all packets in; the device's address is added to its name.
    pub capture: Option<PathBuf>,
    /// How packets go to devices of the same process.
    pub wire: Wire,
}

impl OpenOptions {
    /// What the environment asks for.
    ///
    /// # Errors
    /// EINVAL for what it does not know, after a line on stderr.
    pub(crate) fn of_environment() -> Result<OpenOptions, c_int> {
        let text = env::var_os(FAULTS_VARIABLE).unwrap_or_default();
        let faults = text.to_string_lossy().parse().map_err(|error| {
            complain(format_args!("{FAULTS_VARIABLE}: {error}"));
            libc::EINVAL
        })?;
        let capture = env::var_os(CAPTURE_VARIABLE).filter(|path| !path.is_empty());
        let wire = match env::var_os(WIRE_VARIABLE).unwrap_or_default().to_str() {
            Some("" | "auto" | "memory") => Wire::Memory,
            Some("udp") => Wire::Udp,
            _ => {
                complain(format_args!("{WIRE_VARIABLE}: write auto or udp"));
                return Err(libc::EINVAL);
            }
        };
        Ok(OpenOptions { faults, capture: capture.map(PathBuf::from), wire })
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
        wire: options.wire,
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
        let source = Source::Port(gid::PORT.into());
        queue.raise(AsyncEvent { kind, source }, None);
    });
    nic.listen_to_port(&port_listener);
    let engine = Softroce { nic, device, _port_listener: port_listener };
    Ok(provider::open(device.verbs(), engine, events))
}

pub(crate) struct Softroce {
    pub(crate) nic: Arc<Nic>,
    pub(super) device: &'static Device,
    /// Puts the port's events into the context's queue.
    _port_listener: Arc<PortListener>,
}

impl Softroce {
    pub(crate) fn address(&self) -> IpAddr {
        self.nic.address()
    }

    pub(crate) fn guid(&self) -> u64 {
        self.device.guid()
    }
}

/// EIO, and a line on stderr the first time, in a child of the process that opened the device: there the locks are as
/// another thread of the parent may have left them.
pub(super) fn usable(nic: &Nic) -> Result<(), c_int> {
    static SAID: Once = Once::new();
    if nic.is_of_this_process() {
        return Ok(());
    }
    SAID.call_once(|| {
        complain(format_args!(
            "a device that was opened before fork or daemon is the parent's; open it again in the child"
        ));
    });
    Err(libc::EIO)
}

impl Description for Softroce {
    fn limits(&self) -> Limits {
        query::limits(self)
    }

    fn port(&self, number: u32) -> Option<Port> {
        (number == u32::from(gid::PORT)).then(|| query::port(self))
    }

    fn gid(&self, port: u32, index: u32) -> Option<ibv_gid_entry> {
        (port == u32::from(gid::PORT)).then(|| query::gid_entry(self, index)).flatten()
    }

    fn has_service(&self, qp_type: ibv_qp_type::Type) -> Result<(), c_int> {
        qp::kind(qp_type).map(|_| ())
    }
}

impl Engine for Softroce {
    fn description(&self) -> &dyn Description {
        self
    }

    fn usable(&self) -> Result<(), c_int> {
        usable(&self.nic)
    }

    unsafe fn register(&self, region: Region) -> Result<[u32; 2], c_int> {
        // SAFETY: the caller's.
        unsafe { domain::register(&self.nic, region) }.map(|key| [key; 2])
    }

    fn register_descriptor(
        &self,
        descriptor: RawFd,
        offset: u64,
        region: Region,
    ) -> Result<([u32; 2], Box<dyn Send>), c_int> {
        dmabuf::register_descriptor(&self.nic, descriptor, offset, region)
    }

    fn deregister(&self, lkey: u32) -> Result<(), c_int> {
        self.nic.deregister(lkey).map_err(errno::memory_error)
    }

    /// EINVAL for another type than 1 and 2, ENOMEM for too many windows.
    fn allocate_window(&self, pd: u32, mw_type: ibv_mw_type::Type) -> Result<u32, c_int> {
        let window_type = match mw_type {
            ibv_mw_type::IBV_MW_TYPE_1 => WindowType::One,
            ibv_mw_type::IBV_MW_TYPE_2 => WindowType::Two,
            _ => return Err(libc::EINVAL),
        };
        self.nic.allocate_window(PdId(pd), window_type).map_err(errno::memory_error)
    }

    fn free_window(&self, rkey: u32) {
        self.nic.free_window(rkey);
    }
}

impl Objects for Softroce {
    type Cq = Cq;
    type Srq = Srq;
    type Qp = Qp;
    type Ah = Destination;

    fn fill(&self, verbs: &mut verbs_context) {
        verbs.context.abi_compat = EXTENDED_ABI;
        verbs.query_port = Some(provider::verbs::query_port_bytes);
        verbs.query_device_ex = Some(query::query_device_ex);
        verbs.query_rt_values = Some(query::query_rt_values);
        verbs.alloc_td = Some(domain::alloc_td);
        verbs.dealloc_td = Some(domain::dealloc_td);
        verbs.alloc_parent_domain = Some(domain::alloc_parent_domain);
        verbs.create_cq_ex = Some(cq::create_cq_ex);
        verbs.create_qp_ex = Some(qp::create_qp_ex);
        verbs.modify_qp_rate_limit = Some(qp::modify_qp_rate_limit);
        errno::fill_refused(verbs);
        // Behind the inline functions of `verbs.h`.
        let ops = &mut verbs.context.ops;
        ops.poll_cq = Some(cq::poll_cq);
        ops.req_notify_cq = Some(cq::req_notify_cq);
        ops.post_send = Some(post::post_send);
        ops.post_recv = Some(post::post_recv);
        ops.post_srq_recv = Some(post::post_srq_recv);
        ops.alloc_mw = Some(provider::verbs::alloc_mw);
        ops.bind_mw = Some(post::bind_mw);
        ops.dealloc_mw = Some(provider::verbs::dealloc_mw);
    }

    fn create_cq(&self, request: CqRequest) -> Result<Cq, c_int> {
        Ok(Cq::new(self, request))
    }

    fn create_srq(&self, request: SrqRequest) -> Result<Srq, c_int> {
        Ok(Srq::new(&self.nic, request))
    }

    fn create_qp(&self, request: QpRequest<'_, Softroce>) -> Result<Qp, c_int> {
        Qp::new(self, request)
    }

    /// EINVAL for another port or GID index, without a global route, or for a GID that is not of a single host; ETIMEDOUT
    /// if no packet can reach the destination.
    fn create_ah(&self, attr: &ibv_ah_attr) -> Result<Destination, c_int> {
        gid::destination(attr, self.address())
    }
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
    Ok(devices.into_iter().map(Listing::new).collect())
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
    &unsafe { Softroce::from_context(context.as_ptr()) }.nic
}

#[cfg(test)]
mod tests {
    use provider::verbs::{ack_async_event, close_device, get_async_event};
    use rdma_sys::ibv_async_event;

    use super::*;
    use crate::net::now_ns;

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
                Softroce::from_context(context).nic.tell_of_port(now_ns);
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
