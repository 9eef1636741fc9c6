//! `mesh --check`: rounds in which each rail of each node exchanges a few messages with one of another node, until each has
//! met all others.

use results::model::CheckRound;
use settings::{CrossRail, Given, Pattern, Service};

use crate::flow::{End, Flow, NodeRails, Side, over_ends, rails_at};
use crate::quick;
use crate::sweep::{Case, PlanError, Sweep};

/// Settings of a check, unless others are given: few messages both ways at once in short windows, and an end of waiting after
/// 134 ms, though adapters may take four times as long.
const USUAL: [(&str, &str); 11] = [
    ("pattern", "pairs"),
    ("op", "write"),
    ("size", "64K"),
    ("qps", "1"),
    ("tx-depth", "16"),
    ("duration", "50ms"),
    ("warmup", "10ms"),
    ("bidirectional", "true"),
    ("no-latency", "true"),
    ("timeout", "13"),
    ("retry-cnt", "3"),
];

/// What is to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckRequest {
    pub cross_rail: CrossRail,
    /// A path below this part of the median is slow.
    pub slow_below_percent: u32,
}

impl Default for CheckRequest {
    fn default() -> CheckRequest {
        CheckRequest { cross_rail: CrossRail::Ignore, slow_below_percent: 50 }
    }
}

/// These settings, and the usual ones where none are given.
#[must_use]
pub fn with_usual(given: Given) -> Given {
    quick::with(given, &USUAL)
}

/// Checks that there are rounds of pairs, each once, in which a message that is lost is noticed.
///
/// # Errors
/// The first setting that does not fit.
pub fn check(sweep: &Sweep) -> Result<(), PlanError> {
    let mut cases = sweep.cases.iter();
    if !cases.all(|case| case.pattern == Some(Pattern::Pairs)) {
        return refused("pattern", "it needs the rounds of pairs");
    }
    if sweep.cases.iter().any(|case| case.settings != sweep.cases[0].settings) {
        return refused("size", "each option takes one value");
    }
    if sweep.runs() > 1 {
        return refused("runs", "it decides itself how often a path is checked");
    }
    if sweep.cases.iter().any(|case| case.service != Service::Rc) {
        return refused("service", "only RC says what did not arrive");
    }
    Ok(())
}

fn refused(flag: &'static str, why: &'static str) -> Result<(), PlanError> {
    Err(PlanError::NotWithMode { flag, mode: "check", why })
}

/// How many rounds there are of so many rails for each round of pairs of nodes.
pub fn rounds_of_pair(rails: usize, request: CheckRequest) -> usize {
    if request.cross_rail == CrossRail::Ignore { 1 } else { rails.max(1) }
}

/// The rounds of `pairs` over all rails: first from each rail to the same of the other node, and then, where those are
/// checked, to the next one, to the one after that, and so on. No rail has two flows in a round.
pub fn over_rails(pairs: &Sweep, nodes: &[NodeRails], request: CheckRequest) -> Sweep {
    let most_rails = nodes.iter().map(|(_, rails)| rails.len()).max().unwrap_or(0).max(1);
    let shifts = 0..rounds_of_pair(most_rails, request);
    let rounds = shifts.flat_map(|shift| pairs.cases.iter().map(move |case| (shift, case)));
    let cases = rounds.map(|(shift, case)| Case {
        id: if shift == 0 { case.id.clone() } else { format!("{}-rails{shift}", case.id) },
        flows: case.flows.iter().flat_map(|flow| shifted(flow, nodes, shift, most_rails)).collect(),
        check: Some(CheckRound {
            cross_rail: request.cross_rail,
            is_cross: shift > 0,
            slow_below_percent: request.slow_below_percent,
        }),
        ..case.clone()
    });
    Sweep {
        cases: cases.filter(|case| !case.flows.is_empty()).collect(),
        nodes: pairs.nodes.clone(),
    }
}

/// A flow from each rail of a node to that of the other one whose number is higher by `shift`, of so many.
fn shifted(flow: &Flow, nodes: &[NodeRails], shift: usize, of: usize) -> Vec<Flow> {
    let from = ends(rails_at(flow, nodes, flow.from, Side::Initiator).1);
    let to = ends(rails_at(flow, nodes, flow.to, Side::Target).1);
    let pairs = from.into_iter().filter_map(|(number, from_end)| {
        let (_, to_end) = to.iter().find(|(other, _)| *other == (number + shift) % of)?;
        Some((from_end, *to_end))
    });
    pairs
        .map(|(from_end, to_end)| match (from_end, to_end) {
            (None, None) => flow.clone(),
            (from_end, to_end) => over_ends(flow, from_end, to_end),
        })
        .collect()
}

