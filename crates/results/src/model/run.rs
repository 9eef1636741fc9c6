//! One run of a case: its flows, what its nodes and their devices counted, what packets met on their way, and how fast
//! QPs were set up.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use settings::names;

use super::convergence::Convergence;
use super::distribution::Latency;
use super::flow::FlowResult;
use super::lock_step::LockStep;

/// One run of a case, with fresh QPs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number of the run within its case, from 1.
    pub run: u32,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The window ended as requested, and nothing failed.
    pub complete: bool,
    /// The user stopped the run.
    pub interrupted: bool,
    /// Why the run is not complete.
    pub failure: Option<Failure>,
    /// Part of the longest window in which all flows' windows were open, 0 to 1, by their nodes' clocks; `null` without
    /// two windows.
    pub overlap: Option<f64>,
    /// Its flows, as in `config.flows`; they have no figures if the run failed before they began.
    pub flows: Vec<FlowResult>,
    /// Workers, CPU time and counters of each node.
    pub nodes: Vec<NodeResult>,
    /// Events on the path, from the counters of known drivers; empty when nothing happened.
    pub path_events: Vec<PathEvent>,
    /// Devices whose counters do not show lost packets; empty if all do, or if the run read no counters.
    pub loss_unknown: Vec<LossUnknown>,
    /// `connect`: how fast QPs were set up; the run's flows are then the traffic beside it. `null` for other
    /// operations.
    pub connect: Option<Connect>,
    /// With `lock_step`: its steps; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_step: Option<LockStep>,
    /// How long flows took to share evenly again, after each flow that began or ended and each fault of a link, of the first
    /// 100 events; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub convergence: Vec<Convergence>,
}

impl Run {
    /// The flow of this name.
    pub fn flow(&self, name: &str) -> Option<&FlowResult> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeResult> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Whether a node has the embedded device, so that figures are those of CPUs.
    pub fn is_on_embedded_device(&self) -> bool {
        self.nodes.iter().any(|node| node.engine_cpu_seconds.is_some())
    }

    /// The interval in which most of an event's packets were counted: its end in seconds into the window, and how many. `None`
    /// where its counters were not read over time.
    pub fn moment(&self, event: &PathEvent) -> Option<(f64, u64)> {
        let state = self.node(&event.node)?.state.as_ref()?;
        let grown = event.counters.iter().filter_map(|name| state.counters.get(name));
        let mut sums = vec![0_u64; state.at_seconds.len()];
        for counts in grown {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(*count);
            }
        }
        let at_seconds = state.at_seconds.iter().copied();
        at_seconds.zip(sums).max_by_key(|(_, sum)| *sum).filter(|(_, sum)| *sum > 0)
    }

    /// The flows that a node posts.
    pub fn flows_from<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a FlowResult> {
        self.flows.iter().filter(move |flow| flow.from == node)
    }

    /// CPU seconds that the workers of a node and its embedded device used for 10^9 payload bytes of the flows to and from it;
    /// `None` where one of them is not known.
    pub fn cpu_seconds_per_gb(&self, node: &str) -> Option<f64> {
        let used = self.node(node)?;
        let engine_seconds = used.engine_cpu_seconds.unwrap_or(0.0);
        self.per_gb(node, used.cpu_seconds()? + engine_seconds)
    }

    /// The same of everything on the node's machine.
    pub fn machine_cpu_seconds_per_gb(&self, node: &str) -> Option<f64> {
        self.per_gb(node, self.node(node)?.machine_cpu_seconds?)
    }

    fn per_gb(&self, node: &str, seconds: f64) -> Option<f64> {
        let bytes: f64 = self
            .flows
            .iter()
            .filter(|flow| flow.from == node || flow.to == node)
            .map(|flow| flow.totals.bytes as f64)
            .sum();
        (bytes > 0.0).then(|| seconds / (bytes / 1e9))
    }
}

/// Why a run is not complete, in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What failed, at which node and why, for a person.
    pub message: String,
    /// What to try next, for a person; `null` where nothing general helps.
    pub hint: Option<String>,
}

