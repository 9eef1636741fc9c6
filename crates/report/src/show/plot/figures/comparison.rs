//! Figure: ratios with their intervals, from a comparison of results or of what was measured in turns: one row a case,
//! the worst first, with the margin and the line at 1.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use results::{
    load::Loaded,
    model::{CaseComparison, Comparison, MetricComparison, Verdict, subject},
    text::short_path,
};

use crate::observe::Metric;
use crate::show::plot::{
    draw::{BETTER, GRID, INK, Key, KeyMark, MUTED, Marker, Scale, SeriesStyle, Unit, WORSE},
    figure::{Cell, Figure, Picture, Table},
    marks::{Axis, Band, Chart, Dot, Fill, Mark, Rule, Tile},
};

const MOST_ROWS: usize = 24;
/// Metrics of a comparison that are drawn: those with the most cases that changed.
const MOST_METRICS: usize = 3;
pub(super) const ROW_PX: f64 = 20.0;
/// Height of an interval; 1 is the whole row.
pub(super) const INTERVAL: f64 = 0.2;

/// A metric of all cases that have a ratio of it, the worst first.
struct Ratios<'a> {
    metric: Metric,
    /// What is in the denominator, and in the numerator, in a word or two.
    sides: [&'a str; 2],
    rows: Vec<Row<'a>>,
}

struct Row<'a> {
    /// Name of the case, and of the flow where it has several.
    name: String,
    case: &'a CaseComparison,
    figures: &'a MetricComparison,
    /// Above 0.
    ratio: f64,
}

