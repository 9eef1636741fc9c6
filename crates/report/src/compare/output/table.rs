//! The comparison for a terminal: what can be settled, then all cases together, then each, worst first; the sum last.

use std::io::{self, Write};

use super::super::model::{CaseComparison, Comparison, MetricComparison, Observation, Verdict};
use super::words;
use crate::text;

/// Width that text keeps to.
const COLUMNS: usize = 100;

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
    let mut told = false;
    for case in cases {
        if case.not_comparable.is_empty() {
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
    let mut flow = None;
    for figures in &case.metrics {
        let own = words::flow(&figures.flow);
        if own != flow {
            flow = own;
            writeln!(out, "  {}", figures.flow)?;
        }
        let [base, new] = [figures.base_median, figures.new_median]
            .map(|median| words::value(figures.metric, median));
        metric(out, figures, [&base, &new], case.observation)?;
    }
    for missing in &case.missing {
        wrapped(out, &format!("  {}", words::missing(missing)))?;
    }
    for text in case.notes.iter().chain(&case.across) {
        wrapped(out, &format!("  {text}"))?;
    }
    Ok(())
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
    for reason in reasons {
        wrapped(out, &format!("  {reason}"))?;
    }
    Ok(())
}
