//! The memory that a case takes, by kind, counted before any of it is allocated: by `--dry-run`, by the coordinator
//! before the first case, and by each node before a run. Memory behind an MR is pinned, and the kernel kills a process
//! that asks for more than there is.

use std::fmt;

use datapath::{Geometry, Layout, LockStep, Receiver, Sender, WORKER_BYTES_PER_QP};
use machine::host::memory_text;
use metrics::{latency::digits_for, timeline};
use plan::{Case, Side, Sweep};
use protocol::{
    endpoints::QpEndpoint,
    failure::RunFailure,
    node_report::{DeviceKind, MemoryOffer},
};
use results::model::QpResult;
use settings::{
    CallStyle, ConnectMode, MemoryPlace, MrMode, RecvQueue, Settings, Stop, Timestamps,
};
use softroce::transport::{completion_queue_bytes, queue_pair_bytes, receive_queue_bytes};
use verbs::{QpCapacity, rounded_to_huge_pages};

use crate::{
    memory_place,
    needs::{EndRoles, Needs, check_posts, effective_workers, recorders},
    resources::NodeResources,
    run::set_up_qps,
};

/// The used part of a worker's stack, and its share of the allocator.
const THREAD_BYTES: u64 = 256 << 10;

/// A QP's latency distribution in a result.
const HISTOGRAM_TEXT_BYTES: u64 = 1 << 10;

/// Objects of a QP that are not counted one by one: our own wrappers, and the JSON of its connection array.
const QP_OBJECTS_BYTES: u64 = 1 << 10;

/// Memory of an MR besides its bytes, in the device and here.
const MR_BYTES: u64 = 512;

/// Memory of a connection in rdma_cm, in the kernel and here.
const CM_ID_BYTES: u64 = 4 << 10;

/// Memory of a QP in a kernel device, which no program can query: an estimate of what adapter drivers and rxe
/// allocate, rounded up. A QP has a context, a doorbell and queues of whole pages.
const SYSTEM_QP_BYTES: u64 = 16 << 10;
const SYSTEM_SEND_WR_BYTES: u64 = 256;
const SYSTEM_RECV_WR_BYTES: u64 = 96;
const SYSTEM_SGE_BYTES: u64 = 16;
const SYSTEM_SRQ_BYTES: u64 = 8 << 10;
const SYSTEM_CQ_BYTES: u64 = 8 << 10;
const SYSTEM_CQE_BYTES: u64 = 64;

/// A work request of extended posting while it is built, on the embedded device.
const BUILT_WR_BYTES: u64 = 160;

/// A sample of a timeline: its time and count, and their JSON.
const TIMELINE_SAMPLE_BYTES: u64 = 32;

/// A count of a QP over time, and its JSON.
const QP_SAMPLE_BYTES: u64 = 16;

/// Samples of a run with a message count, assumed to last a few seconds.
const SAMPLES_OF_COUNTED: u64 = 500;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What messages are sent from and received in: the bytes of all MRs.
    Buffers,
    /// The WRs of all QPs, which are built once.
    WorkRequests,
    /// The device's QPs and CQs.
    DeviceQueues,
    Latencies,
    /// Threads, and their state for every QP.
    Workers,
    /// The results of all runs of a sweep.
    Results,
}

impl Kind {
    const ALL: [Kind; 6] = [
        Kind::Buffers,
        Kind::WorkRequests,
        Kind::DeviceQueues,
        Kind::Latencies,
        Kind::Workers,
        Kind::Results,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Buffers => "buffers",
            Kind::WorkRequests => "work requests",
            Kind::DeviceQueues => "QPs and CQs",
            Kind::Latencies => "latencies",
            Kind::Workers => "workers",
            Kind::Results => "results",
        }
    }

    /// What to change if this kind takes too much.
    fn remedy(self) -> &'static str {
        match self {
            Kind::Buffers => "lower --memory, --qps, --size or (with --verify) the depths",
            Kind::WorkRequests | Kind::DeviceQueues => "lower --qps, --tx-depth or --rx-depth",
            Kind::Latencies => {
                "lower --qps or --workers, take --cq per-worker, or leave latencies out with --no-latency"
            }
            Kind::Workers => "lower --workers or --qps",
            Kind::Results => "run fewer cases or --runs at a time",
        }
    }
}

