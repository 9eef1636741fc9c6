//! The comparison as JSON: [`Comparison`] as it is, and what changed for certain.

use std::io::{self, Write};

use serde::Serialize;

use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, MetricComparison, Verdict};
use crate::observe::Metric;

/// A figure that changed for certain.
#[derive(Serialize)]
struct Change<'a> {
    finding: Verdict,
    case: &'a str,
    flow: &'a str,
    metric: Metric,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    sentence: String,
}

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, mut out: impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Document<'a> {
        #[serde(flatten)]
        comparison: &'a Comparison,
        findings: Vec<Change<'a>>,
    }
    let cases = comparison.cases.iter().flat_map(|case| {
        let metrics = case.metrics.iter();
        metrics.filter_map(move |metric| change(case, metric))
    });
    let document = Document {
        comparison,
        findings: cases.collect(),
    };
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)
}

fn change<'a>(case: &'a CaseComparison, metric: &'a MetricComparison) -> Option<Change<'a>> {
    let is_sure = matches!(metric.verdict, Verdict::Regressed | Verdict::Improved);
    is_sure.then(|| Change {
        finding: metric.verdict,
        case: &case.id,
        flow: &metric.flow,
        metric: metric.metric,
        ratio: metric.ratio,
        low: metric.low,
        high: metric.high,
        sentence: format!(
            "{}, {} {}: {}.",
            case.id,
            words::figure(metric.metric, &metric.flow),
            metric.verdict.name(),
            words::figures_of(metric)
        ),
    })
}
