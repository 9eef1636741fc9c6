//! A result file, version 2: the types behind the JSON, its schema and the CSV. Every figure has its
//! unit in its name. A figure that was not measured is `None`, never 0. Gigabits are 10^9 bits, not
//! 2^30. Every field must be in the file, even if it is `null`.

mod comparison;
mod config;
mod convergence;
mod distribution;
mod flow;
mod lock_step;
mod run;
mod search;
mod stage;
mod why;

pub use comparison::{
    COMPARISON_VERSION, CaseComparison, Comparison, Direction, MetricComparison, MissingMetric,
    NodesComparison, Observation, OverAll, PlaceComparison, Reach, Round, Settles, Side, Verdict,
};
pub use config::{
    CLIENT, CaseConfig, CheckRound, FORWARD, FlowConfig, REVERSE, SERVER, WireKind, subject,
};
pub use convergence::{Convergence, LinkEvent};
pub use distribution::{
    BEYOND, Bandwidth, HistogramError, Latency, Percentile, can_tell, fewest_samples, percentile,
};
pub use flow::{
    Delivery, Doubt, DoubtKind, EndMemory, Fairness, FlowResult, Gaps, Limits, Load, LoadVerdict,
    Narrower, NotKeptBy, QpResult, QpTimeline, ReceiveQueues, Received, RegisteredBy, StarvedQp,
    Timeline, Totals, Window, gbit_per_s, in_one_line, mmsg_per_s, saturating_sum,
};
pub use lock_step::{LockStep, StepsOfNode};
pub use run::{
    Connect, ConnectStep, Failure, LossUnknown, LossUnknownReason, NodeClock, NodeFact, NodeResult,
    NodeState, PathEvent, PathEventKind, Run, WorkerResult,
};
pub use search::{LatencyLimit, LoadSearch, SearchEnd, Trial, TrialOutcome};
pub use stage::{StageResult, StageVerdict};
pub use why::{Certainty, ChangeTrial, Diagnosis, FoundCause, LeftOut, RuledOut};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::Settings;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::metric::Metric;

/// The version that this program writes, and the only one that it reads.
pub const SCHEMA_VERSION: u32 = 2;

/// One sweep: its program, machines, cases and results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rocebench result file")]
pub struct ResultFile {
    /// Version of this layout; 2.
    pub schema_version: u32,
    /// The program that wrote the file.
    pub tool: Tool,
    /// When the sweep began, RFC 3339 in UTC.
    pub started_at: String,
    /// The program's arguments, its own name first. Secrets are left out.
    pub command_line: Vec<String>,
    /// The nodes; the first ran the sweep. Two nodes of one process have an entry each.
    pub nodes: Vec<Node>,
    /// The sweep's cases, in the order in which they ran.
    pub cases: Vec<CaseResult>,
    /// What became of the stages of `rocebench accept`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<StageResult>,
}

impl ResultFile {
    /// The same sweep with other cases.
    pub fn with_cases(&self, cases: Vec<CaseResult>) -> ResultFile {
        ResultFile {
            schema_version: self.schema_version,
            tool: self.tool.clone(),
            started_at: self.started_at.clone(),
            command_line: self.command_line.clone(),
            nodes: self.nodes.clone(),
            cases,
            stages: self.stages.clone(),
        }
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

/// The program that wrote a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name of the program, always `rocebench`.
    pub name: String,
    /// The program's version as `rocebench --version` prints it, such as `0.1.0`.
    pub version: String,
    /// Git revision of its source, with `-dirty` after local changes; `null` when built without git.
    pub git: Option<String>,
}

/// A node: one process that owns verbs objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Name, unique in the file: `client` and `server` where a sweep has two.
    pub name: String,
    /// The machine that the node ran on; its fields stand beside `name`.
    #[serde(flatten)]
    pub host: Host,
    /// The RDMA devices that it used; empty when it did not report them.
    pub devices: Vec<Device>,
    /// Why rails of it could not be checked that other nodes have; left out if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// One case of the sweep and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Name of the case, unique in the file.
    pub id: String,
    /// The settings of the case, as all nodes applied them, and its flows.
    pub config: CaseConfig,
    /// The runs of the case, in the order in which they ran; failed ones too.
    pub runs: Vec<Run>,
    /// `--slo`, `--knee` and `--loss-search`: searches for a load of this case; empty otherwise.
    pub searches: Vec<LoadSearch>,
    /// The case beside what it was measured in turns with: perftest (`--against perftest`), or the victim alone (`--beside`);
    /// `null` otherwise.
    pub comparison: Option<CaseComparison>,
    /// What limits the case, of `why` and `--why`; left out otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
}

