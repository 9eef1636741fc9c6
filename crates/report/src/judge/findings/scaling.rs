//! What more QPs, workers or bytes gain, seen from the best case: the cases that differ from it in one number alone.

use settings::Row;

use super::finding::{Finding, Shape};
use super::noise::Figures;
use super::subject::{Subject, named, rows_of};
use crate::observe::Metric;
use crate::observe::setting_words::words;

/// Settings of which people ask first what more of them gains.
const FIRST: [&str; 4] = ["qps", "workers", "size", "tx-depth"];

/// Values from which on there is a curve to speak of.
const CURVE: usize = 3;

/// Figures of a case at a value of the setting.
struct Point<'a> {
    subject: &'a Subject<'a>,
    value: f64,
    figures: Figures,
}

/// What more gains; `None` where no two cases differ in one number alone.
pub(super) fn scaling(subjects: &[Subject<'_>], metric: Metric) -> Option<Finding> {
    let rows = rows_of(subjects);
    let best = best(subjects, metric)?;
    let place = |row: &Row| {
        FIRST
            .iter()
            .position(|flag| *flag == row.flag)
            .unwrap_or(FIRST.len())
    };
    let mut axes: Vec<&'static Row> = rows.clone();
    axes.sort_by_key(|row| place(row));
    let curves = axes.into_iter().filter_map(|axis| {
        let fixed: Vec<&'static Row> = rows
            .iter()
            .copied()
            .filter(|row| row.field != axis.field)
            .collect();
        Some((axis, points(subjects, best, axis, &fixed, metric)?, fixed))
    });
    let curves: Vec<_> = curves.collect();
    let (axis, points, fixed) = curves
        .iter()
        .find(|(_, points, _)| points.len() >= CURVE)
        .or(curves.first())?;
    let (shape, from, to) = shape(points)?;
    let at = |point: &Point<'_>| {
        let words = words(axis, point.subject.settings());
        (words, point.figures.median)
    };
    Some(Finding::Scaling {
        metric,
        shape,
        from: at(from),
        to: at(to),
        of: match fixed.is_empty() {
            true => String::new(),
            false => named(best, fixed),
        },
    })
}

fn best<'a>(subjects: &'a [Subject<'a>], metric: Metric) -> Option<&'a Subject<'a>> {
    let figures = subjects
        .iter()
        .filter_map(|it| Some((it, it.figures(metric)?.median)));
    let best = figures.max_by(|(_, one), (_, other)| one.total_cmp(other));
    best.map(|(subject, _)| subject)
}

/// The cases that are like `best` in all `fixed` settings, by their value on the axis; `None` where they are no curve.
fn points<'a>(
    subjects: &'a [Subject<'a>],
    best: &Subject<'_>,
    axis: &Row,
    fixed: &[&Row],
    metric: Metric,
) -> Option<Vec<Point<'a>>> {
    let is_alike = |subject: &&Subject<'_>| {
        let mut fixed = fixed.iter();
        fixed.all(|row| row.is_equal(subject.settings(), best.settings()))
    };
    let mut points = Vec::new();
    for subject in subjects.iter().filter(is_alike) {
        let value = axis.number(subject.settings())?;
        if let Some(figures) = subject.figures(metric) {
            points.push(Point {
                subject,
                value,
                figures,
            });
        }
    }
    points.sort_by(|one, other| one.value.total_cmp(&other.value));
    let are_apart = points.windows(2).all(|pair| pair[0].value < pair[1].value);
    (are_apart && points.len() > 1).then_some(points)
}

/// The shape of a curve, and the points that tell it.
fn shape<'p, 'a>(points: &'p [Point<'a>]) -> Option<(Shape, &'p Point<'a>, &'p Point<'a>)> {
    let by_median =
        |one: &&Point<'_>, other: &&Point<'_>| one.figures.median.total_cmp(&other.figures.median);
    let most = points.iter().max_by(by_median)?;
    let is_most = |point: &Point<'_>| point.figures.may_equal(&most.figures);
    let (first, last) = (points.first()?, points.last()?);
    let enough = points.iter().find(|point| is_most(point))?;
    let [_, .., before, _] = points else {
        // Of two points nothing is said about where it stops.
        let shape = match (is_most(first), is_most(last)) {
            (true, true) => Shape::Level,
            (true, false) => Shape::Falls,
            (false, _) => Shape::Grows,
        };
        return Some((shape, first, last));
    };
    let mut from_enough = points.iter().skip_while(|point| !is_most(point));
    let falls = |pair: &[Point<'_>]| match pair {
        [one, next] => {
            one.figures.median >= next.figures.median || one.figures.may_equal(&next.figures)
        }
        _ => true,
    };
    let mut after_most = points
        .windows(2)
        .skip_while(|pair| !pair.first().is_some_and(|point| std::ptr::eq(point, most)));
    Some(if points.iter().all(is_most) {
        (Shape::Level, first, last)
    } else if std::ptr::eq(enough, last) {
        (Shape::StillGrows, before, last)
    } else if !std::ptr::eq(enough, first) && from_enough.all(is_most) {
        (Shape::GrowsUntil, enough, last)
    } else if !is_most(last) && after_most.all(falls) {
        (Shape::HighestThenFalls, most, last)
    } else {
        (Shape::Highest, most, last)
    })
}
