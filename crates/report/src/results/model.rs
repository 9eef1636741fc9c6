//! What a result file says, version 1: the types of which the JSON, its schema and the CSV are made.
//! Every figure has its unit in its name; what was not measured is `None`, never 0. Gigabits are 10^9
//! bits, not 2^30. Fields that a reader does not know are ignored, so a field can be added within
//! a version; taking one away or changing its meaning makes a new version.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod set_up;

pub use set_up::{Connect, ConnectStep};

/// The version that this program writes.
pub const SCHEMA_VERSION: u32 = 1;

/// One sweep: who ran it, where, and what came out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rocebench result file")]
pub struct ResultFile {
    /// Version of this layout; 1.
    pub schema_version: u32,
    /// The program that wrote the file.
    pub tool: Tool,
    /// When the sweep began, RFC 3339 in UTC.
    pub started_at: String,
    /// The program's arguments, its own name first. Secrets are left out.
    pub command_line: Vec<String>,
    /// The machine that ran the sweep.
    pub host: Host,
    /// The machine at the other end; `null` when both ends were on one.
    pub peer: Option<Host>,
    /// The sweep's cases, in the order in which they ran.
    pub cases: Vec<CaseResult>,
}

/// The program that wrote a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `rocebench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Git revision it was built from, with `-dirty` for changes on top; `null` when built without git.
    pub git: Option<String>,
}

/// Facts of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// Processor model.
    pub cpu_model: Option<String>,
    /// Cores that are online.
    pub cores: u32,
    /// NUMA nodes that are online.
    pub numa_nodes: Option<u32>,
    /// Frequency governor of the first core, such as `performance`.
    pub governor: Option<String>,
    /// Version of rdma-core, such as `44.0`.
    pub rdma_core: Option<String>,
    /// The RDMA device that was used.
    pub device: Option<Device>,
}

/// Facts of one RDMA device and the port and GID of it that were used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Verbs name, such as `mlx5_0` or `rxe0`.
    pub name: String,
    /// Verbs library that drives it: `libibverbs` or `embedded`.
    pub library: String,
    /// True for a device without hardware, such as Soft-RoCE or the embedded one.
    pub software: bool,
    /// What went wrong with packets on purpose at this end (`--faults`, with its seed); `null` for nothing.
    pub faults: Option<String>,
    /// Kernel driver, or `softroce` for the embedded device.
    pub driver: Option<String>,
    /// Firmware version.
    pub firmware: Option<String>,
    /// Port number, from 1.
    pub port: u8,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: Option<String>,
    /// Port state, such as `ACTIVE`.
    pub state: Option<String>,
    /// Speed of the link: lanes times the speed of a lane.
    pub link_gbit_per_s: Option<f64>,
    /// Speed of one lane.
    pub speed_gbit_per_s_per_lane: Option<f64>,
    /// Lanes of the link.
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
    /// NUMA node that the device hangs on.
    pub numa_node: Option<u32>,
    /// PCI address.
    pub pci_address: Option<String>,
    /// Speed of one PCI lane, in 10^9 transfers a second.
    pub pci_gtransfer_per_s: Option<f64>,
    /// PCI lanes in use.
    pub pci_width_lanes: Option<u32>,
}

/// One case of the sweep and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Name of the case, unique in the file.
    pub id: String,
    /// Everything that was set.
    pub config: CaseConfig,
    /// Its runs, in order.
    pub runs: Vec<Run>,
    /// `--against perftest`: the same case run by perftest, in turns with `runs`; `null` otherwise.
    #[serde(default)]
    pub perftest: Option<PerftestComparison>,
}

