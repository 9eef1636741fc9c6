//! Deaths in each phase of a run: a WR that fails, a QP that goes to ERR at either end, a peer whose QPs all do. The worker
//! says which QP and which status, posts nothing more, and keeps what was measured; all queues come to rest.

use datapath::Phase;
use null_verbs::loopback::{self, Served};
use plan::Case;
use settings::{CqMode, Op, Settings};
use verbs::WcStatus;

use crate::bench::{Bench, MS, Over, SECOND, US, exponential, for_seeds, timed};
use crate::loopback_node::{Choices, Steer, case_of, small};

const WINDOW_NS: u64 = 20 * MS;

/// `IBV_WC_REM_ACCESS_ERR` and `IBV_WC_RETRY_EXC_ERR`.
const ACCESS_ERROR: u32 = 10;
const RETRIES_EXCEEDED: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Death {
    /// The WR that the device executes next fails.
    Wr,
    /// A QP of the client goes to ERR.
    OwnQp(usize),
    PeersQp(usize),
    Peer,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Idle,
    Warmup,
    BeforeTheWindow,
    InTheWindow,
    Drain,
}

impl Death {
    fn happens(self, bench: &Bench<'_>) {
        let qp = |end: &crate::loopback_node::End, qp: usize| {
            end.shared.qp_contexts()[qp].qp.to_error().unwrap();
        };
        match self {
            Death::Wr => loopback::fail_next(ACCESS_ERROR),
            Death::OwnQp(index) => qp(&bench.pair.client, index),
            Death::PeersQp(index) => qp(&bench.pair.server, index),
            Death::Peer => bench.pair.server.objects.flush(),
        }
    }

    /// The QPs of the client that die of it, and with which status; `None` of those that are flushed. `failed` is the QP of
    /// the WR that failed.
    fn of_client(self, qps: usize, failed: usize) -> (Vec<usize>, Option<u32>) {
        match self {
            Death::Wr => (vec![failed], Some(ACCESS_ERROR)),
            Death::OwnQp(qp) => (vec![qp], None),
            Death::PeersQp(qp) => (vec![qp], Some(RETRIES_EXCEEDED)),
            Death::Peer => ((0..qps).collect(), Some(RETRIES_EXCEEDED)),
        }
    }
}

/// Goes to a phase, lets it happen there, and ends the run as a session does. Returns when it happened, how many messages
/// the client had posted when a worker failed, and whether its window had opened by then.
fn run(bench: &mut Bench<'_>, death: Death, when: When, choices: &mut Choices) -> (u64, u64, bool) {
    let mut opens_ns = u64::MAX;
    match when {
        When::Idle => {}
        When::Warmup => {
            bench.set_phase(Phase::Warmup);
            bench.run_for(choices.upto(MS));
        }
        When::BeforeTheWindow | When::InTheWindow | When::Drain => {
            opens_ns = bench.open_window(MS, WINDOW_NS).opens_raw;
            match when {
                When::InTheWindow => bench.run_until_ns(opens_ns + choices.upto(WINDOW_NS / 2)),
                When::Drain => {
                    bench.run_until("end of the window", SECOND, |bench: &Bench<'_>| {
                        bench.pair.client.shared.window().is_closed
                    });
                    bench.set_phase(Phase::Drain);
                }
                _ => {}
            }
        }
    }
    let died_ns = bench.now_ns();
    death.happens(bench);
    if when == When::Idle {
        bench.set_phase(Phase::Warmup);
    }
    bench.wait("failure", |_| false).unwrap_err();
    let posted = bench.pair.counts()[0].posted;
    let has_opened = bench.now_ns() >= opens_ns;
    bench.set_phase(Phase::Abort);
    assert!(bench.pair.entered(Phase::Abort));
    bench.run_until("rest", SECOND, |_| loopback::next_due_ns().is_none());
    for end in [&bench.pair.client, &bench.pair.server] {
        end.objects.flush();
    }
    bench.run_for(MS);
    assert_eq!(loopback::next_due_ns(), None);
    (died_ns, posted, has_opened)
}

