use super::*;
use Metric::{ConnectionsPerS, GbitPerS, P99Ns};

use results::model::{
    CaseConfig, Connect, Delivery, DoubtKind, FlowResult, Latency, LoadVerdict, PathEvent,
    PathEventKind, Totals,
};
use results::sample::{self, cases, doubt, fairness, load_of, names, qp_timeline};

/// A case with a run for each throughput in Gb/s; p99 in µs is ten times as much.
fn case(flags: &[(&str, &str)], gbit_per_s: &[f64]) -> CaseResult {
    let settings: Settings = [("op", "write")].iter().chain(flags).copied().collect();
    let flow = |rate: f64| FlowResult {
        name: "forward".to_owned(),
        totals: Totals { gbit_per_s: Some(rate), messages: 1, ..Totals::default() },
        latency_ns: Some(Latency { p99: Some((rate * 1e4) as u64), ..Latency::default() }),
        ..FlowResult::default()
    };
    let words = flags.iter().map(|(flag, text)| format!("{flag}{text}"));
    CaseResult {
        id: words.collect::<Vec<_>>().join("-"),
        config: CaseConfig::from(settings),
        ..sample::case(
            (1..)
                .zip(gbit_per_s)
                .map(|(number, rate)| Run { run: number, ..sample::run(vec![flow(*rate)]) })
                .collect(),
        )
    }
}

fn of_qps(points: &[(&str, f64)]) -> ResultFile {
    cases(points.iter().map(|(qps, rate)| case(&[("qps", qps)], &[*rate; 3])).collect())
}

fn of(series: impl Into<Vec<CaseResult>>) -> Vec<Finding> {
    findings(&[&cases(series.into())])
}

/// The best cases by a metric: their range, how many they are of how many, and their names.
#[track_caller]
fn has_best(
    findings: &[Finding],
    metric: Metric,
    [low, high]: [f64; 2],
    [cases, of_cases]: [usize; 2],
    of: &[&str],
) {
    let best = Finding::Best { metric, low, high, cases, of_cases, names: names(of) };
    assert!(findings.contains(&best), "{findings:?}");
}

