//! Which window each worker reports, and which doubts a flow has, when workers were away over edges or close to them.

use datapath::WindowEdges;
use node::needs::effective_workers;
use results::model::DoubtKind;
use settings::{CqMode, Op, Settings};

use crate::bench::{MS, SECOND, SetUp, US};
use crate::exact::{Truth, constant, list, timed};
use crate::loopback_node::{Choices, case_of, small};
use crate::planned::for_seeds;

const WINDOW_NS: u64 = 40 * MS;

/// From this part of the window on an absence over an edge is told, a window that is so much longer or shorter, and one in
/// which the worker was away for so long.
const EDGE_PARTS: u64 = 100;
const LENGTH_PARTS: u64 = 50;
const AWAY_PARTS: u64 = 50;

/// When a worker is away: over an edge or over both, shortly before or after one, in the middle, or for all of the window.
/// From and until.
fn absences(choices: &mut Choices, edges: WindowEdges) -> Vec<(u64, u64)> {
    let [opens, closes] = [edges.opens_raw, edges.closes_raw];
    let most_ns = choices.one(&[120 * US, 500 * US, MS, 4 * MS]);
    let mut over =
        |edge_ns: u64| (edge_ns - choices.upto(most_ns), edge_ns + choices.upto(most_ns));
    let (start, end) = (over(opens), over(closes));
    let length_ns = choices.upto(most_ns);
    let gap_ns = choices.upto(length_ns + 300 * US);
    match choices.upto(9) {
        1 => vec![start],
        2 => vec![end],
        3 => vec![start, end],
        4 => vec![(opens - gap_ns - length_ns, opens - gap_ns)],
        5 => vec![(opens + gap_ns, opens + gap_ns + length_ns)],
        6 => vec![(closes - gap_ns - length_ns, closes - gap_ns)],
        7 => vec![(opens + WINDOW_NS / 2, opens + WINDOW_NS / 2 + length_ns)],
        8 => vec![(start.0, end.1)],
        _ => Vec::new(),
    }
}

#[test]
fn a_worker_that_was_away_over_an_edge_has_its_own_window_and_a_doubt() {
    let (mut doubtful, mut sound) = ([0; 3], 0);
    for_seeds(300, |seed| {
        let choices = &mut seed.choices;
        let case = case_of(timed(
            Settings {
                cq: choices.one(CqMode::ALL),
                workers: choices.upto(3) as u32,
                qps: choices.upto(4) as u32,
                tx_depth: choices.one(&[1, 4, 16, 80]),
                bidirectional: choices.one(&[true, false]),
                no_latency: choices.one(&[true, false]),
                rx_depth: 256,
                ..small(choices.one(&[Op::Write, Op::Send]))
            },
            WINDOW_NS,
        ));
        let times = (0..5).map(|_| choices.upto(50 * US) + 5 * US).collect();
        let serving = list(times, choices.one(&[true, false]));
        let set_up = seed.bench(&case, serving);
        let (edges, over) = set_up.run(|bench| {
            let edges = bench.open_window(6 * MS, WINDOW_NS);
            for worker in 0..effective_workers(&bench.pair.case) {
                for (from_ns, until_ns) in absences(&mut seed.choices, edges) {
                    bench.away(worker, from_ns, until_ns - from_ns);
                }
            }
            bench.close_window();
            edges
        });
        let truth = Truth::new(&over, edges);
        if set_up.case.cq != CqMode::Shared {
            let workers = &truth.ends[0];
            for (qp, count) in truth.done_in_windows(&over).into_iter().enumerate() {
                let worker = &workers[qp % workers.len()];
                if worker.has_caught_up() {
                    assert_eq!(worker.qps[qp].completed, count);
                }
            }
        }
        let marked: Vec<DoubtKind> =
            over.report().sent.unwrap().window.doubts.iter().map(|doubt| doubt.kind).collect();
        assert_eq!(marked, doubts(&truth));
        sound += u32::from(marked.is_empty());
        let kinds = [DoubtKind::WindowLength, DoubtKind::EdgeMissed, DoubtKind::WorkerAway];
        for (kind, count) in kinds.iter().zip(&mut doubtful) {
            *count += u32::from(marked.contains(kind));
        }
    });
    // Each is tried.
    assert!(sound > 50 && doubtful.iter().all(|&count| count > 50), "{sound} {doubtful:?}");
}

/// Who is away posts nothing meanwhile: 7.5 % of the window are as much of the messages.
#[test]
fn a_closed_loop_whose_worker_is_away_in_the_middle_is_told_and_has_a_doubt_from_2_percent() {
    let (window_ns, service_ns) = (2 * SECOND, 200 * US);
    for (away_ns, expected) in [
        (250 * US, None),
        (MS, None),
        (39 * MS, None),
        (40 * MS, Some(DoubtKind::WorkerAway)),
        (150 * MS, Some(DoubtKind::WorkerAway)),
    ] {
        let settings = Settings { tx_depth: 1, ..small(Op::Write) };
        let case = case_of(timed(settings, window_ns));
        let set_up = SetUp::new(case, 1, constant(service_ns, false));
        let (edges, over) = set_up.run(|bench| {
            let edges = bench.open_window(10 * MS, window_ns);
            bench.away(0, edges.opens_raw + SECOND, away_ns);
            bench.close_window();
            edges
        });
        let truth = Truth::new(&over, edges);
        let told_ns = truth.ends[0][0].away_ns();
        // From the last look before to the first one after.
        let since_ns = told_ns.checked_sub(away_ns).filter(|_| away_ns > 500 * US);
        assert_eq!(told_ns > 0, away_ns > 500 * US);
        assert!(since_ns.is_none_or(|ns| ns <= service_ns), "{told_ns}");
        let sent = over.report().sent.unwrap();
        let kinds: Vec<DoubtKind> = sent.window.doubts.iter().map(|doubt| doubt.kind).collect();
        assert_eq!(kinds, expected.into_iter().collect::<Vec<_>>(), "{away_ns}");
        // One that completes meanwhile is seen.
        let missing = away_ns / service_ns;
        let messages = window_ns / service_ns - sent.totals.messages;
        assert!(messages <= missing && missing <= messages + 2, "{messages}");
    }
}

/// The doubts that the windows of the client's workers raise.
fn doubts(truth: &Truth) -> Vec<DoubtKind> {
    let workers = || truth.ends[0].iter();
    let is_off = workers()
        .map(super::exact::WorkerTruth::window_ns)
        .map(|(start, end)| end - start)
        .map(|length_ns| length_ns.abs_diff(WINDOW_NS))
        .any(|off_ns| off_ns * LENGTH_PARTS >= WINDOW_NS);
    let is_missed = |edge: usize| {
        let mut away = workers().map(|it| it.unattended_ns()[edge]);
        away.any(|away_ns| away_ns * EDGE_PARTS >= WINDOW_NS)
    };
    let is_away = workers().any(|it| {
        let (start_ns, end_ns) = it.window_ns();
        it.away_ns() > 0 && it.away_ns() * AWAY_PARTS >= end_ns - start_ns
    });
    let kinds = [
        (is_off, DoubtKind::WindowLength),
        (is_missed(0), DoubtKind::EdgeMissed),
        (is_missed(1), DoubtKind::EdgeMissed),
        (is_away, DoubtKind::WorkerAway),
    ];
    kinds.into_iter().filter_map(|(is, kind)| is.then_some(kind)).collect()
}
