//! What a device is and what it can do, asked once when it is opened. Whoever chooses a port, refuses a case or tells of a
//! device reads this and asks the driver nothing.

use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rdma_sys::{ibv_node_type, ibv_transport_type};
use serde::{Deserialize, Serialize};

use crate::{
    CompletionQueue, Context, CqCalls, DeviceLimits, GidEntry, LinkLayer, Operation, PortInfo,
    ProtectionDomain, QpCapacity, QpParts, QueuePair, Service, Services, StampClock, ThreadDomain,
    VerbsError, VerbsLibrary, kernel,
};

/// What an adapter's packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// InfiniBand's, over its own links or over Ethernet (RoCE).
    Infiniband,
    Iwarp,
    /// Scalable reliable datagrams, Amazon's EFA.
    Srd,
    Unknown,
}

/// `vendor_id` of Amazon's adapters: their PCI vendor number.
const AMAZON: u32 = 0x1d0f;

impl Transport {
    fn from_limits(context: &Context, limits: &DeviceLimits) -> Transport {
        match context.kind() {
            (_, ibv_transport_type::IBV_TRANSPORT_IB) => Transport::Infiniband,
            (_, ibv_transport_type::IBV_TRANSPORT_IWARP) => Transport::Iwarp,
            (ibv_node_type::IBV_NODE_UNSPECIFIED, _) if limits.vendor_id == AMAZON => {
                Transport::Srd
            }
            _ => Transport::Unknown,
        }
    }

    /// Its name; `None` for InfiniBand's, which a port's link layer tells of.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Transport::Infiniband => None,
            Transport::Iwarp => Some("iWARP"),
            Transport::Srd => Some("SRD (EFA)"),
            Transport::Unknown => Some("an unknown transport"),
        }
    }
}

/// An open device with all that it says of itself.
pub struct Adapter {
    pub context: Arc<Context>,
    pub transport: Transport,
    pub limits: DeviceLimits,
    /// Its ports; those that it did not tell of are [`Adapter::silent`].
    pub ports: Vec<AdapterPort>,
    /// Why it did not tell of the others.
    pub silent: Vec<VerbsError>,
    extensions: OnceLock<Extensions>,
    services: OnceLock<Vec<(Service, VerbsError)>>,
}

/// A port of an adapter.
#[derive(Clone, Debug)]
pub struct AdapterPort {
    pub info: PortInfo,
    /// The entries of its GID table that are not empty.
    pub gids: Vec<GidEntry>,
}

/// The services of which a device may have QPs.
const SERVICES: [Service; 3] =
    [Service::ReliableConnection, Service::UnreliableConnection, Service::Datagram { qkey: 0 }];

impl Adapter {
    pub(super) fn probe(context: Arc<Context>) -> Result<Adapter, VerbsError> {
        let limits = context.limits()?;
        let transport = Transport::from_limits(&context, &limits);
        let mut ports = Vec::new();
        let mut silent = Vec::new();
        for number in 1..=limits.ports {
            let port = context.port(number).and_then(|info| {
                let gids = match transport {
                    // Its only entry is the interface's MAC address.
                    Transport::Iwarp => Vec::new(),
                    _ => context.gid_table(&info)?,
                };
                Ok(AdapterPort { info, gids })
            });
            match port {
                Ok(port) => ports.push(port),
                Err(error) => silent.push(error),
            }
        }
        Ok(Adapter {
            transport,
            context,
            limits,
            ports,
            silent,
            extensions: OnceLock::new(),
            services: OnceLock::new(),
        })
    }

    pub fn name(&self) -> &str {
        self.context.name()
    }

    /// The extended verbs that it has, found when they are first asked for.
    pub fn extensions(&self) -> Extensions {
        *self.extensions.get_or_init(|| Extensions::probe(&self.context))
    }

    /// The GIDs of a port whose network interface is in this network namespace. The others are in the table as well, and a QP
    /// cannot use them. The index of an interface counts in its own namespace, so its name must agree too. All where the kernel does
    /// not tell.
    pub fn gids_of_this_namespace(&self, port: &AdapterPort) -> Vec<GidEntry> {
        let root = self.context.root();
        let folder = kernel::port_folder(root, self.name(), port.info.port);
        port.gids
            .iter()
            .filter(|entry| match (entry.interface, kernel::netdev(&folder, entry.index)) {
                (Some(index), Some(netdev)) => {
                    kernel::interface_index(root, &netdev) == Some(index.get())
                }
                _ => true,
            })
            .copied()
            .collect()
    }

