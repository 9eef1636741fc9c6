//! One end of a flow at a node: with its verbs objects, with its workers running, and when it is over.

use std::sync::Arc;

use datapath::{
    Geometry, Mismatch, Phase, QpContext, Shared, Trouble, WindowEdges, WindowProgress,
    WorkerReport,
};
use metrics::Clock;
use metrics::latency::digits_for;
use plan::{Flow, Side};
use settings::{Stop, Timestamps};
use verbs::StampClock;

use crate::needs::recorders;
use crate::verbs_objects::VerbsObjects;
use protocol::link::Link;
use protocol::message::Drained;
use protocol::posts::Posts;

/// An end of a flow, with its verbs objects.
pub struct FlowEnd {
    /// Number of the flow in the coordinator's case.
    pub number: u32,
    pub flow: Flow,
    pub side: Side,
    pub objects: VerbsObjects,
}

/// An end whose workers run.
pub(super) struct RunningEnd {
    pub(super) end: FlowEnd,
    pub(super) shared: Arc<Shared>,
}

/// An end whose run is over.
pub struct FinishedEnd {
    /// The end; its verbs objects are still allocated.
    pub end: FlowEnd,
    /// The workers' reports; empty if the end only offered memory.
    pub workers: Vec<WorkerReport>,
    /// When the window was to open and to close.
    pub edges: WindowEdges,
    /// Progress of the workers' windows.
    pub window: WindowProgress,
}

impl RunningEnd {
    /// Whether its window has a duration.
    pub(super) fn is_timed(&self) -> bool {
        matches!(self.shared.flow().stop(), Stop::DurationNs(_))
    }

    /// The planned times of an open loop are those of this `run` of the case.
    pub(super) fn new(
        end: FlowEnd,
        qp_contexts: Vec<QpContext>,
        clock: &Clock,
        run: u32,
    ) -> RunningEnd {
        let bare = Shared::new(
            end.flow.settings.clone(),
            qp_contexts,
            clock.clone(),
            digits_for(recorders(&end.flow)),
            end.objects.workers(),
        );
        let side = end.side as u64;
        let stream = u64::from(run) << 33 | u64::from(end.number) << 1 | side;
        let receives = end.objects.shared_receives().cloned();
        let stamps = match end.flow.timestamps {
            Timestamps::Cpu => None,
            Timestamps::Device => StampClock::new(&end.objects.port().context),
        };
        let shared = bare
            .with_stream(stream)
            .with_path_mtu(end.objects.path_mtu_bytes())
            .with_shared_receives(receives)
            .with_stamps(stamps)
            .with_initiative(end.objects.roles().initiates);
        RunningEnd { end, shared: Arc::new(shared) }
    }

    pub(super) fn initiates(&self) -> bool {
        self.end.objects.roles().initiates
    }

    pub(super) fn receives(&self) -> bool {
        self.end.objects.roles().receives
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
            let objects = &self.end.objects;
            objects
                .check_written(qp, posts_of(qp))
                .or_else(|| qp_context.receiver.as_ref()?.check_counts(posts_of))
        });
        written.or_else(|| self.end.objects.check_sums(posts.of_qps()))
    }
}

impl FinishedEnd {
    /// The errors that the workers met.
    pub fn troubles(&self) -> impl Iterator<Item = &Trouble> + Clone {
        self.workers.iter().map(|worker| &worker.trouble)
    }
}
