//! Shapes and text as SVG elements in the order in which they are drawn. It must not know scales or charts.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};

use super::colour::Colour;
use super::palette::{INK, Look, Marker};
use super::text::{SMALL_PX, printable};

/// A rectangle, in pixels from the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Rect {
    /// Right edge.
    pub fn right(&self) -> f64 {
        self.x + self.width
    }

    /// Lower edge.
    pub fn bottom(&self) -> f64 {
        self.y + self.height
    }
}

/// Which end of a text its place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// How text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Style {
    /// Size in pixels; 12 at least.
    pub size_px: f64,
    /// Bold.
    pub bold: bool,
    /// Colour.
    pub colour: Colour,
    /// Which end its place is.
    pub anchor: Anchor,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            size_px: SMALL_PX,
            bold: false,
            colour: INK,
            anchor: Anchor::Start,
        }
    }
}

/// How a shape looks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paint {
    /// What it is filled with.
    pub fill: Option<Colour>,
    /// What its outline is drawn with.
    pub stroke: Option<Colour>,
    /// Width of the outline; 1 where it is 0.
    pub width: f64,
    /// Pattern of the outline; empty for solid.
    pub dash: &'static str,
    /// How much of what is behind shows, 0 to 1; 0 hides it.
    pub transparency: f64,
}

impl Paint {
    /// A line of that colour and width.
    pub fn line(colour: Colour, width: f64) -> Paint {
        Paint {
            stroke: Some(colour),
            width,
            ..Paint::default()
        }
    }

    /// An area of that colour.
    pub fn area(colour: Colour) -> Paint {
        Paint {
            fill: Some(colour),
            ..Paint::default()
        }
    }

    /// With a pattern.
    pub fn dashed(self, dash: &'static str) -> Paint {
        Paint { dash, ..self }
    }

    /// With what is behind showing through.
    pub fn see_through(self, transparency: f64) -> Paint {
        Paint {
            transparency,
            ..self
        }
    }

    fn class(&self) -> String {
        let mut classes = Vec::with_capacity(2);
        classes.extend(self.fill.map(|colour| format!("f-{}", colour.name())));
        classes.extend(self.stroke.map(|colour| format!("s-{}", colour.name())));
        classes.join(" ")
    }

    fn attributes(&self) -> Attributes {
        Attributes {
            class: self.class(),
            fill: self.fill.map_or("none", |colour| colour.light),
            stroke: self.stroke.map(|colour| colour.light),
            width: (self.stroke.is_some() && self.width > 0.0).then(|| px(self.width)),
            dash: (!self.dash.is_empty()).then_some(self.dash),
            opacity: (self.transparency > 0.0).then(|| px(1.0 - self.transparency)),
        }
    }
}

/// Colours are attributes, which every renderer knows; the class lets a style sheet that knows themes overrule them.
struct Attributes {
    class: String,
    fill: &'static str,
    stroke: Option<&'static str>,
    width: Option<String>,
    dash: Option<&'static str>,
    opacity: Option<String>,
}

/// A length with at most two digits behind the point. What is not a number would make the document
/// invalid and is 0.
pub(super) fn px(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" {
        "0".to_owned()
    } else {
        text.to_owned()
    }
}

/// What was drawn so far.
#[derive(Debug, Default)]
pub struct Canvas {
    elements: String,
}

impl Canvas {
    pub(super) fn into_markup(self) -> Markup {
        PreEscaped(self.elements)
    }

    fn add(&mut self, markup: Markup) {
        self.elements.push_str(&markup.into_string());
        self.elements.push('\n');
    }

    /// What is drawn until [`Canvas::end_group`] is of the series `name`, for a page that shows or hides it.
    pub fn begin_series(&mut self, name: &str) {
        self.begin(html! { g class="rb-series" data-series=(printable(name)) {} });
    }

    /// The same of its line, whose figures are `points`: x and y of each, for a page that tells them.
    pub(crate) fn begin_line(&mut self, name: &str, points: impl Iterator<Item = (f64, f64)>) {
        let points: Vec<String> = (points.filter(|(x, y)| x.is_finite() && y.is_finite()))
            .map(|(x, y)| format!("{} {}", five_digits(x), five_digits(y)))
            .collect();
        let points = points.join(",");
        let name = printable(name);
        self.begin(html! { g class="rb-series" data-series=(name) data-points=(points) {} });
    }

