//! What the reports of all nodes say of their steps: how long they took, what the links carried, and which node was last. Clocks
//! of nodes are not compared: each time is between two readings of one clock.

use std::collections::{BTreeMap, BTreeSet};

use plan::{Case, Side};
use protocol::node_report::{EndReport, EndSteps, NodeReport};
use results::model::{Latency, LockStep, StepsOfNode};
use settings::Pattern;
use statistics::median;

use super::nodes::Node;

/// The steps of a run; `None` of one that is not in lock-step.
pub(super) fn of_run(
    case: &Case,
    nodes: &[Node],
    reports: &[(usize, NodeReport)],
) -> Option<LockStep> {
    if !case.lock_step {
        return None;
    }
    let ends: Vec<&EndReport> = reports.iter().flat_map(|(_, report)| &report.ends).collect();
    let steps: Vec<&EndSteps> = ends.iter().filter_map(|end| end.steps.as_ref()).collect();
    let iteration_ns = together(steps.iter().filter_map(|it| it.iteration_ns.as_ref()));
    let members: BTreeSet<u32> = case.flows.iter().map(|flow| flow.from).collect();
    let mean_ns = iteration_ns.as_ref().map(|it| it.mean).filter(|mean| *mean > 0.0);
    let flows: Vec<FlowTimes<'_>> = ends
        .iter()
        .filter_map(|end| {
            let flow = case.flows.get(end.flow as usize)?;
            Some(([flow.from, flow.to], end.steps.as_ref()?.times.as_slice()))
        })
        .collect();
    // A flow whose end has not reported leaves no step that all have ended.
    let is_whole = flows.len() == case.flows.len();
    let (compared_steps, of_nodes) = compared(if is_whole { &flows } else { &[] });
    let factor = bus_factor(case.pattern.as_ref(), members.len());
    Some(LockStep {
        steps_of_iteration: case.flows.first().map_or(1, |flow| flow.steps),
        bus_gbit_per_s: mean_ns.map(|ns| f64::from(case.size_bytes) * 8.0 / ns * factor),
        share_of_ideal: ideal_ns(case, &ends).zip(mean_ns).map(|(ideal, mean)| ideal / mean),
        step_ns: together(steps.iter().filter_map(|it| it.step_ns.as_ref())),
        iteration_ns,
        compared_steps,
        nodes: members
            .into_iter()
            .map(|number| {
                let (last_in, times) = of_nodes.get(&number).cloned().unwrap_or_default();
                StepsOfNode {
                    name: nodes.get(number as usize).map_or_else(String::new, |it| it.name.clone()),
                    last_in,
                    median_ns: median(&times),
                }
            })
            .collect(),
    })
}

fn together<'a>(times: impl Iterator<Item = &'a Latency>) -> Option<Latency> {
    Latency::together(&times.collect::<Vec<_>>())
}

/// What a buffer's size over the time is multiplied by, for the bandwidth of a link in one direction to come out (nccl-tests,
/// doc/PERFORMANCE.md).
fn bus_factor(pattern: Option<&Pattern>, nodes: usize) -> f64 {
    let others = nodes.saturating_sub(1) as f64 / nodes.max(1) as f64;
    if pattern == Some(&Pattern::Ring) { 2.0 * others } else { others }
}

/// The least time of an iteration: that of the port with most to send or to receive for its speed, of ports whose speed is known.
fn ideal_ns(case: &Case, ends: &[&EndReport]) -> Option<f64> {
    let mut of_ports: BTreeMap<(Side, u32, Option<&str>), f64> = BTreeMap::new();
    for end in ends.iter().filter(|end| end.side == Side::Initiator) {
        let limits = end.sent.as_ref().and_then(|sent| sent.limits.as_ref());
        let Some((flow, limits)) = case.flows.get(end.flow as usize).zip(limits) else {
            continue;
        };
        let gbit_per_s = limits.payload_gbit_per_s();
        let messages = f64::from(flow.qps) * f64::from(flow.steps);
        let ns = f64::from(flow.size_bytes) * messages * 8.0 / gbit_per_s;
        for (side, node) in [(Side::Initiator, flow.from), (Side::Target, flow.to)] {
            let device = flow.device(side).map(|device| device.name.as_str());
            *of_ports.entry((side, node, device)).or_default() += ns;
        }
    }
    of_ports.into_values().reduce(f64::max).filter(|ns| ns.is_finite())
}

/// The two nodes of a flow, and how long each of its last steps took.
type FlowTimes<'a> = ([u32; 2], &'a [(u64, u32)]);

