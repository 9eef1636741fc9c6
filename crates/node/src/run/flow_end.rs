//! One end of a flow at a node, and how it is connected to the other one.

use std::sync::Arc;

use datapath::{
    Geometry, LockStep, Mismatch, Phase, QpContext, Shared, StepPart, Trouble, WorkerReport,
};
use metrics::{Clock, latency::digits_for};
use plan::{Flow, Side};
use protocol::{
    endpoints::{ConnectingEnds, Endpoints, Posts},
    failure::RunFailure,
    link::Link,
    message::{CmListening, Drained, EndArray},
};
use settings::{ConnectMode, Stop, TimeSpan, Timestamps};
use verbs::{StampClock, cm::CmId};

use crate::{
    connect_cm::{Caller, Listener, Terms},
    needs::{EndRoles, recorders},
    port_path::Agreed,
    server::{ServerEvent, ServerLog},
    verbs_objects::VerbsObjects,
};

/// An end that is not connected yet.
pub(super) struct CreatedEnd {
    pub(super) number: u32,
    pub(super) flow: Flow,
    pub(super) side: Side,
    pub(super) objects: VerbsObjects,
    /// Where the other end connects by rdma_cm.
    pub(super) listener: Option<Listener>,
}

/// An end of a flow that is connected to the other one.
pub struct FlowEnd {
    /// Number of the flow in the coordinator's case.
    pub number: u32,
    pub flow: Flow,
    pub side: Side,
    /// What its workers share with the thread that steers the run.
    pub shared: Arc<Shared>,
    pub objects: VerbsObjects,
    /// What its workers reported when they had ended; empty before, and if the end only offers memory.
    pub reports: Vec<WorkerReport>,
    /// Why it has no connection, where ends fail alone.
    pub unconnected: Option<RunFailure>,
}

impl CreatedEnd {
    /// Logs which ends connect.
    pub(super) fn log_connecting(&self, peer: &EndArray, log: &ServerLog) {
        let port = self.objects.port();
        log(ServerEvent::Connecting(ConnectingEnds {
            settings: &self.flow,
            device: port.context.name(),
            gid_index: port.gid.map(|entry| entry.index.into()),
            own: &self.objects.endpoints(),
            peer: &peer.endpoints,
        }));
    }

    /// Connects it to `peer`; an end that fails alone is without QPs where that fails. The planned times of an open loop
    /// are those of this `run` of the case.
    pub(super) fn connect(
        mut self,
        peer: &EndArray,
        (clock, run): (&Clock, u32),
        fails_alone: bool,
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<FlowEnd, RunFailure> {
        let (own, endpoints) = (&mut self.objects, &peer.endpoints);
        let connected = match (self.flow.connect, &self.listener, &peer.listening) {
            (ConnectMode::Tcp, ..) => own.connect(endpoints, alive),
            (ConnectMode::Cm, Some(listener), _) => accept_qps(own, endpoints, listener, alive),
            (ConnectMode::Cm, None, Some(listening)) => dial_qps(own, endpoints, listening, alive),
            (ConnectMode::Cm, None, None) => {
                let text = "the other end does not say where it listens for rdma_cm";
                Err(RunFailure::new(text, None))
            }
        };
        let (qp_contexts, unconnected) = match connected {
            Ok(qp_contexts) => (qp_contexts, None),
            Err(failure) if fails_alone && !failure.link_lost && !failure.interrupted => {
                (Vec::new(), Some(failure))
            }
            Err(failure) => return Err(failure),
        };
        let CreatedEnd { number, flow, side, objects, .. } = self;
        let end = FlowEnd::new(number, flow, side, objects, qp_contexts, (clock, run));
        Ok(FlowEnd { unconnected, ..end })
    }
}

impl FlowEnd {
    fn new(
        number: u32,
        flow: Flow,
        side: Side,
        objects: VerbsObjects,
        qp_contexts: Vec<QpContext>,
        (clock, run): (&Clock, u32),
    ) -> FlowEnd {
        let bare = Shared::new(
            flow.settings.clone(),
            qp_contexts,
            clock.clone(),
            digits_for(recorders(&flow)),
            objects.workers(),
        );
        let stream = u64::from(run) << 33 | u64::from(number) << 1 | side as u64;
        let stamps = match flow.timestamps {
            Timestamps::Cpu => None,
            Timestamps::Device => StampClock::new(&objects.port().context),
        };
        let shared = bare
            .with_stream(stream)
            .with_path_mtu(objects.path_mtu_bytes())
            .with_shared_receives(objects.shared_receives().cloned())
            .with_stamps(stamps)
            .with_initiative(objects.roles().initiates);
        let (shared, reports) = (Arc::new(shared), Vec::new());
        FlowEnd { number, flow, side, shared, objects, reports, unconnected: None }
    }

    /// The same end for another run of the case, on the same QPs; its workers have ended.
    ///
    /// # Errors
    /// Some of them have not.
    pub(super) fn for_run(self, of_run: (&Clock, u32)) -> Result<FlowEnd, RunFailure> {
        let FlowEnd { number, flow, side, shared, objects, .. } = self;
        let shared = Arc::into_inner(shared).ok_or_else(|| {
            let text = "a worker of the last run is still there: this is a fault of rocebench";
            RunFailure::new(text, None)
        })?;
        Ok(FlowEnd::new(number, flow, side, objects, shared.into_qp_contexts(), of_run))
    }

