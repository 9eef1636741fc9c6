//! Connects the QPs of a run through rdma_cm and makes the contexts for its workers.

use crate::port_path::Agreed;
use crate::verbs_objects::VerbsObjects;
use datapath::QpContext;
use protocol::endpoints::Endpoints;
use protocol::failure::RunFailure;
use protocol::message::CmListening;
use verbs::cm::CmId;

use super::connect_cm::{Caller, Listener, Terms};

/// At the initiator: connects its QPs to those of the target's listener.
///
/// # Errors
/// An array that does not fit the flow, a step that failed, or an error of `alive`.
pub(crate) fn dial_qps(
    objects: &mut VerbsObjects,
    peer: &Endpoints,
    listening: &CmListening,
    alive: impl Fn() -> Result<(), RunFailure>,
) -> Result<Vec<QpContext>, RunFailure> {
    let agreed = objects.agree(peer)?;
    let terms = terms(objects, &agreed, peer)?;
    let mut qp_contexts = QpContexts::new(objects, &agreed, peer);
    let caller = Caller::new(listening, objects.port().context.library())?;
    let (connections, times) =
        caller.dial(&terms, agreed.gid(), alive, |index, id, _| qp_contexts.add(index, id))?;
    if let Some(slowest) = times.iter().max_by_key(|times| times.connect_ns) {
        tracing::debug!(connections = times.len(), ?slowest, "rdma_cm connected all");
    }
    let in_order = qp_contexts.into_contexts();
    objects.keep(connections);
    Ok(in_order)
}

/// At the target: accepts the connections.
pub(crate) fn accept_qps(
    objects: &mut VerbsObjects,
    peer: &Endpoints,
    listener: &Listener,
    alive: impl Fn() -> Result<(), RunFailure>,
) -> Result<Vec<QpContext>, RunFailure> {
    let agreed = objects.agree(peer)?;
    let terms = terms(objects, &agreed, peer)?;
    let mut qp_contexts = QpContexts::new(objects, &agreed, peer);
    let connections = listener.accept(&terms, alive, |index, id, _| qp_contexts.add(index, id))?;
    let in_order = qp_contexts.into_contexts();
    objects.keep(connections);
    Ok(in_order)
}

fn terms(objects: &VerbsObjects, agreed: &Agreed, peer: &Endpoints) -> Result<Terms, RunFailure> {
    let ours = objects.qps().iter().map(|qp| qp.qpn()).collect();
    let theirs = peer.qps.iter().map(|qp| qp.qpn).collect();
    Terms::new(objects.port(), agreed, ours, Some(theirs))
}

/// Contexts in the order in which the connections come.
struct QpContexts<'a> {
    objects: &'a VerbsObjects,
    agreed: &'a Agreed,
    peer: &'a Endpoints,
    qp_contexts: Vec<(u32, QpContext)>,
}

impl<'a> QpContexts<'a> {
    fn new(objects: &'a VerbsObjects, agreed: &'a Agreed, peer: &'a Endpoints) -> Self {
        QpContexts { objects, agreed, peer, qp_contexts: Vec::with_capacity(peer.qps.len()) }
    }

    fn add(&mut self, index: u32, id: &CmId) -> Result<(), RunFailure> {
        let Some(remote) = self.peer.qps.get(index as usize) else {
            return Ok(());
        };
        let agreed = self.agreed;
        let access = self.objects.remote_access();
        let qp_context = self.objects.qp_context(
            index,
            remote,
            |qp| {
                qp.to_init_by_cm(id, access)?;
                Ok(qp.to_rtr_by_cm(id, &agreed.path(index), remote.qpn, &agreed.reliability)?)
            },
            |qp| Ok(qp.to_rts_by_cm(id, &agreed.reliability)?),
        )?;
        self.qp_contexts.push((index, qp_context));
        Ok(())
    }

    /// All contexts, in QP order.
    fn into_contexts(mut self) -> Vec<QpContext> {
        self.qp_contexts.sort_unstable_by_key(|(index, _)| *index);
        self.qp_contexts.into_iter().map(|(_, qp_context)| qp_context).collect()
    }
}
