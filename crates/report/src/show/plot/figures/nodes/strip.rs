//! Figure: the median of what each node sends and of what it receives, beside the other nodes.

use super::steps::{Steps, Told};
use super::subject::Subject;
use crate::observe::Metric;
use crate::show::plot::draw::palette::{Look, Marker, SERIES, WORSE};
use crate::show::plot::draw::text::{SMALL_PX, shortened};
use crate::show::plot::draw::{Key, KeyMark, Scale, Sheet, Tick, Unit};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::figure::{number_column, text_column};
use crate::show::plot::marks::{Axis, Chart, Dot, Mark, Rule, Upright, facets};
use crate::show::plot::naming::drawn;

const HEIGHT_PX: f64 = 300.0;
/// Width of a node's name.
const NAME_PX: f64 = 150.0;
/// How far a side's marker is from the node's place; 1 is from node to node.
const BESIDE: f64 = 0.15;

/// The strip of a quantity; `None` where no flow has it.
pub(super) fn figure(subject: &Subject<'_>, quantity: Metric, id: String) -> Option<Figure> {
    let median = subject.matrix.median(quantity);
    let steps = Steps::around(median, quantity)?;
    let strip = Strip::new(subject, quantity, steps, median?);
    let what = quantity.title();
    let figure = Figure {
        id,
        title: subject.title(&format!("{what} of each node ({})", strip.told.unit)),
        subtitle: subject.subtitle.clone(),
        description:
            "For each node the median of the flows that it posts, and of those that go to it."
                .to_owned(),
        tables: vec![strip.table()],
        ..Figure::default()
    };
    Some(drawn(figure, |sheet| strip.draw(sheet)))
}

struct Strip<'s> {
    subject: &'s Subject<'s>,
    quantity: Metric,
    steps: Steps,
    told: Told,
    median: f64,
    /// By place of the order.
    sides: [Side; 2],
}

/// What nodes send, or receive.
struct Side {
    name: &'static str,
    look: Look,
    medians: Vec<Option<f64>>,
}

impl Side {
    fn label(&self) -> String {
        format!("median of the flows {}", self.name)
    }
}

