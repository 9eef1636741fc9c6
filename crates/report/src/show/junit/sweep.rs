//! A sweep as JUnit XML: a suite a case, or all rounds of a pattern; in it a test a flow and one a run.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestSuite};

use crate::judge::threshold::Demands;
use crate::judge::threshold::{Judged, Suite, judge};
use crate::results::model::{ResultFile, Run};
use crate::show::junit::{self, not_passed, passed, skipped};

/// Writes the document; where nothing is demanded a flow passes that has a figure.
///
/// # Errors
/// The stream's.
pub fn write(file: &ResultFile, demands: &Demands, out: impl Write) -> io::Result<()> {
    let mut report = Report::new("rocebench");
    for suite in judge(file, demands) {
        report.add_test_suite(of_suite(&suite, demands));
    }
    junit::write(&report, out)
}

fn of_suite(judged: &Suite<'_>, demands: &Demands) -> TestSuite {
    let title = judged.title.as_str();
    let mut suite = TestSuite::new(title);
    suite.add_properties(
        demands
            .options()
            .map(|(option, value)| Property::new(option, value)),
    );
    suite.add_test_cases(judged.flows.iter().map(|flow| of_flow(title, flow)));
    for case in &judged.cases {
        let round = match judged.cases.len() {
            1 => String::new(),
            _ => format!("{} ", case.id),
        };
        let runs = case.runs.iter();
        let of_run = |run: &Run| of_run(title, &format!("{round}run {}", run.run), run);
        suite.add_test_cases(runs.map(of_run));
    }
    suite
}

fn of_flow(class: &str, flow: &Judged) -> TestCase {
    let mut test = match &flow.failure {
        Some(failure) => not_passed(class, &flow.name, NonSuccessKind::Failure, failure),
        None => passed(class, &flow.name),
    };
    if let Some(gbit_per_s) = flow.gbit_per_s {
        test.set_system_out(format!("{gbit_per_s:.3} Gb/s"));
    }
    test
}

fn of_run(class: &str, name: &str, run: &Run) -> TestCase {
    let failed = |message: &str| not_passed(class, name, NonSuccessKind::Failure, message);
    match &run.failure {
        _ if run.interrupted => skipped(class, name, "stopped by the user"),
        Some(failure) => match &failure.hint {
            Some(hint) => failed(&format!("{}; {hint}", failure.message)),
            None => failed(&failure.message),
        },
        None if !run.complete => failed("the run is not complete"),
        None => passed(class, name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample::mesh::{Mesh, Slow};
    use crate::results::sample::{self, has};

    #[test]
    fn a_flow_and_a_run_are_a_test_each() {
        let mesh = Mesh::quiet(4).with(Slow::Pair(2, 1, 0.5));
        let mesh = mesh.runs(2).failing([(0, 3)]);
        let demands = Demands {
            below: "90%".parse().ok(),
            fail_if: vec!["gbit<5".parse().unwrap()],
        };
        let xml = sample::text(|out| write(&mesh.pairs(), &demands, out));
        let report = Report::deserialize_from_str(&xml).unwrap();
        // Twelve flows and six rounds of two runs; of the failed round two flows and two runs fail, and the slow flow.
        let counts = (report.tests, report.failures, report.errors);
        assert_eq!(counts, (12 + 12, 2 + 2 + 1, 0));
        let tests = report.test_suites[0].test_cases.iter();
        let mut names: Vec<&str> = tests.map(|test| test.name.as_str()).collect();
        names.retain(|name| ["node3>node2", "write-pairs-round01 run 2"].contains(name));
        assert_eq!(names.len(), 2, "{names:?}");
        let failure = "4.705 Gb/s, below 8.469 (90 % of the median 9.410), and bandwidth 4.705 Gb/s, below 5.000 Gb/s";
        let property = "\"fail-if\" value=\"gbit&lt;5\"";
        has(xml, [failure, property, "node4 did not answer"]);
    }

    #[test]
    fn without_a_threshold_a_figure_is_enough() {
        let xml = sample::text(|out| write(&sample::result(), &Demands::default(), out));
        let report = Report::deserialize_from_str(&xml).unwrap();
        // The second case was stopped by the user: its two flows have no run that counts.
        assert_eq!((report.tests, report.failures), (5, 2));
        assert_eq!(xml.matches("<skipped").count(), 1);
    }
}