/// Memory by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeeds([u64; Kind::ALL.len()]);

impl MemoryNeeds {
    /// Checks that `offer` has room for it. `what` names the user of the memory: `the case …`.
    ///
    /// # Errors
    /// Bad input, with the sum of each kind.
    pub fn check(&self, offer: &MemoryOffer, what: &str) -> Result<(), RunFailure> {
        let Some(left) = offer.bytes.filter(|left| self.total() > *left) else {
            return Ok(());
        };
        let message =
            format!("{what} takes {self} of memory, and {} leaves {}", offer.by, memory_text(left));
        Err(RunFailure::refused(message, self.largest().remedy()))
    }

    pub fn of_buffers(bytes: u64) -> MemoryNeeds {
        MemoryNeeds::default().with(Kind::Buffers, bytes)
    }

    /// A run of `case` at node number `node`, without results.
    pub fn new(case: &Case, node: u32, device: DeviceKind) -> MemoryNeeds {
        let set_up = case.is_set_up().then(|| of_rounds(case, device));
        case.ends_at(node).fold(set_up.unwrap_or_default(), |sum, (_, flow, side)| {
            sum.and(of_traffic(flow, side, device))
        })
    }

    /// A sweep at the coordinator's host: the results of its runs, and its largest case, which is named. `nodes` are those
    /// that share the host, with their devices.
    pub fn of_sweep<'s>(
        sweep: &'s Sweep,
        nodes: &[(u32, DeviceKind)],
    ) -> Option<(&'s Case, MemoryNeeds)> {
        let of_a_pass: u64 = sweep.cases.iter().map(result_bytes).sum();
        let results = of_a_pass.saturating_mul(sweep.most_runs().into());
        let (case, needs) = sweep
            .cases
            .iter()
            .map(|case| {
                let of_nodes =
                    nodes.iter().map(|(node, device)| MemoryNeeds::new(case, *node, *device));
                (case, of_nodes.fold(MemoryNeeds::default(), MemoryNeeds::and))
            })
            .max_by_key(|(_, needs)| needs.total())?;
        Some((case, needs.with(Kind::Results, results)))
    }

    /// The sum of all kinds.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    fn largest(&self) -> Kind {
        Kind::ALL.into_iter().max_by_key(|kind| self.0[*kind as usize]).unwrap_or(Kind::Buffers)
    }

    fn with(mut self, kind: Kind, bytes: u64) -> MemoryNeeds {
        let place = &mut self.0[kind as usize];
        *place = place.saturating_add(bytes);
        self
    }

    fn and(self, other: MemoryNeeds) -> MemoryNeeds {
        Kind::ALL.into_iter().fold(self, |sum, kind| sum.with(kind, other.0[kind as usize]))
    }
}

impl fmt::Display for MemoryNeeds {
    /// `6.1 GiB (work requests 5.2 GiB, QPs and CQs 0.9 GiB)`: the largest kinds, in descending order.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let mut kinds: Vec<_> = Kind::ALL.map(|kind| (self.0[kind as usize], kind)).into();
        kinds.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        kinds.retain(|(bytes, _)| *bytes > total / 20);
        let parts: Vec<_> = kinds
            .iter()
            .map(|(bytes, kind)| format!("{} {}", kind.name(), memory_text(*bytes)))
            .collect();
        write!(f, "{} ({})", memory_text(total), parts.join(", "))
    }
}

/// Checks, before anything is allocated, that a node has the memory for a run of `case` and that its results fit a
/// message.
///
/// # Errors
/// Bad input: not enough memory, with the sum of each kind; results that are too large.
pub(crate) fn admit(case: &Case, node: u32, resources: &NodeResources) -> Result<(), RunFailure> {
    case.flows.iter().try_for_each(|flow| check_posts(flow))?;
    let needs = MemoryNeeds::new(case, node, resources.device_kind());
    needs.check(&resources.memory_offer(), &format!("the case {}", case.id))?;
    memory_place::check_gpus(case, &[(node, resources.device_kind())])
}

/// Memory that an end may have: whether it has it, whether it is written even if nothing looks at payloads, and its layout.
fn regions(flow: &Settings, side: Side) -> [(bool, bool, Layout); 3] {
    let roles = EndRoles::new(flow, side);
    let requests = Layout::requests(flow, &Geometry::from_flow(flow));
    let fetches = flow.op.profile().fetches;
    [
        (roles.sends, fetches, requests),
        (roles.receives, true, Layout::receives(flow)),
        (roles.offers_memory, !fetches, requests),
    ]
}

