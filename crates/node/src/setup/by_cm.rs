//! A round of set-ups through rdma_cm, at both nodes: creates the QPs, then makes a connection for each, several at a
//! time; INIT, RTR and RTS are part of each connection. The target's listener and the initiator's channel last for the
//! whole run.

use std::cell::RefCell;
use std::sync::Arc;

use verbs::cm::{CmId, CmTransitionError};
use verbs::{Access, QueuePair};

use crate::connect_cm::{Caller, CmTimes, Listener, Terms};
use crate::port_path::{self, Agreed};
use crate::run::EarlyEnd;
use crate::setup::by_tcp::array;
use crate::setup::objects::{ConnectedQps, SetupObjects, failed};
use crate::setup::steps::{SetupStep, StepTimes};
use crate::setup::watch::Watch;
use plan::Side;
use protocol::endpoints::Endpoints;
use protocol::failure::RunFailure;
use protocol::message::{Message, SetUpMessage, SetupArray};
use protocol::time_limits::SETUP_LIMIT;

/// What a node keeps between rounds.
pub(crate) enum CmRoute {
    Caller(Caller),
    Listener(Listener),
}

impl CmRoute {
    /// Starts to listen at the target; tells the initiator the address.
    ///
    /// # Errors
    /// A port that rdma_cm does not serve, a failed call, or the peer's end.
    pub(crate) fn arrange(
        objects: &SetupObjects<'_>,
        side: Side,
        watch: &mut Watch<'_, '_>,
    ) -> Result<CmRoute, EarlyEnd> {
        let link = watch.link();
        match side {
            Side::Target => {
                let listener = Listener::open(objects.port)?;
                link.send(SetUpMessage::CmListening(listener.listening()))?;
                Ok(CmRoute::Listener(listener))
            }
            Side::Initiator => match watch.recv(SETUP_LIMIT)?.0 {
                Message::SetUp(SetUpMessage::CmListening(listening)) => {
                    let library = objects.port.context.library();
                    Ok(CmRoute::Caller(Caller::new(&listening, library)?))
                }
                other => Err(link.unexpected("set_up_cm_listening", &other).into()),
            },
        }
    }
}

/// Sets up the QPs of a round; returns when this end knows that all are connected.
///
/// # Errors
/// A failed step, the peer's end or fault, or the user's wish to stop.
pub(crate) fn connect(
    objects: &SetupObjects<'_>,
    route: &CmRoute,
    watch: &mut Watch<'_, '_>,
    times: &mut StepTimes,
) -> Result<ConnectedQps, EarlyEnd> {
    let qps = objects.create(watch, times)?;
    let agreed = Agreed::between(objects.port, objects.case, &both_created(objects, watch)?)?;
    let qpns = qps.iter().map(|qp| qp.qpn()).collect();
    // The numbers of the other end's QPs come with the connections.
    let terms = Terms::new(objects.port, &agreed, qpns, None)?;
    // An error that the watch saw may say more than a failed connection.
    let seen = RefCell::new(None);
    let watch = RefCell::new(watch);
    let alive = || {
        watch.borrow_mut().look().map_err(|broken| {
            seen.replace(Some(broken));
            RunFailure::new("the round was given up", None)
        })
    };
    let ready = |index: u32, id: &CmId, peer_qpn: u32| {
        bring_up(objects, &qps, index as usize, id, &agreed, peer_qpn, times)
    };
    let done = match route {
        CmRoute::Caller(caller) => caller.dial(&terms, agreed.gid(), alive, ready),
        CmRoute::Listener(listener) => {
            listener.accept(&terms, alive, ready).map(|connections| (connections, Vec::new()))
        }
    };
    let (connections, calls) =
        done.map_err(|failure| seen.take().unwrap_or(EarlyEnd::Known(failure)))?;
    calls.iter().for_each(|call| record(call, times));
    Ok(ConnectedQps {
        qps,
        connections: Some(connections),
        path_mtu_bytes: agreed.path_mtu_bytes,
        outstanding_reads: agreed.reliability.initiator_reads,
    })
}

/// Waits until the other end's QPs exist too, so that no connection waits for them, and receives its port.
fn both_created(
    objects: &SetupObjects<'_>,
    watch: &mut Watch<'_, '_>,
) -> Result<Endpoints, EarlyEnd> {
    let ours = SetupArray { endpoints: port_path::endpoints(objects.port, Vec::new()), held_ns: 0 };
    watch.link().send(SetUpMessage::Array(Box::new(ours)))?;
    let peer = array(watch)?.0.endpoints;
    peer.check(0, 0).map_err(RunFailure::from)?;
    Ok(peer)
}

/// Brings a QP from RESET to RTS with the attributes of its connection.
fn bring_up(
    objects: &SetupObjects<'_>,
    qps: &[Arc<QueuePair>],
    index: usize,
    id: &CmId,
    agreed: &Agreed,
    peer_qpn: u32,
    times: &mut StepTimes,
) -> Result<(), RunFailure> {
    let Some(qp) = qps.get(index) else {
        return Ok(());
    };
    let (path, reliability) = (&agreed.path(index as u32), &agreed.reliability);
    let mut each = |step, body: &dyn Fn() -> Result<(), CmTransitionError>| {
        let done = times.time(step, body);
        done.map_err(|error| failed(step, index, objects.case.qps, error))
    };
    each(SetupStep::Init, &|| qp.to_init_by_cm(id, Access::LocalRead))?;
    each(SetupStep::Rtr, &|| qp.to_rtr_by_cm(id, path, peer_qpn, reliability))?;
    each(SetupStep::Rts, &|| qp.to_rts_by_cm(id, reliability))
}

fn record(call: &CmTimes, times: &mut StepTimes) {
    times.record(SetupStep::Resolve, call.resolve_address_ns);
    times.record(SetupStep::Route, call.resolve_route_ns);
    times.record(SetupStep::Connect, call.connect_ns);
    times.count_stale(call.stale_rejections);
}
