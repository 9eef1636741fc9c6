//! The comparison as Markdown, for a comment on a pull request: the sum, what changed, the rest folded.

use std::io::{self, Write};

use super::words;
use crate::judge::compare::model::{
    CaseComparison, Comparison, MetricComparison, Observation, Verdict,
};

/// Rows of a table, so that the text stays below the 65,536 characters of a comment on GitHub.
const ROWS: usize = 200;

/// Lines of anything else.
const LINES: usize = 20;

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    let cases = words::worst_first(comparison);
    let mark = match comparison.verdict() {
        Some(Verdict::Regressed) => "❌",
        Some(Verdict::NotComparable | Verdict::NoVerdict | Verdict::Unclear) | None => "⚠️",
        Some(Verdict::Improved | Verdict::Equal) => "✅",
    };
    writeln!(
        out,
        "### {mark} rocebench: {}\n",
        words::summary(comparison)
    )?;
    writeln!(
        out,
        "Base {}; new {}. Change of the median with its 95 % interval.\n",
        escape(&words::side(&comparison.base)),
        escape(&words::side(&comparison.new))
    )?;
    for text in words::no_verdicts(comparison) {
        writeln!(out, "**{}**\n", escape(&text))?;
    }
    if let Some(reach) = words::reach(comparison) {
        writeln!(out, "{}\n", escape(&reach))?;
    }
    over_all(&mut out, comparison)?;
    rows(&mut out, &cases, |verdict| {
        matches!(
            verdict,
            Verdict::Regressed | Verdict::Improved | Verdict::NoVerdict
        )
    })?;
    let (mut not_comparable, mut notes) = (Vec::new(), Vec::new());
    for case in &cases {
        if !case.not_comparable.is_empty() {
            let reasons = escape(&case.not_comparable.join("; "));
            not_comparable.push(format!("`{}` is not comparable: {reasons}", case.id));
        }
        let of_case = |text: String| format!("`{}`: {}", case.id, escape(&text));
        let missing = case.missing.iter().map(words::missing);
        not_comparable.extend(missing.map(of_case));
        // Where there is nothing to compare, notes add nothing to the reason.
        if case.not_comparable.is_empty() {
            notes.extend(case.notes.iter().cloned().map(of_case));
        }
    }
    list(&mut out, &not_comparable, "that are not comparable")?;
    list(&mut out, &notes, "notes, which are in the table")?;
    let settled = |verdict| matches!(verdict, Verdict::Equal | Verdict::Unclear);
    let rest = comparison.metrics_with(Verdict::Equal) + comparison.metrics_with(Verdict::Unclear);
    if rest > 0 {
        let unclear = comparison.metrics_with(Verdict::Unclear);
        let equal = comparison.metrics_with(Verdict::Equal);
        writeln!(
            out,
            "<details><summary>{} equal, {unclear} unclear</summary>\n",
            words::count(equal, "figure")
        )?;
        rows(&mut out, &cases, settled)?;
        writeln!(out, "</details>\n")?;
    }
    for remark in words::remarks(comparison) {
        writeln!(out, "- {}", escape(&remark))?;
    }
    out.flush()
}

/// Texts, each with a dot before it; of many the first, and how many more.
fn list(out: &mut impl Write, texts: &[String], what: &str) -> io::Result<()> {
    for text in texts.iter().take(LINES) {
        writeln!(out, "- {text}")?;
    }
    if texts.len() > LINES {
        writeln!(out, "- and {} more {what}", texts.len() - LINES)?;
    }
    if !texts.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

/// A table of the metrics with such verdicts; nothing where there are none.
fn rows(
    out: &mut impl Write,
    cases: &[&CaseComparison],
    shown: impl Fn(Verdict) -> bool,
) -> io::Result<()> {
    let mut rows: Vec<(&CaseComparison, &MetricComparison)> = cases
        .iter()
        .flat_map(|case| case.metrics.iter().map(move |metric| (*case, metric)))
        .filter(|(_, metric)| shown(metric.verdict))
        .collect();
    rows.sort_by_key(|(_, metric)| std::cmp::Reverse(metric.verdict));
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "| case | metric | base | new | change | 95 % interval | verdict |"
    )?;
    writeln!(out, "|---|---|--:|--:|--:|--:|---|")?;
    let left_out = rows.len().saturating_sub(ROWS);
    for (case, metric) in rows.into_iter().take(ROWS) {
        let word = word(metric, case.observation);
        writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} | {word} |",
            case.id,
            escape(&words::figure(metric.metric, &metric.flow)),
            words::value(metric.metric, metric.base_median),
            words::value(metric.metric, metric.new_median),
            words::change(metric.ratio),
            words::interval(metric),
        )?;
    }
    if left_out > 0 {
        writeln!(out, "\n… and {left_out} more")?;
    }
    writeln!(out)
}

/// The verdict of a metric; a regression stands out.
fn word(metric: &MetricComparison, observation: Observation) -> String {
    let word = words::verdict(metric, observation);
    match metric.verdict {
        Verdict::Regressed => format!("**{word}**"),
        _ => word,
    }
}

/// A table of the metrics over all cases; nothing of a single case.
fn over_all(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    if comparison.over_all.is_empty() {
        return Ok(());
    }
    let head = words::over_all_cases(comparison);
    writeln!(out, "| {head} | change | 95 % interval | verdict |")?;
    writeln!(out, "|---|--:|--:|---|")?;
    for over_all in &comparison.over_all {
        let figures = &over_all.figures;
        writeln!(
            out,
            "| {} | {} | {} | {} |",
            figures.metric.short_name(),
            words::change(figures.ratio),
            words::interval(figures),
            word(figures, words::observation(comparison)),
        )?;
    }
    writeln!(out)
}

/// Text that Markdown takes as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '<' | '>' | '|' | '[' | ']' | '#'
        ) {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' { ' ' } else { c });
    }
    escaped
}
