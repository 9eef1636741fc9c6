//! The QPs of a run, connected through rdma_cm, become the lanes of its workers.

use crate::datapath::Lane;
use crate::node::fabric::Fabric;
use crate::node::port_path::Agreed;
use crate::protocol::endpoints::Endpoints;
use crate::protocol::failure::RunFailure;
use crate::protocol::link::Link;
use crate::protocol::message::{CmListening, Message};
use verbs::cm::CmId;

use super::connect_cm::{Caller, Listener, Terms};

/// The client's: connects the QPs to those of the server's listener.
///
/// # Errors
/// An array that does not fit the case, a step that failed, or what `alive` says.
pub(crate) fn dial_lanes(
    fabric: &mut Fabric,
    peer: &Endpoints,
    listening: &CmListening,
    alive: impl Fn() -> Result<(), RunFailure>,
) -> Result<Vec<Lane>, RunFailure> {
    let agreed = fabric.agree(peer)?;
    let terms = terms(fabric, &agreed, peer)?;
    let mut lanes = Lanes::new(fabric, &agreed, peer);
    let caller = Caller::new(listening)?;
    let (connections, times) = caller.dial(&terms, agreed.gid(), alive, |index, id, _| {
        lanes.add(index, id)
    })?;
    if let Some(slowest) = times.iter().max_by_key(|times| times.connect_ns) {
        tracing::debug!(connections = times.len(), ?slowest, "rdma_cm connected all");
    }
    let lanes = lanes.all();
    fabric.keep(connections);
    Ok(lanes)
}

/// The server's: listens, tells the client its array and where, and takes the connections.
///
/// # Errors
/// As [`dial_lanes`].
pub(crate) fn accept_lanes(
    fabric: &mut Fabric,
    peer: &Endpoints,
    link: &Link,
    alive: impl Fn() -> Result<(), RunFailure>,
) -> Result<Vec<Lane>, RunFailure> {
    let agreed = fabric.agree(peer)?;
    let terms = terms(fabric, &agreed, peer)?;
    let listener = Listener::open(fabric.port())?;
    link.send(&Message::Endpoints(Box::new(fabric.endpoints())))?;
    link.send(&Message::CmListening(listener.listening()))?;
    let mut lanes = Lanes::new(fabric, &agreed, peer);
    let connections = listener.accept(&terms, alive, |index, id, _| lanes.add(index, id))?;
    let lanes = lanes.all();
    fabric.keep(connections);
    Ok(lanes)
}

fn terms(fabric: &Fabric, agreed: &Agreed, peer: &Endpoints) -> Result<Terms, RunFailure> {
    let ours = fabric.qps().iter().map(|qp| qp.qpn()).collect();
    let theirs = peer.qps.iter().map(|qp| qp.qpn).collect();
    Terms::new(fabric.port(), agreed, ours, Some(theirs))
}

/// Lanes in the order in which connections come.
struct Lanes<'a> {
    fabric: &'a Fabric,
    agreed: &'a Agreed,
    peer: &'a Endpoints,
    lanes: Vec<(u32, Lane)>,
}

impl<'a> Lanes<'a> {
    fn new(fabric: &'a Fabric, agreed: &'a Agreed, peer: &'a Endpoints) -> Self {
        Lanes {
            fabric,
            agreed,
            peer,
            lanes: Vec::with_capacity(peer.qps.len()),
        }
    }

    fn add(&mut self, index: u32, id: &CmId) -> Result<(), RunFailure> {
        let Some(remote) = self.peer.qps.get(index as usize) else {
            return Ok(());
        };
        let agreed = self.agreed;
        let access = self.fabric.remote_access();
        let lane = self.fabric.lane(
            index,
            remote,
            |qp| {
                qp.to_init_by_cm(id, access)?;
                Ok(qp.to_rtr_by_cm(id, &agreed.path, remote.qpn, &agreed.reliability)?)
            },
            |qp| Ok(qp.to_rts_by_cm(id, &agreed.reliability)?),
        )?;
        self.lanes.push((index, lane));
        Ok(())
    }

    /// All of them, in QP order.
    fn all(mut self) -> Vec<Lane> {
        self.lanes.sort_unstable_by_key(|(index, _)| *index);
        self.lanes.into_iter().map(|(_, lane)| lane).collect()
    }
}
