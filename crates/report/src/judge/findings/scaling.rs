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
    let at = |point: &Subject<'_>| (words(axis, point.settings()), point.figures.median);
    Some(Finding::Scaling {
        metric,
        shape,
        from: at(from),
        to: at(to),
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
    let points: Vec<&Subject<'_>> = points.into_iter().map(|(_, it)| it).collect();
    (are_apart && points.len() > 1).then_some(points)
}

/// The shape of a curve, and the points that show it.
fn shape<'p, 'a>(points: &[&'p Subject<'a>]) -> Option<(Shape, &'p Subject<'a>, &'p Subject<'a>)> {
    let median = |place: usize| points[place].figures.median;
    let most = (0..points.len()).max_by(|one, other| median(*one).total_cmp(&median(*other)))?;
    let is_most = |place: usize| points[place].figures.may_equal(&points[most].figures);
    let last = points.len() - 1;
    let enough = (0..=last).find(|place| is_most(*place))?;
    let falls = |place: usize| {
        let [one, next] = [place, place + 1].map(|place| &points[place].figures);
        one.median >= next.median || one.may_equal(next)
    };
    let (shape, from, to) = if last == 1 {
        // Of two points nothing is said about where it stops.
        let shape = match (is_most(0), is_most(1)) {
            (true, true) => Shape::Level,
            (true, false) => Shape::Falls,
            (false, _) => Shape::Grows,
        };
        (shape, 0, last)
    } else if (0..=last).all(is_most) {
        (Shape::Level, 0, last)
    } else if enough == last {
        (Shape::StillGrows, last - 1, last)
    } else if enough > 0 && (enough..=last).all(is_most) {
        (Shape::GrowsUntil, enough, last)
    } else if !is_most(last) && (most..last).all(falls) {
        (Shape::HighestThenFalls, most, last)
    } else {
        (Shape::Highest, most, last)
    };
    Some((shape, points[from], points[to]))
}
