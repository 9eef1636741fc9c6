//! Which flows a pattern makes of so many nodes: rounds of flows, a round being a case.

use settings::{Pattern, Settings};

use super::case::MOST_FLOWS;
use super::error::PlanError;
use super::nodes::Nodes;

/// A flow by the numbers of its nodes: from, to.
pub(super) type Link = (u32, u32);

/// Rounds of flows, one after the other, with the settings of one case; of all patterns but pairs there is one.
///
/// # Errors
/// A node that is none, more senders or receivers than there are, a pattern that these nodes have not, or too many flows.
pub(super) fn rounds(
    pattern: &Pattern,
    settings: &Settings,
    nodes: &Nodes,
) -> Result<Vec<Vec<Link>>, PlanError> {
    let count = u32::try_from(nodes.count()).unwrap_or(u32::MAX);
    let one = match pattern {
        Pattern::Pairs => return Ok(tournament(count, settings.bidirectional)),
        Pattern::Ring => (0..count).map(|node| (node, next(count, node, 1))).collect(),
        Pattern::Loop => (0..count).map(|node| (node, node)).collect(),
        Pattern::Incast(name) => {
            let to = node_of(name.as_deref(), nodes)?;
            let senders = fan("fan-in", settings.fan_in, pattern, nodes)?;
            (1..=senders).map(|step| (next(count, to, step), to)).collect()
        }
        Pattern::Outcast(name) => {
            let from = node_of(name.as_deref(), nodes)?;
            let receivers = fan("fan-out", settings.fan_out, pattern, nodes)?;
            (1..=receivers).map(|step| (from, next(count, from, step))).collect()
        }
        Pattern::AllToAll => {
            let flows = u64::from(count) * u64::from(count.saturating_sub(1));
            if flows > MOST_FLOWS as u64 {
                let flows = usize::try_from(flows).unwrap_or(usize::MAX);
                return Err(PlanError::TooManyFlows { flows });
            }
            // Step by step, so that the flows of a node do not stand together.
            (1..count)
                .flat_map(|step| (0..count).map(move |node| (node, step)))
                .map(|(node, step)| (node, next(count, node, step)))
                .collect()
        }
        Pattern::Bisection => {
            if count % 2 == 1 {
                return Err(PlanError::OddNodes { nodes: nodes.count() });
            }
            let half = count / 2;
            (0..count).map(|node| (node, next(count, node, half))).collect()
        }
    };
    Ok(vec![one])
}

/// The node so many places further around the ring.
fn next(count: u32, node: u32, step: u32) -> u32 {
    (node + step) % count
}

/// The number of the node that a pattern names; the first one where it names none.
fn node_of(name: Option<&str>, nodes: &Nodes) -> Result<u32, PlanError> {
    let Some(name) = name else { return Ok(0) };
    nodes.number(name).map_err(|nearest| PlanError::UnknownNode {
        key: "pattern",
        name: name.to_owned(),
        nearest,
        names: nodes.names_in_short(),
    })
}

/// So many others, as asked for, or all.
fn fan(
    flag: &'static str,
    requested: Option<u32>,
    pattern: &Pattern,
    nodes: &Nodes,
) -> Result<u32, PlanError> {
    let others = u32::try_from(nodes.count().saturating_sub(1)).unwrap_or(u32::MAX);
    match requested {
        Some(value) if value > others => {
            Err(PlanError::FanTooWide { flag, value, others, pattern: pattern.word() })
        }
        requested => Ok(requested.unwrap_or(others)),
    }
}

/// Each node to each other one, once, in rounds in which no node has more than one flow: the rounds of a tournament by
/// the circle method (T. P. Kirkman, 1847), each of them there and back. With an odd number one node has a rest in
/// each. Where a flow has traffic both ways there is no way back.
fn tournament(count: u32, are_both_ways: bool) -> Vec<Vec<Link>> {
    let seats = count.next_multiple_of(2);
    let mut rounds = Vec::new();
    for round in 0..seats.saturating_sub(1) {
        let there: Vec<Link> = (0..seats / 2)
            .map(|seat| (turned(seats, round, seat), turned(seats, round, seats - 1 - seat)))
            .filter(|(one, other)| *one.max(other) < count)
            .collect();
        let back = there.iter().map(|(from, to)| (*to, *from)).collect();
        rounds.push(there);
        if !are_both_ways {
            rounds.push(back);
        }
    }
    rounds
}

