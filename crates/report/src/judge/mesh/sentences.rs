//! What a matrix says, as sentences with figures and where to look. It must not judge: `outliers` does.

use settings::{Pattern, PollMode};

use super::causes::Place;
use super::matrix::{Cell, Matrix};
use super::outliers::Outlier;
use super::words::{beside, figure, number, percent, some_of, than};
use crate::observe::format::plural;
use statistics::median;

/// Paths, or flows without a figure, that are told by name.
const MOST: usize = 5;
/// Workers with less than this part of their cores, and of what those of other nodes had, were kept from them.
const LITTLE_CPU: f64 = 0.9;
/// Flows that are within this part of the median are alike.
const ALIKE: f64 = 0.1;

impl Matrix {
    /// What is to be told of it.
    pub fn sentences(&self) -> Vec<String> {
        self.sentences_of(&self.outliers())
    }

    /// What is to be told of it and of these outliers, which are its own.
    pub fn sentences_of(&self, outliers: &[Outlier]) -> Vec<String> {
        let mut told = self.without_figures();
        let (paths, nodes): (Vec<Outlier>, Vec<Outlier>) =
            (outliers.iter()).partition(|outlier| matches!(outlier.place, Place::Path(..)));
        told.extend(nodes.iter().map(|outlier| self.node(outlier)));
        told.extend(self.paths(&paths, outliers.len()));
        told.extend(self.others(outliers));
        told
    }

    fn node(&self, outlier: &Outlier) -> String {
        let (node, quantity) = (outlier.place, outlier.quantity);
        let (index, name) = match node {
            Place::Node(node) | Place::From(node) | Place::To(node) | Place::Path(node, _) => {
                (node, self.name(node))
            }
        };
        let [sends, to, receives, from] = self.verbs();
        let than = |ratio| than(quantity, ratio);
        let is_rate = quantity.higher_is_better();
        let peers = self.peers(index);
        let of_peers = format!("the median of {peers} {}", plural(peers, "peer"));
        let figures = beside(quantity, &[outlier.value], outlier.usual);
        let compared = format!("{} {of_peers} ({figures})", than(outlier.ratio()));
        let look = self.look_at(index);
        let all = |preposition: &str| match outlier.slow == outlier.flows {
            true => format!("{preposition} all of them"),
            false => format!("{preposition} {} of {}", outlier.slow, outlier.flows),
        };
        match node {
            Place::From(_) if is_rate => format!("{name} {sends} {compared}, {}: {look}", all(to)),
            Place::To(_) if is_rate => {
                format!("{name} {receives} {compared}, {}: {look}", all(from))
            }
            Place::From(_) => {
                format!("messages of {name} take {compared}, {}: {look}", all("to"))
            }
            Place::To(_) => format!(
                "messages to {name} take {compared}, {}: {look}",
                all("from")
            ),
            Place::Node(_) | Place::Path(..) => {
                let side = |of: fn(&Cell) -> usize| {
                    let own = self.cells.iter().filter(|cell| of(cell) == index);
                    let values: Vec<f64> = own.filter_map(|it| it.figures.of(quantity)).collect();
                    median(&values).unwrap_or(outlier.value)
                };
                let [out, back] = [side(|cell| cell.from), side(|cell| cell.to)];
                let ratios = [out, back].map(|value| value / outlier.usual);
                let figures = format!("({})", beside(quantity, &[out, back], outlier.usual));
                let with = match outlier.slow == outlier.flows {
                    true => "with all of them".to_owned(),
                    false => format!("in {} of {} flows", outlier.slow, outlier.flows),
                };
                match is_rate {
                    true => format!(
                        "{name} {sends} {} and {receives} {} {of_peers} {figures}, {with}: {look}",
                        percent(1.0 - ratios[0]),
                        than(ratios[1]),
                    ),
                    false => format!(
                        "messages of {name} and to it take {} {of_peers} {figures}, {with}: {look}",
                        than(outlier.ratio()),
                    ),
                }
            }
        }
    }

    /// How many other nodes a node has flows with.
    fn peers(&self, node: usize) -> usize {
        let of_node = |cell: &&Cell| Place::Node(node).has(cell.from, cell.to);
        let own = self.cells.iter().filter(of_node);
        let peers: std::collections::BTreeSet<usize> =
            own.map(|cell| cell.from + cell.to - node).collect();
        peers.len()
    }

    /// What a node does with a flow that it posts, and with one that goes to it, each with its preposition.
    fn verbs(&self) -> [&'static str; 4] {
        match self.settings.op.profile().fetches {
            true => ["reads", "from", "is read", "by"],
            false => ["sends", "to", "receives", "from"],
        }
    }

