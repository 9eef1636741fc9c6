//! Which cases are best, beyond the scatter of runs.

use settings::Row;

use super::finding::Finding;
use super::scaling::by_median;
use super::subject::Subject;
use crate::observe::Metric;
use crate::observe::setting_words::words;

/// Cases that are named one by one.
const NAMED: usize = 2;

/// Cases within the scatter of runs are equal up to this difference; beyond it there is no winner.
const ALIKE: f64 = 0.2;

/// The cases with the best figure; `None` where there are no two cases with figures.
pub(super) fn best(
    subjects: &[Subject<'_>],
    rows: &[&'static Row],
    metric: Metric,
) -> Option<Finding> {
    if subjects.len() < 2 {
        return None;
    }
    let best = if metric.higher_is_better() {
        subjects.iter().max_by(by_median)
    } else {
        subjects.iter().min_by(by_median)
    }?;
    let mut like_best: Vec<&Subject<'_>> =
        subjects.iter().filter(|it| it.figures.may_equal(&best.figures)).collect();
    like_best.sort_by(by_median);
    let [low, high] = [like_best.first()?, like_best.last()?].map(|it| it.figures.median);
    let cases = like_best.len();
    if high > low * (1.0 + ALIKE) {
        return Some(Finding::NoClearWinner { metric, low, high, cases });
    }
    let names = match cases {
        ..=NAMED => like_best.iter().map(|it| it.named(rows)).collect(),
        _ => in_common(&like_best, rows),
    };
    Some(Finding::Best { metric, low, high, cases, of_cases: subjects.len(), names })
}

/// The settings that these share, of those in which all cases differ.
fn in_common(subjects: &[&Subject<'_>], rows: &[&'static Row]) -> Vec<String> {
    rows.iter()
        .filter(|row| {
            let mut pairs = subjects.windows(2);
            pairs.all(|pair| pair[0].is_like(pair[1], &[row]))
        })
        .filter_map(|row| Some(words(row, subjects.first()?.settings())))
        .filter(|words| !words.is_empty())
        .collect()
}