    /// Whether nothing more is to be expected of it.
    pub(super) fn has_failed(&self) -> bool {
        self.unconnected.is_some() || self.shared.has_failed()
    }

    /// Why it failed, if it did; of its workers what they saw, where they have ended.
    pub(crate) fn failure(&self) -> Option<RunFailure> {
        self.unconnected.clone().or_else(|| RunFailure::from_trouble(&self.troubles()))
    }

    /// Whether its window has a duration.
    pub(crate) fn is_timed(&self) -> bool {
        self.flow.window_ns().is_some()
    }

    pub(super) fn initiates(&self) -> bool {
        self.objects.roles().initiates
    }

    pub(crate) fn receives(&self) -> bool {
        self.objects.roles().receives
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        let flow = self.shared.flow();
        if let (Phase::Measure, Stop::MessagesPerQp(messages)) = (phase, flow.stop()) {
            let geometry = Geometry::from_flow(flow);
            for sender in
                self.shared.qp_contexts().iter().filter_map(|qp_context| qp_context.sender.as_ref())
            {
                sender.set_budget(&geometry, messages);
            }
        }
        self.shared.set_phase(phase);
    }

    /// Whether its window is over: its time, or all of its messages.
    pub(super) fn has_measured(&self) -> bool {
        let flow = self.shared.flow();
        let window = self.shared.window();
        match flow.stop() {
            Stop::DurationNs(_) => window.is_closed,
            Stop::MessagesPerQp(_) if self.has_failed() => true,
            Stop::MessagesPerQp(each) => window.completed >= each.saturating_mul(flow.qps.into()),
        }
    }

    pub(super) fn drained(&self) -> Drained {
        let flow = self.shared.flow();
        let contexts = self.shared.qp_contexts().iter();
        let posts = flow.verify.then(|| Posts {
            positions: Geometry::from_flow(flow).ring(),
            packed: contexts
                .filter_map(|qp_context| qp_context.sender.as_ref()?.posts())
                .flatten()
                .collect(),
        });
        Drained { sent_messages: self.shared.counts().posted, posts }
    }

    /// Whether the other end tells, with `--verify`, how often it has posted at each position of each of its QPs.
    pub(super) fn is_told_all(&self, peer: &Drained) -> bool {
        let flow = self.shared.flow();
        let other = match self.side {
            Side::Initiator => Side::Target,
            Side::Target => Side::Initiator,
        };
        let positions = Geometry::from_flow(flow).ring();
        let sends = flow.verify && EndRoles::new(flow, other).sends;
        let counts = if sends { positions as usize * flow.qps as usize } else { 0 };
        match &peer.posts {
            Some(posts) => posts.packed.len() == counts && posts.positions == positions,
            None => !flow.verify,
        }
    }

    /// With `--verify`: the first wrong payload of what the peer wrote or sent.
    pub(super) fn mismatch(&self, peer: &Drained, link: &Link) -> Option<Mismatch> {
        let posts = peer.posts.as_ref().filter(|_| self.shared.flow().verify)?;
        let of_qps: Vec<&[u32]> = posts.of_qps().collect();
        let posts_of = |qp: u32| of_qps.get(qp as usize).copied().unwrap_or_default();
        let contexts = self.shared.qp_contexts().iter();
        let mut qps = (0..).zip(contexts).take(of_qps.len());
        let written = qps.find_map(|(qp, qp_context)| {
            link.progressed();
            let objects = &self.objects;
            objects
                .check_written(qp, posts_of(qp))
                .or_else(|| qp_context.receiver.as_ref()?.check_counts(posts_of))
        });
        written.or_else(|| self.objects.check_sums(posts.of_qps()))
    }

    /// The errors that the workers met.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = &Trouble> + Clone {
        self.reports.iter().map(|report| &report.trouble)
    }
}

/// Has the ends of a node move in lock-step.
pub(super) fn join_steps(ends: &mut [FlowEnd]) {
    let qps_of = |side: Side| {
        let of_side = ends.iter().filter(|end| end.side == side);
        of_side.map(|end| end.flow.qps as usize).sum::<usize>()
    };
    let (arriving, leaving) = (qps_of(Side::Target), qps_of(Side::Initiator));
    let steps = ends.iter().map(|end| end.flow.steps).max().unwrap_or(1);
    let pause_ns = ends.iter().find_map(|end| end.flow.compute_seconds).map_or(0, TimeSpan::ns);
    let node = Arc::new(LockStep::new(arriving, leaving, steps, pause_ns));
    let (mut next_arriving, mut next_leaving) = (0, arriving);
    for end in ends {
        let next = match end.side {
            Side::Target => &mut next_arriving,
            Side::Initiator => &mut next_leaving,
        };
        let part = StepPart { node: Arc::clone(&node), first: *next };
        *next += end.flow.qps as usize;
        // Its workers have not begun, so that nobody else has it.
        if let Some(shared) = Arc::get_mut(&mut end.shared) {
            shared.set_lock_step(Some(part));
        }
    }
}

/// Those of the ends that send, write or read.
pub(super) fn senders(ends: &[FlowEnd]) -> impl Iterator<Item = &FlowEnd> {
    ends.iter().filter(|end| end.initiates())
}

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
