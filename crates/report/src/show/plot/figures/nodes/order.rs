//! In which order nodes are drawn: by name, or by rack and then by name.

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
        let rack = self.0.get(node).or_else(|| self.0.get(&file.node(node)?.host.hostname));
        rack.map(String::as_str)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rack {
    /// Its name; empty of nodes of which no rack is known.
    pub(super) name: String,
    pub(super) start: usize,
    pub(super) len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    /// The index of each node in the list that was ordered.
    pub(super) nodes: Vec<usize>,
    /// The racks, in order; empty where none is known.
    pub(super) racks: Vec<Rack>,
}

impl Order {
    pub(super) fn of(names: &[String], file: &ResultFile, racks: &Racks) -> Order {
        let mut placed: Vec<(Option<&str>, &str, usize)> = names
            .iter()
            .enumerate()
            .map(|(index, name)| (racks.of(file, name), name.as_str(), index))
            .collect();
        // Nodes without a rack come last.
        placed.sort_by_cached_key(|(rack, name, _)| {
            (rack.is_none(), rack.map(natural), natural(name))
        });
        let mut spans: Vec<Rack> = Vec::new();
        if placed.iter().any(|(rack, ..)| rack.is_some()) {
            for (place, (rack, ..)) in placed.iter().enumerate() {
                let name = rack.unwrap_or_default();
                match spans.last_mut() {
                    Some(last) if last.name == name => last.len += 1,
                    _ => spans.push(Rack { name: name.to_owned(), start: place, len: 1 }),
                }
            }
        }
        Order { nodes: placed.into_iter().map(|(.., index)| index).collect(), racks: spans }
    }

    /// The racks as parts of an axis on which nodes are 1 apart.
    pub(super) fn parts(&self) -> impl Iterator<Item = (f64, f64, String)> {
        self.racks.iter().map(|rack| {
            let from = rack.start as f64 - 0.5;
            (from, from + rack.len as f64, rack.name.clone())
        })
    }
}

/// What names are sorted by, as people do: runs of digits by their number, so that node2 comes before node10.
fn natural(name: &str) -> (Vec<(usize, &str)>, &str) {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let (part, after) = rest.split_at(digits.max(first.len_utf8()));
        let number = part.trim_start_matches('0');
        parts.push(match digits {
            0 => (0, part),
            // The longer number is larger.
            _ => (1 + number.len(), number),
        });
        rest = after;
    }
    (parts, name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::{names, node};

    fn ordered(list: &[&str], file: &ResultFile, racks: &[(&str, &str)]) -> (Vec<String>, Order) {
        let racks = racks.iter().map(|(node, rack)| ((*node).to_owned(), (*rack).to_owned()));
        let all = names(list);
        let order = Order::of(&all, file, &racks.collect());
        (order.nodes.iter().map(|index| all[*index].clone()).collect(), order)
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
        let spans = order.racks.iter().map(|it| (&*it.name, it.start, it.len));
        assert!(spans.eq([("r2", 0, 2), ("r10", 2, 2), ("", 4, 1)]));
    }
}
