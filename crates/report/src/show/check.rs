//! What `mesh --check` found, for a terminal of 80 columns.

use std::io::{self, Write};

use results::{model::ResultFile, text::wrapped};

use super::junit::{Outcome, TestCase, TestSuite};
use crate::judge::check::{Check, Verdict};
use crate::judge::findings::Findings;

const COLUMNS: usize = 80;

/// Problems that are shown; the result file has all.
const MOST_PROBLEMS: usize = 16;

/// Writes how many paths work, and the problems. Nothing where nothing was checked for.
///
/// # Errors
/// The stream's.
pub fn write(report: &Findings, out: &mut dyn Write) -> io::Result<()> {
    let Some(check) = &report.check else {
        return Ok(());
    };
    writeln!(out)?;
    for finding in check.findings.iter().take(MOST_PROBLEMS + 1) {
        for line in wrapped(&finding.text, COLUMNS) {
            writeln!(out, "{line}")?;
        }
    }
    match check.findings.len().saturating_sub(MOST_PROBLEMS + 1) {
        0 => Ok(()),
        more => writeln!(out, "{more} more problems are in the JSON file."),
    }
}

/// A test for each path, and one for each node with rails that could not be checked.
pub(crate) fn test_suite(check: &Check, file: &ResultFile) -> TestSuite {
    const TITLE: &str = "check";
    let mut suite = TestSuite::new(TITLE);
    suite.note("finding", check.findings.iter().map(|finding| &*finding.text));
    suite.add(file.nodes.iter().filter(|node| !node.left_out.is_empty()).map(|node| {
        let why = node.left_out.join("; ");
        TestCase::new(TITLE, &format!("all rails of {}", node.name), Outcome::Failure(why))
    }));
    suite.add(check.paths.iter().map(|path| {
        let outcome = match (&path.verdict, path.fault()) {
            (_, None) => Outcome::Passed,
            (Verdict::Unknown(_), Some(fault)) => Outcome::Error(fault),
            (_, Some(fault)) => Outcome::Failure(fault),
        };
        let test = TestCase::new(TITLE, &path.name(), outcome);
        match path.verdict {
            Verdict::Works(gbit_per_s) => test.with_out(format!("{gbit_per_s:.3} Gb/s")),
            _ => test,
        }
    }));
    if check.paths.is_empty() {
        let nothing = Outcome::Failure(check.headline().to_owned());
        suite.add([TestCase::new(TITLE, "paths", nothing)]);
    }
    suite
}

#[cfg(test)]
mod tests {
    use results::model::{CheckRound, Failure};
    use results::sample::{has, mesh::Mesh};
    use settings::CrossRail;

    use super::*;
    use crate::judge::threshold::Demands;
    use crate::show::junit;

    #[test]
    fn the_worst_is_shown_and_each_path_is_a_test() {
        let mut file = Mesh::quiet(8).runs(1).pairs();
        for case in &mut file.cases {
            let cross_rail = CrossRail::Ignore;
            case.config.check =
                Some(CheckRound { cross_rail, is_cross: false, slow_below_percent: 50 });
            for flow in case.runs.iter_mut().flat_map(|run| &mut run.flows) {
                // All nodes but the last two are apart from each other.
                let is_last = [&flow.from, &flow.to]
                    .iter()
                    .any(|name| ["node7", "node8"].contains(&&***name));
                let message = "timed out".to_owned();
                flow.failure = (!is_last).then_some(Failure { message, hint: None });
            }
        }
        let (report, mut text, mut xml) = (Findings::new(&file), Vec::new(), Vec::new());
        assert!(report.findings.is_empty() && report.meshes.is_empty());
        write(&report, &mut text).unwrap();
        has(String::from_utf8(text).unwrap(), ["\n13 of 28 paths between 8 nodes work.\n"]);
        junit::write(&file, &report, &Demands::default(), &mut xml).unwrap();
        let document = String::from_utf8(xml).unwrap();
        has(&document, ["tests=\"28\"", "failures=\"15\"", "node1/mlx5_0 to node2/mlx5_0"]);
    }
}
