//! Words within a chart, beside what they name, as far as they have room.

use super::canvas::{Anchor, Canvas, Paint, Rect, Style};
use super::palette::GROUND;
use super::text::{ASCENT, DESCENT, width_px};

/// Pixels from what is named to its words.
const GAP: f64 = 8.0;
/// Ground that shows around words.
const EDGE: f64 = 2.0;

#[derive(Debug)]
pub struct Labels {
    within: Rect,
    taken: Vec<Rect>,
}

impl Labels {
    pub fn within(within: Rect) -> Labels {
        Labels { within, taken: Vec::new() }
    }

    pub fn keep_free(&mut self, rect: Rect) {
        self.taken.push(rect);
    }

    pub fn keep_free_of_marker(&mut self, place: (f64, f64)) {
        self.keep_free(Rect::around(place, 5.0));
    }

    pub fn keep_free_of_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        const STEP: f64 = 6.0;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let steps = (dx.abs().max(dy.abs()) / STEP).clamp(1.0, 200.0) as usize;
        for step in 0..=steps {
            let part = step as f64 / steps as f64;
            self.keep_free(Rect::around((from.0 + dx * part, from.1 + dy * part), 1.0));
        }
    }

    /// Writes the words beside, above or below the place, on ground of their own; where nothing is free they are
    /// left out. Returns whether they are there.
    pub fn beside(
        &mut self,
        canvas: &mut Canvas,
        (x, y): (f64, f64),
        text: &str,
        style: Style,
    ) -> bool {
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
        places
            .into_iter()
            .any(|(x, foot, anchor)| self.at(canvas, (x, foot), text, Style { anchor, ..style }))
    }

    /// Writes the words with their foot at the place if it is free. Returns whether they are there.
    pub fn at(
        &mut self,
        canvas: &mut Canvas,
        (x, foot): (f64, f64),
        text: &str,
        style: Style,
    ) -> bool {
        let width = width_px(text, style.size_px, style.bold);
        let left = match style.anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2.0,
            Anchor::End => x - width,
        };
        let (top, height) = (style.size_px * ASCENT, style.size_px * (ASCENT + DESCENT));
        let plate = Rect::new(left - EDGE, foot - top, width + 2.0 * EDGE, height);
        let is_inside = plate.x >= self.within.x
            && plate.right() <= self.within.right()
            && plate.y >= self.within.y
            && plate.bottom() <= self.within.bottom();
        if !is_inside || self.taken.iter().any(|taken| overlap(taken, &plate)) {
            return false;
        }
        canvas.rect(plate, Paint::area(GROUND).see_through(0.2), None);
        canvas.text(x, foot, text, style);
        self.taken.push(plate);
        true
    }
}

fn overlap(one: &Rect, other: &Rect) -> bool {
    one.x < other.right()
        && other.x < one.right()
        && one.y < other.bottom()
        && other.y < one.bottom()
}