fn shape_of(findings: &[Finding]) -> (Shape, String, String, String) {
    let found = findings.iter().find_map(|finding| match finding {
        Finding::Scaling { shape, from, to, of, .. } => {
            Some((*shape, from.0.clone(), to.0.clone(), of.clone()))
        }
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_sweep_has_best_cases_a_curve_and_nothing_wrong() {
    let file = of_qps(&[("1", 10.0), ("4", 20.0), ("16", 30.0), ("64", 30.2)]);
    let report = findings(&[&file]);
    let of = ["16 QPs", "64 QPs"];
    has_best(&report, GbitPerS, [30.0, 30.2], [2, 4], &of);
    has_best(&report, P99Ns, [1e5; 2], [1, 4], &["1 QP"]);
    let [until, end] = ["16 QPs", "64 QPs"].map(str::to_owned);
    let curve = (Shape::GrowsUntil, until, end, String::new());
    assert_eq!(shape_of(&report), curve);
    assert_eq!(report.last(), Some(&Finding::NothingWrong { runs: 12 }));
}

#[test]
fn differences_that_may_be_chance_make_no_best_case() {
    let case_of = |cq, rates: &[f64]| case(&[("cq", cq)], rates);
    let (low, high) = (case_of("shared", &[10.0]), case_of("per-qp", &[10.5]));
    let single = of([low, high, case_of("per-worker", &[9.7])]);
    has_best(&single, GbitPerS, [9.7, 10.5], [3, 3], &[]);
    let chance = vec![(GbitPerS, 0.09), (P99Ns, 0.3)];
    let few = single.iter().find_map(|it| match it {
        Finding::FewRuns { chance: found } => Some(found.clone()),
        _ => None,
    });
    let rounded =
        few.unwrap().into_iter().map(|(metric, share)| (metric, (share * 1e6).round() / 1e6));
    assert!(rounded.eq(chance));
    // With runs that agree the same difference is one.
    let cases = [("shared", 10.0), ("per-qp", 10.5)];
    let sure = of(cases.map(|(cq, rate)| case_of(cq, &[rate, rate, rate * 1.001])));
    has_best(&sure, GbitPerS, [10.5; 2], [1, 2], &["CQ per-qp"]);
}

/// Cases that chance may explain, but that are more than a fifth apart, are not equal.
#[test]
fn runs_that_scatter_have_no_winner() {
    let report = of([("1", 1.441), ("4", 9.0), ("16", 32.83)]
        .map(|(qps, rate)| case(&[("qps", qps)], &[rate, rate * 20.0, rate / 20.0])));
    let none = Finding::NoClearWinner { metric: GbitPerS, low: 1.441, high: 32.83, cases: 3 };
    assert_eq!(report[0], none);
}

#[test]
fn many_equal_cases_are_told_by_what_they_share() {
    let case_of = |qps, size, rate| case(&[("qps", qps), ("size", size)], &[rate; 3]);
    let report = of(["1", "4", "16"]
        .map(|qps| [case_of(qps, "64", 1.0), case_of(qps, "64K", 20.0)])
        .concat());
    has_best(&report, GbitPerS, [20.0; 2], [3, 6], &["64 KiB"]);
    let (shape, _, _, of) = shape_of(&report);
    assert_eq!((shape, &*of), (Shape::Level, "64 KiB"));
}

#[test]
fn curves_fall_grow_and_have_two_points() {
    use Shape::{Falls, Grows, Highest, HighestThenFalls, StillGrows};
    for (points, shape, from, to) in [
        ("1:10 4:20 16:12", HighestThenFalls, "4 QPs", "16 QPs"),
        ("1:10 4:20 16:40", StillGrows, "4 QPs", "16 QPs"),
        ("1:100 4:40 16:80", Highest, "1 QP", "16 QPs"),
        ("1:60 4:100 16:60 64:100.5", Highest, "64 QPs", "64 QPs"),
        ("1:20 4:10", Falls, "1 QP", "4 QPs"),
        ("1:10 4:20", Grows, "1 QP", "4 QPs"),
    ] {
        let series: Vec<_> = points
            .split(' ')
            .map(|point| point.split_once(':').unwrap())
            .map(|(qps, rate)| (qps, rate.parse().unwrap()))
            .collect();
        let found = shape_of(&findings(&[&of_qps(&series)]));
        let found = (found.0, &*found.1, &*found.2);
        assert_eq!(found, (shape, from, to), "{points}");
    }
}

#[test]
fn set_ups_are_compared_by_their_rate() {
    let set_up = |qps: &str, rate: f64| {
        let mut case = case(&[("op", "connect"), ("qps", qps)], &[1.0; 3]);
        for run in &mut case.runs {
            run.connect =
                Some(Connect { connections_per_second: Some(rate), ..Connect::default() });
        }
        case
    };
    let report = of([set_up("1", 100.0), set_up("16", 400.0)]);
    has_best(&report, ConnectionsPerS, [400.0; 2], [1, 2], &["16 QPs"]);
    assert_eq!(shape_of(&report).0, Shape::Grows);
}

#[test]
fn results_of_other_devices_are_not_compared() {
    let file = of_qps(&[("1", 10.0), ("4", 20.0)]);
    let mut other = file.clone();
    // The same twice is pooled.
    let pooled = findings(&[&file, &other]);
    assert_eq!(pooled.last(), Some(&Finding::NothingWrong { runs: 12 }));
    other.nodes.push(Default::default());
    assert_eq!(findings(&[&file, &other]), []);
}

/// The problems of a sweep of two cases after a change of its first run.
fn wrong(change: impl FnOnce(&mut Run)) -> Vec<Problem> {
    let mut file = of_qps(&[("1", 10.0), ("4", 20.0)]);
    change(&mut file.cases[0].runs[0]);
    findings(&[&file])
        .into_iter()
        .filter_map(|it| match it {
            Finding::Wrong(problem) => Some(problem),
            _ => None,
        })
        .collect()
}

fn event(kind: PathEventKind) -> PathEvent {
    PathEvent { node: String::new(), kind, count: 7, counters: Vec::new() }
}

#[test]
fn what_looks_wrong_is_found_with_its_case() {
    use ProblemKind::*;
    let found = |change: &dyn Fn(&mut Run)| {
        let problems = wrong(change);
        assert_eq!(problems.len(), 1, "{problems:?}");
        let problem = &problems[0];
        let of = if problem.kind == Scatter { 2 } else { 6 };
        assert_eq!(
            (problem.count, problem.of, &*problem.case),
            (1, of, "qps1"),
            "{}",
            problem.kind
        );
        (problem.kind, (problem.most * 1e3).round() / 1e3)
    };
    for (change, expected) in [
        ("complete=false", (Failed, 0.0)),
        ("flows/0/totals/errors=1", (Failed, 0.0)),
        ("flows/0/window/warmup_steady=false", (NotSettled, 0.0)),
        (
            r#"flows/0/received={"messages":2,"bytes":0,"window_seconds":null}"#,
            (ReceiverDisagrees, 0.0),
        ),
        (
            r#"flows/0/fairness={"jain":0.61,"min_share":0.5,"max_share":2,"starved":[]}"#,
            (Uneven, 0.61),
        ),
        (
            r#"flows/0/fairness={"jain":0.997,"min_share":0.11,"max_share":1,"starved":[{"index":37,"qpn":293,"share":0.108}]}"#,
            (Starved, 0.108),
        ),
        ("flows/0/totals/gbit_per_s=12.0", (Scatter, 0.2)),
    ] {
        let change_run = |run: &mut Run| *run = sample::with(run, change);
        assert_eq!(found(&change_run), expected, "{change}");
    }
    let lost =
        Delivery { lost_share: 0.031, goodput_gbit_per_s: Some(10.0), ..Delivery::default() };
    let lose = |run: &mut Run| run.flows[0].delivery = Some(lost.clone());
    assert_eq!(found(&lose), (MessagesLost, 0.031));
    let overload = |run: &mut Run| run.flows[0].load = load_of(LoadVerdict::Overloaded);
    assert_eq!(found(&overload), (Overloaded, 0.0));
    let stalled = |rows: std::ops::Range<usize>| {
        move |run: &mut Run| {
            let mut messages = vec![vec![100; 25]; 4];
            messages[rows.clone()].iter_mut().for_each(|qp| qp[10..13].fill(0));
            run.flows[0].qp_timeline = qp_timeline(0.04, messages);
        }
    };
    assert_eq!(found(&stalled(2..3)), (Stalled, 0.12));
    let events = [PathEventKind::Resent, PathEventKind::Congestion].map(event);
    let resent = wrong(|run| run.path_events = events.to_vec());
    assert_eq!(resent[0].kind, PacketsLost);
    assert_eq!(resent[0].counts, [("sent again".to_owned(), 7)]);
    let even = fairness(0.95, 0.5, 2.0);
    assert_eq!(wrong(|run| run.flows[0].fairness = even.clone()), []);
    assert_eq!(wrong(stalled(0..4)), []);
    let stopped = wrong(|run| (run.complete, run.interrupted) = (false, true));
    assert_eq!(stopped, []);
    let mut shares = case(&[("qps", "4"), ("qp-weights", "1:90,3:10")], &[10.0]);
    shares.runs[0].flows[0].fairness = fairness(0.3, 0.5, 2.0);
    assert_eq!(of([shares]), [], "uneven shares were asked for");
}

/// The gravest first, each kind once.
#[test]
fn problems_come_by_their_gravity() {
    let found = wrong(|run| {
        run.path_events = vec![event(PathEventKind::Resent)];
        run.flows[0].window.warmup_steady = Some(false);
        run.flows[0].fairness = fairness(0.61, 0.5, 2.0);
        let (missed, drift) = (doubt(DoubtKind::EdgeMissed), doubt(DoubtKind::Drift));
        run.flows[0].window.doubts = vec![missed.clone(), missed, drift];
    });
    let kinds: Vec<ProblemKind> = found.iter().map(|problem| problem.kind).collect();
    let expected = [
        ProblemKind::Unreliable,
        ProblemKind::PacketsLost,
        ProblemKind::NotSettled,
        ProblemKind::Uneven,
        ProblemKind::Drift,
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found[0].counts, [("edge missed".to_owned(), 1)]);
}

#[test]
fn a_single_case_has_a_finding_only_where_something_is_wrong() {
    let mut file = of_qps(&[("1", 10.0)]);
    assert!(findings(&[&file]).is_empty() && findings(&[]).is_empty());
    file.cases[0].runs[0].complete = false;
    assert!(findings(&[&file])[0].is_wrong());
}

/// A slow node is found in the runs of a pattern, and then something is wrong.
#[test]
fn a_slow_node_is_a_finding() {
    use crate::judge::mesh::{NodesFinding, Part};
    use results::sample::mesh::{Mesh, Slow};
    let mut file = Mesh::quiet(8).with(Slow::Sends(3, 0.5)).runs(3).pairs();
    let cases = of_qps(&[("1", 10.0), ("4", 20.0)]).cases;
    file.cases.extend(cases);
    let findings = Findings::new(&file);
    let none = |finding: &Finding| matches!(finding, Finding::NothingWrong { .. });
    assert!(!findings.findings.iter().any(none));
    let slow = findings.all_findings().into_iter().find_map(|it| match it {
        Finding::Nodes { case, finding: NodesFinding::Slow(slow) } => {
            Some((case, slow.part, slow.nodes))
        }
        _ => None,
    });
    let case = "write-pairs, 14 rounds".to_owned();
    assert_eq!(slow, Some((case, Part::Sends, names(&["node4"]))));
}
