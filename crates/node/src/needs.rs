//! What a flow needs at one of its ends: roles, queue sizes, memory. Computed before anything is created.

use std::sync::Arc;

use datapath::{Geometry, sends_inline};
use plan::Side;
use settings::{Access, CqMode, RecvQueue, Settings, Timestamps};
use verbs::{
    CompletionQueue, ProtectionDomain, QpCapacity, QpParts, QueuePair, Service, VerbsError,
};

use protocol::failure::RunFailure;
use protocol::frame::MAX_FRAME_BYTES;
use protocol::posts::Posts;

/// The tasks of an end in a flow.
#[derive(Clone, Copy, Debug)]
pub struct EndRoles {
    /// It begins what it sends; elsewhere it answers.
    pub initiates: bool,
    /// It posts sends.
    pub sends: bool,
    /// It posts receives.
    pub receives: bool,
    /// The peer writes to its memory or reads from it.
    pub offers_memory: bool,
}

impl EndRoles {
    /// The roles of `side` in `flow`.
    pub fn new(flow: &Settings, side: Side) -> EndRoles {
        let is_both = flow.bidirectional || flow.is_answered();
        let sends = side == Side::Initiator || is_both;
        let is_target = side == Side::Target || is_both;
        let profile = flow.op.profile();
        EndRoles {
            initiates: side == Side::Initiator || flow.bidirectional,
            sends,
            receives: is_target && profile.receives,
            offers_memory: is_target && profile.access != Access::None,
        }
    }
}

/// Worker threads that have work at one end: a worker without a QP of its own has nothing to poll, unless all share
/// one CQ.
pub fn effective_workers(flow: &Settings) -> usize {
    let workers = match flow.cq {
        CqMode::Shared => flow.workers,
        CqMode::PerWorker | CqMode::PerQp => flow.workers.min(flow.qps),
    };
    workers.max(1) as usize
}

/// Latency recorders of an end that sends: one per QP, or per QP and worker if all workers share a CQ. In an open loop
/// there are as many for the times from the post, and one per QP for lateness; with the device's stamps one per worker for
/// the times from there.
pub(crate) fn recorders(flow: &Settings) -> usize {
    let workers = match flow.cq {
        CqMode::Shared => effective_workers(flow),
        CqMode::PerWorker | CqMode::PerQp => 1,
    };
    let each = workers * flow.qps as usize;
    let notices = match flow.timestamps {
        Timestamps::Cpu => 0,
        Timestamps::Device => effective_workers(flow),
    };
    notices + if flow.is_closed_loop() { each } else { 2 * each + flow.qps as usize }
}

/// Quantities that a flow takes at one end.
pub(crate) struct Needs {
    pub(crate) capacity: QpCapacity,
    /// Receives of the SRQ, if it takes one.
    pub(crate) srq_wrs: Option<u32>,
    pub(crate) cqs: u32,
    pub(crate) cq_entries: u32,
}

impl Needs {
    pub(crate) fn new(flow: &Settings, geometry: &Geometry, roles: EndRoles) -> Needs {
        let workers = flow.workers.min(flow.qps).max(1);
        let (cqs, qps_per_cq) = match flow.cq {
            CqMode::Shared => (1, flow.qps),
            CqMode::PerWorker => (workers, flow.qps.div_ceil(workers)),
            CqMode::PerQp => (flow.qps, 1),
        };
        let sends = if roles.sends { geometry.completions_in_flight() } else { 0 };
        let receives = if roles.receives { flow.rx_depth } else { 0 };
        let is_shared = roles.receives && flow.recv_queue == RecvQueue::Shared;
        let received = if roles.receives { flow.receives_of(qps_per_cq) } else { 0 };
        let completions = u64::from(sends) * u64::from(qps_per_cq) + received;
        let entries = u32::try_from(completions).unwrap_or(u32::MAX).max(1);
        Needs {
            capacity: QpCapacity {
                send_wr: if roles.sends { geometry.depth() } else { 1 },
                recv_wr: if is_shared { 0 } else { receives.max(1) },
                inline_bytes: if roles.sends
                    && flow.sizes().any(|(bytes, _)| sends_inline(flow, bytes))
                {
                    flow.inline_bytes
                } else {
                    0
                },
                sges: flow.sges,
            },
            srq_wrs: is_shared.then_some(receives),
            cqs,
            cq_entries: flow.cq_depth.unwrap_or(entries),
        }
    }
}

/// Checks that the number of posts of every WR fits a message, which `--verify` sends to the other node after a run.
pub fn check_posts(flow: &Settings) -> Result<(), RunFailure> {
    const REST_BYTES: u64 = 1024;
    let ring = Geometry::from_flow(flow).ring();
    let bytes = Posts::most_bytes(flow.qps, ring) + REST_BYTES;
    if !flow.verify || bytes <= MAX_FRAME_BYTES as u64 {
        return Ok(());
    }
    let message = format!(
        "--verify can count 3 million WRs at most, but there are {} QPs of {ring} WRs",
        flow.qps
    );
    Err(RunFailure::refused(message, "lower --qps or --tx-depth"))
}

/// If a device refused the inline size, names the largest that it accepts, since no query reports it.
pub(crate) fn explain_inline(
    error: VerbsError,
    pd: &Arc<ProtectionDomain>,
    cq: &Arc<CompletionQueue>,
    capacity: QpCapacity,
    service: Service,
) -> VerbsError {
    let works = |inline_bytes| {
        let capacity = QpCapacity { inline_bytes, ..capacity };
        QueuePair::with_parts(service, pd, [cq, cq], QpParts::default(), capacity).is_ok()
    };
    if capacity.inline_bytes == 0 || !works(0) {
        return error;
    }
    let (mut good, mut bad) = (0, capacity.inline_bytes);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if works(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    VerbsError::DeviceLimit {
        device: pd.context().name().to_owned(),
        what: "bytes inline with these depths",
        limit: good.into(),
        needed: capacity.inline_bytes.into(),
        flags: "--inline",
    }
}
