//! Figure: ratios with their intervals, one row a case, the worst first, with the margin and the line at 1.

use super::ratios::{RatioRow, Ratios, Tone, of_beside, of_comparison, of_perftest};
use crate::judge::compare::Comparison;
use crate::results::load::Loaded;
use crate::show::plot::draw::palette::{BETTER, GRID, INK, Look, MUTED, Marker, WORSE};
use crate::show::plot::draw::{Key, KeyMark, Scale, Unit};
use crate::show::plot::figure::{Cell, Figure, Table};
use crate::show::plot::marks::{Axis, Band, Chart, Dot, Fill, Mark, Tile, Upright};
use crate::show::plot::picture::Picture;

const MOST_ROWS: usize = 24;
/// Metrics of a comparison that are drawn: those with the most cases that changed.
const MOST_METRICS: usize = 3;
const ROW_PX: f64 = 20.0;
/// Height of an interval; 1 is the whole row.
const INTERVAL: f64 = 0.2;

/// One for each metric of the comparison in which cases changed most, of perftest's figures, and of a victim beside attackers; what the other metrics say
/// is said below the first.
pub fn figures(results: &[Loaded], comparison: Option<&Comparison>) -> Vec<Figure> {
    let from_comparison = comparison.map(of_comparison).unwrap_or_default();
    let sides = [
        (from_comparison, "base"),
        (of_perftest(results), "perftest"),
        (of_beside(results), "attackers"),
    ];
    sides
        .into_iter()
        .flat_map(|(ratios, of)| {
            let (drawn, others) = telling(ratios);
            let mut notes: Vec<String> =
                others.iter().map(|it| format!("{}: {}", it.metric.title(), counts(it))).collect();
            drawn
                .iter()
                .map(|ratios| figure(ratios, of, std::mem::take(&mut notes)))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The metrics that are drawn, in their order, and those that are said in a note.
fn telling(ratios: Vec<Ratios>) -> (Vec<Ratios>, Vec<Ratios>) {
    let changed: Vec<usize> = ratios.iter().map(changed).collect();
    let mut order: Vec<usize> = (0..ratios.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(changed[*at]));
    let did_change = changed.iter().filter(|count| **count > 0).count();
    order.truncate(did_change.clamp(1, MOST_METRICS));
    let (mut drawn, mut others) = (Vec::new(), Vec::new());
    for (at, ratios) in ratios.into_iter().enumerate() {
        if order.contains(&at) {
            drawn.push(ratios);
        } else {
            others.push(ratios);
        }
    }
    (drawn, others)
}

/// Cases that changed.
fn changed(ratios: &Ratios) -> usize {
    ratios.rows.iter().filter(|row| matches!(row.tone, Tone::Better | Tone::Worse)).count()
}

fn counts(ratios: &Ratios) -> String {
    let tones = [Tone::Better, Tone::Worse, Tone::Equal, Tone::Unclear];
    let [better, worse, equal, unclear] =
        tones.map(|tone| ratios.rows.iter().filter(|row| row.tone == tone).count());
    let count = ratios.rows.len();
    format!(
        "of {count} cases {better} are better, {worse} worse, {equal} equal and {unclear} unclear."
    )
}

fn figure(ratios: &Ratios, of: &str, notes: Vec<String>) -> Figure {
    let (title, [base, new]) = (ratios.metric.title(), &ratios.sides);
    let devices: Vec<&str> = ratios.devices.iter().map(String::as_str).collect();
    let on = match devices.len() {
        0 => String::new(),
        1..=3 => format!(" on {}", devices.join(", ")),
        many => format!(" on {many} devices"),
    };
    let margin = ratios.margin * 100.0;
    let subtitle = format!(
        "{} cases{on}. Medians of the runs that count with 95 % intervals; grey: ±{margin:.0} %, too small to matter",
        ratios.rows.len()
    );
    let rows = &ratios.rows[..ratios.rows.len().min(MOST_ROWS)];
    let undrawn = ratios.rows.len() - rows.len();
    let more = (undrawn > 0).then(|| format!("{undrawn} more are in the table."));
    let picture = Picture {
        subtitle,
        keys: keys(rows),
        charts: vec![chart(ratios, rows)],
        notes: more.into_iter().chain(notes).collect(),
        tables: vec![table(ratios)],
    };
    picture.named(
        format!("comparison-{of}-{}", ratios.metric.short_name().replace('.', "-")),
        format!("{title}: ratio of {new} to {base}"),
        format!("Changes: {}", counts(ratios)),
    )
}

fn chart(ratios: &Ratios, rows: &[RatioRow]) -> Chart {
    let margin = (1.0 - ratios.margin, 1.0 + ratios.margin);
    let (least, most) = rows
        .iter()
        .map(|row| row.ratio)
        .chain([margin.0 / 1.02, margin.1 * 1.02])
        .fold((f64::INFINITY, 0.0_f64), |(least, most), ratio| (least.min(ratio), most.max(ratio)));
    // Intervals do not dwarf the ratios.
    let span = (most / least).sqrt().max(1.1);
    let intervals = rows.iter().filter_map(|row| row.interval);
    let low = intervals.clone().map(|it| it.0).fold(least, f64::min);
    let high = intervals.map(|it| it.1).fold(most, f64::max);
    let (low, high) = (low.max(least / span), high.min(most * span));
    let better =
        if ratios.metric.higher_is_better() { "right is better" } else { "left is better" };
    let title = format!("{} ÷ {} (log): {better}", ratios.sides[1], ratios.sides[0]);
    let band = Mark::Band(Band {
        name: "too small to matter",
        look: Look { colour: GRID, ..look(Tone::Equal) },
        transparency: 0.4,
        ends: margin,
        hint: "too small to matter".to_owned(),
    });
    let (mut intervals, mut dots) = (Vec::new(), Vec::new());
    for (row, it) in rows.iter().enumerate() {
        let (y, look) = (-(row as f64), look(it.tone));
        let mut hint = format!("{}: {:.3} {}", it.case, it.ratio, it.verdict);
        if let Some((low, high)) = it.interval {
            hint.push_str(&format!(", 95 % from {low:.3} to {high:.3}"));
        }
        let (from, to) = it.interval.unwrap_or((it.ratio, it.ratio));
        let ends = (from.max(low), to.min(high));
        intervals.push(Tile {
            height: INTERVAL,
            behind: format!("{:.3}", it.ratio),
            ..Tile::new(y, ends, Fill::Plain(look.colour), &*hint)
        });
        dots.push(Mark::Dot(Dot { at: (it.ratio, y), look, hint, ..Dot::default() }));
    }
    let x = Axis::new(title, Scale::log10(low, high).widened(0.03), Unit::Plain);
    let y = Axis::rows("", rows.iter().map(|row| row.case.clone()));
    let below = [band, Mark::Upright(Upright { x: 1.0 }), Mark::Tiles(intervals)];
    Chart::of_rows(ROW_PX, x, y, below.into_iter().chain(dots).collect())
}

fn look(tone: Tone) -> Look {
    let (colour, marker, hollow) = match tone {
        Tone::Better => (BETTER, Marker::Up, false),
        Tone::Worse => (WORSE, Marker::Down, false),
        Tone::Equal => (INK, Marker::Circle, false),
        Tone::Unclear => (MUTED, Marker::Diamond, true),
    };
    Look { colour, marker, hollow, ..Look::default() }
}

fn keys(rows: &[RatioRow]) -> Vec<Key> {
    let tones = [
        (Tone::Worse, "worse"),
        (Tone::Better, "better"),
        (Tone::Equal, "equal"),
        (Tone::Unclear, "unclear"),
    ];
    tones
        .into_iter()
        .filter(|(tone, _)| rows.iter().any(|row| row.tone == *tone))
        .map(|(tone, label)| Key::new(KeyMark::Marker, look(tone), label))
        .collect()
}

fn table(ratios: &Ratios) -> Table {
    let unit = match ratios.metric.unit() {
        "" => String::new(),
        unit => format!(" ({unit})"),
    };
    let [base, new] = &ratios.sides;
    let medians = [base, new].map(|side| format!("median, {side}{unit}"));
    let others = ["ratio", "95 % from", "to", "verdict"].map(str::to_owned);
    let names = ["case".to_owned()].into_iter().chain(medians).chain(others);
    let rows = ratios.rows.iter().map(|row| {
        let (low, high) = row.interval.unzip();
        let [base, new] = row.medians.map(Some);
        let figures = [base, new, Some(row.ratio), low, high].map(|it| Cell::number(it, 4));
        let ends = [&row.case, &row.verdict].map(Cell::text);
        let [case, verdict] = ends;
        [case].into_iter().chain(figures).chain([verdict]).collect()
    });
    let title = ratios.metric.title();
    Table::new(format!("{title}: {new} over {base}, the worst first"), names, rows)
}
