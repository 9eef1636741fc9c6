//! Lines of medians with the runs' spread, and their rows in a table. It must not know which figures of a run
//! are drawn.

use super::groups::{Group, Groups, Line};
use super::sample::Sample;
use crate::observe::Spread;
use crate::observe::standing::counted_runs;
use crate::show::plot::draw::palette::Look;
use crate::show::plot::draw::{Point, Series};
use crate::show::plot::figure::{Cell, Column};

/// A point at `x`; one run alone has no interval.
pub(super) fn point(spread: Option<Spread>, x: f64) -> Point {
    Point {
        x,
        y: spread.map(|spread| spread.median),
        interval: spread
            .filter(|spread| spread.count > 1)
            .map(|spread| (spread.low, spread.high)),
    }
}

/// Median, smallest and largest as cells.
pub(super) fn cells(spread: Option<Spread>, factor: f64, digits: usize) -> [Cell; 3] {
    let cell = |value: f64| Cell::Number(value * factor, digits);
    match spread {
        Some(spread) => [spread.median, spread.low, spread.high].map(cell),
        None => [Cell::Missing, Cell::Missing, Cell::Missing],
    }
}

/// A line over all places of the chart, with a gap where it has no case or no run that counts.
pub(super) fn series(
    name: &str,
    look: Look,
    line: &Line<'_>,
    places: &[f64],
    value: &dyn Fn(&Sample<'_>) -> Option<Spread>,
) -> Series {
    let at = |&place: &f64| {
        let found = line.points.binary_search_by(|(x, _)| x.total_cmp(&place));
        let sample = found.ok().and_then(|index| line.points.get(index));
        point(sample.and_then(|(_, sample)| value(sample)), place)
    };
    Series {
        name: name.to_owned(),
        look,
        points: places.iter().map(at).collect(),
        markers: true,
    }
}

/// The series of all lines of a chart.
pub(super) fn all_series(
    groups: &Groups<'_>,
    group: &Group<'_>,
    value: &dyn Fn(&Sample<'_>) -> Option<Spread>,
) -> Vec<Series> {
    let places = group.places();
    let of = |line| series(&groups.name(line), groups.look(line), line, &places, value);
    group.lines.iter().map(of).collect()
}

/// The largest figure of some series, intervals included; `None` without one.
pub(super) fn largest(series: &[Series]) -> Option<f64> {
    let points = series.iter().flat_map(|series| &series.points);
    points
        .filter_map(|point| Some(point.interval.map_or(point.y?, |(_, high)| high)))
        .max_by(f64::total_cmp)
}

/// Whether some line has figures at two places.
pub(super) fn is_a_curve(series: &[Series]) -> bool {
    let figures = |series: &Series| {
        series
            .points
            .iter()
            .filter(|point| point.y.is_some())
            .count()
    };
    series.iter().any(|series| figures(series) > 1)
}

pub(super) fn text_column(name: &str) -> Column {
    Column {
        name: name.to_owned(),
        numeric: false,
    }
}

pub(super) fn number_column(name: impl Into<String>) -> Column {
    Column {
        name: name.into(),
        numeric: true,
    }
}

/// Runs that count, of all, as a cell.
pub(super) fn runs_cell(sample: &Sample<'_>) -> Cell {
    let counted: usize = sample
        .launches()
        .map(|flow| counted_runs(flow).count())
        .sum();
    let all: usize = sample.launches().map(|flow| flow.case.runs.len()).sum();
    Cell::Text(if counted == all {
        all.to_string()
    } else {
        format!("{counted} of {all}")
    })
}
