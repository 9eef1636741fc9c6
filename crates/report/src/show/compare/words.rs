//! What all documents of a comparison share: its rows, one a figure, with names, figures and verdicts, and sentences
//! about all of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use results::{
    model::{
        CaseComparison, Comparison, Direction, FORWARD, MetricComparison, MissingMetric,
        Observation, PlaceComparison, Side, Verdict,
    },
    text::short_path,
};
use serde::Serialize;
use settings::listed;

use super::NONE_IN_COMMON;
use crate::judge::compare::nodes::{CHANGES, findings};
use crate::observe::{
    Metric,
    format::{NOT_MEASURED, counted, each_once, some_of},
};

#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    /// Of which case; `None` over all cases.
    pub(super) case: Option<&'a CaseComparison>,
    pub(super) figures: &'a MetricComparison,
    pub(super) observation: Observation,
}

/// The headings of the columns of [`Row::cells`].
pub(crate) const HEAD: [&str; 6] = ["metric", "base", "new", "change", "95 % interval", "verdict"];

#[derive(Serialize)]
pub(super) struct Change<'a> {
    finding: Verdict,
    case: &'a str,
    flow: &'a str,
    metric: Metric,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    sentence: String,
}

pub(super) fn over_all(comparison: &Comparison) -> impl Iterator<Item = Row<'_>> {
    let reach = comparison.reach.as_ref();
    let observation = reach.map(|reach| reach.observation).unwrap_or_default();
    comparison.over_all.iter().map(move |over_all| Row {
        case: None,
        figures: &over_all.figures,
        observation,
    })
}

pub(super) fn of_case(case: &CaseComparison) -> impl Iterator<Item = Row<'_>> {
    case.metrics.iter().map(|figures| Row {
        case: Some(case),
        figures,
        observation: case.observation,
    })
}

pub(super) fn of_cases(comparison: &Comparison) -> impl Iterator<Item = Row<'_>> {
    comparison.cases.iter().flat_map(of_case)
}

impl<'a> Row<'a> {
    pub(super) fn has_changed(&self) -> bool {
        has_changed(self.figures.verdict)
    }

    /// What programs read as the name of what was measured: the case, and the flow behind a slash.
    pub(super) fn subject(&self) -> String {
        let id = self.case.map_or("over all cases", |case| &case.id);
        match flow(&self.figures.flow) {
            Some(flow) => format!("{id}/{flow}"),
            None => id.to_owned(),
        }
    }

    /// Name, medians of both sides, change, its interval, and the verdict with what would settle it.
    pub(super) fn cells(&self) -> [String; 6] {
        let figures = self.figures;
        let [base, new] = [figures.base_median, figures.new_median].map(|value| match value {
            _ if self.case.is_none() => String::new(),
            Some(value) => figures.metric.text(value),
            None => NOT_MEASURED.to_owned(),
        });
        let word = figures.verdict.name();
        let verdict = match (figures.verdict, figures.settled_with) {
            (Verdict::Unclear, Some(count)) => {
                format!("{word}, ~{count} {}", self.observation)
            }
            _ => word.to_owned(),
        };
        let change =
            figures.ratio.map_or_else(|| "-".to_owned(), |figures| percent(figures) + " %");
        let interval = interval(figures.low, figures.high);
        [name(figures.metric, &figures.flow), base, new, change, interval, verdict]
    }

    /// `12.0 µs -> 13.3 µs, +11.1 %, 95 % interval +10.4 … +11.8 %`; over all cases without medians.
    pub(super) fn text(&self) -> String {
        let [_, base, new, change, interval, _] = self.cells();
        let change = format!("{change}, 95 % interval {interval}");
        match self.case {
            Some(_) => format!("{base} -> {new}, {change}"),
            None => change,
        }
    }

    /// What changed for certain; `None` where it is not.
    pub(super) fn change(&self) -> Option<Change<'a>> {
        let figures = self.figures;
        let id = self.case.map_or("over all cases", |case| &case.id);
        let (name, word) = (name(figures.metric, &figures.flow), figures.verdict.name());
        self.has_changed().then(|| Change {
            finding: figures.verdict,
            case: self.case.map_or("", |case| &case.id),
            flow: &figures.flow,
            metric: figures.metric,
            ratio: figures.ratio,
            low: figures.low,
            high: figures.high,
            sentence: format!("{id}, {name} {word}: {}.", self.text()),
        })
    }
}

