//! A round of set-ups with connection arrays over the control connections, at both nodes: create, INIT, exchange, RTR,
//! RTS. All QPs finish a step before the next step starts, so that one exchange serves all.

use std::sync::Arc;
use std::time::Instant;

use verbs::{Access, QueuePair};

use crate::port_path::{self, Agreed};
use crate::qp_service::psns;
use crate::run::EarlyEnd;
use crate::setup::objects::{ConnectedQps, SetupObjects};
use crate::setup::steps::{SetupStep, StepTimes};
use crate::setup::watch::Watch;
use plan::Side;
use protocol::endpoints::{Endpoints, QpEndpoint};
use protocol::message::{Message, SetUpMessage, SetupArray};
use protocol::time_limits::SETUP_LIMIT;

/// Sets up the QPs of a round; returns when this end's QPs are in RTS.
///
/// # Errors
/// A failed step, the peer's end or fault, or the user's wish to stop.
pub(crate) fn connect(
    objects: &SetupObjects<'_>,
    side: Side,
    watch: &mut Watch<'_, '_>,
    times: &mut StepTimes,
) -> Result<ConnectedQps, EarlyEnd> {
    let qps = objects.create(watch, times)?;
    let (port, pkey_index) = (objects.port.info.port, objects.port.pkey_index);
    objects.each(SetupStep::Init, &qps, watch, times, |_, qp| {
        qp.to_init(port, pkey_index, Access::LocalRead)
    })?;
    let psns = psns(qps.len())?;
    let ours = port_path::endpoints(objects.port, endpoints(&qps, &psns));
    let peer = match side {
        Side::Initiator => ask(ours, watch, times)?,
        Side::Target => answer(ours, watch, times)?,
    };
    peer.check(objects.case.qps, 0).map_err(protocol::failure::RunFailure::from)?;
    let agreed = Agreed::between(objects.port, objects.case, &peer)?;
    objects.each(SetupStep::Rtr, &qps, watch, times, |index, qp| {
        let remote = agreed.remote(&peer.qps[index]);
        qp.to_rtr(&agreed.path(index as u32), &remote, &agreed.reliability)
    })?;
    objects.each(SetupStep::Rts, &qps, watch, times, |index, qp| {
        qp.to_rts(psns[index], &agreed.reliability)
    })?;
    Ok(ConnectedQps {
        qps,
        connections: None,
        path_mtu_bytes: agreed.path_mtu_bytes,
        outstanding_reads: agreed.reliability.initiator_reads,
    })
}

fn endpoints(qps: &[Arc<QueuePair>], psns: &[u32]) -> Vec<QpEndpoint> {
    qps.iter()
        .zip(psns)
        .map(|(qp, &psn)| QpEndpoint { qpn: qp.qpn(), psn, address: 0, rkey: 0, length: 0 })
        .collect()
}

/// The initiator's half of the exchange. Its time runs from sending until the answer, without the time that the target
/// still needed for its own QPs.
fn ask(
    endpoints: Endpoints,
    watch: &mut Watch<'_, '_>,
    times: &mut StepTimes,
) -> Result<Endpoints, EarlyEnd> {
    let started = Instant::now();
    watch.link().send(SetUpMessage::Array(Box::new(SetupArray { endpoints, held_ns: 0 })))?;
    let peer = array(watch)?.0;
    let ns = nanoseconds(started).saturating_sub(peer.held_ns);
    times.record(SetupStep::Exchange, ns);
    Ok(peer.endpoints)
}

/// The target's half of the exchange. Its time is that of sending the array.
fn answer(
    endpoints: Endpoints,
    watch: &mut Watch<'_, '_>,
    times: &mut StepTimes,
) -> Result<Endpoints, EarlyEnd> {
    let is_ready = Instant::now();
    let (peer, arrived) = array(watch)?;
    let held = is_ready.saturating_duration_since(arrived);
    let message = Message::SetUp(SetUpMessage::Array(Box::new(SetupArray {
        endpoints,
        held_ns: u64::try_from(held.as_nanos()).unwrap_or(u64::MAX),
    })));
    times.time(SetupStep::Exchange, || watch.link().send(message))?;
    Ok(peer.endpoints)
}

/// The peer's array of the round, and when it arrived.
pub(crate) fn array(watch: &mut Watch<'_, '_>) -> Result<(SetupArray, Instant), EarlyEnd> {
    match watch.recv(SETUP_LIMIT)? {
        (Message::SetUp(SetUpMessage::Array(array)), arrived) => Ok((*array, arrived)),
        (other, _) => Err(watch.link().unexpected("set_up_array", &other).into()),
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
