//! Figure: ratios with their intervals, one row a case, the worst first, with the margin and the line at 1.

use super::ratios::{RatioRow, Ratios, Tone, of_comparison, of_perftest};
use crate::judge::compare::Comparison;
use crate::results::load::Loaded;
use crate::show::plot::draw::palette::{BETTER, GRID, INK, Look, MUTED, Marker, WORSE};
use crate::show::plot::draw::text::{SMALL_PX, shortened};
use crate::show::plot::draw::{Key, KeyMark, Scale, Tick, Unit};
use crate::show::plot::figure::{Cell, Figure, Table, number_column, text_column};
use crate::show::plot::marks::{Axis, Band, Bar, Chart, Dot, Mark, Upright, facets};
use crate::show::plot::naming::drawn;

/// Rows that are drawn; of more, the worst.
const MOST_ROWS: usize = 24;
/// Metrics of a comparison that are drawn: those with the most cases that changed.
const MOST_METRICS: usize = 3;

/// The part of the width that the names of cases take at most.
const LABEL_PART: f64 = 0.36;
const ROW_PX: f64 = 20.0;
const INTERVAL_PX: f64 = 4.0;

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
    let margin = ratios.margin * 100.0;
    let subtitle = format!(
        "{} cases{on}. Medians of the runs that count with 95 % intervals; grey: ±{margin:.0} %, too small to matter",
        ratios.rows.len()
    );
    let figure = Figure {
        id: format!(
            "comparison-{of}-{}",
            ratios.metric.short_name().replace('.', "-")
        ),
        description: format!("Of {} cases {}.", ratios.rows.len(), counts(ratios)),
        title,
        subtitle,
        tables: vec![table(ratios)],
        ..Figure::default()
    };
    let rows = &ratios.rows[..ratios.rows.len().min(MOST_ROWS)];
    drawn(figure, |sheet| {
        sheet.legend(&keys(rows));
        let chart = chart(ratios, rows, sheet.room_px() * LABEL_PART);
        facets::draw(sheet, &[chart], rows.len() as f64 * ROW_PX + 70.0);
        let more = ratios.rows.len() - rows.len();
        if more > 0 {
            sheet.note(&format!("{more} more are in the table."));
        }
        said.iter().for_each(|said| sheet.note(said));
    })
}

fn chart(ratios: &Ratios, rows: &[RatioRow], room_px: f64) -> Chart {
    let margin = (1.0 - ratios.margin, 1.0 + ratios.margin);
    let points = || {
        rows.iter()
            .map(|row| row.ratio)
            .chain([margin.0 / 1.02, margin.1 * 1.02])
    };
    let (least, most) = (
        points().fold(f64::INFINITY, f64::min),
        points().fold(0.0, f64::max),
    );
    // Intervals do not dwarf the ratios.
    let span = (most / least).sqrt().max(1.1);
    let ends = || rows.iter().filter_map(|row| row.interval);
    let low = ends()
        .map(|it| it.0)
        .fold(least, f64::min)
        .max(least / span);
    let high = ends().map(|it| it.1).fold(most, f64::max).min(most * span);
    let better = match ratios.metric.higher_is_better() {
        true => "right is better",
        false => "left is better",
    };
    let title = format!("{} ÷ {} (log): {better}", ratios.new, ratios.base);
    let mut y = Axis::new("", Scale::linear(0.5 - rows.len() as f64, 0.5), Unit::Plain);
    let tick = |(row, ratio): (usize, &RatioRow)| Tick {
        value: -(row as f64),
        label: shortened(&ratio.case, SMALL_PX, false, room_px),
    };
    y.ticks = Some(rows.iter().enumerate().rev().map(tick).collect());
    let band = Mark::Band(Band {
        name: "too small to matter",
        look: Look {
            colour: GRID,
            ..look(Tone::Equal)
        },
        transparency: 0.4,
        ends: margin,
        hint: "too small to matter".to_owned(),
    });
    let marks = rows.iter().enumerate().flat_map(|(row, ratio)| {
        let y = -(row as f64);
        let look = look(ratio.tone);
        let mut hint = format!("{}: {:.3} {}", ratio.case, ratio.ratio, ratio.verdict);
        if let Some((low, high)) = ratio.interval {
            hint.push_str(&format!(", 95 % from {low:.3} to {high:.3}"));
        }
        let (from, to) = ratio.interval.unwrap_or((ratio.ratio, ratio.ratio));
        let interval = Mark::Bar(Bar {
            y,
            ends: (from.max(low), to.min(high)),
            height_px: INTERVAL_PX,
            colour: look.colour,
            hint: hint.clone(),
            label: format!("{:.3}", ratio.ratio),
        });
        let dot = Mark::Dot(Dot {
            name: String::new(),
            at: (ratio.ratio, y),
            look,
            ring: None,
            hint,
            label: String::new(),
        });
        [interval, dot]
    });
    let one = Mark::Upright(Upright {
        x: 1.0,
        label: String::new(),
    });
    Chart {
        heading: String::new(),
        x: Axis::new(title, Scale::log10(low, high).widened(0.03), Unit::Plain),
        y,
        marks: [band, one].into_iter().chain(marks).collect(),
    }
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

fn keys(rows: &[RatioRow]) -> Vec<Key> {
    let tones = [
        (Tone::Worse, "worse"),
        (Tone::Better, "better"),
        (Tone::Equal, "equal"),
        (Tone::Unclear, "unclear"),
    ];
    let has = |tone: Tone| rows.iter().any(|row| row.tone == tone);
    let key = |(tone, label): (Tone, &str)| Key {
        look: look(tone),
        mark: KeyMark::Marker,
        label: label.to_owned(),
    };
    tones.into_iter().filter(|it| has(it.0)).map(key).collect()
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
