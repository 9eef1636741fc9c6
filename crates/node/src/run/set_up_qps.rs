//! A round of set-ups at a node: creates QPs, connects them by TCP or by rdma_cm, and destroys them. The QPs carry no data,
//! so their queues are as small as possible.

use std::{cell::RefCell, sync::Arc, time::Instant};

use plan::{Case, Side};
use protocol::{
    endpoints::{Endpoints, QpEndpoint},
    failure::RunFailure,
    link::SETUP_LIMIT,
    message::{Message, SetUpMessage, SetupArray},
};
use settings::ConnectMode;
use verbs::{
    Access, CompletionQueue, Port, ProtectionDomain, QpCapacity, QueuePair, VerbsError,
    cm::{CmId, CmTransitionError},
    tear_down,
};

use crate::{
    connect_cm::{Caller, CmTimes, Connections, Listener, Terms},
    port_path::{self, Agreed, psns},
    run::{
        EarlyEnd,
        set_up::{SetupStep, StepTimes, Watch},
    },
};

/// Queue sizes of QPs that carry no data.
pub(crate) const CAPACITY: QpCapacity =
    QpCapacity { send_wr: 1, recv_wr: 1, inline_bytes: 0, sges: 1 };

/// A node's objects for setting QPs up.
pub(crate) struct SetupObjects<'a> {
    pub(crate) port: &'a Port,
    pub(crate) case: &'a Case,
    pd: Arc<ProtectionDomain>,
    cq: Arc<CompletionQueue>,
}

/// The QPs of a round in RTS, and the parameters that both nodes agreed on.
pub(crate) struct ConnectedQps {
    pub(crate) qps: Vec<Arc<QueuePair>>,
    /// By rdma_cm: what keeps them connected.
    pub(crate) connections: Option<Connections>,
    pub(crate) path_mtu_bytes: u32,
    pub(crate) outstanding_reads: u8,
}

impl<'a> SetupObjects<'a> {
    /// # Errors
    /// More QPs than the device has; a failed call.
    pub(crate) fn new(port: &'a Port, case: &'a Case) -> Result<Self, RunFailure> {
        let pd = ProtectionDomain::new(&port.context)?;
        Ok(SetupObjects { port, case, pd, cq: CompletionQueue::new(&port.context, 2)? })
    }

    /// Creates the QPs of a round.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn create(
        &self,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<Vec<Arc<QueuePair>>, EarlyEnd> {
        let mut qps = Vec::with_capacity(self.case.qps as usize);
        for index in 0..self.case.qps as usize {
            watch.step()?;
            let made = times
                .time(SetupStep::Create, || QueuePair::new(&self.pd, &self.cq, &self.cq, CAPACITY));
            qps.push(made.map_err(|error| failed(SetupStep::Create, index, self.case.qps, error))?);
        }
        Ok(qps)
    }

    /// Does one step for each QP.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn each(
        &self,
        step: SetupStep,
        qps: &[Arc<QueuePair>],
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
        mut body: impl FnMut(usize, &QueuePair) -> Result<(), VerbsError>,
    ) -> Result<(), EarlyEnd> {
        for (index, qp) in qps.iter().enumerate() {
            watch.step()?;
            times
                .time(step, || body(index, qp))
                .map_err(|error| failed(step, index, self.case.qps, error))?;
        }
        Ok(())
    }

    /// Destroys the QPs of a round and their connections.
    ///
    /// # Errors
    /// The first call that failed, or an error that `watch` found.
    pub(crate) fn destroy(
        &self,
        mut connected: ConnectedQps,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<(), EarlyEnd> {
        for (index, qp) in connected.qps.into_iter().enumerate() {
            watch.step()?;
            times
                .time(SetupStep::Destroy, || {
                    if let Some(connections) = &mut connected.connections {
                        connections.end(index);
                    }
                    tear_down(qp)
                })
                .map_err(|error| failed(SetupStep::Destroy, index, self.case.qps, error))?;
        }
        Ok(())
    }
}

/// A failed call, with its step and the index of its QP.
pub(crate) fn failed(
    step: SetupStep,
    index: usize,
    qps: u32,
    error: impl Into<RunFailure>,
) -> RunFailure {
    let known = error.into();
    RunFailure {
        message: format!(
            "set-up step {} failed at QP {} of {qps}: {}",
            step.name(),
            index + 1,
            known.message
        ),
        ..known
    }
}

/// A method of connecting, with its state for all rounds.
pub(crate) enum Connector {
    Tcp,
    Cm(CmRoute),
}

impl Connector {
    /// Prepares the method of the case.
    ///
    /// # Errors
    /// A method that the port does not support, a failed call, or an error that `watch` found.
    pub(crate) fn prepare(
        objects: &SetupObjects<'_>,
        side: Side,
        watch: &mut Watch<'_, '_>,
    ) -> Result<Connector, EarlyEnd> {
        Ok(match objects.case.connect {
            ConnectMode::Tcp => Connector::Tcp,
            ConnectMode::Cm => Connector::Cm(CmRoute::arrange(objects, side, watch)?),
        })
    }

    /// Brings the QPs of a round to RTS at this end.
    ///
    /// # Errors
    /// A failed step, the peer's end or fault, or an error that `watch` found.
    pub(crate) fn connect(
        &self,
        objects: &SetupObjects<'_>,
        side: Side,
        watch: &mut Watch<'_, '_>,
        times: &mut StepTimes,
    ) -> Result<ConnectedQps, EarlyEnd> {
        match self {
            Connector::Tcp => connect_by_tcp(objects, side, watch, times),
            Connector::Cm(route) => connect_by_cm(objects, route, watch, times),
        }
    }
}

/// Sets up the QPs of a round with connection arrays over the control connections: create, INIT, exchange, RTR, RTS. All
/// QPs finish a step before the next step starts, so that one exchange serves all. Returns when this end's QPs are in RTS.
///
/// # Errors
/// A failed step, the peer's end or fault, or the user's wish to stop.
fn connect_by_tcp(
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
    peer.check(objects.case.qps, 0).map_err(RunFailure::from)?;
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

/// Sets up the QPs of a round through rdma_cm: creates the QPs, then makes a connection for each, several at a time; INIT,
/// RTR and RTS are part of each connection. The target's listener and the initiator's channel last for the whole run.
/// Returns when this end knows that all are connected.
///
/// # Errors
/// A failed step, the peer's end or fault, or the user's wish to stop.
fn connect_by_cm(
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

#[cfg(test)]
mod tests {
    use super::*;
    use results::sample::has;
    use verbs::Operation;

    #[test]
    fn a_failed_step_names_itself_its_queue_pair_and_the_error() {
        let error = VerbsError::Call {
            operation: Operation::ModifyToRtr { gid_index: Some(1) },
            object: "rxe0 QP 0x000011".into(),
            source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT),
        };
        let failure = failed(SetupStep::Rtr, 16, 64, error);
        let words = ["set-up step rtr failed at QP 17 of 64", "rxe0 QP 0x000011", "os error 110"];
        has(failure.message, words);
        has(failure.hint.unwrap(), ["ping"]);
    }
}
