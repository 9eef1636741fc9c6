//! What an end keeps from run to run: its verbs library, which port it wants, its cores and its clock.

use std::net::IpAddr;

use crate::metrics::clock::Clock;
use crate::metrics::cpu::{self, CoreError};
use crate::plan::Case;
pub use crate::verbs::PortRequest;
use crate::verbs::{Port, VerbsError, VerbsLibrary, select};

use super::rig::effective_workers;

/// How an end is set up.
#[derive(Clone, Debug)]
pub struct StationOptions {
    /// The verbs library.
    pub library: &'static VerbsLibrary,
    /// Device, port and GID that were asked for.
    pub request: PortRequest,
    /// Cores that were asked for.
    pub cores: Option<Vec<usize>>,
    /// Both ends are in this process, and this is the second: its workers take the cores after the first's.
    pub after_the_other: bool,
}

impl StationOptions {
    /// An end on rdma-core's libibverbs, with cores of its own.
    pub fn system(request: PortRequest, cores: Option<Vec<usize>>) -> Self {
        StationOptions {
            library: VerbsLibrary::system(),
            request,
            cores,
            after_the_other: false,
        }
    }
}

/// An end with its port open.
pub struct Station {
    options: StationOptions,
    port: Port,
    numa_node: Option<u32>,
    cores: Vec<usize>,
    clock: Clock,
}

impl Station {
    /// Opens the port for a session whose control connection has the address `local` here.
    ///
    /// # Errors
    /// No port or no cores as asked for.
    pub fn open(options: StationOptions, local: Option<IpAddr>) -> Result<Station, StationError> {
        let port = select(options.library, &options.request, local)?;
        let numa_node =
            crate::results::device::read(port.context.name(), port.info.port, None).numa_node;
        let cores = match (&options.cores, numa_node) {
            (Some(cores), _) => cores.clone(),
            (None, Some(node)) => match cpu::allowed_cores_of_node(node) {
                Ok(cores) if !cores.is_empty() => cores,
                _ => cpu::allowed_cores()?,
            },
            (None, None) => cpu::allowed_cores()?,
        };
        Ok(Station {
            options,
            port,
            numa_node,
            cores,
            clock: Clock::new(),
        })
    }

    /// The port.
    pub fn port(&self) -> &Port {
        &self.port
    }

    /// NUMA node of the device.
    pub fn numa_node(&self) -> Option<u32> {
        self.numa_node
    }

    /// The clock of all its runs.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The core of each worker of a case. With fewer cores than workers some cores get several.
    pub fn cores_for(&self, case: &Case) -> Vec<Option<usize>> {
        let workers = effective_workers(case);
        let skip = if self.options.after_the_other {
            workers
        } else {
            0
        };
        (skip..skip + workers)
            .map(|index| self.cores.get(index % self.cores.len().max(1)).copied())
            .collect()
    }

    /// What a person should know about the cores before workers of `case` run at `ends` ends here; `None` if
    /// each has its own.
    pub fn crowded(&self, case: &Case, ends: usize) -> Option<String> {
        let workers = effective_workers(case) * ends;
        (workers > self.cores.len()).then(|| {
            format!(
                "{workers} workers share {} cores ({}): rates and latencies include waiting for a core",
                self.cores.len(),
                cpu::format_cpu_list(&self.cores),
            )
        })
    }
}

/// A station that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StationError {
    /// No port.
    #[error(transparent)]
    Verbs(#[from] VerbsError),
    /// No cores.
    #[error(transparent)]
    Cores(#[from] CoreError),
}

impl StationError {
    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            StationError::Verbs(error) => error.hint(),
            StationError::Cores(_) => None,
        }
    }

    /// Whether the request is at fault.
    pub fn is_bad_input(&self) -> bool {
        match self {
            StationError::Verbs(error) => error.is_bad_input(),
            StationError::Cores(_) => true,
        }
    }
}
