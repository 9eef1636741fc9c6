//! The comparison as JUnit XML: a suite for all cases together and one a case, a test a metric. A regression fails, what is not comparable or not
//! judged is an error, what is unclear is skipped.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestSuite};

use super::rows::{Row, flow, of_case, over_all};
use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, Verdict};
use crate::observe::Metric;
use crate::show::junit::{self, not_passed, passed, skipped};

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    let mut report = Report::new("rocebench compare");
    if !comparison.over_all.is_empty() {
        let mut suite = TestSuite::new(words::over_all_cases(comparison));
        let reach = words::reach(comparison);
        suite.add_properties(reach.map(|reach| Property::new("reach", reach)));
        suite.add_test_cases(over_all(comparison).map(|row| of_row(&row)));
        report.add_test_suite(suite);
    }
    report.add_test_suites(comparison.cases.iter().map(of_suite));
    if !comparison.refused.is_empty() {
        let mut suite = TestSuite::new("files");
        let refused = comparison.refused.iter();
        suite.add_test_cases(refused.map(|text| error("files", "readable", text)));
        report.add_test_suite(suite);
    }
    junit::write(&report, out)
}

fn error(class: &str, name: &str, text: &str) -> TestCase {
    not_passed(class, name, NonSuccessKind::Error, text)
}

fn of_suite(case: &CaseComparison) -> TestSuite {
    let mut suite = TestSuite::new(case.id.as_str());
    if !case.not_comparable.is_empty() {
        let reasons = case.not_comparable.join("\n");
        suite.add_test_case(error(&case.id, "comparable", &reasons));
        return suite;
    }
    if let Some(reason) = &case.no_verdict {
        let text = format!("{reason}: {}", Verdict::NoVerdict.name());
        suite.add_test_case(error(&case.id, "judged", &text));
    }
    let notes = case.notes.iter();
    suite.add_properties(notes.map(|note| Property::new("note", note.as_str())));
    suite.add_test_cases(of_case(case).map(|row| of_row(&row)));
    suite.add_test_cases(case.missing.iter().map(|missing| {
        let (name, text) = (name(missing.metric, &missing.flow), words::missing(missing));
        match missing.verdict {
            Verdict::Unclear => skipped(&case.id, &name, &text),
            _ => error(&case.id, &name, &text),
        }
    }));
    suite
}

/// `gbit_per_s`, `reverse/gbit_per_s`.
fn name(metric: Metric, of: &str) -> String {
    match flow(of) {
        Some(flow) => format!("{flow}/{}", metric.name()),
        None => metric.name().to_owned(),
    }
}

fn of_row(row: &Row<'_>) -> TestCase {
    let (figures, told) = (row.figures, row.text());
    let class = row.case.map_or("over all cases", |case| &case.id);
    let (name, word) = (name(figures.metric, &figures.flow), figures.verdict.name());
    let mut test = match figures.verdict {
        Verdict::Regressed => {
            let text = format!("{word}: {told}");
            not_passed(class, &name, NonSuccessKind::Failure, &text)
        }
        Verdict::Unclear => {
            let note = figures.note.as_deref();
            let note = note.unwrap_or("the runs do not settle it");
            skipped(class, &name, &format!("{word}: {note}"))
        }
        Verdict::NoVerdict => skipped(class, &name, word),
        _ => passed(class, &name),
    };
    test.set_system_out(told);
    test.add_property(Property::new("verdict", word));
    test
}
