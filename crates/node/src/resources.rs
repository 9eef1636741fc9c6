//! What a node keeps from run to run: its verbs library, its ports, its cores and its clock.

use std::sync::{Arc, Mutex, PoisonError};

use machine::{
    host::available_memory,
    processors,
    threads::{self, CoreError, CoreLocks},
};
use metrics::Clock;
use plan::{Devices, FlowDevice};
use protocol::{
    failure::RunFailure,
    node_report::{DeviceKind, MemoryOffer},
};
pub use verbs::{Faults, FaultsError, PortRequest, Route};
use verbs::{Network, Port, VerbsLibrary, embedded_device, select_or_embedded};

use crate::{
    outcome::surroundings_note,
    ports::{Rails, rails_in_turn, threads_of_rails},
    threads::Cores,
};

/// The remark on figures of the embedded device.
const EMBEDDED: &str = "figures are those of rocebench, the protocol and this machine's CPUs, not of a network adapter";

/// A node with its port open.
pub struct NodeResources {
    /// Its own port, or where it has rails all of theirs.
    rails: Rails,
    options: NodeOptions,
    route: Option<Route>,
    /// Ports that flows have asked for besides.
    others: Mutex<Vec<OtherPort>>,
    /// NUMA nodes of the rails.
    numa_nodes: Vec<Option<u32>>,
    cores: Cores,
    clock: Clock,
    /// When its ports were open.
    opened_raw: u64,
}

/// A port that a flow asks for by name.
struct OtherPort {
    device: FlowDevice,
    port: Port,
    opened_raw: u64,
}

impl NodeResources {
    /// Opens the port for a session whose control connection runs along `route`.
    ///
    /// # Errors
    /// No port or no cores as asked for.
    pub fn open(options: NodeOptions, route: Option<Route>) -> Result<NodeResources, RunFailure> {
        let clock = Clock::new();
        let rails = Rails::open(&options, route)?;
        let opened_raw = clock.raw();
        let numa_nodes: Vec<_> = rails.ports.iter().map(numa_node_of).collect();
        let in_turn = rails_in_turn(&numa_nodes);
        let of_workers = in_turn
            .iter()
            .map(|rail| match &options.cores {
                Some(cores) => Ok(cores.clone()),
                None => cores_near(&rails.ports[*rail], numa_nodes[*rail]),
            })
            .collect::<Result<_, CoreError>>()?;
        Ok(NodeResources {
            numa_nodes,
            cores: Cores::of_workers(of_workers, options.core_locks.clone()),
            rails,
            options,
            route,
            others: Mutex::default(),
            clock,
            opened_raw,
        })
    }

    /// The port; where it has rails the first one's.
    pub fn port(&self) -> &Port {
        &self.rails.ports[0]
    }

    /// Its rails, as flows ask for them, with a place for each that cannot be used; none where it has its own port alone.
    pub fn rails(&self) -> Vec<Option<FlowDevice>> {
        let mut ports = self.rails.ports.iter().map(|port| FlowDevice {
            name: port.context.name().to_owned(),
            ib_port: (port.adapter.limits.ports > 1).then_some(port.info.port),
        });
        self.rails
            .are_up
            .iter()
            .filter(|_| self.has_rails())
            .map(|is_up| is_up.then(|| ports.next()).flatten())
            .collect()
    }

    fn has_rails(&self) -> bool {
        self.rails.are_up.len() > 1
    }

    /// Why rails are left out that were asked for.
    pub fn left_out(&self) -> &[String] {
        &self.rails.left_out
    }

    /// The devices that were asked for as rails.
    pub fn requested_rails(&self) -> Option<&Devices> {
        self.options.rails.as_ref()
    }

    /// Which of its rails a port is of; `None` where it has none, or it is of none.
    pub(crate) fn rail_of(&self, port: &Port) -> Option<usize> {
        if !self.has_rails() {
            return None;
        }
        self.rails.ports.iter().position(|rail| {
            Arc::ptr_eq(&rail.context, &port.context) && rail.info.port == port.info.port
        })
    }