    /// Where to look when a node is slow: at its CPU, where its workers had less of it than the others'. Only of workers
    /// that never sleep it is known whether they were kept from it.
    fn look_at(&self, node: usize) -> String {
        let name = self.name(node);
        if self.settings.poll != PollMode::Busy {
            return format!("look at {name}'s port, cable or CPU");
        }
        let others = self.cpu.iter().enumerate();
        let others = others.filter_map(|(other, share)| share.filter(|_| other != node));
        let others = median(&others.collect::<Vec<f64>>());
        let own = self.cpu.get(node).copied().flatten();
        match (own, others) {
            (Some(own), Some(others)) if own < LITTLE_CPU && own < others * LITTLE_CPU => {
                format!(
                    "look at what else runs on {name}, whose workers had {} of their cores, those of the others {}",
                    percent(own),
                    percent(others)
                )
            }
            _ => format!("look at {name}'s port or cable"),
        }
    }

    fn paths(&self, paths: &[Outlier], outliers: usize) -> Vec<String> {
        let mut told = Vec::new();
        let mut left: Vec<&Outlier> = paths.iter().collect();
        let mut paths_told = 0;
        while let Some(outlier) = left.first().copied() {
            let Place::Path(from, to) = outlier.place else {
                break;
            };
            let is_back = |it: &&&Outlier| {
                it.place == Place::Path(to, from) && it.quantity == outlier.quantity && from != to
            };
            let back = left.iter().find(is_back).copied();
            left.retain(|it| *it != outlier && Some(*it) != back);
            let is_only = outliers == 1 + usize::from(back.is_some());
            if paths_told == MOST {
                let more = left.len() + 1;
                let what = plural(more, "other path");
                told.push(format!(
                    "{more} {what} {} slow too",
                    if more == 1 { "is" } else { "are" }
                ));
                break;
            }
            paths_told += 1;
            told.push(match back {
                Some(back) => self.both_ways((outlier, back), from, to, is_only),
                None => self.path(outlier, from, to, is_only),
            });
        }
        told
    }

    fn path(&self, outlier: &Outlier, from: usize, to: usize, is_only: bool) -> String {
        let [one, other] = [from, to].map(|node| self.name(node));
        let quantity = outlier.quantity;
        let value = figure(quantity, outlier.value);
        let compared = format!(
            "{value}, {} the median {}",
            than(quantity, outlier.ratio()),
            figure(quantity, outlier.usual)
        );
        let only = if is_only { "only " } else { "" };
        let [sends, _, receives, _] = self.verbs();
        match self.pattern {
            Pattern::Loop => format!(
                "{only}{one} is slow by itself: {compared} of all nodes: look at its CPU, memory and PCIe slot"
            ),
            Pattern::Incast(_) => format!(
                "{only}{one} {sends} less than the others: {compared} of all: look at {one}, and at its path to {other}"
            ),
            Pattern::Outcast(_) => format!(
                "{only}{other} {receives} less than the others: {compared} of all: look at {other}, and at its path \
                 from {one}"
            ),
            Pattern::Ring | Pattern::Bisection => format!(
                "{only}{one}>{other} is slow: {compared}: look at {one}, {other} and the path between them; \
                 --pattern pairs separates them"
            ),
            Pattern::Pairs | Pattern::AllToAll => {
                format!("{only}{one}>{other} is slow: {compared}: look at the path")
            }
        }
    }

    /// Two nodes that are slow with each other, there and back.
    fn both_ways(
        &self,
        (there, back): (&Outlier, &Outlier),
        from: usize,
        to: usize,
        is_only: bool,
    ) -> String {
        let [one, other] = [from, to].map(|node| self.name(node));
        let quantity = there.quantity;
        let look = match self.pattern {
            Pattern::Bisection => format!(
                "look at {one}, {other} and the path between them; --pattern pairs separates them"
            ),
            _ => "look at the path".to_owned(),
        };
        format!(
            "{}{one} and {other} are slow with each other: {} there and {} back, {} and {} the median {}: {look}",
            if is_only { "only " } else { "" },
            figure(quantity, there.value),
            number(quantity, back.value),
            than(quantity, there.ratio()).trim_end_matches(" than"),
            than(quantity, back.ratio()),
            figure(quantity, there.usual),
        )
    }

