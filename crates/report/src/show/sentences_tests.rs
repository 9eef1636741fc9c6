//! The words of every kind of finding, once.

use results::sample::{self, names};

use super::*;
use crate::judge::mesh::{Fan, FanPoint, NodesFinding, Part, Rest, Share, Slow, Suspect, Why};

fn problem(kind: ProblemKind, most: f64, counts: &[(&str, u64)], hint: &str) -> Finding {
    let counts = counts.iter();
    Finding::Wrong(Problem {
        kind,
        count: 2,
        of: 6,
        case: "write-q1".to_owned(),
        most,
        counts: counts.map(|(name, sum)| ((*name).to_owned(), *sum)).collect(),
        hint: hint.to_owned(),
    })
}

fn best([low, high]: [f64; 2], [cases, of_cases]: [usize; 2], names: &[&str]) -> Finding {
    Finding::Best {
        metric: Metric::GbitPerS,
        low,
        high,
        cases,
        of_cases,
        names: sample::names(names),
    }
}

/// Of nodes and the paths between them.
fn of_nodes() -> impl Iterator<Item = NodesFinding> {
    let (gbit, p50) = (Metric::GbitPerS, Metric::P50Ns);
    let of = |part| match part {
        Part::Path => names(&["node4", "node5"]),
        _ => names(&["node4"]),
    };
    let slow = |metric, part, values: &[f64], look| {
        NodesFinding::Slow(Slow {
            metric,
            part,
            nodes: of(part),
            values: values.to_vec(),
            usual: if metric == gbit { 9.4 } else { 10_100.0 },
            slow: 7,
            flows: if look == Suspect::Port { 7 } else { 9 },
            peers: 7,
            is_read: look == Suspect::PortOrCpu,
            look,
        })
    };
    let cpu = Suspect::Cpu { own: 0.52, others: 0.99 };
    let lossy =
        |part, runs, look| NodesFinding::Lossy { part, nodes: of(part), losing: 5, runs, look };
    let none = |why, nodes: &[&str], flows| NodesFinding::NoFigure { why, of: names(nodes), flows };
    let rest = |kind| NodesFinding::Rest {
        metric: if kind == Rest::Alike { p50 } else { gbit },
        flows: 56,
        kind,
        range: [9.2, 9.4, 9.5].map(|it| if kind == Rest::Alike { it * 1e3 } else { it }),
    };
    let share = |of_even| Share { node: "node4".to_owned(), of_even, gbit_per_s: 0.706 };
    let fan = |points: &[(usize, f64)], of_even| {
        let points: Vec<FanPoint> = points
            .iter()
            .map(|(fan, gbit_per_s)| FanPoint {
                fan: *fan,
                gbit_per_s: Some(*gbit_per_s),
                p99_ns: (*fan > 1).then_some(2e6),
                jain: Some(0.981),
                worst: Some(share(of_even)),
                ..FanPoint::default()
            })
            .collect();
        NodesFinding::Fan(Fan {
            is_in: points.len() > 1,
            node: "node1".to_owned(),
            fall: (points.len() > 1).then_some([0, 1]),
            points,
        })
    };
    let many = ["node1", "a>b", "a>c", "b>c", "c>a", "c>b", "b>a"];
    [
        none(Why::Lost, &many, 12),
        none(Why::Doubtful, &many[1..3], 2),
        none(Why::Doubtful, &["node2", "a>b"], 7),
        none(Why::NotBegun, &[], 1),
        none(Why::NotBegun, &[], 4),
        slow(gbit, Part::Sends, &[4.7], Suspect::Port),
        slow(gbit, Part::Receives, &[4.7], Suspect::PortOrCpu),
        slow(gbit, Part::Node, &[4.7, 7.05], cpu),
        slow(p50, Part::Sends, &[31_200.0], Suspect::Port),
        slow(p50, Part::Receives, &[14_241.0], cpu),
        slow(p50, Part::Node, &[31_200.0, 12_000.0], cpu),
        slow(gbit, Part::Path, &[4.7], Suspect::Host),
        slow(gbit, Part::Path, &[4.7], Suspect::Path),
        slow(gbit, Part::Path, &[4.7], Suspect::Sender),
        slow(gbit, Part::Path, &[4.7], Suspect::Receiver),
        slow(p50, Part::Path, &[31_200.0], Suspect::All),
        NodesFinding::MoreSlow { paths: 1 },
        NodesFinding::MoreSlow { paths: 3 },
        lossy(Part::Path, 5, Suspect::Path),
        lossy(Part::Node, 6, Suspect::Port),
        lossy(Part::Sends, 6, Suspect::Port),
        lossy(Part::Receives, 6, Suspect::Port),
        NodesFinding::MoreLossy { paths: 1 },
        NodesFinding::MoreLossy { paths: 3 },
        rest(Rest::Few),
        rest(Rest::Apart),
        rest(Rest::Alike),
        rest(Rest::Scattered),
        rest(Rest::Others),
        fan(&[(1, 9.424), (4, 8.45)], 0.63),
        fan(&[(8, 9.424)], 0.9),
    ]
    .into_iter()
}

#[test]
fn each_finding_has_a_sentence() {
    let mut findings = vec![
        best([30.0; 2], [1, 4], &["16 QPs"]),
        best([30.0, 30.2], [2, 4], &["16 QPs", "64 QPs"]),
        best([30.0, 30.2], [3, 4], &["64 KiB"]),
        best([30.0, 30.2], [3, 4], &[]),
        best([30.0, 30.2], [2, 2], &[]),
        best([30.0, 30.2], [3, 3], &[]),
        Finding::NoClearWinner { metric: Metric::P99Ns, low: 900.0, high: 2e6, cases: 3 },
        Finding::FewRuns { chance: vec![(Metric::GbitPerS, 0.09), (Metric::P99Ns, 0.3)] },
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
        findings.push(Finding::Scaling {
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
    findings.extend(of_nodes().map(|finding| Finding::Nodes { case: String::new(), finding }));
    let busy = "The CPU was too busy. Measure longer (-D)";
    for kind in ProblemKind::ALL {
        findings.push(match kind {
            ProblemKind::Unreliable => {
                problem(*kind, 0.0, &[("edge missed", 2), ("window length", 1)], busy)
            }
            ProblemKind::PacketsLost => problem(*kind, 0.0, &[("sent again", 7)], ""),
            ProblemKind::Stalled => problem(*kind, 0.12, &[], ""),
            ProblemKind::Starved => problem(*kind, 0.108, &[("QP", 37), ("QPN", 293)], ""),
            kind => problem(*kind, 0.2, &[], ""),
        });
    }
    let text: Vec<String> = findings.iter().map(sentence).collect();
    insta::assert_snapshot!(text.join("\n"));
    let few: Vec<String> =
        short(&findings[findings.len() - 3..]).into_iter().map(|(_, sentence)| sentence).collect();
    let also = "Also: drift (2 of 6); scatter between runs (2 of 6).";
    assert_eq!(few.last().map(String::as_str), Some(also));
}
