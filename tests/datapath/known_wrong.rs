//! Figures that the exact tests found wrong. Each row has what is shown today, and what is right: the issue "One answer
//! everywhere" mends them, and takes the row away. A figure that changes in any other way fails here.

use std::ops::Range;

use report::results::model::{FlowResult, Load, LoadVerdict};
use settings::{Arrivals, Op, Settings};

use crate::bench::{MS, SECOND, SetUp, US};
use crate::exact::{constant, timed};
use crate::loopback_node::{case_of, small};
use crate::planned::{NEVER, Ran, START_NS, Seed, at_rate, for_seeds};

struct Row {
    name: &'static str,
    shown: f64,
    right: f64,
    figure: fn() -> f64,
}

const ROWS: &[Row] = &[
    Row {
        name: "a closed loop whose worker is away for 150 ms of 2 s, which takes 7.5 % of the messages: doubts",
        shown: 0.0,
        right: 1.0,
        figure: away_in_the_middle,
    },
    Row {
        name: "verdicts `overloaded` of 20 servers at 110 % load, behind queues that hold all of the backlog",
        shown: 0.0,
        right: 20.0,
        figure: || overloaded(20, |seed| load(seed, 512, 110, SECOND)),
    },
    Row {
        name: "the same of 200 servers at 30 % load, in windows of 100 messages by chance",
        shown: 20.0,
        right: 0.0,
        figure: || overloaded(200, |seed| load(seed, 1, 30, 333 * MS)),
    },
    Row {
        name: "the same of a server at 20 % load whose worker looks too seldom for its queue of one message",
        shown: 1.0,
        right: 0.0,
        figure: || overloaded(1, seldom_polled),
    },
    Row {
        name: "a worker that is away for 0.4 s of 1 s behind a full queue, which is empty then: seconds for which it was full",
        shown: 1.0,
        right: 1.0 - 0.399_833_333,
        figure: || away_behind_a_backlog().0,
    },
    Row {
        name: "the most that it was late, in nanoseconds",
        shown: 1.0,
        right: 399_833_333.0,
        figure: || away_behind_a_backlog().1,
    },
];

#[test]
fn figures_that_are_wrong_today_are_these() {
    for row in ROWS {
        assert_ne!(row.shown, row.right, "{}", row.name);
        assert_eq!((row.figure)(), row.shown, "{}", row.name);
    }
}

fn away_in_the_middle() -> f64 {
    let (window_ns, service_ns, away_ns) = (2 * SECOND, 200 * US, 150 * MS);
    let settings = Settings {
        tx_depth: 1,
        ..small(Op::Write)
    };
    let case = case_of(timed(settings, window_ns));
    let (_, over) = SetUp::new(case, 1, constant(service_ns, false)).run(|bench| {
        let edges = bench.open_window(10 * MS, window_ns);
        bench.away(0, edges.opens_raw + SECOND, away_ns);
        bench.close_window();
    });
    let sent = over.report().sent.unwrap();
    let expected = (window_ns - away_ns) / service_ns;
    // One that completes meanwhile is seen.
    assert!((expected..=expected + 2).contains(&sent.totals.messages));
    sent.window.doubts.len() as f64
}

fn overloaded(seeds: u64, one: fn(&mut Seed) -> Load) -> f64 {
    let mut count = 0;
    for_seeds(seeds, |seed| {
        count += u32::from(one(seed).verdict == LoadVerdict::Overloaded);
    });
    f64::from(count)
}

/// An open loop of a server of 1 ms.
fn flow(
    seed: &mut Seed,
    (arrivals, per_second): (Arrivals, u64),
    tx_depth: u32,
    window_ns: u64,
    pass_ns: Option<u64>,
    away: Range<u64>,
) -> FlowResult {
    let case = case_of(Settings {
        arrivals,
        tx_depth,
        ..at_rate(seed, per_second, window_ns)
    });
    let mut set_up = seed.bench(&case, constant(MS, false));
    set_up.pass_ns = pass_ns;
    let ran = Ran::of(&set_up, 100 * MS, window_ns, away);
    ran.over.report().sent.unwrap()
}

/// A server of 1 ms at this load, behind a queue of this depth.
fn load(seed: &mut Seed, depth: u32, percent: u64, window_ns: u64) -> Load {
    let rate = (Arrivals::Poisson, 10 * percent);
    let sent = flow(seed, rate, depth, window_ns, None, NEVER);
    sent.load.unwrap()
}

/// A server of 1 ms, 200 messages a second one at a time, and a worker that looks each 10 ms.
fn seldom_polled(seed: &mut Seed) -> Load {
    let rate = (Arrivals::Fixed, 200);
    let sent = flow(seed, rate, 1, SECOND, Some(10 * MS), NEVER);
    sent.load.unwrap()
}

/// A server of 1 ms that 3,000 messages a second overload, one at a time, and a worker that is away in its window: from
/// 166,667 ns before the message in flight is done.
fn away_behind_a_backlog() -> (f64, f64) {
    let mut figures = (0.0, 0.0);
    for_seeds(1, |seed| {
        let away_ns = START_NS + 500 * MS;
        let away = away_ns..away_ns + 400 * MS;
        let sent = flow(seed, (Arrivals::Fixed, 3_000), 1, SECOND, None, away);
        let most_ns = sent.lateness_ns.unwrap().max;
        figures = (sent.load.unwrap().queue_full_seconds, most_ns as f64);
    });
    figures
}
