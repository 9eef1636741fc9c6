//! The comparison as JUnit XML: a suite for all cases together and one a case, a test a metric. A regression fails, what is not comparable or not
//! judged is an error, what is unclear is skipped.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestSuite};

use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, MetricComparison, Verdict};
use crate::observe::metric::Metric;
use crate::show::junit::{self, not_passed, passed, skipped};

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    let mut report = Report::new("rocebench compare");
    if !comparison.over_all.is_empty() {
        report.add_test_suite(over_all(comparison));
    }
    for case in &comparison.cases {
        report.add_test_suite(suite(case));
    }
    if !comparison.refused.is_empty() {
        let mut suite = TestSuite::new("files");
        for text in &comparison.refused {
            suite.add_test_case(not_passed("files", "readable", NonSuccessKind::Error, text));
        }
        report.add_test_suite(suite);
    }
    junit::write(&report, out)
}

fn over_all(comparison: &Comparison) -> TestSuite {
    let mut suite = TestSuite::new(words::over_all_cases(comparison));
    if let Some(reach) = words::reach(comparison) {
        suite.add_property(Property::new("reach", reach));
    }
    for over_all in &comparison.over_all {
        let figures = &over_all.figures;
        let change = words::change(figures.ratio);
        let text = format!("{change}, 95 % interval {}", words::interval(figures));
        suite.add_test_case(of_metric("over all cases", figures, text));
    }
    suite
}

fn suite(case: &CaseComparison) -> TestSuite {
    let mut suite = TestSuite::new(case.id.as_str());
    if !case.not_comparable.is_empty() {
        let reasons = case.not_comparable.join("\n");
        suite.add_test_case(not_passed(
            &case.id,
            "comparable",
            NonSuccessKind::Error,
            &reasons,
        ));
        return suite;
    }
    if let Some(reason) = &case.no_verdict {
        let text = format!("{reason}: {}", Verdict::NoVerdict.name());
        suite.add_test_case(not_passed(&case.id, "judged", NonSuccessKind::Error, &text));
    }
    for note in &case.notes {
        suite.add_property(Property::new("note", note.as_str()));
    }
    for metric in &case.metrics {
        let figures = words::figures_of(metric);
        suite.add_test_case(of_metric(&case.id, metric, figures));
    }
    for missing in &case.missing {
        let (name, text) = (name(missing.metric, &missing.flow), words::missing(missing));
        suite.add_test_case(match missing.verdict {
            Verdict::Unclear => skipped(&case.id, &name, &text),
            _ => not_passed(&case.id, &name, NonSuccessKind::Error, &text),
        });
    }
    suite
}

/// `gbit_per_s`, `reverse/gbit_per_s`.
fn name(metric: Metric, flow: &str) -> String {
    match words::flow(flow) {
        Some(flow) => format!("{flow}/{}", metric.name()),
        None => metric.name().to_owned(),
    }
}

fn of_metric(class: &str, metric: &MetricComparison, figures: String) -> TestCase {
    let name = &*name(metric.metric, &metric.flow);
    let mut test = match metric.verdict {
        Verdict::Regressed => not_passed(
            class,
            name,
            NonSuccessKind::Failure,
            &format!("regressed: {figures}"),
        ),
        Verdict::Unclear => {
            let note = metric
                .note
                .as_deref()
                .unwrap_or("the runs do not settle it");
            skipped(class, name, &format!("unclear: {note}"))
        }
        Verdict::NoVerdict => skipped(class, name, metric.verdict.name()),
        _ => passed(class, name),
    };
    test.set_system_out(figures);
    test.add_property(Property::new("verdict", metric.verdict.name()));
    test
}
