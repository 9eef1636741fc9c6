//! The new side's figures for the GitHub action github-action-benchmark. It takes one direction a file, so there
//! are two documents: for its tools `customBiggerIsBetter` and `customSmallerIsBetter`.

use std::io::{self, Write};

use serde::Serialize;

use super::words;
use crate::judge::compare::model::Comparison;

/// One figure, as the action reads it.
#[derive(Serialize)]
struct Entry {
    name: String,
    unit: String,
    value: f64,
    range: String,
    extra: String,
}

/// Writes the figures of which more is better, or the others.
///
/// # Errors
/// The stream's.
pub fn write(
    comparison: &Comparison,
    bigger_is_better: bool,
    mut out: impl Write,
) -> io::Result<()> {
    let mut entries = Vec::new();
    for case in &comparison.cases {
        for metric in &case.metrics {
            if metric.higher_is_better != bigger_is_better {
                continue;
            }
            let lowest = metric.new.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = metric.new.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            entries.push(Entry {
                name: format!("{}/{}", words::subject(case, metric), metric.metric.name()),
                unit: match metric.unit.as_str() {
                    "" => "1".to_owned(),
                    unit => unit.to_owned(),
                },
                value: metric.new_median,
                range: format!("± {}", (highest - lowest) / 2.0),
                extra: format!(
                    "{}: {}, 95 % interval {}\n{} {}{}",
                    metric.verdict.name(),
                    words::change(metric.ratio),
                    words::interval(metric),
                    metric.new.len(),
                    words::figures(case.observation),
                    case.notes
                        .iter()
                        .map(|note| format!("\n{note}"))
                        .collect::<String>(),
                ),
            });
        }
    }
    serde_json::to_writer_pretty(&mut out, &entries)?;
    writeln!(out)
}
