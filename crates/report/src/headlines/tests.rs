use settings::Settings;

use super::*;
use crate::results::model::{
    CaseConfig, CaseResult, Connect, Delivery, Doubt, DoubtKind, Fairness, FlowResult, Latency,
    Load, LoadVerdict, PathEvent, PathEventKind, QpTimeline, Received, Run, Totals,
};

/// A case with a run for each throughput in Gb/s; p99 in µs is ten times as much.
fn case(flags: &[(&str, &str)], gbit_per_s: &[f64]) -> CaseResult {
    let mut settings = Settings::from([("op", "write")]);
    for (flag, text) in flags {
        Settings::row(flag)
            .unwrap()
            .read(&mut settings, text)
            .unwrap();
    }
    settings.fit();
    let flow = |gbit_per_s: f64| FlowResult {
        name: "forward".to_owned(),
        totals: Totals {
            gbit_per_s: Some(gbit_per_s),
            messages: 1,
            ..Totals::default()
        },
        latency_ns: Some(Latency {
            p99: Some((gbit_per_s * 1e4) as u64),
            ..Latency::default()
        }),
        ..FlowResult::default()
    };
    let run = |(number, gbit_per_s): (u32, &f64)| Run {
        run: number,
        complete: true,
        flows: vec![flow(*gbit_per_s)],
        ..Run::default()
    };
    let words: Vec<String> = flags
        .iter()
        .map(|(flag, text)| format!("{flag}{text}"))
        .collect();
    CaseResult {
        id: words.join("-"),
        config: CaseConfig::from(settings),
        runs: (1..).zip(gbit_per_s).map(run).collect(),
        ..CaseResult::default()
    }
}

fn of_qps(points: &[(&str, f64)]) -> ResultFile {
    let cases = points
        .iter()
        .map(|(qps, rate)| case(&[("qps", qps)], &[*rate; 3]));
    ResultFile {
        cases: cases.collect(),
        ..ResultFile::default()
    }
}

fn texts(results: &[&ResultFile]) -> Vec<String> {
    headlines(results).into_iter().map(|it| it.text).collect()
}

#[test]
fn three_sentences_tell_of_a_sweep() {
    let file = of_qps(&[("1", 10.0), ("4", 20.0), ("16", 30.0), ("64", 30.2)]);
    assert_eq!(
        texts(&[&file]),
        [
            "Most throughput: 30.000 to 30.200 Gb/s in 2 of 4 cases, the same within chance (16 QPs; 64 QPs); \
             lowest p99: 100 µs with 1 QP.",
            "Throughput grows until 16 QPs (30.000 Gb/s), and no further until 64 QPs (30.200 Gb/s).",
            "Nothing looks wrong in 12 runs.",
        ]
    );
    let topics: Vec<Topic> = headlines(&[&file]).iter().map(|it| it.topic).collect();
    assert_eq!(topics, [Topic::Best, Topic::Scaling, Topic::NothingWrong]);
}

#[test]
fn differences_that_may_be_chance_make_no_best_case() {
    let file = ResultFile {
        cases: vec![
            case(&[("cq", "shared")], &[10.0]),
            case(&[("cq", "per-qp")], &[10.5]),
            case(&[("cq", "per-worker")], &[9.7]),
        ],
        ..ResultFile::default()
    };
    let said = texts(&[&file]);
    assert_eq!(
        said[0],
        "All 3 cases have the same throughput within chance, 9.700 to 10.500 Gb/s; all 3 cases have the same p99 within \
         chance, 97.0 to 105 µs; with so few runs 9 % of throughput and 30 % of p99 may be chance."
    );
    // With runs that agree the same difference is one.
    let cases = [("shared", 10.0), ("per-qp", 10.5)];
    let cases = cases.map(|(cq, rate)| case(&[("cq", cq)], &[rate, rate, rate * 1.001]));
    let said = texts(&[&ResultFile {
        cases: cases.into(),
        ..ResultFile::default()
    }]);
    assert!(
        said[0].starts_with("Most throughput: 10.500 Gb/s with CQ per-qp; both cases have"),
        "{said:?}"
    );
}

