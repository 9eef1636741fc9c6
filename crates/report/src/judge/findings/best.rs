//! Which cases are best, as far as runs tell cases apart.

use settings::Row;

use super::finding::Finding;
use super::noise::Figures;
use super::subject::{Subject, named, rows_of};
use crate::observe::Metric;
use crate::observe::setting_words::words;

/// Cases that are named one by one.
const NAMED: usize = 2;

/// Cases that runs do not tell apart are alike up to this difference; beyond it the runs say nothing.
const ALIKE: f64 = 0.2;

/// The cases with the best figure; `None` where there are no two cases with figures.
pub(super) fn best(subjects: &[Subject<'_>], metric: Metric) -> Option<Finding> {
    let rows = rows_of(subjects);
    let with_figures = subjects.iter();
    let with_figures: Vec<(&Subject<'_>, Figures)> = with_figures
        .filter_map(|subject| Some((subject, subject.figures(metric)?)))
        .collect();
    if with_figures.len() < 2 {
        return None;
    }
    let by_median = |one: &&(&Subject<'_>, Figures), other: &&(&Subject<'_>, Figures)| {
        one.1.median.total_cmp(&other.1.median)
    };
    let (_, best) = match metric.higher_is_better() {
        true => with_figures.iter().max_by(by_median),
        false => with_figures.iter().min_by(by_median),
    }?;
    let mut like_best: Vec<&(&Subject<'_>, Figures)> = with_figures
        .iter()
        .filter(|(_, it)| it.may_equal(best))
        .collect();
    like_best.sort_by(|one, other| by_median(one, other));
    let (low, high) = (like_best.first()?.1.median, like_best.last()?.1.median);
    let cases = like_best.len();
    if high > low * (1.0 + ALIKE) {
        return Some(Finding::NoClearWinner {
            metric,
            low,
            high,
            cases,
        });
    }
    let names = match cases {
        ..=NAMED => like_best.iter().map(|(it, _)| named(it, &rows)).collect(),
        _ => in_common(&like_best, &rows),
    };
    Some(Finding::Best {
        metric,
        low,
        high,
        cases,
        of_cases: with_figures.len(),
        names,
    })
}

/// The settings that these share, of those in which all cases differ.
fn in_common(subjects: &[&(&Subject<'_>, Figures)], rows: &[&'static Row]) -> Vec<String> {
    let Some(((first, _), others)) = subjects.split_first() else {
        return Vec::new();
    };
    let is_shared = |row: &&&'static Row| {
        let mut others = others.iter();
        others.all(|(other, _)| row.is_equal(first.settings(), other.settings()))
    };
    let shared = rows.iter().filter(is_shared);
    let shared = shared.map(|row| words(row, first.settings()));
    shared.filter(|words| !words.is_empty()).collect()
}
