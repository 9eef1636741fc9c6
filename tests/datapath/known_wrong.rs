//! Figures that the exact tests found wrong. Each row has what is shown today, and what is right: the issue "One answer
//! everywhere" mends them, and takes the row away. A figure that changes in any other way fails here.

use settings::{Op, Settings};

use crate::bench::{MS, SetUp, US};
use crate::exact::{constant, timed};
use crate::fairness::starved;
use crate::loopback_node::{case_of, small};
use crate::moderation::means;

struct Row {
    name: &'static str,
    shown: f64,
    right: f64,
    figure: fn() -> f64,
}

const ROWS: &[Row] = &[
    Row {
        name: "-Q 64 -t 128: mean latency that is told over that of all messages",
        shown: 128.0 / 96.5,
        right: 1.0,
        figure: || moderated(64, 128),
    },
    Row {
        name: "-Q 100 -t 100: the same",
        shown: 100.0 / 50.5,
        right: 1.0,
        figure: || moderated(100, 100),
    },
    Row {
        name: "two QPs with the same messages, of 64 and of 4096 bytes: Jain's index of bytes",
        shown: 1.0,
        right: (4160.0 * 4160.0) / (2.0 * (64.0 * 64.0 + 4096.0 * 4096.0)),
        figure: fairness_of_sizes,
    },
    Row {
        name: "one QP of 256 at a tenth: QPs that are named",
        shown: 0.0,
        right: 1.0,
        figure: || starved(256, 10, 7).2.window.doubts.len() as f64,
    },
];

#[test]
fn figures_that_are_wrong_today_are_these() {
    for row in ROWS {
        assert_ne!(row.shown, row.right, "{}", row.name);
        assert_eq!((row.figure)(), row.shown, "{}", row.name);
    }
}

fn moderated(signal_every: u32, tx_depth: u32) -> f64 {
    let [held, all] = means(signal_every, tx_depth, 1);
    held / all
}

fn fairness_of_sizes() -> f64 {
    let case = case_of(timed(
        Settings {
            qps: 2,
            tx_depth: 1,
            size_mix: "64:1,4096:1".parse().ok(),
            ..small(Op::Write)
        },
        20 * MS,
    ));
    let (_, over) =
        SetUp::new(case, 1, constant(10 * US, true)).run(|bench| bench.measure(MS, 20 * MS));
    let sent = over.report().sent.unwrap();
    let [small, large] = [&sent.qps[0], &sent.qps[1]].map(|qp| qp.bytes / qp.messages);
    assert_eq!([small.min(large), small.max(large)], [64, 4096]);
    sent.fairness.unwrap().jain
}
