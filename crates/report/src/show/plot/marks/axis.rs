//! Two axes around the place for a chart, with their ticks, grid and titles. It must not know what is
//! drawn between them.

use crate::show::plot::draw::canvas::{Anchor, Canvas, Paint, Rect, Style};
use crate::show::plot::draw::palette::{GRID, INK, MUTED};
use crate::show::plot::draw::scale::{Kind, Scale};
use crate::show::plot::draw::text::{ASCENT, SMALL_PX, shortened, width_px};
use crate::show::plot::draw::ticks::{Tick, Unit, ticks};

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What its figures are, with their unit where the ticks do not have it.
    pub title: String,
    /// What part of it is shown.
    pub scale: Scale,
    /// How its figures are written.
    pub unit: Unit,
    /// Places and names instead of figures, such as dates; those that do not fit lose their name.
    pub ticks: Option<Vec<Tick>>,
}

impl Axis {
    /// An axis whose ticks follow from its scale.
    pub fn new(title: impl Into<String>, scale: Scale, unit: Unit) -> Axis {
        Axis {
            title: title.into(),
            scale,
            unit,
            ticks: None,
        }
    }

    /// Kind, ends, unit and title, for a script that turns places into figures.
    fn for_script(&self) -> String {
        let kind = match self.scale.kind() {
            Kind::Linear => "linear",
            Kind::Log2 | Kind::Log10 => "log",
        };
        let unit = match (&self.ticks, self.unit) {
            (Some(_), _) => "named",
            (None, Unit::Plain) => "plain",
            (None, Unit::Bytes) => "bytes",
            (None, Unit::Nanoseconds) => "ns",
            (None, Unit::Tail) => "tail",
        };
        let (min, max) = (self.scale.min(), self.scale.max());
        format!("{kind} {min:e} {max:e} {unit} {}", self.title)
    }
}

/// The place between two axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisFrame {
    /// Where the chart is drawn.
    pub plot: Rect,
    x: Scale,
    y: Scale,
}

/// Pixels from an axis to its labels.
const GAP: f64 = 7.0;
/// Height of a line of labels or of a title.
const LINE: f64 = 18.0;
/// Least pixels between two labels of a horizontal axis, and of percentiles, which are the same everywhere.
const BETWEEN: f64 = 12.0;
const BETWEEN_TAIL: f64 = 5.0;
/// Least width left to the chart.
const NARROWEST: f64 = 60.0;

fn label_width(tick: &Tick) -> f64 {
    width_px(&tick.label, SMALL_PX, false)
}

impl AxisFrame {
    /// Draws both axes within `area`, labels and titles included.
    pub fn draw(canvas: &mut Canvas, area: Rect, x: &Axis, y: &Axis) -> AxisFrame {
        let (top, bottom) = (area.y + LINE + 6.0, area.bottom() - GAP - 2.0 * LINE);
        let height = (bottom - top).max(1.0);
        let y_ticks = y_ticks(y, height);
        let widest = y_ticks.iter().map(label_width).fold(0.0, f64::max);
        let widest = widest.min(area.width - NARROWEST - GAP);
        let mut left = area.x + widest + GAP;
        let mut right = area.right() - 10.0;
        // Labels of both ends may stand out by half their width, which there is room for on few.
        let mut x_ticks = x_ticks(x, right - left);
        let edge = |ticks: &[Tick], at: usize| ticks.get(at).map_or(0.0, label_width) / 2.0;
        left = left.max(area.x + edge(&x_ticks, 0).min(area.width / 4.0));
        right -=
            (edge(&x_ticks, x_ticks.len().saturating_sub(1)) - 10.0).clamp(0.0, area.width / 4.0);
        let frame = AxisFrame {
            plot: Rect {
                x: left,
                y: top,
                width: (right - left).max(1.0),
                height,
            },
            x: x.scale,
            y: y.scale,
        };
        if x.ticks.is_none() {
            x_ticks = self::x_ticks(x, frame.plot.width);
        }
        canvas.plot(frame.plot, &x.for_script(), &y.for_script());
        canvas.begin_part("rb-axes");
        frame.horizontal(canvas, area, x, &x_ticks);
        frame.vertical(canvas, area, y, &y_ticks, widest);
        canvas.end_group();
        frame
    }

    /// Pixels from the left of a figure on the horizontal axis; `None` when it has no place there.
    pub fn x(&self, value: f64) -> Option<f64> {
        let fraction = self.x.fraction(value)?;
        Some(self.plot.x + fraction * self.plot.width)
    }

    /// Pixels from the top of a figure on the vertical axis; `None` when it has no place there.
    pub fn y(&self, value: f64) -> Option<f64> {
        let fraction = self.y.fraction(value)?;
        Some(self.plot.bottom() - fraction * self.plot.height)
    }

