//! Shapes and text as SVG elements in the order in which they are drawn, and words beside what they name, as far as
//! they have room.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use crate::show::plot::draw::{
    palette::{Colour, GROUND, INK, MUTED, Marker, SeriesStyle},
    text::{ASCENT, DESCENT, SMALL_PX, printable, width_px},
};

/// A rectangle, in pixels from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Rect {
        Rect { x, y, width, height }
    }

    /// A square with so many pixels from its middle to each side.
    pub(super) fn around((x, y): (f64, f64), half: f64) -> Rect {
        Rect::new(x - half, y - half, 2.0 * half, 2.0 * half)
    }

    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Which end of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Size in pixels; 12 at least.
    pub size_px: f64,
    pub bold: bool,
    pub colour: Colour,
    pub anchor: Anchor,
}

impl Default for Style {
    fn default() -> Self {
        Style { size_px: SMALL_PX, bold: false, colour: INK, anchor: Anchor::Start }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paint {
    pub fill: Option<Colour>,
    pub stroke: Option<Colour>,
    /// Width of the outline; 1 where it is 0.
    pub width: f64,
    /// Pattern of the outline; empty for solid.
    pub dash: &'static str,
    /// How much of what is behind shows, 0 to 1; 0 hides it.
    pub transparency: f64,
}

impl Paint {
    pub fn line(colour: Colour, width: f64) -> Paint {
        Paint { stroke: Some(colour), width, ..Paint::default() }
    }

    pub fn area(colour: Colour) -> Paint {
        Paint { fill: Some(colour), ..Paint::default() }
    }

    pub fn dashed(self, dash: &'static str) -> Paint {
        Paint { dash, ..self }
    }

    pub fn see_through(self, transparency: f64) -> Paint {
        Paint { transparency, ..self }
    }

    fn class(&self) -> String {
        let fill = self.fill.map(|colour| format!("f-{}", colour.name()));
        let stroke = self.stroke.map(|colour| format!("s-{}", colour.name()));
        let classes: Vec<String> = fill.into_iter().chain(stroke).collect();
        classes.join(" ")
    }

    /// Colours are attributes, which every renderer knows; the class lets a style sheet that knows themes overrule them.
    fn attributes(&self) -> String {
        let fill = self.fill.map_or("none", |colour| colour.light);
        let mut text = format!(" fill=\"{fill}\"");
        if let Some(stroke) = self.stroke {
            text += &format!(" stroke=\"{}\"", stroke.light);
            if self.width > 0.0 {
                text += &format!(" stroke-width=\"{}\"", px(self.width));
            }
        }
        if !self.dash.is_empty() {
            text += &format!(" stroke-dasharray=\"{}\"", self.dash);
        }
        if self.transparency > 0.0 {
            text += &format!(" opacity=\"{}\"", px(1.0 - self.transparency));
        }
        text
    }
}

/// A length with at most two digits behind the point. What is not a number would make the document invalid and is 0.
pub(super) fn px(value: f64) -> String {
    rounded(value, 2)
}

/// A coordinate of a line with many points.
fn px1(value: f64) -> String {
    rounded(value, 1)
}

fn rounded(value: f64, digits: usize) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.digits$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// Words of an element for a page's script.
fn attribute(name: &str, words: &str) -> String {
    format!(" data-{name}=\"{}\"", html! { (printable(words)) }.into_string())
}

fn geometry(rect: &Rect) -> String {
    let Rect { x, y, .. } = *rect;
    let [width, height] = [rect.width, rect.height].map(|it| px(it.max(0.0)));
    let [x, y] = [x, y].map(px);
    format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
}

fn outlines(rects: &[Rect]) -> String {
    rects
        .iter()
        .map(|rect| {
            let [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(px);
            format!("M{x} {y}h{width}v{height}h-{width}Z")
        })
        .collect()
}

/// Writing to its text cannot fail.
#[derive(Debug, Default)]
pub struct Canvas {
    elements: String,
}

impl Canvas {
    pub(super) fn into_markup(self) -> Markup {
        PreEscaped(self.elements)
    }

    /// What is drawn until [`Canvas::end_group`] is a part that a page's script finds by this class, with what it says of it:
    /// a series, the entry of one in a legend, a heading; headings are in the order of their charts.
    pub fn begin(&mut self, class: &str, data: &[(&str, &str)]) {
        let attributes: String = data.iter().map(|(name, words)| attribute(name, words)).collect();
        let _ = writeln!(self.elements, "<g class=\"{class}\"{attributes}>");
    }

    /// The same of a series' line, whose figures are `points`: x and y of each, for a page that shows them.
    pub(crate) fn begin_line(&mut self, name: &str, points: impl Iterator<Item = (f64, f64)>) {
        let figures = points
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|(x, y)| format!("{} {}", five_digits(x), five_digits(y)))
            .collect::<Vec<_>>()
            .join(",");
        self.begin("rb-series", &[("series", name), ("points", &figures)]);
    }

    pub fn end_group(&mut self) {
        self.elements.push_str("</g>\n");
    }

    pub(crate) fn plot(&mut self, rect: Rect, x: &str, y: &str) {
        let (place, x, y) = (geometry(&rect), attribute("x", x), attribute("y", y));
        let _ =
            writeln!(self.elements, "<rect class=\"rb-plot\" {place} fill=\"none\"{x}{y}></rect>");
    }

    /// One line of text whose foot is at `y`; nothing of an empty one.
    pub fn text(&mut self, x: f64, y: f64, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        let anchor = match style.anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        let class = Paint::area(style.colour).class();
        let element = html! {
            text x=(px(x)) y=(px(y)) class=(class) fill=(style.colour.light) font-size=(px(style.size_px)) text-anchor=[anchor]
                font-weight=[style.bold.then_some("bold")] { (printable(text)) }
        };
        let _ = writeln!(self.elements, "{}", element.into_string());
    }

    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint) {
        self.polyline(&[from, to], paint);
    }

    pub fn polyline(&mut self, points: &[(f64, f64)], paint: Paint) {
        self.points(points, "", paint);
    }

    pub fn polygon(&mut self, points: &[(f64, f64)], paint: Paint) {
        self.points(points, "Z", paint);
    }

    fn points(&mut self, points: &[(f64, f64)], end: &str, paint: Paint) {
        let data: Vec<String> =
            points.iter().map(|(x, y)| format!("{} {}", px1(*x), px1(*y))).collect();
        if !data.is_empty() {
            let data = format!("M{}{end}", data.join("L"));
            self.path(&data, paint, " stroke-linejoin=\"round\"", None);
        }
    }

    pub fn rect(&mut self, rect: Rect, paint: Paint, hint: Option<&str>) {
        self.shape("rect", &geometry(&rect), paint, "", hint);
    }

    /// Many rectangles of one colour without gaps between those that touch, as one shape.
    pub fn tiles(&mut self, tiles: &[Rect], colour: Colour) {
        let crisp = " shape-rendering=\"crispEdges\"";
        self.path(&outlines(tiles), Paint::area(colour), crisp, None);
    }

    /// Straight lines that look alike, as one shape.
    pub fn lines(&mut self, lines: &[[(f64, f64); 2]], paint: Paint) {
        let data: String = lines
            .iter()
            .map(|[from, to]| {
                let [from_x, from_y, to_x, to_y] = [from.0, from.1, to.0, to.1].map(px1);
                format!("M{from_x} {from_y}L{to_x} {to_y}")
            })
            .collect();
        self.path(&data, paint, "", None);
    }

    fn path(&mut self, data: &str, paint: Paint, further: &str, hint: Option<&str>) {
        if !data.is_empty() {
            self.shape("path", &format!("d=\"{data}\""), paint, further, hint);
        }
    }

    fn shape(&mut self, tag: &str, place: &str, paint: Paint, further: &str, hint: Option<&str>) {
        let (class, paint) = (paint.class(), paint.attributes());
        let hint = html! { @if let Some(hint) = hint { title { (printable(hint)) } } };
        let _ = writeln!(
            self.elements,
            "<{tag} class=\"{class}\" {place}{paint}{further}>{}</{tag}>",
            hint.into_string()
        );
    }

    /// A ring around a point: round for what is better, square for what is worse.
    pub fn ring(&mut self, at: (f64, f64), colour: Colour, better: bool, hint: &str) {
        let corner = if better { " rx=\"9\"" } else { "" };
        let place = geometry(&Rect::around(at, 9.0)) + corner;
        self.shape("rect", &place, Paint::line(colour, 2.2), "", Some(hint));
    }

    pub fn marker(&mut self, (x, y): (f64, f64), style: SeriesStyle, hint: Option<&str>) {
        let (left, up, shape) = match style.marker {
            Marker::Circle => (4.0, 0.0, "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z"),
            Marker::Square => (3.5, 3.5, "h7v7h-7Z"),
            Marker::Up => (0.0, 5.0, "l4.5 8h-9Z"),
            Marker::Down => (0.0, -5.0, "l4.5 -8h-9Z"),
            Marker::Diamond => (0.0, 5.0, "l5 5l-5 5l-5 -5Z"),
            Marker::Plus => (5.0, 0.0, "h10m-5 -5v10"),
            Marker::Cross => (4.0, 4.0, "l8 8m0 -8l-8 8"),
            Marker::Bar => (4.5, 2.0, "h9v4h-9Z"),
            Marker::Crossed => (4.0, 0.0, "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Zm1.2 2.8l5.6 -5.6"),
        };
        let fill = if style.hollow { GROUND } else { style.colour };
        let paint = Paint { fill: Some(fill), ..Paint::line(style.colour, 1.8) };
        let data = format!("M{} {}{shape}", px(x - left), px(y - up));
        self.path(&data, paint, "", hint);
    }
}

/// A figure for a page that shows three digits of it.
fn five_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

const APART_PX: f64 = 6.0;

/// Fills a rectangle with strokes from the lower left to the upper right, as far as it goes.
pub(crate) fn hatch(canvas: &mut Canvas, rect: Rect) {
    let strokes = ((rect.width + rect.height) / APART_PX).round().max(2.0);
    let apart = (rect.width + rect.height) / strokes;
    let lines: Vec<_> = (1..strokes as usize)
        .map(|stroke| {
            let along = stroke as f64 * apart;
            let (left, right) = ((along - rect.height).max(0.0), along.min(rect.width));
            let (bottom, top) = (along.min(rect.height), (along - rect.width).max(0.0));
            let from = (rect.x + left, rect.y + bottom);
            [from, (rect.x + right, rect.y + top)]
        })
        .collect();
    canvas.lines(&lines, Paint::line(MUTED, 1.0));
}

/// Pixels from what is named to its words.
const GAP: f64 = 8.0;
/// Ground that shows around words.
const EDGE: f64 = 2.0;

#[derive(Debug)]
pub struct Labels {
    within: Rect,
    taken: Vec<Rect>,
    /// Parts of lines, of which words cross as few as possible.
    lines: Vec<Rect>,
}

impl Labels {
    pub fn within(within: Rect) -> Labels {
        Labels { within, taken: Vec::new(), lines: Vec::new() }
    }

