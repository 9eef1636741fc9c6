//! A sweep as JUnit XML: a suite a case, or all rounds of a pattern; in it a test a flow and one a run. Then test
//! cases of each kind, and the document, which a comparison has too.

use std::io::{self, Write};

use maud::{Markup, PreEscaped, html};
use results::{
    model::{Comparison, ResultFile, Run, StageResult, StageVerdict},
    text::printable_lines,
};

use crate::judge::{
    findings::Findings,
    threshold::{Demands, Judged, Suite, judge},
};
use crate::observe::standing::{self, Standing};
use crate::show::{check, compare};

/// Writes the document; where nothing is demanded a flow passes that has a figure. What is said of a suite's cases is a
/// property of it.
///
/// # Errors
/// The stream's.
pub fn write(
    file: &ResultFile,
    report: &Findings,
    demands: &Demands,
    out: impl Write,
) -> io::Result<()> {
    let mut suites: Vec<TestSuite> = acceptance(&file.stages).into_iter().collect();
    for judged in judge(file, demands) {
        let mut suite = test_suite(&judged, demands);
        for (option, value) in demands.options() {
            suite.note(option, [value]);
        }
        let ids: Vec<&str> = judged.cases.iter().map(|case| case.id.as_str()).collect();
        let own = report.iter().filter(|finding| {
            finding.case().is_some_and(|case| case == judged.title || ids.contains(&case))
        });
        for finding in own {
            suite.note("finding", [&finding.text]);
            suite.note("finding.json", [serde_json::to_string(finding)?]);
        }
        suites.push(suite);
    }
    suites.extend(report.check.iter().map(|found| check::test_suite(found, file)));
    suites.extend(Comparison::in_turns(file).iter().flat_map(compare::test_suites));
    write_document("rocebench", &suites, out)
}

fn test_suite(judged: &Suite<'_>, demands: &Demands) -> TestSuite {
    let title = judged.title.as_str();
    let mut suite = TestSuite::new(title);
    let is_demanded = !demands.are_none();
    suite.add((judged.flows.iter()).map(|flow| flow_test(title, flow, is_demanded)));
    for case in &judged.cases {
        let round = match judged.cases.len() {
            1 => String::new(),
            _ => format!("{} ", case.id),
        };
        suite.add(
            case.runs.iter().map(|run| run_test(title, &format!("{round}run {}", run.run), run)),
        );
    }
    suite
}

/// A test for each stage; `None` of a result without stages.
fn acceptance(stages: &[StageResult]) -> Option<TestSuite> {
    let mut suite = TestSuite::new("accept");
    suite.add(stages.iter().map(|stage| {
        let outcome = match stage.verdict {
            StageVerdict::Ok => Outcome::Passed,
            StageVerdict::Failed => Outcome::Failure(stage.text.clone()),
            StageVerdict::NotJudged => Outcome::Error(stage.text.clone()),
        };
        TestCase::new("accept", &stage.name, outcome).with_out(&*stage.text)
    }));
    (!stages.is_empty()).then_some(suite)
}

/// Where nothing is demanded a flow without a figure is no error: the runs that brought none are.
fn flow_test(class: &str, flow: &Judged, is_demanded: bool) -> TestCase {
    let outcome = match flow.failure.clone() {
        Some(failure) if flow.is_broken => Outcome::Failure(failure),
        Some(failure) if is_demanded => Outcome::Error(failure),
        Some(failure) => Outcome::Skipped(failure),
        None => Outcome::Passed,
    };
    let test = TestCase::new(class, &flow.name, outcome);
    match flow.gbit_per_s {
        Some(gbit_per_s) => test.with_out(format!("{gbit_per_s:.3} Gb/s")),
        None => test,
    }
}

