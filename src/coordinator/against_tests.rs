//! What is compared with perftest, without running any.

use super::*;
use results::model::FlowResult;
use settings::{Op, Settings};

#[test]
fn small_messages_are_compared_by_rate() {
    let mut case = Case::sample();
    let metric = |it: &Case| metric(it, Program::for_case(it));
    assert_eq!(metric(&case), Metric::MmsgPerS);
    case.size_bytes = 64 << 10;
    assert_eq!(metric(&case), Metric::GbitPerS);
    (case.qps, case.tx_depth, case.ping_pong) = (1, 1, true);
    for op in [Op::Read, Op::Write] {
        case.op = op.into();
        assert_eq!(metric(&case), Metric::P50Ns);
    }
}

#[test]
fn both_directions_count_together() {
    let mut run = Run::default();
    run.flows.push(FlowResult::default());
    run.flows[0].totals.mmsg_per_s = Some(2.0);
    assert_eq!(of_run(Metric::MmsgPerS, &run), Some(2.0));
    run.flows.push(FlowResult::default());
    assert_eq!(of_run(Metric::MmsgPerS, &run), None, "half is missing");
    run.flows[1].totals.mmsg_per_s = Some(2.0);
    assert_eq!(of_run(Metric::MmsgPerS, &run), Some(4.0));
}

#[test]
fn a_latency_run_has_as_many_messages_as_ours_had() {
    let settings = Settings::from([("ping-pong", "true"), ("tx-depth", "1")]);
    let case = Case::new(Case::sample().id, settings);
    let against = Against { pairs: 8, max_pairs: 24, limit: Duration::from_secs(20) };
    let path = PathFacts { mtu_bytes: 1024, outstanding_reads: 4, wire: None };
    assert_eq!(job(&case, &against, path, None).messages, Some(1_000));
    let job = job(&case, &against, path, Some((40_000, 2.0)));
    assert_eq!((job.messages, job.limit_ms), (Some(40_000), 40_000));
    assert_eq!(job.check(), Ok(()));
}