    /// The services of which it makes no QP, with what it answered. No query tells: a QP of each is made and destroyed, when this
    /// is first asked for.
    pub fn refused_services(&self) -> &[(Service, VerbsError)] {
        self.services.get_or_init(|| {
            let (Ok(pd), Ok(cq)) =
                (ProtectionDomain::new(&self.context), CompletionQueue::new(&self.context, 1))
            else {
                return Vec::new();
            };
            let (parts, least) = (QpParts::default(), QpCapacity::LEAST);
            SERVICES
                .iter()
                .filter_map(|service| {
                    let made = QueuePair::with_parts(*service, &pd, [&cq, &cq], parts, least);
                    let error = made.err().filter(says_that_it_has_none)?;
                    Some((*service, error))
                })
                .collect()
        })
    }
}

/// What a device and one of its ports can do, as a node tells others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortLimits {
    /// The device's name, such as `mlx5_0`.
    pub name: String,
    pub device: DeviceLimits,
    pub extensions: Extensions,
    /// Bytes of one message; 0 where the port does not tell.
    pub message_bytes: u32,
    /// Bytes of payload in one packet, the port's active MTU; 0 where it does not tell.
    pub packet_bytes: u32,
    /// The services of which the device makes no QP.
    pub lacks_services: Services,
    /// Whether its driver has a call for the UDP source port of a QP (`--udp-sport`).
    pub takes_udp_ports: bool,
}

impl PortLimits {
    pub fn new(adapter: &Adapter, port: &PortInfo) -> PortLimits {
        let mut lacks_services = Services::default();
        for (service, _) in adapter.refused_services() {
            match service {
                Service::ReliableConnection => lacks_services.rc = true,
                Service::UnreliableConnection => lacks_services.uc = true,
                Service::Datagram { .. } => lacks_services.ud = true,
            }
        }
        PortLimits {
            name: adapter.name().to_owned(),
            device: adapter.limits.clone(),
            extensions: adapter.extensions(),
            message_bytes: port.max_message_bytes,
            packet_bytes: port.active_mtu_bytes,
            lacks_services,
            takes_udp_ports: port.link_layer == LinkLayer::Ethernet
                && adapter.context.driver().is_some_and(|driver| driver.takes_udp_ports),
        }
    }

    /// The error of a case that needs what the device does not have.
    pub fn lacks(&self, what: &'static str, instead: impl Into<Cow<'static, str>>) -> VerbsError {
        VerbsError::DeviceLacks { device: self.name.clone(), what, instead: instead.into() }
    }

    /// Checks an amount that a case needs; `flags` are those that change it.
    ///
    /// # Errors
    /// It is over the limit.
    pub fn allow(
        &self,
        what: &'static str,
        limit: u64,
        needed: u64,
        flags: &'static str,
    ) -> Result<(), VerbsError> {
        if limit == 0 || needed <= limit {
            return Ok(());
        }
        Err(VerbsError::DeviceLimit { device: self.name.clone(), what, limit, needed, flags })
    }
}

