//! What an end keeps from run to run: its verbs library, its port, its cores and its clock.

use std::path::Path;
use std::sync::Arc;

use crate::machine::core_locks::CoreLocks;
use crate::machine::cpu::{self, CoreError};
use crate::metrics::clock::Clock;
use crate::metrics::counters::{CounterWatch, Reading};
use crate::plan::Case;
pub use verbs::{Faults, PortRequest, Route};
use verbs::{Port, VerbsLibrary, select_or_embedded};

use crate::protocol::failure::RunFailure;

use crate::node::cores::Cores;
use crate::node::memory_needs::DeviceKind;
use crate::node::needs::effective_workers;

/// The settings of an end.
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
    /// The most memory that a run may take at this end, in bytes; never more than there is.
    pub memory_limit: Option<u64>,
}

impl NodeOptions {
    /// An end that uses rdma-core's libibverbs and has its own cores.
    pub fn system(request: PortRequest, cores: Option<Vec<usize>>) -> Self {
        NodeOptions {
            library: VerbsLibrary::system(),
            request,
            cores,
            core_locks: CoreLocks::of_host(),
            memory_limit: None,
        }
    }

    /// The options of the other end in the same process. Faults stay at this end, as with another process, unless
    /// both ends share one device: its first opening decides, and either end may be first.
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
const EMBEDDED: &str = "figures show the harness, the protocol and this machine's CPUs, and nothing about a network adapter";

/// An end with its port open.
pub struct NodeResources {
    port: Port,
    numa_node: Option<u32>,
    driver: Option<String>,
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
        let kernel = crate::machine::device::read(port.context.name(), port.info.port, None);
        let numa_node = kernel.numa_node;
        let cores = match (options.cores, numa_node) {
            (Some(cores), _) => cores,
            (None, Some(node)) => match cpu::allowed_cores_of_node(node) {
                Ok(cores) if !cores.is_empty() => cores,
                _ => cpu::allowed_cores()?,
            },
            (None, None) => cpu::allowed_cores()?,
        };
        Ok(NodeResources {
            port,
            numa_node,
            driver: kernel.driver,
            cores: Cores::new(cores, options.core_locks),
            memory_limit: options.memory_limit,
            clock: Clock::new(),
        })
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// Whose QP queues it uses.
    pub fn device_kind(&self) -> DeviceKind {
        match self.port.embedded {
            Some(_) => DeviceKind::Embedded,
            None => DeviceKind::System,
        }
    }

    /// The most memory that a run may take here, in bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        self.memory_limit
    }

    /// A remark on the device for the user; `None` for a system device.
    pub fn remark(&self) -> Option<String> {
        let embedded = self.port.embedded.as_ref()?;
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

    /// Watches the port's counters from now on; `None` if it has none.
    pub fn watch_counters(&self) -> Option<CounterWatch> {
        let (context, port) = (Arc::clone(&self.port.context), self.port.info.port);
        let driver = self.driver.clone();
        CounterWatch::start(move || match context.counters() {
            Some(own) => Some(Reading::of_embedded(own)),
            None => Reading::of_kernel(Path::new("/sys"), driver.as_deref(), context.name(), port),
        })
    }

    /// The requested cores, or else those of the device's NUMA node.
    pub fn allowed_cores(&self) -> &[usize] {
        self.cores.allowed()
    }

    /// The cores reserved for this end's workers.
    pub(crate) fn cores(&self) -> &Cores {
        &self.cores
    }

    /// The core of each worker of a case, reserved from now on against all other workers on this host; `None` without
    /// cores to choose from.
    pub fn cores_for(&self, case: &Case) -> Vec<Option<usize>> {
        let workers = effective_workers(case);
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
