//! What stands between two axes: lines, in which a gap is what is missing; rules and bands to hold them against; single
//! points with words; and tiles, such as the cells of a map, bars, and intervals.

use std::ops::Range;

use crate::show::plot::{
    draw::{
        Anchor, Canvas, Colour, GROUND, Labels, MUTED, Marker, Paint, Rect, SeriesStyle, Style,
        hatch,
        text::{self, SMALL_PX, width_px},
    },
    marks::axis::AxisFrame,
};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    /// The figure; `None` interrupts the line.
    pub y: Option<f64>,
    /// Ends of the interval around it, if it has one.
    pub interval: Option<(f64, f64)>,
    /// It may lie above or below the axis, and is then at its edge.
    pub may_be_beyond: bool,
}

impl Point {
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y: Some(y), ..Point::default() }
    }

    pub(super) fn place(&self, frame: &AxisFrame) -> Option<(f64, f64)> {
        let y = self.y?;
        if self.may_be_beyond { frame.place_at_edge(self.x, y) } else { frame.place(self.x, y) }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    pub name: String,
    pub style: SeriesStyle,
    pub points: Vec<Point>,
    /// Points beside it that do not count: crossed rings, at the edge where they lie above or below the chart.
    pub hollow: Vec<(f64, f64)>,
    /// Points have markers. Without them a point that has no neighbours is a short piece of the line.
    pub markers: bool,
    /// Words at its points; none where empty.
    pub labels: Vec<String>,
    /// Intervals are one area of this style instead of whiskers.
    pub area: Option<SeriesStyle>,
}

/// A line across the chart to hold others against.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    pub name: String,
    pub style: SeriesStyle,
    /// Where it crosses the vertical axis, or the horizontal one if it is upright.
    pub at: f64,
    pub is_upright: bool,
    /// Words at its beginning; none where empty.
    pub label: String,
}

impl Rule {
    /// A line from the left to the right, the `index`th of its figure.
    pub fn across(index: usize, at: f64) -> Rule {
        Rule { at, style: SeriesStyle::of_rule(index), ..Rule::default() }
    }

    /// A dotted line from the top to the bottom.
    pub fn upright(x: f64) -> Rule {
        Rule { at: x, style: SeriesStyle::of_rule(2), is_upright: true, ..Rule::default() }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let plot = &frame.plot;
        let ends = if self.is_upright {
            frame.x(self.at).map(|x| [(x, plot.y - 6.0), (x, plot.bottom())])
        } else {
            let y = frame.y(self.at).filter(|y| frame.contains((plot.x, *y)));
            y.map(|y| [(plot.x, y), (plot.right(), y)])
        };
        if let Some([from, to]) = ends {
            let paint = Paint::line(self.style.colour, 1.5).dashed(self.style.dash);
            canvas.line(from, to, paint);
        }
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        let style = Style { colour: MUTED, ..Style::default() };
        if let (Some(y), false) = (frame.y(self.at), self.label.is_empty()) {
            let places = [y - 5.0, y + 15.0].map(|foot| (frame.plot.x + 8.0, foot, Anchor::Start));
            labels.at_first(canvas, &places, &self.label, style, true);
        }
    }
}

/// The style of what does not count.
pub fn uncounted(style: SeriesStyle) -> SeriesStyle {
    SeriesStyle { marker: Marker::Crossed, hollow: true, ..style }
}

/// Half of the length of a line through a point without neighbours.
const ALONE_PX: f64 = 10.0;

impl Series {
    pub(crate) fn xs(&self) -> impl Iterator<Item = f64> {
        let points = self.points.iter().filter(|point| point.y.is_some());
        let hollow = self.hollow.iter().map(|it| it.0);
        points.map(|point| point.x).chain(hollow)
    }

    /// How many figures it has, with those that do not count.
    pub fn figures(&self) -> usize {
        self.points.iter().filter(|point| point.y.is_some()).count() + self.hollow.len()
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let within = frame.plot.x - 0.5..=frame.plot.right() + 0.5;
        let points = self.points.iter().filter_map(|point| {
            let x = frame.x(point.x).filter(|x| within.contains(x));
            x.and(Some(frame.in_units(point.x, point.y?)))
        });
        canvas.begin_line(&self.name, points);
        self.draw_parts(canvas, frame);
        for &(x, y) in &self.hollow {
            if let Some(place) = frame.place_at_edge(x, y) {
                let figure = text::short(frame.in_units(x, y).1);
                let hint = format!("{}: {figure}, does not count", self.name);
                canvas.marker(place, uncounted(self.style), Some(&hint));
            }
        }
        canvas.end_group();
    }

