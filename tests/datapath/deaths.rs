//! Deaths in each phase of a run: a WR that fails, a QP that goes to ERR at either end, a peer whose QPs all do. The worker
//! says which QP and which status, posts nothing more, and keeps what was measured; all queues come to rest.

use datapath::Phase;
use null_verbs::loopback;
use settings::Stop;

use crate::bench::{Bench, MS, SECOND, US};
use crate::by_hand::{WARM_UP_NS, WINDOW_NS, list, set_up, table};
use crate::loopback_node::Steer;

/// Two QPs have two messages of 100 on their way each. Times are as in `by_hand`: those of `each` QP are done at -50, 50, 150 …,
/// and of `one` device by QP 0 and QP 1 in turn, 300 of them until 19,950. Columns: device | what dies: the next `wr` that
/// is executed, one of the client's QPs, one of its peer's, all of the peer's | when | who failed with which status
/// (10 is a remote access error, 12 no answer in two time-outs of 50,000) | messages of each QP in the window; none if it
/// did not open | messages posted, executed and flushed.
const DEATHS: &str = "
# The message done at 20,050 is QP 0's 151st, and its other one is flushed; those of QP 1 are done. 4 were posted, and 300 more.
100 one | wr | at 20020 | 0:10 | 100 100 | 304 303 1
# The first of all, before a window.
100 one | wr | idle | 0:10 | none | 4 3 1
# When nothing is posted any more: 504 until 40,000, of which QP 0's 251st fails.
100 one | wr | drain | 0:10 | 200 200 | 504 503 1
# Two are flushed and seen at 20,050 with what QP 0 has done then, its 201st in the window. 302 of each were posted.
100 each | own 1 | at 20020 | flushed 1 | 201 200 | 604 602 2
# 1,020 after the first post, in the warm-up: 12 of each.
100 each | own 1 | at -9030 | flushed 1 | none | 24 22 2
# The message at 20,050 has no answer until 120,050. QP 0 goes on until then, also in the rest of the window.
100 each | peer's 1 | at 20020 | 1:12 | 400 200 | 1604 1603 1
# The same before the window, from -4,950 to 95,050: QP 1 has 52 posted, and QP 0 1,052.
100 each | peer's 1 | at -4980 | 1:12 | 400 0 | 1104 1103 1
100 each | peer | at 20020 | 0:12 1:12 | 200 200 | 604 602 2
";

/// Has it die when the row says, waits until a worker knows, and ends the run as a session does.
fn run(bench: &mut Bench<'_>, death: &str, when: &str) {
    let opens_ns = bench.now_ns() + WARM_UP_NS + 5 * MS;
    let at_ns = when
        .strip_prefix("at ")
        .map(|us| opens_ns.saturating_add_signed(us.parse::<i64>().unwrap() * US as i64));
    match at_ns {
        Some(at_ns) if at_ns < opens_ns - 5 * MS => {
            bench.set_phase(Phase::Warmup);
            bench.run_until_ns(at_ns);
        }
        Some(at_ns) => {
            bench.open_window(WARM_UP_NS, WINDOW_NS);
            bench.run_until_ns(at_ns);
        }
        None if when == "drain" => {
            bench.open_window(WARM_UP_NS, WINDOW_NS);
            bench.run_until("end of the window", SECOND, |bench| {
                bench.pair.client.shared.window().is_closed
            });
            bench.set_phase(Phase::Drain);
        }
        None => {}
    }
    let [own, peers] = [&bench.pair.client, &bench.pair.server];
    let fails = |end: &crate::loopback_node::End, qp: &str| {
        let qp: usize = qp.parse().unwrap();
        end.shared.qp_contexts()[qp].qp.to_error().unwrap();
    };
    match death.split_once(' ') {
        Some(("own", qp)) => fails(own, qp),
        Some((_, qp)) => fails(peers, qp),
        None if death == "peer" => peers.objects.flush(),
        None => loopback::fail_next(10),
    }
    if when == "idle" {
        bench.set_phase(Phase::Warmup);
    }
    bench.wait("failure", |_| false).unwrap_err();
    bench.set_phase(Phase::Abort);
    assert!(bench.pair.entered(Phase::Abort));
    bench.run_until("rest", SECOND, |_| loopback::next_due_ns().is_none());
    for end in [&bench.pair.client, &bench.pair.server] {
        end.objects.flush();
    }
    bench.run_for(MS);
    assert_eq!(loopback::next_due_ns(), None);
}

#[test]
fn a_death_in_any_phase_is_told_and_ends_in_rest() {
    for row in table(DEATHS) {
        let [device, death, when, failures, completed, counts] = row;
        let text = row.join(" | ");
        for (seed, cq) in (0..).zip(["shared", "per-worker"]) {
            let flags = format!("qps=2 tx-depth=2 retry-cnt=2 cq={cq}");
            let mut set_up = set_up(&flags, device, seed);
            set_up.case.set_stop(Stop::DurationNs(WINDOW_NS));
            let ((), over) = set_up.run(|bench| run(bench, death, when));
            let report = &over.rest.client.2[0];
            let trouble = &report.trouble;
            let mut told: Vec<String> =
                trouble.failed.iter().map(|it| format!("{}:{}", it.qp, it.status.0)).collect();
            told.sort_unstable();
            if told.is_empty() {
                let flush = trouble.first_flush.as_ref().unwrap();
                assert!(flush.status.is_flush(), "{text}");
                told.push(format!("flushed {}", flush.qp));
            }
            assert_eq!(told.join(" "), failures, "{text}");
            assert!(trouble.refused.is_none() && over.rest.client_failure().is_some(), "{text}");
            let sums = over.rest.client_sums();
            let in_window = report.window_raw.map_or("none".to_owned(), |_| list(&sums.completed));
            assert_eq!(in_window, completed, "{text}, {cq}");
            let posted: u64 = sums.posted_in_all.iter().sum();
            let of_device = format!("{posted} {} {}", over.served.len(), trouble.flushed_count);
            assert_eq!(of_device, counts, "{text}, {cq}");
        }
    }
}
