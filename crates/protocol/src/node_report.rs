//! What a node tells of itself and of its part of a run.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::NodeFailure;
use machine::{device::Lossless, surroundings::Surroundings};
use plan::{FlowDevice, Side};
use results::model::{
    ConnectStep, Device, Doubt, EndMemory, FlowResult, Latency, LossUnknown, NodeState, PathEvent,
    QpResult, ReceiveQueues, Received, WireKind, WorkerResult,
};
use verbs::{Network, Port, PortLimits};

/// QPs with their histograms that fit a message beside the rest of it, those of all ends together.
pub const QPS_OF_A_MESSAGE: usize = 384;

/// What a node has for the runs of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeFacts {
    /// The device, port and GID that its runs use.
    pub device: Device,
    /// What that and its port can do.
    pub limits: PortLimits,
    /// Memory that it may use in a run.
    pub memory: MemoryOffer,
    /// Means against loss at its network interface.
    pub lossless: Lossless,
    /// What lies around its port and may slow it down.
    pub surroundings: Surroundings,
    /// The networks of the ports that it may take, that of its own port first; of the devices that flows ask for, if any.
    pub networks: Vec<Network>,
    /// The devices over which its flows go at once, with a place for each that cannot be used; none where it has its own alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<Option<FlowDevice>>,
    /// Why others are left out that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What a person should know of the device; `None` for a usual one.
    pub remark: Option<String>,
    /// The node shows what came of each run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_results: bool,
}

/// A node's part of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeReport {
    /// The devices that it used, its own first.
    pub devices: Vec<Device>,
    /// Each end of a flow at this node, in the order of `created`.
    pub ends: Vec<EndReport>,
    /// What each of its worker threads did in its window.
    pub workers: Vec<WorkerResult>,
    /// What its devices' counters grew by in its window.
    pub counters: Option<DeviceCounters>,
    /// Which of them would not show lost packets; the coordinator knows the node.
    pub loss_unknown: Vec<LossUnknown>,
    /// CPU time of the embedded devices' own threads.
    pub engine_cpu_seconds: Option<f64>,
    /// The cores on which those may run.
    pub engine_cores: Option<String>,
    /// CPU time of everything on its machine.
    pub machine_cpu_seconds: Option<f64>,
    /// What it and its devices did over the time of its window.
    pub state: Option<NodeState>,
    /// When faults of its devices let no packet through: from and until, in nanoseconds after the opening of its windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_down_ns: Vec<(i64, i64)>,
    /// Where set-up was measured: what came of it.
    pub set_up: Option<SetUpReport>,
    /// Reasons to doubt all that it measured; the coordinator knows the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt>,
}

/// One end of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EndReport {
    /// Number of the flow in the whole case.
    pub flow: u32,
    /// The end at this node.
    pub side: Side,
    /// Path MTU of its QPs, in bytes.
    pub mtu_bytes: u32,
    /// READs outstanding on one QP.
    pub outstanding_reads: u8,
    /// How its packets went; `None` of adapters.
    #[serde(default)]
    pub wire: Option<WireKind>,
    /// What it sent, wrote or read; the coordinator knows the names.
    pub sent: Option<FlowResult>,
    /// When the first of its workers opened its window, and the last one closed its, by the node's clock in nanoseconds; `None`
    /// of an end whose window neither has a duration nor is of what it sent.
    pub window_ns: Option<(u64, u64)>,
    /// When the last worker opened its window, and the first one closed its.
    #[serde(default)]
    pub shared_ns: Option<(u64, u64)>,
    /// Reasons to doubt what its workers saw, and so the flow.
    #[serde(default)]
    pub doubts: Vec<Doubt>,
    /// What it received in its own window; `None` if it posts no receives.
    pub received: Option<Received>,
    /// Its receive queues and their memory; `None` if it posts no receives.
    pub receive_queues: Option<ReceiveQueues>,
    /// Its memory, if that is not the host's ordinary; the coordinator knows the node.
    pub memory: Option<EndMemory>,
    /// Errors that its workers met.
    pub errors: u64,
    /// Where it sends in lock-step: its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<EndSteps>,
    /// Messages posted on each QP since it was made.
    pub posted_in_all: Vec<u64>,
    /// Messages received on each QP since it was made.
    pub received_in_all: Vec<u64>,
    /// QPs of `sent`, of which those that are not here are asked for.
    pub qps: u32,
    /// Where ends fail alone: why it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<NodeFailure>,
}

/// The steps of an end that sends in lock-step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndSteps {
    /// Times of the node's steps and iterations, at the end that records them.
    pub step_ns: Option<Latency>,
    /// Without pauses.
    pub iteration_ns: Option<Latency>,
    /// The last steps that it ended, by number: nanoseconds from what the step needs until its messages were acknowledged.
    pub times: Vec<(u64, u32)>,
}

