//! What runs in lock-step say: how long steps and iterations take, what the links carry, and which node is last.

use results::model::{Latency, LockStep};
use statistics::{binomial_at_least, median};

use super::super::finding::{Finding, Subject, percent};
use super::Matrix;
use crate::observe::Metric;
use crate::observe::format::counted;

/// So seldom does chance make a node of equal ones last so often.
const BY_CHANCE: f64 = 0.001;
/// A node that is last for its own sake is last in this part of the steps at least, ...
const MOSTLY: f64 = 0.5;
/// ... and its flows take so many times as long as those of the others.
const SLOWER: f64 = 1.25;
/// Of two nodes all flows are both nodes'.
const FEWEST_NODES: usize = 3;

/// A node over all runs.
struct OfNode<'a> {
    name: &'a str,
    last_in: u64,
    /// Median over the runs.
    ns: f64,
}

impl Matrix {
    /// What its runs in lock-step say.
    pub(super) fn of_steps(&self) -> Vec<Finding> {
        let Some(first) = self.steps.first() else {
            return Vec::new();
        };
        let mut found = vec![self.times(first)];
        let mut nodes: Vec<OfNode<'_>> = first
            .nodes
            .iter()
            .map(|node| {
                let runs = self.steps.iter().flat_map(|run| &run.nodes);
                let own = runs.filter(|it| it.name == node.name);
                let times: Vec<f64> = own.clone().filter_map(|it| it.median_ns).collect();
                OfNode {
                    name: &node.name,
                    last_in: own.map(|it| it.last_in).sum(),
                    ns: median(&times).unwrap_or(0.0),
                }
            })
            .collect();
        nodes.sort_by_key(|node| std::cmp::Reverse(node.last_in));
        let steps: u64 = self.steps.iter().map(|run| run.compared_steps).sum();
        if steps > 0 && nodes.len() >= FEWEST_NODES {
            found.extend(self.last_node(&nodes, steps));
        }
        found
    }

    fn over_runs(&self, figure: fn(&LockStep) -> Option<f64>) -> Option<f64> {
        median(&self.steps.iter().filter_map(figure).collect::<Vec<_>>())
    }

    fn times(&self, first: &LockStep) -> Finding {
        let step_ns = self.over_runs(|run| p50(run.step_ns.as_ref()));
        let iteration_ns = self.over_runs(|run| p50(run.iteration_ns.as_ref()));
        let bus = self.over_runs(|run| run.bus_gbit_per_s);
        let share = self.over_runs(|run| run.share_of_ideal);
        let mut text = match (iteration_ns, step_ns, first.steps_of_iteration) {
            (Some(iteration), Some(step), steps @ 2..) => format!(
                "An iteration takes {} µs (p50), each of its {steps} steps {} µs",
                micros(iteration),
                micros(step)
            ),
            (Some(iteration), ..) => format!("An iteration takes {} µs (p50)", micros(iteration)),
            _ => "Too few iterations ended to tell their time: measure longer (-D)".to_owned(),
        };
        if let Some(bus) = bus {
            text += &format!("; bus bandwidth {}", super::figure(Metric::GbitPerS, bus));
        }
        if let Some(share) = share {
            text += &format!(", {} of what the slowest link allows", percent(share));
        }
        let mut finding = Finding::note("lock_step", Subject::case(&self.title), text + ".");
        for (key, value) in [
            ("step_p50_ns", step_ns),
            ("iteration_p50_ns", iteration_ns),
            ("bus_gbit_per_s", bus),
            ("share_of_ideal", share),
        ] {
            if let Some(value) = value {
                finding = finding.with(key, value);
            }
        }
        finding
    }

    /// The node that was last most often; a problem where that is neither chance nor little.
    fn last_node(&self, nodes: &[OfNode<'_>], steps: u64) -> Option<Finding> {
        let (worst, others) = nodes.split_first()?;
        let usual_ns = median(&others.iter().map(|node| node.ns).collect::<Vec<_>>())?;
        let chance = 1.0 / nodes.len() as f64;
        let (name, last_in) = (worst.name, worst.last_in);
        let is_slow = binomial_at_least(last_in, steps, chance) < BY_CHANCE
            && last_in as f64 >= MOSTLY * steps as f64
            && worst.ns >= SLOWER * usual_ns;
        let compared = counted(usize::try_from(steps).unwrap_or(usize::MAX), "step");
        let finding = if is_slow {
            let look = if self.is_embedded { "its CPUs" } else { "its port, cable and CPUs" };
            let text = format!(
                "{name} was last in {last_in} of {compared}: its flows took {} µs, those of the others {} µs. Look at {look}.",
                micros(worst.ns),
                micros(usual_ns)
            );
            let subject = Subject { nodes: vec![name.to_owned()], ..Subject::case(&self.title) };
            Finding::problem("straggler", subject, text)
        } else {
            let text = format!(
                "No node holds up the others: {name} was last most often, in {last_in} of {compared}."
            );
            Finding::note("no_straggler", Subject::case(&self.title), text)
        };
        Some(
            finding
                .with("last_in", last_in)
                .with("steps", steps)
                .with("own_ns", worst.ns)
                .with("usual_ns", usual_ns),
        )
    }
}

fn p50(times: Option<&Latency>) -> Option<f64> {
    times?.p50.map(|ns| ns as f64)
}

fn micros(ns: f64) -> String {
    super::number(Metric::P50Ns, ns)
}
