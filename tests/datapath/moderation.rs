//! Which messages the histogram holds with `--cq-mod` and `--post-list`, and how far their mean is from that of all.

use null_verbs::loopback::Served;
use settings::{CqMode, Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::exact::{Truth, constant, exponential, timed};
use crate::latencies::assert_latency;
use crate::loopback_node::{Choices, case_of, small};

const WINDOW_NS: u64 = 25 * MS;

/// It holds the last of each `signal_every` messages, from its post to its completion, whatever the lists.
#[test]
fn the_histogram_holds_the_messages_that_are_signalled() {
    for seed in 0..200 {
        let choices = &mut Choices(seed);
        let signal_every = choices.one(&[1, 2, 7, 64, 100]);
        let post_list = match choices.upto(3) {
            1 => 1,
            2 => signal_every * choices.upto(3) as u32,
            _ => choices.upto(signal_every.into()) as u32,
        };
        let case = case_of(timed(
            Settings {
                cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
                workers: choices.upto(2) as u32,
                qps: choices.upto(3) as u32,
                signal_every,
                post_list,
                tx_depth: signal_every.max(post_list) + choices.upto(100) as u32 - 1,
                rx_depth: 1024,
                ..small(choices.one(&[Op::Write, Op::Send]))
            },
            WINDOW_NS,
        ));
        let (mean_ns, is_of_qp) = (choices.upto(20) * US + 15 * US, choices.one(&[true, false]));
        let serving = match choices.one(&[true, false]) {
            true => constant(mean_ns, is_of_qp),
            false => exponential(mean_ns, is_of_qp),
        };
        let set_up = SetUp::new(case, seed, serving);
        let what = format!("seed {seed}: {:?} {:?}", set_up.case, set_up.serving);
        let (edges, over) = set_up.run(|bench| bench.measure(5 * MS, WINDOW_NS));
        let truth = Truth::of(&over, edges);
        truth.check(&over, &what);
        let (start_ns, end_ns) = truth.ends[0][0].window_ns();
        // Each QP's messages are served in the order of their posts.
        let qpns = over.rest.client.1.qp_contexts().iter();
        let qpns = qpns.map(|it| it.qp.qpn());
        let mut held: Vec<u64> = qpns
            .flat_map(|qpn| {
                let of_qp = over.served.iter().filter(move |it| it.qp_num == qpn);
                let last_of_each = of_qp
                    .skip(signal_every as usize - 1)
                    .step_by(signal_every as usize);
                last_of_each.filter(|it| it.done_ns > start_ns && it.posted_ns <= end_ns)
            })
            .map(latency_ns)
            .collect();
        held.sort_unstable();
        assert_eq!(truth.latencies_ns(), held, "{what}");
        if !held.is_empty() {
            let latency = over.report().sent.unwrap().latency_ns.unwrap();
            assert_latency(&latency, &held, &what);
        }
    }
}

fn latency_ns(served: &Served) -> u64 {
    served.done_ns - served.posted_ns
}

/// A QP alone on a server, its queue a whole number of slots: a slot is posted behind the others when it completes. So the
/// i-th message of a slot waits for all of the other slots and for i of its own. Returns the mean of those that the
/// histogram holds and the mean of all messages, in times of the server.
pub fn means(signal_every: u32, tx_depth: u32, seed: u64) -> [f64; 2] {
    let case = case_of(timed(
        Settings {
            signal_every,
            tx_depth,
            ..small(Op::Write)
        },
        WINDOW_NS,
    ));
    let what = format!("-Q {signal_every} -t {tx_depth}, seed {seed}");
    let service_ns = (Choices(seed).upto(9) + 5) * US;
    let set_up = SetUp::new(case, seed, constant(service_ns, false));
    let (_, over) = set_up.run(|bench| bench.measure(5 * MS, WINDOW_NS));
    let (depth, every) = (u64::from(tx_depth), u64::from(signal_every));
    // Those of the first filling have fewer before them.
    let later = over.served.iter().skip(tx_depth as usize);
    for (served, place) in later.zip((1..=every).cycle()) {
        assert_eq!(
            latency_ns(served),
            (depth - every + place) * service_ns,
            "{what}"
        );
    }
    let latency = over.report().sent.unwrap().latency_ns.unwrap();
    let exact = vec![depth * service_ns; latency.count as usize];
    assert_latency(&latency, &exact, &what);
    let all = (1..=every)
        .map(|place| (depth - every + place) as f64)
        .sum::<f64>()
        / every as f64;
    [depth as f64, all]
}

/// The last of a slot waits longest: the mean that is told is that of the longest, which is that of all with `-Q 1` alone.
#[test]
fn the_histogram_holds_the_longest_of_each_slot() {
    for seed in 0..200 {
        let choices = &mut Choices(seed);
        let signal_every = choices.one(&[1, 2, 16, 64, 100]);
        let tx_depth = signal_every * choices.upto(3) as u32;
        let [held, all] = means(signal_every, tx_depth, seed);
        assert_eq!(held - all, f64::from(signal_every - 1) / 2.0);
    }
}