impl Strip<'_> {
    fn new<'s>(subject: &'s Subject<'s>, quantity: Metric, steps: Steps, median: f64) -> Strip<'s> {
        let ordered = |medians: Vec<Option<f64>>| {
            let of = |index: &usize| medians.get(*index).copied().flatten();
            subject.order.nodes.iter().map(of).collect()
        };
        let side = |name, marker, hollow, colour, medians| Side {
            name,
            look: Look {
                colour: SERIES[colour],
                marker,
                dash: "",
                hollow,
                thin: false,
            },
            medians: ordered(medians),
        };
        let matrix = &subject.matrix;
        Strip {
            subject,
            quantity,
            steps,
            told: Told::of(quantity, median),
            median,
            sides: [
                side(
                    "from the node",
                    Marker::Up,
                    false,
                    0,
                    matrix.sending(quantity),
                ),
                side(
                    "to the node",
                    Marker::Circle,
                    true,
                    1,
                    matrix.receiving(quantity),
                ),
            ],
        }
    }

    fn draw(&self, sheet: &mut Sheet) {
        let keys = self.sides.iter().map(|side| Key {
            look: side.look,
            mark: KeyMark::Marker,
            label: side.label(),
        });
        let rule = Key {
            look: Look::of_rule(1),
            mark: KeyMark::Line,
            label: "median of all flows".to_owned(),
        };
        sheet.legend(&keys.chain([rule]).collect::<Vec<_>>());
        facets::draw(sheet, &[self.chart()], HEIGHT_PX);
    }

    fn chart(&self) -> Chart {
        let count = self.subject.matrix.nodes.len();
        let medians = self
            .sides
            .iter()
            .flat_map(|side| side.medians.iter().flatten());
        let largest = medians.copied().fold(self.median, f64::max);
        let unit = match self.quantity.unit() {
            "ns" => Unit::Nanoseconds,
            _ => Unit::Plain,
        };
        let name = |(place, label): (usize, &String)| Tick {
            value: place as f64,
            label: shortened(label, SMALL_PX, false, NAME_PX),
        };
        let x = Axis {
            ticks: Some(
                self.subject
                    .names
                    .labels
                    .iter()
                    .enumerate()
                    .map(name)
                    .collect(),
            ),
            ..Axis::new(
                self.subject.names.title("node"),
                Scale::linear(-0.5, count as f64 - 0.5),
                Unit::Plain,
            )
        };
        let rule = Mark::Rule(Rule {
            name: String::new(),
            look: Look::of_rule(1),
            y: self.median,
            label: String::new(),
        });
        let racks = self.subject.order.racks.iter().map(|rack| {
            Mark::Upright(Upright {
                x: rack.start as f64 - 0.5,
                label: rack.name.clone(),
            })
        });
        let sides = self.sides.iter().enumerate();
        let dots = sides.flat_map(|(number, side)| {
            let medians = side.medians.iter().enumerate();
            medians.filter_map(move |(place, value)| Some(self.dot(number, side, place, (*value)?)))
        });
        let marked = self.marked().into_iter().filter_map(|(number, place)| {
            let side = &self.sides[number];
            let value = side.medians.get(place).copied().flatten()?;
            let (name, end) = (self.subject.name(place), ["from", "to"][number]);
            Some(Dot {
                look: Look {
                    colour: WORSE,
                    ..side.look
                },
                ring: Some(false),
                hint: format!("{name} is named above"),
                label: format!("{end} {name}"),
                ..self.dot(number, side, place, value)
            })
        });
        Chart {
            heading: String::new(),
            x,
            y: Axis::new(self.quantity.axis(), Scale::from_zero(largest), unit),
            marks: racks
                .chain([rule])
                .chain(dots.chain(marked).map(Mark::Dot))
                .collect(),
        }
    }

    /// The marker of a side, beside that of the other.
    fn dot(&self, number: usize, side: &Side, place: usize, value: f64) -> Dot {
        let beside = if number == 0 { -BESIDE } else { BESIDE };
        Dot {
            name: side.label(),
            at: (place as f64 + beside, value),
            look: side.look,
            ring: None,
            hint: format!(
                "{}: median of the flows {} {}, {:.1}\u{a0}% of the median",
                self.subject.name(place),
                side.name,
                self.told.with_unit(value),
                self.steps.share(value) * 100.0
            ),
            label: String::new(),
        }
    }

    /// What is slow: the side, and the place of the node.
    fn marked(&self) -> Vec<(usize, usize)> {
        let marks = self.subject.marks(self.quantity);
        let from = marks.from.iter().map(|place| (0, *place));
        from.chain(marks.to.iter().map(|place| (1, *place)))
            .collect()
    }

    fn table(&self) -> Table {
        let subject = self.subject;
        let has_racks = !subject.order.racks.is_empty();
        let mut columns = vec![text_column("node")];
        if has_racks {
            columns.push(text_column("rack"));
        }
        for side in &self.sides {
            columns.push(number_column(format!("{} ({})", side.name, self.told.unit)));
            columns.push(number_column("of the median (%)"));
        }
        let rack = |place: usize| {
            let mut racks = subject.order.racks.iter();
            let own = racks.find(|it| (it.start..it.start + it.len).contains(&place));
            Cell::Text(own.map_or_else(String::new, |rack| rack.name.clone()))
        };
        let row = |place: usize| {
            let mut row = vec![Cell::Text(subject.name(place).to_owned())];
            if has_racks {
                row.push(rack(place));
            }
            for side in &self.sides {
                let value = side.medians.get(place).copied().flatten();
                let cell = |of: f64, digits| Cell::Number(of, digits);
                row.push(value.map_or(Cell::Missing, |it| cell(it / self.told.divisor, 3)));
                let share = value.map(|it| self.steps.share(it) * 100.0);
                row.push(share.map_or(Cell::Missing, |it| cell(it, 1)));
            }
            row
        };
        Table {
            caption: "Medians of each node over its peers".to_owned(),
            columns,
            rows: (0..subject.matrix.nodes.len()).map(row).collect(),
        }
    }
}
