//! Figure: ratios with their intervals, one row a case, the worst first, with the margin and the line at 1.

use super::ratio_scale::RatioScale;
use super::ratios::{RatioRow, Ratios, Tone, of_comparison, of_perftest};
use crate::judge::compare::Comparison;
use crate::results::load::Loaded;
use crate::show::plot::draw::palette::{BETTER, GRID, INK, Look, MUTED, Marker, RULE, WORSE};
use crate::show::plot::draw::text::{SMALL_PX, shortened, width_px};
use crate::show::plot::draw::{Anchor, Canvas, Paint, Rect, Sheet, Style, Width};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::naming::{drawn, slug};

/// Rows that are drawn; of more, the worst and the best.
pub const MOST_ROWS: usize = 24;
const WORST_ROWS: usize = 16;
/// Metrics of a comparison that are drawn: those with the most cases that changed.
const MOST_METRICS: usize = 3;

/// The part of the width that the names of cases take at most; where they have a line of their own, they take all.
const LABEL_PART: f64 = 0.36;
const ROW_PX: f64 = 20.0;
const GAP_PX: f64 = 12.0;

/// One for each metric of the comparison in which cases changed most, and of perftest's figures; what the other metrics say
/// is said below the first.
pub fn figures(results: &[Loaded], comparison: Option<&Comparison>) -> Vec<Figure> {
    let from_comparison = comparison.map(of_comparison).unwrap_or_default();
    let sides = [
        (from_comparison, "base"),
        (of_perftest(results), "perftest"),
    ];
    let of_side = |(all, of): (Vec<Ratios>, &str)| {
        let (drawn, said) = telling(all);
        let said: Vec<String> = said.iter().map(in_words).collect();
        let drawn = drawn.iter().enumerate();
        let figures = drawn.map(|(index, ratios)| {
            let said: &[String] = if index == 0 { &said } else { &[] };
            figure(ratios, of, said)
        });
        figures.collect::<Vec<_>>()
    };
    sides.into_iter().flat_map(of_side).collect()
}

/// The metrics that are drawn, in their order, and those that are said.
fn telling(all: Vec<Ratios>) -> (Vec<Ratios>, Vec<Ratios>) {
    let changed = |ratios: &Ratios| {
        let rows = ratios.rows.iter();
        rows.filter(|row| matches!(row.tone, Tone::Better | Tone::Worse))
            .count()
    };
    let mut by_change: Vec<usize> = (0..all.len()).collect();
    by_change.sort_by_key(|index| std::cmp::Reverse(changed(&all[*index])));
    let most_changed = by_change.first().map_or(0, |index| changed(&all[*index]));
    by_change.retain(|index| changed(&all[*index]) > 0 || most_changed == 0);
    by_change.truncate(if most_changed == 0 { 1 } else { MOST_METRICS });
    let all = all.into_iter().enumerate();
    let (drawn, said): (Vec<_>, Vec<_>) = all.partition(|(index, _)| by_change.contains(index));
    let plain = |all: Vec<(usize, Ratios)>| all.into_iter().map(|(_, ratios)| ratios).collect();
    (plain(drawn), plain(said))
}

/// How many cases of each tone.
fn counts(ratios: &Ratios) -> String {
    let count = |tone| ratios.rows.iter().filter(|row| row.tone == tone).count();
    format!(
        "{} are better, {} worse, {} equal and {} unclear",
        count(Tone::Better),
        count(Tone::Worse),
        count(Tone::Equal),
        count(Tone::Unclear)
    )
}

fn in_words(ratios: &Ratios) -> String {
    format!(
        "{}: of {} cases {}.",
        ratios.metric.title(),
        ratios.rows.len(),
        counts(ratios)
    )
}

fn figure(ratios: &Ratios, of: &str, said: &[String]) -> Figure {
    let title = format!(
        "{}: ratio of {} to {}",
        ratios.metric.title(),
        ratios.new,
        ratios.base
    );
    let better = if ratios.metric.higher_is_better() {
        "more"
    } else {
        "less"
    };
    let on = match ratios.devices.len() {
        0 => String::new(),
        1..=3 => format!(
            " on {}",
            ratios
                .devices
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ")
        ),
        many => format!(" on {many} devices"),
    };
    let subtitle = format!(
        "{} cases{on}. Medians over runs that count with 95 % intervals, no unit; {better} is better; differences \
         within the band of ±{:.0} % do not matter; worst first",
        ratios.rows.len(),
        ratios.margin * 100.0
    );
    let figure = Figure {
        id: format!("comparison-{of}-{}", slug(ratios.metric.short_name())),
        description: format!("Of {} cases {}.", ratios.rows.len(), counts(ratios)),
        title,
        subtitle,
        tables: vec![table(ratios)],
        ..Figure::default()
    };
    drawn(figure, |sheet| {
        draw(sheet, ratios);
        said.iter().for_each(|said| sheet.note(said));
    })
}

