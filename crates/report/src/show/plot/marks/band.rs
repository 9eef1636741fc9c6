//! Bands, areas and upright lines.

use super::axis::AxisFrame;
use crate::show::plot::draw::palette::{Look, RULE};
use crate::show::plot::draw::{Canvas, Paint, Rect};

const NARROWEST_PX: f64 = 3.0;

/// A part of the horizontal axis, over the whole height.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// What it is, for a legend.
    pub name: &'static str,
    pub look: Look,
    /// How much of what is behind shows through, 0 to 1.
    pub transparency: f64,
    pub ends: (f64, f64),
    pub hint: String,
}

/// What lies between the least and the most at each place.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    pub look: Look,
    /// Place, least and most.
    pub points: Vec<(f64, f64, f64)>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Upright {
    pub x: f64,
}

impl Band {
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
        let paint = Paint::area(self.look.colour).see_through(self.transparency);
        canvas.rect(rect, paint, Some(&self.hint));
    }
}

impl Area {
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        let points = self.points.iter();
        let above = points.clone().filter_map(|it| frame.place(it.0, it.2));
        let below = points.rev().filter_map(|it| frame.place(it.0, it.1));
        let outline: Vec<_> = above.chain(below).collect();
        canvas.polygon(&outline, Paint::area(self.look.colour).see_through(0.5));
    }
}

impl Upright {
    pub(super) fn draw(&self, canvas: &mut Canvas, frame: &AxisFrame) {
        if let Some(x) = frame.x(self.x) {
            let (top, bottom) = ((x, frame.plot.y - 6.0), (x, frame.plot.bottom()));
            canvas.line(top, bottom, Paint::line(RULE, 1.5).dashed("2 4"));
        }
    }
}