    pub fn keep_free_of_marker(&mut self, place: (f64, f64)) {
        self.taken.push(Rect::around(place, 5.0));
    }

    pub fn keep_free_of_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        const STEP: f64 = 6.0;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = (dx.abs().max(dy.abs()) / STEP).clamp(1.0, 200.0) as usize;
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            self.lines.push(Rect::around((from.0 + dx * part, from.1 + dy * part), 1.0));
        }
    }

    /// Writes the words beside, above or below the place, on ground of their own; where nothing is free they are
    /// left out.
    pub fn beside(
        &mut self,
        canvas: &mut Canvas,
        (x, y): (f64, f64),
        text: &str,
        style: Style,
        may_cross: bool,
    ) {
        let middle = y + style.size_px * 0.36;
        let below = y + GAP + style.size_px * ASCENT;
        let places = [
            // Aslant first, where lines seldom go.
            (x + GAP, y - GAP / 2.0, Anchor::Start),
            (x - GAP, y - GAP / 2.0, Anchor::End),
            (x + GAP, middle, Anchor::Start),
            (x - GAP, middle, Anchor::End),
            (x, y - GAP, Anchor::Middle),
            (x, below, Anchor::Middle),
            (x + GAP, below, Anchor::Start),
            (x - GAP, below, Anchor::End),
        ];
        self.at_first(canvas, &places, text, style, may_cross);
    }

    /// Writes the words with their foot at the first free place, which crosses no line, or as few as possible if they may.
    pub fn at_first(
        &mut self,
        canvas: &mut Canvas,
        places: &[(f64, f64, Anchor)],
        text: &str,
        style: Style,
        may_cross: bool,
    ) {
        let width = width_px(text, style.size_px, style.bold);
        let (top, height) = (style.size_px * ASCENT, style.size_px * (ASCENT + DESCENT));
        let is_over = |rects: &[Rect], plate: &Rect| rects.iter().any(|it| overlap(it, plate));
        let plates = places.iter().map(|&(x, foot, anchor)| {
            let left = match anchor {
                Anchor::Start => x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            let plate = Rect::new(left - EDGE, foot - top, width + 2.0 * EDGE, height);
            ((x, foot), Style { anchor, ..style }, plate)
        });
        let free = plates.filter(|(.., plate)| {
            plate.x >= self.within.x
                && plate.right() <= self.within.right()
                && plate.y >= self.within.y
                && plate.bottom() <= self.within.bottom()
                && !is_over(&self.taken, plate)
        });
        let best = free.min_by_key(|(.., plate)| {
            self.lines.iter().filter(|line| overlap(line, plate)).count()
        });
        if let Some(((x, foot), own_style, plate)) =
            best.filter(|(.., plate)| may_cross || !is_over(&self.lines, plate))
        {
            canvas.rect(plate, Paint::area(GROUND).see_through(0.2), None);
            canvas.text(x, foot, text, own_style);
            self.taken.push(plate);
        }
    }
}

