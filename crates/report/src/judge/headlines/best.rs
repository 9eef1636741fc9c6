//! Which cases are best, as far as runs tell cases apart.

use settings::{Row, listed};

use super::noise::{Figures, of_few_runs};
use super::subject::{Subject, named, rows_of};
use crate::observe::Metric;
use crate::observe::setting_words::words;

/// Cases that are named one by one.
const NAMED: usize = 2;

/// The sentence; `None` where there are no two cases with figures.
pub(super) fn sentence(subjects: &[Subject<'_>], metrics: [Metric; 2]) -> Option<String> {
    let rows = rows_of(subjects);
    let told: Vec<(Metric, String)> = metrics
        .into_iter()
        .filter_map(|metric| Some((metric, told(subjects, &rows, metric)?)))
        .collect();
    let parts: Vec<&str> = told.iter().map(|(_, text)| text.as_str()).collect();
    let mut text = capitalised(&parts.join("; "))?;
    let has_few = |subject: &Subject<'_>| {
        let figures = metrics.iter().filter_map(|it| subject.figures(*it));
        figures.into_iter().any(|it| it.are_of_few_runs)
    };
    if subjects.iter().any(has_few) {
        let chance = told.iter().map(|(metric, _)| {
            format!("{:.0} % of {}", of_few_runs(*metric) * 100.0, metric.noun())
        });
        let chance = listed(&chance.collect::<Vec<_>>());
        text += &format!("; with so few runs {chance} may be chance");
    }
    Some(text + ".")
}

fn told(subjects: &[Subject<'_>], rows: &[&'static Row], metric: Metric) -> Option<String> {
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
    let [first, .., last] = like_best.as_slice() else {
        let name = named(like_best.first()?.0, rows);
        return Some(format!(
            "{}: {} with {name}",
            most(metric),
            metric.text(best.median)
        ));
    };
    let range = range(metric.text(first.1.median), &metric.text(last.1.median));
    let (count, all) = (like_best.len(), with_figures.len());
    if count == all {
        let cases = match (all, all == subjects.len()) {
            (2, true) => "both cases".to_owned(),
            (_, true) => format!("all {all} cases"),
            (_, false) => format!("the {all} cases with figures"),
        };
        return Some(format!(
            "{cases} have the same {} within chance, {range}",
            metric.noun()
        ));
    }
    let names = match count {
        ..=NAMED => like_best
            .iter()
            .map(|(subject, _)| named(subject, rows))
            .collect(),
        _ => in_common(&like_best, rows),
    };
    let names = match names.is_empty() {
        true => String::new(),
        false => format!(
            " ({})",
            names.join(if count <= NAMED { "; " } else { ", " })
        ),
    };
    Some(format!(
        "{}: {range} in {count} of {all} cases, the same within chance{names}",
        most(metric)
    ))
}

/// `9.5 to 10.5 Gb/s`: the unit once, where both have the same.
fn range(low: String, high: &str) -> String {
    let low = match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number.to_owned(),
        _ => low,
    };
    format!("{low} to {high}")
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
    let shared = rows
        .iter()
        .filter(is_shared)
        .map(|row| words(row, first.settings()));
    shared.filter(|words| !words.is_empty()).collect()
}

fn capitalised(text: &str) -> Option<String> {
    let mut chars = text.chars();
    let first = chars.next()?;
    Some(first.to_uppercase().chain(chars).collect())
}

/// How the sentence of a metric begins.
fn most(metric: Metric) -> String {
    let word = if metric.higher_is_better() {
        "most"
    } else {
        "lowest"
    };
    format!("{word} {}", metric.noun())
}