/// The rows that are drawn, and how many are left out after which.
fn shown(rows: &[RatioRow]) -> (Vec<&RatioRow>, Option<(usize, usize)>) {
    if rows.len() <= MOST_ROWS {
        return (rows.iter().collect(), None);
    }
    let best = MOST_ROWS - WORST_ROWS;
    let shown = rows[..WORST_ROWS].iter().chain(&rows[rows.len() - best..]);
    (shown.collect(), Some((WORST_ROWS, rows.len() - MOST_ROWS)))
}

/// Where the parts of rows are.
struct Rows {
    left: f64,
    labels_px: f64,
    /// Names stand above their marks.
    is_stacked: bool,
}

impl Rows {
    fn height_px(&self) -> f64 {
        if self.is_stacked {
            2.0 * ROW_PX - 4.0
        } else {
            ROW_PX
        }
    }
}

fn draw(sheet: &mut Sheet, ratios: &Ratios) {
    let (rows, gap) = shown(&ratios.rows);
    let widest = |texts: &mut dyn Iterator<Item = &str>| {
        texts
            .map(|text| width_px(text, SMALL_PX, false))
            .fold(0.0, f64::max)
    };
    let labels = widest(&mut rows.iter().map(|row| row.case.as_str()));
    let words = widest(&mut rows.iter().map(|row| row.verdict.as_str()))
        + width_px("0.000 ", SMALL_PX, false);
    let is_stacked = sheet.width() == Width::Column;
    let all = sheet.take(0.0);
    let places = Rows {
        left: all.x,
        labels_px: match is_stacked {
            true => all.width,
            false => labels.min(all.width * LABEL_PART),
        },
        is_stacked,
    };
    let left = match is_stacked {
        true => all.x + GAP_PX,
        false => all.x + places.labels_px + GAP_PX,
    };
    let right = all.right() - words - GAP_PX;
    let scale = RatioScale::of(ratios, left, right);
    let gaps = if gap.is_some() { ROW_PX } else { 0.0 };
    // A row above for the directions, two below for the axis.
    let area = sheet.take(rows.len() as f64 * places.height_px() + gaps + 3.0 * ROW_PX);
    let (top, bottom) = (area.y + ROW_PX, area.bottom() - 2.0 * ROW_PX);
    let canvas = &mut sheet.canvas;
    background(canvas, ratios, &scale, (top, bottom));
    let beyond = |row: &&RatioRow| {
        row.interval
            .is_some_and(|(low, high)| !scale.holds(low) || !scale.holds(high))
    };
    let some_beyond = rows.iter().any(beyond);
    let mut y = top;
    for (index, row) in rows.into_iter().enumerate() {
        if let Some((after, count)) = gap
            && index == after
        {
            let style = Style {
                colour: MUTED,
                ..Style::default()
            };
            let text = format!("… {count} more in the table");
            canvas.text(places.left, y + 14.0, &text, style);
            y += ROW_PX;
        }
        draw_row(canvas, row, &scale, y, &places);
        y += places.height_px();
    }
    if some_beyond {
        sheet.note("An interval without an end mark goes on beyond the scale.");
    }
}

