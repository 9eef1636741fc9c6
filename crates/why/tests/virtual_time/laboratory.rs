//! A laboratory in virtual time: each distinct case is played once, and its runs differ by chance.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use fastrand::Rng;
use plan::Case;
use results::model::{
    Fairness, FlowResult, Latency, Limits, NodeResult, PathEvent, QpResult, Run, Totals, Window,
    WorkerResult,
};
use why::{Laboratory, Port, Situation};

use crate::traffic::{Site, Traffic, play};

/// What a run is taken to last.
pub const RUN: Duration = Duration::from_millis(350);

pub const NAMES: [&str; 2] = ["client", "server"];

/// Bytes of a packet besides its payload: IPv4, UDP, BTH and ICRC.
const HEADER_BYTES: f64 = 44.0;

pub struct VirtualLaboratory {
    site: Site,
    played: HashMap<String, Option<Traffic>>,
    chance: Rng,
    pub runs: u32,
}

impl VirtualLaboratory {
    pub fn new(site: Site) -> VirtualLaboratory {
        let chance = Rng::with_seed(!site.seed);
        VirtualLaboratory { site, played: HashMap::new(), chance, runs: 0 }
    }

    /// What is known of its ends.
    pub fn situation(&self) -> Situation {
        let port = Port {
            mtu_bytes: 4096,
            link_gbit_per_s: Some(self.site.link_gbit_per_s),
            max_reads: self.site.most_reads.into(),
            max_wrs: 4096,
            max_qps: 4096,
            cores: 8,
            ..Port::default()
        };
        Situation {
            ports: vec![port.clone(), port],
            names: NAMES.map(str::to_owned).to_vec(),
            ..Situation::default()
        }
    }

    /// A factor of mean 1 by chance.
    fn factor(&mut self) -> f64 {
        let normal: f64 = (0..12).map(|_| self.chance.f64()).sum::<f64>() - 6.0;
        (normal * self.site.noise).exp()
    }

    /// Distinct cases that were played.
    pub fn cases(&self) -> usize {
        self.played.len()
    }
}

impl Laboratory for VirtualLaboratory {
    type Error = Infallible;

    fn run(&mut self, case: &Case) -> Result<Run, Infallible> {
        self.runs += 1;
        let site = &self.site;
        let played = self.played.entry(case.id.clone()).or_insert_with(|| play(site, case));
        let Some(traffic) = played.clone() else {
            return Ok(Run::default());
        };
        let factor = self.factor();
        Ok(run_of(case, &traffic, factor, self.site.link_gbit_per_s))
    }

    fn refusal(&self, case: &Case) -> Option<String> {
        let is_elsewhere = case.flows.iter().any(|flow| (flow.from, flow.to) != (0, 1));
        is_elsewhere.then(|| "this laboratory has one way alone".to_owned())
    }

    fn spent(&self) -> Duration {
        RUN * self.runs
    }
}

fn run_of(case: &Case, traffic: &Traffic, factor: f64, link_gbit_per_s: f64) -> Run {
    let flow = &case.flows[0];
    let size_bytes = u64::from(flow.size_bytes);
    let seconds = traffic.seconds * factor;
    let messages: u64 = traffic.messages.iter().sum();
    let totals = Totals::in_window(messages, messages * size_bytes, 0, seconds);
    let packets = f64::from(flow.size_bytes.div_ceil(flow.mtu.map_or(1024, u32::from)).max(1));
    let bytes = f64::from(flow.size_bytes);
    let of_message = flow.op.profile().extended_header_bytes[2] as f64;
    let mut limits = Limits {
        link_gbit_per_s,
        protocol_efficiency: bytes / (bytes + packets * HEADER_BYTES + of_message),
        share_of_limit: None,
        narrower: None,
    };
    limits.share_of_limit = totals.gbit_per_s.and_then(|rate| limits.share_of(rate));
    let qps = traffic.messages.iter().zip(0..).map(|(count, index)| QpResult {
        index,
        messages: *count,
        bytes: count * size_bytes,
        ..QpResult::default()
    });
    let qps: Vec<QpResult> = qps.collect();
    let latency = Latency {
        p50: (traffic.p50_ns > 0.0).then_some((traffic.p50_ns * factor) as u64),
        ..Latency::default()
    };
    let result = FlowResult {
        name: flow.name.clone(),
        from: NAMES[0].to_owned(),
        to: NAMES[1].to_owned(),
        window: Window { seconds, ..Window::default() },
        fairness: Fairness::of_qps(&qps, &vec![1.0; qps.len()], flow.signal_every),
        qps,
        totals,
        latency_ns: (!flow.no_latency).then_some(latency),
        limits: Some(limits),
        ..FlowResult::default()
    };
    let nodes = [0, 1].map(|end| {
        let [polls, empty_polls] = traffic.polls[end];
        let worker = WorkerResult { polls, empty_polls, ..WorkerResult::default() };
        NodeResult { workers: vec![worker], ..NodeResult::named(NAMES[end]) }
    });
    let events = [0, 1].map(|end: usize| {
        traffic.events[end].iter().map(move |(kind, count, counters)| PathEvent {
            node: NAMES[end].to_owned(),
            kind: *kind,
            count: *count,
            counters: counters.clone(),
        })
    });
    Run {
        run: 1,
        complete: true,
        flows: vec![result],
        nodes: nodes.into(),
        path_events: events.into_iter().flatten().collect(),
        ..Run::default()
    }
}
