//! A legend: what each line, area or marker is, in as many rows as it takes.

use super::canvas::{Canvas, Paint, Rect, Style};
use super::hatch::hatch;
use super::palette::Look;
use super::text::{SMALL_PX, printable, width_px, wrapped};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyMark {
    LineAndMarker,
    Line,
    Marker,
    Area,
    /// A patch of strokes aslant.
    Hatched,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    pub look: Look,
    pub mark: KeyMark,
    pub label: String,
}

impl Key {
    pub fn new(mark: KeyMark, look: Look, label: impl Into<String>) -> Key {
        Key { look, mark, label: label.into() }
    }
}

const SAMPLE: f64 = 40.0;
const GAP: f64 = 6.0;
const BETWEEN: f64 = 20.0;
const ROW: f64 = 18.0;

/// Draws the entries below `top` in at most `width` pixels from `left`, and returns their height.
pub(super) fn draw(canvas: &mut Canvas, left: f64, top: f64, width: f64, keys: &[Key]) -> f64 {
    let (mut x, mut y) = (left, top);
    let widest = width - SAMPLE - GAP;
    for key in keys {
        let lines = wrapped(&printable(&key.label), SMALL_PX, false, widest);
        let needed = lines.iter().map(|line| width_px(line, SMALL_PX, false)).fold(0.0, f64::max);
        let entry = SAMPLE + GAP + needed;
        if x > left && x + entry > left + width {
            (x, y) = (left, y + ROW);
        }
        canvas.begin_key(&key.label);
        sample(canvas, (x, y + ROW / 2.0), key);
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                y += ROW;
            }
            let foot = y + ROW / 2.0 + SMALL_PX * 0.36;
            canvas.text(x + SAMPLE + GAP, foot, line, Style::default());
        }
        canvas.end_group();
        x += entry + BETWEEN;
    }
    if keys.is_empty() { 0.0 } else { y + ROW - top }
}

fn sample(canvas: &mut Canvas, (x, y): (f64, f64), key: &Key) {
    let look = key.look;
    if matches!(key.mark, KeyMark::Line | KeyMark::LineAndMarker) {
        let paint = Paint::line(look.colour, look.width()).dashed(look.dash);
        canvas.line((x, y), (x + SAMPLE, y), paint);
    }
    if matches!(key.mark, KeyMark::Marker | KeyMark::LineAndMarker) {
        canvas.marker((x + SAMPLE / 2.0, y), look, None);
    }
    let patch = Rect::new(x + 8.0, y - 6.0, SAMPLE - 16.0, 12.0);
    match key.mark {
        KeyMark::Area => canvas.rect(patch, Paint::area(look.colour), None),
        KeyMark::Hatched => hatch(canvas, patch),
        _ => {}
    }
}
