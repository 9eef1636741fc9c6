//! The figures of a comparison for other programs: all of it as JSON, the new side's for Bencher and for
//! github-action-benchmark, both sides' for Apache Otava.

use std::collections::HashMap;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rows::{Change, Row, of_cases, over_all};
use crate::judge::compare::model::Comparison;
use crate::observe::{Metric, Spread, standing};
use results::load::{Found, Loaded};
use results::model::CaseResult;
use results::text;
use statistics::median;

/// Writes [`Comparison`] as it is, and what changed for certain.
///
/// # Errors
/// The stream's.
pub fn json(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        comparison: &'a Comparison,
        findings: Vec<Change<'a>>,
    }
    let rows = over_all(comparison).chain(of_cases(comparison));
    let document = Document { comparison, findings: rows.filter_map(|row| row.change()).collect() };
    pretty(out, &document)
}

/// Writes the new side's figures in Bencher's metric format (BMF): median, and the lowest and highest as bounds. Cases that are
/// not comparable are left out, since their figures are not valid or not of the same thing.
///
/// # Errors
/// The stream's.
pub fn bmf(comparison: &Comparison, out: impl Write) -> io::Result<()> {
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
pub fn action(comparison: &Comparison, bigger_is_better: bool, out: impl Write) -> io::Result<()> {
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
pub fn otava(comparison: &Comparison, sides: [&Found; 2], out: impl Write) -> io::Result<()> {
    let kept = [&comparison.base.files, &comparison.new.files];
    let mut files: Vec<(&str, &Loaded)> = Vec::new();
    for ((found, kept), side) in sides.into_iter().zip(kept).zip(["base", "new"]) {
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
        let (tool, time) = (&file.result.tool, &file.result.started_at);
        // Not every reader of dates takes what is below a second.
        let time = time
            .split_once('.')
            .map_or_else(|| file.result.started_at.clone(), |(it, _)| format!("{it}Z"));
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
