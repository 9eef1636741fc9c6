//! Marks between two axes: lines, points, bands and tiles, the charts that carry them, and small multiples: the
//! charts of one figure beside each other, each under its own heading.

mod axis;
pub(crate) mod matrix;
mod shapes;

use crate::show::plot::draw::{
    Canvas, Key, KeyMark, Labels, Marker, Rect, Sheet, Style, Width, style,
    text::{ASCENT, SMALL_PX, printable, shortened, width_px, wrapped},
};

pub use axis::{Axis, AxisFrame};
pub(crate) use matrix::{Matrix, MatrixCell, Shade, Shades};
pub(crate) use shapes::uncounted;
pub use shapes::{Band, Dot, Fill, Point, Rule, Series, Tile};

/// The part of a chart's width that a name at a line's end takes at most.
const LABEL_PART: f64 = 0.35;

#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Points, joined where nothing is missing between them.
    Line(Series),
    Rule(Rule),
    Band(Band),
    Dot(Dot),
    Tiles(Vec<Tile>),
}

impl Mark {
    fn keep_free(&self, frame: &AxisFrame, labels: &mut Labels) {
        match self {
            Mark::Line(series) => series.keep_free(frame, labels),
            Mark::Dot(dot) => {
                let place = frame.place_at_edge(dot.at.0, dot.at.1);
                place.into_iter().for_each(|at| labels.keep_free_of_marker(at));
            }
            _ => {}
        }
    }

    fn has_uncounted(&self) -> bool {
        match self {
            Mark::Line(series) => !series.hollow.is_empty(),
            Mark::Dot(dot) => dot.style.marker == Marker::Crossed,
            _ => false,
        }
    }

    /// Its furthest place, if the axis is to have it.
    pub(crate) fn x(&self) -> Option<f64> {
        match self {
            Mark::Band(band) => Some(band.ends.1),
            Mark::Dot(dot) => Some(dot.at.0),
            _ => None,
        }
    }

    /// Its figure, if the axis is to have it.
    pub(crate) fn y(&self) -> Option<f64> {
        match self {
            Mark::Rule(rule) => Some(rule.at),
            Mark::Dot(dot) => Some(dot.at.1),
            _ => None,
        }
    }
}

/// Marks between two axes; later ones lie above earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub heading: String,
    pub x: Axis,
    pub y: Axis,
    pub marks: Vec<Mark>,
    /// Pixels that it is wide: at least and at most.
    pub width_px: (f64, f64),
    /// Pixels that it is high with its axes, if not as high as others.
    pub height_px: Option<f64>,
}

impl Chart {
    pub fn new(x: Axis, y: Axis, marks: Vec<Mark>) -> Chart {
        Chart {
            heading: String::new(),
            x,
            y,
            marks,
            width_px: (0.0, f64::INFINITY),
            height_px: None,
        }
    }

    /// A chart of rows with names, each so high, over the whole width.
    pub fn of_rows(row_px: f64, x: Axis, y: Axis, marks: Vec<Mark>) -> Chart {
        let rows = y.names().len();
        Chart {
            width_px: (f64::INFINITY, f64::INFINITY),
            height_px: Some(rows as f64 * row_px + axis::around(&x)),
            ..Chart::new(x, y, marks)
        }
    }

    /// A map of rows and columns with names: cells of that height, and at least and at most so wide.
    pub fn of_cells(
        (least_px, most_px): (f64, f64),
        row_px: f64,
        (x, y): (Axis, Axis),
        marks: Vec<Mark>,
    ) -> Chart {
        let columns = x.names().len() as f64;
        let names_px = y.names_px();
        Chart {
            width_px: (names_px + columns * least_px, names_px + columns * most_px),
            ..Chart::of_rows(row_px, x, y, marks)
        }
    }

    /// Draws the chart with its axes within `area`, and words where there is room for them.
    pub fn draw(&self, canvas: &mut Canvas, area: Rect) {
        let frame = AxisFrame::draw(canvas, area, &self.x, &self.y);
        for mark in &self.marks {
            match mark {
                Mark::Line(series) => series.draw(canvas, &frame),
                Mark::Rule(rule) => rule.draw(canvas, &frame),
                Mark::Band(band) => band.draw(canvas, &frame),
                Mark::Dot(dot) => dot.draw(canvas, &frame),
                Mark::Tiles(tiles) => Tile::draw_all(tiles, canvas, &frame),
            }
        }
        frame.borders(canvas, &self.x, &self.y);
        self.words(canvas, &frame);
    }

    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.marks.iter().filter_map(|mark| match mark {
            Mark::Line(series) => Some(series),
            _ => None,
        })
    }

    /// What the marks are, for a legend.
    pub fn keys(&self) -> Vec<Key> {
        self.marks
            .iter()
            .filter_map(|mark| {
                let (style, mark, label) = match mark {
                    Mark::Line(it) if it.markers => (it.style, KeyMark::LineAndMarker, &*it.name),
                    Mark::Line(it) => (it.style, KeyMark::Line, &*it.name),
                    Mark::Rule(it) => (it.style, KeyMark::Line, &*it.name),
                    Mark::Band(it) => (it.style, KeyMark::Area, it.name),
                    _ => return None,
                };
                Some(Key { style, mark, label: label.to_owned() })
            })
            .collect()
    }

    /// Words at points, at rules, and names of lines at their ends.
    fn words(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let mut labels = Labels::within(frame.plot);
        self.marks.iter().for_each(|mark| mark.keep_free(frame, &mut labels));
        for mark in &self.marks {
            match mark {
                Mark::Line(series) => {
                    for (label, point) in series.labels.iter().zip(&series.points) {
                        if let (Some(at), false) = (point.place(frame), label.is_empty()) {
                            labels.beside(canvas, at, label, Style::default(), true);
                        }
                    }
                }
                Mark::Rule(rule) => rule.words(canvas, frame, &mut labels),
                Mark::Tiles(tiles) => {
                    tiles.iter().for_each(|tile| tile.words(canvas, frame, &mut labels));
                }
                Mark::Dot(dot) => dot.words(canvas, frame, &mut labels),
                _ => {}
            }
        }
        // A line alone needs no name.
        let is_named = self.series().count() > 1 && self.series().all(|it| it.labels.is_empty());
        for series in self.series().filter(|_| is_named) {
            let name = &series.name;
            let is_short = width_px(name, SMALL_PX, false) <= frame.plot.width * LABEL_PART;
            let end = series.points.iter().filter_map(|it| it.place(frame)).next_back();
            if let (Some(end), true, false) = (end, is_short, name.is_empty()) {
                canvas.begin("rb-series", &[("series", name)]);
                labels.beside(canvas, end, name, Style::default(), false);
                canvas.end_group();
            }
        }
    }
}

