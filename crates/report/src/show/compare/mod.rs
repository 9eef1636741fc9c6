//! The comparison as text for people and as documents for other programs, all from the same rows: a table for a
//! terminal, Markdown for a pull request, JUnit XML, and figures as other programs read them.

mod words;

use words::summary;
pub(crate) use words::{HEAD, answer, place_cells};

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use results::{
    load::{Found, Loaded},
    model::{
        CaseComparison, CaseResult, Comparison, NodesComparison, Observation, PlaceComparison,
        Verdict,
    },
    text,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use settings::Pattern;
use statistics::median;

use crate::judge::{compare::nodes::findings, finding::Finding};
use crate::observe::{Metric, Spread, format::counted, standing};
use crate::show::{
    compare::words::{Change, Row, flow, has_changed, of_case, of_cases, over_all},
    junit::{self, Outcome, TestCase, TestSuite},
};

const COLUMNS: usize = 100;

/// What is said of a comparison without a case.
pub const NONE_IN_COMMON: &str = "no case is on both sides";

/// Most flows of a case, and rounds of pairs, that are all shown; of more only the changed ones.
const MOST: usize = 8;
/// Most sides of nodes that are all shown.
const MOST_PLACES: usize = 32;

/// Writes the comparison for a terminal: what can be settled, then all cases together, then each, worst first; the sum last.
///
/// # Errors
/// The stream's.
pub fn write_table(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
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
    comparison.nodes.iter().try_for_each(|nodes| write_nodes(out, nodes))?;
    let cases = words::worst_first(comparison);
    if cases.iter().any(|case| !case.metrics.is_empty()) {
        writeln!(out)?;
        line(out, ' ', METRIC, &HEAD.map(str::to_owned))?;
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
    writeln!(out, "{}", summary(comparison))?;
    out.flush()
}

/// Width of the name of a metric.
const METRIC: usize = 9;

fn line(out: &mut impl Write, mark: char, width: usize, cells: &[String; 6]) -> io::Result<()> {
    let [name, base, new, change, interval, verdict] = cells;
    writeln!(
        out,
        "{mark} {name:<width$} {base:>14} {new:>14} {change:>9}  {interval:>18}  {verdict}"
    )
}

fn mark(verdict: Verdict) -> char {
    match verdict {
        Verdict::Slower => '!',
        Verdict::Faster => '+',
        _ => ' ',
    }
}

/// What a pattern says of its nodes, and a table of them, the worst first; of many nodes those that changed.
fn write_nodes(out: &mut impl Write, nodes: &NodesComparison) -> io::Result<()> {
    writeln!(out, "\n{}", nodes.title)?;
    findings(nodes).iter().try_for_each(|finding| wrapped(out, &finding.text))?;
    let mut places: Vec<&PlaceComparison> = nodes.places.iter().collect();
    places.sort_by_key(|place| Reverse(place.verdict));
    let changed = places.iter().filter(|place| has_changed(place.verdict)).count();
    let shown = if places.len() > MOST_PLACES { changed.max(MOST) } else { places.len() };
    let (rows, others) = places.split_at(shown.min(places.len()));
    let table: Vec<[String; 6]> =
        rows.iter().map(|place| place_cells(nodes.metric, place)).collect();
    let width = table.iter().map(|cells| cells[0].chars().count()).max().unwrap_or(0).max(METRIC);
    let mut head = HEAD.map(str::to_owned);
    "node".clone_into(&mut head[0]);
    line(out, ' ', width, &head)?;
    for (place, cells) in rows.iter().zip(&table) {
        line(out, mark(place.verdict), width, cells)?;
    }
    if !others.is_empty() {
        let counts = words::counts(others.iter().map(|place| place.verdict));
        writeln!(out, "  {} more: {counts}", others.len())?;
    }
    Ok(())
}

fn figures(out: &mut impl Write, row: &Row<'_>) -> io::Result<()> {
    let mut cells = row.cells();
    // Its flow stands above it.
    row.figures.metric.short_name().clone_into(&mut cells[0]);
    line(out, mark(row.figures.verdict), METRIC, &cells)
}

fn write_case(out: &mut impl Write, case: &CaseComparison) -> io::Result<()> {
    let (id, word, what) = (&case.id, case.verdict().name(), case.observation);
    let counts = match case.rounds.len() {
        0 => format!("{} and {}", case.base_count, case.new_count),
        rounds if rounds == case.base_count => rounds.to_string(),
        rounds => format!("{} of {rounds}", case.base_count),
    };
    writeln!(out, "\n{id}: {word} ({counts} {what})")?;
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
        let verdicts = words::counts(others.iter().map(|row| row.figures.verdict));
        let (flows, of) = (names.len() - changed.len(), names.len());
        wrapped(out, &format!("  {flows} more of {of} flows: {verdicts}"))?;
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
    for (note, count) in notes.iter().take(MOST) {
        wrapped(out, &format!("  {note} ({})", counted(*count, "round")))?;
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

/// Rows of a table, so that the text stays below the 65,536 characters of a comment on GitHub.
const ROWS: usize = 200;

const LINES: usize = 20;

/// Writes the comparison as Markdown, for a comment on a pull request: the sum, what changed, the rest folded.
///
/// # Errors
/// The stream's.
pub fn write_markdown(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    let out = &mut out;
    let cases = words::worst_first(comparison);
    let mark = match comparison.verdict() {
        Some(Verdict::Slower) => "❌",
        Some(Verdict::NotComparable | Verdict::NoVerdict | Verdict::Unclear) | None => "⚠️",
        Some(Verdict::Faster | Verdict::Equal) => "✅",
    };
    writeln!(out, "### {mark} rocebench: {}\n", summary(comparison))?;
    let [base, new] = [&comparison.base, &comparison.new].map(|it| escape(&words::side(it)));
    let what = "Change of the median with its 95 % interval.";
    writeln!(out, "Base {base}; new {new}. {what}\n")?;
    for text in words::no_verdicts(comparison) {
        writeln!(out, "**{}**\n", escape(&text))?;
    }
    if let Some(reach) = words::reach(comparison) {
        writeln!(out, "{}\n", escape(&reach))?;
    }
    let of_nodes: Vec<String> =
        (comparison.nodes.iter().flat_map(findings)).map(|finding| escape(&finding.text)).collect();
    markdown_list(out, &of_nodes, "sentences on nodes, which are in the table")?;
    let head = words::over_all_cases(comparison);
    let [_, _, _, change, interval, verdict] = HEAD;
    let over_all_heads = [&head, change, interval, verdict];
    markdown_table(out, &over_all_heads, over_all(comparison))?;
    let mut rows: Vec<Row<'_>> = cases.iter().flat_map(|case| of_case(case)).collect();
    rows.sort_by_key(|row| Reverse(row.figures.verdict));
    let (first, rest): (Vec<Row<'_>>, Vec<Row<'_>>) = rows
        .into_iter()
        .partition(|row| row.has_changed() || row.figures.verdict == Verdict::NoVerdict);
    let heads = [&["case"][..], &HEAD].concat();
    markdown_table(out, &heads, first.into_iter())?;
    let (mut not_comparable, mut notes) = (Vec::new(), Vec::new());
    for case in &cases {
        if !case.not_comparable.is_empty() {
            let reasons = escape(&case.not_comparable.join("; "));
            not_comparable.push(format!("`{}` is not comparable: {reasons}", case.id));
        }
        let missing = case.missing.iter().map(words::missing);
        not_comparable.extend(missing.map(|text| markdown_remark(case, &text)));
        // Where there is nothing to compare, notes add nothing to the reason.
        if case.not_comparable.is_empty() {
            notes.extend(case.notes.iter().map(|text| markdown_remark(case, text)));
        }
    }
    markdown_list(out, &not_comparable, "that are not comparable")?;
    markdown_list(out, &notes, "notes, which are in the table")?;
    if !rest.is_empty() {
        let unclear = rest.iter().filter(|it| it.figures.verdict == Verdict::Unclear).count();
        let equal = counted(rest.len() - unclear, "figure");
        writeln!(out, "<details><summary>{equal} equal, {unclear} unclear</summary>\n")?;
        markdown_table(out, &heads, rest.into_iter())?;
        writeln!(out, "</details>\n")?;
    }
    for remark in words::remarks(comparison) {
        writeln!(out, "- {}", escape(&remark))?;
    }
    out.flush()
}

fn markdown_remark(case: &CaseComparison, text: &str) -> String {
    format!("`{}`: {}", case.id, escape(text))
}

/// Texts, each with a dot before it; of many the first, and how many more.
fn markdown_list(out: &mut impl Write, texts: &[String], what: &str) -> io::Result<()> {
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

fn markdown_table<'a>(
    out: &mut impl Write,
    head: &[&str],
    rows: impl Iterator<Item = Row<'a>>,
) -> io::Result<()> {
    let mut remaining = rows.peekable();
    if remaining.peek().is_none() {
        return Ok(());
    }
    let lines = head.iter().map(|head| match *head {
        "base" | "new" | "change" | "95 % interval" => "--:",
        _ => "---",
    });
    writeln!(out, "| {} |", head.join(" | "))?;
    writeln!(out, "|{}|", lines.collect::<Vec<_>>().join("|"))?;
    for row in remaining.by_ref().take(ROWS) {
        let [name, base, new, change, interval, verdict] = row.cells();
        let verdict = match row.figures.verdict {
            Verdict::Slower => format!("**{verdict}**"),
            _ => verdict,
        };
        let name = match row.case {
            Some(case) => format!("`{}` | {} | {base} | {new}", case.id, escape(&name)),
            None => name,
        };
        writeln!(out, "| {name} | {change} | {interval} | {verdict} |")?;
    }
    if let more @ 1.. = remaining.count() {
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

/// Writes the comparison as JUnit XML: a suite for all cases together and one a case, a test a metric. A regression fails, what
/// is not comparable, not judged or missing is an error, what is unclear is skipped.
///
/// # Errors
/// The stream's.
pub fn write_junit(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    let mut suites = Vec::new();
    if !comparison.over_all.is_empty() {
        let mut suite = TestSuite::new(words::over_all_cases(comparison));
        suite.note("reach", words::reach(comparison));
        suite.add(over_all(comparison).map(|row| of_row(&row)));
        suites.push(suite);
    }
    suites.extend(comparison.nodes.iter().map(nodes_suite));
    suites.extend(test_suites(comparison));
    let files = comparison.refused.iter().map(|text| error("files", "readable", text));
    let missing = comparison.only_in_base.iter();
    let absent = missing.map(|id| error("cases", id, "missing in the new results"));
    let is_empty = comparison.cases.is_empty() && comparison.nodes.is_empty();
    let none = is_empty.then(|| error("cases", "compared", NONE_IN_COMMON));
    let of_all: Vec<TestCase> = files.chain(absent).chain(none).collect();
    if !of_all.is_empty() {
        let mut suite = TestSuite::new("files and cases");
        suite.add(of_all);
        suites.push(suite);
    }
    junit::write_document("rocebench compare", &suites, out)
}

/// A test for each direction of each node, and one for each node that is missing.
fn nodes_suite(nodes: &NodesComparison) -> TestSuite {
    let mut suite = TestSuite::new(nodes.title.as_str());
    suite.note("finding", findings(nodes).iter().map(|finding| &*finding.text));
    suite.add(nodes.places.iter().map(|place| {
        let [name, base, new, change, interval, word] = place_cells(nodes.metric, place);
        let text = format!("{base} -> {new}, {change} beside the others, 95 % interval {interval}");
        let outcome = match place.verdict {
            Verdict::Slower => Outcome::Failure(format!("{word}: {text}")),
            Verdict::Unclear => Outcome::Skipped(format!("{word}: {text}")),
            _ => Outcome::Passed,
        };
        TestCase::new(&nodes.title, &name, outcome).with("verdict", word).with_out(text)
    }));
    let missing = "the base has it, the new results have no figure";
    suite.add(
        (nodes.missing.iter())
            .map(|node| TestCase::new(&nodes.title, node, Outcome::Skipped(missing.to_owned()))),
    );
    suite
}

fn error(class: &str, name: &str, text: &str) -> TestCase {
    TestCase::new(class, name, Outcome::Error(text.to_owned()))
}

/// A suite a case. What was measured in turns is told and fails nothing, since nothing was demanded of it.
pub(crate) fn test_suites(comparison: &Comparison) -> impl Iterator<Item = TestSuite> {
    comparison.cases.iter().map(of_suite)
}

fn of_suite(case: &CaseComparison) -> TestSuite {
    let mut suite = TestSuite::new(case.id.as_str());
    if !case.not_comparable.is_empty() {
        let reasons = case.not_comparable.join("\n");
        suite.add([error(&case.id, "comparable", &reasons)]);
        return suite;
    }
    if let Some(reason) = &case.no_verdict {
        let text = format!("{reason}: {}", Verdict::NoVerdict.name());
        suite.add([error(&case.id, "judged", &text)]);
    }
    suite.note("note", case.notes.iter().map(String::as_str));
    suite.add(of_case(case).map(|row| of_row(&row)));
    suite.add(case.missing.iter().map(|missing| {
        let (name, text) = (test_name(missing.metric, &missing.flow), words::missing(missing));
        match missing.verdict {
            Verdict::Unclear => TestCase::new(&case.id, &name, Outcome::Skipped(text)),
            _ => error(&case.id, &name, &text),
        }
    }));
    suite
}

/// The metric, behind the flow where the case has several: `gbit_per_s`, `reverse/gbit_per_s`.
fn test_name(metric: Metric, of: &str) -> String {
    match flow(of) {
        Some(flow) => format!("{flow}/{}", metric.name()),
        None => metric.name().to_owned(),
    }
}

fn of_row(row: &Row<'_>) -> TestCase {
    let (figures, text) = (row.figures, row.text());
    let class = row.case.map_or("over all cases", |case| &case.id);
    let (name, word) = (test_name(figures.metric, &figures.flow), figures.verdict.name());
    let outcome = match figures.verdict {
        Verdict::Slower if row.observation != Observation::Round => {
            Outcome::Failure(format!("{word}: {text}"))
        }
        Verdict::Unclear => {
            let note = figures.note.as_deref().unwrap_or("the runs do not settle it");
            Outcome::Skipped(format!("{word}: {note}"))
        }
        Verdict::NoVerdict => Outcome::Skipped(word.to_owned()),
        _ => Outcome::Passed,
    };
    let test = TestCase::new(class, &name, outcome);
    test.with("verdict", word).with_out(text)
}

/// Writes [`Comparison`] as it is, and what changed for certain.
///
/// # Errors
/// The stream's.
pub fn write_json(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        comparison: &'a Comparison,
        findings: Vec<Change<'a>>,
        node_findings: Vec<Finding>,
    }
    let rows = over_all(comparison).chain(of_cases(comparison));
    let document = Document {
        comparison,
        findings: rows.filter_map(|row| row.change()).collect(),
        node_findings: comparison.nodes.iter().flat_map(findings).collect(),
    };
    pretty(out, &document)
}

/// Writes the new side's figures in Bencher's metric format (BMF): median, and the lowest and highest as bounds. Cases that are
/// not comparable are left out, since their figures are not valid or not of the same thing.
///
/// # Errors
/// The stream's.
pub fn write_bmf(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    let mut benchmarks = Map::new();
    for (row, new) in new_sides(comparison) {
        let measures = benchmarks.entry(row.subject());
        measures.or_insert_with(|| json!({}))[row.figures.metric.name()] = json!({
            "value": new.median, "lower_value": new.low, "upper_value": new.high,
        });
    }
    pretty(out, &Value::Object(benchmarks))
}

/// Writes the new side's figures of which more is better, or the others, for the GitHub action github-action-benchmark. It
/// takes one direction a file: its tools are `customBiggerIsBetter` and `customSmallerIsBetter`.
///
/// # Errors
/// The stream's.
pub fn write_action(
    comparison: &Comparison,
    bigger_is_better: bool,
    out: impl Write,
) -> io::Result<()> {
    let rows =
        new_sides(comparison).filter(|(row, _)| row.figures.higher_is_better == bigger_is_better);
    pretty(out, &rows.map(|(row, new)| {
        let (figures, [.., change, interval, _]) = (row.figures, row.cells());
        let notes: String = row.case.iter().flat_map(|case| &case.notes).map(|note| format!("\n{note}")).collect();
        let (word, count, what) = (figures.verdict.name(), figures.new.len(), row.observation);
        let unit = Some(figures.unit.as_str()).filter(|unit| !unit.is_empty());
        json!({
            "name": format!("{}/{}", row.subject(), figures.metric.name()),
            "unit": unit.unwrap_or("1"),
            "value": new.median,
            "range": format!("± {}", (new.high - new.low) / 2.0),
            "extra": format!("{word}: {change}, 95 % interval {interval}\n{count} {what}{notes}"),
        })
    }).collect::<Vec<Value>>())
}

/// Each figure with the new side's median, lowest and highest.
fn new_sides(comparison: &Comparison) -> impl Iterator<Item = (Row<'_>, Spread)> {
    let rows = of_cases(comparison);
    rows.filter_map(|row| Some((row, Spread::new(row.figures.new.iter().copied())?)))
}

fn pretty(mut out: impl Write, document: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut out, document)?;
    writeln!(out)
}

/// Writes both sides' figures as CSV for Apache Otava, which looks for changes in a series: a row a result file, by time, with
/// `time`, `commit` and `side`, and a column `CASE.METRIC`, or `CASE/FLOW.METRIC`, for each figure that all files have, since
/// Otava takes no gaps. A file's figure is the median of its runs.
///
/// # Errors
/// The stream's.
pub fn write_otava(comparison: &Comparison, sides: [&Found; 2], out: impl Write) -> io::Result<()> {
    let used = [&comparison.base.files, &comparison.new.files];
    let mut files: Vec<(&str, &Loaded)> = Vec::new();
    for ((found, kept), side) in sides.into_iter().zip(used).zip(["base", "new"]) {
        let results = found.results.iter().filter(|file| kept.contains(&text::path(&file.path)));
        files.extend(results.map(|file| (side, file)));
    }
    files.sort_by(|(_, a), (_, b)| a.result.started_at.cmp(&b.result.started_at));
    let by_id: Vec<HashMap<&str, &CaseResult>> = (files.iter())
        .map(|(_, file)| file.result.cases.iter().map(|it| (&*it.id, it)).collect())
        .collect();
    let columns: Vec<(String, Vec<f64>)> = of_cases(comparison)
        .filter_map(|row| {
            let metric = row.figures.metric;
            let values: Vec<f64> = by_id
                .iter()
                .map(|cases| {
                    let case = cases.get(&*row.case?.id)?;
                    of_file(case, metric, &row.figures.flow)
                })
                .collect::<Option<_>>()?;
            Some((format!("{}.{}", row.subject(), metric.name()), values))
        })
        .collect();
    let mut csv = csv::Writer::from_writer(out);
    let header = ["time", "commit", "side"].into_iter();
    csv.write_record(header.chain(columns.iter().map(|(name, _)| name.as_str())))?;
    for (row, (side, file)) in files.iter().enumerate() {
        let (tool, started_at) = (&file.result.tool, &file.result.started_at);
        // Not every reader of dates takes what is below a second.
        let time = started_at
            .split_once('.')
            .map_or_else(|| started_at.clone(), |(seconds, _)| format!("{seconds}Z"));
        let commit = tool.git.as_ref().unwrap_or(&tool.version);
        let values = columns.iter().map(|(_, values)| values[row].to_string());
        let of_file = [time, commit.clone(), (*side).to_owned()].into_iter();
        csv.write_record(of_file.chain(values))?;
    }
    csv.flush()
}

fn of_file(case: &CaseResult, metric: Metric, flow: &str) -> Option<f64> {
    let values = case
        .runs
        .iter()
        .filter(|run| standing::run_counts(run))
        .filter_map(|run| metric.of(run, run.flow(flow)));
    median(&values.collect::<Vec<f64>>())
}

#[cfg(test)]
mod tests;