/// One for each metric in which cases changed most, of the comparison and of what was measured in turns; what the other
/// metrics say is said below the first.
pub fn figures(results: &[Loaded], with_base: Option<&Comparison>) -> Vec<Figure> {
    let in_turns = in_turns(results);
    [(with_base, "base"), (in_turns.as_ref(), "in-turns")]
        .into_iter()
        .filter_map(|(comparison, of)| Some((comparison?, of)))
        .flat_map(|(comparison, of)| {
            let (drawn, others) = telling(of_metrics(comparison));
            let mut notes: Vec<String> =
                others.iter().map(|it| format!("{}: {}", it.metric.title(), it.counts())).collect();
            drawn.iter().map(|it| it.figure(of, std::mem::take(&mut notes))).collect::<Vec<_>>()
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

/// One for each metric that some case has on both sides.
fn of_metrics(comparison: &Comparison) -> Vec<Ratios<'_>> {
    let sides = [&comparison.base, &comparison.new].map(|side| short_path(&side.name));
    let mut of_metrics: BTreeMap<Metric, Vec<Row<'_>>> = BTreeMap::new();
    for case in &comparison.cases {
        for figures in &case.metrics {
            let name = if figures.metric.is_of_search() {
                format!("{}, {}", case.id, figures.flow)
            } else {
                subject(&case.config, &case.id, &figures.flow)
            };
            let ratio = figures.ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
            let row = ratio.map(|ratio| Row { name, case, figures, ratio });
            of_metrics.entry(figures.metric).or_default().extend(row);
        }
    }
    of_metrics.retain(|_, rows| !rows.is_empty());
    let ratios = of_metrics.into_iter().map(|(metric, mut rows)| {
        rows.sort_by(|one, other| {
            let order = one.ratio.total_cmp(&other.ratio);
            if metric.higher_is_better() { order } else { order.reverse() }
        });
        Ratios { metric, sides, rows }
    });
    ratios.collect()
}

/// The metrics that are drawn, in their order, and those that are said in a note.
fn telling(mut ratios: Vec<Ratios<'_>>) -> (Vec<Ratios<'_>>, Vec<Ratios<'_>>) {
    ratios.sort_by_key(|it| Reverse(it.changed()));
    let did_change = ratios.iter().filter(|it| it.changed() > 0).count();
    let mut others = ratios.split_off(did_change.clamp(1, MOST_METRICS).min(ratios.len()));
    for part in [&mut ratios, &mut others] {
        part.sort_by_key(|it| it.metric);
    }
    (ratios, others)
}

/// Verdicts with their words in a legend.
const VERDICTS: [(Verdict, &str); 4] = [
    (Verdict::Slower, "worse"),
    (Verdict::Faster, "better"),
    (Verdict::Equal, "equal"),
    (Verdict::Unclear, "unclear"),
];

pub(super) fn style(verdict: Verdict) -> SeriesStyle {
    let (colour, marker, hollow) = match verdict {
        Verdict::Faster => (BETTER, Marker::Up, false),
        Verdict::Slower => (WORSE, Marker::Down, false),
        Verdict::Equal => (INK, Marker::Circle, false),
        _ => (MUTED, Marker::Diamond, true),
    };
    SeriesStyle { colour, marker, hollow, ..SeriesStyle::default() }
}

impl Row<'_> {
    /// All that says neither is unclear.
    fn verdict(&self) -> Verdict {
        match self.figures.verdict {
            Verdict::NoVerdict | Verdict::NotComparable => Verdict::Unclear,
            verdict => verdict,
        }
    }

    fn interval(&self) -> Option<(f64, f64)> {
        self.figures.low.zip(self.figures.high)
    }
}

impl Ratios<'_> {
    fn with(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.verdict() == verdict).count()
    }

    /// How many cases got better or worse.
    fn changed(&self) -> usize {
        self.with(Verdict::Slower) + self.with(Verdict::Faster)
    }

    fn counts(&self) -> String {
        let [worse, better, equal, unclear] = VERDICTS.map(|(verdict, _)| self.with(verdict));
        let count = self.rows.len();
        format!(
            "of {count} cases {better} are better, {worse} worse, {equal} equal and {unclear} unclear."
        )
    }

    fn margin(&self) -> f64 {
        self.rows.first().map_or(0.0, |row| row.figures.margin)
    }

    fn figure(&self, id: &str, notes: Vec<String>) -> Figure {
        let flows = self.rows.iter().filter_map(|row| row.case.config.flows.first());
        let devices: BTreeSet<&str> = flows.filter_map(|it| it.from_device.as_deref()).collect();
        let on = match devices.len() {
            0 => String::new(),
            1..=3 => format!(" on {}", Vec::from_iter(devices).join(", ")),
            many => format!(" on {many} devices"),
        };
        let rows = &self.rows[..self.rows.len().min(MOST_ROWS)];
        let undrawn = self.rows.len() - rows.len();
        let more = (undrawn > 0).then(|| format!("{undrawn} more are in the table."));
        let keys = VERDICTS
            .into_iter()
            .filter(|(verdict, _)| rows.iter().any(|row| row.verdict() == *verdict))
            .map(|(verdict, words)| Key::new(KeyMark::Marker, style(verdict), words));
        let picture = Picture {
            subtitle: format!(
                "{} cases{on}. Medians of the runs that count with 95 % intervals; grey: ±{:.0} %, too small to matter",
                self.rows.len(),
                self.margin() * 100.0
            ),
            keys: keys.collect(),
            charts: vec![self.chart(rows)],
            notes: more.into_iter().chain(notes).collect(),
            tables: vec![self.table()],
        };
        let [base, new] = self.sides;
        picture.named(
            format!("comparison-{id}-{}", self.metric.short_name().replace('.', "-")),
            format!("{}: ratio of {new} to {base}", self.metric.title()),
            format!("Changes: {}", self.counts()),
        )
    }

    /// What of the axis is shown: all ratios and the margin, and intervals as far as they do not dwarf them.
    fn ends(&self, rows: &[Row<'_>], margin: (f64, f64)) -> (f64, f64) {
        let ratios = rows.iter().map(|row| row.ratio).chain([margin.0 / 1.02, margin.1 * 1.02]);
        let least = ratios.clone().fold(f64::INFINITY, f64::min);
        let most = ratios.fold(0.0, f64::max);
        let span = (most / least).sqrt().max(1.1);
        let ends = rows.iter().filter_map(Row::interval);
        let low = ends.clone().map(|it| it.0).fold(least, f64::min).max(least / span);
        (low, ends.map(|it| it.1).fold(most, f64::max).min(most * span))
    }

    fn chart(&self, rows: &[Row<'_>]) -> Chart {
        let margin = (1.0 - self.margin(), 1.0 + self.margin());
        let (low, high) = self.ends(rows, margin);
        let (mut intervals, mut dots) = (Vec::new(), Vec::new());
        for (y, row) in (0..).map(|row| -f64::from(row)).zip(rows) {
            let (ratio, style) = (row.ratio, style(row.verdict()));
            let (from, to) = row.interval().unwrap_or((ratio, ratio));
            let words = match row.interval() {
                Some(_) => format!(", 95 % from {from:.3} to {to:.3}"),
                None => String::new(),
            };
            let hint = format!("{}: {ratio:.3} {}{words}", row.name, row.figures.verdict);
            intervals.push(Tile {
                height: INTERVAL,
                behind: format!("{ratio:.3}"),
                ..Tile::new(y, (from.max(low), to.min(high)), Fill::Plain(style.colour), &*hint)
            });
            dots.push(Mark::Dot(Dot::new("", (ratio, y), style, hint)));
        }
        let small = "too small to matter";
        let grey = SeriesStyle { colour: GRID, ..style(Verdict::Equal) };
        let band = Mark::Band(Band::new(small, grey, 0.4, margin, small));
        let better =
            if self.metric.higher_is_better() { "right is better" } else { "left is better" };
        let title = format!("{} ÷ {} (log): {better}", self.sides[1], self.sides[0]);
        let x = Axis::new(title, Scale::log10(low, high).widened(0.03), Unit::Plain);
        let y = Axis::rows("", rows.iter().map(|row| row.name.clone()));
        let below = [band, Mark::Rule(Rule::upright(1.0)), Mark::Tiles(intervals)];
        Chart::of_rows(ROW_PX, x, y, below.into_iter().chain(dots).collect())
    }

    fn table(&self) -> Table {
        let unit = match self.metric.unit() {
            "" => String::new(),
            unit => format!(" ({unit})"),
        };
        let [base, new] = self.sides;
        let [of_base, of_new] = self.sides.map(|side| format!("median, {side}{unit}"));
        Table::from_rows(
            format!("{}: {new} over {base}, the worst first", self.metric.title()),
            &self.rows,
            &[
                ("case", &|row| Cell::text(&row.name)),
                (&of_base, &|row| Cell::number(row.figures.base_median, 4)),
                (&of_new, &|row| Cell::number(row.figures.new_median, 4)),
                ("ratio", &|row| Cell::number(row.ratio, 4)),
                ("95 % from", &|row| Cell::number(row.figures.low, 4)),
                ("to", &|row| Cell::number(row.figures.high, 4)),
                ("verdict", &|row| Cell::text(row.figures.verdict.name())),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use results::sample::{Judged, beside, cases, file, loaded};

    use super::*;

    fn turns(metric: Metric, measured: &[[f64; 2]]) -> Comparison {
        let case = |(index, medians): (usize, &[f64; 2])| {
            let judged: Judged = (metric, *medians, [0.9, 1.1], Verdict::Slower);
            let sides = ["perftest", "rocebench"];
            let compared = results::sample::in_turns(&format!("case-{index}"), sides, 8, &[judged]);
            results::model::CaseResult { comparison: Some(compared), ..Default::default() }
        };
        in_turns(&[file(measured.iter().enumerate().map(case).collect())]).unwrap()
    }

    #[test]
    fn a_victim_has_what_is_left_of_it_beside_each_attacker() {
        let results = [loaded(cases(beside())), loaded(cases(Vec::new()))];
        let comparison = in_turns(&results).unwrap();
        let ratios = of_metrics(&comparison);
        let found = ratios.iter().map(|it| {
            let rows = it.rows.iter().map(|row| format!("{} {:.2}", row.name, row.ratio));
            (it.metric, rows.collect::<Vec<_>>().join(", "))
        });
        let expected = [
            (Metric::GbitPerS, "prey+bandwidth 0.50, prey+packets 0.99"),
            (Metric::P99Ns, "prey+bandwidth 1.01, prey+packets 1.01"),
        ];
        assert!(found.eq(expected.map(|(metric, rows)| (metric, rows.to_owned()))));
        let worst = &ratios[0].rows[0];
        let (low, high) = worst.interval().unwrap();
        assert!(low < worst.ratio && worst.ratio < high && worst.verdict() == Verdict::Slower);
    }

    #[test]
    fn the_worst_comes_first_whatever_is_better() {
        for (metric, first) in [(Metric::GbitPerS, 0.8), (Metric::P50Ns, 1.2)] {
            let comparison = turns(metric, &[[1.0, 1.2], [0.0, 1.0], [1.0, 0.8], [1.0, f64::NAN]]);
            let ratios = of_metrics(&comparison);
            let rows = ratios[0].rows.iter().map(|row| row.ratio);
            assert_eq!((rows.clone().count(), rows.clone().next()), (2, Some(first)), "{metric:?}");
        }
    }
}
