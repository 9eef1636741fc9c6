//! The comparison for a terminal: what can be settled, then all cases together, then each, worst first; the sum last.

use std::collections::BTreeMap;
use std::io::{self, Write};

use settings::Pattern;

use super::words;
use crate::judge::compare::model::{
    CaseComparison, Comparison, MetricComparison, Observation, Verdict,
};
use crate::text;

/// Width that text keeps to.
const COLUMNS: usize = 100;

/// Flows of a case, and rounds of pairs, that are told each; of more what has changed.
const MOST: usize = 8;

/// Writes the table.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "base {}", words::side(&comparison.base))?;
    writeln!(out, "new  {}", words::side(&comparison.new))?;
    for text in words::no_verdicts(comparison) {
        wrapped(&mut out, &text)?;
    }
    if let Some(reach) = words::reach(comparison) {
        writeln!(out)?;
        wrapped(&mut out, &reach)?;
    }
    let cases = words::worst_first(comparison);
    if cases.iter().any(|case| !case.metrics.is_empty()) {
        writeln!(out)?;
        row(
            &mut out,
            ' ',
            [
                "metric",
                "base",
                "new",
                "change",
                "95 % interval",
                "verdict",
            ],
        )?;
    }
    if !comparison.over_all.is_empty() {
        writeln!(out, "\n{}", words::over_all_cases(comparison))?;
        for over_all in &comparison.over_all {
            let figures = &over_all.figures;
            metric(&mut out, figures, ["", ""], words::observation(comparison))?;
        }
    }
    let mut reasons: Vec<(&[String], Vec<&str>)> = Vec::new();
    for case in &cases {
        if !case.not_comparable.is_empty() {
            match reasons
                .iter_mut()
                .find(|(known, _)| *known == case.not_comparable)
            {
                Some((_, ids)) => ids.push(&case.id),
                None => reasons.push((&case.not_comparable, vec![&case.id])),
            }
        }
    }
    let rounds: Vec<&CaseComparison> = cases.iter().copied().filter(|it| is_quiet(it)).collect();
    let are_folded = rounds.len() > MOST;
    if are_folded {
        write_rounds(&mut out, &rounds)?;
    }
    let mut told = false;
    for case in cases {
        if are_folded && is_quiet(case) {
            continue;
        } else if case.not_comparable.is_empty() {
            write_case(&mut out, case)?;
        } else if !told {
            told = true;
            for (reasons, ids) in &reasons {
                not_comparable(&mut out, reasons, ids)?;
            }
        }
    }
    writeln!(out)?;
    for remark in words::remarks(comparison) {
        wrapped(&mut out, &remark)?;
    }
    writeln!(out, "{}", words::summary(comparison))?;
    out.flush()
}

fn row(out: &mut impl Write, mark: char, cells: [&str; 6]) -> io::Result<()> {
    let [metric, base, new, change, interval, verdict] = cells;
    writeln!(
        out,
        "{mark} {metric:<9} {base:>14} {new:>14} {change:>9}  {interval:>18}  {verdict}"
    )
}

/// A row of a metric with its medians, as text.
fn metric(
    out: &mut impl Write,
    figures: &MetricComparison,
    [base, new]: [&str; 2],
    observation: Observation,
) -> io::Result<()> {
    let mark = match figures.verdict {
        Verdict::Regressed => '!',
        Verdict::Improved => '+',
        _ => ' ',
    };
    row(
        out,
        mark,
        [
            figures.metric.short_name(),
            base,
            new,
            &words::change(figures.ratio),
            &words::interval(figures),
            &words::verdict(figures, observation),
        ],
    )
}

