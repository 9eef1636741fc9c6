//! Bars that lie in rows. They must not know what they are of.

use super::axis::AxisFrame;
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::GROUND;
use crate::show::plot::draw::{Canvas, Labels, Paint, Rect, Style};

/// A bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// Its row.
    pub y: f64,
    /// Its ends.
    pub ends: (f64, f64),
    /// Its height in pixels.
    pub height_px: f64,
    /// Its colour.
    pub colour: Colour,
    /// Words for who points at it.
    pub hint: String,
    /// Words at its end; none where empty.
    pub label: String,
}

impl Bar {
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        if let (Some((left, y)), Some(right)) =
            (frame.place(self.ends.0, self.y), frame.x(self.ends.1))
        {
            let paint = Paint {
                stroke: Some(GROUND),
                width: 1.0,
                ..Paint::area(self.colour)
            };
            let rect = Rect {
                x: left,
                y: y - self.height_px / 2.0,
                width: right - left,
                height: self.height_px,
            };
            canvas.rect(rect, paint, Some(&self.hint));
        }
    }

    pub(super) fn words(&self, canvas: &mut Canvas, frame: &AxisFrame, labels: &mut Labels) {
        if let (Some((x, y)), false) = (frame.place(self.ends.1, self.y), self.label.is_empty()) {
            labels.at(canvas, (x + 10.0, y + 4.0), &self.label, Style::default());
        }
    }
}
