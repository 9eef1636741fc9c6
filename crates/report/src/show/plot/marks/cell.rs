//! Cells that lie in rows over a continuous axis. They must not know what they are of.

use super::axis::AxisFrame;
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::GROUND;
use crate::show::plot::draw::{Canvas, Paint, Rect};

/// A row of cells: half of 1 above and below its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its place.
    pub y: f64,
    /// Ends of each cell, and its colour.
    pub cells: Vec<((f64, f64), Colour)>,
    /// Words for who points at it.
    pub hint: String,
}

impl Row {
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let (Some(top), Some(bottom)) = (frame.y(self.y + 0.5), frame.y(self.y - 0.5)) else {
            return;
        };
        let of_row = Rect {
            y: top,
            height: bottom - top,
            ..frame.plot
        };
        let place = |(from, to): (f64, f64)| {
            let (from, to) = (frame.x(from)?, frame.x(to)?);
            Some(Rect {
                x: from,
                width: to - from,
                ..of_row
            })
        };
        let mut colours: Vec<Colour> = self.cells.iter().map(|cell| cell.1).collect();
        colours.dedup();
        colours.sort_by_key(|colour| colour.property);
        colours.dedup();
        for colour in colours {
            let own = self.cells.iter().filter(|cell| cell.1 == colour);
            let tiles: Vec<Rect> = own.filter_map(|cell| place(cell.0)).collect();
            canvas.tiles(&tiles, colour);
        }
        let unseen = Paint::area(GROUND).see_through(1.0);
        canvas.rect(of_row, unseen, Some(&self.hint));
    }
}
