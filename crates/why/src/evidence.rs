//! What is known before anything is changed: the case, what its ends can do, and what the runs of the case as it was
//! requested showed.

use machine::surroundings::Surroundings;
use plan::{Case, Flow};
use report::judge::findings::of_run;
use report::observe::standing;
use results::Metric;
use results::model::{NodeFact, PathEventKind, Run};
use settings::Op;
use statistics::median;

use crate::effect::Losses;

/// What an end's device and machine can do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Port {
    /// Bytes of payload of the largest packet.
    pub mtu_bytes: u32,
    /// Speed of its link; `None` if unknown.
    pub link_gbit_per_s: Option<f64>,
    /// READs that a QP may have outstanding.
    pub max_reads: u32,
    /// WRs that a queue may hold.
    pub max_wrs: u32,
    pub max_qps: u32,
    /// Cores that workers may have.
    pub cores: u32,
    /// It is the embedded device, which moves bytes by CPUs.
    pub is_embedded: bool,
    /// Whether its driver lets a program choose UDP source ports.
    pub takes_udp_ports: bool,
    /// The DSCP whose packets have PFC there; `None` without PFC, or unknown.
    pub lossless_dscp: Option<u8>,
    /// NUMA node of the device; `None` if unknown.
    pub numa_node: Option<u32>,
    pub surroundings: Surroundings,
    /// What is known to be slower than it could be, such as `PCIe 8 GT/s x8 of 16 GT/s x16`.
    pub slow_parts: Vec<String>,
}

/// What holds for all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Situation {
    /// By number of the node.
    pub ports: Vec<Port>,
    /// Names of the nodes, by number.
    pub names: Vec<String>,
    /// All nodes are on one machine, and share its CPUs.
    pub is_one_machine: bool,
    /// Changes may ask for more than the case did.
    pub may_load_more: bool,
}

impl Situation {
    /// The end of a flow that posts, and the other one.
    pub fn ends(&self, flow: &Flow) -> [Option<&Port>; 2] {
        [flow.from, flow.to].map(|number| self.ports.get(number as usize))
    }

    /// The smaller value of both ends; `None` if neither tells.
    pub fn least(&self, flow: &Flow, value: impl Fn(&Port) -> u32) -> Option<u32> {
        self.ends(flow).into_iter().flatten().map(value).filter(|it| *it > 0).min()
    }

    /// Bytes of payload of a flow's packets.
    pub fn mtu_bytes(&self, flow: &Flow) -> u32 {
        let of_ports = self.least(flow, |port| port.mtu_bytes);
        flow.mtu.map(u32::from).or(of_ports).unwrap_or(1024)
    }

    pub fn is_embedded(&self) -> bool {
        self.ports.iter().any(|port| port.is_embedded)
    }

    /// Name of a node, for a sentence.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("a node", String::as_str)
    }
}

/// A case, what its ends can do, and what runs of it showed.
#[derive(Debug)]
pub struct Evidence<'a> {
    pub case: &'a Case,
    pub situation: &'a Situation,
    /// Runs of the case that have figures; the longest first.
    pub runs: Vec<&'a Run>,
}

impl<'a> Evidence<'a> {
    pub fn new(case: &'a Case, situation: &'a Situation, runs: &'a [Run]) -> Evidence<'a> {
        let with_figures = runs.iter().filter(|run| standing::of_run(run).has_figures());
        Evidence { case, situation, runs: with_figures.collect() }
    }

    /// The first flow, whose settings and ends stand for those of the others.
    pub fn flow(&self) -> Option<&'a Flow> {
        self.case.flows.first()
    }

