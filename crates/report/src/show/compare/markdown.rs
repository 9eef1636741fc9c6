//! The comparison as Markdown, for a comment on a pull request: the sum, what changed, the rest folded.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::rows::{HEAD, Row, of_case, over_all};
use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, Verdict};
use crate::observe::format::counted;

/// Rows of a table, so that the text stays below the 65,536 characters of a comment on GitHub.
const ROWS: usize = 200;

const LINES: usize = 20;

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    let cases = words::worst_first(comparison);
    let mark = match comparison.verdict() {
        Some(Verdict::Regressed) => "❌",
        Some(Verdict::NotComparable | Verdict::NoVerdict | Verdict::Unclear) | None => "⚠️",
        Some(Verdict::Improved | Verdict::Equal) => "✅",
    };
    writeln!(out, "### {mark} rocebench: {}\n", words::summary(comparison))?;
    let [base, new] = [&comparison.base, &comparison.new].map(|it| escape(&words::side(it)));
    let what = "Change of the median with its 95 % interval.";
    writeln!(out, "Base {base}; new {new}. {what}\n")?;
    for text in words::no_verdicts(comparison) {
        writeln!(out, "**{}**\n", escape(&text))?;
    }
    if let Some(reach) = words::reach(comparison) {
        writeln!(out, "{}\n", escape(&reach))?;
    }
    let head = words::over_all_cases(comparison);
    let [_, _, _, change, interval, verdict] = HEAD;
    let heads = [&head, change, interval, verdict];
    table(out, &heads, over_all(comparison))?;
    let mut rows: Vec<Row<'_>> = cases.iter().flat_map(|case| of_case(case)).collect();
    rows.sort_by_key(|row| Reverse(row.figures.verdict));
    let (first, rest): (Vec<Row<'_>>, Vec<Row<'_>>) = rows
        .into_iter()
        .partition(|row| row.has_changed() || row.figures.verdict == Verdict::NoVerdict);
    let heads = [&["case"][..], &HEAD].concat();
    table(out, &heads, first.into_iter())?;
    let (mut not_comparable, mut notes) = (Vec::new(), Vec::new());
    for case in &cases {
        if !case.not_comparable.is_empty() {
            let reasons = escape(&case.not_comparable.join("; "));
            not_comparable.push(format!("`{}` is not comparable: {reasons}", case.id));
        }
        let missing = case.missing.iter().map(words::missing);
        not_comparable.extend(missing.map(|text| remark(case, &text)));
        // Where there is nothing to compare, notes add nothing to the reason.
        if case.not_comparable.is_empty() {
            notes.extend(case.notes.iter().map(|text| remark(case, text)));
        }
    }
    list(out, &not_comparable, "that are not comparable")?;
    list(out, &notes, "notes, which are in the table")?;
    if !rest.is_empty() {
        let unclear = rest.iter().filter(|it| it.figures.verdict == Verdict::Unclear).count();
        let equal = counted(rest.len() - unclear, "figure");
        writeln!(out, "<details><summary>{equal} equal, {unclear} unclear</summary>\n")?;
        table(out, &heads, rest.into_iter())?;
        writeln!(out, "</details>\n")?;
    }
    for remark in words::remarks(comparison) {
        writeln!(out, "- {}", escape(&remark))?;
    }
    out.flush()
}

fn remark(case: &CaseComparison, text: &str) -> String {
    format!("`{}`: {}", case.id, escape(text))
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

fn table<'a>(
    out: &mut impl Write,
    head: &[&str],
    rows: impl Iterator<Item = Row<'a>>,
) -> io::Result<()> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let lines = head.iter().map(|head| match *head {
        "base" | "new" | "change" | "95 % interval" => "--:",
        _ => "---",
    });
    writeln!(out, "| {} |", head.join(" | "))?;
    writeln!(out, "|{}|", lines.collect::<Vec<_>>().join("|"))?;
    for row in rows.by_ref().take(ROWS) {
        let [name, base, new, change, interval, verdict] = row.cells();
        let verdict = match row.figures.verdict {
            Verdict::Regressed => format!("**{verdict}**"),
            _ => verdict,
        };
        let name = match row.case {
            Some(case) => format!("`{}` | {} | {base} | {new}", case.id, escape(&name)),
            None => name,
        };
        writeln!(out, "| {name} | {change} | {interval} | {verdict} |")?;
    }
    if let more @ 1.. = rows.count() {
        writeln!(out, "\n… and {more} more")?;
    }
    writeln!(out)
}

/// Text that Markdown takes as it is.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\`*_<>|[]#".contains(c) {
            escaped.push('\\');
        }
        escaped.push(if c == '\n' { ' ' } else { c });
    }
    escaped
}