/// One node in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeResult {
    /// Name of the node, as in the file's `nodes`.
    pub name: String,
    /// Difference of its clock from the coordinator's when its windows opened; `null` if they did not open, or the
    /// clock was not read.
    pub clock: Option<NodeClock>,
    /// Worker threads; each serves all flows of the node. Empty if the device alone works here.
    pub workers: Vec<WorkerResult>,
    /// CPU time of its embedded device's own thread over the window; this thread does part of the workers' work. `null` without
    /// such a device, or if another node reports the device.
    pub engine_cpu_seconds: Option<f64>,
    /// Cores on which that thread may run, such as `1,4-7`: those without a worker, if there are any. `null` if
    /// `engine_cpu_seconds` is.
    pub engine_cores: Option<String>,
    /// CPU time of its whole machine over the window (/proc/stat): workers, kernel threads, interrupts, other programs and
    /// other nodes there. `null` if unknown.
    pub machine_cpu_seconds: Option<f64>,
    /// Growth of its device's counters over its window; `null` if they were not read, or another node reports the
    /// device. One counter is `null` if its growth is unknown: it is at its largest value, was cleared, or was not
    /// there all the time.
    pub counters: Option<BTreeMap<String, Option<u64>>>,
    /// What the node and its device did over the time of its window; left out of a window below half a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<NodeState>,
}

/// What a node and its device did in each interval of its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeState {
    /// End of each interval, in seconds from the opening of the window: each 0.1 s, in a long window less often.
    pub at_seconds: Vec<f64>,
    /// Mean of each fact in each interval, those of facts that stayed at 0 left out; `null` where it could not be read.
    pub facts: BTreeMap<NodeFact, Vec<Option<f64>>>,
    /// What each of its device's counters grew by in each interval, those of counters that did not grow left out.
    pub counters: BTreeMap<String, Vec<u64>>,
}

names! {
    /// What a node is looked at for while its window is open.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    NodeFact {
        /// Messages that its flows have posted and that have not completed.
        Outstanding = "outstanding",
        /// Part of its QPs whose send queues had no room for more messages, at least.
        QueueFull = "queue_full",
        /// Receives that its workers have posted and not seen used.
        ReceivesPosted = "receives_posted",
        /// Part of its workers' polls that found nothing.
        EmptyPolls = "empty_polls",
        /// Workers that are ready to run and have no core, as other threads have it.
        WorkersWaiting = "workers_waiting",
        /// CPUs in use, by anything on its machine.
        CpusBusy = "cpus_busy",
        /// CPUs that its hypervisor has given to other machines.
        CpusStolen = "cpus_stolen",
        /// CPUs in soft interrupts, as those of the network.
        CpusInSoftInterrupts = "cpus_in_soft_interrupts",
        /// Part of the time in which a quota of CPU time stopped its process.
        Throttled = "throttled",
        /// Clock of its workers' cores, in MHz.
        CoreMegahertz = "core_megahertz",
    }
}

/// A node's clock compared with the coordinator's. Both are monotonic: they count from a time of their own, usually the start of
/// their machine, and are never set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeClock {
    /// The node's clock minus the coordinator's, in nanoseconds: between machines about the difference of their uptimes, in one
    /// process 0 within `uncertainty_ns`.
    pub offset_ns: i64,
    /// Largest error of `offset_ns`: half of the shortest round trip of a clock request (F. Cristian, Probabilistic clock
    /// synchronization, 1989), and what reading the coordinator's own clock adds.
    pub uncertainty_ns: u64,
}

impl NodeResult {
    /// A node that has done nothing.
    pub fn named(name: &str) -> NodeResult {
        NodeResult { name: name.to_owned(), ..NodeResult::default() }
    }

    /// CPU time of all workers, in seconds; `None` when one of them has none, or there are none.
    pub fn cpu_seconds(&self) -> Option<f64> {
        if self.workers.is_empty() {
            return None;
        }
        self.workers.iter().map(|worker| worker.cpu_seconds).sum()
    }
}

