//! Totals, time lines, sums of QPs and bytes are those of the device, whatever the mix of workers, CQs, moderation, lists
//! and directions, and whether workers look all the time or now and then.

use settings::{CqMode, Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::exact::{Truth, constant, exponential, timed};
use crate::loopback_node::{Choices, case_of, small};

const WINDOW_NS: u64 = 40 * MS;

#[test]
fn totals_and_time_lines_are_those_of_the_device() {
    for seed in 0..200 {
        let choices = &mut Choices(seed);
        let signal_every = choices.one(&[1, 1, 4, 7]);
        let case = case_of(timed(
            Settings {
                cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
                workers: choices.upto(3) as u32,
                qps: choices.upto(6) as u32,
                size_bytes: choices.one(&[1, 64, 1500]),
                signal_every,
                post_list: choices.one(&[1, signal_every, 2 * signal_every]),
                tx_depth: 2 * signal_every + choices.upto(20) as u32,
                rx_depth: 128,
                bidirectional: choices.one(&[true, false]),
                no_latency: choices.one(&[true, false]),
                ..small(choices.one(&[Op::Write, Op::Read, Op::Send, Op::WriteImm, Op::FetchAdd]))
            },
            WINDOW_NS,
        ));
        let (mean_ns, is_of_qp) = (
            choices.upto(40) * US + 20 * US,
            choices.one(&[true, false, false]),
        );
        let serving = match choices.one(&[true, false]) {
            true => constant(mean_ns, is_of_qp),
            false => exponential(mean_ns, is_of_qp),
        };
        let set_up = SetUp {
            pass_ns: choices.one(&[None, None, None, Some(23_456)]),
            ..SetUp::new(case, seed, serving)
        };
        let what = format!("seed {seed}: {:?} {:?}", set_up.case, set_up.serving);
        let (edges, over) = set_up.run(|bench| {
            bench.sample_every(choices.upto(12) * MS);
            bench.measure(4 * MS, WINDOW_NS)
        });
        let truth = Truth::of(&over, edges);
        truth.check(&over, &what);
        let of_qps = truth.completed();
        let windows: Vec<(u64, f64)> = truth.ends[0]
            .iter()
            .map(|worker| {
                let (start_ns, end_ns) = worker.window_ns();
                let messages = worker.qps.iter().map(|qp| qp.completed).sum();
                (messages, (end_ns - start_ns) as f64 / 1e9)
            })
            .collect();
        let sent = truth.check_timelines(over, edges, &what);
        let all: u64 = of_qps.iter().sum();
        let size_bytes = u64::from(set_up.case.size_bytes);
        let told: Vec<u64> = sent.qps.iter().map(|qp| qp.messages).collect();
        assert_eq!(told, of_qps, "{what}");
        assert!(
            sent.qps
                .iter()
                .all(|qp| qp.bytes == qp.messages * size_bytes),
            "{what}"
        );
        assert_eq!(
            (sent.totals.messages, sent.totals.bytes),
            (all, all * size_bytes),
            "{what}"
        );
        let timeline = sent.timeline.unwrap();
        assert_eq!(timeline.messages.iter().sum::<u64>(), all, "{what}");
        let rate: f64 = windows
            .iter()
            .map(|&(messages, seconds)| messages as f64 / seconds)
            .sum();
        let told = sent.totals.mmsg_per_s.unwrap_or(0.0) * 1e6;
        assert!((told - rate).abs() <= rate * 1e-9, "{what}: {told} {rate}");
    }
}
