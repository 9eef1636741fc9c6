//! Both sides' figures as CSV for Apache Otava, which looks for changes in a series: a row a result file, by time,
//! and a column `CASE.METRIC`, or `CASE/FLOW.METRIC`, for each figure that all files have, since Otava takes no gaps.

use std::collections::HashMap;
use std::io::{self, Write};

use super::words;
use crate::judge::compare::model::Comparison;
use crate::observe::metric::Metric;
use crate::observe::standing;
use crate::results::load::{Found, Loaded};
use crate::results::model::CaseResult;
use crate::text;
use statistics::median;

/// Writes the document: `time`, `commit`, `side`, and the columns. A file's figure is the median of its runs.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, sides: [&Found; 2], out: impl Write) -> io::Result<()> {
    let kept = [&comparison.base.files, &comparison.new.files];
    let mut files: Vec<(&str, &Loaded)> = Vec::new();
    for ((found, kept), name) in sides.into_iter().zip(kept).zip(["base", "new"]) {
        let is_kept = |file: &&Loaded| kept.contains(&text::path(&file.path));
        files.extend(
            found
                .results
                .iter()
                .filter(is_kept)
                .map(|file| (name, file)),
        );
    }
    files.sort_by(|(_, a), (_, b)| a.result.started_at.cmp(&b.result.started_at));
    let by_id: Vec<HashMap<&str, &CaseResult>> = files
        .iter()
        .map(|(_, file)| {
            file.result
                .cases
                .iter()
                .map(|case| (case.id.as_str(), case))
                .collect()
        })
        .collect();
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    for case in &comparison.cases {
        for metric in &case.metrics {
            let values = by_id.iter().map(|cases| {
                cases
                    .get(case.id.as_str())
                    .and_then(|case| of_file(case, metric.metric, &metric.flow))
            });
            if let Some(values) = values.collect() {
                let subject = words::subject(case, metric);
                columns.push((format!("{subject}.{}", metric.metric.name()), values));
            }
        }
    }
    let mut csv = csv::Writer::from_writer(out);
    let header = ["time", "commit", "side"].into_iter();
    csv.write_record(header.chain(columns.iter().map(|(name, _)| name.as_str())))?;
    for (row, (side, file)) in files.iter().enumerate() {
        let tool = &file.result.tool;
        let commit = tool.git.as_ref().unwrap_or(&tool.version);
        let mut record = vec![
            whole_seconds(&file.result.started_at),
            commit.clone(),
            (*side).to_owned(),
        ];
        record.extend(
            columns
                .iter()
                .filter_map(|(_, values)| Some(values.get(row)?.to_string())),
        );
        csv.write_record(record)?;
    }
    csv.flush()
}

fn of_file(case: &CaseResult, metric: Metric, flow: &str) -> Option<f64> {
    let values: Vec<f64> = case
        .runs
        .iter()
        .filter(|run| standing::run_counts(run))
        .filter_map(|run| metric.of(run, run.flow(flow)))
        .collect();
    median(&values)
}

/// A time as RFC 3339 without what is below a second, which not every reader of dates takes.
fn whole_seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_end_in_seconds() {
        let whole = "2026-11-21T05:05:54Z";
        for time in ["2026-11-21T05:05:54.334950042Z", whole] {
            assert_eq!(whole_seconds(time), whole);
        }
    }
}
