//! A sweep as JUnit XML: a suite a case, or all rounds of a pattern; in it a test a flow and one a run.

use std::io::{self, Write};

use crate::judge::findings::Findings;
use crate::judge::threshold::{Demands, Judged, Suite, judge};
use crate::observe::standing::{self, Standing};
use crate::show::junit::{self, Outcome, TestCase, TestSuite};
use crate::show::sentences::{of_flow, sentence};
use results::model::{ResultFile, Run};

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
    let mut suites = Vec::new();
    let findings = report.all_findings();
    for judged in judge(file, demands) {
        let mut suite = test_suite(&judged, demands);
        for (option, value) in demands.options() {
            suite.note(option, [value]);
        }
        let own = findings.iter().filter(|finding| {
            let mut names = judged.cases.iter().map(|case| case.id.as_str());
            let case = finding.case();
            case.is_some_and(|case| case == judged.title || names.any(|name| name == case))
        });
        suite.note("finding", own.map(sentence));
        suites.push(suite);
    }
    junit::write("rocebench", &suites, out)
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

/// Where nothing is demanded a flow without a figure does not fail: the runs that failed do.
fn flow_test(class: &str, flow: &Judged, is_demanded: bool) -> TestCase {
    let outcome = match of_flow(&flow.failures) {
        Some(failure) if is_demanded => Outcome::Failure(failure),
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
        Standing::Stopped => Outcome::Skipped("stopped by the user".to_owned()),
        Standing::Doubtful(kind) => {
            let reason = standing::reason(kind);
            Outcome::Skipped(format!("{}: {}. {}", kind.name(), reason.cause, reason.remedy))
        }
        Standing::Bad(reason) => Outcome::Failure(format!("the run {reason}{hint}")),
    };
    TestCase::new(class, name, outcome)
}

#[cfg(test)]
mod tests {
    use quick_junit::Report;

    use super::*;
    use crate::judge::threshold::Condition;
    use results::sample::mesh::{Mesh, Slow};
    use results::sample::{self, has};

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
        // Twelve flows and six rounds of two runs; of the failed round two flows and two runs fail, and the slow flow.
        let counts = (report.tests, report.failures, report.errors);
        assert_eq!(counts, (12 + 12, 2 + 2 + 1, 0));
        let mut names: Vec<&str> =
            report.test_suites[0].test_cases.iter().map(|test| test.name.as_str()).collect();
        names.retain(|name| ["node3>node2", "write-pairs-round01 run 2"].contains(name));
        assert_eq!(names.len(), 2, "{names:?}");
        let failure = "bandwidth 4.705 Gb/s, below 8.469 Gb/s (90 % of the median), and bandwidth 4.705 Gb/s, below 5.000 Gb/s";
        let property = "\"fail-if\" value=\"gbit&lt;5\"";
        let finding = "name=\"finding\" value=\"node3&gt;node2 is slow: 4.705 Gb/s, 50 % less";
        has(xml, [failure, property, finding, "node4 did not answer"]);
    }

    #[test]
    fn without_a_threshold_a_figure_is_enough() {
        let xml = written(&sample::result(), &Demands::default());
        let report = Report::deserialize_from_str(&xml).unwrap();
        // The second case was stopped by the user: its two flows have no run that counts.
        assert_eq!((report.tests, report.failures), (5, 0));
        assert_eq!(xml.matches("<skipped").count(), 1 + 2);
        // A run whose schedule was not kept counts nowhere, and says why.
        let xml = written(&sample::open_loop(), &Demands::default());
        has(xml, ["<skipped message=\"schedule not kept: Messages were posted late."]);
    }
}