/// One worker thread in the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerResult {
    /// Core to which it was pinned; `null` when it was not.
    pub core: Option<u32>,
    /// Other rocebench workers on that core when the run ended, of any process: more than 0 if there were too few
    /// cores. `null` when it was not pinned.
    pub core_shared_with: Option<u32>,
    /// Length of its own window, in seconds; its rate is `messages` over this. `null` without a window.
    pub window_seconds: Option<f64>,
    /// Messages whose completions it saw; at a node that posts no flow, messages that it received.
    pub messages: u64,
    /// Time in the window without its core: intervals between two looks at its CQs that were longer than 0.5 ms (or
    /// 1/400 of the window) and in which the thread did not use the CPU. `null` without a window.
    pub away_seconds: Option<f64>,
    /// CPU time that it used in its window, in seconds; `null` if the system does not report it.
    pub cpu_seconds: Option<f64>,
    /// Number of polls of its CQs, of whatever result.
    pub polls: u64,
    /// How many of `polls` found no completion.
    pub empty_polls: u64,
    /// Messages that waited because the send queue of the QP chosen by `spread` was full; 0 if each QP is its own
    /// source.
    pub blocked: u64,
}

/// An event on the path of packets, from a device's counters over the window. They count the whole port, other traffic
/// too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathEvent {
    /// The node whose device counted.
    pub node: String,
    /// What happened to the packets, whatever the driver calls it.
    pub kind: PathEventKind,
    /// How often: the sum of the counters.
    pub count: u64,
    /// The driver's counters that mean this.
    pub counters: Vec<String>,
}

/// A device whose counters do not show lost packets: packets may be lost without an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossUnknown {
    /// The node that has it.
    pub node: String,
    /// Verbs name of the device, such as `mlx5_0`.
    pub device: String,
    /// Its driver; `null` if unknown.
    pub driver: Option<String>,
    /// Why its counters do not show them.
    pub reason: LossUnknownReason,
}

impl LossUnknown {
    /// The device and why, for a person.
    pub fn words(&self) -> String {
        let why = self.reason.of_driver(self.driver.as_deref());
        format!("{}: {why}", self.device)
    }
}

names! {
    /// Why lost packets cannot be seen.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    LossUnknownReason {
        /// The kernel shows no counters, as with some drivers and in most containers.
        NoCounters = "shows no counters",
        /// The names of the driver's counters are not known.
        UnknownDriver = "has counters that rocebench does not know",
        /// No counter counts packets that were lost or sent again.
        NotCounted = "shows no counter of lost packets",
    }
}

impl LossUnknownReason {
    /// For a person, with the driver.
    pub fn of_driver(self, driver: Option<&str>) -> String {
        match driver {
            Some(driver) => format!("driver {driver} {self}"),
            None => format!("its driver {self}"),
        }
    }
}

names! {
    /// What happened to packets on their way, by the meaning of drivers' counters.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    PathEventKind {
        /// A receiver found a gap before a packet: loss or reordering.
        SequenceGap = "sequence gap",
        /// A sender received a NAK for a gap, or missed an answer.
        SequenceNak = "sequence NAK",
        /// A sender waited in vain for an ACK.
        AckTimeout = "ACK timeout",
        /// Packets were sent again, came twice, or were sent more slowly after a loss.
        Resent = "resent",
        /// A sender gave up after its last retry.
        GaveUp = "gave up",
        /// A receiver had no receive posted or no room: not the network.
        ReceiverNotReady = "receiver not ready",
        /// A packet came that was damaged on its way.
        BadPacket = "bad packet",
        /// The device dropped packets that it was to send or had received.
        Dropped = "dropped",
        /// A switch marked packets for ECN, or an end sent or obeyed a congestion notification.
        Congestion = "congestion",
        /// The network stopped the port for a time: pause frames of PFC or plain ones that it received, or waits for credits.
        PausedByNetwork = "paused by network",
        /// This host stopped the network for a time: pause frames that its port sent, or an adapter that waited for PCIe.
        PausedByHost = "paused by host",
    }
}

impl PathEventKind {
    /// For a person who has not met it before.
    pub fn words(self) -> &'static str {
        match self {
            PathEventKind::SequenceGap => "gaps seen by the receiver",
            PathEventKind::SequenceNak => "NAKs for a gap",
            PathEventKind::AckTimeout => "ACK timeouts",
            PathEventKind::Resent => "sent again",
            PathEventKind::GaveUp => "gave up after the last retry",
            PathEventKind::ReceiverNotReady => "receiver not ready",
            PathEventKind::BadPacket => "damaged packets",
            PathEventKind::Dropped => "dropped by the device",
            PathEventKind::Congestion => "ECN and congestion notifications",
            PathEventKind::PausedByNetwork => "pauses by the network",
            PathEventKind::PausedByHost => "pauses by this host",
        }
    }

    /// Whether each packet that the network loses leads to such an event at one of both ends.
    pub fn follows_loss(self) -> bool {
        use PathEventKind::{AckTimeout, GaveUp, Resent, SequenceGap, SequenceNak};
        matches!(self, SequenceGap | SequenceNak | AckTimeout | Resent | GaveUp)
    }

    /// Whether packets were lost, damaged or late. The others have reasons besides the path.
    pub fn is_loss(self) -> bool {
        use PathEventKind::{Congestion, PausedByHost, PausedByNetwork, ReceiverNotReady};
        !matches!(self, ReceiverNotReady | Congestion | PausedByNetwork | PausedByHost)
    }
}

