//! The words of every kind of finding, once.

use super::*;

fn problem(kind: ProblemKind, most: f64, counts: &[(&str, u64)], remedy: &str) -> Finding {
    let counts = counts.iter();
    Finding::Wrong(Problem {
        kind,
        count: 2,
        of: 6,
        case: "write-q1".to_owned(),
        most,
        counts: counts
            .map(|(name, sum)| ((*name).to_owned(), *sum))
            .collect(),
        remedy: remedy.to_owned(),
    })
}

fn best([low, high]: [f64; 2], [cases, of_cases]: [usize; 2], names: &[&str]) -> Finding {
    Finding::Best {
        metric: Metric::GbitPerS,
        low,
        high,
        cases,
        of_cases,
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

#[test]
fn each_finding_has_a_sentence() {
    let mut all = vec![
        best([30.0; 2], [1, 4], &["16 QPs"]),
        best([30.0, 30.2], [2, 4], &["16 QPs", "64 QPs"]),
        best([30.0, 30.2], [3, 4], &["64 KiB"]),
        best([30.0, 30.2], [3, 4], &[]),
        best([30.0, 30.2], [2, 2], &[]),
        best([30.0, 30.2], [3, 3], &[]),
        Finding::NoClearWinner {
            metric: Metric::P99Ns,
            low: 900.0,
            high: 2e6,
            cases: 3,
        },
        Finding::FewRuns {
            chance: vec![(Metric::GbitPerS, 0.09), (Metric::P99Ns, 0.3)],
        },
        Finding::NothingWrong { runs: 1 },
        Finding::NothingWrong { runs: 12 },
    ];
    for (metric, shape) in [
        (Metric::GbitPerS, Shape::Level),
        (Metric::GbitPerS, Shape::Falls),
        (Metric::GbitPerS, Shape::Grows),
        (Metric::GbitPerS, Shape::StillGrows),
        (Metric::GbitPerS, Shape::GrowsUntil),
        (Metric::GbitPerS, Shape::HighestThenFalls),
        (Metric::ConnectionsPerS, Shape::Highest),
    ] {
        all.push(Finding::Scaling {
            metric,
            shape,
            from: ("4 QPs".to_owned(), 20.0),
            to: ("16 QPs".to_owned(), 30.0),
            of: match shape {
                Shape::Level => "64 KiB".to_owned(),
                _ => String::new(),
            },
        });
    }
    for (part, nodes) in [
        ("node", vec!["node4"]),
        ("sends", vec!["node4"]),
        ("receives", vec!["node4"]),
        ("path", vec!["node4", "node5"]),
    ] {
        all.push(Finding::Slow {
            metric: Metric::GbitPerS,
            case: "write-pairs, 7 rounds".to_owned(),
            part,
            nodes: nodes.into_iter().map(str::to_owned).collect(),
            value: 4.7,
            usual: 9.4,
        });
    }
    let busy = "The CPU was too busy. Measure longer (-D)";
    for kind in ProblemKind::ALL {
        all.push(match kind {
            ProblemKind::Unreliable => problem(
                *kind,
                0.0,
                &[("edge missed", 2), ("window length", 1)],
                busy,
            ),
            ProblemKind::PacketsLost => problem(*kind, 0.0, &[("sent again", 7)], ""),
            ProblemKind::Stalled => problem(*kind, 0.12, &[], ""),
            ProblemKind::Starved => problem(*kind, 0.108, &[("QP", 37), ("QPN", 293)], ""),
            kind => problem(*kind, 0.2, &[], ""),
        });
    }
    let text: Vec<String> = all.iter().map(sentence).collect();
    insta::assert_snapshot!(text.join("\n"));
    let few: Vec<String> = short(&all[all.len() - 3..])
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let also = "Also: drift (2 of 6); scatter between runs (2 of 6).";
    assert_eq!(few.last().map(String::as_str), Some(also));
}