    /// The threads that serve each of its rails, of so many.
    pub(crate) fn threads_of_rails(&self, count: usize) -> Vec<Vec<usize>> {
        if self.has_rails() { threads_of_rails(&self.numa_nodes, count) } else { Vec::new() }
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
            return Ok(self.port().clone());
        };
        if let Some(port) = self.rails.ports.iter().find(|port| is_port(port, device)) {
            return Ok(port.clone());
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others.iter().find(|other| other.device == *device) {
            return Ok(known.port.clone());
        }
        let request =
            PortRequest { ib_port: device.ib_port, ..self.options.request(Some(&device.name)) };
        let port = select_or_embedded(self.options.library, &request, self.route)?;
        let opened_raw = self.clock.raw();
        others.push(OtherPort { device: device.clone(), port: port.clone(), opened_raw });
        Ok(port)
    }

    /// Whether a flow asks for the node's own port.
    fn is_own(&self, device: &FlowDevice) -> bool {
        is_port(self.port(), device)
    }

    /// Whose QP queues it uses.
    pub fn device_kind(&self) -> DeviceKind {
        DeviceKind::new(self.port())
    }

    /// The memory available at this end now.
    pub fn memory_offer(&self) -> MemoryOffer {
        // The sums are accurate to a few percent, and the kernel kills a control group that exceeds its limit.
        let left = available_memory().map(|left| (left.bytes - left.bytes / 20, left.by));
        let limit = self.options.memory_limit.map(|limit| (limit, "--memory".to_owned()));
        let least = left.into_iter().chain(limit).min_by_key(|(bytes, _)| *bytes);
        let (bytes, by) = least.map_or((None, String::new()), |(bytes, by)| (Some(bytes), by));
        MemoryOffer { device: self.device_kind(), bytes, by }
    }

    /// The most memory that a run may take here, in bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        self.options.memory_limit
    }

    /// A remark on the device for the user; `None` for a system device without another that could have been chosen, or that
    /// carries less than its link.
    pub fn remark(&self) -> Option<String> {
        let Some(embedded) = &self.port().embedded else {
            let lines = [self.port().choice_line(), surroundings_note(self.port())];
            let known: Vec<String> = lines.into_iter().flatten().collect();
            return Some(known.join("; ")).filter(|text| !text.is_empty() && !self.has_rails());
        };
        let name =
            self.rails.ports.iter().map(|port| port.context.name()).collect::<Vec<_>>().join(", ");
        let mut text = match &embedded.because {
            Some(because) => {
                format!("{because}: taking {name}, the embedded software device; {EMBEDDED}")
            }
            None if self.has_rails() => format!("{name} are embedded software devices: {EMBEDDED}"),
            None => format!("{name} is the embedded software device: {EMBEDDED}"),
        };
        for port in &self.rails.ports {
            let faults = port.embedded.as_ref().and_then(|it| it.faults);
            let place = if self.has_rails() {
                format!("on {}", port.context.name())
            } else {
                "at this end".to_owned()
            };
            if let Some(faults) = faults {
                text += &format!("; on purpose {place}: {faults}");
            }
        }
        Some(text)
    }

    /// NUMA node of the device.
    pub fn numa_node(&self) -> Option<u32> {
        self.numa_nodes.first().copied().flatten()
    }

    /// NUMA node of a port's device; but for rails, the node's own.
    pub(crate) fn numa_node_at(&self, port: &Port) -> Option<u32> {
        let rail = self.rail_of(port).unwrap_or_default();
        self.numa_nodes.get(rail).copied().flatten()
    }

    /// The clock of all its runs.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// When faults of its ports let no packet through: from and until, in nanoseconds after a reading of the clock.
    pub(crate) fn link_down_ns(&self, since_raw: u64) -> Vec<(i64, i64)> {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.rails.ports.iter().map(|port| (port, self.opened_raw));
        let of_flows = others.iter().map(|other| (&other.port, other.opened_raw));
        let mut periods = Vec::new();
        for (port, opened_raw) in own.chain(of_flows) {
            let Some(faults) = port.embedded.as_ref().and_then(|embedded| embedded.faults) else {
                continue;
            };
            let opened_ns = self.clock.ns_between(opened_raw, since_raw) as i64;
            let of_port = [faults.down, faults.transmit.blackhole, faults.receive.blackhole];
            periods.extend(of_port.into_iter().flatten().map(|period| {
                let begins_ns = period.after_ns as i64 - opened_ns;
                (begins_ns, begins_ns.saturating_add_unsigned(period.lasts_ns))
            }));
        }
        periods
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
        (0..workers).map(|index| held.get(index).map(|held| held.core())).collect()
    }
}

