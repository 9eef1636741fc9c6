//! Sentences about a whole comparison, which the table, the Markdown and JUnit share.

use std::collections::BTreeMap;

use settings::listed;

use super::rows::{name, of_cases};
use crate::judge::compare::model::{
    CaseComparison, Comparison, MissingMetric, Observation, Side, Verdict,
};
use crate::observe::Metric;
use crate::observe::format::{counted, each_once, some_of};

/// Which questions so many launches can settle; stands before the verdicts. `None` when nothing was judged.
pub(super) fn reach(comparison: &Comparison) -> Option<String> {
    let settles = comparison.reach?;
    let (count, what) = (settles.count, settles.observation);
    let families = [(settles.over_all, "over all cases"), (settles.by_case, "case by case")];
    let parts: Vec<String> = families
        .iter()
        .filter(|(reach, _)| reach.questions > 0)
        .map(|(reach, which)| format!("{} of {} figures {which}", reach.settled, reach.questions))
        .collect();
    let text = format!(
        "{count} {what} a side find a loss of twice the margin in {}.",
        parts.join(" and ")
    );
    let needed: Vec<Option<usize>> = families
        .iter()
        .filter(|(reach, _)| reach.settled < reach.questions)
        .map(|(reach, _)| reach.needed)
        .collect();
    Some(match needed.iter().copied().reduce(|one, other| Some(one?.max(other?))) {
        None => text,
        Some(Some(needed)) => format!(
            "{text} To find it in all, measure about {needed} a side, or compare fewer (--metrics)."
        ),
        Some(None) => {
            format!("{text} No practical number finds it in all: compare fewer (--metrics).")
        }
    })
}

/// `over all 18 cases`; `over all 36 flows` where cases have several.
pub(super) fn over_all_cases(comparison: &Comparison) -> String {
    let most = comparison.over_all.iter().map(|over_all| over_all.cases).max().unwrap_or_default();
    let what = if most > comparison.cases.len() { "flow" } else { "case" };
    format!("over all {}", counted(most, what))
}

/// `base (10 files, 4f2c1aa)`.
pub(super) fn side(side: &Side) -> String {
    let files = counted(side.files.len(), "file");
    let parts = std::iter::once(files).chain(side.revisions.iter().cloned());
    format!("{} ({})", side.name, parts.collect::<Vec<_>>().join(", "))
}

/// The sum: `over all cases p50 regressed; 18 cases: 1 regressed, 2 unclear, 15 equal`.
pub(super) fn summary(comparison: &Comparison) -> String {
    let changed: Vec<String> = [Verdict::Regressed, Verdict::Improved]
        .map(|verdict| {
            let names: Vec<&str> = comparison
                .over_all_with(verdict)
                .into_iter()
                .map(|it| it.metric.short_name())
                .collect();
            (!names.is_empty()).then(|| format!("{} {}", listed(&names), verdict.name()))
        })
        .into_iter()
        .flatten()
        .collect();
    let over_all = if changed.is_empty() {
        String::new()
    } else {
        format!("over all cases {}; ", changed.join(", "))
    };
    match comparison.cases.len() {
        0 => over_all + "no case is on both sides",
        cases => {
            let counts = counts(comparison.cases.iter().map(CaseComparison::verdict));
            format!("{over_all}{}: {counts}", counted(cases, "case"))
        }
    }
}

/// `2 regressed, 12 equal`, the worst first.
pub(super) fn counts(verdicts: impl Iterator<Item = Verdict>) -> String {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for verdict in verdicts {
        let verdict = match verdict {
            // Both verdicts have the same word.
            Verdict::NoVerdict => Verdict::Unclear,
            other => other,
        };
        *counts.entry(verdict).or_default() += 1;
    }
    let words = counts.iter().rev().map(|(it, count)| format!("{count} {}", it.name()));
    if counts.is_empty() { "no figure".to_owned() } else { words.collect::<Vec<_>>().join(", ") }
}