/// What a device counted over a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// By how much each counter grew; `None` where that is not known. Those of another device than the node's own have
    /// its name and a colon before theirs.
    pub grown: BTreeMap<String, Option<u64>>,
    /// What the counters that grew mean for packets on the path.
    pub events: Vec<PathEvent>,
}

/// Set-ups that a node measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetUpReport {
    /// Whether the window had begun; without it the coordinator leaves the rest out.
    pub is_measured: bool,
    /// Rounds that began and ended in the window.
    pub rounds: u64,
    /// From the first round's beginning to the last one's end.
    pub seconds: f64,
    /// Set-up time of a round, in nanoseconds: from its begin until both ends have all its QPs in RTS.
    pub setup_ns: Option<Latency>,
    /// Times of each step at this node, in nanoseconds.
    pub steps: Vec<ConnectStep>,
    /// Requests that rdma_cm rejected as stale.
    pub stale_rejections: u64,
    /// Throughput of the traffic alone.
    pub alone_gbit_per_s: Option<f64>,
    /// Length of the warm-up, in seconds.
    pub warmup_seconds: f64,
    /// The traffic came to be steady.
    pub warmup_steady: Option<bool>,
    /// Path MTU and outstanding READs that both nodes agreed on.
    pub path: Option<(u32, u8)>,
}

impl EndReport {
    /// Takes the QPs after the first `kept` ones out, which are asked for.
    pub fn shorten(&mut self, kept: usize) -> Vec<QpResult> {
        let Some(sent) = &mut self.sent else {
            return Vec::new();
        };
        self.qps = u32::try_from(sent.qps.len()).unwrap_or(u32::MAX);
        sent.qps.split_off(kept.min(sent.qps.len()))
    }
}

/// Facts of a node that can be compared with other nodes'. What it cannot read, as without root or of another driver, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeExamination {
    /// The device, port and GID that it would use.
    pub device: Option<Device>,
    /// Why it can use none.
    pub no_device: Option<String>,
    /// Cores that its process may use.
    pub usable_cores: Option<u32>,
    /// How much memory its process may lock.
    pub locked_memory: Option<LockedMemory>,
    /// Whether NTP or PTP keeps its clock.
    pub clock_is_kept: Option<bool>,
    /// Means against loss at the device's network interface.
    pub lossless: Lossless,
    /// What its own checks found that need no other node.
    pub findings: Vec<Finding>,
}

/// A limit of locked memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockedMemory {
    /// None, or the process has CAP_IPC_LOCK.
    Unlimited,
    /// At most so many bytes: RLIMIT_MEMLOCK.
    Bytes(u64),
}

/// Whose queues a QP has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The embedded device's. Its memory that is only read takes none.
    Embedded,
    /// Those of a kernel driver.
    System,
}

impl DeviceKind {
    /// Whose queues the QPs of an open port have.
    pub fn new(port: &Port) -> DeviceKind {
        match port.embedded {
            Some(_) => DeviceKind::Embedded,
            None => DeviceKind::System,
        }
    }
}

/// What a node has of memory for a run, as it tells the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryOffer {
    /// By which its needs are counted.
    pub device: DeviceKind,
    /// In bytes; `None` where it does not know.
    pub bytes: Option<u64>,
    /// What leaves no more: `this machine`, a control group, `--memory`.
    pub by: String,
}

/// The state that a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It is as it should be.
    Ok,
    /// It could not be checked, because root or a program is missing; the finding says which.
    Unknown,
    /// It works, but worse than it could, or may fail.
    Warning,
    /// It does not work at all.
    Broken,
}

impl State {
    /// The state in lower case, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Warning => "warning",
            State::Broken => "broken",
        }
    }
}

/// What one check found, and what mends it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Finding {
    /// What was checked, such as `locked memory`; these words do not change between versions.
    pub check: Cow<'static, str>,
    /// The checked device, port, interface or operation; `null` for the machine.
    pub subject: Option<String>,
    pub state: State,
    /// What was found, in words: `ACTIVE`.
    pub found: String,
    /// Why it matters, as a sentence for the user.
    pub why: String,
    /// The command or action that mends it; `null` if nothing needs mending.
    pub remedy: Option<String>,
}

/// A check. What is not as it should be has a remedy.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// What is checked, such as `locked memory`; these words do not change between versions.
    pub name: &'static str,
    /// Why it matters, as a sentence for the user.
    pub why: &'static str,
}

impl Check {
    pub const fn new(name: &'static str, why: &'static str) -> Check {
        Check { name, why }
    }

    /// It is as it should be.
    pub fn ok(&self, found: impl Into<String>) -> Finding {
        self.finding(State::Ok, found.into(), None)
    }

    /// It could not be checked.
    pub fn unknown(&self, found: impl Into<String>) -> Finding {
        self.finding(State::Unknown, found.into(), None)
    }