/// A case beside the perftest program that does the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestComparison {
    /// Program, such as `ib_send_bw`.
    pub program: String,
    /// Its version, such as `6.06`; `null` when it did not tell.
    pub version: Option<String>,
    /// Arguments of its client, without the address and port at which its ends meet.
    pub arguments: Vec<String>,
    /// What is compared: `gbit_per_s`, `mmsg_per_s` or `latency_ns` (medians of the messages'); of both directions
    /// together.
    pub metric: String,
    /// Difference that does not matter, as a part of perftest's figure: 0.03 is 3 %.
    #[serde(default)]
    pub margin: Option<f64>,
    /// Every pair of runs, in order.
    pub pairs: Vec<PerftestPair>,
    /// Median of rocebench's figures in the pairs that count; `null` without one.
    pub rocebench_median: Option<f64>,
    /// Median of perftest's.
    pub perftest_median: Option<f64>,
    /// rocebench's figure over perftest's, in the median of the pairs that begin with either.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's interval, which holds at all looks together in 95 %; `null` of few pairs.
    pub ratio_low: Option<f64>,
    /// Upper end of it.
    pub ratio_high: Option<f64>,
    /// rocebench is `faster`, `equal`, `slower`, or it is `unclear`.
    pub verdict: String,
    /// What to know about the verdict, such as why it is unclear.
    pub note: Option<String>,
}

/// One run of rocebench and one of perftest, one right after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PerftestPair {
    /// Which went first: `rocebench` or `perftest`.
    pub first: String,
    /// Number of rocebench's run within the case.
    pub run: u32,
    /// rocebench's figure, in the unit of `metric`; `null` when its run is not complete.
    pub rocebench: Option<f64>,
    /// perftest's; `null` when it failed.
    pub perftest: Option<f64>,
    /// Why the pair does not count.
    pub failure: Option<String>,
    /// What the failing perftest printed, both ends, its end where it was long.
    pub output: Option<String>,
}

/// The settings of a case, as both ends applied them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseConfig {
    /// Operation: `send`, `write` or `read`; `connect` where set-up was measured: what is said of messages, queues
    /// and workers is then of the traffic meanwhile, WRITEs on QPs of their own.
    pub op: String,
    /// Queue pairs; of `connect`, those that a round sets up.
    pub qps: u32,
    /// How completion queues are shared: `shared`, `per-worker` or `per-qp`.
    pub cq: String,
    /// Payload of one message, in bytes.
    pub size: u64,
    /// Send WRs in flight on each QP.
    pub tx_depth: u32,
    /// Receives posted on each QP.
    pub rx_depth: u32,
    /// One signalled WR in so many.
    pub signal_every: u32,
    /// WRs given to one `ibv_post_send`.
    pub post_list: u32,
    /// Messages up to this many bytes are sent inline; 0 is off.
    pub inline: u32,
    /// Worker threads at each end.
    pub workers: u32,
    /// Path MTU in use, in bytes; `null` when no connection was made.
    pub mtu: Option<u32>,
    /// Both ends sent at once.
    pub bidirectional: bool,
    /// Verbs name of the device at the end that ran the sweep.
    pub device: Option<String>,
    /// Verbs name of the device at the other end.
    pub peer_device: Option<String>,
    /// Payloads were filled with a pattern and checked.
    pub verify: bool,
    /// Length of the window that was asked for; `null` when messages were counted instead.
    pub duration_seconds: Option<f64>,
    /// Messages asked for on each QP, of `connect` rounds; `null` when time ended the window.
    pub iterations_per_qp: Option<u64>,
    /// Rule of the warm-up: `auto` or `fixed`.
    pub warmup: String,
    /// The fixed warm-up's length, or the automatic one's cap.
    pub warmup_limit_seconds: Option<f64>,
    /// Entries of each CQ; `null` when it followed from the depths.
    pub cq_depth: Option<u32>,
    /// Local ACK timeout exponent: 4.096 µs × 2^timeout.
    pub timeout: u8,
    /// Retries after a timeout or a sequence error.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK; 7 is for ever.
    pub rnr_retry: u8,
    /// RNR NAK timer code.
    pub min_rnr_timer: u8,
    /// READs outstanding on one QP; `null` when it followed from the devices.
    pub max_rd_atomic: Option<u8>,
    /// Service level.
    pub service_level: u8,
    /// GRH traffic class.
    pub traffic_class: u8,
    /// GRH hop limit.
    pub hop_limit: u8,
    /// How workers learnt of completions: `busy`, `event` or `adaptive`; files without it are of programs
    /// that only knew `busy`.
    #[serde(default = "busy")]
    pub poll: String,
    /// How QPs were connected: `tcp` (told over the control connection) or `cm` (by rdma_cm); files without it are
    /// of programs that only knew `tcp`.
    #[serde(default = "tcp")]
    pub connect: String,
    /// `connect`: QPs that carried traffic meanwhile; `null` of other operations.
    #[serde(default)]
    pub traffic_qps: Option<u32>,
}

