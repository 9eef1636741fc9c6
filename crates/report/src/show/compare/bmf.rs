//! The new side's figures in Bencher's metric format (BMF): median, and the lowest and highest as bounds.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::words;
use crate::judge::compare::model::Comparison;

/// Writes the document. Metrics of cases that are not comparable are left out, since they are not valid
/// or not of the same thing.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    let mut benchmarks = Map::new();
    for case in &comparison.cases {
        for metric in &case.metrics {
            let lowest = metric.new.iter().copied().fold(f64::INFINITY, f64::min);
            let highest = metric.new.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let measures = benchmarks.entry(words::subject(case, metric));
            measures.or_insert_with(|| json!({}))[metric.metric.name()] = json!({
                "value": metric.new_median, "lower_value": lowest, "upper_value": highest,
            });
        }
    }
    serde_json::to_writer_pretty(&mut out, &Value::Object(benchmarks))?;
    writeln!(out)
}
