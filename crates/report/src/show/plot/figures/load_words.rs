//! Loads in words and rows: the unit of an axis, what a search came to, and the tables beside the figure. It must not
//! know how lines are drawn.

use super::curves::{number_column, text_column};
use super::load_lines::{LoadLine, LoadPoint};
use crate::observe::{Metric, Spread};
use crate::results::model::{LatencyLimit, LoadSearch, SearchEnd};
use crate::show::plot::draw::number;
use crate::show::plot::figure::{Cell, Table};

/// From this mean size on a load is told in bits.
pub(super) const LARGE_BYTES: f64 = 8_192.0;

/// How loads are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadUnit {
    pub(super) name: &'static str,
    /// The same with what it is.
    pub(super) words: &'static str,
    /// How many of it one message a second is.
    pub(super) of_message: f64,
}

impl LoadUnit {
    /// For messages of that size, of which there are at most so many a second.
    pub(super) fn of(mean_bytes: f64, most_per_second: f64) -> LoadUnit {
        if mean_bytes >= LARGE_BYTES {
            LoadUnit {
                name: "Gb/s",
                words: "Gb/s (10⁹ bits of payload a second)",
                of_message: mean_bytes * 8.0 / 1e9,
            }
        } else if most_per_second >= 1e6 {
            LoadUnit {
                name: "Mmsg/s",
                words: "Mmsg/s (10⁶ messages a second)",
                of_message: 1e-6,
            }
        } else {
            LoadUnit {
                name: "kmsg/s",
                words: "kmsg/s (10³ messages a second)",
                of_message: 1e-3,
            }
        }
    }

    /// `1.23 Mmsg/s`.
    pub(super) fn per_second(self, per_second: f64) -> String {
        let figure = number::short(per_second * self.of_message);
        format!("{figure}\u{a0}{}", self.name)
    }
}

/// `p99 < 20 µs`.
pub(super) fn limit_words(limit: &LatencyLimit) -> String {
    let unit = number::time_unit(limit.below_ns as f64);
    let time = limit.below_ns as f64 / unit.ns;
    format!("p{} < {time} {}", limit.percentile, unit.name).replace(' ', "\u{a0}")
}

/// What was searched for: `p99 < 20 µs`, or `knee 3 (p99 < 12 µs)`.
pub(super) fn asked_words(search: &LoadSearch) -> String {
    let limits: Vec<String> = search.limits.iter().map(limit_words).collect();
    let limits = limits.join(", ");
    match (search.reference_p99_ns.is_some(), limits.is_empty()) {
        (true, false) => format!("{} ({limits})", search.asked),
        (false, false) => limits,
        (_, true) => search.asked.clone(),
    }
}

/// What came of a search, in a few words.
pub(super) fn outcome_words(search: &LoadSearch, unit: LoadUnit) -> String {
    let told = |load: Option<f64>| load.map(|load| unit.per_second(load));
    let (lower, upper) = (told(search.lower_per_second), told(search.upper_per_second));
    let between = match (&lower, &upper) {
        (Some(_), Some(upper)) => {
            let lower = search.lower_per_second.unwrap_or_default() * unit.of_message;
            format!("{} to {upper}", number::short(lower))
        }
        (Some(lower), None) => format!("{lower} or more"),
        (None, Some(upper)) => format!("less than {upper}"),
        (None, None) => "not known".to_owned(),
    };
    match search.end {
        SearchEnd::Found => between,
        SearchEnd::NoneKeeps => "no load keeps it".to_owned(),
        SearchEnd::AllKeep => match lower {
            Some(most) => format!("all loads keep it, up to {most}"),
            None => "all loads keep it".to_owned(),
        },
        SearchEnd::ScheduleNotKept => match lower {
            Some(lower) => format!("{lower} or more; beyond, the schedule was not kept"),
            None => "not known: the schedule was not kept".to_owned(),
        },
        SearchEnd::TrialsSpent => format!("{between}; trials scattered too much to go on"),
        SearchEnd::TooFewMessages => format!("{between}; a trial has too few messages below"),
        SearchEnd::Stopped => format!("{between}; the search was stopped"),
    }
}

fn us(spread: Option<Spread>) -> Cell {
    spread.map_or(Cell::Missing, |spread| Cell::Number(spread.median / 1e3, 2))
}

fn loads(load: Option<f64>) -> Cell {
    load.map_or(Cell::Missing, |load| Cell::Number(load, 0))
}

fn verdict(point: &LoadPoint) -> Cell {
    let word = point.verdict.name();
    Cell::Text(match point.kept {
        kept if kept == 0 || kept == point.runs => word.to_owned(),
        kept => format!("{word} ({} of {} not kept)", point.runs - kept, point.runs),
    })
}

