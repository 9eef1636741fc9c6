//! Figure: the median of what each node sends and of what it receives, beside the other nodes.

use super::steps::Norm;
use super::subject::Subject;
use crate::observe::Metric;
use crate::show::plot::charts::unit;
use crate::show::plot::draw::palette::{Look, Marker, SERIES, WORSE, look};
use crate::show::plot::draw::{Key, KeyMark, Scale};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Rule};
use crate::show::plot::picture::Picture;

/// The strip of a quantity; `None` where no flow has it.
pub(super) fn figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let norm = Norm::around(subject.matrix.median(quantity), quantity)?;
    let strip = Strip::new(subject, quantity, norm);
    let what = quantity.title();
    let sides = strip.sides.iter().map(|side| Key::new(KeyMark::Marker, side.look, side.label()));
    let rule = Key::new(KeyMark::Line, Look::of_rule(1), "median of all flows");
    let picture = Picture {
        subtitle: subject.subtitle.clone(),
        keys: sides.chain([rule]).collect(),
        charts: vec![strip.chart()],
        tables: vec![strip.table()],
        ..Picture::default()
    };
    Some(picture.named(
        id,
        subject.title(&format!("{what} of each node ({})", strip.norm.unit)),
        "Medians of each node: of the flows that it posts, and of the flows to it.",
    ))
}

struct Strip<'s> {
    subject: &'s Subject<'s>,
    quantity: Metric,
    norm: Norm,
    /// By place of the order.
    sides: [Side; 2],
}

struct Side {
    name: &'static str,
    look: Look,
    /// How far its markers are from the node's place; 1 is from node to node.
    beside: f64,
    medians: Vec<Option<f64>>,
}

impl Side {
    fn label(&self) -> String {
        format!("median of the flows {}", self.name)
    }

    fn median(&self, place: usize) -> Option<f64> {
        self.medians.get(place).copied().flatten()
    }
}

impl Strip<'_> {
    fn new<'s>(subject: &'s Subject<'s>, quantity: Metric, norm: Norm) -> Strip<'s> {
        let matrix = &subject.matrix;
        let [from, to] = [matrix.sending(quantity), matrix.receiving(quantity)].map(|medians| {
            let order = subject.order.nodes.iter();
            order.map(|index| medians.get(*index).copied().flatten()).collect()
        });
        let up = Look { marker: Marker::Up, ..look(0) };
        let ring = Look { colour: SERIES[1], hollow: true, ..look(0) };
        Strip {
            subject,
            quantity,
            norm,
            sides: [
                Side { name: "from the node", look: up, beside: -0.15, medians: from },
                Side { name: "to the node", look: ring, beside: 0.15, medians: to },
            ],
        }
    }

    fn chart(&self) -> Chart {
        let subject = self.subject;
        let largest = (self.sides.iter())
            .flat_map(|side| side.medians.iter().flatten())
            .copied()
            .fold(self.norm.median, f64::max);
        let x = Axis {
            parts: subject.order.parts().collect(),
            ..Axis::columns(subject.names.title("node"), subject.names.labels.clone())
        };
        let y = Scale::from_zero(largest);
        let y = Axis::new(self.quantity.axis(), y, unit(self.quantity));
        let rule =
            Mark::Rule(Rule { look: Look::of_rule(1), y: self.norm.median, ..Rule::default() });
        let count = subject.matrix.nodes.len();
        let dots = (self.sides.iter())
            .flat_map(|side| (0..count).filter_map(|place| self.dot(side, place)));
        // What is slow.
        let marks = subject.marks(self.quantity);
        let slow = self.sides.iter().zip([("from", marks.from), ("to", marks.to)]).flat_map(
            |(side, (end, places))| {
                places
                    .into_iter()
                    .filter_map(|place| {
                        let (dot, name) = (self.dot(side, place)?, subject.name(place));
                        Some(Dot {
                            look: Look { colour: WORSE, ..side.look },
                            ring: Some(false),
                            hint: format!("{name} is named above"),
                            label: format!("{end} {name}"),
                            ..dot
                        })
                    })
                    .collect::<Vec<_>>()
            },
        );
        let marks = [rule].into_iter().chain(dots.chain(slow).map(Mark::Dot));
        Chart::new(x, y, marks.collect())
    }

    fn dot(&self, side: &Side, place: usize) -> Option<Dot> {
        let value = side.median(place)?;
        let (node, label) = (self.subject.name(place), side.label());
        Some(Dot {
            name: side.label(),
            at: (place as f64 + side.beside, value),
            look: side.look,
            hint: format!("{node}: {label} {}", self.norm.with_share(value)),
            ..Dot::default()
        })
    }

    fn table(&self) -> Table {
        let subject = self.subject;
        let racks = &subject.order.racks;
        let mut names = vec!["node".to_owned()];
        names.extend((!racks.is_empty()).then(|| "rack".to_owned()));
        for side in &self.sides {
            names.push(format!("{} ({})", side.name, self.norm.unit));
            names.push("of the median (%)".to_owned());
        }
        let rows = (0..subject.matrix.nodes.len()).map(|place| {
            let mut row = vec![Cell::text(subject.name(place))];
            let rack = racks.iter().find(|it| (it.start..it.start + it.len).contains(&place));
            row.extend(rack.map(|rack| Cell::text(&rack.name)));
            for side in &self.sides {
                let value = side.median(place);
                row.push(Cell::number(value.map(|it| it / self.norm.divisor), 3));
                row.push(Cell::number(value.map(|it| self.norm.share(it) * 100.0), 1));
            }
            row
        });
        Table::new("Medians of each node over its peers", names, rows)
    }
}
