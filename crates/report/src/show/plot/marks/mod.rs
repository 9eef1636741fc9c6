//! Marks between two axes: lines, points, bands, bars and cells, and the charts that carry them. They must not know what they
//! are of.

mod axis;
mod band;
mod bar;
mod cell;
pub mod facets;
mod line;
mod point;
#[cfg(test)]
mod tests;

pub use axis::{Axis, AxisFrame};
pub use band::{Area, Band, Upright};
pub use bar::Bar;
pub use cell::Row;
pub use line::{Point, Rule, Series};
pub use point::Dot;

use crate::show::plot::draw::text::{SMALL_PX, width_px};
use crate::show::plot::draw::{Canvas, Key, KeyMark, Labels, Rect, Style};

/// The part of a chart's width that a name at a line's end takes at most.
const LABEL_PART: f64 = 0.35;

/// Something between two axes.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Points, joined where nothing is missing between them.
    Line(Series),
    /// A line across the chart.
    Rule(Rule),
    /// A line from top to bottom.
    Upright(Upright),
    /// A part of the horizontal axis.
    Band(Band),
    /// What lies between two lines.
    Area(Area),
    /// A single point.
    Dot(Dot),
    /// A bar in a row.
    Bar(Bar),
    /// Cells in a row.
    Row(Row),
}

impl Mark {
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
            Mark::Rule(rule) => Some(rule.y),
            Mark::Dot(dot) => Some(dot.at.1),
            _ => None,
        }
    }
}

/// Marks between two axes; later ones lie above earlier ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What tells it from other charts of its figure.
    pub heading: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn.
    pub marks: Vec<Mark>,
}

impl Chart {
    /// Draws the chart with its axes within `area`, and words where there is room for them.
    pub fn draw(&self, canvas: &mut Canvas, area: Rect) {
        let frame = AxisFrame::draw(canvas, area, &self.x, &self.y);
        for mark in &self.marks {
            match mark {
                Mark::Line(series) => series.draw(canvas, &frame),
                Mark::Rule(rule) => rule.draw(canvas, &frame),
                Mark::Upright(upright) => upright.draw(canvas, &frame),
                Mark::Band(band) => band.draw(canvas, &frame),
                Mark::Area(area) => area.draw(canvas, &frame),
                Mark::Dot(dot) => dot.draw(canvas, &frame),
                Mark::Bar(bar) => bar.draw(canvas, &frame),
                Mark::Row(row) => row.draw(canvas, &frame),
            }
        }
        self.words(canvas, &frame);
    }

    /// All lines.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.marks.iter().filter_map(|mark| match mark {
            Mark::Line(series) => Some(series),
            _ => None,
        })
    }

    /// What the marks are, for a legend.
    pub fn keys(&self) -> Vec<Key> {
        let key = |mark: &Mark| {
            let (look, mark, label) = match mark {
                Mark::Line(it) if it.markers => (it.look, KeyMark::LineAndMarker, &*it.name),
                Mark::Line(it) => (it.look, KeyMark::Line, &*it.name),
                Mark::Rule(it) => (it.look, KeyMark::Line, &*it.name),
                Mark::Band(it) => (it.look, KeyMark::Area, it.name),
                _ => return None,
            };
            let label = label.to_owned();
            Some(Key { look, mark, label })
        };
        self.marks.iter().filter_map(key).collect()
    }

    /// Words at points, at rules, and names of lines at their ends.
    fn words(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let mut labels = Labels::within(frame.plot);
        let place = |point: &Point| point.place(frame);
        for series in self.series().filter(|series| series.markers) {
            let all: Vec<_> = series.points.iter().filter_map(place).collect();
            all.iter().for_each(|at| labels.keep_free_of_marker(*at));
            for pair in all.windows(2).filter(|_| series.labels.is_empty()) {
                labels.keep_free_of_line(pair[0], pair[1]);
            }
        }
        for mark in &self.marks {
            match mark {
                Mark::Line(series) => {
                    for (label, point) in series.labels.iter().zip(&series.points) {
                        if let (Some(at), false) = (place(point), label.is_empty()) {
                            labels.beside(canvas, at, label, Style::default());
                        }
                    }
                }
                Mark::Rule(rule) => rule.words(canvas, frame, &mut labels),
                Mark::Upright(upright) => upright.words(canvas, frame, &mut labels),
                Mark::Bar(bar) => bar.words(canvas, frame, &mut labels),
                Mark::Dot(dot) => dot.words(canvas, frame, &mut labels),
                _ => {}
            }
        }
        let is_labelled = self.series().any(|series| !series.labels.is_empty());
        for series in self.series().filter(|_| !is_labelled) {
            let name = &series.name;
            let is_short = width_px(name, SMALL_PX, false) <= frame.plot.width * LABEL_PART;
            let end = series.points.iter().filter_map(place).next_back();
            if let (Some(end), true, false) = (end, is_short, name.is_empty()) {
                canvas.begin_series(name);
                labels.beside(canvas, end, name, Style::default());
                canvas.end_group();
            }
        }
    }
}