/// Bytes of the messages' memory of an end, wherever it lies.
pub(crate) fn buffer_bytes(flow: &Settings, side: Side) -> u64 {
    let wanted = regions(flow, side).into_iter().filter(|(wanted, ..)| *wanted);
    wanted.map(|(.., layout)| layout.registered_bytes() as u64).fold(0, u64::saturating_add)
}

fn of_traffic(flow: &Settings, side: Side, device: DeviceKind) -> MemoryNeeds {
    let roles = EndRoles::new(flow, side);
    let geometry = Geometry::from_flow(flow);
    let needs = Needs::new(flow, &geometry, roles);
    let qps = u64::from(flow.qps);
    let regions = regions(flow, side);
    let buffers = regions
        .iter()
        .filter(|(wanted, written, _)| {
            let is_filled = *written || flow.verify || flow.memory_bytes.is_some();
            *wanted && (is_filled || device == DeviceKind::System)
        })
        .map(|(.., layout)| match memory_place::named(flow, side) {
            // They are reserved already, and no part of what is available.
            MemoryPlace::Huge => 0,
            MemoryPlace::Transparent => rounded_to_huge_pages(layout.registered_bytes() as u64),
            MemoryPlace::Ordinary | MemoryPlace::Dmabuf => layout.registered_bytes() as u64,
            MemoryPlace::Gpu(..) => 0,
        })
        .fold(0, u64::saturating_add);
    let mrs = regions.iter().filter(|(wanted, ..)| *wanted);
    let mrs = match flow.mr {
        MrMode::One => mrs.count() as u64,
        MrMode::PerQp => mrs.map(|(.., layout)| layout.qps() as u64).sum(),
    };
    let srq = match needs.srq_wrs {
        Some(_) => of_srq(flow, device),
        None => SrqBytes::default(),
    };
    let mut rings = 0;
    if roles.sends {
        rings += Sender::memory_bytes(flow) as u64;
    }
    if roles.receives {
        rings += Receiver::memory_bytes(flow) as u64;
    }
    let qp_bytes = of_qp(flow, device, needs.capacity);
    let cq_bytes = of_cq(flow, device, needs.cq_entries);
    let works = roles.sends || roles.receives;
    let workers = if works { effective_workers(flow) as u64 } else { 0 };
    let latencies = if !flow.no_latency && roles.sends {
        let recorders = recorders(flow);
        recorders as u64 * digits_for(recorders).recorder_bytes() as u64
    } else {
        0
    };
    let of_steps = if flow.lock_step {
        qps * LockStep::BYTES_PER_QP as u64 + workers * LockStep::BYTES_PER_WORKER as u64
    } else {
        0
    };
    MemoryNeeds::default()
        .with(Kind::Workers, of_steps)
        .with(Kind::Buffers, buffers)
        .with(Kind::WorkRequests, rings.saturating_mul(qps))
        .with(Kind::WorkRequests, srq.prebuilt)
        .with(Kind::DeviceQueues, srq.queue)
        .with(Kind::DeviceQueues, mrs * MR_BYTES)
        .with(Kind::DeviceQueues, qp_bytes.saturating_mul(qps))
        .with(Kind::DeviceQueues, cq_bytes.saturating_mul(needs.cqs.into()))
        .with(Kind::Latencies, latencies)
        .with(Kind::Workers, workers * (THREAD_BYTES + qps * WORKER_BYTES_PER_QP as u64))
}

/// QPs that are set up and destroyed: all QPs of a round exist at once.
fn of_rounds(case: &Case, device: DeviceKind) -> MemoryNeeds {
    let qp_bytes = of_qp(case, device, set_up_qps::CAPACITY);
    MemoryNeeds::default().with(Kind::DeviceQueues, qp_bytes * u64::from(case.qps))
}