fn numa_node_of(port: &Port) -> Option<u32> {
    let root = port.context.root();
    machine::device::read(root, port.context.name(), port.info.port, None).numa_node
}

/// The cores of a port's NUMA node, or all, the fastest kind first; none where no thread may be pinned.
fn cores_near(port: &Port, numa_node: Option<u32>) -> Result<Vec<usize>, CoreError> {
    if !threads::may_pin() {
        return Ok(Vec::new());
    }
    let root = port.context.root();
    let near = numa_node.map(|node| threads::allowed_cores_of_node(root, node));
    let cores = match near {
        Some(Ok(cores)) if !cores.is_empty() => cores,
        _ => threads::allowed_cores()?,
    };
    Ok(processors::fastest_first(root, cores))
}

/// Whether a flow that asks for `device` may have this port.
fn is_port(port: &Port, device: &FlowDevice) -> bool {
    let has_number = device.ib_port.is_none_or(|number| number == port.info.port);
    has_number && port.context.name() == device.name
}

/// Faults of some devices of a node of this process.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedFaults {
    /// The node's number among those of this process.
    pub node: usize,
    /// All of its devices without a name.
    pub device: Option<String>,
    pub faults: Faults,
}

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The verbs library; if it has no device, the embedded device is used.
    pub library: &'static VerbsLibrary,
    /// The requested device, port and GID.
    pub request: PortRequest,
    /// The devices over which its flows go at once, in place of the one of `request`.
    pub rails: Option<Devices>,
    /// Its number among the nodes of this process.
    pub number: usize,
    /// Faults in place of those of `request`; of several that fit a device the last.
    pub placed_faults: Vec<PlacedFaults>,
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
            number: 0,
            placed_faults: Vec::new(),
            cores,
            core_locks: CoreLocks::of_host(),
            memory_limit: None,
        }
    }

    /// The options of a further node in the same process. Faults that are placed at no node stay at the first, as with
    /// another process, unless the nodes share one device: its first opening decides, and any node may be first.
    pub fn of_further_node(&self, number: usize) -> Self {
        let mut other = NodeOptions { number, ..self.clone() };
        if !other.request.device.as_deref().is_some_and(is_shared) {
            other.request.faults = None;
        }
        other
    }

    /// The request for a device of this name, or for any.
    pub(crate) fn request(&self, device: Option<&str>) -> PortRequest {
        let own = self.placed_faults.iter().rfind(|placed| match &placed.device {
            None => placed.node == self.number,
            Some(name) => device == Some(name) && (placed.node == self.number || is_shared(name)),
        });
        PortRequest {
            device: device.map(str::to_owned),
            faults: own.map(|placed| placed.faults).or(self.request.faults),
            ..self.request.clone()
        }
    }
}

/// Whether all openings of a device have one address; each of an embedded one without an address has its own.
pub fn is_shared(name: &str) -> bool {
    let device = embedded_device(name).ok().flatten();
    device.is_none_or(|device| device.address.is_some())
}