/// Set-up of QPs in rounds: each round creates QPs at both ends, connects and destroys them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connect {
    /// Whole rounds in the window.
    pub rounds: u64,
    /// QPs that reached RTS at both ends in these rounds.
    pub connections: u64,
    /// Time from the begin of the first round to the end of the last, in seconds, destroying included.
    pub seconds: f64,
    /// `connections` over `seconds`; `null` without a whole round.
    pub connections_per_second: Option<f64>,
    /// Set-up time of a round: from its begin until both ends have all its QPs in RTS.
    pub setup_ns: Option<Latency>,
    /// Times of each step, at the end that ran the sweep.
    pub steps: Vec<ConnectStep>,
    /// Times of each step at the other end; empty if it did not report them.
    pub peer_steps: Vec<ConnectStep>,
    /// Throughput of the traffic right before the first round; `null` without traffic or warm-up.
    pub traffic_alone_gbit_per_s: Option<f64>,
    /// Requests that rdma_cm rejected because it still had an earlier connection of the same QP number. The client repeats
    /// them: these waits are in `setup_ns` and `seconds`, not in `steps`. `null` without rdma_cm.
    pub stale_rejections: Option<u64>,
}

/// One of the steps that make, connect and destroy QPs, and how long it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConnectStep {
    /// `create`, `init`, `exchange`, `rtr`, `rts` or `destroy`. With rdma_cm `exchange` is absent, and the end that ran the
    /// sweep has `resolve`, `route` and `connect`; `connect` contains `init`, `rtr` and `rts`.
    pub step: String,
    /// Each time is of one `connection`, or of one `round` of all its QPs.
    pub per: String,
    /// Distribution of the times that the step took, in nanoseconds.
    pub time_ns: Latency,
}

impl ConnectStep {
    /// What `step` can be, in the order of a QP's life.
    pub const NAMES: [&str; 9] =
        ["create", "resolve", "route", "connect", "init", "exchange", "rtr", "rts", "destroy"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{flow_of, run, with};

    #[test]
    fn cpu_time_is_that_of_all_who_work_over_the_bytes_both_ways() {
        let mut flows = ["forward", "other"].map(|name| flow_of(name, 1_000_000_000, &[1]));
        flows[1].from = "elsewhere".to_owned();
        flows[1].to = "elsewhere".to_owned();
        let worker =
            |seconds| WorkerResult { cpu_seconds: Some(seconds), ..WorkerResult::default() };
        let mut run = Run {
            nodes: vec![NodeResult {
                workers: vec![worker(0.5), worker(0.25)],
                engine_cpu_seconds: Some(0.75),
                machine_cpu_seconds: Some(6.0),
                ..NodeResult::named("client")
            }],
            ..run(flows.into())
        };
        let seconds_per_gb = |of_run: &Run| {
            [of_run.cpu_seconds_per_gb("client"), of_run.machine_cpu_seconds_per_gb("client")]
        };
        assert_eq!(seconds_per_gb(&run), [Some(1.5), Some(6.0)]);
        run.flows.push(flow_of("reverse", 2_000_000_000, &[1]));
        assert_eq!(seconds_per_gb(&run), [Some(0.5), Some(2.0)]);
        let without_engine = with(&run, "nodes/0/engine_cpu_seconds=null");
        assert_eq!(seconds_per_gb(&without_engine), [Some(0.25), Some(2.0)]);
        let less = "nodes/0/workers/1/cpu_seconds=null; nodes/0/machine_cpu_seconds=null";
        assert_eq!(seconds_per_gb(&with(&run, less)), [None, None]);
    }
}