fn background(canvas: &mut Canvas, ratios: &Ratios, scale: &RatioScale, (top, bottom): (f64, f64)) {
    let (from, to) = (scale.x(1.0 - ratios.margin), scale.x(1.0 + ratios.margin));
    let band = Rect {
        x: from,
        y: top,
        width: to - from,
        height: bottom - top,
    };
    canvas.rect(band, Paint::area(GRID).see_through(0.4), None);
    for (ratio, text) in scale.ticks() {
        let x = scale.x(ratio);
        let paint = if ratio == 1.0 {
            Paint::line(RULE, 1.5)
        } else {
            Paint::line(GRID, 1.0)
        };
        canvas.line((x, top), (x, bottom), paint);
        let style = Style {
            anchor: Anchor::Middle,
            colour: MUTED,
            ..Style::default()
        };
        canvas.text(x, bottom + 16.0, &text, style);
    }
    let (worse, better) = if ratios.metric.higher_is_better() {
        ("← worse", "better →")
    } else {
        ("← better", "worse →")
    };
    for (x, anchor, text) in [
        (scale.left, Anchor::Start, worse),
        (scale.right, Anchor::End, better),
    ] {
        let style = Style {
            anchor,
            colour: MUTED,
            ..Style::default()
        };
        canvas.text(x, top - 6.0, text, style);
    }
    let style = Style {
        anchor: Anchor::Middle,
        ..Style::default()
    };
    let middle = f64::midpoint(scale.left, scale.right);
    let title = format!("{} / {} (log)", ratios.new, ratios.base);
    let title = shortened(&title, SMALL_PX, false, scale.right - scale.left);
    canvas.text(middle, bottom + 36.0, &title, style);
}

fn look(tone: Tone) -> Look {
    let (colour, marker, hollow) = match tone {
        Tone::Better => (BETTER, Marker::Up, false),
        Tone::Worse => (WORSE, Marker::Down, false),
        Tone::Equal => (INK, Marker::Circle, false),
        Tone::Unclear => (MUTED, Marker::Diamond, true),
    };
    Look {
        colour,
        marker,
        dash: "",
        hollow,
        thin: false,
    }
}

fn draw_row(canvas: &mut Canvas, row: &RatioRow, scale: &RatioScale, top: f64, rows: &Rows) {
    let case = shortened(&row.case, SMALL_PX, false, rows.labels_px);
    canvas.text(rows.left, top + 14.0, &case, Style::default());
    let top = if rows.is_stacked {
        top + ROW_PX - 4.0
    } else {
        top
    };
    let (middle, foot) = (top + ROW_PX / 2.0, top + 14.0);
    let look = look(row.tone);
    let mut hint = format!("{}: {:.3}", row.case, row.ratio);
    if let Some((low, high)) = row.interval {
        hint = format!("{hint}, 95 % from {low:.3} to {high:.3}");
        let (from, to) = (scale.x(low), scale.x(high));
        canvas.line((from, middle), (to, middle), Paint::line(look.colour, 2.0));
        // An end that does not fit on the scale has no stop.
        for end in [low, high].into_iter().filter(|end| scale.holds(*end)) {
            let x = scale.x(end);
            canvas.line(
                (x, middle - 4.0),
                (x, middle + 4.0),
                Paint::line(look.colour, 2.0),
            );
        }
    }
    canvas.marker((scale.x(row.ratio), middle), look, Some(&hint));
    let words = format!("{:.3} {}", row.ratio, row.verdict);
    canvas.text(scale.right + GAP_PX, foot, &words, Style::default());
}

fn table(ratios: &Ratios) -> Table {
    let unit = ratios.metric.unit();
    let with_unit = |what: &str| {
        if unit.is_empty() {
            format!("median, {what}")
        } else {
            format!("median, {what} ({unit})")
        }
    };
    Table {
        caption: format!(
            "{}: {} over {}, the worst first",
            ratios.metric.title(),
            ratios.new,
            ratios.base
        ),
        columns: vec![
            text_column("case"),
            number_column(with_unit(&ratios.base)),
            number_column(with_unit(&ratios.new)),
            number_column("ratio"),
            number_column("95 % from"),
            number_column("to"),
            text_column("verdict"),
        ],
        rows: ratios
            .rows
            .iter()
            .map(|row| {
                let end = |end: Option<f64>| end.map_or(Cell::Missing, |end| Cell::Number(end, 4));
                vec![
                    Cell::Text(row.case.clone()),
                    Cell::Number(row.base_median, 4),
                    Cell::Number(row.new_median, 4),
                    Cell::Number(row.ratio, 4),
                    end(row.interval.map(|(low, _)| low)),
                    end(row.interval.map(|(_, high)| high)),
                    Cell::Text(row.verdict.clone()),
                ]
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_rows_the_worst_and_the_best_are_drawn() {
        let values: Vec<_> = (1..=100).map(|number| f64::from(number) / 50.0).collect();
        let ratios = Ratios::of(&values);
        let (rows, gap) = shown(&ratios.rows);
        assert_eq!((rows.len(), gap), (MOST_ROWS, Some((WORST_ROWS, 76))));
        assert_eq!(rows[MOST_ROWS - 1].case, "case-99");
    }
}
