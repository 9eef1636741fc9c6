//! Names of many nodes beside an axis: short where all begin or end alike, in the order in which people sort them, by racks.

use std::collections::HashMap;

use results::{model::ResultFile, text::natural};

/// Nodes from which on names are shortened.
const SHORTENED_FROM: usize = 9;
/// What names share is worth leaving out from this length on.
const LEAST_SHARED: usize = 3;

/// Names of nodes as they are written at an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// What all of them begin and end with, around `…`; empty where they are whole.
    pub(super) shared: String,
    pub(super) labels: Vec<String>,
}

impl Names {
    pub(super) fn new(names: &[&str]) -> Names {
        let many = if names.len() < SHORTENED_FROM { &[] } else { names };
        // A number is never cut.
        let begins = many
            .iter()
            .copied()
            .reduce(beginning)
            .unwrap_or("")
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        let ends = many.iter().map(|name| &name[begins.len()..]).reduce(end).unwrap_or("");
        // Nor is a part of a domain's name.
        let domain = ends.find('.').map_or("", |dot| &ends[dot..]);
        let cut = begins.len() + domain.len();
        let is_short = cut >= LEAST_SHARED && names.iter().all(|name| name.len() > cut);
        let (from, behind) = if is_short { (begins.len(), domain.len()) } else { (0, 0) };
        Names {
            shared: if is_short { format!("{begins}…{domain}") } else { String::new() },
            labels: names.iter().map(|name| name[from..name.len() - behind].to_owned()).collect(),
        }
    }

    /// The title of an axis of them: `what`, and what the names share.
    pub(super) fn title(&self, what: &str) -> String {
        match self.shared.as_str() {
            "" => what.to_owned(),
            shared => format!("{what} ({shared})"),
        }
    }
}

fn beginning<'n>(one: &'n str, other: &str) -> &'n str {
    let alike = one.chars().zip(other.chars()).take_while(|(a, b)| a == b);
    &one[..alike.map(|(letter, _)| letter.len_utf8()).sum()]
}

fn end<'n>(one: &'n str, other: &str) -> &'n str {
    let length: usize = one
        .chars()
        .rev()
        .zip(other.chars().rev())
        .take_while(|(a, b)| a == b)
        .map(|(letter, _)| letter.len_utf8())
        .sum();
    &one[one.len() - length..]
}

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
    pub fn rack(&self, file: &ResultFile, node: &str) -> Option<&str> {
        let rack = self.0.get(node).or_else(|| self.0.get(&file.node(node)?.host.hostname));
        rack.map(String::as_str)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    /// The index of each node in the list that was ordered.
    pub(super) nodes: Vec<usize>,
    /// The racks as parts of an axis on which nodes are 1 apart; empty where none is known, and a name of nodes of which none
    /// is known.
    pub(super) racks: Vec<(f64, f64, String)>,
}

impl Order {
    pub(super) fn new(names: &[String], file: &ResultFile, racks: &Racks) -> Order {
        let mut placed: Vec<(Option<&str>, &str, usize)> = names
            .iter()
            .enumerate()
            .map(|(index, name)| (racks.rack(file, name), name.as_str(), index))
            .collect();
        // Nodes without a rack come last.
        placed.sort_by_cached_key(|(rack, name, _)| {
            (rack.is_none(), rack.map(natural), natural(name))
        });
        let mut racks_of_nodes: Vec<(f64, f64, String)> = Vec::new();
        let mut place = -0.5;
        for of_rack in placed.chunk_by(|one, next| one.0 == next.0) {
            let end = place + of_rack.len() as f64;
            racks_of_nodes.push((place, end, of_rack[0].0.unwrap_or_default().to_owned()));
            place = end;
        }
        racks_of_nodes.retain(|_| placed.iter().any(|(rack, ..)| rack.is_some()));
        Order {
            nodes: placed.into_iter().map(|(.., index)| index).collect(),
            racks: racks_of_nodes,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use results::sample::{names, node};

    use super::*;

    #[test]
    fn what_all_share_is_said_once() {
        let numbered = |from: &str, to: &str| {
            let names: Vec<String> = (1..=12).map(|number| format!("{from}{number}{to}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Names::new(&names)
        };
        let names = numbered("node1", ".rack3.example.com");
        assert_eq!(names.shared, "node….rack3.example.com");
        assert_eq!((&*names.labels[0], &*names.labels[11]), ("11", "112"));
        assert_eq!(names.title("to"), "to (node….rack3.example.com)");
        let short = numbered("n", "");
        assert_eq!((&*short.shared, &*short.labels[9]), ("", "n10"));
        let few = Names::new(&["node1", "node2"]);
        assert_eq!((&*few.shared, &*few.labels[1]), ("", "node2"));
        assert_eq!(few.title("to"), "to");
    }

    proptest! {
        #[test]
        fn short_names_are_told_apart(names in proptest::collection::btree_set("[ab0-9.é]{1,6}", 0..20)) {
            let whole: Vec<String> = names.iter().map(|name| format!("host-é{name}.com")).collect();
            let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
            let shown = Names::new(&whole);
            let apart: BTreeSet<&String> = shown.labels.iter().collect();
            prop_assert_eq!(apart.len(), whole.len());
        }
    }

    fn ordered(list: &[&str], file: &ResultFile, racks: &[(&str, &str)]) -> (Vec<String>, Order) {
        let racks = racks.iter().map(|(node, rack)| ((*node).to_owned(), (*rack).to_owned()));
        let names = names(list);
        let order = Order::new(&names, file, &racks.collect());
        (order.nodes.iter().map(|index| names[*index].clone()).collect(), order)
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
        let file =
            ResultFile { nodes: vec![node("a.1", "a", Vec::new())], ..ResultFile::default() };
        let (right, left, other) = ("r2", "r10", "r1");
        let racks = [("n3", right), ("n1", left), ("n2", right), ("a", left), ("other", other)];
        let (shown, order) = ordered(&["n1", "n2", "n3", "n4", "a.1"], &file, &racks);
        assert_eq!(shown, ["n2", "n3", "a.1", "n1", "n4"]);
        let parts = order.racks.iter().map(|(begin, end, name)| (*begin, *end, &**name));
        assert!(parts.eq([(-0.5, 1.5, "r2"), (1.5, 3.5, "r10"), (3.5, 4.5, "")]));
    }
}