fn write_case(out: &mut impl Write, case: &CaseComparison) -> io::Result<()> {
    let what = words::figures(case.observation);
    writeln!(
        out,
        "\n{}: {} ({} and {} {what})",
        case.id,
        case.verdict().name(),
        case.base_count,
        case.new_count
    )?;
    let all = || case.metrics.iter();
    let mut names: Vec<&str> = all().map(|figures| &*figures.flow).collect();
    names.dedup();
    let mut changed: Vec<&str> = all()
        .filter(|figures| has_changed(figures.verdict))
        .map(|figures| &*figures.flow)
        .collect();
    changed.dedup();
    changed.truncate(MOST);
    // Of many flows, what has changed.
    let is_told = |figures: &&MetricComparison| {
        names.len() <= MOST || has_changed(figures.verdict) && changed.contains(&&*figures.flow)
    };
    let mut flow = None;
    for figures in all().filter(is_told) {
        let own = words::flow(&figures.flow);
        if own != flow {
            flow = own;
            writeln!(out, "  {}", figures.flow)?;
        }
        let [base, new] = [figures.base_median, figures.new_median]
            .map(|median| words::value(figures.metric, median));
        metric(out, figures, [&base, &new], case.observation)?;
    }
    if names.len() > MOST {
        let others = all().filter(|figures| !is_told(figures));
        let counts = counts(others.map(|figures| figures.verdict));
        let flows = names.len() - changed.len();
        wrapped(
            out,
            &format!("  {flows} more of {} flows: {counts}", names.len()),
        )?;
    }
    for missing in case.missing.iter().take(MOST) {
        wrapped(out, &format!("  {}", words::missing(missing)))?;
    }
    if case.missing.len() > MOST {
        let more = case.missing.len() - MOST;
        writeln!(
            out,
            "  {} more that cannot be compared",
            words::count(more, "figure")
        )?;
    }
    for text in case.notes.iter().chain(&case.across) {
        wrapped(out, &format!("  {text}"))?;
    }
    Ok(())
}

fn has_changed(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Regressed | Verdict::Improved)
}

/// Whether a case is a round of pairs in which nothing has changed.
fn is_quiet(case: &CaseComparison) -> bool {
    case.config.pattern == Some(Pattern::Pairs)
        && case.not_comparable.is_empty()
        && !has_changed(case.verdict())
}

/// Rounds in which nothing has changed, together.
fn write_rounds(out: &mut impl Write, rounds: &[&CaseComparison]) -> io::Result<()> {
    let ids: Vec<&str> = rounds.iter().map(|case| &*case.id).collect();
    let metrics = || rounds.iter().flat_map(|case| &case.metrics);
    let counts = counts(metrics().map(|figures| figures.verdict));
    writeln!(out)?;
    wrapped(out, &format!("{}: {counts}", words::some(&ids)))?;
    let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
    for note in rounds
        .iter()
        .flat_map(|case| case.notes.iter().chain(&case.across))
    {
        *notes.entry(note).or_default() += 1;
    }
    for (note, count) in notes.iter().take(MOST) {
        wrapped(
            out,
            &format!("  {note} ({})", words::count(*count, "round")),
        )?;
    }
    let missing: usize = rounds.iter().map(|case| case.missing.len()).sum();
    if missing > 0 {
        writeln!(
            out,
            "  {} cannot be compared",
            words::count(missing, "figure")
        )?;
    }
    Ok(())
}

/// `12 equal, 3 unclear`.
fn counts(verdicts: impl Iterator<Item = Verdict>) -> String {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for verdict in verdicts {
        *counts.entry(verdict).or_default() += 1;
    }
    let told = counts.iter().rev();
    let told: Vec<String> = told
        .map(|(it, count)| format!("{count} {}", it.name()))
        .collect();
    match told.is_empty() {
        true => "no figure".to_owned(),
        false => told.join(", "),
    }
}

/// A text in lines of the table.
fn wrapped(out: &mut impl Write, text: &str) -> io::Result<()> {
    let lines = text::wrapped(text, COLUMNS);
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn not_comparable(out: &mut impl Write, reasons: &[String], ids: &[&str]) -> io::Result<()> {
    writeln!(
        out,
        "\n{}: {}",
        words::some(ids),
        Verdict::NotComparable.name()
    )?;
    for reason in reasons.iter().take(MOST) {
        wrapped(out, &format!("  {reason}"))?;
    }
    if reasons.len() > MOST {
        let more = words::count(reasons.len() - MOST, "more reason");
        writeln!(out, "  and {more}, which --json lists")?;
    }
    Ok(())
}
