//! Tiles: parts of rows over the horizontal axis, such as the cells of a map, bars, and intervals.

use super::axis::AxisFrame;
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::hatch::hatch;
use crate::show::plot::draw::palette::GROUND;
use crate::show::plot::draw::text::{SMALL_PX, width_px};
use crate::show::plot::draw::{Anchor, Canvas, Labels, Paint, Rect, Style};

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
    /// Words in it if they have room, and their colour.
    pub within: Option<(String, Colour)>,
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
                let inner = Rect {
                    x: rect.x + 0.5,
                    y: rect.y + 0.5,
                    width: rect.width - 1.0,
                    height: rect.height - 1.0,
                };
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
        if let Some((text, colour)) = &self.within
            && rect.height >= SMALL_PX * 1.3
            && rect.width >= width_px(text, SMALL_PX, false) + 4.0
        {
            let style = Style { anchor: Anchor::Middle, colour: *colour, ..Style::default() };
            let (x, y) = (rect.x + rect.width / 2.0, rect.y + rect.height / 2.0 + 4.0);
            canvas.text(x, y, text, style);
        }
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        if let (Some((x, y)), false) = (frame.place(self.ends.1, self.y), self.behind.is_empty()) {
            labels.at(canvas, (x + 10.0, y + 4.0), &self.behind, Style::default());
        }
    }
}
