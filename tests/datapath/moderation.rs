//! How far the mean of the messages that the histogram holds with `--cq-mod` is from that of all.

use null_verbs::loopback::Served;
use settings::{Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::exact::{constant, timed};
use crate::latencies::assert_latency;
use crate::loopback_node::{Choices, case_of, small};
use crate::planned::for_seeds;

const WINDOW_NS: u64 = 25 * MS;

pub fn latency_ns(served: &Served) -> u64 {
    served.done_ns - served.posted_ns
}

/// A QP alone on a server, its queue a whole number of slots: a slot is posted behind the others when it completes. So the
/// i-th message of a slot waits for all of the other slots and for i of its own. Returns the mean of those that the
/// histogram holds and the mean of all messages, in times of the server.
fn means(signal_every: u32, tx_depth: u32, seed: u64) -> [f64; 2] {
    let case = case_of(timed(Settings { signal_every, tx_depth, ..small(Op::Write) }, WINDOW_NS));
    let service_ns = (Choices(seed).upto(9) + 5) * US;
    let set_up = SetUp::new(case, seed, constant(service_ns, false));
    let (_, over) = set_up.run(|bench| bench.measure(5 * MS, WINDOW_NS));
    let (depth, every) = (u64::from(tx_depth), u64::from(signal_every));
    // Those of the first filling have fewer before them.
    for (served, place) in over.served.iter().skip(tx_depth as usize).zip((1..=every).cycle()) {
        let expected = (depth - every + place) * service_ns;
        assert_eq!(latency_ns(served), expected, "-Q {every} -t {depth}");
    }
    let latency = over.report().sent.unwrap().latency_ns.unwrap();
    let exact = vec![depth * service_ns; latency.count as usize];
    assert_latency(&latency, &exact);
    let mean_of_all =
        (1..=every).map(|place| (depth - every + place) as f64).sum::<f64>() / every as f64;
    [depth as f64, mean_of_all]
}

/// Where latency is recorded every message is signalled, unless a user asks otherwise: the mean is that of all.
#[test]
fn by_default_the_histogram_holds_every_message() {
    for depth in [1, 16, 100, 128] {
        let text = depth.to_string();
        let small = Settings::from([("op", "write"), ("size", "64"), ("tx-depth", &text)]);
        let [held, all] = means(small.signal_every, depth, 1);
        assert_eq!(held, all, "-t {depth}");
    }
}

/// The last of a slot waits longest: the mean that is told is that of the longest, which is that of all with `-Q 1` alone.
#[test]
fn the_histogram_holds_the_longest_of_each_slot() {
    for_seeds(200, |seed| {
        let choices = &mut seed.choices;
        let signal_every = choices.one(&[1, 2, 16, 64, 100]);
        let tx_depth = signal_every * choices.upto(3) as u32;
        let [held, all] = means(signal_every, tx_depth, seed.number);
        assert_eq!(held - all, f64::from(signal_every - 1) / 2.0);
    });
    // The mean is too high by a third, and by nearly as much as it is.
    assert_eq!(means(64, 128, 1), [128.0, 96.5]);
    assert_eq!(means(100, 100, 1), [100.0, 50.5]);
}
