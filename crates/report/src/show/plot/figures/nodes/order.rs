//! In which order nodes are drawn: by name, or by rack and then by name. It must not know what is drawn of them.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::results::model::ResultFile;

/// Which rack each node is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Racks(HashMap<String, String>);

impl FromIterator<(String, String)> for Racks {
    /// From pairs of a node's or a host's name and its rack.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Racks {
        Racks(pairs.into_iter().collect())
    }
}

impl Racks {
    /// The rack of a node of that file: that of its name, or of its host's.
    pub fn of(&self, file: &ResultFile, node: &str) -> Option<&str> {
        let of_host = || self.0.get(&file.node(node)?.host.hostname);
        let rack = self.0.get(node).or_else(of_host);
        rack.map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Nodes that are drawn beside each other and are in one rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rack {
    /// Its name; empty of nodes of which no rack is known.
    pub(super) name: String,
    /// The place of its first node.
    pub(super) start: usize,
    /// How many there are.
    pub(super) len: usize,
}

/// Nodes in the order in which they are drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// The index of each node in the list that was ordered.
    pub(super) nodes: Vec<usize>,
    /// The racks, in order; empty where none is known.
    pub(super) racks: Vec<Rack>,
}

impl Order {
    /// Orders nodes of a file.
    pub(super) fn of(names: &[String], file: &ResultFile, racks: &Racks) -> Order {
        let mut placed: Vec<(Option<&str>, &str, usize)> = (names.iter().enumerate())
            .map(|(index, name)| (racks.of(file, name), name.as_str(), index))
            .collect();
        let by_rack = |one: Option<&str>, other: Option<&str>| match (one, other) {
            (Some(one), Some(other)) => natural(one, other),
            // Nodes without a rack come last.
            (one, other) => one.is_none().cmp(&other.is_none()),
        };
        placed.sort_by(|one, other| by_rack(one.0, other.0).then_with(|| natural(one.1, other.1)));
        let mut spans: Vec<Rack> = Vec::new();
        if placed.iter().any(|(rack, ..)| rack.is_some()) {
            for (place, (rack, ..)) in placed.iter().enumerate() {
                let name = rack.unwrap_or_default();
                match spans.last_mut() {
                    Some(last) if last.name == name => last.len += 1,
                    _ => spans.push(Rack {
                        name: name.to_owned(),
                        start: place,
                        len: 1,
                    }),
                }
            }
        }
        Order {
            nodes: placed.into_iter().map(|(.., index)| index).collect(),
            racks: spans,
        }
    }
}

/// As people sort names: runs of digits by their number, so that node2 comes before node10.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one, other);
    loop {
        let (Some(first), Some(second)) = (a.chars().next(), b.chars().next()) else {
            // Equal but for zeros in front: any order that is always the same.
            return a.len().cmp(&b.len()).then_with(|| one.cmp(other));
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (x, after_x) = number(a);
            let (y, after_y) = number(b);
            match x.len().cmp(&y.len()).then_with(|| x.cmp(y)) {
                Ordering::Equal => (a, b) = (after_x, after_y),
                order => return order,
            }
        } else if first == second {
            (a, b) = (&a[first.len_utf8()..], &b[second.len_utf8()..]);
        } else {
            return first.cmp(&second);
        }
    }
}

/// The digits that a text begins with, without zeros in front, and the rest.
fn number(text: &str) -> (&str, &str) {
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    (number.trim_start_matches('0'), rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::results::sample::node;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn ordered(list: &[&str], file: &ResultFile, racks: &[(&str, &str)]) -> (Vec<String>, Order) {
        let racks = racks.iter();
        let racks = racks.map(|(node, rack)| ((*node).to_owned(), (*rack).to_owned()));
        let all = names(list);
        let order = Order::of(&all, file, &racks.collect());
        let shown = order.nodes.iter().map(|index| all[*index].clone());
        (shown.collect(), order)
    }

    #[test]
    fn numbers_in_names_are_sorted_as_numbers() {
        let names = "node10 b1 node2 node02 node1 node1.3 node1.12 node";
        let names: Vec<&str> = names.split(' ').collect();
        let (shown, order) = ordered(&names, &ResultFile::default(), &[]);
        let wanted = "b1 node node1 node1.3 node1.12 node02 node2 node10";
        assert_eq!(shown.join(" "), wanted);
        assert!(order.racks.is_empty());
    }

    #[test]
    fn racks_stand_together_and_nodes_without_one_last() {
        let file = ResultFile {
            nodes: vec![node("a.1", "a", Vec::new())],
            ..ResultFile::default()
        };
        let (right, left, other) = ("r2", "r10", "r1");
        let racks = [
            ("n3", right),
            ("n1", left),
            ("n2", right),
            ("a", left),
            ("other", other),
        ];
        let (shown, order) = ordered(&["n1", "n2", "n3", "n4", "a.1"], &file, &racks);
        assert_eq!(shown, ["n2", "n3", "a.1", "n1", "n4"]);
        let spans = order.racks.iter().map(|it| (&*it.name, it.start, it.len));
        assert!(spans.eq([("r2", 0, 2), ("r10", 2, 2), ("", 4, 1)]));
    }

    proptest! {
        #[test]
        fn any_names_have_one_order(mut list in proptest::collection::vec("[a1-3é0.]{0,6}", 0..12)) {
            list.sort_by(|one, other| natural(one, other));
            for pair in list.windows(2) {
                prop_assert_ne!(natural(&pair[0], &pair[1]), Ordering::Greater);
                prop_assert_eq!(natural(&pair[1], &pair[0]), natural(&pair[0], &pair[1]).reverse());
            }
        }
    }
}