    pub(super) fn keep_free(&self, frame: &AxisFrame, labels: &mut Labels) {
        let places: Vec<_> = self.points.iter().map(|it| it.place(frame)).collect();
        let markers = places.iter().flatten().copied().filter(|_| self.markers);
        let hollow = self.hollow.iter().filter_map(|it| frame.place_at_edge(it.0, it.1));
        markers.chain(hollow).for_each(|at| labels.keep_free_of_marker(at));
        let whiskers = self.points.iter().filter(|_| self.area.is_none()).filter_map(|point| {
            let (low, high) = point.interval?;
            Some((frame.place_at_edge(point.x, low)?, frame.place_at_edge(point.x, high)?))
        });
        let lines = places.windows(2).filter_map(|pair| pair[0].zip(pair[1]));
        lines.chain(whiskers).for_each(|(from, to)| labels.keep_free_of_line(from, to));
    }

    fn draw_parts(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let places: Vec<_> = self.points.iter().map(|it| it.place(frame)).collect();
        if let Some(area) = self.area {
            let ends = |of: fn((f64, f64)) -> f64| {
                let points = self.points.iter();
                points.filter_map(move |it| frame.place(it.x, of(it.interval?)))
            };
            let lower: Vec<_> = ends(|it| it.0).collect();
            let outline: Vec<_> = ends(|it| it.1).chain(lower.into_iter().rev()).collect();
            canvas.polygon(&outline, Paint::area(area.colour).see_through(0.5));
        }
        let paint = Paint::line(self.style.colour, self.style.width()).dashed(self.style.dash);
        for stretch in places.split(Option::is_none) {
            let mut corners: Vec<_> = stretch.iter().flatten().copied().collect();
            if let ([(x, y)], false) = (&*corners, self.markers)
                && frame.contains((*x, *y))
            {
                corners = vec![(x - ALONE_PX, *y), (x + ALONE_PX, *y)];
            }
            for part in clipped(&corners, frame.plot) {
                canvas.polyline(&part, paint);
            }
        }
        let placed: Vec<_> = (self.points.iter().zip(places))
            .filter_map(|(point, place)| Some((point, place?)))
            .collect();
        for &(point, (x, _)) in &placed {
            if let (Some(interval), None) = (point.interval, self.area) {
                self.whisker(canvas, frame, x, interval);
            }
        }
        for (point, place) in placed.into_iter().filter(|_| self.markers) {
            let in_unit = |y: f64| text::short(frame.in_units(point.x, y).1);
            if let (Some(y), true) = (point.y.map(in_unit), frame.contains(place)) {
                let interval = point
                    .interval
                    .map(|(low, high)| [low, high].map(in_unit))
                    .map(|[low, high]| format!(" ({low} to {high})"));
                let hint = format!("{}: {y}{}", self.name, interval.unwrap_or_default());
                canvas.marker(place, self.style, Some(&hint));
            }
        }
    }

    fn whisker(&self, canvas: &mut Canvas, frame: &AxisFrame, x: f64, (low, high): (f64, f64)) {
        let (top, bottom) = (frame.plot.y, frame.plot.bottom());
        // What has no place, such as 0 on a logarithmic axis, lies below.
        let low = frame.y(low).unwrap_or(bottom).clamp(top, bottom);
        let high = frame.y(high).unwrap_or(bottom).clamp(top, bottom);
        let plot = &frame.plot;
        if !(plot.x - 0.5..=plot.right() + 0.5).contains(&x) {
            return;
        }
        let paint = Paint::line(self.style.colour, 1.3);
        canvas.line((x, low), (x, high), paint);
        for y in [low, high] {
            let (left, right) = ((x - 4.0).max(plot.x), (x + 4.0).min(plot.right()));
            canvas.line((left, y), (right, y), paint);
        }
    }
}