/// The machine that a node ran on; what could not be read there is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name, as `uname -n`.
    pub hostname: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// Model of the processor, of ARM64 the design of its cores; of cores of several kinds how many there are of each, which,
    /// and their names, the fastest first: `10 × Cortex-X925 (5-9,15-19) and 10 × Cortex-A725 (0-4,10-14)`.
    pub cpu_model: Option<String>,
    /// Logical CPUs that are online, hyper-threads included.
    pub cores: Option<u32>,
    /// Bytes of an ordinary page of memory; left out if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_bytes: Option<u64>,
    /// NUMA nodes that are online.
    pub numa_nodes: Option<u32>,
    /// Frequency governor of the cores that the process may use, such as `performance`; if they differ, each with its cores.
    pub governor: Option<String>,
    /// Version of rdma-core, such as `44.0`.
    pub rdma_core: Option<String>,
}

/// One RDMA device, with the port and GID in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Verbs name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Verbs library that drives it: `libibverbs` or `embedded`.
    pub library: String,
    /// True for a device without hardware, such as Soft-RoCE or the embedded one.
    pub software: bool,
    /// Packet faults at its node (`--faults`, with the seed); `null` without.
    pub faults: Option<String>,
    /// Kernel driver, or `softroce` for the embedded device.
    pub driver: Option<String>,
    /// Whether the driver passes a request for relaxed ordering (setting `ordering`) on to the adapter; `null` if rocebench
    /// does not know this driver.
    pub relaxed_ordering: Option<bool>,
    /// Version of the device's firmware, as its driver reports it.
    pub firmware: Option<String>,
    /// Number of the port in use, from 1.
    pub port: u8,
    /// Link layer of the port: `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
    /// Port state, such as `ACTIVE`.
    pub state: Option<String>,
    /// Speed of the link, in 10^9 bits a second: lanes times the speed of a lane.
    pub link_gbit_per_s: Option<f64>,
    /// Speed of one lane of the link, in 10^9 bits a second.
    pub speed_gbit_per_s_per_lane: Option<f64>,
    /// Lanes that the link uses, such as 4.
    pub width_lanes: Option<u32>,
    /// Active path MTU of the port.
    pub active_mtu_bytes: Option<u32>,
    /// Largest path MTU of the port.
    pub max_mtu_bytes: Option<u32>,
    /// Network interface below the GID.
    pub netdev: Option<String>,
    /// MTU of that network interface.
    pub netdev_mtu_bytes: Option<u32>,
    /// Index of the GID in the port's table.
    pub gid_index: Option<u32>,
    /// The GID, written like an IPv6 address.
    pub gid: Option<String>,
    /// `IB/RoCE v1` or `RoCE v2`.
    pub gid_type: Option<String>,
    /// Local identifier; `null` on Ethernet.
    pub lid: Option<u32>,
    /// NUMA node of the device.
    pub numa_node: Option<u32>,
    /// PCI address of the device, such as `0000:3b:00.0`; `null` for one without hardware.
    pub pci_address: Option<String>,
    /// Speed of one PCI lane, in 10^9 transfers a second.
    pub pci_gtransfer_per_s: Option<f64>,
    /// Number of PCI lanes in use, which may be fewer than the slot has.
    pub pci_width_lanes: Option<u32>,
}