#[test]
fn many_equal_cases_are_told_by_what_they_share() {
    let cases = [
        ("1", "64"),
        ("4", "64"),
        ("16", "64"),
        ("1", "64K"),
        ("4", "64K"),
        ("16", "64K"),
    ];
    let cases = cases.map(|(qps, size)| {
        let rate = if size == "64" { 1.0 } else { 20.0 };
        case(&[("qps", qps), ("size", size)], &[rate; 3])
    });
    let said = texts(&[&ResultFile {
        cases: cases.into(),
        ..ResultFile::default()
    }]);
    let words = "20.000 Gb/s in 3 of 6 cases, the same within chance (64 KiB);";
    assert!(said[0].contains(words), "{said:?}");
    assert_eq!(
        said[1],
        "Throughput is the same, within chance, from 1 QP (20.000 Gb/s) to 16 QPs (20.000 Gb/s) (64 KiB)."
    );
}

#[test]
fn curves_fall_grow_and_have_two_points() {
    let scaling = |points: &[(&str, f64)]| texts(&[&of_qps(points)])[1].clone();
    for (points, words) in [
        (
            &[("1", 10.0), ("4", 20.0), ("16", 12.0)][..],
            "Throughput is highest with 4 QPs (20.000 Gb/s), and falls until 16 QPs (12.000 Gb/s).",
        ),
        (
            &[("1", 10.0), ("4", 20.0), ("16", 40.0)],
            "Throughput still grows at the end, from 4 QPs (20.000 Gb/s) to 16 QPs (40.000 Gb/s).",
        ),
        // A dip is neither growth nor a fall.
        (
            &[("1", 100.0), ("4", 40.0), ("16", 80.0)],
            "Throughput is highest with 1 QP (100.00 Gb/s).",
        ),
        (
            &[("1", 60.0), ("4", 100.0), ("16", 60.0), ("64", 100.5)],
            "Throughput is highest with 64 QPs (100.50 Gb/s).",
        ),
        (
            &[("1", 20.0), ("4", 10.0)],
            "Throughput falls from 1 QP (20.000 Gb/s) to 4 QPs (10.000 Gb/s).",
        ),
        (
            &[("1", 10.0), ("4", 20.0)],
            "Throughput grows from 1 QP (10.000 Gb/s) to 4 QPs (20.000 Gb/s).",
        ),
    ] {
        assert_eq!(scaling(points), words);
    }
}

#[test]
fn set_ups_are_compared_by_their_rate() {
    let set_up = |qps: &str, rate: f64| {
        let mut case = case(&[("op", "connect"), ("qps", qps)], &[1.0; 3]);
        for run in &mut case.runs {
            run.connect = Some(Connect {
                connections_per_second: Some(rate),
                ..Connect::default()
            });
        }
        case
    };
    let file = ResultFile {
        cases: vec![set_up("1", 100.0), set_up("16", 400.0)],
        ..ResultFile::default()
    };
    let said = texts(&[&file]);
    assert_eq!(said[0], "Most set-ups a second: 400.00 /s with 16 QPs.");
    assert!(
        said[1].starts_with("The number of set-ups a second grows from 1 QP (100.00 /s)"),
        "{said:?}"
    );
}

#[test]
fn results_of_other_devices_are_not_compared() {
    let file = of_qps(&[("1", 10.0), ("4", 20.0)]);
    let mut other = file.clone();
    // The same twice is pooled.
    assert!(texts(&[&file, &other])[2].contains("12 runs"));
    other.nodes.push(Default::default());
    assert!(texts(&[&file, &other]).is_empty());
}

/// The last sentence of a sweep of two cases after a change of its first run.
fn wrong(change: impl FnOnce(&mut Run)) -> String {
    let mut file = of_qps(&[("1", 10.0), ("4", 20.0)]);
    change(&mut file.cases[0].runs[0]);
    texts(&[&file]).pop().unwrap()
}