fn clipped(points: &[(f64, f64)], within: Rect) -> Vec<Vec<(f64, f64)>> {
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let Some((enter, leave)) = overlap(from, to, within) else {
            continue;
        };
        let [first, last] =
            [enter, leave].map(|t| (from.0 + (to.0 - from.0) * t, from.1 + (to.1 - from.1) * t));
        match parts.last_mut() {
            Some(part) if enter == 0.0 && part.last() == Some(&from) => part.push(last),
            _ => parts.push(vec![first, if leave == 1.0 { to } else { last }]),
        }
    }
    parts
}

/// Which part of a line, from 0 to 1, lies within the rectangle (Liang and Barsky's way).
fn overlap(from: (f64, f64), to: (f64, f64), within: Rect) -> Option<(f64, f64)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (step, room) in [
        (-dx, from.0 - within.x),
        (dx, within.right() - from.0),
        (-dy, from.1 - within.y),
        (dy, within.bottom() - from.1),
    ] {
        // Half a pixel outside is rounding.
        if step == 0.0 {
            if room < -0.5 {
                return None;
            }
        } else if step < 0.0 {
            enter = enter.max((room + 0.01) / step);
        } else {
            leave = leave.min((room + 0.01) / step);
        }
    }
    (enter < leave).then_some((enter, leave))
}

const NARROWEST_PX: f64 = 3.0;

/// A part of the horizontal axis, over the whole height.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// What it is, for a legend.
    pub name: &'static str,
    pub style: SeriesStyle,
    /// How much of what is behind shows through, 0 to 1.
    pub transparency: f64,
    pub ends: (f64, f64),
    pub hint: String,
}