/// How many steps all flows have a time of; and of each node in how many of them it was last, and the mean of its flows in each.
///
/// A node's flows are those in both directions. A slow node delays the messages to it and their acknowledgements as well as what
/// it sends, so its neighbours' sends look as slow as its own; only it has nothing but slow flows.
fn compared(flows: &[FlowTimes<'_>]) -> (u64, BTreeMap<u32, (u64, Vec<f64>)>) {
    let mut of_steps: BTreeMap<u64, (usize, BTreeMap<u32, f64>)> = BTreeMap::new();
    let mut flows_of: BTreeMap<u32, f64> = BTreeMap::new();
    for (ends, times) in flows {
        for node in ends {
            *flows_of.entry(*node).or_default() += 1.0;
        }
        for (step, ns) in *times {
            let (known, sums) = of_steps.entry(*step).or_default();
            *known += 1;
            for node in ends {
                *sums.entry(*node).or_default() += f64::from(*ns);
            }
        }
    }
    let mut of_nodes: BTreeMap<u32, (u64, Vec<f64>)> = BTreeMap::new();
    let whole = of_steps.into_values().filter(|(known, _)| *known == flows.len());
    let mut steps = 0;
    for (_, sums) in whole {
        steps += 1;
        let longest = sums.values().copied().fold(0.0, f64::max);
        let mut last = sums.iter().filter(|(_, sum)| **sum == longest).map(|(node, _)| *node);
        if let (Some(node), None) = (last.next(), last.next()) {
            of_nodes.entry(node).or_default().0 += 1;
        }
        for (node, sum) in sums {
            let count = flows_of.get(&node).copied().unwrap_or(1.0);
            of_nodes.entry(node).or_default().1.push(sum / count);
        }
    }
    (steps, of_nodes)
}

#[cfg(test)]
mod tests {
    use plan::{Nodes, Sweep};
    use results::model::{FlowResult, Limits};
    use settings::Given;

    use super::super::assemble::tests::end_report;
    use super::*;

    /// An end that sends, whose port has this speed.
    fn end(flow: u32, gbit_per_s: f64) -> EndReport {
        let limits =
            Limits { link_gbit_per_s: gbit_per_s, protocol_efficiency: 0.5, ..Limits::default() };
        EndReport {
            flow,
            sent: Some(FlowResult { limits: Some(limits), ..FlowResult::default() }),
            steps: Some(EndSteps::default()),
            ..end_report(Side::Initiator, [&[], &[]])
        }
    }

    fn case(pattern: &str, split: &str) -> Case {
        let given = Given::from([
            ("pattern", pattern),
            ("lock-step", "true"),
            ("size", "4000"),
            ("split", split),
        ]);
        Sweep::with_flows(&given, &[], Nodes::Local(4)).unwrap().cases.remove(0)
    }

    /// Links carry 2 bytes of payload a nanosecond (32 Gb/s, half of it payload), but for the last flow's: 1.
    #[test]
    fn an_ideal_iteration_is_that_of_the_slowest_link() {
        for (pattern, split, expected) in [
            // 6 steps of 1000 bytes, at the slow link.
            ("ring", "equal", 6_000.0),
            // 3 messages of 1000 bytes: two at 2 bytes a nanosecond, one at 1.
            ("all-to-all", "equal", 2_000.0),
            // The first node gets 2000 bytes of each of three, in 1000 ns each.
            ("all-to-all", "hot-1", 3_000.0),
        ] {
            let case = case(pattern, split);
            let last = case.flows.len() as u32 - 1;
            let ends: Vec<EndReport> =
                (0..=last).map(|flow| end(flow, if flow == last { 16.0 } else { 32.0 })).collect();
            let ends: Vec<&EndReport> = ends.iter().collect();
            assert_eq!(ideal_ns(&case, &ends), Some(expected), "{pattern} {split}");
        }
    }

    #[test]
    fn bus_bandwidth_is_as_nccl_tests_define_it() {
        assert_eq!(bus_factor(Some(&Pattern::Ring), 4), 1.5);
        assert_eq!(bus_factor(Some(&Pattern::AllToAll), 4), 0.75);
    }

    /// In a ring of four, node 2's messages and those to it are slow in all steps but one, in which the flow from 0 to 1 is.
    #[test]
    fn the_node_with_nothing_but_slow_flows_is_last() {
        let times = |slow_ns: u32, in_two: u32| [(7, slow_ns), (8, slow_ns), (9, in_two)];
        let slow = times(50, 2);
        let of_flows =
            [([0, 1], times(3, 30)), ([1, 2], slow), ([2, 3], slow), ([3, 0], times(5, 2))];
        let mut flows: Vec<FlowTimes<'_>> =
            of_flows.iter().map(|(ends, kept)| (*ends, kept.as_slice())).collect();
        let (steps, of_nodes) = compared(&flows);
        let last = |node| of_nodes.get(&node).map(|it| it.0);
        // The last step was alike for nodes 0 and 1: none of them was last.
        assert_eq!((steps, [0, 1, 2, 3].map(last)), (3, [Some(0), Some(0), Some(2), Some(0)]));
        assert_eq!(of_nodes[&2].1, [50.0, 50.0, 2.0]);
        // A flow that has not ended a step leaves it out.
        flows[3].1 = &flows[3].1[..2];
        assert_eq!(compared(&flows).0, 2);
    }
}
