//! QPs, CQs and workers on `null0`, a verbs library in this process that completes every WR at once and moves no bytes.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use datapath::{
    Geometry, Layout, QpContext, RemoteMemory, Sender, Shared, Sizes, ThreadSpec, WorkerSpec,
};
use plan::Case;
use settings::CqMode;
use verbs::{
    Access, CompletionQueue, MemoryRegion, Port, PortRequest, ProtectionDomain, QpCapacity,
    QueuePair, select,
};

use crate::wait::wait_for;

/// Workers are in each of their phases at once; a window takes less.
const USUAL: Duration = Duration::from_secs(1);

pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// The only port of `null0`.
pub fn port() -> Outcome<Port> {
    let request = PortRequest { device: Some("null0".into()), ..PortRequest::default() };
    Ok(select(crate::null_library::null_library(), &request, None)?)
}

pub fn wait_until(shared: &Shared, mut done: impl FnMut() -> bool) -> Outcome<()> {
    let ended = wait_for("the workers of the null library", USUAL, || {
        let failed = shared.has_failed();
        (failed || done()).then_some(failed)
    });
    if ended { Err("the null library failed a WR".into()) } else { Ok(()) }
}

/// QPs with their rings, and the CQs. `null0` accepts WRs in any state, so nothing is connected.
pub fn qp_contexts(
    port: &Port,
    case: &Case,
) -> Outcome<(Vec<QpContext>, Vec<Arc<CompletionQueue>>)> {
    let geometry = Geometry::from_flow(case);
    let layout = Layout::requests(case, &geometry);
    let pd = ProtectionDomain::new(&port.context)?;
    let memory = MemoryRegion::new(&pd, layout.total_bytes(), Access::LocalWrite, None)?;
    let cqs = match case.cq {
        CqMode::Shared => 1,
        CqMode::PerWorker => case.workers,
        CqMode::PerQp => case.qps,
    };
    let entries = case.qps.div_ceil(cqs) * geometry.completions_in_flight();
    let cqs = (0..cqs)
        .map(|_| CompletionQueue::new(&port.context, entries))
        .collect::<Result<Vec<_>, _>>()?;
    let remote = RemoteMemory { address: memory.address(), rkey: memory.rkey() };
    let sizes = Sizes::new(case);
    let qp_contexts = (0..case.qps)
        .zip(cqs.iter().cycle())
        .map(|(index, cq)| {
            let qp = QueuePair::new(&pd, cq, cq, capacity(geometry.depth()))?;
            let sender = Sender::new(case, &sizes, index, &qp, &memory, remote)?;
            Ok(QpContext { numbered: None, qp, sender: Some(sender), receiver: None })
        })
        .collect::<Outcome<Vec<_>>>()?;
    Ok((qp_contexts, cqs))
}

pub fn capacity(send_wr: u32) -> QpCapacity {
    QpCapacity { send_wr, recv_wr: 1, inline_bytes: 0, sges: 1 }
}

/// Workers on the last cores; QPs are assigned in turn.
pub fn specs(case: &Case, cqs: &[Arc<CompletionQueue>], cores: &[usize]) -> Vec<ThreadSpec> {
    let workers = case.workers as usize;
    let mut last_first = cores.iter().rev().copied();
    (0..workers)
        .map(|index| {
            let cqs = match case.cq {
                CqMode::Shared => cqs.to_vec(),
                CqMode::PerWorker | CqMode::PerQp => {
                    cqs.iter().skip(index).step_by(workers).cloned().collect()
                }
            };
            let qps = (index..case.qps as usize).step_by(workers).collect();
            ThreadSpec {
                core: last_first.next(),
                sleep: None,
                flows: vec![Some(WorkerSpec { cqs, qps })],
            }
        })
        .collect()
}