    /// Pixels from the left and from the top of two figures; `None` when they have no place.
    pub fn place(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x(x)?, self.y(y)?))
    }

    /// Whether a place is within the chart.
    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        let plot = &self.plot;
        (plot.x - 0.5..=plot.right() + 0.5).contains(&x)
            && (plot.y - 0.5..=plot.bottom() + 0.5).contains(&y)
    }

    fn horizontal(&self, canvas: &mut Canvas, area: Rect, axis: &Axis, ticks: &[Tick]) {
        let plot = &self.plot;
        let foot = plot.bottom() + GAP + SMALL_PX * ASCENT;
        let mut free_from = area.x;
        canvas.begin_part("rb-ticks");
        for tick in ticks {
            let Some(x) = self.x(tick.value) else {
                continue;
            };
            canvas.line((x, plot.y), (x, plot.bottom()), Paint::line(GRID, 1.0));
            canvas.line(
                (x, plot.bottom()),
                (x, plot.bottom() + 4.0),
                Paint::line(INK, 1.0),
            );
            let half = label_width(tick) / 2.0;
            if x - half >= free_from && x + half <= area.right() {
                let style = Style {
                    anchor: Anchor::Middle,
                    ..Style::default()
                };
                canvas.text(x, foot, &tick.label, style);
                free_from = x
                    + half
                    + if axis.unit == Unit::Tail {
                        BETWEEN_TAIL
                    } else {
                        BETWEEN
                    };
            }
        }
        canvas.end_group();
        let (left, right) = ((plot.x, plot.bottom()), (plot.right(), plot.bottom()));
        canvas.line(left, right, Paint::line(INK, 1.0));
        let title = shortened(&axis.title, SMALL_PX, false, area.width);
        let half = width_px(&title, SMALL_PX, false) / 2.0;
        let middle = (plot.x + plot.width / 2.0)
            .min(area.right() - half)
            .max(area.x + half);
        let style = Style {
            anchor: Anchor::Middle,
            colour: MUTED,
            ..Style::default()
        };
        canvas.text(middle, foot + LINE, &title, style);
    }

    fn vertical(&self, canvas: &mut Canvas, area: Rect, axis: &Axis, ticks: &[Tick], room: f64) {
        let plot = &self.plot;
        let mut free_below = f64::INFINITY;
        canvas.begin_part("rb-ticks");
        for tick in ticks {
            let Some(y) = self.y(tick.value) else {
                continue;
            };
            canvas.line((plot.x, y), (plot.right(), y), Paint::line(GRID, 1.0));
            // A label's middle is a third of its size above its foot.
            let foot = y + SMALL_PX * 0.36;
            if foot <= free_below {
                let style = Style {
                    anchor: Anchor::End,
                    ..Style::default()
                };
                let label = shortened(&tick.label, SMALL_PX, false, room);
                canvas.text(plot.x - GAP, foot, &label, style);
                free_below = foot - SMALL_PX * 1.3;
            }
        }
        canvas.end_group();
        canvas.line(
            (plot.x, plot.y),
            (plot.x, plot.bottom()),
            Paint::line(INK, 1.0),
        );
        let style = Style {
            colour: MUTED,
            ..Style::default()
        };
        let title = shortened(&axis.title, SMALL_PX, false, area.width);
        canvas.text(area.x, area.y + SMALL_PX * ASCENT, &title, style);
    }
}

fn y_ticks(axis: &Axis, height: f64) -> Vec<Tick> {
    if let Some(ticks) = &axis.ticks {
        return ticks.clone();
    }
    let mut wanted = (height / 34.0).ceil().max(2.0) as usize;
    let room = (height / (SMALL_PX * 1.5)).max(1.0) as usize;
    loop {
        let all = ticks(&axis.scale, axis.unit, wanted);
        if all.len() <= room || wanted == 1 {
            return all;
        }
        wanted -= 1;
    }
}

fn x_ticks(axis: &Axis, width: f64) -> Vec<Tick> {
    if let Some(ticks) = &axis.ticks {
        return ticks.clone();
    }
    let mut wanted = (width / 30.0).clamp(1.0, 24.0) as usize;
    loop {
        let all = ticks(&axis.scale, axis.unit, wanted);
        if wanted == 1 || fit(&all, &axis.scale, width) {
            return all;
        }
        wanted -= 1;
    }
}

fn fit(ticks: &[Tick], scale: &Scale, width: f64) -> bool {
    ticks.windows(2).all(|pair| {
        let at = |tick: &Tick| scale.fraction(tick.value).unwrap_or(0.0) * width;
        let needed = (label_width(&pair[0]) + label_width(&pair[1])) / 2.0 + BETWEEN;
        at(&pair[1]) - at(&pair[0]) >= needed
    })
}