/// A row for each load, and for each closed loop.
pub(super) fn table(lines: &[LoadLine<'_>], of_chart: &str, mean_bytes: f64) -> Table {
    let mut columns = vec![
        text_column("Line"),
        text_column("Load"),
        number_column("Runs"),
    ];
    columns.extend(["offered (msg/s)", "achieved (msg/s)", "achieved (Gb/s)"].map(number_column));
    let percentiles = [Metric::P50Ns, Metric::P99Ns, Metric::P99_9Ns];
    columns.extend(percentiles.map(|metric| number_column(metric.column().0)));
    columns.push(number_column("lateness p99 (µs)"));
    columns.push(text_column("Schedule"));
    let achieved = |spread: Spread| {
        let gbit_per_s = spread.median * mean_bytes * 8.0 / 1e9;
        [Cell::Number(spread.median, 0), Cell::Number(gbit_per_s, 3)]
    };
    let mut rows = Vec::new();
    for line in lines {
        for point in &line.points {
            let mut row = vec![
                Cell::Text(format!("{of_chart}{}", line.name)),
                Cell::Text(point.asked.clone()),
                Cell::Number(point.runs as f64, 0),
                loads(point.offered.map(|offered| offered.median)),
            ];
            row.extend(achieved(point.achieved));
            row.extend(point.latency_ns.map(us));
            row.extend([us(point.lateness_p99_ns), verdict(point)]);
            rows.push(row);
        }
        if let Some(closed) = &line.closed {
            let mut row = vec![
                Cell::Text(format!("{of_chart}{}", line.name)),
                Cell::Text("closed loop".to_owned()),
                Cell::Number(closed.runs as f64, 0),
                Cell::Missing,
            ];
            row.extend(achieved(closed.achieved));
            row.extend(closed.latency_ns.map(us));
            row.extend([Cell::Missing, Cell::Missing]);
            rows.push(row);
        }
    }
    Table {
        caption: "Loads: medians of the runs that kept their schedule; latency is from the planned time, the closed \
                  loop’s from the post"
            .to_owned(),
        columns,
        rows,
    }
}

/// A row for each search, its line's name behind what tells its chart; `None` without one.
pub(super) fn searches(lines: &[LoadLine<'_>], of_chart: &str) -> Option<Table> {
    let of_line = |line: &LoadLine<'_>| -> Vec<Vec<Cell>> {
        let of = |search: &&LoadSearch| {
            let share = search
                .lower_per_second
                .map(|load| load / search.maximum_per_second);
            vec![
                Cell::Text(format!("{of_chart}{}", line.name)),
                Cell::Text(asked_words(search)),
                loads(search.lower_per_second),
                loads(search.upper_per_second),
                share.map_or(Cell::Missing, |share| Cell::Number(share * 100.0, 1)),
                Cell::Text(match &search.note {
                    Some(note) => format!("{}: {note}", search.end),
                    None => search.end.name().to_owned(),
                }),
                Cell::Number(search.trials.len() as f64, 0),
                Cell::Number(search.trial_seconds, 1),
            ]
        };
        line.searches.iter().map(of).collect()
    };
    let rows: Vec<_> = lines.iter().flat_map(of_line).collect();
    (!rows.is_empty()).then(|| Table {
        caption: "Searches for the highest load".to_owned(),
        columns: vec![
            text_column("Line"),
            text_column("Searched for"),
            number_column("kept up to (msg/s)"),
            number_column("broken from (msg/s)"),
            number_column("kept, of the closed loop (%)"),
            text_column("End"),
            number_column("Trials"),
            number_column("a trial (s)"),
        ],
        rows,
    })
}

/// The same for each trial; `None` without one.
pub(super) fn trials(lines: &[LoadLine<'_>], of_chart: &str) -> Option<Table> {
    let ns = |ns: Option<u64>| ns.map_or(Cell::Missing, |ns| Cell::Number(ns as f64 / 1e3, 2));
    let mut rows = Vec::new();
    for line in lines {
        for search in &line.searches {
            rows.extend(search.trials.iter().map(|trial| {
                vec![
                    Cell::Text(format!("{of_chart}{}", line.name)),
                    Cell::Text(search.asked.clone()),
                    Cell::Number(trial.asked_per_second, 0),
                    Cell::Number(trial.achieved_per_second, 0),
                    Cell::Number(trial.seconds, 2),
                    ns(trial.p50_ns),
                    ns(trial.p99_ns),
                    ns(trial.p99_9_ns),
                    ns(trial.lateness_p99_ns),
                    Cell::Text(trial.outcome.name().to_owned()),
                ]
            }));
        }
    }
    (!rows.is_empty()).then(|| Table {
        caption: "Trials of the searches, in the order in which they ran".to_owned(),
        columns: vec![
            text_column("Line"),
            text_column("Searched for"),
            number_column("offered (msg/s)"),
            number_column("achieved (msg/s)"),
            number_column("window (s)"),
            number_column("p50 (µs)"),
            number_column("p99 (µs)"),
            number_column("p99.9 (µs)"),
            number_column("lateness p99 (µs)"),
            text_column("Outcome"),
        ],
        rows,
    })
}
