//! Latencies are those of the device: each message's, to the histogram's bucket.

use null_verbs::loopback::{ServiceTimes, Serving};
use settings::{Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::loopback_node::{Choices, case_of, small};

#[test]
fn a_constant_server_gives_every_message_depth_times_its_time() {
    let mut choices = Choices(1);
    for seed in 0..200 {
        let (qps, depth) = (choices.upto(4) as u32, choices.upto(16) as u32);
        let service_ns = choices.upto(20) * US;
        let case = case_of(Settings {
            qps,
            tx_depth: depth,
            iterations_per_qp: None,
            duration_seconds: settings::TimeSpan::from_ns(20 * MS),
            ..small(Op::Write)
        });
        let serving = Serving::Servers {
            times: ServiceTimes::Constant(service_ns),
            is_of_qp: false,
            queue_limit: None,
        };
        let (edges, over) =
            SetUp::new(case, seed, serving).run(|bench| bench.measure(5 * MS, 20 * MS));
        let in_window = over
            .served
            .iter()
            .filter(|served| (edges.opens_raw..edges.closes_raw).contains(&served.done_ns));
        let count = in_window.count() as u64;
        let sent = over.report().sent.unwrap();
        assert_eq!(sent.totals.messages, count, "{seed}");
        let latency = sent.latency_ns.unwrap();
        let expected = service_ns * u64::from(qps * depth);
        assert!(
            latency.min <= expected && expected <= latency.max,
            "{seed}: {expected} {latency:?}"
        );
    }
}
