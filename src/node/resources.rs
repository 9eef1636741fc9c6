//! What a node keeps from run to run: its verbs library, its ports, its cores and its clock.

use std::sync::{Mutex, PoisonError};

use crate::plan::flow::FlowDevice;
use machine::core_locks::CoreLocks;
use machine::cpu::{self, CoreError};
use metrics::clock::Clock;
pub use verbs::{Faults, PortRequest, Route};
use verbs::{Network, Port, VerbsLibrary, select_or_embedded};

use crate::protocol::failure::RunFailure;

use crate::node::cores::Cores;
use crate::protocol::memory_offer::DeviceKind;

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The verbs library; if it has no device, the embedded device is used.
    pub library: &'static VerbsLibrary,
    /// The requested device, port and GID.
    pub request: PortRequest,
    /// The requested cores.
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
            cores,
            core_locks: CoreLocks::of_host(),
            memory_limit: None,
        }
    }

    /// The options of a further node in the same process. Faults stay at the first, as with another process, unless
    /// the nodes share one device: its first opening decides, and any node may be first.
    pub(crate) fn of_the_other_end(&self) -> Self {
        let mut other = self.clone();
        if other
            .request
            .device
            .as_deref()
            .is_none_or(|name| name == FREE_ADDRESSES)
        {
            other.request.faults = None;
        }
        other
    }
}

/// The embedded device that takes a new address at each opening.
const FREE_ADDRESSES: &str = "soft0";

/// The remark on figures of the embedded device.
const EMBEDDED: &str = "figures are those of rocebench, the protocol and this machine's CPUs, not of a network adapter";

/// A node with its port open.
pub struct NodeResources {
    port: Port,
    library: &'static VerbsLibrary,
    request: PortRequest,
    route: Option<Route>,
    /// Ports that flows have asked for besides.
    others: Mutex<Vec<(FlowDevice, Port)>>,
    numa_node: Option<u32>,
    cores: Cores,
    memory_limit: Option<u64>,
    clock: Clock,
}

impl NodeResources {
    /// Opens the port for a session whose control connection runs along `route`.
    ///
    /// # Errors
    /// No port or no cores as asked for.
    pub fn open(options: NodeOptions, route: Option<Route>) -> Result<NodeResources, RunFailure> {
        let port = select_or_embedded(options.library, &options.request, route)?;
        let root = port.context.root();
        let kernel = machine::device::read(root, port.context.name(), port.info.port, None);
        let numa_node = kernel.numa_node;
        let cores = match (options.cores, numa_node) {
            (Some(cores), _) => cores,
            (None, Some(node)) => match cpu::allowed_cores_of_node(root, node) {
                Ok(cores) if !cores.is_empty() => cores,
                _ => cpu::allowed_cores()?,
            },
            (None, None) => cpu::allowed_cores()?,
        };
        Ok(NodeResources {
            port,
            library: options.library,
            request: options.request,
            route,
            others: Mutex::default(),
            numa_node,
            cores: Cores::new(cores, options.core_locks),
            memory_limit: options.memory_limit,
            clock: Clock::new(),
        })
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// The network in which the nodes have agreed to take their ports.
    pub fn network(&self) -> Option<Network> {
        self.route?.network
    }

    /// The port that an end of a flow asks for: the node's own without a wish.
    ///
    /// # Errors
    /// There is no such port.
    pub fn port_of(&self, device: Option<&FlowDevice>) -> Result<Port, RunFailure> {
        let Some(device) = device.filter(|device| !self.is_own(device)) else {
            return Ok(self.port.clone());
        };
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, port)) = others.iter().find(|(known, _)| known == device) {
            return Ok(port.clone());
        }
        let request = PortRequest {
            device: Some(device.name.clone()),
            ib_port: device.ib_port,
            ..self.request.clone()
        };
        let port = select_or_embedded(self.library, &request, self.route)?;
        others.push((device.clone(), port.clone()));
        Ok(port)
    }

    /// Whether a flow asks for the node's own port.
    fn is_own(&self, device: &FlowDevice) -> bool {
        let is_port = device
            .ib_port
            .is_none_or(|port| port == self.port.info.port);
        is_port && self.port.context.name() == device.name
    }

    /// Whose QP queues it uses.
    pub fn device_kind(&self) -> DeviceKind {
        DeviceKind::of(&self.port)
    }

    /// The most memory that a run may take here, in bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// A remark on the device for the user; `None` for a system device without another that could have been chosen.
    pub fn remark(&self) -> Option<String> {
        let Some(embedded) = &self.port.embedded else {
            return self.port.choice_line();
        };
        let name = self.port.context.name();
        let mut text = match &embedded.because {
            Some(because) => {
                format!("{because}: taking {name}, the embedded software device; {EMBEDDED}")
            }
            None => format!("{name} is the embedded software device: {EMBEDDED}"),
        };
        if let Some(faults) = embedded.faults {
            text += &format!("; on purpose at this end: {faults}");
        }
        Some(text)
    }

    /// NUMA node of the device.
    pub fn numa_node(&self) -> Option<u32> {
        self.numa_node
    }

    /// The clock of all its runs.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The requested cores, or else those of the device's NUMA node.
    pub fn allowed_cores(&self) -> &[usize] {
        self.cores.allowed()
    }

    /// The cores reserved for this end's workers.
    pub(crate) fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The core of each of so many workers, reserved from now on against all other workers on this host; `None` without
    /// cores to choose from.
    pub fn cores_for(&self, workers: usize) -> Vec<Option<usize>> {
        let held = self.cores.hold(workers);
        (0..workers)
            .map(|index| held.get(index).map(|held| held.core()))
            .collect()
    }
}

impl From<CoreError> for RunFailure {
    fn from(error: CoreError) -> Self {
        RunFailure {
            bad_input: true,
            ..RunFailure::new(error.to_string(), None)
        }
    }
}
