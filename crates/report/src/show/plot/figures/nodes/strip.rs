//! Figure: the median of what each node sends and of what it receives, beside the other nodes.

use super::names::thinned;
use super::steps::{Steps, Told};
use super::subject::Subject;
use crate::observe::Metric;
use crate::show::plot::draw::palette::{GRID, Look, MUTED, Marker, SERIES, WORSE};
use crate::show::plot::draw::text::{ASCENT, SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{
    Anchor, Canvas, Key, KeyMark, Labels, Paint, Rect, Scale, Sheet, Style, Unit,
};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::figure::{number_column, text_column};
use crate::show::plot::marks::{Axis, AxisFrame};
use crate::show::plot::naming::drawn;

const HEIGHT_PX: f64 = 300.0;
/// A line of small text.
const LINE_PX: f64 = 18.0;
/// Pixels a node needs for markers beside each other.
const APART_FROM_PX: f64 = 24.0;

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
        let racks = &self.subject.order.racks;
        let above = sheet.take(if racks.is_empty() { 0.0 } else { LINE_PX });
        let area = sheet.take(HEIGHT_PX);
        let count = self.subject.matrix.nodes.len();
        let all = self
            .sides
            .iter()
            .flat_map(|side| side.medians.iter().flatten());
        let largest = all.copied().fold(self.median, f64::max);
        let unit = match self.quantity.unit() {
            "ns" => Unit::Nanoseconds,
            _ => Unit::Plain,
        };
        let title = match unit {
            Unit::Plain => self.told.unit,
            _ => "time",
        };
        let x = Axis {
            ticks: Some(Vec::new()),
            ..Axis::new(
                self.subject.names.title("node"),
                Scale::linear(-0.5, count as f64 - 0.5),
                Unit::Plain,
            )
        };
        let y = Axis::new(title, Scale::from_zero(largest), unit);
        let canvas = &mut sheet.canvas;
        let frame = AxisFrame::draw(canvas, area, &x, &y);
        if let Some(y) = frame.y(self.median) {
            let look = Look::of_rule(1);
            let paint = Paint::line(look.colour, 1.5).dashed(look.dash);
            canvas.line((frame.plot.x, y), (frame.plot.right(), y), paint);
        }
        self.racks(canvas, &frame, above);
        self.points(canvas, &frame);
        self.names(canvas, &frame, area);
    }

    fn pitch(&self, frame: &AxisFrame) -> f64 {
        frame.plot.width / self.subject.matrix.nodes.len().max(1) as f64
    }

    /// Where the marker of a side stands.
    fn place(&self, frame: &AxisFrame, side: usize, place: usize) -> Option<(f64, f64)> {
        let pitch = self.pitch(frame);
        let beside = if pitch >= APART_FROM_PX { 6.0 } else { 0.0 };
        let x = frame.x(place as f64)? + if side == 0 { -beside } else { beside };
        let value = self.sides[side].medians.get(place).copied().flatten()?;
        Some((x, frame.y(value)?))
    }

    fn points(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        for (number, side) in self.sides.iter().enumerate() {
            canvas.begin_series(&side.label());
            for (place, value) in side.medians.iter().enumerate() {
                let (Some(at), Some(value)) = (self.place(frame, number, place), value) else {
                    continue;
                };
                let hint = format!(
                    "{}: median of the flows {} {}, {:.1}\u{a0}% of the median",
                    self.subject.name(place),
                    side.name,
                    self.told.with_unit(*value),
                    self.steps.share(*value) * 100.0
                );
                canvas.marker(at, side.look, Some(&hint));
            }
            canvas.end_group();
        }
        let mut labels = Labels::within(frame.plot);
        for (number, place) in self.marked() {
            let Some(at) = self.place(frame, number, place) else {
                continue;
            };
            let name = self.subject.name(place);
            canvas.ring(at, WORSE, false, &format!("{name} is named above"));
            let style = Style {
                bold: true,
                colour: WORSE,
                ..Style::default()
            };
            let side = if number == 0 { "from" } else { "to" };
            beside(&mut labels, canvas, at, &format!("{side} {name}"), style);
        }
    }

    /// What is slow: the side, and the place of the node.
    fn marked(&self) -> Vec<(usize, usize)> {
        let marks = self.subject.marks(self.quantity);
        let from = marks.from.iter().map(|place| (0, *place));
        from.chain(marks.to.iter().map(|place| (1, *place)))
            .collect()
    }

    /// Borders between racks, and their names above.
    fn racks(&self, canvas: &mut Canvas, frame: &AxisFrame, above: Rect) {
        let pitch = self.pitch(frame);
        for rack in &self.subject.order.racks {
            let left = frame.plot.x + rack.start as f64 * pitch;
            let width = rack.len as f64 * pitch;
            if rack.start > 0 {
                let line = [(left, frame.plot.y), (left, frame.plot.bottom())];
                canvas.lines(&[line], Paint::line(MUTED, 1.0));
            }
            let name = shortened(&rack.name, SMALL_PX, false, width - 6.0);
            if width_px(&name, SMALL_PX, false) <= width - 6.0 {
                let style = Style {
                    anchor: Anchor::Middle,
                    colour: MUTED,
                    ..Style::default()
                };
                canvas.text(left + width / 2.0, above.y + SMALL_PX, &name, style);
            }
        }
    }

    fn names(&self, canvas: &mut Canvas, frame: &AxisFrame, area: Rect) {
        let marked = self.marked().into_iter().map(|(_, place)| place).collect();
        let pitch = self.pitch(frame);
        let labels: Vec<String> = (self.subject.names.labels.iter())
            .map(|name| shortened(name, SMALL_PX, false, 150.0))
            .collect();
        let widths: Vec<f64> = labels
            .iter()
            .map(|name| width_px(name, SMALL_PX, false))
            .collect();
        let foot = frame.plot.bottom() + 7.0 + SMALL_PX * ASCENT;
        let mut taken: Vec<(f64, f64)> = Vec::new();
        for place in thinned(&widths, pitch, 8.0, &marked) {
            let Some(x) = frame.x(place as f64) else {
                continue;
            };
            let tick = [(x, frame.plot.bottom()), (x, frame.plot.bottom() + 4.0)];
            canvas.lines(&[tick], Paint::line(GRID, 1.0));
            let half = widths[place] / 2.0;
            let style = Style {
                anchor: Anchor::Middle,
                ..Style::default()
            };
            let x = x.min(area.right() - half).max(area.x + half);
            let (from, to) = (x - half - 4.0, x + half + 4.0);
            if !taken.iter().any(|other| from < other.1 && other.0 < to) {
                canvas.text(x, foot, &labels[place], style);
                taken.push((from, to));
            }
        }
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

/// Writes words right or left of a ring, or above or below it, where there is room.
fn beside(labels: &mut Labels, canvas: &mut Canvas, (x, y): (f64, f64), text: &str, style: Style) {
    const AWAY_PX: f64 = 13.0;
    let places = [
        (x + AWAY_PX, y + 4.0, Anchor::Start),
        (x - AWAY_PX, y + 4.0, Anchor::End),
        (x, y - AWAY_PX, Anchor::Middle),
        (x, y + 2.0 * AWAY_PX, Anchor::Middle),
    ];
    for (x, foot, anchor) in places {
        if labels.at(canvas, (x, foot), text, Style { anchor, ..style }) {
            return;
        }
    }
}