    /// DSCPs whose packets have PFC at an end.
    pub fn lossless_dscps(&self) -> impl Iterator<Item = u8> + use<'a> {
        let ends = self.flow().map(|flow| self.situation.ends(flow));
        ends.into_iter().flatten().flatten().filter_map(|port| port.lossless_dscp)
    }

    pub fn is_op(&self, op: Op) -> bool {
        self.case.op.transfer() == op
    }

    /// Name of the node that posts.
    pub fn initiator(&self) -> &str {
        self.situation.name(self.flow().map_or(0, |flow| flow.from))
    }

    /// Name of the node at the other end.
    pub fn target(&self) -> &str {
        self.situation.name(self.flow().map_or(1, |flow| flow.to))
    }

    /// Median over the runs of what all flows move together.
    pub fn gbit_per_s(&self) -> Option<f64> {
        self.over_runs(|run| speed(run, Metric::GbitPerS))
    }

    pub fn over_runs(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        median(&self.runs.iter().filter_map(|run| figure(run)).collect::<Vec<f64>>())
    }

    /// Median latency, in nanoseconds; `None` without latencies.
    pub fn p50_ns(&self) -> Option<f64> {
        self.over_runs(|run| Metric::P50Ns.of(run, run.flows.first()))
    }

    /// Part of what the link can carry, 0 to 1, of the flow that comes nearest; `None` if its speed is unknown.
    pub fn share_of_link(&self) -> Option<f64> {
        self.over_runs(|run| {
            let shares = run.flows.iter().filter_map(|flow| flow.limits.as_ref()?.share_of_link());
            shares.reduce(f64::max)
        })
    }

    /// Events of this kind at all nodes, in all runs.
    pub fn count(&self, kind: PathEventKind) -> u64 {
        let events = self.runs.iter().flat_map(|run| &run.path_events);
        events.filter(|event| event.kind == kind).map(|event| event.count).sum()
    }

    /// The node that counted most events of this kind.
    pub fn where_counted(&self, kind: PathEventKind) -> Option<&'a str> {
        let events = self.runs.iter().flat_map(|run| &run.path_events);
        let most = events.filter(|event| event.kind == kind).max_by_key(|event| event.count);
        most.map(|event| event.node.as_str())
    }

    /// Packets that were lost in all runs, and sent; `None` where a device would not show losses.
    pub fn losses(&self) -> Option<Losses> {
        let of_runs = self.runs.iter().map(|run| losses(run, self.case, self.situation));
        of_runs.collect::<Option<Vec<Losses>>>()?.into_iter().reduce(Losses::plus)
    }

    /// Mean of a fact over the time of the longest window of a node.
    pub fn fact(&self, node: &str, fact: NodeFact) -> Option<f64> {
        let states = self.runs.iter().filter_map(|run| run.node(node)?.state.as_ref());
        let state = states.max_by_key(|state| state.at_seconds.len())?;
        let values: Vec<f64> = state.facts.get(&fact)?.iter().flatten().copied().collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The node at which a fact has its highest mean, and that.
    pub fn highest(&self, fact: NodeFact) -> Option<(&'a str, f64)> {
        let names = self.runs.first()?.nodes.iter().map(|node| node.name.as_str());
        let means = names.filter_map(|name| Some((name, self.fact(name, fact)?)));
        means.max_by(|(_, one), (_, two)| one.total_cmp(two))
    }

    /// Part of the polls of a node's workers that found no completion.
    pub fn empty_polls(&self, node: &str) -> Option<f64> {
        self.over_runs(|run| {
            let workers = &run.node(node)?.workers;
            let polls: u64 = workers.iter().map(|worker| worker.polls).sum();
            let empty: u64 = workers.iter().map(|worker| worker.empty_polls).sum();
            (polls > 0).then(|| empty as f64 / polls as f64)
        })
    }

    /// Part of the window in which the thread of a node's embedded device had a CPU; above 1 of several threads.
    pub fn engine_share(&self, node: &str) -> Option<f64> {
        self.over_runs(|run| {
            let seconds = run.node(node)?.engine_cpu_seconds?;
            let window = run.flows.first()?.window.seconds;
            (window > 0.0).then(|| seconds / window)
        })
    }

    /// The least served QP's part of an even share, in the flow where it is least.
    pub fn least_qp_share(&self) -> Option<f64> {
        self.over_runs(|run| {
            let shares =
                run.flows.iter().filter_map(|flow| Some(flow.fairness.as_ref()?.min_share));
            shares.reduce(f64::min)
        })
    }

    /// Longest time without a completion, in seconds.
    pub fn longest_stall_seconds(&self) -> Option<f64> {
        self.over_runs(|run| {
            let stalls = run.flows.iter().filter_map(|flow| {
                flow.timeline.as_ref().and_then(|timeline| timeline.longest_stall_seconds)
            });
            stalls.reduce(f64::max)
        })
    }
}

/// The metric that says how fast a case is: what it moves, or how soon a message is through where one waits for it.
pub(crate) fn metric(case: &Case) -> Metric {
    let is_latency = case.flows.iter().any(|flow| flow.ping_pong || !flow.is_closed_loop());
    match (is_latency, case.lock_step) {
        (true, _) => Metric::P50Ns,
        // Pauses between iterations take no part in it.
        (_, true) => Metric::BusGbitPerS,
        _ => Metric::GbitPerS,
    }
}

/// A run's figure of all flows together: the sum of what they move, or the highest latency.
pub(crate) fn speed(run: &Run, metric: Metric) -> Option<f64> {
    of_run(run, metric).filter(|figure| *figure > 0.0)
}

/// Losses of a run: gaps and time-outs, of the packets that its flows took. Senders count a gap once, receivers also each
/// packet behind it, more of them the more is in flight. `None` where a device would not show losses.
pub(crate) fn losses(run: &Run, case: &Case, situation: &Situation) -> Option<Losses> {
    if !run.loss_unknown.is_empty() {
        return None;
    }
    let count = |kind| -> u64 {
        run.path_events.iter().filter(|event| event.kind == kind).map(|event| event.count).sum()
    };
    let gaps = match count(PathEventKind::SequenceNak) {
        0 => count(PathEventKind::SequenceGap),
        naks => naks,
    };
    let delivered_not: u64 =
        run.flows.iter().filter_map(|flow| flow.delivery.as_ref()).map(|it| it.lost).sum();
    let packets = run.flows.iter().zip(&case.flows).map(|(flow, settings)| {
        let mtu = u64::from(situation.mtu_bytes(settings).max(1));
        flow.totals.bytes / mtu + flow.totals.messages
    });
    Some(Losses {
        lost: gaps + count(PathEventKind::AckTimeout) + delivered_not,
        packets: packets.sum::<u64>().max(1),
    })
}
