//! What pairs come to, without running any.

use super::*;
use plan::Case;
use results::model::{FlowResult, Run};
use settings::{Op, Settings};

const AGAINST: Against = Against { pairs: 8, max_pairs: 24, limit: Duration::from_secs(20) };

const PATH: PathFacts = PathFacts { mtu_bytes: 1024, outstanding_reads: 4 };

fn pairing<'a>(case: &'a Case, points: &[(f64, f64)]) -> Pairing<'a> {
    let mut pairing = Pairing::new(0, case, &AGAINST, Some("6.06"));
    pairing.path = Some(PATH);
    for (number, (perftest, rocebench)) in (1..).zip(points) {
        let pair = PerftestPair {
            rocebench: Some(*rocebench),
            perftest: Some(*perftest),
            ..pairing.next(number)
        };
        pairing.add(pair, false);
    }
    pairing
}

fn word(case: &Case, ratio: f64, pairs: usize) -> (String, bool) {
    let points: Vec<_> = (0..pairs)
        .map(|index| {
            let perftest = 10.0 + index as f64 * 0.01;
            (perftest, perftest * ratio)
        })
        .collect();
    let pairing = pairing(case, &points);
    (pairing.comparison.verdict.clone(), pairing.is_settled())
}

#[test]
fn the_word_follows_the_ratio_and_settles_it() {
    let case = Case::sample();
    for (ratio, expected) in [(1.2, "faster"), (1.0, "equal"), (0.8, "slower")] {
        let settled = (expected.to_owned(), true);
        assert_eq!(word(&case, ratio, 8), settled, "{ratio}");
    }
    for between_looks in [6, 7, 9, 14] {
        let unclear = (UNCLEAR.to_owned(), false);
        assert_eq!(word(&case, 1.2, between_looks), unclear, "{between_looks}");
    }
    let scattered = [12.0, 8.0, 13.0, 7.0, 10.0, 9.0, 11.0, 10.5];
    let scattered = scattered.map(|rocebench| (10.0, rocebench));
    let pairing = pairing(&case, &scattered);
    assert_eq!(pairing.comparison.verdict, UNCLEAR);
    assert!(!pairing.is_settled(), "more pairs may tell");
}

#[test]
fn a_longer_latency_is_slower() {
    let mut case = Case::sample();
    (case.qps, case.tx_depth, case.ping_pong) = (1, 1, true);
    for op in [Op::Read, Op::Write] {
        case.op = op.into();
        assert_eq!(word(&case, 1.5, 8), ("slower".to_owned(), true));
        assert_eq!(word(&case, 0.5, 8), ("faster".to_owned(), true));
    }
}

#[test]
fn pairs_that_failed_or_are_in_doubt_do_not_count_and_are_told() {
    let failed = PerftestPair {
        failure: Some("ib_send_bw did not end within 2 s".into()),
        ..PerftestPair::default()
    };
    let doubtful = PerftestPair {
        perftest: Some(10.0),
        doubt: Some("edge missed".into()),
        ..PerftestPair::default()
    };
    let why = "do not count, since rocebench's run is in doubt";
    for (pair, note) in
        [(failed, "1 of 9 pairs failed".to_owned()), (doubtful, format!("1 of 9 pairs {why}"))]
    {
        let case = Case::sample();
        let mut pairing = pairing(&case, &[(10.0, 10.0); 8]);
        pairing.add(PerftestPair { rocebench: Some(100.0), ..pair }, false);
        let comparison = &pairing.comparison;
        assert_eq!(comparison.rocebench_median, Some(10.0));
        assert_eq!(comparison.verdict, "equal");
        assert_eq!(comparison.note, Some(note));
    }
}

#[test]
fn half_of_the_pairs_that_count_begin_with_either_also_where_some_failed() {
    let case = Case::sample();
    let mut pairing = pairing(&case, &[]);
    pairing.path = None;
    let mut first = Vec::new();
    for number in 1..=14 {
        let mut pair = pairing.next(number);
        (pair.rocebench, pair.perftest) = (Some(10.0), Some(10.0));
        pairing.path = Some(PATH);
        let fails = [2, 5, 6].contains(&number);
        pair.failure = fails.then(|| "it hung".to_owned());
        if !fails {
            first.push(pair.first == "rocebench");
        }
        pairing.add(pair, false);
    }
    for pair in first.chunks_exact(2) {
        assert_ne!(pair[0], pair[1], "{first:?}");
    }
}

#[test]
fn going_first_decides_nothing() {
    let case = Case::sample();
    let mut pairing = pairing(&case, &[]);
    for number in 1..=8 {
        let mut pair = pairing.next(number);
        let luck = 1.0 + 0.001 * f64::from(number * 5 % 8);
        let own_first = pair.first == "rocebench";
        pair.rocebench = Some(luck * if own_first { 11.0 } else { 10.0 });
        pair.perftest = Some(luck * if own_first { 10.0 } else { 11.0 });
        pairing.add(pair, false);
    }
    assert_eq!(pairing.comparison.verdict, "equal");
}

#[test]
fn small_messages_are_compared_by_rate() {
    let mut case = Case::sample();
    let metric = |it: &Case| Metric::new(it, Program::for_case(it)).name();
    assert_eq!(metric(&case), "mmsg_per_s");
    case.size_bytes = 64 << 10;
    assert_eq!(metric(&case), "gbit_per_s");
    (case.qps, case.tx_depth, case.ping_pong) = (1, 1, true);
    assert_eq!(metric(&case), "latency_ns");
}

#[test]
fn both_directions_count_together() {
    let mut run = Run::default();
    run.flows.push(FlowResult::default());
    run.flows[0].totals.mmsg_per_s = Some(2.0);
    assert_eq!(Metric::Rate.of_run(&run), Some(2.0));
    run.flows.push(FlowResult::default());
    assert_eq!(Metric::Rate.of_run(&run), None, "half is missing");
    run.flows[1].totals.mmsg_per_s = Some(2.0);
    assert_eq!(Metric::Rate.of_run(&run), Some(4.0));
}

#[test]
fn a_latency_run_has_as_many_messages_as_ours_had() {
    let mut case = Case::sample();
    case = Case::new(case.id, Settings::from([("ping-pong", "true"), ("tx-depth", "1")]));
    let mut pairing = pairing(&case, &[]);
    assert_eq!(pairing.job(PATH).messages, Some(1_000));
    pairing.whole = Some((40_000, 2.0));
    let job = pairing.job(PATH);
    assert_eq!((job.messages, job.limit_ms), (Some(40_000), 40_000));
    assert_eq!(job.check(), Ok(()));
}