fn overlap(one: &Rect, other: &Rect) -> bool {
    one.x < other.right()
        && other.x < one.right()
        && one.y < other.bottom()
        && other.y < one.bottom()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_lie_over_no_marker_and_no_other_words(
            places in proptest::collection::vec((0.0..400.0f64, 0.0..200.0f64), 1..60),
        ) {
            let mut labels = Labels::within(Rect::new(0.0, 0.0, 400.0, 200.0));
            let mut canvas = Canvas::default();
            places.iter().for_each(|at| labels.keep_free_of_marker(*at));
            places.windows(2).for_each(|pair| labels.keep_free_of_line(pair[0], pair[1]));
            for at in &places {
                labels.beside(&mut canvas, *at, "-q 16", Style::default(), true);
            }
            let words = labels.taken.iter().enumerate().skip(places.len());
            for (index, plate) in words {
                prop_assert!(!labels.taken[..index].iter().any(|other| overlap(other, plate)));
            }
        }
    }

    #[test]
    fn lengths_are_short_and_always_numbers() {
        let lengths = [1.0, 1.5, 2.346, -0.001, f64::NAN, f64::INFINITY];
        assert_eq!(lengths.map(px), ["1", "1.5", "2.35", "0", "0", "0"]);
    }

    #[test]
    fn a_line_carries_its_figures() {
        let mut canvas = Canvas::default();
        let points = [(64.0, 1.0 / 3.0), (f64::NAN, 1.0), (65_536.0, 1.234_567e9)];
        canvas.begin_line("a<b", points.into_iter());
        canvas.end_group();
        let expected = "<g class=\"rb-series\" data-series=\"a&lt;b\" data-points=\"64 0.33333,65536 1234600000\">\n</g>\n";
        assert_eq!(canvas.into_markup().into_string(), expected);
    }
}
