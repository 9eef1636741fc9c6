//! Two axes around the place for a chart, with their ticks, grid and titles.

use std::collections::BTreeSet;

use crate::show::plot::draw::{
    Anchor, Canvas, Colour, GRID, INK, MUTED, Paint, Rect, Scale, Style, Tick, Unit, WORSE,
    scale::{Kind, ticks},
    text::{ASCENT, SMALL_PX, shortened, width_px},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What its figures are, with their unit where the ticks do not have it.
    pub title: String,
    pub scale: Scale,
    pub unit: Unit,
    /// Places and names instead of figures, such as dates; those that do not fit lose their name.
    pub ticks: Option<Vec<Tick>>,
    /// Which of these stand out, and have their name before others.
    pub marked: BTreeSet<usize>,
    /// Ends and names of its parts, which stand at the other side of the chart, with borders between them.
    pub parts: Vec<(f64, f64, String)>,
}

impl Axis {
    pub fn new(title: impl Into<String>, scale: Scale, unit: Unit) -> Axis {
        let whole: String = title.into();
        Axis {
            title: match unit {
                Unit::Rate(usual) => whole.replacen(usual, scale.rate_unit(usual).0, 1),
                _ => whole,
            },
            scale,
            unit,
            ticks: None,
            marked: BTreeSet::new(),
            parts: Vec::new(),
        }
    }

    pub fn named(title: impl Into<String>, scale: Scale, ticks: Vec<Tick>) -> Axis {
        Axis { ticks: Some(ticks), ..Axis::new(title, scale, Unit::Plain) }
    }

    /// Columns with names, at 0, 1, 2.
    pub fn columns(title: impl Into<String>, names: impl IntoIterator<Item = String>) -> Axis {
        let ticks: Vec<Tick> = (0..)
            .zip(names)
            .map(|(place, label)| Tick { value: f64::from(place), label })
            .collect();
        let scale = Scale::linear(-0.5, ticks.len() as f64 - 0.5);
        Axis::named(title, scale, ticks)
    }

    /// Rows with names, from the top at 0, -1, -2.
    pub fn rows(title: impl Into<String>, names: impl IntoIterator<Item = String>) -> Axis {
        let mut axis = Axis::columns(title, names);
        let (min, max) = (axis.scale.min, axis.scale.max);
        axis.scale = Scale::linear(-max, -min);
        axis.ticks.iter_mut().flatten().for_each(|tick| tick.value *= -1.0);
        axis
    }

    /// The places that have names; none of an axis of figures.
    pub(crate) fn names(&self) -> &[Tick] {
        self.ticks.as_deref().unwrap_or_default()
    }

    /// So many ticks or fewer until they fit; those with names always do.
    fn ticks_that(&self, mut wanted: usize, fit: impl Fn(&[Tick]) -> bool) -> Vec<Tick> {
        if let Some(ticks) = &self.ticks {
            return ticks.clone();
        }
        loop {
            let chosen = ticks(&self.scale, self.unit, wanted);
            if wanted == 1 || fit(&chosen) {
                return chosen;
            }
            wanted -= 1;
        }
    }

    /// How far the label of the first or last tick reaches over the end of an axis that is so wide.
    fn stands_out(&self, ticks: &[Tick], at: usize, is_last: bool, width: f64) -> f64 {
        let fraction = ticks.get(at).and_then(|tick| self.scale.fraction(tick.value));
        let to_edge = match (&self.ticks, is_last) {
            (None, _) => 0.0,
            (_, false) => fraction.unwrap_or(0.0),
            (_, true) => 1.0 - fraction.unwrap_or(1.0),
        };
        self.label_width(ticks, at) / 2.0 - to_edge * width
    }

    fn style(&self, at: usize, anchor: Anchor) -> Style {
        let is_marked = self.marked.contains(&at);
        Style { bold: is_marked, ..style(anchor, if is_marked { WORSE } else { INK }) }
    }

    fn label_width(&self, ticks: &[Tick], at: usize) -> f64 {
        let is_bold = self.marked.contains(&at);
        let tick = ticks.get(at);
        tick.map_or(0.0, |tick| width_px(&tick.label, SMALL_PX, is_bold))
    }

    /// What the names of a vertical axis take at both sides of a chart.
    pub(super) fn names_px(&self) -> f64 {
        let ticks = self.names();
        (0..ticks.len()).map(|at| self.label_width(ticks, at)).fold(0.0, f64::max)
            + GAP
            + 10.0
            + self.parts_px()
    }

    fn parts_px(&self) -> f64 {
        self.parts.iter().map(|part| width(&part.2) + 10.0).fold(0.0, f64::max).min(PART_NAME_PX)
    }

