//! The comparison for a terminal: worst cases first, the sum last.

use std::io::{self, Write};

use super::super::model::{CaseComparison, Comparison, Verdict};
use super::words;

/// Names of not comparable cases that are printed with their common reason.
const NAMES: usize = 6;

/// Writes the table.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "base {}", words::side(&comparison.base))?;
    writeln!(out, "new  {}", words::side(&comparison.new))?;
    let cases = words::worst_first(comparison);
    if cases.iter().any(|case| !case.metrics.is_empty()) {
        writeln!(out)?;
        row(
            &mut out,
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
    let mut reasons: Vec<(&[String], Vec<&str>)> = Vec::new();
    for case in &cases {
        if case.verdict() == Verdict::NotComparable {
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
        if case.verdict() != Verdict::NotComparable {
            write_case(&mut out, comparison, case)?;
        } else if !told {
            told = true;
            for (reasons, ids) in &reasons {
                not_comparable(&mut out, reasons, ids)?;
            }
        }
    }
    writeln!(out)?;
    for remark in words::remarks(comparison) {
        writeln!(out, "{remark}")?;
    }
    writeln!(out, "{}", words::summary(comparison))?;
    out.flush()
}

fn row(out: &mut impl Write, cells: [&str; 6]) -> io::Result<()> {
    let [metric, base, new, change, interval, verdict] = cells;
    writeln!(
        out,
        "  {metric:<9} {base:>15} {new:>15} {change:>9} {interval:>18}  {verdict}"
    )
}

fn write_case(
    out: &mut impl Write,
    comparison: &Comparison,
    case: &CaseComparison,
) -> io::Result<()> {
    let mut what = format!("{} and {}", case.base_count, case.new_count);
    if words::common_observation(comparison).is_none() || case.base_count > 0 {
        what = format!("{what} {}", words::figures(case.observation));
    }
    writeln!(out, "\n{}: {} ({what})", case.id, case.verdict().word())?;
    let mut metrics: Vec<_> = case.metrics.iter().collect();
    metrics.sort_by_key(|metric| std::cmp::Reverse(metric.verdict));
    for metric in metrics {
        row(
            out,
            [
                metric.metric.short_name(),
                &words::value(metric.metric, metric.base_median),
                &words::value(metric.metric, metric.new_median),
                &words::change(metric.ratio),
                &words::interval(metric),
                &words::verdict(case, metric),
            ],
        )?;
    }
    for text in case.notes.iter().chain(&case.across) {
        writeln!(out, "  {text}")?;
    }
    Ok(())
}

fn not_comparable(out: &mut impl Write, reasons: &[String], ids: &[&str]) -> io::Result<()> {
    let named = ids.len().min(NAMES);
    let mut names = ids[..named].join(", ");
    if ids.len() > named {
        names += &format!(" and {} more", ids.len() - named);
    }
    writeln!(out, "\n{names}: {}", Verdict::NotComparable.word())?;
    for reason in reasons {
        writeln!(out, "  {reason}")?;
    }
    Ok(())
}
