//! A matrix that is drawn: its nodes in order, what is marked in it, and the words for it.

use std::collections::BTreeSet;

use super::names::Names;
use super::order::{Order, Racks};
use crate::judge::mesh::{Cell, Matrix, Mesh, NodesFinding, Outlier, Place};
use crate::observe::Metric;
use crate::results::load::Loaded;
use crate::show::plot::rows::sample::Sample;
use crate::show::plot::rows::settings::Setting;

pub(super) struct Subject<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) matrix: Matrix,
    pub(super) order: Order,
    /// In the order drawn.
    pub(super) names: Names,
    pub(super) outliers: Vec<Outlier>,
    pub(super) findings: Vec<NodesFinding>,
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
        let Mesh { matrix, outliers, findings, .. } = Mesh::of(matrix);
        let order = Order::of(&matrix.nodes, &loaded.result, racks);
        let in_order: Vec<&str> = order.nodes.iter().map(|it| matrix.name(*it)).collect();
        let names = Names::of(&in_order);
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
        ends.is_some_and(|(from, to)| self.matrix.has(from, to))
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
    Setting::all()
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
