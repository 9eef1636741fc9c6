//! JUnit XML: test cases of each kind, and the document. It must not know what is tested.

pub mod sweep;

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};

/// A test that passed.
pub(crate) fn passed(class: &str, name: &str) -> TestCase {
    test(class, name, TestCaseStatus::success(), "")
}

/// A test that failed, or could not be judged.
pub(crate) fn not_passed(class: &str, name: &str, kind: NonSuccessKind, message: &str) -> TestCase {
    test(class, name, TestCaseStatus::non_success(kind), message)
}

/// A test that was left out.
pub(crate) fn skipped(class: &str, name: &str, message: &str) -> TestCase {
    test(class, name, TestCaseStatus::skipped(), message)
}

fn test(class: &str, name: &str, mut status: TestCaseStatus, message: &str) -> TestCase {
    if !message.is_empty() {
        status.set_message(message);
    }
    let mut test = TestCase::new(name, status);
    test.set_classname(class);
    test
}

/// Writes the document.
///
/// # Errors
/// The stream's.
pub(crate) fn write(report: &Report, mut out: impl Write) -> io::Result<()> {
    let text = report.to_string().map_err(io::Error::other)?;
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        writeln!(out)?;
    }
    out.flush()
}
