//! The queues of one end of a flow: its CQs, its SRQ, and its QPs in INIT, made by the calls that the flow asks for.

use std::sync::Arc;

use settings::{CallStyle, ConnectMode, CqMode, Domains, Settings, Timestamps};
use verbs::{
    Access, CompletionQueue, CqCalls, Port, ProtectionDomain, QpParts, QueuePair, Service,
    SharedReceiveQueue, ThreadDomain, VerbsError,
};

use crate::needs::{Needs, explain_inline};
use crate::node_threads::NodeThreads;
use protocol::failure::RunFailure;

/// The queues of an end.
pub(super) struct Queues {
    pub(super) cqs: Vec<Arc<CompletionQueue>>,
    pub(super) srq: Option<Arc<SharedReceiveQueue>>,
    pub(super) qps: Vec<Arc<QueuePair>>,
}

impl Queues {
    /// Creates what `needs` says, for `threads` of the node to serve: one for each worker. The peer has `access` through
    /// the QPs. Calls `alive` from time to time, which may end it.
    ///
    /// # Errors
    /// A failed call, or an error of `alive`.
    pub(super) fn create(
        (port, pd): (&Port, &Arc<ProtectionDomain>),
        (flow, service): (&Settings, Service),
        needs: &Needs,
        access: Access,
        (node_threads, threads): (&mut NodeThreads, &[usize]),
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<Queues, RunFailure> {
        let cqs = (0..needs.cqs as usize)
            .map(|index| {
                completion_queue(port, flow, needs, node_threads, pollers(flow, threads, index))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let srq =
            needs.srq_wrs.map(|wrs| SharedReceiveQueue::new(pd, wrs, flow.sges)).transpose()?;
        let domains = match flow.domains {
            Domains::Usual => Vec::new(),
            Domains::Thread => {
                threads.iter().map(|_| ThreadDomain::new(pd)).collect::<Result<Vec<_>, _>>()?
            }
        };
        let mut qps = Vec::with_capacity(flow.qps as usize);
        for index in 0..flow.qps as usize {
            alive()?;
            let cq = cq_of(flow, &cqs, index);
            let parts = QpParts {
                srq: srq.as_ref(),
                // QPs belong to workers in turn.
                domain: domains.get(index % domains.len().max(1)),
                extended_post: flow.post == CallStyle::Extended,
            };
            let qp = QueuePair::with_parts(service, pd, [cq, cq], parts, needs.capacity)
                .map_err(|error| explain_inline(error, pd, cq, needs.capacity, service))?;
            // rdma_cm supplies the attributes of INIT with the connection.
            if flow.connect == ConnectMode::Tcp {
                qp.to_init(port.info.port, port.pkey_index, access)?;
            }
            qps.push(qp);
        }
        Ok(Queues { cqs, srq, qps })
    }
}

fn completion_queue(
    port: &Port,
    flow: &Settings,
    needs: &Needs,
    node_threads: &mut NodeThreads,
    pollers: &[usize],
) -> Result<Arc<CompletionQueue>, VerbsError> {
    let calls = CqCalls {
        extended: flow.poll_api == CallStyle::Extended,
        stamps: flow.timestamps == Timestamps::Device,
        single_threaded: flow.domains == Domains::Thread,
    };
    let channel = node_threads.channel(&port.context, pollers)?;
    let vector = pollers.first().copied().unwrap_or(0);
    let sleeps_on = channel.as_ref().map(|channel| (channel, vector));
    CompletionQueue::with_calls(&port.context, needs.cq_entries, calls, sleeps_on)
}

/// Those of `threads` that poll CQ `index`.
fn pollers<'t>(flow: &Settings, threads: &'t [usize], index: usize) -> &'t [usize] {
    match flow.cq {
        CqMode::Shared => threads,
        CqMode::PerWorker | CqMode::PerQp => {
            let poller = threads.get(index % threads.len().max(1));
            poller.map(std::slice::from_ref).unwrap_or_default()
        }
    }
}

fn cq_of<'c>(
    flow: &Settings,
    cqs: &'c [Arc<CompletionQueue>],
    qp: usize,
) -> &'c Arc<CompletionQueue> {
    let index = match flow.cq {
        CqMode::Shared => 0,
        CqMode::PerWorker => qp % cqs.len().max(1),
        CqMode::PerQp => qp,
    };
    &cqs[index]
}