impl Host {
    /// What is known of its processor: `72 cores of Neoverse V2, pages of 64 KiB`.
    pub fn processor(&self) -> String {
        let mut text = self.cores.map_or("cores".to_owned(), |count| format!("{count} cores"));
        text.extend(self.cpu_model.iter().map(|model| format!(" of {model}")));
        text.extend(self.page_bytes.map(|bytes| format!(", pages of {} KiB", bytes >> 10)));
        text
    }
}

impl Device {
    /// Whether it is a device of this program.
    pub fn is_embedded(&self) -> bool {
        self.library == "embedded"
    }

    /// Whether both are the same port of the same device, on one host.
    pub fn is_port_of(&self, other: &Device) -> bool {
        (&self.name, self.port) == (&other.name, other.port)
    }
}

/// A flow of a case with its settings, to be looked up in the case's runs. It is in no file.
#[derive(Clone, Debug)]
pub struct CaseFlow<'a> {
    /// The case that has the flow, with all its runs.
    pub case: &'a CaseResult,
    /// The flow; `None` of a case without one, which measured set-up alone.
    pub config: Option<&'a FlowConfig>,
    /// Its place among them, and in each run.
    index: usize,
    /// Its settings; those of the case where it measured set-up, whose traffic the flow is.
    pub settings: Settings,
}

impl CaseResult {
    /// Each flow; a case without one has one place still.
    pub fn flows(&self) -> impl Iterator<Item = CaseFlow<'_>> {
        (0..self.config.flows.len().max(1)).map(|index| CaseFlow {
            case: self,
            config: self.config.flows.get(index),
            index,
            settings: self.config.shown(index),
        })
    }
}

impl CaseFlow<'_> {
    /// Its name; empty where there is none.
    pub fn name(&self) -> &str {
        self.config.map_or("", |config| &config.name)
    }

    /// The node that posts it; where there is no flow, that which runs the sweep.
    pub fn from(&self) -> &str {
        self.config.map_or(CLIENT, |config| &config.from)
    }

    /// The node at its other end.
    pub fn to(&self) -> &str {
        self.config.map_or(SERVER, |config| &config.to)
    }

    /// The devices at `from` and at `to`, as far as the file has them.
    pub fn devices<'r>(&self, file: &'r ResultFile) -> [Option<&'r Device>; 2] {
        let from_device = self.config.and_then(|config| config.from_device.as_ref());
        let to_device = self.config.and_then(|config| config.to_device.as_ref());
        [(self.from(), from_device), (self.to(), to_device)].map(|(node, name)| {
            let mut devices = file.node(node)?.devices.iter();
            devices.find(|device| name.is_none_or(|name| device.name == *name))
        })
    }

    /// What it moved in a run of its case.
    pub fn result<'r>(&self, run: &'r Run) -> Option<&'r FlowResult> {
        let at_place = run.flows.get(self.index);
        at_place.filter(|flow| flow.name == self.name())
    }

    /// Its name, if the case needs it to distinguish its flows; else empty.
    pub fn label(&self) -> &str {
        self.case.config.flow_label(self.name())
    }

    /// The case, with the flow's name if the case needs it: `ID, flow NAME`.
    pub fn subject(&self) -> String {
        subject(&self.case.config, &self.case.id, self.name())
    }

    /// Whether it is the first of its case: its row also has what belongs to the whole run.
    pub fn is_first(&self) -> bool {
        self.index == 0
    }

    /// Whether a figure stands in its row: one of the whole run stands in the first.
    pub fn has(&self, metric: Metric) -> bool {
        self.is_first() || !metric.is_of_run()
    }
}

/// The present time, such as `2026-11-20T12:00:00.5Z`.
pub fn utc_now() -> String {
    // Formatting fails only after the year 9999.
    OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_time_can_be_read_back() {
        assert!(OffsetDateTime::parse(&utc_now(), &Rfc3339).is_ok_and(|now| now.year() > 2000));
    }
}