/// A line of a heading, and lines that it has at most.
const HEADING_PX: f64 = 16.0;
const HEADING_LINES: usize = 3;
/// Height of a chart among others, and of one alone.
const HEIGHT_PX: f64 = 200.0;
const ALONE_PX: f64 = 320.0;

/// Charts beside each other: as many as have the width that they need; on a column only those that need little.
fn columns(sheet: &Sheet, charts: &[Chart]) -> usize {
    let least_px = charts.iter().map(|chart| chart.width_px.0).fold(0.0, f64::max);
    let most = match (sheet.width, charts.len()) {
        (Width::Column, _) if least_px > 0.0 => 2,
        (Width::Column, _) | (_, 0 | 1) => 1,
        (Width::Page, 2 | 4) => 2,
        (Width::Page, _) => 3,
    };
    (1..=most.min(charts.len().max(1)))
        .rev()
        .find(|columns| sheet.width_beside(*columns) >= least_px)
        .unwrap_or(1)
}

/// Draws charts beside and below each other. Inner ones have no titles at their axes where all have the same.
pub fn draw_charts(sheet: &mut Sheet, charts: &[Chart]) {
    let columns = columns(sheet, charts);
    let width = sheet.width_beside(columns);
    let usual = if charts.len() == 1 { ALONE_PX } else { HEIGHT_PX };
    let same_y = charts.iter().all(|it| it.y.title == charts[0].y.title);
    let same_x = charts.iter().all(|it| it.x.title == charts[0].x.title);
    for (row, of_row) in charts.chunks(columns).enumerate() {
        let headings: Vec<Vec<String>> =
            of_row.iter().map(|it| heading_lines(&it.heading, width)).collect();
        let above = match headings.iter().map(Vec::len).max() {
            None | Some(0) => 0.0,
            Some(most) => most as f64 * HEADING_PX + 2.0,
        };
        let height =
            of_row.iter().map(|chart| chart.height_px.unwrap_or(usual)).fold(0.0, f64::max);
        let rects = sheet.take_beside(columns, above + height);
        for (column, ((lines, chart), rect)) in headings.iter().zip(of_row).zip(rects).enumerate() {
            let style = Style { bold: true, ..Style::default() };
            sheet.canvas.begin("rb-heading", &[("heading", &chart.heading)]);
            for (line, text) in lines.iter().enumerate() {
                let foot = rect.y + line as f64 * HEADING_PX + SMALL_PX * ASCENT;
                sheet.canvas.text(rect.x, foot, text, style);
            }
            sheet.canvas.end_group();
            let mut inner = chart.clone();
            if column > 0 && same_y {
                inner.y.title.clear();
            }
            if (row + 1) * columns + column < charts.len() && same_x {
                inner.x.title.clear();
            }
            let area = Rect {
                x: rect.x,
                y: rect.y + above,
                width: rect.width.min(chart.width_px.1),
                height: chart.height_px.unwrap_or(usual),
            };
            inner.draw(&mut sheet.canvas, area);
        }
    }
}

/// A heading in as many lines as it takes, the last one shortened where they are too many.
fn heading_lines(heading: &str, width: f64) -> Vec<String> {
    let mut lines = wrapped(&printable(heading), SMALL_PX, true, width);
    if lines.len() > HEADING_LINES {
        let rest = lines.split_off(HEADING_LINES - 1).join(" ");
        lines.push(shortened(&rest, SMALL_PX, true, width));
    }
    lines
}

/// Keys of all charts, each name once, in the order of `names`, then the rest.
pub fn keys_of_charts(charts: &[Chart], names: &[String]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    for key in charts.iter().flat_map(Chart::keys) {
        if !key.label.is_empty() && !keys.iter().any(|known| known.label == key.label) {
            keys.push(key);
        }
    }
    keys.sort_by_key(|key| names.iter().position(|name| *name == key.label).unwrap_or(names.len()));
    if keys.len() < 2 {
        // Nothing to distinguish.
        keys.clear();
    }
    if charts.iter().flat_map(|chart| &chart.marks).any(Mark::has_uncounted) {
        let style = uncounted(style(0));
        keys.push(Key::new(KeyMark::Marker, style, "a run that does not count"));
    }
    keys
}

#[cfg(test)]
mod tests;