fn of_qp(case: &Settings, device: DeviceKind, capacity: QpCapacity) -> u64 {
    let QpCapacity { send_wr, recv_wr, inline_bytes, sges } = capacity;
    let messages = 2 * size_of::<QpEndpoint>() as u64;
    let connection = match case.connect {
        ConnectMode::Tcp => 0,
        ConnectMode::Cm => CM_ID_BYTES,
    };
    let queues = match device {
        DeviceKind::Embedded => {
            let built = match case.post {
                CallStyle::Legacy => 0,
                CallStyle::Extended => {
                    BUILT_WR_BYTES + further_sges(sges) + u64::from(inline_bytes)
                }
            };
            queue_pair_bytes(send_wr, recv_wr, inline_bytes, sges)
                + u64::from(case.post_list) * built
        }
        DeviceKind::System => {
            SYSTEM_QP_BYTES
                + (SYSTEM_SEND_WR_BYTES + further_sges(sges) + u64::from(inline_bytes))
                    * u64::from(send_wr)
                + system_receives(recv_wr, sges)
        }
    };
    QP_OBJECTS_BYTES + messages + connection + queues
}

/// Bytes of a queue of `rx_depth` receives, in the device.
fn receive_queue(flow: &Settings, device: DeviceKind) -> u64 {
    match device {
        DeviceKind::Embedded => receive_queue_bytes(flow.rx_depth, flow.sges),
        DeviceKind::System => system_receives(flow.rx_depth, flow.sges),
    }
}

/// Bytes of what an SRQ takes.
#[derive(Clone, Copy, Default)]
struct SrqBytes {
    prebuilt: u64,
    queue: u64,
}

fn of_srq(flow: &Settings, device: DeviceKind) -> SrqBytes {
    let object = match device {
        DeviceKind::Embedded => 0,
        DeviceKind::System => SYSTEM_SRQ_BYTES,
    };
    SrqBytes {
        prebuilt: Receiver::queue_bytes(flow) as u64,
        queue: object + receive_queue(flow, device),
    }
}

/// Memory of the receives of a flow's receiving end, without their buffers: prebuilt, and in the device's queues.
pub(crate) fn of_receive_queues(flow: &Settings, device: DeviceKind) -> u64 {
    match flow.recv_queue {
        RecvQueue::Shared => {
            let srq = of_srq(flow, device);
            srq.prebuilt + srq.queue
        }
        RecvQueue::PerQp => {
            let prebuilt = Receiver::queue_bytes(flow) as u64;
            u64::from(flow.qps) * (prebuilt + receive_queue(flow, device))
        }
    }
}

fn system_receives(wrs: u32, sges: u32) -> u64 {
    (SYSTEM_RECV_WR_BYTES + further_sges(sges)) * u64::from(wrs)
}

/// Memory of a work request's elements after the first, which is counted with it.
fn further_sges(sges: u32) -> u64 {
    SYSTEM_SGE_BYTES * u64::from(sges.saturating_sub(1))
}

fn of_cq(flow: &Settings, device: DeviceKind, entries: u32) -> u64 {
    let has_stamps = flow.timestamps == Timestamps::Device;
    match device {
        DeviceKind::Embedded => completion_queue_bytes(entries, has_stamps),
        DeviceKind::System => SYSTEM_CQ_BYTES + SYSTEM_CQE_BYTES * u64::from(entries),
    }
}

/// Memory of each run of a case in the result.
fn result_bytes(case: &Case) -> u64 {
    let samples = match case.stop() {
        Stop::DurationNs(ns) => (ns / timeline::INTERVAL_NS).min(timeline::MOST_SAMPLES as u64),
        Stop::MessagesPerQp(_) => SAMPLES_OF_COUNTED,
    };
    // Flows with senders at different nodes have counts of their own.
    let of_qps: u64 = case
        .flows
        .iter()
        .map(|flow| {
            let directions = if flow.bidirectional { 2 } else { 1 };
            let histograms = match (flow.no_latency, flow.is_closed_loop()) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 3,
            };
            let histogram = histograms * HISTOGRAM_TEXT_BYTES;
            directions * u64::from(flow.qps) * (size_of::<QpResult>() as u64 + histogram)
        })
        .sum();
    let counts: u64 = case
        .flows
        .iter()
        .map(|flow| {
            let each = timeline::most_intervals(flow.qps as usize, timeline::MOST_COUNTS);
            let directions = if flow.bidirectional { 2 } else { 1 };
            directions * u64::from(flow.qps) * (each.unwrap_or(0) as u64).min(samples)
        })
        .sum();
    of_qps + samples * TIMELINE_SAMPLE_BYTES + counts * QP_SAMPLE_BYTES
}