/// The rails that are up, by number; of a node without rails its own device.
fn ends(rails: &[Option<crate::FlowDevice>]) -> Vec<(usize, End<'_>)> {
    match rails {
        [] => vec![(0, None)],
        rails => (0..)
            .zip(rails)
            .filter(|(_, rail)| rail.is_some())
            .map(|(n, it)| (n, it.as_ref()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::{FlowDevice, Nodes};

    fn pairs(nodes: u32, given: &[(&str, &str)]) -> Sweep {
        let usual = with_usual(given.iter().copied().collect());
        Sweep::with_flows(&usual, &[], Nodes::Local(nodes)).unwrap()
    }

    fn rails(names: &[&str]) -> Vec<Option<FlowDevice>> {
        let rail = |name: &&str| {
            let name = (*name).to_owned();
            (name != "-").then_some(FlowDevice { name, ib_port: None })
        };
        names.iter().map(rail).collect()
    }

    /// n nodes with these rails; one of `node1` is down.
    fn nodes(count: u32, names: &[&str]) -> Vec<NodeRails> {
        let mut of_nodes: Vec<NodeRails> =
            (0..count).map(|node| (format!("node{node}"), rails(names))).collect();
        of_nodes[1].1[0] = None;
        of_nodes
    }

    type Rail<'a> = (u32, Option<&'a str>);

    fn ends_of(flow: &Flow) -> [Rail<'_>; 2] {
        [
            (flow.from, flow.from_device.as_ref().map(|it| &*it.name)),
            (flow.to, flow.to_device.as_ref().map(|it| &*it.name)),
        ]
    }

    /// Of 5 nodes with 3 rails, one of them down: each same rail once, 5 x 4 / 2 x 3 less 4, and with others each to each,
    /// 10 x 9 less 4 x 3.
    #[test]
    fn each_rail_meets_each_once_and_never_two_at_a_time() {
        let nodes = nodes(5, &["a", "b", "c"]);
        let pairs = pairs(5, &[]);
        for (cross_rail, paths, rounds) in
            [(CrossRail::Ignore, 26, 5), (CrossRail::Forbidden, 78, 15)]
        {
            let request = CheckRequest { cross_rail, ..CheckRequest::default() };
            let sweep = over_rails(&pairs, &nodes, request);
            assert_eq!(sweep.cases.len(), rounds);
            let mut met = HashSet::new();
            for case in &sweep.cases {
                Sweep::check(case).unwrap();
                let mut busy = HashSet::new();
                for flow in &case.flows {
                    let mut ends = ends_of(flow);
                    assert!(ends.iter().all(|end| busy.insert(*end)), "{}", case.id);
                    let is_cross = case.check.as_ref().is_some_and(|it| it.is_cross);
                    assert_eq!(is_cross, ends[0].1 != ends[1].1);
                    ends.sort_unstable();
                    assert!(met.insert(ends.map(|(node, rail)| (node, rail.map(str::to_owned)))));
                }
            }
            assert_eq!(met.len(), paths, "{cross_rail}");
        }
    }

    #[test]
    fn nodes_without_rails_have_a_path_between_their_own_devices() {
        let bare: Vec<NodeRails> = (0..3).map(|node| (format!("node{node}"), Vec::new())).collect();
        let request = CheckRequest { cross_rail: CrossRail::Required, ..CheckRequest::default() };
        let sweep = over_rails(&pairs(3, &[]), &bare, request);
        let flows: Vec<&str> =
            sweep.cases.iter().flat_map(|case| &case.flows).map(|flow| &*flow.name).collect();
        assert_eq!(flows.len(), 3, "{flows:?}");
        assert!(flows.iter().all(|name| !name.contains(Flow::OVER)));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        check(&pairs(4, &[("size", "4K")])).unwrap();
        for (flag, text) in [("pattern", "ring"), ("runs", "2"), ("size", "1K,2K")] {
            let error = check(&pairs(4, &[(flag, text)])).unwrap_err();
            assert_eq!((error.flag(), error.to_string().contains("--check")), (flag, true));
        }
    }
}
