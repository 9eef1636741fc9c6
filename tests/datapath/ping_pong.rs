//! Ping-pongs: each QP has one message under way, and a latency is half of the time until its answer.

use metrics::latency::Recorder;
use settings::{CqMode, Op, RecvQueue, Settings};

use crate::bench::{Over, SetUp};
use crate::exact::recorder_of;
use crate::loopback_node::{Steer, case_of, small};
use crate::planned::for_seeds;

const SEEDS: u64 = 300;

#[test]
fn a_latency_is_half_of_the_time_until_the_answer_and_none_is_under_way_beside() {
    for_seeds(SEEDS, |seed| {
        let choices = &mut seed.choices;
        let op = choices.one(&[Op::Send, Op::Write, Op::SendImm, Op::WriteImm, Op::Read]);
        let workers = choices.upto(3) as u32;
        let cq = match workers {
            1 => choices.one(CqMode::ALL),
            _ => choices.one(&[CqMode::PerWorker, CqMode::PerQp]),
        };
        let case = case_of(Settings {
            ping_pong: true,
            cq,
            workers,
            qps: choices.upto(5) as u32,
            tx_depth: 1,
            size_bytes: choices.one(&[1, 64, 6_000]),
            recv_queue: if op.profile().receives {
                choices.one(RecvQueue::ALL)
            } else {
                RecvQueue::PerQp
            },
            ..small(op)
        });
        let messages = choices.upto(40);
        let warm_up = choices.one(&[None, Some(7)]);
        let (outcome, over) = SetUp::delayed(case.clone(), seed.number)
            .run(|bench: &mut crate::bench::Bench<'_>| bench.run_counted(messages, warm_up));
        outcome.unwrap();
        over.rest.assert_clean();
        let sums = over.rest.client_sums();
        assert_eq!(sums.completed, vec![messages; case.qps as usize]);
        let is_answered = case.is_answered();
        if is_answered {
            let answered = over.rest.server_sums();
            assert_eq!(answered.posted_in_all, sums.posted_in_all, "{case:?}");
        }
        for qp in 0..case.qps as usize {
            let turns = turns(&over, qp);
            let measured = turns.len() - messages as usize;
            let found = Recorder::merged(
                over.rest.client.2.iter().filter_map(|it| it.qps[qp].latency.as_ref()),
            );
            let expected = recorder_of(&turns[measured..]);
            assert_eq!(found.unwrap().latency(), expected.latency(), "{case:?}");
        }
    });
}

/// Half of the time of each turn of a QP, or the time where the device answers, from what it served.
fn turns(over: &Over, qp: usize) -> Vec<u64> {
    let of_end = |qpn: u32| {
        over.served.iter().filter(move |it| it.qp_num == qpn).map(|it| (it.posted_ns, it.done_ns))
    };
    let qpn = |end: &datapath::Shared| end.qp_contexts()[qp].qp.qpn();
    let requests = of_end(qpn(&over.rest.client.1));
    if !over.rest.case.is_answered() {
        return requests.map(|(posted_ns, done_ns)| done_ns - posted_ns).collect();
    }
    let answers = of_end(qpn(&over.rest.server.1));
    let mut last_ns = 0;
    requests
        .zip(answers)
        .map(|((posted_ns, came_ns), (answered_ns, done_ns))| {
            assert!(last_ns <= posted_ns && came_ns <= answered_ns);
            last_ns = done_ns;
            (done_ns - posted_ns) / 2
        })
        .collect()
}
