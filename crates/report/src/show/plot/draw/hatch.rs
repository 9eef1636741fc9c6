//! Strokes aslant, for what nothing is known of.

use super::canvas::{Canvas, Paint, Rect};
use super::palette::MUTED;

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