/// The last seat stays, and the others turn around it.
fn turned(seats: u32, round: u32, seat: u32) -> u32 {
    if seat == seats - 1 { seat } else { (seat + round) % (seats - 1) }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use results::sample::has;

    fn flows(
        pattern: &str,
        nodes: u32,
        given: &[(&str, &str)],
    ) -> Result<Vec<Vec<Link>>, PlanError> {
        let settings = given.iter().copied().collect();
        rounds(&pattern.parse().unwrap(), &settings, &Nodes::Local(nodes))
    }

    #[test]
    fn pairs_meet_once_each_way_and_no_node_twice_in_a_round() {
        for count in 2..=17 {
            let rounds = flows("pairs", count, &[]).unwrap();
            assert_eq!(rounds.len() as u32, 2 * (count.next_multiple_of(2) - 1));
            for round in &rounds {
                let nodes: HashSet<u32> =
                    round.iter().flat_map(|(from, to)| [*from, *to]).collect();
                assert_eq!(nodes.len(), 2 * round.len(), "{count}: {round:?}");
                assert_eq!(round.len() as u32, count / 2);
            }
            let all: HashSet<Link> = rounds.iter().flatten().copied().collect();
            assert_eq!(all.len() as u32, count * (count - 1));
            for (from, to) in all {
                assert!(from != to && from.max(to) < count, "{from} to {to}");
            }
        }
    }

    #[test]
    fn traffic_both_ways_needs_no_way_back() {
        let rounds = flows("pairs", 4, &[("bidirectional", "true")]).unwrap();
        let expected = [[(0, 3), (1, 2)], [(1, 3), (2, 0)], [(2, 3), (0, 1)]];
        assert_eq!(rounds, expected);
    }

    #[test]
    fn patterns_of_one_round() {
        let all = [(0, 1), (1, 2), (2, 0), (0, 2), (1, 0), (2, 1)];
        for (pattern, count, given, expected) in [
            ("ring", 3, &[][..], &[(0, 1), (1, 2), (2, 0)][..]),
            ("loop", 2, &[], &[(0, 0), (1, 1)]),
            ("incast", 3, &[], &[(1, 0), (2, 0)]),
            ("incast:node1", 3, &[("fan-in", "1")], &[(2, 1)]),
            ("outcast:node2", 3, &[], &[(2, 0), (2, 1)]),
            ("outcast", 4, &[("fan-out", "2")], &[(0, 1), (0, 2)]),
            ("bisection", 4, &[], &[(0, 2), (1, 3), (2, 0), (3, 1)]),
            ("all-to-all", 3, &[], &all),
        ] {
            let rounds = flows(pattern, count, given).unwrap();
            assert_eq!(rounds, [expected.to_vec()], "{pattern}");
        }
    }

    #[test]
    fn what_the_nodes_do_not_have_is_said() {
        let fan_in = "--fan-in 4 is more than the 3 other nodes";
        let fan_out = "--fan-out 9 is more than the 2 other nodes";
        let odd = "an even number of nodes, not 5";
        for (pattern, count, given, words) in [
            ("incast:node7", 3, &[][..], "no node is named `node7`"),
            ("incast", 4, &[("fan-in", "4")], fan_in),
            ("outcast", 3, &[("fan-out", "9")], fan_out),
            ("bisection", 5, &[], odd),
            ("all-to-all", 65, &[], "4160 flows"),
        ] {
            let error = flows(pattern, count, given).unwrap_err();
            has(error.to_string(), [words]);
            assert!(!error.hint().is_empty());
        }
    }
}
