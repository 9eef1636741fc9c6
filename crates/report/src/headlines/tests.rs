//! What is said above a page, of sweeps whose figures are made up.

use settings::Settings;

use super::*;
use crate::results::model::{
    CaseConfig, CaseResult, Connect, Delivery, DoubtKind, FlowResult, Latency, LoadVerdict,
    PathEvent, PathEventKind, Run, Totals,
};
use crate::results::sample::{self, cases, doubt, fairness, has, load_of, qp_timeline, starts};

/// A case with a run for each throughput in Gb/s; p99 in µs is ten times as much.
fn case(flags: &[(&str, &str)], gbit_per_s: &[f64]) -> CaseResult {
    let settings: Settings = [("op", "write")].iter().chain(flags).copied().collect();
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
    let run = |(number, rate): (u32, &f64)| Run {
        run: number,
        ..sample::run(vec![flow(*rate)])
    };
    let words = flags.iter().map(|(flag, text)| format!("{flag}{text}"));
    CaseResult {
        id: words.collect::<Vec<_>>().join("-"),
        config: CaseConfig::from(settings),
        ..sample::case((1..).zip(gbit_per_s).map(run).collect())
    }
}

fn of_qps(points: &[(&str, f64)]) -> ResultFile {
    let case = |(qps, rate): &(&str, f64)| case(&[("qps", qps)], &[*rate; 3]);
    cases(points.iter().map(case).collect())
}

/// What is said of a file of these cases.
fn said(all: impl Into<Vec<CaseResult>>) -> Vec<String> {
    texts(&[&cases(all.into())])
}

fn texts(results: &[&ResultFile]) -> Vec<String> {
    headlines(results).into_iter().map(|it| it.text).collect()
}

#[test]
fn three_sentences_tell_of_a_sweep() {
    let file = of_qps(&[("1", 10.0), ("4", 20.0), ("16", 30.0), ("64", 30.2)]);
    let told = headlines(&[&file]);
    let best = "Most throughput: 30.000 to 30.200 Gb/s in 2 of 4 cases, the same within chance (16 QPs; 64 QPs); \
                lowest p99: 100 µs with 1 QP.";
    let scaling =
        "Throughput grows until 16 QPs (30.000 Gb/s), and no further until 64 QPs (30.200 Gb/s).";
    let wanted = [
        (Topic::Best, best),
        (Topic::Scaling, scaling),
        (Topic::NothingWrong, "Nothing looks wrong in 12 runs."),
    ];
    assert!(told.iter().map(|it| (it.topic, &*it.text)).eq(wanted));
}

#[test]
fn differences_that_may_be_chance_make_no_best_case() {
    let of = |cq, rates: &[f64]| case(&[("cq", cq)], rates);
    let (low, high) = (of("shared", &[10.0]), of("per-qp", &[10.5]));
    let said_of_single = said([low, high, of("per-worker", &[9.7])]);
    let chance = "All 3 cases have the same throughput within chance, 9.700 to 10.500 Gb/s; all 3 cases have the same p99 within \
                  chance, 97.0 to 105 µs; with so few runs 9 % of throughput and 30 % of p99 may be chance.";
    assert_eq!(said_of_single[0], chance);
    // With runs that agree the same difference is one.
    let cases = [("shared", 10.0), ("per-qp", 10.5)];
    let said = said(cases.map(|(cq, rate)| of(cq, &[rate, rate, rate * 1.001])));
    let best = "Most throughput: 10.500 Gb/s with CQ per-qp; both";
    starts(&said[0], best);
}

#[test]
fn many_equal_cases_are_told_by_what_they_share() {
    let of = |qps, size, rate| case(&[("qps", qps), ("size", size)], &[rate; 3]);
    let cases = ["1", "4", "16"].map(|qps| [of(qps, "64", 1.0), of(qps, "64K", 20.0)]);
    let said = said(cases.concat());
    let words = "20.000 Gb/s in 3 of 6 cases, the same within chance (64 KiB);";
    has(&said[0], [words]);
    let same = "Throughput is the same, within chance, from 1 QP (20.000 Gb/s) to 16 QPs (20.000 Gb/s) (64 KiB).";
    assert_eq!(said[1], same);
}