fn run_test(class: &str, name: &str, run: &Run) -> TestCase {
    let hint = (run.failure.as_ref().and_then(|it| it.hint.as_ref()))
        .map_or_else(String::new, |hint| format!("; {hint}"));
    let outcome = match standing::of_run(run) {
        Standing::Counts => Outcome::Passed,
        Standing::Stopped => Outcome::Error("stopped by the user".to_owned()),
        Standing::Doubtful(kind) => {
            let reason = standing::reason(kind);
            Outcome::Skipped(format!("{}: {}. {}", kind.name(), reason.cause, reason.remedy))
        }
        Standing::Bad(reason) => Outcome::Error(format!("the run {reason}{hint}")),
    };
    TestCase::new(class, name, outcome)
}

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
pub(crate) fn write_document(
    name: &str,
    suites: &[TestSuite],
    mut out: impl Write,
) -> io::Result<()> {
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
    use results::sample::{
        self, has,
        mesh::{Mesh, Slow},
    };

    use super::*;
    use crate::judge::threshold::Condition;

    fn written(file: &ResultFile, demands: &Demands) -> String {
        sample::text(|out| write(file, &Findings::new(file), demands, out))
    }

    #[test]
    fn a_flow_and_a_run_are_a_test_each() {
        let mesh = Mesh::quiet(4).with(Slow::Pair(2, 1, 0.5)).runs(2).failing([(0, 3)]);
        let demands = Demands {
            below: Condition::below("90%").ok(),
            fail_if: vec!["gbit<5".parse().unwrap()],
        };
        let xml = written(&mesh.pairs(), &demands);
        let report = Report::deserialize_from_str(&xml).unwrap();
        // Twelve flows and six rounds of two runs. The slow flow fails; two flows and two runs of the failed round say nothing.
        let counts = (report.tests, report.failures, report.errors);
        assert_eq!(counts, (12 + 12, 1, 2 + 2));
        let mut names: Vec<&str> =
            report.test_suites[0].test_cases.iter().map(|test| test.name.as_str()).collect();
        names.retain(|name| ["node3>node2", "write-pairs-round01 run 2"].contains(name));
        assert_eq!(names.len(), 2, "{names:?}");
        let failure = "bandwidth 4.705 Gb/s, below 8.469 Gb/s (90 % of the median), and bandwidth 4.705 Gb/s, below 5.000 Gb/s";
        let property = "\"fail-if\" value=\"gbit&lt;5\"";
        let finding = "{&quot;id&quot;:&quot;slow_path&quot;,";
        has(xml, [failure, property, finding, "node4 did not answer"]);
    }

    #[test]
    fn without_a_threshold_a_figure_is_enough() {
        let xml = written(&sample::result(), &Demands::default());
        let report = Report::deserialize_from_str(&xml).unwrap();
        // The second case was stopped by the user: its two flows have no run that counts.
        // The first was compared with perftest in turns, which is unclear.
        assert_eq!((report.tests, report.failures, report.errors), (5 + 1, 0, 1));
        assert_eq!(xml.matches("<skipped").count(), 2 + 1);
        // A run whose schedule was not kept counts nowhere, and says why.
        let open_loop = written(&sample::open_loop(), &Demands::default());
        has(open_loop, ["<skipped message=\"schedule not kept: Messages were posted late."]);
    }

    #[test]
    fn a_stage_is_a_test() {
        let verdicts = [StageVerdict::Ok, StageVerdict::Failed, StageVerdict::NotJudged];
        let stages = verdicts.map(|verdict| StageResult::new("mesh", verdict, "It says so."));
        let file = ResultFile { stages: stages.into(), ..sample::cases(Vec::new()) };
        let report = Report::deserialize_from_str(&written(&file, &Demands::default())).unwrap();
        assert_eq!(report.test_suites[0].name.as_str(), "accept");
        assert_eq!((report.tests, report.failures, report.errors), (3, 1, 1));
    }

    #[test]
    fn whatever_a_text_holds_the_document_can_be_read() {
        let text = "<a> & \"b\" \u{1b}[31m\0\u{ffff}";
        let kinds = [Outcome::Failure, Outcome::Error, Outcome::Skipped];
        let tests = kinds.map(|of| TestCase::new(text, text, of(text.to_owned())));
        let mut suite = TestSuite::new(text);
        suite.note("note", [text]);
        suite.add(tests.map(|it| it.with("x", text).with_out(text)));
        let mut out = Vec::new();
        write_document("all", &[suite], &mut out).unwrap();
        let read = Report::deserialize_from_str(&String::from_utf8(out).unwrap()).unwrap();
        let shown = "<a> & \"b\" \\u{1b}[31m\\0\\u{ffff}";
        assert_eq!(read.test_suites[0].name.as_str(), shown);
        assert_eq!((read.tests, read.failures, read.errors), (3, 1, 1));
    }
}
