//! One end of a flow at a node.

use std::sync::Arc;

use datapath::{Geometry, Mismatch, Phase, Shared, Trouble, WorkerReport};
use metrics::Clock;
use metrics::latency::digits_for;
use plan::{Flow, Side};
use protocol::failure::RunFailure;
use protocol::link::Link;
use protocol::message::{Drained, EndArray};
use protocol::posts::Posts;
use settings::{ConnectMode, Stop, Timestamps};
use verbs::StampClock;

use crate::connect_cm::Listener;
use crate::needs::recorders;
use crate::qp_contexts_by_cm::{accept_qps, dial_qps};
use crate::verbs_objects::VerbsObjects;

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
}

impl CreatedEnd {
    /// Connects it to `peer`. The planned times of an open loop are those of this `run` of the case.
    pub(super) fn connect(
        mut self,
        peer: &EndArray,
        (clock, run): (&Clock, u32),
        alive: impl Fn() -> Result<(), RunFailure>,
    ) -> Result<FlowEnd, RunFailure> {
        let (objects, endpoints) = (&mut self.objects, &peer.endpoints);
        let qp_contexts = match (self.flow.connect, &self.listener, &peer.listening) {
            (ConnectMode::Tcp, ..) => objects.connect(endpoints, alive),
            (ConnectMode::Cm, Some(listener), _) => accept_qps(objects, endpoints, listener, alive),
            (ConnectMode::Cm, None, Some(listening)) => {
                dial_qps(objects, endpoints, listening, alive)
            }
            (ConnectMode::Cm, None, None) => {
                let text = "the other end does not say where it listens for rdma_cm";
                Err(RunFailure::new(text, None))
            }
        }?;
        let CreatedEnd { number, flow, side, objects, .. } = self;
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
        Ok(FlowEnd { number, flow, side, shared: Arc::new(shared), objects, reports: Vec::new() })
    }
}

impl FlowEnd {
    /// Whether its window has a duration.
    pub(super) fn is_timed(&self) -> bool {
        matches!(self.flow.stop(), Stop::DurationNs(_))
    }

    pub(super) fn initiates(&self) -> bool {
        self.objects.roles().initiates
    }

    pub(super) fn receives(&self) -> bool {
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

/// Those of the ends that send, write or read.
pub(super) fn senders(ends: &[FlowEnd]) -> impl Iterator<Item = &FlowEnd> {
    ends.iter().filter(|end| end.initiates())
}