impl Band {
    pub fn new(
        name: &'static str,
        style: SeriesStyle,
        transparency: f64,
        ends: (f64, f64),
        hint: impl Into<String>,
    ) -> Band {
        Band { name, style, transparency, ends, hint: hint.into() }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let (Some(from), Some(to)) = (frame.x(self.ends.0), frame.x(self.ends.1)) else {
            return;
        };
        let width = (to - from).max(NARROWEST_PX);
        let left = f64::midpoint(from, to) - width / 2.0;
        let rect = Rect {
            x: left.clamp(frame.plot.x, frame.plot.right() - NARROWEST_PX),
            width: width.min(frame.plot.right() - left),
            ..frame.plot
        };
        let paint = Paint::area(self.style.colour).see_through(self.transparency);
        canvas.rect(rect, paint, Some(&self.hint));
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dot {
    pub name: String,
    /// Where it is; what lies above or below the chart is at its edge.
    pub at: (f64, f64),
    pub style: SeriesStyle,
    /// Whether it is a ring around something: round for better, square for worse.
    pub ring: Option<bool>,
    pub hint: String,
    /// Words beside it; none where empty.
    pub label: String,
}

impl Dot {
    pub fn new(
        name: impl Into<String>,
        at: (f64, f64),
        style: SeriesStyle,
        hint: impl Into<String>,
    ) -> Dot {
        Dot { name: name.into(), at, style, hint: hint.into(), ..Dot::default() }
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let Some(place) = frame.place_at_edge(self.at.0, self.at.1) else {
            return;
        };
        canvas.begin("rb-series", &[("series", &self.name)]);
        match self.ring {
            Some(better) => canvas.ring(place, self.style.colour, better, &self.hint),
            None => canvas.marker(place, self.style, Some(&self.hint)),
        }
        canvas.end_group();
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        if let Some(place) = frame.place_at_edge(self.at.0, self.at.1) {
            let plain = Style::default();
            let style = match self.ring {
                Some(_) => Style { bold: true, colour: self.style.colour, ..plain },
                None => plain,
            };
            if !self.label.is_empty() {
                labels.beside(canvas, place, &self.label, style, true);
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tile {
    /// Its middle on the vertical axis, and its height there: rows are 1 apart.
    pub y: f64,
    pub height: f64,
    /// Its ends on the horizontal axis.
    pub ends: (f64, f64),
    pub fill: Fill,
    /// Words for who points at it. Tiles without are drawn as one shape.
    pub hint: String,
    /// Words in it, the first of these that have room, and their colour.
    pub within: Option<(Vec<String>, Colour)>,
    /// Words behind its end; none where empty.
    pub behind: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Plain(Colour),
    /// Strokes aslant: nothing is known of it.
    Hatched,
    Frame(Colour),
    Nothing,
}

impl Tile {
    /// The whole height of a row.
    pub fn new(y: f64, ends: (f64, f64), fill: Fill, hint: impl Into<String>) -> Tile {
        Tile { y, height: 1.0, ends, fill, hint: hint.into(), within: None, behind: String::new() }
    }

    /// Some rows and columns of a map.
    pub(crate) fn block(
        rows: Range<usize>,
        columns: Range<usize>,
        fill: Fill,
        hint: impl Into<String>,
    ) -> Tile {
        let [top, bottom, left, right] =
            [rows.start, rows.end, columns.start, columns.end].map(|it| it as f64 - 0.5);
        let height = bottom - top;
        Tile { height, ..Tile::new(-f64::midpoint(top, bottom), (left, right), fill, hint) }
    }

    fn rect(&self, frame: &AxisFrame) -> Option<Rect> {
        let (left, top) = frame.place(self.ends.0, self.y + self.height / 2.0)?;
        let (right, bottom) = frame.place(self.ends.1, self.y - self.height / 2.0)?;
        Some(Rect { x: left, y: top, width: right - left, height: bottom - top })
    }

    pub(super) fn draw_all(tiles: &[Tile], canvas: &mut Canvas, frame: &AxisFrame) {
        let mut plain: Vec<(Colour, Vec<Rect>)> = Vec::new();
        for tile in tiles.iter().filter(|tile| tile.hint.is_empty()) {
            if let (Fill::Plain(colour), Some(rect)) = (tile.fill, tile.rect(frame)) {
                match plain.iter_mut().find(|(known, _)| *known == colour) {
                    Some((_, rects)) => rects.push(rect),
                    None => plain.push((colour, vec![rect])),
                }
            }
        }
        for (colour, rects) in plain {
            canvas.tiles(&rects, colour);
        }
        for tile in tiles {
            if let Some(rect) = tile.rect(frame) {
                tile.draw(canvas, rect);
            }
        }
    }

    fn draw(&self, canvas: &mut Canvas, rect: Rect) {
        let hint = (!self.hint.is_empty()).then_some(self.hint.as_str());
        match (self.fill, hint) {
            // Half a pixel of the ground shows around it.
            (Fill::Plain(colour), Some(_)) => {
                let (width, height) = (rect.width - 1.0, rect.height - 1.0);
                let inner = Rect::new(rect.x + 0.5, rect.y + 0.5, width, height);
                canvas.rect(inner, Paint::area(colour), hint);
            }
            (Fill::Frame(colour), _) => canvas.rect(rect, Paint::line(colour, 2.0), hint),
            (Fill::Hatched | Fill::Nothing, Some(_)) => {
                canvas.rect(rect, Paint::area(GROUND).see_through(1.0), hint);
            }
            _ => {}
        }
        if self.fill == Fill::Hatched {
            hatch(canvas, rect);
        }
        if let Some((texts, colour)) = &self.within
            && rect.height >= SMALL_PX * 1.3
            && let Some(text) =
                texts.iter().find(|it| rect.width >= width_px(it, SMALL_PX, false) + 4.0)
        {
            let style = Style { anchor: Anchor::Middle, colour: *colour, ..Style::default() };
            let (x, y) = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0 + 4.0);
            canvas.text(x, y, text, style);
        }
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        if let (Some((x, y)), false) = (frame.place(self.ends.1, self.y), self.behind.is_empty()) {
            let place = (x + 10.0, y + 4.0, Anchor::Start);
            labels.at_first(canvas, &[place], &self.behind, Style::default(), true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Rect = Rect { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };

    #[test]
    fn lines_end_at_the_frame_and_come_back() {
        let heights = [50.0, 50.0, -50.0, 50.0, 50.0];
        let line = [0.0, 1.0, 2.0, 3.0, 4.0].map(|at| (20.0 * at, heights[at as usize]));
        let parts = clipped(&line, BOX);
        assert_eq!(parts.len(), 2, "{parts:?}");
        let highest = parts.iter().flatten().map(|point| point.1).fold(f64::INFINITY, f64::min);
        assert!((-0.1..=0.1).contains(&highest));
        for hidden in [&[(0.0, 500.0), (20.0, 500.0)][..], &[(0.0, 5.0)]] {
            assert!(clipped(hidden, BOX).is_empty());
        }
    }
}
