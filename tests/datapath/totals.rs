//! Figures are those of the device, whatever the mix of workers, CQs, moderation, lists and directions, and whether workers
//! look all the time or now and then: totals, time lines, sums of QPs, bytes, and latencies to the histogram's bucket.

use results::model::QpResult;
use settings::{CqMode, Op, Settings};

use crate::bench::{MS, Over, SetUp, US};
use crate::exact::{Truth, any_servers, timed};
use crate::latencies::assert_latency;
use crate::loopback_node::{case_of, small};
use crate::moderation::latency_ns;
use crate::planned::for_seeds;

const WINDOW_NS: u64 = 40 * MS;

#[test]
fn figures_are_those_of_the_device() {
    for_seeds(600, |seed| {
        let choices = &mut seed.choices;
        let signal_every = choices.one(&[1, 1, 2, 4, 7, 64, 100]);
        let post_list = match choices.upto(3) {
            1 => 1,
            2 => signal_every * choices.upto(3) as u32,
            _ => choices.upto(signal_every.into()) as u32,
        };
        let more = choices.one(&[16, 100]);
        let case = case_of(timed(
            Settings {
                cq: choices.one(CqMode::ALL),
                workers: choices.upto(3) as u32,
                qps: choices.upto(6) as u32,
                size_bytes: choices.one(&[1, 64, 1500]),
                signal_every,
                post_list,
                tx_depth: signal_every.max(post_list) + choices.upto(more) as u32 - 1,
                rx_depth: 1024,
                bidirectional: choices.one(&[true, false]),
                no_latency: choices.one(&[true, false, false]),
                ..small(choices.one(&[Op::Write, Op::Read, Op::Send, Op::WriteImm, Op::FetchAdd]))
            },
            WINDOW_NS,
        ));
        let mean_ns = choices.upto(40) * US + 15 * US;
        let serving = any_servers(choices, mean_ns);
        // A worker that looks only so often: latencies end when it looks.
        let pass_ns = choices.one(&[None, None, None, Some(7 * US), Some(31_337)]);
        let sample_ns = choices.upto(12) * MS;
        let set_up = SetUp { pass_ns, ..seed.bench(&case, serving) };
        let (edges, over) = set_up.run(|bench| {
            bench.sample_every(sample_ns);
            bench.measure(5 * MS, WINDOW_NS)
        });
        let truth = Truth::new(&over, edges);
        let latencies = truth.latencies_ns();
        if pass_ns.is_none() {
            assert_eq!(latencies, held(&over, truth.ends[0][0].window_ns()));
        }
        let of_qps = truth.completed();
        let rate: f64 = truth.ends[0]
            .iter()
            .map(|worker| {
                let (start_ns, end_ns) = worker.window_ns();
                let messages: u64 = worker.qps.iter().map(|qp| qp.completed).sum();
                messages as f64 / ((end_ns - start_ns) as f64 / 1e9)
            })
            .sum();
        let sent = truth.check_timelines(over, edges);
        match &sent.latency_ns {
            Some(latency) => assert_latency(latency, &latencies),
            None => assert!(case.no_latency || latencies.is_empty()),
        }
        let messages: u64 = of_qps.iter().sum();
        let size_bytes = u64::from(case.size_bytes);
        let reported: Vec<u64> = sent.qps.iter().map(|qp| qp.messages).collect();
        assert_eq!(reported, of_qps);
        let is_whole = |qp: &QpResult| qp.bytes == qp.messages * size_bytes;
        assert!(sent.qps.iter().all(is_whole));
        let totals = (sent.totals.messages, sent.totals.bytes);
        assert_eq!(totals, (messages, messages * size_bytes));
        let timeline = sent.timeline.unwrap();
        assert_eq!(timeline.messages.iter().sum::<u64>(), messages);
        let reported_rate = sent.totals.mmsg_per_s.unwrap_or(0.0) * 1e6;
        assert!((reported_rate - rate).abs() <= rate * 1e-9, "{reported_rate} {rate}");
    });
}

/// What the histogram holds, without the rules of the window: of each QP's messages, which are served in the order of their
/// posts, the last of each `signal_every` that was done or posted in it, whatever the lists.
fn held(over: &Over, (start_ns, end_ns): (u64, u64)) -> Vec<u64> {
    let every = over.rest.case.signal_every as usize;
    let mut held: Vec<u64> = over
        .rest
        .client
        .1
        .qp_contexts()
        .iter()
        .map(|it| it.qp.qpn())
        .flat_map(|qpn| {
            over.served.iter().filter(move |it| it.qp_num == qpn).skip(every - 1).step_by(every)
        })
        .filter(|it| it.done_ns > start_ns && it.posted_ns <= end_ns)
        .map(latency_ns)
        .collect();
    held.sort_unstable();
    held
}