pub(super) fn has_changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Slower | Verdict::Faster)
}

/// What a figure's flow is called; nothing of `forward`, which is what cases have that name none.
pub(super) fn flow(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty() && *name != FORWARD)
}

/// What people read as the name of a figure: `bandwidth`, `bandwidth of reverse`.
pub(super) fn name(metric: Metric, of: &str) -> String {
    match flow(of) {
        Some(flow) => format!("{} of {flow}", metric.short_name()),
        None => metric.short_name().to_owned(),
    }
}

fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        ..0.05 => "0.0".to_owned(),
        1e4.. => format!("{percent:+.0e}"),
        away => format!("{percent:+.*}", usize::from(away < 99.95)),
    }
}

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

/// A side by its name, files and revision: `base (10 files, 4f2c1aa)`.
pub(super) fn side(side: &Side) -> String {
    if side.files.is_empty() {
        return side.name.clone();
    }
    let files = counted(side.files.len(), "file");
    let parts = std::iter::once(files).chain(side.revisions.iter().cloned());
    format!("{} ({})", side.name, parts.collect::<Vec<_>>().join(", "))
}

/// The sum: `over all cases p50 slower; 18 cases: 1 slower, 2 unclear, 15 equal`.
pub(crate) fn summary(comparison: &Comparison) -> String {
    let changed: Vec<String> = [Verdict::Slower, Verdict::Faster]
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
    let nodes = comparison.nodes.iter();
    let mut parts: Vec<String> = nodes
        .map(|it| format!("{}: {}", it.title, counts(it.places.iter().map(|place| place.verdict))))
        .collect();
    match comparison.cases.len() {
        0 if parts.is_empty() => parts.push(NONE_IN_COMMON.to_owned()),
        0 => {}
        cases => {
            let counts = counts(comparison.cases.iter().map(CaseComparison::verdict));
            parts.push(format!("{}: {counts}", counted(cases, "case")));
        }
    }
    over_all + &parts.join("; ")
}

/// Changed metrics that the answer names.
const MOST_NAMED: usize = 3;

/// Changes from this ratio on are said as multiples.
const MANY_TIMES: f64 = 2.0;