/// The cases, worst first; among equals in the order of the base.
pub(super) fn worst_first(comparison: &Comparison) -> Vec<&CaseComparison> {
    let mut cases: Vec<&CaseComparison> = comparison.cases.iter().collect();
    cases.sort_by_key(|case| std::cmp::Reverse(case.verdict()));
    cases
}

pub(super) fn some<T: AsRef<str>>(names: &[T]) -> String {
    some_of(names, 6)
}

/// Why figures are not judged: `one run each: unclear`. Each reason stands once, with its number of cases unless it is all.
pub(super) fn no_verdicts(comparison: &Comparison) -> Vec<String> {
    let reasons = comparison.cases.iter().filter_map(|case| case.no_verdict.as_deref());
    let word = Verdict::NoVerdict.name();
    each_once(reasons.clone())
        .into_iter()
        .map(|reason| {
            let cases = reasons.clone().filter(|it| *it == reason).count();
            if cases == comparison.cases.len() {
                format!("{reason}: {word}")
            } else {
                format!("{reason}: {word} ({})", counted(cases, "case"))
            }
        })
        .collect()
}

/// `p99: not comparable: 1 of 10 base runs ...`.
pub(super) fn missing(missing: &MissingMetric) -> String {
    let (name, word) = (name(missing.metric, &missing.flow), missing.verdict.name());
    format!("{name}: {word}: {}", missing.reason)
}

/// What counts as equal: `equal means within: bandwidth 3 %, p99 10 %; over all cases half of that`; `None` without a figure.
fn margins(comparison: &Comparison) -> Option<String> {
    let mut margins: BTreeMap<Metric, f64> = BTreeMap::new();
    for row in of_cases(comparison) {
        // Those of searches are as wide as their bounds, at least.
        let widest = margins.entry(row.figures.metric).or_default();
        *widest = widest.max(row.figures.margin);
    }
    let words = margins
        .iter()
        .map(|(metric, margin)| {
            let percent = (margin * 1e4).round() / 1e2;
            format!("{} {percent} %", metric.short_name())
        })
        .collect::<Vec<_>>()
        .join(", ");
    let half = if comparison.over_all.is_empty() { "" } else { "; over all cases half of that" };
    (!margins.is_empty()).then(|| format!("equal means within: {words}{half}"))
}

pub(super) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = margins(comparison).into_iter().collect();
    for (ids, side) in
        [(&comparison.only_in_base, "the base"), (&comparison.only_in_new, "the new results")]
    {
        if !ids.is_empty() {
            remarks.push(format!("only in {side}: {}", some(ids)));
        }
    }
    if comparison.cases.iter().any(keeps_up) {
        remarks.push(
            "note: an open loop that keeps up has the offered throughput, so only latency and CPU time are judged"
                .to_owned(),
        );
    }
    remarks.extend(comparison.notes.iter().map(|note| format!("note: {note}")));
    let refused = comparison.refused.iter();
    remarks.extend(refused.map(|text| format!("refused: {text}")));
    if comparison.cases.iter().any(is_judged_by_runs) {
        remarks.push(
            "note: launch the sweep 10 times a side, in turns. With fewer than 3 launches a side each run counts by \
             itself, and differences between launches can look like a change"
                .to_owned(),
        );
    }
    remarks
}

fn is_judged_by_runs(case: &CaseComparison) -> bool {
    case.observation == Observation::Run
        && case.not_comparable.is_empty()
        && case.no_verdict.is_none()
}

/// Whether a case has an open loop without a figure of its throughput.
fn keeps_up(case: &CaseComparison) -> bool {
    case.config.flows.iter().enumerate().any(|(index, flow)| {
        let is_open = !case.config.flow(index).is_closed_loop();
        let mut own = case
            .metrics
            .iter()
            .filter(|it| it.flow == flow.name)
            .map(|it| it.metric.is_of_offer())
            .peekable();
        is_open && own.peek().is_some() && !own.any(|is_of_offer| is_of_offer)
    })
}
