//! How far a figure is from the median of its kind, as a step of the diverging colours, and the legend of them. It must
//! not know nodes.

use crate::observe::Metric;
use crate::show::plot::draw::colour::Colour;
use crate::show::plot::draw::palette::{DIVERGING, GRID, GROUND, INK, MUTED};
use crate::show::plot::draw::text::{SMALL_PX, width_px};
use crate::show::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style, number};

/// Figures over the median at which a step ends and the next begins, from the worst. 1 is the median.
const BANDWIDTH: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.98, 1.02, 1.05, 1.1];
/// Latencies scatter more, and there is no end to how long they can be.
const LATENCY: [f64; 8] = [4.0, 2.0, 1.5, 1.25, 1.1, 0.9, 0.8, 0.67];

/// Steps on which text has the ground's colour instead of the ink's.
const DARK_STEPS: usize = 3;
/// Width of a step in the legend.
const STEP_PX: f64 = 64.0;

/// Colours around a median.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steps {
    quantity: Metric,
    median: f64,
}

impl Steps {
    /// `None` where there is no median that others can be told by.
    pub(super) fn around(median: Option<f64>, quantity: Metric) -> Option<Steps> {
        let median = median.filter(|median| median.is_finite() && *median > 0.0)?;
        Some(Steps { quantity, median })
    }

    fn ends(&self) -> &'static [f64; 8] {
        match self.quantity.higher_is_better() {
            true => &BANDWIDTH,
            false => &LATENCY,
        }
    }

    /// A figure over the median.
    pub(super) fn share(&self, value: f64) -> f64 {
        value / self.median
    }

    /// The step of a figure, 0 for the worst.
    pub(super) fn of(&self, value: f64) -> usize {
        let share = self.share(value);
        let is_behind = |end: &&f64| match self.quantity.higher_is_better() {
            true => share >= **end,
            false => share <= **end,
        };
        self.ends().iter().take_while(is_behind).count()
    }

    /// The colour of a step.
    pub(super) fn colour(step: usize) -> Colour {
        DIVERGING[step.min(DIVERGING.len() - 1)]
    }

    /// The colour of text on a step.
    pub(super) fn ink(step: usize) -> Colour {
        if step < DARK_STEPS { GROUND } else { INK }
    }

    /// What the colours stand for.
    pub(super) fn legend(&self, sheet: &mut Sheet, is_hatched: bool) {
        let told = Told::of(self.quantity, self.median);
        sheet.note(&format!(
            "Share of the median, {}: worse is orange, better is blue",
            told.with_unit(self.median)
        ));
        let rows = if is_hatched { 2.0 } else { 1.0 };
        let area = sheet.take(26.0 + rows * 20.0);
        let canvas = &mut sheet.canvas;
        let muted = Style {
            colour: MUTED,
            ..Style::default()
        };
        let steps = DIVERGING.len() as f64;
        let step_px = STEP_PX.min(area.width / steps);
        for step in 0..DIVERGING.len() {
            let rect = Rect {
                x: area.x + step as f64 * step_px,
                y: area.y,
                width: step_px,
                height: 12.0,
            };
            let paint = Paint {
                stroke: Some(GRID),
                width: 1.0,
                ..Paint::area(Steps::colour(step))
            };
            canvas.rect(rect, paint, None);
        }
        let every = if step_px < STEP_PX { 2 } else { 1 };
        for (index, end) in self.ends().iter().enumerate().step_by(every) {
            let x = area.x + (index + 1) as f64 * step_px;
            let middle = Style {
                anchor: Anchor::Middle,
                ..muted
            };
            let percent = format!("{:.0}\u{a0}%", end * 100.0);
            canvas.text(x, area.y + 27.0, &percent, middle);
            canvas.text(x, area.y + 43.0, &told.plain(end * self.median), middle);
        }
        let unit_at = area.x + (steps - 0.5) * step_px + 6.0;
        if unit_at + width_px(told.unit, SMALL_PX, false) <= area.right() {
            canvas.text(unit_at, area.y + 43.0, told.unit, muted);
        }
        if is_hatched {
            let rect = Rect {
                x: area.x,
                y: area.y + 52.0,
                width: 36.0,
                height: 12.0,
            };
            hatch(canvas, &[rect]);
            let foot = rect.y + 11.0;
            canvas.text(rect.right() + 8.0, foot, "no run that counts", muted);
        }
    }
}

/// How the figures of a quantity are written: all in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    /// The unit.
    pub(super) unit: &'static str,
    /// What a figure is divided by to be in it.
    pub(super) divisor: f64,
}

impl Told {
    /// For figures around `typical`.
    pub(super) fn of(quantity: Metric, typical: f64) -> Told {
        let (unit, divisor) = match quantity.unit() {
            "ns" => {
                let unit = number::time_unit(typical);
                (unit.name, unit.ns)
            }
            unit => (unit, 1.0),
        };
        Told { unit, divisor }
    }

    /// A figure without its unit.
    pub(super) fn plain(&self, value: f64) -> String {
        number::short(value / self.divisor)
    }

    /// A figure with its unit.
    pub(super) fn with_unit(&self, value: f64) -> String {
        format!("{}\u{a0}{}", self.plain(value), self.unit)
    }
}

/// Fills places with strokes aslant: nothing is known of them.
pub(super) fn hatch(canvas: &mut Canvas, rects: &[Rect]) {
    const APART_PX: f64 = 6.0;
    let mut lines = Vec::new();
    for rect in rects {
        // From the lower left to the upper right, as far as the rectangle goes.
        let strokes = ((rect.width + rect.height) / APART_PX).round().max(2.0);
        let apart = (rect.width + rect.height) / strokes;
        for stroke in 1..strokes as usize {
            let along = stroke as f64 * apart;
            let from = (
                rect.x + (along - rect.height).max(0.0),
                rect.y + along.min(rect.height),
            );
            let to = (
                rect.x + along.min(rect.width),
                rect.y + (along - rect.width).max(0.0),
            );
            lines.push([from, to]);
        }
    }
    canvas.lines(&lines, Paint::line(MUTED, 1.0));
}

/// Whether words fit into a rectangle.
pub(super) fn fits(text: &str, rect: Rect) -> bool {
    rect.height >= SMALL_PX * 1.3 && rect.width >= width_px(text, SMALL_PX, false) + 4.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::plot::draw::colour::wcag::contrast;

    #[test]
    fn worse_is_a_lower_step_whichever_way_is_worse() {
        let steps = |quantity, values: &[f64]| {
            let steps = Steps::around(Some(10.0), quantity).unwrap();
            let steps = values.iter().map(|value| steps.of(*value));
            steps.collect::<Vec<_>>()
        };
        let rates = [0.0, 6.0, 9.7, 10.0, 10.1, 10.3, 99.0];
        let rates = steps(Metric::GbitPerS, &rates);
        assert_eq!(rates, [0, 1, 4, 5, 5, 6, 8]);
        let times = steps(Metric::P99Ns, &[99.0, 21.0, 11.5, 10.0, 9.5, 8.5, 1.0]);
        assert_eq!(times, [0, 1, 4, 5, 5, 6, 8]);
        for none in [None, Some(0.0), Some(f64::NAN)] {
            assert_eq!(Steps::around(none, Metric::P99Ns), None);
        }
    }

    #[test]
    fn text_can_be_read_on_each_step() {
        for (step, colour) in DIVERGING.iter().enumerate() {
            let ink = Steps::ink(step);
            assert!(contrast(colour.light, ink.light) >= 4.5, "{step}");
            assert!(contrast(colour.dark, ink.dark) >= 4.5, "{step}");
        }
    }
}
