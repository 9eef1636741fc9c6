//! Several nodes to one, or one to several: what they move together and how evenly, over how many they are. It must not
//! judge.

use settings::{Pattern, Settings};

use crate::observe::standing;
use crate::results::model::{CaseResult, FlowConfig, FlowResult, Latency, ResultFile, Run};
use statistics::{median, shares};

/// Which way a fan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Several nodes to one: `incast`.
    In,
    /// One node to several: `outcast`.
    Out,
}

/// The cases of an incast (or outcast) whose settings are equal, all but how many nodes send (or receive).
#[derive(Clone, Debug, PartialEq)]
pub struct Fan {
    /// Which way it goes.
    pub direction: Direction,
    /// The settings of its first case.
    pub settings: Settings,
    /// The node that all of them send to, or that sends to all of them.
    pub node: String,
    /// Each case, by the number of nodes.
    pub points: Vec<FanPoint>,
}

/// One case of a fan. Figures are medians over the runs in which all flows count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FanPoint {
    /// Id of the case.
    pub case: String,
    /// Nodes that send (or receive).
    pub fan: usize,
    /// Payload throughput of all flows together, in 10^9 bits a second.
    pub gbit_per_s: Option<f64>,
    /// Messages of all flows together, in 10^6 a second.
    pub mmsg_per_s: Option<f64>,
    /// Jain's index over the nodes' throughput: 1 is even, 1/n is one node alone.
    pub jain: Option<f64>,
    /// Each node's share, in the order of the case's flows.
    pub shares: Vec<Share>,
    /// Median latency of all flows' messages, in nanoseconds; `None` where a flow has no histogram.
    pub p50_ns: Option<f64>,
    /// 99th percentile of the latency of all flows' messages, in nanoseconds; `None` where a flow has no histogram.
    pub p99_ns: Option<f64>,
    /// Runs that count.
    pub runs: usize,
    /// Runs that do not: a flow of them failed, was stopped, or is doubtful.
    pub lost: usize,
}

/// A node's part of a fan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// The node that sends (or receives).
    pub node: String,
    /// Its throughput over an even share: 1 is even, 0 is starved.
    pub of_even: f64,
    /// Its throughput, in 10^9 bits a second.
    pub gbit_per_s: f64,
}

impl FanPoint {
    /// The node with the least.
    pub fn worst(&self) -> Option<&Share> {
        let shares = self.shares.iter();
        shares.min_by(|one, two| one.of_even.total_cmp(&two.of_even))
    }
}

impl Fan {
    /// All fans of a file, in its order.
    pub fn all(file: &ResultFile) -> Vec<Fan> {
        let mut fans: Vec<Fan> = Vec::new();
        for case in &file.cases {
            let direction = match case.config.pattern {
                Some(Pattern::Incast(_)) => Direction::In,
                Some(Pattern::Outcast(_)) => Direction::Out,
                _ => continue,
            };
            let Some(first) = case.config.flows.first() else {
                continue;
            };
            let node = match direction {
                Direction::In => &first.to,
                Direction::Out => &first.from,
            };
            let point = point(case, direction);
            let is_alike = |fan: &&mut Fan| {
                fan.direction == direction
                    && fan.node == *node
                    && but_for_fan(&fan.settings) == but_for_fan(&case.config.settings)
            };
            match fans.iter_mut().rev().find(is_alike) {
                Some(fan) => fan.points.push(point),
                None => fans.push(Fan {
                    direction,
                    settings: case.config.settings.clone(),
                    node: node.clone(),
                    points: vec![point],
                }),
            }
        }
        for fan in &mut fans {
            fan.points.sort_by_key(|point| point.fan);
        }
        fans
    }
}

/// Settings without how many nodes there are.
fn but_for_fan(settings: &Settings) -> Settings {
    Settings {
        fan_in: None,
        fan_out: None,
        ..settings.clone()
    }
}

fn point(case: &CaseResult, direction: Direction) -> FanPoint {
    let flows = case.config.flows.len();
    let is_whole = |run: &&Run| run.flows.len() == flows && standing::run_counts(run);
    let runs: Vec<&Run> = case.runs.iter().filter(is_whole).collect();
    let of_runs = |of: &dyn Fn(&Run) -> Option<f64>| {
        let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
        median(&values)
    };
    let sum = |run: &Run, of: fn(&FlowResult) -> Option<f64>| {
        run.flows.iter().map(of).sum::<Option<f64>>()
    };
    let merged = |run: &&Run| Latency::merged(&run.flows, |flow| flow.latency_ns.as_ref());
    let latencies: Vec<Latency> = runs.iter().filter_map(merged).collect();
    let of_latencies = |of: fn(&Latency) -> Option<u64>| {
        let values = latencies.iter().filter_map(of).map(|ns| ns as f64);
        median(&values.collect::<Vec<f64>>())
    };
    FanPoint {
        case: case.id.clone(),
        fan: flows,
        gbit_per_s: of_runs(&|run| sum(run, FlowResult::gbit_per_s)),
        mmsg_per_s: of_runs(&|run| sum(run, FlowResult::mmsg_per_s)),
        jain: of_runs(&|run| Some(shares(&rates(run)?)?.jain)),
        shares: each_share(case, &runs, direction),
        p50_ns: of_latencies(|it| it.p50),
        p99_ns: of_latencies(|it| it.p99),
        runs: runs.len(),
        lost: case.runs.len() - runs.len(),
    }
}

/// What each flow of a run moved, in 10^9 bits a second.
fn rates(run: &Run) -> Option<Vec<f64>> {
    run.flows.iter().map(FlowResult::gbit_per_s).collect()
}

/// Each node's part, the median over the runs.
fn each_share(case: &CaseResult, runs: &[&Run], direction: Direction) -> Vec<Share> {
    let rates: Vec<Vec<f64>> = runs.iter().filter_map(|run| rates(run)).collect();
    let share = |(index, flow): (usize, &FlowConfig)| {
        let own = rates.iter().filter_map(|rates| rates.get(index));
        let own: Vec<f64> = own.copied().collect();
        let of_even = rates.iter().filter_map(|rates| {
            let even = rates.iter().sum::<f64>() / rates.len() as f64;
            (even > 0.0).then_some(rates.get(index)? / even)
        });
        let of_even: Vec<f64> = of_even.collect();
        let node = match direction {
            Direction::In => &flow.from,
            Direction::Out => &flow.to,
        };
        Some(Share {
            node: node.clone(),
            of_even: median(&of_even)?,
            gbit_per_s: median(&own)?,
        })
    };
    let flows = case.config.flows.iter().enumerate();
    flows.filter_map(share).collect()
}