#[test]
fn curves_fall_grow_and_have_two_points() {
    for [points, words] in sample::rows(
        "
1:10 4:20 16:12 | Throughput is highest with 4 QPs (20.000 Gb/s), and falls until 16 QPs (12.000 Gb/s).
1:10 4:20 16:40 | Throughput still grows at the end, from 4 QPs (20.000 Gb/s) to 16 QPs (40.000 Gb/s).
1:100 4:40 16:80 | Throughput is highest with 1 QP (100.00 Gb/s).
1:60 4:100 16:60 64:100.5 | Throughput is highest with 64 QPs (100.50 Gb/s).
1:20 4:10 | Throughput falls from 1 QP (20.000 Gb/s) to 4 QPs (10.000 Gb/s).
1:10 4:20 | Throughput grows from 1 QP (10.000 Gb/s) to 4 QPs (20.000 Gb/s).
",
    ) {
        let points = points.split(' ').map(|point| point.split_once(':').unwrap());
        let points: Vec<_> = points.map(|(qps, rate)| (qps, rate.parse().unwrap())).collect();
        assert_eq!(texts(&[&of_qps(&points)])[1], words);
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
    let said = said([set_up("1", 100.0), set_up("16", 400.0)]);
    assert_eq!(said[0], "Most set-ups a second: 400.00 /s with 16 QPs.");
    let words = "The number of set-ups a second grows from 1 QP (100";
    starts(&said[1], words);
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

/// What looks wrong of a sweep of two cases after a change of its first run.
fn wrong(change: impl FnOnce(&mut Run)) -> String {
    let mut file = of_qps(&[("1", 10.0), ("4", 20.0)]);
    change(&mut file.cases[0].runs[0]);
    texts(&[&file]).pop().unwrap()
}

const WRONG: &str = r#"
complete=false | 1 of 6 runs failed (qps1)
flows/0/totals/errors=1 | 1 of 6 runs failed (qps1)
flows/0/window/warmup_steady=false | throughput did not settle before 1 of 6 runs (qps1)
flows/0/received={"messages":2,"bytes":0,"window_seconds":null} | the receiver's rate was not the sender's in 1 of 6 runs (qps1)
flows/0/fairness={"jain":0.997,"min_share":0.11,"max_share":1,"starved":[{"index":37,"qpn":293,"share":0.108}]} | a QP got less than half of its share in 1 of 6 runs: QP 37 down to 0.11 of it (qps1)
flows/0/fairness={"jain":0.61,"min_share":0.5,"max_share":2,"starved":[]} | QPs were served unevenly in 1 of 6 runs: Jain's index down to 0.61 (qps1)
flows/0/totals/gbit_per_s=12.0 | runs of 1 case scatter in throughput, by up to 20 % (qps1)
"#;

#[test]
fn what_looks_wrong_is_told_with_the_case() {
    for [change, words] in sample::rows(WRONG) {
        let told = wrong(|run| *run = sample::with(run, change));
        assert_eq!(told, format!("What looks wrong: {words}."), "{change}");
    }
    let tells = |change: &dyn Fn(&mut Run), words: &str| {
        assert_eq!(wrong(change), format!("What looks wrong: {words}."));
    };
    for (lost_share, share) in [(0.031, "up to 3.10 %"), (1e-6, "less than 0.01 %")] {
        let lost = Delivery {
            lost_share,
            goodput_gbit_per_s: Some(10.0),
            ..Delivery::default()
        };
        let words = format!("messages were lost in 1 of 6 runs, {share} (qps1)");
        tells(&|run| run.flows[0].delivery = Some(lost.clone()), &words);
    }
    let overloaded = "more was offered than was served in 1 of 6 runs (qps1)";
    tells(
        &|run| run.flows[0].load = load_of(LoadVerdict::Overloaded),
        overloaded,
    );
    let stalled = |rows: std::ops::Range<usize>| {
        move |run: &mut Run| {
            let mut messages = vec![vec![100; 25]; 4];
            let still = messages[rows.clone()].iter_mut();
            still.for_each(|qp| qp[10..13].fill(0));
            run.flows[0].qp_timeline = qp_timeline(0.04, messages);
        }
    };
    let still = "a QP stood still while others moved in 1 of 6 runs, for up to 120 ms (qps1)";
    tells(&stalled(2..3), still);
    let event = |kind| PathEvent {
        node: String::new(),
        kind,
        count: 7,
        counters: Vec::new(),
    };
    let events = [PathEventKind::Resent, PathEventKind::Congestion].map(event);
    let resent = "packets were lost or late in 1 of 6 runs: 7 sent again (qps1)";
    tells(&|run| run.path_events = events.to_vec(), resent);
    // The gravest first, each kind once, and no more than three in full.
    let gravest = format!(
        "figures of 1 of 6 runs do not count: edge missed (qps1); {resent}; \
         throughput did not settle before 1 of 6 runs (qps1); also uneven QPs, drift"
    );
    let many = |run: &mut Run| {
        run.path_events = vec![event(PathEventKind::Resent)];
        run.flows[0].window.warmup_steady = Some(false);
        run.flows[0].fairness = fairness(0.61, 0.5, 2.0);
        let (missed, drift) = (doubt(DoubtKind::EdgeMissed), doubt(DoubtKind::Drift));
        run.flows[0].window.doubts = vec![missed.clone(), missed, drift];
    };
    tells(&many, &gravest);
    for told in [
        wrong(|run| run.flows[0].fairness = fairness(0.95, 0.5, 2.0)),
        wrong(stalled(0..4)),
        wrong(|run| (run.complete, run.interrupted) = (false, true)),
    ] {
        starts(told, "Nothing");
    }
    let mut shares = case(&[("qps", "4"), ("qp-weights", "1:90,3:10")], &[10.0]);
    shares.runs[0].flows[0].fairness = fairness(0.3, 0.5, 2.0);
    assert!(said([shares]).is_empty(), "uneven shares were asked for");
}

#[test]
fn a_single_case_has_a_sentence_only_where_something_is_wrong() {
    let mut file = of_qps(&[("1", 10.0)]);
    assert!(headlines(&[&file]).is_empty() && headlines(&[]).is_empty());
    file.cases[0].runs[0].complete = false;
    assert_eq!(headlines(&[&file])[0].topic, Topic::Wrong);
}
