//! What runs in lock-step say: how long steps and iterations take, what the links carry, and which node is last.

use results::model::{Latency, LockStep};
use statistics::{binomial_at_least, median};

use super::super::finding::{Finding, Subject, percent};
use super::{Matrix, Outlier, Place};
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
pub(crate) struct NodeInSteps<'a> {
    pub(crate) name: &'a str,
    /// Steps in which it was last.
    pub(crate) last_in: u64,
    /// Time of its flows in a step, the median over the runs.
    pub(crate) ns: f64,
}

/// The node that was last most often.
struct Last<'a> {
    node: NodeInSteps<'a>,
    /// The median of the others' times.
    usual_ns: f64,
    /// Whether that is neither chance nor little.
    is_slow: bool,
}

impl Matrix {
    /// What its runs in lock-step say.
    pub(super) fn of_steps(&self) -> Vec<Finding> {
        let times = self.steps.first().map(|first| self.times(first));
        times.into_iter().chain(self.last().map(|last| self.last_node(&last))).collect()
    }

    /// The node that holds up the others in lock-step.
    pub(super) fn straggler(&self) -> Option<Outlier> {
        let Last { node, usual_ns, .. } = self.last().filter(|last| last.is_slow)?;
        let place = Place::Node(self.nodes.iter().position(|name| name == node.name)?);
        let flows = self.cells.iter().filter(|cell| place.has(cell.from, cell.to)).count();
        let quantity = Metric::P50Ns;
        Some(Outlier { quantity, place, value: node.ns, usual: usual_ns, slow: flows, flows })
    }

    /// Steps in which nodes were compared, of all runs.
    pub(crate) fn compared_steps(&self) -> u64 {
        self.steps.iter().map(|run| run.compared_steps).sum()
    }

    /// Each node, in the order of the nodes of the first run.
    pub(crate) fn nodes_in_steps(&self) -> Vec<NodeInSteps<'_>> {
        let of_first = self.steps.first().map_or(&[][..], |first| &first.nodes);
        let nodes = of_first.iter().map(|node| {
            let runs = self.steps.iter().flat_map(|run| &run.nodes);
            let own = runs.filter(|it| it.name == node.name);
            let times: Vec<f64> = own.clone().filter_map(|it| it.median_ns).collect();
            NodeInSteps {
                name: &node.name,
                last_in: own.map(|it| it.last_in).sum(),
                ns: median(&times).unwrap_or(0.0),
            }
        });
        nodes.collect()
    }

    fn last(&self) -> Option<Last<'_>> {
        let (steps, mut others) = (self.compared_steps(), self.nodes_in_steps());
        if steps == 0 || others.len() < FEWEST_NODES {
            return None;
        }
        others.sort_by_key(|node| std::cmp::Reverse(node.last_in));
        let node = others.remove(0);
        let usual_ns = median(&others.iter().map(|other| other.ns).collect::<Vec<_>>())?;
        let chance = 1.0 / (others.len() + 1) as f64;
        let is_slow = binomial_at_least(node.last_in, steps, chance) < BY_CHANCE
            && node.last_in as f64 >= MOSTLY * steps as f64
            && node.ns >= SLOWER * usual_ns;
        Some(Last { node, usual_ns, is_slow })
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
        text += &match share {
            Some(share) => format!(", {} of what the slowest link allows", percent(share)),
            None if bus.is_some() => ", of links whose speed is unknown".to_owned(),
            None => String::new(),
        };
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
    fn last_node(&self, last: &Last<'_>) -> Finding {
        let NodeInSteps { name, last_in, ns } = last.node;
        let steps = self.compared_steps();
        let compared = counted(usize::try_from(steps).unwrap_or(usize::MAX), "step");
        let finding = if last.is_slow {
            let look = if self.is_embedded { "its CPUs" } else { "its port, cable and CPUs" };
            let text = format!(
                "{name} was last in {last_in} of {compared}: its flows took {} µs, those of the others {} µs. Look at {look}.",
                micros(ns),
                micros(last.usual_ns)
            );
            let subject = Subject { nodes: vec![name.to_owned()], ..Subject::case(&self.title) };
            Finding::problem("straggler", subject, text)
        } else {
            let text = format!(
                "No node holds up the others: {name} was last most often, in {last_in} of {compared}."
            );
            Finding::note("no_straggler", Subject::case(&self.title), text)
        };
        finding
            .with("last_in", last_in)
            .with("steps", steps)
            .with("own_ns", ns)
            .with("usual_ns", last.usual_ns)
    }
}

fn p50(times: Option<&Latency>) -> Option<f64> {
    times?.p50.map(|ns| ns as f64)
}

fn micros(ns: f64) -> String {
    super::number(Metric::P50Ns, ns)
}