fn tcp() -> String {
    "tcp".to_owned()
}

impl CaseConfig {
    /// Whether set-up was measured, and not a transfer.
    pub fn is_set_up(&self) -> bool {
        self.op == "connect"
    }
}

fn busy() -> String {
    "busy".to_owned()
}

/// One run of a case, with fresh QPs. Figures at its top level are those of the end that ran the sweep,
/// sending (or reading) towards the other end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number of the run within its case, from 1.
    pub run: u32,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The window ended as it was asked to, and nothing failed.
    pub complete: bool,
    /// The user stopped the run.
    pub interrupted: bool,
    /// Why the run is not complete.
    pub failure: Option<Failure>,
    /// What the end that ran the sweep moved, and its window.
    #[serde(flatten)]
    pub forward: Direction,
    /// Bidirectional runs: what the other end moved at the same time, measured there.
    pub reverse: Option<Direction>,
    /// SEND in one direction: what the other end received in the window.
    pub receiver: Option<Receiver>,
    /// What the device's counters grew by over the window, at the end that ran the sweep. A counter is `null` whose
    /// growth is not known: it is at its largest value, was cleared, or was not there all the time.
    pub device_counters: Option<BTreeMap<String, Option<u64>>>,
    /// The same of the other end's device, over its own window; `null` also where both ends used one device.
    pub peer_device_counters: Option<BTreeMap<String, Option<u64>>>,
    /// What the counters of both ends say of the path, where their driver is known; empty when nothing happened.
    #[serde(default)]
    pub path_events: Vec<PathEvent>,
    /// How throughput went over the window, at the end that ran the sweep; `null` in files of programs
    /// that did not sample it.
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// `connect`: how fast QPs were set up; all else in the run is then of the traffic meanwhile. `null` of other
    /// operations.
    #[serde(default)]
    pub connect: Option<Connect>,
}

/// Something that packets met on their way, as a device counted it over the window. Its counters are of the whole port,
/// so traffic of others is in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathEvent {
    /// Whose device counted: `client` (the end that ran the sweep) or `server`.
    pub end: String,
    /// What it was.
    pub kind: PathEventKind,
    /// How often: the sum of the counters.
    pub count: u64,
    /// The driver's counters that mean this.
    pub counters: Vec<String>,
}

/// Kinds of [`PathEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathEventKind {
    /// A receiver missed a packet before one that came: loss or reordering.
    SequenceGap,
    /// A sender was told of a gap, or saw that an answer was missing.
    SequenceNak,
    /// A sender waited in vain for an ACK.
    AckTimeout,
    /// Packets were sent again, came again, or were sent more slowly after that.
    Resent,
    /// A sender gave up after its last retry.
    GaveUp,
    /// A receiver had no receive posted or no room: not the network.
    ReceiverNotReady,
    /// A packet came damaged.
    BadPacket,
    /// The device threw packets away.
    Dropped,
    /// A switch marked packets for ECN, or an end sent or heeded a congestion notification.
    Congestion,
}

impl PathEventKind {
    /// The words of the table.
    pub fn name(self) -> &'static str {
        match self {
            PathEventKind::SequenceGap => "sequence gap",
            PathEventKind::SequenceNak => "sequence NAK",
            PathEventKind::AckTimeout => "ACK timeout",
            PathEventKind::Resent => "resent",
            PathEventKind::GaveUp => "gave up",
            PathEventKind::ReceiverNotReady => "receiver not ready",
            PathEventKind::BadPacket => "bad packet",
            PathEventKind::Dropped => "dropped",
            PathEventKind::Congestion => "congestion",
        }
    }
}

