//! The comparison as JUnit XML: a suite for all cases together and one a case, a test a metric. A regression fails, what is not comparable or not
//! judged is an error, what is unclear is skipped.

use std::io::{self, Write};

use super::rows::{Row, flow, of_case, over_all};
use super::words;
use crate::judge::compare::model::{CaseComparison, Comparison, Verdict};
use crate::observe::Metric;
use crate::show::junit::{self, Outcome, TestCase, TestSuite};

/// Writes the document.
///
/// # Errors
/// The stream's.
pub fn write(comparison: &Comparison, out: impl Write) -> io::Result<()> {
    let mut suites = Vec::new();
    if !comparison.over_all.is_empty() {
        let mut suite = TestSuite::new(words::over_all_cases(comparison));
        suite.note("reach", words::reach(comparison));
        suite.add(over_all(comparison).map(|row| of_row(&row)));
        suites.push(suite);
    }
    suites.extend(comparison.cases.iter().map(of_suite));
    if !comparison.refused.is_empty() {
        let mut suite = TestSuite::new("files");
        let refused = comparison.refused.iter();
        suite.add(refused.map(|text| error("files", "readable", text)));
        suites.push(suite);
    }
    junit::write("rocebench compare", &suites, out)
}

fn error(class: &str, name: &str, text: &str) -> TestCase {
    TestCase::new(class, name, Outcome::Error(text.to_owned()))
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
        let (name, text) = (name(missing.metric, &missing.flow), words::missing(missing));
        match missing.verdict {
            Verdict::Unclear => TestCase::new(&case.id, &name, Outcome::Skipped(text)),
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
    let outcome = match figures.verdict {
        Verdict::Regressed => Outcome::Failure(format!("{word}: {told}")),
        Verdict::Unclear => {
            let note = figures.note.as_deref().unwrap_or("the runs do not settle it");
            Outcome::Skipped(format!("{word}: {note}"))
        }
        Verdict::NoVerdict => Outcome::Skipped(word.to_owned()),
        _ => Outcome::Passed,
    };
    let test = TestCase::new(class, &name, outcome);
    test.with("verdict", word).with_out(told)
}
