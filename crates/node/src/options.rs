//! What a node is asked to take: its verbs library, devices, cores and memory.

use machine::threads::CoreLocks;
use plan::Devices;
use verbs::{Faults, PortRequest, VerbsLibrary, embedded_device};

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The verbs library; if it has no device, the embedded device is used.
    pub library: &'static VerbsLibrary,
    /// The requested device, port and GID.
    pub request: PortRequest,
    /// The devices over which its flows go at once, in place of the one of `request`.
    pub rails: Option<Devices>,
    /// Faults of a device in place of those of `request`.
    pub device_faults: Vec<(String, Faults)>,
    pub cores: Option<Vec<usize>>,
    /// Where workers on this host record their cores for each other.
    pub core_locks: CoreLocks,
    /// The most memory that a run may take at this node, in bytes; never more than there is.
    pub memory_limit: Option<u64>,
}

impl NodeOptions {
    /// A node that uses rdma-core's libibverbs and has its own cores.
    pub fn system(request: PortRequest, cores: Option<Vec<usize>>) -> Self {
        NodeOptions {
            library: VerbsLibrary::system(),
            request,
            rails: None,
            device_faults: Vec::new(),
            cores,
            core_locks: CoreLocks::of_host(),
            memory_limit: None,
        }
    }

    /// The options of a further node in the same process. Faults stay at the first, as with another process, unless
    /// the nodes share one device: its first opening decides, and any node may be first.
    pub fn of_the_other_end(&self) -> Self {
        let mut other = self.clone();
        if !other.request.device.as_deref().is_some_and(is_shared) {
            other.request.faults = None;
        }
        other.device_faults.retain(|(name, _)| is_shared(name));
        other
    }

    /// The request for a device of this name, or for any.
    pub(crate) fn request(&self, device: Option<&str>) -> PortRequest {
        let own = self.device_faults.iter().find(|(name, _)| device == Some(name.as_str()));
        PortRequest {
            device: device.map(str::to_owned),
            faults: own.map(|(_, faults)| *faults).or(self.request.faults),
            ..self.request.clone()
        }
    }
}

/// Whether all openings of a device have one address; each of an embedded one without an address has its own.
fn is_shared(name: &str) -> bool {
    let device = embedded_device(name).ok().flatten();
    device.is_none_or(|device| device.address.is_some())
}