#[test]
fn what_looks_wrong_is_told_with_the_case() {
    let doubt = |kind| Doubt {
        kind,
        message: String::new(),
    };
    assert_eq!(
        wrong(|run| run.complete = false),
        "What looks wrong: 1 of 6 runs failed (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].totals.errors = 1),
        "What looks wrong: 1 of 6 runs failed (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].window.doubts =
            vec![doubt(DoubtKind::EdgeMissed), doubt(DoubtKind::EdgeMissed)]),
        "What looks wrong: figures of 1 of 6 runs do not count: edge missed (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].window.warmup_steady = Some(false)),
        "What looks wrong: throughput did not settle before 1 of 6 runs (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].delivery = Some(Delivery {
            lost_share: 0.031,
            goodput_gbit_per_s: Some(10.0),
            ..Delivery::default()
        })),
        "What looks wrong: messages were lost in 1 of 6 runs, up to 3.10 % (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].delivery = Some(Delivery {
            lost_share: 1e-6,
            goodput_gbit_per_s: Some(10.0),
            ..Delivery::default()
        })),
        "What looks wrong: messages were lost in 1 of 6 runs, less than 0.01 % (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].received = Some(Received {
            messages: 2,
            ..Received::default()
        })),
        "What looks wrong: the receiver's rate was not the sender's in 1 of 6 runs (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].load = Some(Load {
            verdict: LoadVerdict::Overloaded,
            ..Load::default()
        })),
        "What looks wrong: more was offered than was served in 1 of 6 runs (qps1)."
    );
    let jain = |jain| {
        Some(Fairness {
            jain,
            min_share: 0.5,
            max_share: 2.0,
        })
    };
    assert_eq!(
        wrong(|run| run.flows[0].fairness = jain(0.61)),
        "What looks wrong: QPs were served unevenly in 1 of 6 runs: Jain's index down to 0.61 (qps1)."
    );
    assert!(wrong(|run| run.flows[0].fairness = jain(0.95)).starts_with("Nothing"));
    let mut shares = case(&[("qps", "4"), ("qp-weights", "1:90,3:10")], &[10.0]);
    shares.runs[0].flows[0].fairness = jain(0.3);
    let asked = ResultFile {
        cases: vec![shares],
        ..ResultFile::default()
    };
    assert!(texts(&[&asked]).is_empty(), "uneven shares were asked for");
    let stalled = |rows: std::ops::Range<usize>| {
        move |run: &mut Run| {
            let mut messages = vec![vec![100; 25]; 4];
            messages[rows].iter_mut().for_each(|qp| qp[10..13].fill(0));
            run.flows[0].qp_timeline = Some(QpTimeline {
                interval_seconds: 0.04,
                at_seconds: (1..=25).map(|end| f64::from(end) * 0.04).collect(),
                messages,
            });
        }
    };
    assert_eq!(
        wrong(stalled(2..3)),
        "What looks wrong: a QP stood still while others moved in 1 of 6 runs, for up to 120 ms (qps1)."
    );
    assert!(wrong(stalled(0..4)).starts_with("Nothing"), "all QPs did");
    let event = |kind| PathEvent {
        node: String::new(),
        kind,
        count: 7,
        counters: Vec::new(),
    };
    assert_eq!(
        wrong(
            |run| run.path_events = [PathEventKind::Resent, PathEventKind::Congestion]
                .map(event)
                .into()
        ),
        "What looks wrong: packets were lost or late in 1 of 6 runs: 7 sent again (qps1)."
    );
    assert_eq!(
        wrong(|run| run.flows[0].totals.gbit_per_s = Some(12.0)),
        "What looks wrong: runs of 1 case scatter in throughput, by up to 20 % (qps1)."
    );
    assert!(wrong(|run| (run.complete, run.interrupted) = (false, true)).starts_with("Nothing"));
    assert_eq!(
        wrong(|run| {
            run.path_events = vec![event(PathEventKind::Resent)];
            run.flows[0].window.warmup_steady = Some(false);
            run.flows[0].fairness = jain(0.61);
            run.flows[0].window.doubts =
                vec![doubt(DoubtKind::EdgeMissed), doubt(DoubtKind::Drift)];
        }),
        "What looks wrong: figures of 1 of 6 runs do not count: edge missed (qps1); \
         packets were lost or late in 1 of 6 runs: 7 sent again (qps1); \
         throughput did not settle before 1 of 6 runs (qps1); also uneven QPs, drift."
    );
}

#[test]
fn a_single_case_has_a_sentence_only_where_something_is_wrong() {
    let mut file = of_qps(&[("1", 10.0)]);
    assert!(headlines(&[&file]).is_empty() && headlines(&[]).is_empty());
    file.cases[0].runs[0].complete = false;
    assert_eq!(headlines(&[&file])[0].topic, Topic::Wrong);
}