/// Throughput over the window, as the thread that steers the run sampled it: about every 10 ms, and more
/// seldom in windows so long that the samples were too many. What was not sampled is in the next sample; the sum
/// is the total.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Length of an interval that was aimed at.
    pub interval_seconds: f64,
    /// End of each interval, from the start of the window.
    #[serde(serialize_with = "super::compact::in_one_line")]
    pub at_seconds: Vec<f64>,
    /// Messages whose completions were seen in each interval.
    #[serde(serialize_with = "super::compact::in_one_line")]
    pub messages: Vec<u64>,
    /// Longest time without a completion, to the precision of an interval; 0 where every one had some.
    pub longest_stall_seconds: Option<f64>,
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

/// The time in which one end measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Length of the measurement window. With several workers, whose windows may differ: the time in which
    /// the sum of their rates moves the sum of their messages.
    pub seconds: f64,
    /// Length of the warm-up before it.
    pub warmup_seconds: f64,
    /// With `--warmup auto`: throughput was steady before the cap; `null` for a fixed warm-up.
    pub warmup_steady: Option<bool>,
    /// What makes the figures of this window doubtful; empty for a window that is as it should be.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
}

/// One reason to doubt the figures of a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// What kind of reason it is.
    pub kind: DoubtKind,
    /// What was seen, with figures.
    pub message: String,
}

/// Kinds of [`Doubt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DoubtKind {
    /// The window was 2 % or more longer or shorter than asked for.
    WindowLength,
    /// A worker did not look at its CQs over the start or the end of the window.
    EdgeMissed,
    /// Throughput rose or fell through the window.
    Drift,
}

impl DoubtKind {
    /// The word of table and CSV.
    pub fn name(self) -> &'static str {
        match self {
            DoubtKind::WindowLength => "window length",
            DoubtKind::EdgeMissed => "edge missed",
            DoubtKind::Drift => "drift",
        }
    }

    /// Whether the run's rates may be wrong, so that no verdict stands on them. A drift is true of the run.
    pub fn spoils_rates(self) -> bool {
        !matches!(self, DoubtKind::Drift)
    }
}

/// One direction's figures in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// The time that was measured, at the end that sent (or read).
    #[serde(default)]
    pub window: Window,
    /// All QPs together.
    pub totals: Totals,
    /// All QPs' latencies in one histogram, in nanoseconds from post to completion seen; `null` when off.
    pub latency_ns: Option<Latency>,
    /// Throughput over the intervals of `timeline`; `null` where there is none, as in `reverse`.
    #[serde(default)]
    pub bandwidth_gbit_per_s: Option<Bandwidth>,
    /// How evenly the QPs were served; `null` without traffic.
    pub fairness: Option<Fairness>,
    /// Each QP.
    pub qps: Vec<QpResult>,
    /// Each worker thread.
    pub workers: Vec<WorkerResult>,
    /// What the link would allow; `null` when its speed is unknown.
    pub limits: Option<Limits>,
}

impl Direction {
    /// CPU time of all workers; `None` when one of them has none, or there are none.
    pub fn cpu_seconds(&self) -> Option<f64> {
        if self.workers.is_empty() {
            return None;
        }
        self.workers.iter().map(|worker| worker.cpu_seconds).sum()
    }
}

