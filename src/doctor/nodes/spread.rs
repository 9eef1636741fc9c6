//! One fact over all nodes: who has which value, who differs from most, and the sentence that says so.

use std::collections::BTreeMap;

use settings::listed;

use protocol::finding::{Finding, State};

use super::aspects::Aspect;

/// Nodes that a sentence names; of more it says how many.
const NAMED: usize = 6;

/// A value, and the numbers of the nodes that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) value: String,
    pub(super) nodes: Vec<usize>,
}

/// A fact over all nodes.
pub(super) struct Spread {
    pub(super) aspect: &'static Aspect,
    /// Of each node; `None` where it is not known.
    pub(super) values: Vec<Option<String>>,
    /// The largest first, else the one with the first node.
    pub(super) groups: Vec<Group>,
}

impl Spread {
    /// Of the values of all nodes.
    pub(super) fn new(aspect: &'static Aspect, values: Vec<Option<String>>) -> Spread {
        let mut by_value: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, value) in values.iter().enumerate() {
            if let Some(value) = value {
                by_value.entry(value).or_default().push(number);
            }
        }
        let mut groups: Vec<Group> = by_value
            .into_iter()
            .map(|(value, nodes)| Group { value: value.to_owned(), nodes })
            .collect();
        groups.sort_by_key(|group| {
            (std::cmp::Reverse(group.nodes.len()), group.nodes.first().copied())
        });
        Spread { aspect, values, groups }
    }

    /// How many nodes it is known of.
    fn known(&self) -> usize {
        self.groups.iter().map(|group| group.nodes.len()).sum()
    }

    /// What all have of whom it is known.
    pub(super) fn common(&self) -> Option<&Group> {
        match self.groups.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Whether two nodes have two values.
    pub(super) fn differs(&self) -> bool {
        self.groups.len() > 1
    }

    /// What more than half of those have of whom it is known.
    pub(super) fn majority(&self) -> Option<&Group> {
        let first = self.groups.first()?;
        (2 * first.nodes.len() > self.known()).then_some(first)
    }

    /// Whether a node has another value than most; where there is no majority, all have.
    pub(super) fn is_odd(&self, node: usize) -> bool {
        let is_known = self.values.get(node).is_some_and(Option::is_some);
        self.differs()
            && is_known
            && !self.majority().is_some_and(|most| most.nodes.contains(&node))
    }

    /// The nodes with another value than most; all that are known where there is no majority.
    pub(super) fn odd(&self) -> Vec<usize> {
        (0..self.values.len()).filter(|it| self.is_odd(*it)).collect()
    }

    /// The difference in a sentence; `None` where there is none, or nodes may differ.
    pub(super) fn finding(&self, names: &[String]) -> Option<Finding> {
        let aspect = self.aspect;
        if !self.differs() || aspect.difference == State::Ok {
            return None;
        }
        let found = match self.majority() {
            Some(most) => {
                let mut parts: Vec<String> = self
                    .groups
                    .iter()
                    .filter(|group| *group != most)
                    .map(|group| format!("{} at {}", group.value, named(names, &group.nodes)))
                    .collect();
                parts.push(if self.known() < self.values.len() {
                    format!("{} at {} others", most.value, most.nodes.len())
                } else {
                    format!("{} at all others", most.value)
                });
                parts.join(", ")
            }
            None => {
                let groups: Vec<String> = self
                    .groups
                    .iter()
                    .map(|group| format!("{} at {}", group.value, named(names, &group.nodes)))
                    .collect();
                format!("the nodes are divided: {}", groups.join("; "))
            }
        };
        Some(Finding::new(aspect.name, aspect.difference, found, aspect.why).remedy(aspect.remedy))
    }
}

/// `node01, node02 and node07`, or `node01, node02 … (9 nodes)`.
pub(super) fn named(names: &[String], nodes: &[usize]) -> String {
    let names: Vec<&str> =
        nodes.iter().filter_map(|node| names.get(*node).map(String::as_str)).collect();
    if names.len() <= NAMED {
        return listed(&names);
    }
    let first = names.iter().take(NAMED - 1).copied().collect::<Vec<_>>();
    format!("{} and {} more", first.join(", "), names.len() - first.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    static ASPECT: Aspect = Aspect {
        name: "interface MTU",
        heading: "netdev MTU",
        difference: State::Broken,
        value: |_| None,
        why: "packets are lost",
        remedy: "ip link set",
    };

    /// Of values where `-` is unknown, and nodes n0, n1 …
    fn spread(values: &str) -> (Spread, Vec<String>) {
        let values: Vec<Option<String>> = values
            .split_whitespace()
            .map(|value| (value != "-").then(|| value.to_owned()))
            .collect();
        let names = (0..values.len()).map(|it| format!("n{it}")).collect();
        (Spread::new(&ASPECT, values), names)
    }

    #[test]
    fn who_differs_from_most_is_named() {
        let eight = "1500 9000 9000 1500 9000 2000 9000 9000";
        let mixed = "1500 at n0 and n3, 2000 at n5, 9000 at all others";
        let one = "9000 9000 1500 9000";
        for (values, odd, sentence) in [
            (one, vec![2], "1500 at n2, 9000 at all others"),
            (eight, vec![0, 3, 5], mixed),
            ("9000 - 9000 1500", vec![3], "1500 at n3, 9000 at 2 others"),
        ] {
            let (spread, names) = spread(values);
            assert_eq!(spread.odd(), odd, "{values}");
            let finding = spread.finding(&names).unwrap();
            assert_eq!(finding.found, sentence);
            assert_eq!(finding.state, State::Broken);
        }
    }

    #[test]
    fn two_halves_are_told_as_such() {
        for (values, halves) in [
            ("1500 9000 9000 1500", "1500 at n0 and n3; 9000 at n1 and n2"),
            ("1 2", "1 at n0; 2 at n1"),
            ("1 2 3 1", "1 at n0 and n3; 2 at n1; 3 at n2"),
        ] {
            let (spread, names) = spread(values);
            let sentence = format!("the nodes are divided: {halves}");
            assert_eq!(spread.finding(&names).unwrap().found, sentence);
            assert_eq!(spread.odd().len(), names.len(), "{values}");
        }
    }

    #[test]
    fn what_is_unknown_does_not_differ() {
        for values in ["9000 - 9000 -", "- - -", "9000"] {
            let (spread, names) = spread(values);
            assert_eq!(spread.finding(&names), None, "{values}");
            assert!(spread.odd().is_empty(), "{values}");
        }
        assert_eq!(spread("9000 - 9000").0.common().unwrap().nodes, [0, 2]);
        assert_eq!(spread("- -").0.common(), None);
    }

    #[test]
    fn many_are_counted() {
        let names: Vec<String> = (0..20).map(|it| format!("n{it}")).collect();
        let all: Vec<usize> = (0..20).collect();
        assert_eq!(named(&names, &all), "n0, n1, n2, n3, n4 and 15 more");
        assert_eq!(named(&names, &all[..2]), "n0 and n1");
    }
}