#[test]
fn a_death_in_any_phase_is_told_and_ends_in_rest() {
    for_seeds(260, |seed| {
        let choices = &mut seed.choices;
        let case = case_of(timed(
            Settings {
                cq: choices.one(CqMode::ALL),
                workers: choices.upto(2) as u32,
                qps: choices.upto(4) as u32,
                tx_depth: choices.upto(8) as u32,
                rx_depth: 64,
                retry_cnt: 2,
                ..small(choices.one(&[Op::Write, Op::Read, Op::Send]))
            },
            WINDOW_NS,
        ));
        let qp = choices.upto(case.qps.into()) as usize - 1;
        let death = choices.one(&[Death::Wr, Death::OwnQp(qp), Death::PeersQp(qp), Death::Peer]);
        let when = choices.one(&[
            When::Idle,
            When::Warmup,
            When::BeforeTheWindow,
            When::InTheWindow,
            When::Drain,
        ]);
        let what = format!("{death:?} {when:?}");
        let serving = exponential(20 * US, choices.one(&[true, false]));
        let set_up = seed.bench(&case, serving);
        let draws = &mut seed.choices;
        let (died, over) = set_up.run(|bench| run(bench, death, when, draws));
        check(&over, death, died, &what);
    });
}

fn check(over: &Over, death: Death, (died_ns, posted, has_opened): (u64, u64, bool), what: &str) {
    let case: &Case = &over.rest.case;
    let (_, shared, reports) = &over.rest.client;
    let qpn = |qp: usize| shared.qp_contexts()[qp].qp.qpn();
    let qp_of =
        |served: &Served| (0..case.qps as usize).find(|qp| qpn(*qp) == served.qp_num).unwrap();
    let fails = over.served.iter().position(|it| it.done_ns > died_ns);
    let failed_qp = fails.map_or(0, |index| qp_of(&over.served[index]));
    let (dead, status) = death.of_client(case.qps as usize, failed_qp);
    let troubles = || reports.iter().map(|report| &report.trouble);
    // What failed, and what was flushed after it.
    let failed: Vec<_> = troubles().flat_map(|it| &it.failed).collect();
    let mut failed_qps: Vec<usize> = failed.iter().map(|it| it.qp).collect();
    failed_qps.sort_unstable();
    let expected = status.map_or(Vec::new(), |_| dead.clone());
    assert_eq!(failed_qps, expected, "{what}");
    for failure in &failed {
        let as_planned = (qpn(failure.qp), status.map(WcStatus));
        assert_eq!((failure.qpn, Some(failure.status)), as_planned, "{what}");
    }
    if status.is_none() {
        let first = troubles().find_map(|it| it.first_flush.as_ref()).unwrap();
        let flush = (first.qp, first.status.is_flush());
        assert_eq!(flush, (dead[0], true), "{what}");
    }
    assert!(troubles().all(|it| it.refused.is_none()), "{what}");
    assert!(over.rest.client_failure().is_some(), "{what}");
    // Every message has completed, failed, or was flushed; nothing was posted once the workers knew.
    let sums = over.rest.client_sums();
    let in_all: u64 = sums.posted_in_all.iter().sum();
    assert_eq!(in_all, posted, "{what}");
    let failed_count = troubles().map(|it| it.failed_count).sum::<u64>();
    let flushed = troubles().map(|it| it.flushed_count).sum::<u64>();
    let served = over.served.len() as u64;
    assert_eq!(in_all, served + flushed, "{what}");
    // What was measured until then is kept.
    // What failed is the last that the device executed of its QP.
    let is_last = |message: &Served| {
        let mut of_qp = over.served.iter().rev();
        of_qp.find(|it| it.qp_num == message.qp_num) == Some(message)
    };
    for report in reports {
        let window = report.window_raw;
        assert_eq!(window.is_some(), has_opened, "{what}");
        let (start_ns, end_ns) = window.unwrap_or((u64::MAX, 0));
        if case.cq != CqMode::Shared || reports.len() == 1 {
            let counts: Vec<u64> = report.qps.iter().map(|qp| qp.completed).collect();
            let own = |qp: &usize| case.cq == CqMode::Shared || qp % reports.len() == report.index;
            let by_qp = (0..case.qps as usize).map(|qp| {
                over.served
                    .iter()
                    .filter(|it| own(&qp) && it.qp_num == qpn(qp))
                    .filter(|it| it.done_ns > start_ns && it.done_ns <= end_ns)
                    .filter(|it| !(failed_count > 0 && dead.contains(&qp_of(it)) && is_last(it)))
                    .count() as u64
            });
            assert_eq!(counts, by_qp.collect::<Vec<_>>(), "{what}");
        }
    }
}
