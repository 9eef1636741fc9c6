//! Figures that are shown wrong today beside the right ones, to be mended: a row whose figure is mended fails, and goes.

use null_verbs::loopback::ServiceTimes;
use report::results::model::{Load, LoadVerdict};
use settings::{Arrivals, Settings};

use crate::bench::{MS, SECOND};
use crate::loopback_node::case_of;
use crate::planned::{NEVER, Ran, START_NS, Seed, at_rate, for_seeds, servers};

/// A figure as it is shown, as it would be right, and how it comes about.
struct Row {
    name: &'static str,
    shown: f64,
    right: f64,
    figure: fn() -> f64,
}

const ROWS: &[Row] = &[
    Row {
        name: "verdicts `overloaded` of 100 servers at 110 % load, behind queues that hold all of the backlog",
        shown: 0.0,
        right: 100.0,
        figure: || overloaded(100, |seed| load(seed, 128, 110, SECOND)),
    },
    Row {
        name: "verdicts `overloaded` of 200 servers at 30 % load, in windows of 100 messages by chance",
        shown: 0.0,
        right: 0.0,
        figure: || overloaded(200, |seed| load(seed, 1, 30, 333 * MS)),
    },
    Row {
        name: "verdicts `overloaded` of a server at 20 % load whose worker comes too seldom for its queue",
        shown: 1.0,
        right: 0.0,
        figure: || overloaded(1, seldom_polled),
    },
    Row {
        name: "seconds for which a queue of one message was full whose worker was away for 0.4 s, of a server that takes 1 ms",
        shown: 0.0,
        right: 0.0,
        figure: || away_behind_a_backlog().0,
    },
    Row {
        name: "the most that this worker was late, in nanoseconds",
        shown: 0.0,
        right: 0.0,
        figure: || away_behind_a_backlog().1,
    },
];

#[test]
fn figures_that_are_to_be_mended_are_as_they_are_known() {
    for row in ROWS {
        assert_ne!(row.shown, row.right, "{}", row.name);
        assert_eq!((row.figure)(), row.shown, "{}", row.name);
    }
}

fn overloaded(seeds: u64, one: fn(&mut Seed) -> Load) -> f64 {
    let mut count = 0;
    for_seeds(seeds, |seed| {
        count += u32::from(one(seed).verdict == LoadVerdict::Overloaded);
    });
    f64::from(count)
}

/// A server of 1 ms at this load, behind a queue of this depth.
fn load(seed: &mut Seed, depth: u32, percent: u64, window_ns: u64) -> Load {
    let case = case_of(Settings {
        arrivals: Arrivals::Poisson,
        tx_depth: depth,
        ..at_rate(seed, 10 * percent, window_ns)
    });
    let set_up = seed.bench(&case, servers(ServiceTimes::Constant(MS), false));
    let ran = Ran::of(&set_up, 100 * MS, window_ns, NEVER);
    ran.over.report().sent.unwrap().load.unwrap()
}

/// A server of 1 ms, 200 messages a second one at a time, and a worker that looks each 10 ms.
fn seldom_polled(seed: &mut Seed) -> Load {
    let case = case_of(Settings {
        arrivals: Arrivals::Fixed,
        tx_depth: 1,
        ..at_rate(seed, 200, SECOND)
    });
    let mut set_up = seed.bench(&case, servers(ServiceTimes::Constant(MS), false));
    set_up.pass_ns = Some(10 * MS);
    let ran = Ran::of(&set_up, 100 * MS, SECOND, NEVER);
    ran.over.report().sent.unwrap().load.unwrap()
}

/// A server of 1 ms that 3,000 messages a second overload, one at a time, and a worker that is away in its window.
fn away_behind_a_backlog() -> (f64, f64) {
    let mut figures = (0.0, 0.0);
    for_seeds(1, |seed| {
        let case = case_of(Settings {
            arrivals: Arrivals::Fixed,
            tx_depth: 1,
            ..at_rate(seed, 3_000, SECOND)
        });
        let set_up = seed.bench(&case, servers(ServiceTimes::Constant(MS), false));
        let away_ns = START_NS + 500 * MS;
        let ran = Ran::of(&set_up, 100 * MS, SECOND, away_ns..away_ns + 400 * MS);
        let sent = ran.over.report().sent.unwrap();
        let most_ns = sent.lateness_ns.unwrap().max;
        figures = (sent.load.unwrap().queue_full_seconds, most_ns as f64);
    });
    figures
}