    /// The size of the unit in its title: figures are divided by it.
    fn unit_size(&self) -> f64 {
        match self.unit {
            Unit::Rate(usual) => self.scale.rate_unit(usual).1,
            _ => 1.0,
        }
    }

    /// Kind, ends, unit and title, for a script that turns places into figures.
    fn for_script(&self) -> String {
        let kind = match self.scale.kind {
            Kind::Linear => "linear",
            Kind::Log2 | Kind::Log10 => "log",
        };
        let unit = match (&self.ticks, self.unit) {
            (Some(_), _) => "named",
            (None, Unit::Plain | Unit::Rate(_)) => "plain",
            (None, Unit::Bytes) => "bytes",
            (None, Unit::Nanoseconds) => "ns",
            (None, Unit::Tail) => "tail",
        };
        let [min, max] = [self.scale.min, self.scale.max].map(|end| end / self.unit_size());
        format!("{kind} {min:e} {max:e} {unit} {}", self.title)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AxisFrame {
    pub plot: Rect,
    x: Scale,
    y: Scale,
    /// Of x and of y.
    unit_sizes: (f64, f64),
    /// Cells of a map have none between them.
    has_grid: bool,
}

/// Pixels from an axis to its labels.
const GAP: f64 = 7.0;
/// Height of a line of labels or of a title.
const LINE: f64 = 18.0;
/// Least pixels between two labels of a horizontal axis, and of percentiles, which are the same everywhere.
const BETWEEN: f64 = 12.0;
const BETWEEN_TAIL: f64 = 5.0;
const NARROWEST: f64 = 60.0;
/// Most that a name takes: in a row, of all of the width; below a column; at the right.
const ROW_NAME_PART: f64 = 0.36;
const COLUMN_NAME_PX: f64 = 150.0;
const PART_NAME_PX: f64 = 110.0;

/// What a horizontal axis and the title of the vertical one take above and below a chart.
pub(super) fn around(x: &Axis) -> f64 {
    above(x) + GAP + 2.0 * LINE
}

fn above(x: &Axis) -> f64 {
    let parts = if x.parts.is_empty() { 0.0 } else { LINE };
    LINE + 6.0 + parts
}

fn width(text: &str) -> f64 {
    width_px(text, SMALL_PX, false)
}

fn style(anchor: Anchor, colour: Colour) -> Style {
    Style { anchor, colour, ..Style::default() }
}

impl AxisFrame {
    pub fn draw(canvas: &mut Canvas, area: Rect, x: &Axis, y: &Axis) -> AxisFrame {
        let (top, bottom) = (area.y + above(x), area.bottom() - GAP - 2.0 * LINE);
        let height = (bottom - top).max(1.0);
        let y_ticks = y_ticks(y, height);
        let room = match y.ticks {
            Some(_) => area.width * ROW_NAME_PART,
            None => area.width - NARROWEST - GAP,
        };
        let widest =
            (0..y_ticks.len()).map(|at| y.label_width(&y_ticks, at)).fold(0.0, f64::max).min(room);
        let beside = y.parts_px().min(area.width / 6.0);
        let mut left = area.x + widest + GAP;
        let mut right = area.right() - 10.0 - beside;
        // Labels of both ends may stand out by half their width, which there is room for on few.
        let mut x_ticks = x_ticks(x, right - left);
        let last_at = x_ticks.len().saturating_sub(1);
        let first = x.stands_out(&x_ticks, 0, false, right - left);
        let last = x.stands_out(&x_ticks, last_at, true, right - left);
        left = left.max(area.x + first.min(area.width / 4.0));
        right -= (last - 10.0).clamp(0.0, area.width / 4.0);
        let frame = AxisFrame {
            plot: Rect { x: left, y: top, width: (right - left).max(1.0), height },
            x: x.scale,
            y: y.scale,
            unit_sizes: (x.unit_size(), y.unit_size()),
            has_grid: x.ticks.is_none() || y.ticks.is_none(),
        };
        if x.ticks.is_none() {
            x_ticks = self::x_ticks(x, frame.plot.width);
        }
        canvas.plot(frame.plot, &x.for_script(), &y.for_script());
        canvas.begin("rb-axes", &[]);
        frame.horizontal(canvas, area, x, &x_ticks);
        frame.vertical(canvas, area, y, &y_ticks, widest);
        if !(x.parts.is_empty() && y.parts.is_empty()) {
            frame.parts(canvas, x, y, beside);
        }
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

    /// The same; what lies above or below the chart is at its edge.
    pub(super) fn place_at_edge(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        let (left, top) = self.place(x, y)?;
        Some((left, top.clamp(self.plot.y, self.plot.bottom())))
    }

    /// Two figures in the units that the axes have.
    pub(super) fn in_units(&self, x: f64, y: f64) -> (f64, f64) {
        (x / self.unit_sizes.0, y / self.unit_sizes.1)
    }

    pub fn contains(&self, (x, y): (f64, f64)) -> bool {
        let plot = &self.plot;
        (plot.x - 0.5..=plot.right() + 0.5).contains(&x)
            && (plot.y - 0.5..=plot.bottom() + 0.5).contains(&y)
    }

    fn grid(&self, canvas: &mut Canvas, from: (f64, f64), to: (f64, f64)) {
        if self.has_grid {
            canvas.line(from, to, Paint::line(GRID, 1.0));
        }
    }

    fn horizontal(&self, canvas: &mut Canvas, area: Rect, axis: &Axis, ticks: &[Tick]) {
        let plot = &self.plot;
        let (top, bottom) = (plot.y, plot.bottom());
        let foot = bottom + GAP + SMALL_PX * ASCENT;
        canvas.begin("rb-ticks", &[]);
        let mut spans = Vec::new();
        for (at, tick) in ticks.iter().enumerate() {
            let half = axis.label_width(ticks, at) / 2.0;
            let x = self.x(tick.value).unwrap_or(f64::NEG_INFINITY);
            if x >= plot.x - 0.5 {
                self.grid(canvas, (x, top), (x, bottom));
                canvas.line((x, bottom), (x, bottom + 4.0), Paint::line(INK, 1.0));
            }
            let middle = match axis.ticks {
                Some(_) => x.min(area.right() - half).max(area.x + half),
                None => x,
            };
            spans.push((middle - half, middle + half));
        }
        let gap = match axis.unit {
            Unit::Tail => BETWEEN_TAIL,
            _ => BETWEEN,
        };
        for at in written(&spans, gap, &axis.marked, axis.ticks.is_some()) {
            let (from, to) = spans[at];
            if from >= area.x - 1e-6 && to <= area.right() + 1e-6 {
                let middle = f64::midpoint(from, to);
                let style = axis.style(at, Anchor::Middle);
                canvas.text(middle, foot, &ticks[at].label, style);
            }
        }
        canvas.end_group();
        let ink = Paint::line(INK, 1.0);
        canvas.line((plot.x, bottom), (plot.right(), bottom), ink);
        let title = shortened(&axis.title, SMALL_PX, false, area.width);
        let half = width(&title) / 2.0;
        let middle = (plot.x + plot.width / 2.0).min(area.right() - half).max(area.x + half);
        canvas.text(middle, foot + LINE, &title, style(Anchor::Middle, MUTED));
    }

    fn vertical(&self, canvas: &mut Canvas, area: Rect, axis: &Axis, ticks: &[Tick], room: f64) {
        let plot = &self.plot;
        canvas.begin("rb-ticks", &[]);
        let ys: Vec<f64> = ticks.iter().filter_map(|tick| self.y(tick.value)).collect();
        for y in &ys {
            self.grid(canvas, (plot.x, *y), (plot.right(), *y));
        }
        let half = SMALL_PX * 0.65;
        let spans: Vec<_> = ys.iter().map(|y| (y - half, y + half)).collect();
        for at in written(&spans, 0.0, &axis.marked, axis.ticks.is_some()) {
            let style = axis.style(at, Anchor::End);
            let label = shortened(&ticks[at].label, SMALL_PX, style.bold, room);
            // A label's middle is a third of its size above its foot.
            canvas.text(plot.x - GAP, ys[at] + SMALL_PX * 0.36, &label, style);
        }
        canvas.end_group();
        let ink = Paint::line(INK, 1.0);
        canvas.line((plot.x, plot.y), (plot.x, plot.bottom()), ink);
        let title = shortened(&axis.title, SMALL_PX, false, area.width);
        let foot = area.y + SMALL_PX * ASCENT;
        canvas.text(area.x, foot, &title, style(Anchor::Start, MUTED));
    }

    /// Names of parts, above the chart and at its right.
    fn parts(&self, canvas: &mut Canvas, x: &Axis, y: &Axis, room: f64) {
        let plot = &self.plot;
        canvas.begin("rb-ticks", &[]);
        for (from, to, name) in &x.parts {
            if let (Some(from), Some(to)) = (self.x(*from), self.x(*to)) {
                let name = with_room(name, to - from - 4.0);
                let middle = f64::midpoint(from, to);
                canvas.text(middle, plot.y - 6.0, &name, style(Anchor::Middle, MUTED));
            }
        }
        let middles: Vec<f64> = y
            .parts
            .iter()
            .map(|part| (self.y(part.0), self.y(part.1)))
            .filter_map(|(from, to)| Some(f64::midpoint(from?, to?)))
            .collect();
        let spans: Vec<_> = middles.iter().map(|at| (at - LINE / 2.0, at + LINE / 2.0)).collect();
        for at in written(&spans, 0.0, &BTreeSet::new(), false) {
            let name = with_room(&y.parts[at].2, room - 8.0);
            let place = (plot.right() + 8.0, middles[at] + 4.0);
            canvas.text(place.0, place.1, &name, style(Anchor::Start, MUTED));
        }
        canvas.end_group();
    }

    pub(super) fn borders(&self, canvas: &mut Canvas, x: &Axis, y: &Axis) {
        let (plot, mut lines) = (&self.plot, Vec::new());
        for at in x.parts.iter().skip(1).filter_map(|part| self.x(part.0)) {
            lines.push([(at, plot.y), (at, plot.bottom())]);
        }
        for at in y.parts.iter().skip(1).filter_map(|part| self.y(part.0)) {
            lines.push([(plot.x, at), (plot.right(), at)]);
        }
        canvas.lines(&lines, Paint::line(INK, 1.5));
    }
}

/// Which names are written, so that none is nearer to another than `gap`: those that stand out first; of names evenly apart,
/// if not all have room, every so many.
fn written(spans: &[(f64, f64)], gap: f64, first: &BTreeSet<usize>, by_turns: bool) -> Vec<usize> {
    let middles: Vec<f64> = spans.iter().map(|span| f64::midpoint(span.0, span.1)).collect();
    let (least, most) = middles
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).abs())
        .fold((f64::INFINITY, 0.0_f64), |(least, most), pitch| (least.min(pitch), most.max(pitch)));
    let widest = spans.iter().map(|span| span.1 - span.0).fold(0.0, f64::max);
    let every = if by_turns && most < least * 1.01 {
        ((widest + gap) / least).ceil().max(1.0) as usize
    } else {
        1
    };
    let mut written: Vec<usize> = Vec::new();
    for at in
        first.iter().copied().filter(|at| *at < spans.len()).chain((0..spans.len()).step_by(every))
    {
        let (from, to) = spans[at];
        if !written.iter().any(|other| from < spans[*other].1 + gap && spans[*other].0 < to + gap) {
            written.push(at);
        }
    }
    written
}

/// A name, shortened to a width; empty where nothing of it has room.
fn with_room(name: &str, room: f64) -> String {
    if width(name) <= room || room >= width("mm…") {
        shortened(name, SMALL_PX, false, room)
    } else {
        String::new()
    }
}

fn y_ticks(axis: &Axis, height: f64) -> Vec<Tick> {
    let room = (height / (SMALL_PX * 1.5)).max(1.0) as usize;
    let wanted = (height / 34.0).ceil().max(2.0) as usize;
    axis.ticks_that(wanted, |ticks| ticks.len() <= room)
}

fn x_ticks(axis: &Axis, width: f64) -> Vec<Tick> {
    let wanted = (width / 30.0).clamp(1.0, 24.0) as usize;
    let mut ticks = axis.ticks_that(wanted, |ticks| fit(ticks, &axis.scale, width));
    if axis.ticks.is_some() {
        for (at, tick) in ticks.iter_mut().enumerate() {
            let is_bold = axis.marked.contains(&at);
            tick.label = shortened(&tick.label, SMALL_PX, is_bold, COLUMN_NAME_PX);
        }
    }
    ticks
}

fn fit(ticks: &[Tick], scale: &Scale, room: f64) -> bool {
    ticks.windows(2).all(|pair| {
        let [one, other] =
            [&pair[0], &pair[1]].map(|tick| scale.fraction(tick.value).unwrap_or(0.0) * room);
        let needed = (width(&pair[0].label) + width(&pair[1].label)) / 2.0 + BETWEEN;
        other - one >= needed
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_do_not_touch_and_those_that_stand_out_come_first(
            extents in proptest::collection::vec(1.0..50.0f64, 1..80),
            pitch in 1.0..60.0f64,
            wanted in 0..80usize,
            by_turns in any::<bool>(),
        ) {
            let middle = |at: usize| at as f64 * pitch;
            let spans = extents.iter().enumerate();
            let spans = spans.map(|(at, extent)| (middle(at) - extent / 2.0, middle(at) + extent / 2.0));
            let spans: Vec<_> = spans.collect();
            let mut places = written(&spans, 2.0, &BTreeSet::from([wanted]), by_turns);
            prop_assert_eq!(places.contains(&wanted), wanted < extents.len());
            prop_assert!(!places.is_empty());
            places.sort_unstable();
            for pair in places.windows(2) {
                let apart = (pair[1] - pair[0]) as f64 * pitch;
                prop_assert!(apart >= (extents[pair[0]] + extents[pair[1]]) / 2.0 + 2.0 - 1e-9);
            }
        }
    }
}
