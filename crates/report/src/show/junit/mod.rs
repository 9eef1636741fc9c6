//! JUnit XML: test cases of each kind, and the document.

pub mod sweep;

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};

use results::text::printable_lines;

/// Tests of one kind, and what is to be known of all of them.
pub(crate) struct TestSuite {
    name: String,
    properties: Properties,
    tests: Vec<TestCase>,
}

pub(crate) struct TestCase {
    class: String,
    name: String,
    outcome: Outcome,
    properties: Properties,
    out: Option<String>,
}

type Properties = Vec<(&'static str, String)>;

/// What became of a test, with a message where it did not pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

impl Outcome {
    fn is_failure(&self) -> bool {
        matches!(self, Outcome::Failure(_))
    }

    fn is_error(&self) -> bool {
        matches!(self, Outcome::Error(_))
    }

    fn is_skipped(&self) -> bool {
        matches!(self, Outcome::Skipped(_))
    }
}

impl TestCase {
    pub(crate) fn new(class: &str, name: &str, outcome: Outcome) -> TestCase {
        TestCase {
            class: class.to_owned(),
            name: name.to_owned(),
            outcome,
            properties: Vec::new(),
            out: None,
        }
    }

    pub(crate) fn with_out(self, text: impl Into<String>) -> TestCase {
        let out = Some(text.into());
        TestCase { out, ..self }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> TestCase {
        self.properties.push((name, value.into()));
        self
    }

    fn markup(&self) -> Markup {
        html! {
            testcase name=(self.name) classname=(self.class) {
                (markup(&self.properties))
                @match &self.outcome {
                    Outcome::Passed => {}
                    Outcome::Failure(message) => failure message=(message) {}
                    Outcome::Error(message) => error message=(message) {}
                    Outcome::Skipped(message) => skipped message=(message) {}
                }
                @if let Some(out) = &self.out { system-out { (out) } }
            }
            "\n"
        }
    }
}

impl TestSuite {
    pub(crate) fn new(name: impl Into<String>) -> TestSuite {
        TestSuite { name: name.into(), properties: Vec::new(), tests: Vec::new() }
    }

    pub(crate) fn add(&mut self, tests: impl IntoIterator<Item = TestCase>) {
        self.tests.extend(tests);
    }

    pub(crate) fn note<T: Into<String>>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = T>,
    ) {
        self.properties.extend(values.into_iter().map(|value| (name, value.into())));
    }

    fn count(&self, is: fn(&Outcome) -> bool) -> usize {
        self.tests.iter().filter(|test| is(&test.outcome)).count()
    }
}

fn markup(properties: &Properties) -> Markup {
    html! {
        @if !properties.is_empty() {
            properties {
                @for (name, value) in properties { property name=(name) value=(value) {} }
            }
        }
    }
}

/// Writes the document.
///
/// # Errors
/// The stream's.
pub(crate) fn write(name: &str, suites: &[TestSuite], mut out: impl Write) -> io::Result<()> {
    let tests: usize = suites.iter().map(|suite| suite.tests.len()).sum();
    let failures: usize = suites.iter().map(|suite| suite.count(Outcome::is_failure)).sum();
    let errors: usize = suites.iter().map(|suite| suite.count(Outcome::is_error)).sum();
    let document = html! {
        (PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"))
        testsuites name=(name) tests=(tests) failures=(failures) errors=(errors) {
            "\n"
            @for suite in suites {
                testsuite name=(suite.name) tests=(suite.tests.len()) failures=(suite.count(Outcome::is_failure))
                    errors=(suite.count(Outcome::is_error)) skipped=(suite.count(Outcome::is_skipped)) {
                    (markup(&suite.properties)) "\n"
                    @for test in &suite.tests { (test.markup()) }
                }
                "\n"
            }
        }
    };
    // XML has no place for what drives a terminal.
    let text = printable_lines(&document.into_string(), usize::MAX);
    writeln!(out, "{text}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use quick_junit::Report;

    use super::*;

    #[test]
    fn whatever_a_text_holds_the_document_can_be_read() {
        let text = "<a> & \"b\" \u{1b}[31m\0\u{ffff}";
        let kinds = [Outcome::Failure, Outcome::Error, Outcome::Skipped];
        let tests = kinds.map(|of| TestCase::new(text, text, of(text.to_owned())));
        let mut suite = TestSuite::new(text);
        suite.note("note", [text]);
        suite.add(tests.map(|it| it.with("x", text).with_out(text)));
        let mut out = Vec::new();
        write("all", &[suite], &mut out).unwrap();
        let read = Report::deserialize_from_str(&String::from_utf8(out).unwrap()).unwrap();
        let shown = "<a> & \"b\" \\u{1b}[31m\\0\\u{ffff}";
        assert_eq!(read.test_suites[0].name.as_str(), shown);
        assert_eq!((read.tests, read.failures, read.errors), (3, 1, 1));
    }
}