    /// The same of the entry of a legend.
    pub(super) fn begin_key(&mut self, name: &str) {
        self.begin(html! { g class="rb-key" data-series=(printable(name)) {} });
    }

    /// What is drawn until [`Canvas::end_group`] is the heading of a chart; headings are in the order of their charts.
    pub fn begin_heading(&mut self, heading: &str) {
        self.begin(html! { g class="rb-heading" data-heading=(printable(heading)) {} });
    }

    /// What is drawn until [`Canvas::end_group`] is a part that a page's script finds by this class.
    pub(crate) fn begin_part(&mut self, class: &str) {
        self.begin(html! { g class=(class) {} });
    }

    fn begin(&mut self, group: Markup) {
        let tag = group.into_string();
        self.elements.push_str(tag.trim_end_matches("</g>"));
        self.elements.push('\n');
    }

    /// The end of a series, a line, an entry or a heading.
    pub fn end_group(&mut self) {
        self.elements.push_str("</g>\n");
    }

    /// Where a chart is, with its axes in words that a page's script reads.
    pub(crate) fn plot(&mut self, rect: Rect, x: &str, y: &str) {
        self.add(html! {
            rect class="rb-plot" x=(px(rect.x)) y=(px(rect.y)) width=(px(rect.width)) height=(px(rect.height))
                fill="none" data-x=(printable(x)) data-y=(printable(y)) {}
        });
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
        self.add(html! {
            text x=(px(x)) y=(px(y)) class=(class) fill=(style.colour.light) font-size=(px(style.size_px)) text-anchor=[anchor]
                font-weight=[style.bold.then_some("bold")] { (printable(text)) }
        });
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), paint: Paint) {
        self.polyline(&[from, to], paint);
    }

    /// A line through all points.
    pub fn polyline(&mut self, points: &[(f64, f64)], paint: Paint) {
        self.path(points, false, paint);
    }

    /// The area within the points.
    pub fn polygon(&mut self, points: &[(f64, f64)], paint: Paint) {
        self.path(points, true, paint);
    }

    fn path(&mut self, points: &[(f64, f64)], closed: bool, paint: Paint) {
        let mut data = String::with_capacity(points.len() * 12);
        for (index, &(x, y)) in points.iter().enumerate() {
            data.push(if index == 0 { 'M' } else { 'L' });
            data.push_str(&px1(x));
            data.push(' ');
            data.push_str(&px1(y));
        }
        if closed {
            data.push('Z');
        }
        let a = paint.attributes();
        self.add(html! {
            path class=(a.class) d=(data) fill=(a.fill) stroke=[a.stroke] stroke-width=[a.width] stroke-dasharray=[a.dash]
                opacity=[a.opacity] stroke-linejoin="round" {}
        });
    }

    /// A rectangle, with words for who points at it.
    pub fn rect(&mut self, rect: Rect, paint: Paint, hint: Option<&str>) {
        let a = paint.attributes();
        self.add(html! {
            rect class=(a.class) x=(px(rect.x)) y=(px(rect.y)) width=(px(rect.width.max(0.0)))
                height=(px(rect.height.max(0.0))) fill=(a.fill) stroke=[a.stroke] stroke-width=[a.width]
                stroke-dasharray=[a.dash] opacity=[a.opacity] {
                @if let Some(hint) = hint { title { (printable(hint)) } }
            }
        });
    }

    /// Rectangles that look alike, as one shape: for so many that an element each would be too much.
    pub fn rects(&mut self, rects: &[Rect], paint: Paint) {
        let mut data = String::with_capacity(rects.len() * 24);
        for rect in rects {
            let [x, y, width, height] = [rect.x, rect.y, rect.width, rect.height].map(px);
            // Writing to a String cannot fail.
            let _ = write!(data, "M{x} {y}h{width}v{height}h-{width}Z");
        }
        self.shape(&data, paint);
    }

    /// Straight lines that look alike, as one shape.
    pub fn lines(&mut self, lines: &[[(f64, f64); 2]], paint: Paint) {
        let mut data = String::with_capacity(lines.len() * 20);
        for [from, to] in lines {
            let [from_x, from_y, to_x, to_y] = [from.0, from.1, to.0, to.1].map(px1);
            let _ = write!(data, "M{from_x} {from_y}L{to_x} {to_y}");
        }
        self.shape(&data, paint);
    }

    /// Many rectangles of one colour without gaps between those that touch, as one shape.
    pub fn tiles(&mut self, tiles: &[Rect], colour: Colour) {
        let mut data = String::with_capacity(tiles.len() * 24);
        for tile in tiles {
            let [x, y, width, height] = [tile.x, tile.y, tile.width, tile.height].map(px);
            let _ = write!(data, "M{x} {y}h{width}v{height}h-{width}Z");
        }
        if !data.is_empty() {
            let a = Paint::area(colour).attributes();
            self.add(html! {
                path class=(a.class) d=(data) fill=(a.fill) shape-rendering="crispEdges" {}
            });
        }
    }

    fn shape(&mut self, data: &str, paint: Paint) {
        if data.is_empty() {
            return;
        }
        let a = paint.attributes();
        self.add(html! {
            path class=(a.class) d=(data) fill=(a.fill) stroke=[a.stroke] stroke-width=[a.width] stroke-dasharray=[a.dash]
                opacity=[a.opacity] {}
        });
    }

    /// A ring around a point: round for what is better, square for what is worse.
    pub fn ring(&mut self, (x, y): (f64, f64), colour: Colour, better: bool, hint: &str) {
        let square = Rect {
            x: x - 9.0,
            y: y - 9.0,
            width: 18.0,
            height: 18.0,
        };
        let radius = better.then_some("9");
        let a = Paint::line(colour, 2.2).attributes();
        self.add(html! {
            rect class=(a.class) x=(px(square.x)) y=(px(square.y)) width="18" height="18" rx=[radius]
                fill=(a.fill) stroke=[a.stroke] stroke-width=[a.width] { title { (printable(hint)) } }
        });
    }

    /// A series' marker, with words for who points at it.
    pub fn marker(&mut self, (x, y): (f64, f64), look: Look, hint: Option<&str>) {
        let r = 4.0;
        let data = match look.marker {
            Marker::Circle => format!(
                "M{} {}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0Z",
                px(x - r),
                px(y),
                2.0 * r,
                -2.0 * r
            ),
            Marker::Square => format!("M{} {}h7v7h-7Z", px(x - 3.5), px(y - 3.5)),
            Marker::Up => format!("M{} {}l4.5 8h-9Z", px(x), px(y - 5.0)),
            Marker::Down => format!("M{} {}l4.5 -8h-9Z", px(x), px(y + 5.0)),
            Marker::Diamond => format!("M{} {}l5 5l-5 5l-5 -5Z", px(x), px(y - 5.0)),
            Marker::Plus => format!("M{} {}h10M{} {}v10", px(x - 5.0), px(y), px(x), px(y - 5.0)),
            Marker::Cross => {
                format!("M{} {}l8 8m0 -8l-8 8", px(x - 4.0), px(y - 4.0))
            }
            Marker::Bar => format!("M{} {}h9v4h-9Z", px(x - 4.5), px(y - 2.0)),
        };
        let fill = if look.hollow {
            super::palette::GROUND
        } else {
            look.colour
        };
        let paint = Paint {
            fill: Some(fill),
            stroke: Some(look.colour),
            width: 1.8,
            ..Paint::default()
        };
        let a = paint.attributes();
        self.add(html! {
            path class=(a.class) d=(data) fill=(a.fill) stroke=[a.stroke] stroke-width=[a.width] {
                @if let Some(hint) = hint { title { (printable(hint)) } }
            }
        });
    }
}

/// A figure for a page that tells three digits of it.
fn five_digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// A coordinate of a line with many points.
fn px1(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let told = "<g class=\"rb-series\" data-series=\"a&lt;b\" data-points=\"64 0.33333,65536 1234600000\">\n</g>\n";
        assert_eq!(canvas.into_markup().into_string(), told);
    }
}
