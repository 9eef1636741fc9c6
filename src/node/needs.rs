//! What a case needs at one end: duties, queue sizes, memory. Computed before anything is created.

use std::sync::Arc;

use crate::datapath::{Geometry, sends_inline};
use crate::plan::Case;
use settings::CqMode;
use verbs::{CompletionQueue, ProtectionDomain, QpCapacity, QueuePair, VerbsError};

use crate::protocol::failure::RunFailure;
use crate::protocol::frame::MAX_FRAME_BYTES;
use crate::protocol::posts::Posts;

/// An end of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that runs the sweep; it always sends, writes or reads.
    Client,
    /// The end that serves; it sends, writes or reads only in bidirectional cases.
    Server,
}

/// The tasks of an end in a case.
#[derive(Clone, Copy, Debug)]
pub struct Duties {
    /// It posts sends.
    pub sends: bool,
    /// It posts receives.
    pub receives: bool,
    /// The peer writes to its memory or reads from it.
    pub offers_memory: bool,
}

impl Duties {
    /// The duties of `side` in `case`.
    pub fn of(case: &Case, side: Side) -> Duties {
        let sends = side == Side::Client || case.bidirectional;
        let is_target = side == Side::Server || case.bidirectional;
        Duties {
            sends,
            receives: is_target && case.op.profile().receives,
            offers_memory: is_target && !case.op.profile().receives,
        }
    }
}

/// Worker threads that have work at one end: a worker without a QP of its own has nothing to poll, unless all share
/// one CQ.
pub fn effective_workers(case: &Case) -> usize {
    let workers = match case.cq {
        CqMode::Shared => case.workers,
        CqMode::PerWorker | CqMode::PerQp => case.workers.min(case.qps),
    };
    workers.max(1) as usize
}

/// Latency recorders of an end that sends: one per QP, or per QP and worker if all workers share a CQ.
pub(crate) fn recorders(case: &Case) -> usize {
    let workers = match case.cq {
        CqMode::Shared => effective_workers(case),
        CqMode::PerWorker | CqMode::PerQp => 1,
    };
    workers * case.qps as usize
}

/// Quantities that a case takes at one end.
pub(crate) struct Needs {
    pub(crate) capacity: QpCapacity,
    pub(crate) cqs: u32,
    pub(crate) cq_entries: u32,
}

impl Needs {
    pub(crate) fn of(case: &Case, geometry: &Geometry, duties: Duties) -> Needs {
        let workers = case.workers.min(case.qps).max(1);
        let (cqs, qps_per_cq) = match case.cq {
            CqMode::Shared => (1, case.qps),
            CqMode::PerWorker => (workers, case.qps.div_ceil(workers)),
            CqMode::PerQp => (case.qps, 1),
        };
        let sends = if duties.sends {
            geometry.completions_in_flight()
        } else {
            0
        };
        let receives = if duties.receives { case.rx_depth } else { 0 };
        let all = sends
            .saturating_add(receives)
            .saturating_mul(qps_per_cq)
            .max(1);
        Needs {
            capacity: QpCapacity {
                send_wr: if duties.sends { geometry.depth() } else { 1 },
                recv_wr: receives.max(1),
                inline_bytes: if duties.sends && sends_inline(case) {
                    case.inline_bytes
                } else {
                    0
                },
            },
            cqs,
            cq_entries: case.cq_depth.unwrap_or(all),
        }
    }
}

/// Checks that the number of posts of every WR fits a message, which `--verify` sends to the other end after a run.
///
/// # Errors
/// Bad input: too many WRs.
pub(crate) fn check_posts(case: &Case) -> Result<(), RunFailure> {
    const REST_BYTES: u64 = 1024;
    let ring = Geometry::of(case).ring();
    let bytes = Posts::most_bytes(case.qps, ring) + REST_BYTES;
    if !case.verify || bytes <= MAX_FRAME_BYTES as u64 {
        return Ok(());
    }
    let message = format!(
        "--verify counts how often each WR is posted, and {} QPs of {ring} WRs are more than the ends can tell each other: \
         3 million WRs at most",
        case.qps
    );
    Err(RunFailure::refused(message, "lower --qps or --tx-depth"))
}

/// If a device refused the inline size, names the largest that it accepts, since no query reports it.
pub(crate) fn explain_inline(
    error: VerbsError,
    pd: &Arc<ProtectionDomain>,
    cq: &Arc<CompletionQueue>,
    capacity: QpCapacity,
) -> VerbsError {
    let works = |inline_bytes| {
        let capacity = QpCapacity {
            inline_bytes,
            ..capacity
        };
        QueuePair::new(pd, cq, cq, capacity).is_ok()
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