    /// How alike the flows are of which nothing was told.
    fn others(&self, outliers: &[Outlier]) -> Option<String> {
        let quantity = self.quantity();
        let is_told = |cell: &&Cell| outliers.iter().any(|it| it.place.has(cell.from, cell.to));
        let left = || self.cells.iter().filter(|cell| !is_told(cell));
        let mut values: Vec<f64> = left().filter_map(|it| it.figures.of(quantity)).collect();
        let middle = median(&values).filter(|middle| *middle > 0.0)?;
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let away = (middle - least).max(most - middle) / middle;
        let count = values.len();
        let what = match self.pattern {
            Pattern::Pairs | Pattern::AllToAll => plural(count, "pair"),
            Pattern::Loop => plural(count, "node"),
            _ => plural(count, "flow"),
        };
        let median = format!("the median {}", figure(quantity, middle));
        if count < 2 {
            return None;
        }
        Some(match (outliers, away <= ALIKE) {
            ([], _) if !self.can_tell() => match self.slower_of_two() {
                Some(told) if away > ALIKE / 2.0 => told,
                _ => format!("{count} {what} within {} of {median}", percent(away)),
            },
            ([], true) => {
                let within = percent(away);
                format!("nothing is slow: {count} {what} within {within} of {median}")
            }
            ([], false) => format!(
                "nothing stands out, but {count} {what} scatter: {} to {}, {median}; more runs (--runs) may show more",
                number(quantity, least),
                number(quantity, most),
            ),
            _ => format!(
                "the other {count} {what} are within {} of {median}",
                percent(away)
            ),
        })
    }

    /// Of two flows the slower one; there is no third that tells which of them is usual.
    fn slower_of_two(&self) -> Option<String> {
        let quantity = self.quantity();
        let known = |cell: &Cell| {
            let [from, to] = [cell.from, cell.to].map(|node| self.name(node));
            Some((cell.figures.of(quantity)?, format!("{from}>{to}")))
        };
        let mut cells: Vec<(f64, String)> = self.cells.iter().filter_map(known).collect();
        cells.sort_by(|(one, _), (two, _)| one.total_cmp(two));
        if !quantity.higher_is_better() {
            cells.reverse();
        }
        let [(slow, slower), (fast, faster)] = &cells[..] else {
            return None;
        };
        Some(format!(
            "{slower} is slower than {faster}: {} ({}); two flows do not show which is normal: look at both nodes, \
             and at the path between them",
            than(quantity, slow / fast)
                .trim_end_matches(" than")
                .trim_end_matches(" as"),
            beside(quantity, &[*slow], *fast),
        ))
    }

    /// Flows that have no figure.
    pub(crate) fn without_figures(&self) -> Vec<String> {
        let quantity = self.quantity();
        let lacks = |cell: &&Cell| cell.figures.of(quantity).is_none();
        let mut left: Vec<&Cell> = self.cells.iter().filter(lacks).collect();
        let mut told = Vec::new();
        let mut doubtful: Vec<&Cell> = left.iter().copied().filter(|it| it.doubtful > 0).collect();
        left.retain(|cell| cell.doubtful == 0);
        for node in 0..self.nodes.len() {
            let is_own = |cell: &Cell| Place::Node(node).has(cell.from, cell.to);
            let all = self.cells.iter().filter(|cell| is_own(cell)).count();
            let own = left.iter().filter(|it| is_own(it) && it.lost > 0).count();
            if own == all && own > 2 && self.nodes.len() > 2 {
                let name = self.name(node);
                told.push(format!(
                    "{name} has no figure: each run of its {own} flows failed or was stopped"
                ));
                left.retain(|cell| !is_own(cell));
            }
        }
        for node in 0..self.nodes.len() {
            let all = self.cells.iter().filter(|cell| cell.from == node).count();
            let own = doubtful.iter().filter(|cell| cell.from == node).count();
            if own == all && own > 2 {
                let (name, [sends, ..]) = (self.name(node), self.verbs());
                told.push(format!(
                    "{name} has no figure of what it {sends}: each run of its {own} flows is doubtful, see below: \
                     look at what else runs on {name}"
                ));
                doubtful.retain(|cell| cell.from != node);
            }
        }
        let (not_begun, lost): (Vec<&Cell>, Vec<&Cell>) = left
            .into_iter()
            .partition(|cell| cell.runs.is_empty() && cell.lost == 0);
        let expected = self.nodes.len() * self.nodes.len().saturating_sub(1);
        let absent = match self.pattern {
            Pattern::Pairs | Pattern::AllToAll => expected.saturating_sub(self.cells.len()),
            _ => 0,
        };
        let no_figure = |cells: &[&Cell], why: &str| {
            let names = cells.iter().map(|cell| {
                let [from, to] = [cell.from, cell.to].map(|node| self.name(node));
                format!("{from}>{to}")
            });
            let names: Vec<String> = names.collect();
            (!names.is_empty()).then(|| format!("no figure of {}: {why}", some_of(&names, MOST)))
        };
        told.extend(no_figure(&lost, "each run failed or was stopped"));
        told.extend(no_figure(&doubtful, "each run is doubtful, see below"));
        let not_begun = not_begun.len() + absent;
        if not_begun > 0 {
            let verb = if not_begun == 1 { "was" } else { "were" };
            told.push(format!(
                "{not_begun} {} {verb} not begun",
                plural(not_begun, "flow")
            ));
        }
        told
    }
}

#[cfg(test)]
mod tests;