/// Whether a failure to make a QP tells of its service, rather than of a limit that was reached.
fn says_that_it_has_none(error: &VerbsError) -> bool {
    let VerbsError::Call { source, .. } = error else {
        return false;
    };
    let codes = [libc::EINVAL, libc::EOPNOTSUPP, libc::ENOSYS];
    source.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// A device that was not opened, or did not tell of itself.
#[derive(Debug)]
pub struct Refused {
    pub name: String,
    pub error: VerbsError,
}

/// The devices of a library.
#[derive(Default)]
pub struct Adapters {
    pub names: Vec<String>,
    /// Those that could be opened, in the library's order.
    pub opened: Vec<Arc<Adapter>>,
    pub refused: Vec<Refused>,
}

impl Adapters {
    /// A device that is open already, alone.
    pub(super) fn alone(context: Arc<Context>) -> Result<Adapters, VerbsError> {
        Ok(Adapters {
            names: vec![context.name().to_owned()],
            opened: vec![Arc::new(Adapter::probe(context)?)],
            refused: Vec::new(),
        })
    }

    /// Opens all devices of a library, or the one of this name alone.
    ///
    /// # Errors
    /// [`VerbsError::NoDevice`] when there is none, or the failed list.
    pub fn open(
        library: &'static VerbsLibrary,
        only: Option<&str>,
    ) -> Result<Adapters, VerbsError> {
        let mut count = 0;
        // SAFETY: `count` is writable for the call.
        let list = unsafe { (library.get_device_list)(&mut count) };
        if list.is_null() {
            let error = VerbsError::last(Operation::GetDeviceList, library.name);
            // ENOSYS means a kernel without RDMA, which has no device.
            return Err(match &error {
                VerbsError::Call { source, .. }
                    if matches!(source.raw_os_error(), Some(libc::ENOSYS | libc::ENOENT | 0)) =>
                {
                    VerbsError::NoDevice
                }
                _ => error,
            });
        }
        let mut adapters = Adapters::default();
        for index in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the list has `count` entries, each a valid device until it is freed.
            let (device, name) = unsafe {
                let device = *list.add(index);
                let name = CStr::from_ptr((library.get_device_name)(device));
                (device, name.to_string_lossy().into_owned())
            };
            adapters.names.push(name.clone());
            if only.is_some_and(|only| only != name) {
                continue;
            }
            // SAFETY: `device` is in the list, which is not freed yet.
            let opened = match NonNull::new(unsafe { (library.open_device)(device) }) {
                Some(raw) => Adapter::probe(Context::from_opened(library, raw, name.clone())),
                None => Err(VerbsError::last(Operation::OpenDevice, &*name)),
            };
            match opened {
                Ok(adapter) => adapters.opened.push(Arc::new(adapter)),
                Err(error) => adapters.refused.push(Refused { name, error }),
            }
        }
        // SAFETY: the list came from this library; open contexts outlive it (ibv_free_device_list(3)).
        unsafe { (library.free_device_list)(list) };
        if adapters.names.is_empty() { Err(VerbsError::NoDevice) } else { Ok(adapters) }
    }
}

// What a device can do beyond the calls that every device has. No query tells most of it, so small objects are made and
// destroyed again.

/// The extended verbs that a device has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extensions {
    /// QPs of the RC service that are posted to by `ibv_wr_post(3)`.
    pub extended_post: bool,
    /// Such QPs send messages of several elements whole. Soft-RoCE's library takes the first element's length for each
    /// (up to rdma-core 63; "rxe: Fix dma.length computation in wr_set_sge_list").
    pub extended_lists: bool,
    /// CQs that are polled by `ibv_start_poll(3)`.
    pub extended_poll: bool,
    /// CQs of one thread, and thread domains for QPs.
    pub thread_domains: bool,
    /// Stamps of completions, and a clock that can be read.
    pub stamps: bool,
}

impl Extensions {
    pub(super) fn probe(context: &Arc<Context>) -> Extensions {
        if !context.is_extended() {
            return Extensions::default();
        }
        let (Ok(pd), Ok(plain)) =
            (ProtectionDomain::new(context), CompletionQueue::new(context, 1))
        else {
            return Extensions::default();
        };
        let has_cq = |calls| CompletionQueue::with_calls(context, 1, calls, None).is_ok();
        let has_qp = |parts: QpParts<'_>| {
            let (service, least) = (Service::ReliableConnection, QpCapacity::LEAST);
            QueuePair::with_parts(service, &pd, [&plain, &plain], parts, least).is_ok()
        };
        let domain = ThreadDomain::new(&pd).ok();
        let clock = StampClock::new(context);
        let extended_post = has_qp(QpParts { extended_post: true, ..QpParts::default() });
        Extensions {
            extended_post,
            extended_lists: extended_post && !context.is_soft_roce(),
            extended_poll: has_cq(CqCalls { extended: true, ..CqCalls::USUAL }),
            thread_domains: has_cq(CqCalls { single_threaded: true, ..CqCalls::USUAL })
                && domain.as_ref().is_some_and(|domain| {
                    has_qp(QpParts { domain: Some(domain), ..QpParts::default() })
                }),
            stamps: clock.is_some_and(|clock| clock.read().is_ok())
                && has_cq(CqCalls { extended: true, stamps: true, single_threaded: false }),
        }
    }
}
