//! One run of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flow::FlowResult;
use super::node::NodeResult;
use super::path_event::{LossUnknown, PathEvent};
use super::set_up::Connect;

/// One run of a case, with fresh QPs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number of the run within its case, from 1.
    pub run: u32,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// The window ended as requested, and nothing failed.
    pub complete: bool,
    /// The user stopped the run.
    pub interrupted: bool,
    /// Why the run is not complete.
    pub failure: Option<Failure>,
    /// Part of the longest window in which all flows' windows were open, 0 to 1, by their nodes' clocks; `null` without
    /// two windows.
    pub overlap: Option<f64>,
    /// Its flows, as in `config.flows`; they have no figures if the run failed before they began.
    pub flows: Vec<FlowResult>,
    /// Workers, CPU time and counters of each node.
    pub nodes: Vec<NodeResult>,
    /// Events on the path, from the counters of known drivers; empty when nothing happened.
    pub path_events: Vec<PathEvent>,
    /// Devices whose counters do not show lost packets; empty if all do, or if the run read no counters.
    pub loss_unknown: Vec<LossUnknown>,
    /// `connect`: how fast QPs were set up; the run's flows are then the traffic beside it. `null` for other
    /// operations.
    pub connect: Option<Connect>,
    /// An impossible figure, as the end of a sentence that begins with the run: found when a file is loaded, and in no file.
    #[serde(skip)]
    pub contradiction: Option<String>,
}

impl Run {
    /// The flow of this name.
    pub fn flow(&self, name: &str) -> Option<&FlowResult> {
        self.flows.iter().find(|flow| flow.name == name)
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&NodeResult> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// The flows that a node posts.
    pub fn flows_from<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a FlowResult> {
        self.flows.iter().filter(move |flow| flow.from == node)
    }

    /// CPU seconds that the workers of a node and its embedded device used for 10^9 payload bytes of the flows to and from it;
    /// `None` where one of them is not known.
    pub fn cpu_seconds_per_gb(&self, node: &str) -> Option<f64> {
        let told = self.node(node)?;
        let of_engine = told.engine_cpu_seconds.unwrap_or(0.0);
        self.per_gb(node, told.cpu_seconds()? + of_engine)
    }

    /// The same of everything on the node's machine.
    pub fn machine_cpu_seconds_per_gb(&self, node: &str) -> Option<f64> {
        self.per_gb(node, self.node(node)?.machine_cpu_seconds?)
    }

    fn per_gb(&self, node: &str, seconds: f64) -> Option<f64> {
        let bytes: f64 = self
            .flows
            .iter()
            .filter(|flow| flow.from == node || flow.to == node)
            .map(|flow| flow.totals.bytes as f64)
            .sum();
        (bytes > 0.0).then(|| seconds / (bytes / 1e9))
    }
}

/// Why a run failed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// What happened.
    pub message: String,
    /// What to try.
    pub hint: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WorkerResult;
    use crate::sample::{flow_of, run, with};

    #[test]
    fn cpu_time_is_that_of_all_who_work_over_the_bytes_both_ways() {
        let mut flows = ["forward", "other"].map(|name| flow_of(name, 1_000_000_000, &[1]));
        flows[1].from = "elsewhere".to_owned();
        flows[1].to = "elsewhere".to_owned();
        let worker =
            |seconds| WorkerResult { cpu_seconds: Some(seconds), ..WorkerResult::default() };
        let mut run = Run {
            nodes: vec![NodeResult {
                workers: vec![worker(0.5), worker(0.25)],
                engine_cpu_seconds: Some(0.75),
                machine_cpu_seconds: Some(6.0),
                ..NodeResult::named("client")
            }],
            ..run(flows.into())
        };
        let told = |run: &Run| {
            let of = [Run::cpu_seconds_per_gb, Run::machine_cpu_seconds_per_gb];
            of.map(|of| of(run, "client"))
        };
        assert_eq!(told(&run), [Some(1.5), Some(6.0)]);
        run.flows.push(flow_of("reverse", 2_000_000_000, &[1]));
        assert_eq!(told(&run), [Some(0.5), Some(2.0)]);
        let run = with(&run, "nodes/0/engine_cpu_seconds=null");
        assert_eq!(told(&run), [Some(0.25), Some(2.0)]);
        let less = "nodes/0/workers/1/cpu_seconds=null; nodes/0/machine_cpu_seconds=null";
        assert_eq!(told(&with(&run, less)), [None, None]);
    }
}
