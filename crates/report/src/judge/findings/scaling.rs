//! What more QPs, workers or bytes gain, seen from the best case: the cases that differ from it in one number alone.

use settings::Row;

use super::finding::{Finding, Shape};
use super::subject::Subject;
use crate::observe::Metric;
use crate::observe::setting_words::words;

/// Settings of which people ask first what more of them gains.
const FIRST: [&str; 4] = ["qps", "workers", "size", "tx-depth"];

/// Values from which on there is a curve to speak of.
const CURVE: usize = 3;

/// What more gains; `None` where no two cases differ in one number alone.
pub(super) fn scaling(
    subjects: &[Subject<'_>],
    rows: &[&'static Row],
    metric: Metric,
) -> Option<Finding> {
    let best = subjects.iter().max_by(by_median)?;
    let mut axes: Vec<&'static Row> = rows.to_vec();
    axes.sort_by_key(|row| {
        let place = FIRST.iter().position(|flag| *flag == row.flag);
        place.unwrap_or(FIRST.len())
    });
    let curves: Vec<_> = axes
        .into_iter()
        .filter_map(|axis| {
            let mut fixed = rows.to_vec();
            fixed.retain(|row| row.field != axis.field);
            Some((axis, points(subjects, best, axis, &fixed)?, fixed))
        })
        .collect();
    let (axis, points, fixed) =
        curves.iter().find(|(_, points, _)| points.len() >= CURVE).or(curves.first())?;
    let (shape, from, to) = shape(points)?;
    let [from, to] = [from, to].map(|point| (words(axis, point.settings()), point.figures.median));
    Some(Finding::Scaling {
        metric,
        shape,
        from,
        to,
        of: if fixed.is_empty() { String::new() } else { best.named(fixed) },
    })
}

pub(super) fn by_median(one: &&Subject<'_>, other: &&Subject<'_>) -> std::cmp::Ordering {
    one.figures.median.total_cmp(&other.figures.median)
}

/// The cases that are like `best` in all `fixed` settings, by their value on the axis; `None` where they are no curve.
fn points<'a, 's>(
    subjects: &'a [Subject<'s>],
    best: &Subject<'_>,
    axis: &Row,
    fixed: &[&Row],
) -> Option<Vec<&'a Subject<'s>>> {
    let mut points: Vec<(f64, &Subject<'_>)> = subjects
        .iter()
        .filter(|it| it.is_like(best, fixed))
        .map(|it| Some((axis.number(it.settings())?, it)))
        .collect::<Option<_>>()?;
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let are_apart = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (are_apart && points.len() > 1)
        .then(|| points.into_iter().map(|(_, subject)| subject).collect())
}

fn does_not_grow(one: &Subject<'_>, next: &Subject<'_>) -> bool {
    one.figures.median >= next.figures.median || one.figures.may_equal(&next.figures)
}

/// The shape of a curve, and the points that show it.
fn shape<'p, 'a>(points: &[&'p Subject<'a>]) -> Option<(Shape, &'p Subject<'a>, &'p Subject<'a>)> {
    let (most, highest) =
        points.iter().enumerate().max_by(|(_, one), (_, other)| by_median(one, other))?;
    let is_most: Vec<bool> =
        points.iter().map(|point| point.figures.may_equal(&highest.figures)).collect();
    let last = points.len() - 1;
    let enough = is_most.iter().position(|is_most| *is_most)?;
    let (shape, from, to) = if last == 1 {
        // Of two points nothing is said about where it stops.
        let shape = match (is_most[0], is_most[1]) {
            (true, true) => Shape::Level,
            (true, false) => Shape::Falls,
            (false, _) => Shape::Grows,
        };
        (shape, 0, last)
    } else if is_most.iter().all(|is_most| *is_most) {
        (Shape::Level, 0, last)
    } else if enough == last {
        (Shape::StillGrows, last - 1, last)
    } else if enough > 0 && is_most[enough..].iter().all(|is_most| *is_most) {
        (Shape::GrowsUntil, enough, last)
    } else if !is_most[last]
        && points[most..].windows(2).all(|pair| does_not_grow(pair[0], pair[1]))
    {
        (Shape::HighestThenFalls, most, last)
    } else {
        (Shape::Highest, most, last)
    };
    Some((shape, points[from], points[to]))
}
