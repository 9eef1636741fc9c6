//! A matrix that is drawn: its nodes in order, what is marked in it, and the words for it. Names of many nodes
//! beside an axis: short where all begin or end alike. How far a figure is from the median of its kind, as a colour,
//! and how it is written.

use std::collections::{BTreeSet, HashMap};

use results::{load::Loaded, model::ResultFile};

use crate::judge::{
    finding::Finding,
    mesh::{Cell, Matrix, Mesh, Outlier, Place},
};
use crate::observe::Metric;
use crate::show::plot::{
    draw::{palette::DIVERGING, text},
    figures::heat_map::Shade,
    rows::{Sample, case_settings::Setting},
};

pub(super) struct Subject<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) matrix: Matrix,
    pub(super) order: Order,
    /// The nodes' names, in the order in which they are drawn.
    pub(super) names: Names,
    pub(super) outliers: Vec<Outlier>,
    pub(super) findings: Vec<Finding>,
    /// Its difference from the other matrices.
    pub(super) apart: String,
    pub(super) subtitle: String,
}

/// What is named as slow, by places of the order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// Nodes that send less, or later.
    pub(super) from: BTreeSet<usize>,
    /// Nodes that receive less, or later.
    pub(super) to: BTreeSet<usize>,
    pub(super) paths: BTreeSet<(usize, usize)>,
}

impl Marks {
    /// Rows whose names are always written.
    pub(super) fn rows(&self) -> BTreeSet<usize> {
        let of_paths = self.paths.iter().map(|(from, _)| *from);
        self.from.iter().copied().chain(of_paths).collect()
    }

    /// Columns whose names are always written.
    pub(super) fn columns(&self) -> BTreeSet<usize> {
        let of_paths = self.paths.iter().map(|(_, to)| *to);
        self.to.iter().copied().chain(of_paths).collect()
    }
}

