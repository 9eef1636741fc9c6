//! Figure: ratios with their intervals, from a comparison of results or of what was measured in turns: one row a case, the worst first, with the margin and the line at 1.

use std::collections::{BTreeMap, BTreeSet};

use results::{
    load::Loaded,
    model::{CaseConfig, Comparison, Verdict, subject},
    text::short_path,
};

use crate::observe::Metric;
use crate::show::plot::{
    draw::{
        Key, KeyMark, Scale, Unit,
        palette::{BETTER, GRID, INK, MUTED, Marker, SeriesStyle, WORSE},
    },
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Band, Chart, Dot, Fill, Mark, Rule, Tile},
};

const MOST_ROWS: usize = 24;
/// Metrics of a comparison that are drawn: those with the most cases that changed.
const MOST_METRICS: usize = 3;
const ROW_PX: f64 = 20.0;
/// Height of an interval; 1 is the whole row.
const INTERVAL: f64 = 0.2;

/// One for each metric in which cases changed most, of the comparison and of what was measured in turns; what the other
/// metrics say is said below the first.
pub fn figures(results: &[Loaded], comparison: Option<&Comparison>) -> Vec<Figure> {
    let in_turns = in_turns(results);
    let of_base = comparison.into_iter().map(|comparison| (comparison, "base"));
    of_base
        .chain(in_turns.as_ref().map(|comparison| (comparison, "in-turns")))
        .flat_map(|(comparison, of)| {
            let (drawn, others) = telling(of_comparison(comparison));
            let mut notes: Vec<String> =
                others.iter().map(|it| format!("{}: {}", it.metric.title(), counts(it))).collect();
            drawn.iter().map(|it| figure(it, of, std::mem::take(&mut notes))).collect::<Vec<_>>()
        })
        .collect()
}

/// What all files have that was measured in turns, together.
fn in_turns(results: &[Loaded]) -> Option<Comparison> {
    let of_files = results.iter().filter_map(|loaded| Comparison::in_turns(&loaded.result));
    of_files.reduce(|mut first, other| {
        first.cases.extend(other.cases);
        first
    })
}

/// The metrics that are drawn, in their order, and those that are said in a note.
fn telling(ratios: Vec<Ratios>) -> (Vec<Ratios>, Vec<Ratios>) {
    let changed: Vec<usize> = ratios.iter().map(changed).collect();
    let mut order: Vec<usize> = (0..ratios.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(changed[*at]));
    let did_change = changed.iter().filter(|count| **count > 0).count();
    order.truncate(did_change.clamp(1, MOST_METRICS));
    let (mut drawn, mut others) = (Vec::new(), Vec::new());
    for (at, of_metric) in ratios.into_iter().enumerate() {
        if order.contains(&at) {
            drawn.push(of_metric);
        } else {
            others.push(of_metric);
        }
    }
    (drawn, others)
}

/// How many cases got better or worse.
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
    let intervals_of_rows = rows.iter().filter_map(|row| row.interval);
    let lowest = intervals_of_rows.clone().map(|it| it.0).fold(least, f64::min);
    let highest = intervals_of_rows.map(|it| it.1).fold(most, f64::max);
    let (low, high) = (lowest.max(least / span), highest.min(most * span));
    let better =
        if ratios.metric.higher_is_better() { "right is better" } else { "left is better" };
    let title = format!("{} ÷ {} (log): {better}", ratios.sides[1], ratios.sides[0]);
    let band = Mark::Band(Band {
        name: "too small to matter",
        style: SeriesStyle { colour: GRID, ..style(Tone::Equal) },
        transparency: 0.4,
        ends: margin,
        hint: "too small to matter".to_owned(),
    });
    let (mut intervals, mut dots) = (Vec::new(), Vec::new());
    for (row, it) in rows.iter().enumerate() {
        let (y, style) = (-(row as f64), style(it.tone));
        let mut hint = format!("{}: {:.3} {}", it.case, it.ratio, it.verdict);
        if let Some((from, to)) = it.interval {
            hint.push_str(&format!(", 95 % from {from:.3} to {to:.3}"));
        }
        let (from, to) = it.interval.unwrap_or((it.ratio, it.ratio));
        let ends = (from.max(low), to.min(high));
        intervals.push(Tile {
            height: INTERVAL,
            behind: format!("{:.3}", it.ratio),
            ..Tile::new(y, ends, Fill::Plain(style.colour), &*hint)
        });
        dots.push(Mark::Dot(Dot { at: (it.ratio, y), style, hint, ..Dot::default() }));
    }
    let x = Axis::new(title, Scale::log10(low, high).widened(0.03), Unit::Plain);
    let y = Axis::rows("", rows.iter().map(|row| row.case.clone()));
    let below = [band, Mark::Rule(Rule::upright(1.0)), Mark::Tiles(intervals)];
    Chart::of_rows(ROW_PX, x, y, below.into_iter().chain(dots).collect())
}

fn style(tone: Tone) -> SeriesStyle {
    let (colour, marker, hollow) = match tone {
        Tone::Better => (BETTER, Marker::Up, false),
        Tone::Worse => (WORSE, Marker::Down, false),
        Tone::Equal => (INK, Marker::Circle, false),
        Tone::Unclear => (MUTED, Marker::Diamond, true),
    };
    SeriesStyle { colour, marker, hollow, ..SeriesStyle::default() }
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
        .map(|(tone, label)| Key::new(KeyMark::Marker, style(tone), label))
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
        let [of_base, of_new] = row.medians.map(Some);
        let figures = [of_base, of_new, Some(row.ratio), low, high].map(|it| Cell::number(it, 4));
        let ends = [&row.case, &row.verdict].map(Cell::text);
        let [case, verdict] = ends;
        [case].into_iter().chain(figures).chain([verdict]).collect()
    });
    let title = ratios.metric.title();
    Table::new(format!("{title}: {new} over {base}, the worst first"), names, rows)
}