    /// It works, but worse than it could.
    pub fn warning(&self, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        self.finding(State::Warning, found.into(), Some(remedy.into()))
    }

    /// It does not work.
    pub fn broken(&self, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        self.finding(State::Broken, found.into(), Some(remedy.into()))
    }

    /// About the whole machine.
    pub fn finding(&self, state: State, found: String, remedy: Option<String>) -> Finding {
        Finding {
            check: Cow::Borrowed(self.name),
            subject: None,
            state,
            found,
            why: self.why.to_owned(),
            remedy,
        }
    }
}

impl Finding {
    /// Says which device, port, interface or operation the finding is about.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Finding {
        self.subject = Some(subject.into());
        self
    }

    /// The check and its subject.
    pub fn label(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{} {subject}", self.check),
            None => self.check.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::frame::encode;
    use crate::frame::tests::first;
    use crate::message::{Message, RunMessage};
    use metrics::latency::HIGHEST_NS;
    use results::model::QpTimeline;

    /// Long in all its figures.
    fn qp(index: u32) -> QpResult {
        const MESSAGES: u64 = 1 << 40;
        let ns = HIGHEST_NS;
        let times = Latency {
            count: MESSAGES,
            min: ns,
            mean: 1e10 / 3.0,
            stddev: 1e10 / 3.0,
            p50: Some(ns),
            p90: Some(ns),
            p95: Some(ns),
            p99: Some(ns),
            p99_9: Some(ns),
            p99_99: Some(ns),
            max: ns,
            overflows: MESSAGES,
            histogram: Some("x".repeat(8 << 10)),
        };
        QpResult {
            index,
            qpn: 0xff_ffff,
            udp_source_port: Some(u16::MAX),
            messages: MESSAGES,
            bytes: MESSAGES << 10,
            gbit_per_s: Some(1e2 / 3.0),
            latency_ns: Some(times.clone()),
            service_ns: Some(times.clone()),
            lateness_ns: Some(times),
            swaps_made: Some(u64::MAX),
            lost: Some(u64::MAX),
        }
    }

    fn end(qps: u32) -> EndReport {
        EndReport {
            flow: 0,
            side: Side::Initiator,
            mtu_bytes: 4096,
            outstanding_reads: 16,
            wire: None,
            sent: Some(FlowResult { qps: (0..qps).map(qp).collect(), ..FlowResult::default() }),
            window_ns: Some((u64::MAX, u64::MAX)),
            shared_ns: Some((u64::MAX, u64::MAX)),
            doubts: Vec::new(),
            received: None,
            receive_queues: None,
            memory: None,
            errors: 0,
            steps: None,
            posted_in_all: vec![1 << 40; qps as usize],
            received_in_all: vec![1 << 40; qps as usize],
            qps: 0,
            failure: None,
        }
    }

    #[test]
    fn counts_of_qps_over_time_pass_the_bounds_of_a_message() {
        // The fewest bytes for a list: nothing moved, and no latencies were recorded.
        for (qps, intervals) in [(2, 128), (128, 128), (1_024, 16)] {
            let mut end = end(qps);
            end.posted_in_all = vec![0; qps as usize];
            end.received_in_all.clear();
            if let Some(sent) = &mut end.sent {
                sent.qps = (0..qps).map(|_| QpResult::default()).collect();
                sent.qp_timeline = Some(QpTimeline {
                    interval_seconds: 0.01,
                    at_seconds: vec![0.01; intervals],
                    messages: vec![vec![0; intervals]; qps as usize],
                });
            }
            end.shorten(QPS_OF_A_MESSAGE);
            let report = NodeReport { ends: vec![end], ..NodeReport::default() };
            let sent = Message::Run(RunMessage::Report(Box::new(report)));
            let received = first(&encode(&sent).unwrap()).unwrap();
            assert_eq!(received, sent, "{qps} QPs");
        }
    }

    #[test]
    fn a_report_fits_a_frame_with_any_number_of_queue_pairs_and_the_rest_is_asked_for() {
        for qps in [1, 384, 385, 800] {
            let mut end = end(qps);
            let rest = end.shorten(QPS_OF_A_MESSAGE);
            let kept = end.sent.as_ref().map_or(0, |sent| sent.qps.len());
            assert_eq!((end.qps, kept + rest.len()), (qps, qps as usize));
            assert_eq!(kept, QPS_OF_A_MESSAGE.min(qps as usize));
            let report = NodeReport { ends: vec![end], ..NodeReport::default() };
            encode(&Message::Run(RunMessage::Report(Box::new(report)))).unwrap();
            for part in rest.chunks(QPS_OF_A_MESSAGE) {
                encode(&Message::Run(RunMessage::Qps(part.to_vec()))).unwrap();
            }
        }
    }
}