impl<'a> Subject<'a> {
    pub(super) fn new(loaded: &'a Loaded, matrix: Matrix, racks: &Racks) -> Subject<'a> {
        let Mesh { matrix, outliers, findings, .. } = Mesh::new(matrix);
        let order = Order::new(&matrix.nodes, &loaded.result, racks);
        let in_order: Vec<&str> = order.nodes.iter().map(|it| matrix.name(*it)).collect();
        let names = Names::new(&in_order);
        Subject {
            subtitle: subtitle(loaded, &matrix),
            apart: String::new(),
            outliers,
            findings,
            loaded,
            names,
            order,
            matrix,
        }
    }

    /// The whole name of the node at a place.
    pub(super) fn name(&self, place: usize) -> &str {
        let index = self.order.nodes.get(place);
        index.map_or("", |index| self.matrix.name(*index))
    }

    fn indices(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let nodes = &self.order.nodes;
        nodes.get(from).copied().zip(nodes.get(to).copied())
    }

    pub(super) fn cell(&self, from: usize, to: usize) -> Option<&Cell> {
        let (from, to) = self.indices(from, to)?;
        self.matrix.cell(from, to)
    }

    pub(super) fn has(&self, from: usize, to: usize) -> bool {
        let ends = self.indices(from, to);
        ends.is_some_and(|(row, column)| self.matrix.has(row, column))
    }

    pub(super) fn has_slow(&self, quantity: Metric) -> bool {
        self.slow(quantity).next().is_some()
    }

    /// Outliers by throughput, or those by latency.
    fn slow(&self, quantity: Metric) -> impl Iterator<Item = &Outlier> {
        let kind = quantity.higher_is_better();
        self.outliers.iter().filter(move |outlier| outlier.quantity.higher_is_better() == kind)
    }

    fn place(&self, index: usize) -> Option<usize> {
        self.order.nodes.iter().position(|it| *it == index)
    }

    pub(super) fn marks(&self, quantity: Metric) -> Marks {
        let mut marks = Marks::default();
        for outlier in self.slow(quantity) {
            match outlier.place {
                Place::Node(node) => {
                    marks.from.extend(self.place(node));
                    marks.to.extend(self.place(node));
                }
                Place::From(node) => marks.from.extend(self.place(node)),
                Place::To(node) => marks.to.extend(self.place(node)),
                Place::Path(from, to) => marks.paths.extend(self.place(from).zip(self.place(to))),
            }
        }
        marks
    }

    pub(super) fn title(&self, what: &str) -> String {
        let count = self.matrix.nodes.len();
        let pattern = self.matrix.pattern.word();
        let title = format!("{what}: {pattern}, {count} nodes");
        match self.apart.as_str() {
            "" => title,
            apart => format!("{title}, {apart}"),
        }
    }
}

/// The settings of a matrix as words, of those settings that have some.
pub(super) fn words(loaded: &Loaded, matrix: &Matrix) -> Vec<(Setting, String)> {
    let id = matrix.cases.first();
    let case = loaded.result.cases.iter().find(|case| Some(&case.id) == id);
    let Some(flow) = case.and_then(|case| case.flows().next()) else {
        return Vec::new();
    };
    let sample = Sample::new(loaded, flow, false);
    Setting::each()
        .into_iter()
        .filter(|setting| ![Setting::Flow, Setting::Side].contains(setting))
        .map(|setting| (setting, sample.value(setting).words.clone()))
        .filter(|(_, words)| !words.is_empty())
        .collect()
}

fn subtitle(loaded: &Loaded, matrix: &Matrix) -> String {
    let words = words(loaded, matrix).into_iter().map(|(_, words)| words);
    let runs: BTreeSet<usize> = matrix.cells.iter().map(|it| it.runs.len() + it.lost).collect();
    let runs = match (runs.first(), runs.last()) {
        (Some(1), Some(1)) => "1 run a flow".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} runs a flow"),
        (Some(least), Some(most)) => format!("{least} to {most} runs a flow"),
        _ => String::new(),
    };
    words.chain([runs]).collect::<Vec<_>>().join("\u{a0}· ")
}

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
    fn whole(names: &[&str]) -> Names {
        Names {
            shared: String::new(),
            labels: names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    pub(super) fn new(names: &[&str]) -> Names {
        if names.len() < SHORTENED_FROM {
            return Names::whole(names);
        }
        // A number is never cut.
        let begins = names
            .iter()
            .fold(names[0], |shared, name| beginning(shared, name))
            .trim_end_matches(|letter: char| letter.is_ascii_digit());
        let rests: Vec<&str> = names.iter().map(|name| &name[begins.len()..]).collect();
        let ends = rests.iter().fold(rests[0], |shared, name| end(shared, name));
        // Nor is a part of a domain's name.
        let domain = ends.find('.').map_or("", |dot| &ends[dot..]);
        let labels: Vec<&str> =
            rests.iter().map(|rest| &rest[..rest.len() - domain.len()]).collect();
        let is_worth_it = begins.len() + domain.len() >= LEAST_SHARED;
        if !is_worth_it || labels.iter().any(|label| label.is_empty()) {
            return Names::whole(names);
        }
        Names {
            shared: format!("{begins}…{domain}"),
            labels: labels.into_iter().map(str::to_owned).collect(),
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

/// Figures over the median at which a colour ends and the next begins, in percent. 100 is the median.
const BANDWIDTH: [u32; 8] = [50, 75, 90, 95, 98, 102, 105, 110];
/// Latencies scatter more, and there is no end to how long they can be.
const LATENCY: [u32; 8] = [67, 80, 90, 110, 125, 150, 200, 400];
/// Colours on which text has the ground's colour instead of the ink's.
const DARK_STEPS: usize = 3;

pub(super) fn shades(quantity: Metric) -> Vec<Shade> {
    let is_rate = quantity.higher_is_better();
    let ends = if is_rate { BANDWIDTH } else { LATENCY };
    (0..=ends.len())
        .map(|at| {
            // The first colour is the worst.
            let step = if is_rate { at } else { ends.len() - at };
            let (from, to) = (at.checked_sub(1).map(|at| ends[at]), ends.get(at));
            let label = match (from, to) {
                (Some(from), Some(to)) => format!("{from} to {to} %"),
                (Some(from), None) => format!("above {from} %"),
                (None, to) => format!("below {} %", to.unwrap_or(&0)),
            };
            let up_to = to.map_or(f64::INFINITY, |end| f64::from(*end) / 100.0);
            Shade::new(up_to, DIVERGING[step], step < DARK_STEPS, label)
        })
        .collect()
}

/// How the figures of a quantity are written: all in one unit, and as shares of their median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Norm {
    pub(super) unit: &'static str,
    /// What a figure is divided by to be in it.
    pub(super) divisor: f64,
    pub(super) median: f64,
}

impl Norm {
    /// `None` without a median to compare with.
    pub(super) fn around(figure: Option<f64>, quantity: Metric) -> Option<Norm> {
        let median = figure.filter(|figure| figure.is_finite() && *figure > 0.0)?;
        let (unit, divisor) = match quantity.unit() {
            "ns" => {
                let unit = text::time_unit(median);
                (unit.name, unit.ns)
            }
            unit => (unit, 1.0),
        };
        Some(Norm { unit, divisor, median })
    }

    pub(super) fn share(&self, value: f64) -> f64 {
        value / self.median
    }

    pub(super) fn plain(&self, value: f64) -> String {
        text::short(value / self.divisor)
    }

    pub(super) fn with_unit(&self, value: f64) -> String {
        format!("{}\u{a0}{}", self.plain(value), self.unit)
    }

    pub(super) fn with_share(&self, value: f64) -> String {
        let (value, percent) = (self.with_unit(value), self.share(value) * 100.0);
        format!("{value}, {percent:.1}\u{a0}% of the median")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use results::sample::{names, node};

    use super::*;
    use crate::show::plot::figures::heat_map::tests::can_be_read;

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
        let spans = order.racks.iter().map(|it| (&*it.name, it.start, it.len));
        assert!(spans.eq([("r2", 0, 2), ("r10", 2, 2), ("", 4, 1)]));
    }

    #[test]
    fn worse_is_a_lower_step_whichever_way_is_worse() {
        let steps = |quantity, values: [f64; 7]| {
            let norm = Norm::around(Some(10.0), quantity).unwrap();
            let shades = shades(quantity);
            can_be_read(&shades);
            values
                .map(|value| Shade::at(&shades, norm.share(value)).colour)
                .map(|colour| DIVERGING.iter().position(|it| *it == colour).unwrap())
        };
        let rates = [0.0, 6.0, 9.7, 10.0, 10.1, 10.3, 99.0];
        assert_eq!(steps(Metric::GbitPerS, rates), [0, 1, 4, 5, 5, 6, 8]);
        let times = [99.0, 21.0, 11.5, 10.0, 9.5, 8.5, 1.0];
        assert_eq!(steps(Metric::P99Ns, times), [0, 1, 4, 5, 5, 6, 8]);
        for missing in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(Norm::around(missing, Metric::P99Ns), None);
        }
    }
}