/// What all QPs moved together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
    pub gbit_per_s: Option<f64>,
    /// Message rate, in 10^6 a second.
    pub mmsg_per_s: Option<f64>,
    /// Completions with an error, and payloads that failed verification.
    pub errors: u64,
}

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the samples.
    pub stddev: f64,
    /// Median.
    pub p50: u64,
    /// 90 % of samples are at most this; `null` of fewer than 10 samples.
    pub p90: Option<u64>,
    /// 99 % of samples are at most this; `null` of fewer than 100.
    pub p99: Option<u64>,
    /// 99.9 % of samples are at most this; `null` of fewer than 1,000.
    pub p99_9: Option<u64>,
    /// 99.99 % of samples are at most this; `null` of fewer than 10,000.
    pub p99_99: Option<u64>,
    /// Largest.
    pub max: u64,
    /// Samples above what the histogram holds, counted in it at its upper end.
    pub overflows: u64,
    /// The whole distribution: `HdrHistogram` V2, deflated, in base64; `null` where it was left out.
    pub histogram: Option<String>,
}

/// A distribution of payload throughput over the intervals of a window, in gigabits a second; each interval is one
/// sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// Length of an interval that was aimed at: over longer ones throughput scatters less.
    pub interval_seconds: f64,
    /// Intervals.
    pub count: u64,
    /// The slowest.
    pub min: f64,
    /// 1 % of the intervals were at most so fast; `null` of fewer than 100.
    pub p1: Option<f64>,
    /// Median.
    pub p50: f64,
    /// 99 % of the intervals were at most so fast; `null` of fewer than 100.
    pub p99: Option<f64>,
    /// The fastest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the intervals.
    pub stddev: f64,
    /// The whole distribution, in kilobits a second: `HdrHistogram` V2, deflated, in base64.
    pub histogram_kbit_per_s: Option<String>,
}

/// How evenly QPs shared what was moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fairness {
    /// Jain's index: 1 is even, 1/n is one QP alone.
    pub jain: f64,
    /// The least served QP's bytes over an even share.
    pub min_share: f64,
    /// The best served QP's bytes over an even share.
    pub max_share: f64,
}

/// One QP in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct QpResult {
    /// Index within the case, from 0.
    pub index: u32,
    /// QP number that the device gave it.
    pub qpn: u32,
    /// Messages completed.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Payload throughput.
    pub gbit_per_s: Option<f64>,
    /// Its latencies, in nanoseconds; `null` when off or without a sample.
    pub latency_ns: Option<Latency>,
}

/// One worker thread in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Core that it was pinned to; `null` when it was not.
    pub core: Option<u32>,
    /// Other workers of rocebench on that core when the run ended, whichever process they were of; not 0 where there
    /// were too few cores. `null` when it was not pinned.
    pub core_shared_with: Option<u32>,
    /// Length of its own window, by which its messages are divided; `null` when it had none.
    #[serde(default)]
    pub window_seconds: Option<f64>,
    /// Messages whose completions it saw.
    pub messages: u64,
    /// CPU time that it used; `null` where the system does not tell.
    pub cpu_seconds: Option<f64>,
    /// Polls of a CQ.
    pub polls: u64,
    /// Polls that found nothing.
    pub empty_polls: u64,
}

/// What the other end received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Receiver {
    /// Messages received.
    pub messages: u64,
    /// Payload bytes of them.
    pub bytes: u64,
    /// Length of the receiver's own window, which closes a message on the wire later than the sender's; `null`
    /// when messages were counted instead.
    #[serde(default)]
    pub window_seconds: Option<f64>,
    /// Its worker threads.
    pub workers: Vec<WorkerResult>,
}

impl Receiver {
    /// What was received over what was sent, 1 for all of it; by the rate where the windows differ in length.
    pub fn share_of(&self, sent: &Direction) -> f64 {
        let share = self.messages as f64 / sent.totals.messages as f64;
        match self.window_seconds {
            Some(seconds) => share * sent.window.seconds / seconds,
            None => share,
        }
    }
}

/// The most that the link allows, and how much of it was reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Speed of the link, headers and gaps included.
    pub link_gbit_per_s: f64,
    /// Payload's part of what the messages take on the wire, 0 to 1.
    pub protocol_efficiency: f64,
    /// Payload throughput over `link_gbit_per_s` × `protocol_efficiency`; `null` without a throughput.
    pub share_of_limit: Option<f64>,
}
