//! The comparison for a terminal: what can be settled, then all cases together, then each, worst first; the sum last.

use std::collections::BTreeMap;
use std::io::{self, Write};

use settings::Pattern;

use super::rows::{HEAD, Row, flow, has_changed, of_case, over_all};
use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, Verdict};
use crate::observe::format::counted;
use results::text;

const COLUMNS: usize = 100;

/// Most flows of a case, and rounds of pairs, that are all shown; of more only the changed ones.
const MOST: usize = 8;

/// Writes the table.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    writeln!(out, "base {}", words::side(&comparison.base))?;
    writeln!(out, "new  {}", words::side(&comparison.new))?;
    for text in words::no_verdicts(comparison) {
        wrapped(out, &text)?;
    }
    if let Some(reach) = words::reach(comparison) {
        writeln!(out)?;
        wrapped(out, &reach)?;
    }
    let cases = words::worst_first(comparison);
    if cases.iter().any(|case| !case.metrics.is_empty()) {
        writeln!(out)?;
        line(out, ' ', &HEAD.map(str::to_owned))?;
    }
    if !comparison.over_all.is_empty() {
        writeln!(out, "\n{}", words::over_all_cases(comparison))?;
        over_all(comparison).try_for_each(|row| figures(out, &row))?;
    }
    let rounds: Vec<&CaseComparison> = cases.iter().copied().filter(|it| is_quiet(it)).collect();
    let are_folded = rounds.len() > MOST;
    if are_folded {
        write_rounds(out, &rounds)?;
    }
    for case in cases.iter().filter(|case| !(are_folded && is_quiet(case))) {
        if case.not_comparable.is_empty() {
            write_case(out, case)?;
            continue;
        }
        let ids: Vec<&str> = cases
            .iter()
            .filter(|it| it.not_comparable == case.not_comparable)
            .map(|case| &*case.id)
            .collect();
        if ids.first() == Some(&&*case.id) {
            not_comparable(out, &case.not_comparable, &ids)?;
        }
    }
    writeln!(out)?;
    for remark in words::remarks(comparison) {
        wrapped(out, &remark)?;
    }
    writeln!(out, "{}", words::summary(comparison))?;
    out.flush()
}

fn line(out: &mut impl Write, mark: char, cells: &[String; 6]) -> io::Result<()> {
    let [metric, base, new, change, interval, verdict] = cells;
    writeln!(out, "{mark} {metric:<9} {base:>14} {new:>14} {change:>9}  {interval:>18}  {verdict}")
}

fn figures(out: &mut impl Write, row: &Row<'_>) -> io::Result<()> {
    let mark = match row.figures.verdict {
        Verdict::Regressed => '!',
        Verdict::Improved => '+',
        _ => ' ',
    };
    let mut cells = row.cells();
    // Its flow stands above it.
    row.figures.metric.short_name().clone_into(&mut cells[0]);
    line(out, mark, &cells)
}

fn write_case(out: &mut impl Write, case: &CaseComparison) -> io::Result<()> {
    let (id, word, what) = (&case.id, case.verdict().name(), case.observation);
    let (base, new) = (case.base_count, case.new_count);
    writeln!(out, "\n{id}: {word} ({base} and {new} {what})")?;
    let names = flows(of_case(case));
    let mut changed = flows(of_case(case).filter(Row::has_changed));
    changed.truncate(MOST);
    // Of many flows, what has changed.
    let (shown, others): (Vec<Row<'_>>, Vec<Row<'_>>) = of_case(case).partition(|row| {
        names.len() <= MOST || row.has_changed() && changed.contains(&&*row.figures.flow)
    });
    let mut above = None;
    for row in &shown {
        let own = flow(&row.figures.flow);
        if own != above {
            above = own;
            writeln!(out, "  {}", row.figures.flow)?;
        }
        figures(out, row)?;
    }
    if names.len() > MOST {
        let counts = words::counts(others.iter().map(|row| row.figures.verdict));
        let (flows, of) = (names.len() - changed.len(), names.len());
        wrapped(out, &format!("  {flows} more of {of} flows: {counts}"))?;
    }
    for missing in case.missing.iter().take(MOST) {
        wrapped(out, &format!("  {}", words::missing(missing)))?;
    }
    if let more @ 1.. = case.missing.len().saturating_sub(MOST) {
        writeln!(out, "  {} more that cannot be compared", counted(more, "figure"))?;
    }
    for text in case.notes.iter().chain(&case.across) {
        wrapped(out, &format!("  {text}"))?;
    }
    Ok(())
}

fn flows<'a>(rows: impl Iterator<Item = Row<'a>>) -> Vec<&'a str> {
    let mut flows: Vec<&str> = rows.map(|row| &*row.figures.flow).collect();
    flows.dedup();
    flows
}

/// Whether a case is a round of pairs in which nothing has changed.
fn is_quiet(case: &CaseComparison) -> bool {
    case.config.pattern == Some(Pattern::Pairs)
        && case.not_comparable.is_empty()
        && !has_changed(case.verdict())
}

fn write_rounds(out: &mut impl Write, rounds: &[&CaseComparison]) -> io::Result<()> {
    let ids: Vec<&str> = rounds.iter().map(|case| &*case.id).collect();
    let counts =
        words::counts(rounds.iter().flat_map(|case| of_case(case)).map(|row| row.figures.verdict));
    writeln!(out)?;
    wrapped(out, &format!("{}: {counts}", words::some(&ids)))?;
    let mut notes: BTreeMap<&str, usize> = BTreeMap::new();
    for note in (rounds.iter()).flat_map(|case| case.notes.iter().chain(&case.across)) {
        *notes.entry(note).or_default() += 1;
    }
    for (note, rounds) in notes.iter().take(MOST) {
        wrapped(out, &format!("  {note} ({})", counted(*rounds, "round")))?;
    }
    let missing: usize = rounds.iter().map(|case| case.missing.len()).sum();
    if missing > 0 {
        writeln!(out, "  {} cannot be compared", counted(missing, "figure"))?;
    }
    Ok(())
}

/// A text in lines of the table.
fn wrapped(out: &mut impl Write, text: &str) -> io::Result<()> {
    let lines = text::wrapped(text, COLUMNS);
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn not_comparable(out: &mut impl Write, reasons: &[String], ids: &[&str]) -> io::Result<()> {
    let word = Verdict::NotComparable.name();
    writeln!(out, "\n{}: {word}", words::some(ids))?;
    for reason in reasons.iter().take(MOST) {
        wrapped(out, &format!("  {reason}"))?;
    }
    if let more @ 1.. = reasons.len().saturating_sub(MOST) {
        let more = counted(more, "more reason");
        writeln!(out, "  and {more}, which --json lists")?;
    }
    Ok(())
}