#[derive(Clone, Debug, PartialEq)]
struct Ratios {
    metric: Metric,
    /// What does not matter: 0.03 is 3 %.
    margin: f64,
    /// What is in the denominator, and in the numerator, in a word or two.
    sides: [String; 2],
    /// Devices that were measured, at the nodes that post the first flows.
    devices: BTreeSet<String>,
    rows: Vec<RatioRow>,
}

#[derive(Clone, Debug, PartialEq)]
struct RatioRow {
    /// Name of the case, and of the flow where it has several.
    case: String,
    /// Medians of the base and of the new side.
    medians: [f64; 2],
    ratio: f64,
    /// The 95 % interval; `None` with too few runs.
    interval: Option<(f64, f64)>,
    verdict: String,
    tone: Tone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Better,
    Worse,
    Equal,
    Unclear,
}

type Found<'a> = (Metric, f64, &'a CaseConfig, RatioRow);

/// One for each metric that some case has on both sides.
fn of_comparison(comparison: &Comparison) -> Vec<Ratios> {
    let found = comparison.cases.iter().flat_map(|case| {
        case.metrics.iter().filter_map(move |figures| {
            let row = RatioRow {
                case: if figures.metric.is_of_search() {
                    format!("{}, {}", case.id, figures.flow)
                } else {
                    subject(&case.config, &case.id, &figures.flow)
                },
                medians: [figures.base_median?, figures.new_median?],
                ratio: figures.ratio?,
                interval: figures.low.zip(figures.high),
                verdict: figures.verdict.name().to_owned(),
                tone: match figures.verdict {
                    Verdict::Faster => Tone::Better,
                    Verdict::Slower => Tone::Worse,
                    Verdict::Equal => Tone::Equal,
                    Verdict::Unclear | Verdict::NoVerdict | Verdict::NotComparable => Tone::Unclear,
                },
            };
            Some((figures.metric, figures.margin, &case.config, row))
        })
    });
    let sides = [&comparison.base, &comparison.new].map(|side| short_path(&side.name));
    by_metric(found, sides)
}

fn by_metric<'a>(found: impl Iterator<Item = Found<'a>>, sides: [&str; 2]) -> Vec<Ratios> {
    let mut of_metrics: BTreeMap<Metric, Ratios> = BTreeMap::new();
    for (metric, margin, config, row) in found {
        if !(row.ratio.is_finite() && row.ratio > 0.0) {
            continue;
        }
        let ratios = of_metrics.entry(metric).or_insert_with(|| Ratios {
            metric,
            margin,
            sides: sides.map(str::to_owned),
            devices: BTreeSet::new(),
            rows: Vec::new(),
        });
        let first = config.flows.first();
        let device = first.and_then(|flow| flow.from_device.clone());
        ratios.devices.extend(device);
        ratios.rows.push(row);
    }
    of_metrics
        .into_values()
        .map(|mut ratios| {
            let is_higher = ratios.metric.higher_is_better();
            ratios.rows.sort_by(|one, other| {
                let order = one.ratio.total_cmp(&other.ratio);
                if is_higher { order } else { order.reverse() }
            });
            ratios
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use results::sample::{Judged, beside, cases, file, loaded};

    use super::*;

    fn turns(metric: Metric, measured: &[[f64; 2]]) -> Vec<Ratios> {
        let case = |(index, medians): (usize, &[f64; 2])| {
            let judged: Judged = (metric, *medians, [0.9, 1.1], Verdict::Slower);
            let sides = ["perftest", "rocebench"];
            let compared = results::sample::in_turns(&format!("case-{index}"), sides, 8, &[judged]);
            results::model::CaseResult { comparison: Some(compared), ..Default::default() }
        };
        let results = [file(measured.iter().enumerate().map(case).collect())];
        of_comparison(&in_turns(&results).unwrap())
    }

    #[test]
    fn a_victim_has_what_is_left_of_it_beside_each_attacker() {
        let results = [loaded(cases(beside())), loaded(cases(Vec::new()))];
        let ratios = of_comparison(&in_turns(&results).unwrap());
        let found = ratios.iter().map(|it| {
            let rows = it.rows.iter().map(|row| format!("{} {:.2}", row.case, row.ratio));
            (it.metric, rows.collect::<Vec<_>>().join(", "))
        });
        let expected = [
            (Metric::GbitPerS, "prey+bandwidth 0.50, prey+packets 0.99"),
            (Metric::P99Ns, "prey+bandwidth 1.01, prey+packets 1.01"),
        ];
        assert!(found.eq(expected.map(|(metric, rows)| (metric, rows.to_owned()))));
        let worst = &ratios[0].rows[0];
        let (low, high) = worst.interval.unwrap();
        assert!(low < worst.ratio && worst.ratio < high && worst.tone == Tone::Worse);
    }

    #[test]
    fn the_worst_comes_first_whatever_is_better() {
        let first = |metric| {
            let ratios = turns(metric, &[[1.0, 1.2], [0.0, 1.0], [1.0, 0.8], [1.0, f64::NAN]]);
            assert_eq!(ratios[0].rows.len(), 2);
            assert_eq!(ratios[0].rows[0].tone, Tone::Worse);
            ratios[0].rows[0].ratio
        };
        assert_eq!(first(Metric::GbitPerS), 0.8);
        assert_eq!(first(Metric::P50Ns), 1.2);
    }
}
