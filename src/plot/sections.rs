//! All kinds of figures, in the page's order, and what none of them shows.

use super::section::Section;
use crate::results::load::Loaded;

/// Ids of all sections, in the page's order.
pub const IDS: [&str; 9] = [
    "message-size",
    "queue-pairs",
    "workers",
    "latency",
    "shares",
    "heat-map",
    "over-time",
    "trend",
    "comparison",
];

/// Every section; those without a figure say what they need.
pub fn sections(results: &[Loaded], base: &[Loaded]) -> Vec<Section> {
    let _ = (results, base);
    Vec::new()
}

/// What of the results is in no figure, and why.
pub fn left_out(results: &[Loaded]) -> Vec<String> {
    let cases = || results.iter().flat_map(|loaded| &loaded.result.cases);
    let runs = || cases().flat_map(|case| &case.runs);
    let count = |number: usize, one: &str, many: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        more => Some(format!("{more} {many}")),
    };
    let incomplete = runs().filter(|run| !run.complete).count();
    let without = cases()
        .filter(|case| !case.runs.iter().any(|run| run.complete))
        .count();
    let no_peer = runs().filter(|run| run.reverse.is_some()).count();
    [
        count(
            incomplete,
            "run that is not complete (it failed or was stopped) is in no figure.",
            "runs that are not complete (they failed or were stopped) are in no figure.",
        ),
        count(
            without,
            "case has no complete run; its figures are missing, not zero.",
            "cases have no complete run; their figures are missing, not zero.",
        ),
        count(
            no_peer,
            "run went both ways; figures are of the direction from the end that ran the sweep.",
            "runs went both ways; figures are of the direction from the end that ran the sweep.",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::model::{CaseResult, ResultFile, Run};

    #[test]
    fn what_failed_is_told() {
        let run = |complete| Run {
            complete,
            ..Run::default()
        };
        let case = |runs: Vec<Run>| CaseResult {
            runs,
            ..CaseResult::default()
        };
        let mut loaded = Loaded {
            path: "r.json".into(),
            result: ResultFile {
                cases: vec![case(vec![run(true), run(false)]), case(vec![run(false)])],
                ..ResultFile::default()
            },
        };
        let told = left_out(std::slice::from_ref(&loaded)).join("\n");
        assert!(told.starts_with("2 runs that are not complete"), "{told}");
        assert!(told.contains("\n1 case has no complete run"), "{told}");
        loaded.result.cases = vec![case(vec![run(true)])];
        assert!(left_out(&[loaded]).is_empty());
    }
}