/// What changed, in a sentence: `bandwidth 10.0 % lower than 3f2a1c in 2 of 2 cases; all else equal`. Of nodes what became of the
/// one that changed most.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let base = match [&comparison.base, &comparison.new].map(|side| &side.revisions[..]) {
        [[one], [other]] if one != other => format!("{one:.9}"),
        _ => short_path(&comparison.base.name).to_owned(),
    };
    let mut of_nodes = comparison.nodes.iter().flat_map(findings);
    if let Some(finding) = of_nodes.find(|it| CHANGES.contains(&it.id) || it.is_problem()) {
        return finding.text;
    }
    if !comparison.nodes.is_empty() && comparison.cases.is_empty() {
        return format!(
            "No node is slower or faster than {base} for sure: {}.",
            summary(comparison)
        );
    }
    let rows = over_all(comparison).chain(of_cases(comparison));
    let (changed, others): (Vec<Row<'_>>, Vec<Row<'_>>) = rows.partition(Row::has_changed);
    if changed.is_empty() {
        return unchanged(comparison, &base);
    }
    let mut by_metric: BTreeMap<(Reverse<Verdict>, Metric), Vec<Row<'_>>> = BTreeMap::new();
    for row in changed {
        by_metric.entry((Reverse(row.figures.verdict), row.figures.metric)).or_default().push(row);
    }
    let (of, mut parts) = (counted(comparison.cases.len(), "case"), Vec::new());
    let mut place = String::new();
    for ((_, metric), mut alike) in by_metric {
        if alike[0].case.is_none() {
            alike.truncate(1);
        }
        let cases = each_once(alike.iter().filter_map(|row| Some(&row.case?.id)));
        let own_place = match cases[..] {
            [] => format!(" {}", over_all_cases(comparison)),
            [only] if comparison.cases.len() > 1 => format!(" in 1 of {of} ({only})"),
            _ => format!(" in {} of {of}", cases.len()),
        };
        let (change, than) = change_in_words(metric, &alike);
        // The base is said once, and so is a place that the metric before has too.
        let beside = if parts.is_empty() { format!(" {than} {base}") } else { String::new() };
        let name = metric.short_name();
        let own = if own_place == place { "" } else { &own_place };
        parts.push(format!("{name} {change}{beside}{own}"));
        place = own_place;
    }
    if let more @ 1.. = parts.len().saturating_sub(MOST_NAMED) {
        parts.truncate(MOST_NAMED);
        parts.push(format!("{} changed too", counted(more, "other metric")));
    }
    let missing = comparison.cases.iter().flat_map(|case| &case.missing).map(|it| it.verdict);
    let of_cases = comparison.cases.iter().map(CaseComparison::verdict);
    let rest: Vec<Verdict> = (others.iter().map(|row| row.figures.verdict))
        .chain(missing)
        .chain(of_cases.filter(|verdict| *verdict == Verdict::NotComparable))
        .collect();
    if rest.iter().any(|verdict| *verdict != Verdict::Equal) {
        parts.push(format!("other figures: {}", counts(rest.into_iter())));
    } else if !rest.is_empty() {
        parts.push("all else equal".to_owned());
    }
    format!("{}.", capitalized(&parts.join("; ")))
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// `10.0 % lower`, `4.0 to 12.0 % longer`, `12.7 times as high`, from the least to the most; and the word that joins the base to it.
fn change_in_words(metric: Metric, rows: &[Row<'_>]) -> (String, &'static str) {
    let mut ratios: Vec<f64> = rows.iter().filter_map(|row| row.figures.ratio).collect();
    ratios.sort_by(|one, other| (one - 1.0).abs().total_cmp(&(other - 1.0).abs()));
    let [Some(least), Some(most)] = [ratios.first(), ratios.last()] else {
        return ("changed".to_owned(), "beside");
    };
    if *least >= MANY_TIMES {
        let [low, high] = [least, most].map(|ratio| format!("{ratio:.1}"));
        let range = if low == high { high } else { format!("{low} to {high}") };
        let size = if metric.unit() == "ns" { "long" } else { "high" };
        return (format!("{range} times as {size}"), "as");
    }
    let [low, high] = [least, most].map(|ratio| percent(*ratio).replace(['+', '-'], ""));
    let range = if low == high { high } else { format!("{low} to {high}") };
    let words = if metric.unit() == "ns" { ["shorter", "longer"] } else { ["lower", "higher"] };
    (format!("{range} % {}", words[usize::from(*most > 1.0)]), "than")
}

/// That nothing changed, or why that is not known and what to do.
fn unchanged(comparison: &Comparison, base: &str) -> String {
    let counts = counts(comparison.cases.iter().map(CaseComparison::verdict));
    let reasons = comparison.cases.iter().flat_map(|case| case.not_comparable.iter().cloned());
    let why = reasons.chain(no_verdicts(comparison)).chain(reach(comparison)).next();
    match comparison.verdict() {
        None => format!("{}. Measure the same cases.", capitalized(NONE_IN_COMMON)),
        Some(Verdict::Equal) => format!("Nothing changed beside {base}: {counts}."),
        _ => {
            let why = capitalized(why.unwrap_or_default().trim_end_matches('.'));
            format!("No change beside {base} is sure: {counts}. {why}.")
        }
    }
}

/// Name, medians of both sides, change beside the others, its interval, and the verdict.
pub(crate) fn place_cells(metric: Metric, place: &PlaceComparison) -> [String; 6] {
    let [base, new] = [place.base_median, place.new_median].map(|value| metric.text(value));
    let interval = interval(place.low, place.high);
    let name = match place.direction {
        Direction::Path => place.name(),
        direction => format!("{} {direction}", place.name()),
    };
    [name, base, new, percent(place.ratio) + " %", interval, place.verdict.name().to_owned()]
}

fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("{} … {} %", percent(low), percent(high)),
        _ => "-".to_owned(),
    }
}

/// `2 slower, 12 equal`, the worst first.
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
    cases.sort_by_key(|case| Reverse(case.verdict()));
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
    remarks
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
