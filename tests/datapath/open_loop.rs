//! Open loops: planned times follow from the rate alone, every planned message is counted once with its exact times, a
//! full queue's wait is told apart from a worker's, and the verdict is that of the rules.

use std::collections::HashSet;

use datapath::WindowEdges;
use results::model::{Load, LoadVerdict, NotKeptBy};
use settings::{Arrivals, CqMode, Op, PollMode, Settings};
use statistics::gaps_p_value;

use crate::bench::{LEAD_NS, MS, SECOND, US};
use crate::exact::{any_times, constant, servers};
use crate::loopback_node::case_of;
use crate::planned::{
    Expected, NEVER, Ran, START_NS, Seed, at_rate, done_ns, for_seeds, planned_times, posted_by_qp,
    served_by_qp,
};

const SEEDS: u64 = 200;

fn any_arrivals(seed: &mut Seed) -> Arrivals {
    seed.choices.one(&[Arrivals::Poisson, Arrivals::Fixed])
}

#[test]
fn every_planned_message_is_counted_once_with_its_times() {
    const WARM_UP_NS: u64 = 20 * MS;
    const WINDOW_NS: u64 = 100 * MS;
    for_seeds(SEEDS, |seed| {
        let rate = seed.within(1_000..4_000);
        let op = seed.choices.one(Op::ALL);
        let verify = seed.choices.one(&[true, false]);
        let is_mixed = !verify && op == Op::Send;
        let case = case_of(Settings {
            op: op.into(),
            arrivals: any_arrivals(seed),
            cq: seed.choices.one(CqMode::ALL),
            poll: (seed.choices).one(&[PollMode::Busy, PollMode::Event, PollMode::Adaptive]),
            workers: seed.choices.upto(3) as u32,
            qps: seed.choices.upto(5) as u32,
            tx_depth: seed.choices.upto(20) as u32,
            bidirectional: seed.choices.one(&[true, false]),
            verify,
            size_mix: is_mixed.then(|| "64:3,256:1".parse().unwrap()),
            ..at_rate(seed, rate, WINDOW_NS)
        });
        // From hardly any load to more than the server can.
        let is_of_qp = seed.choices.one(&[true, false]);
        let servers_at_work = if is_of_qp { case.settings.qps } else { 1 };
        let service_ns = SECOND * u64::from(servers_at_work) / rate * seed.within(5..125) / 100;
        let times = any_times(&mut seed.choices, service_ns);
        let set_up = seed.bench(&case, servers(times, is_of_qp));
        let until_ns = START_NS + WARM_UP_NS + LEAD_NS + WINDOW_NS;
        let planned = planned_times(seed, &case, until_ns);
        let ran = Ran::with(&set_up, WARM_UP_NS, WINDOW_NS, NEVER, |bench| {
            bench.look_at(planned.iter().flatten().copied());
        });
        let (client, server) = (ran.over.rest.client_sums(), ran.over.rest.server_sums());
        if op.profile().receives {
            assert_eq!(client.posted_in_all, server.received_in_all);
        }
        if verify {
            assert_eq!(ran.over.rest.verified(), None);
        }
        let expected = Expected::new(&planned, &ran);
        assert!(expected.offered > 0);
        expected.holds(ran);
    });
}

#[test]
fn a_worker_that_was_away_is_late_by_the_time_until_it_came_back() {
    const WINDOW_NS: u64 = 100 * MS;
    let (mut late_with_room, mut late) = (0, 0);
    let (mut kept, mut not_kept) = (0, 0);
    for_seeds(2 * SEEDS, |seed| {
        // As many messages as p99 takes, and more.
        let rate = seed.within(10_000..30_000);
        let case = case_of(Settings {
            arrivals: any_arrivals(seed),
            cq: seed.choices.one(CqMode::ALL),
            qps: seed.choices.upto(4) as u32,
            tx_depth: seed.choices.one(&[1, 4, 64]),
            ..at_rate(seed, rate, WINDOW_NS)
        });
        let service_ns = SECOND / rate * seed.within(2..30) / 100;
        let set_up = seed.bench(&case, constant(service_ns, false));
        // From the warm-up on, until after the window; and where it matters little.
        let from_ns = START_NS + seed.within(0..120 * MS);
        let length_ns = seed.choices.one(&[1, 50 * US, MS, 30 * MS]);
        let length_ns = seed.within(1..length_ns + 1);
        let away = from_ns..from_ns + length_ns;
        let ran = Ran::new(&set_up, 10 * MS, WINDOW_NS, away.clone());
        let planned = planned_times(seed, &case, ran.edges.closes_raw + 50 * MS);
        let expected = Expected::new(&planned, &ran);
        let window = ran.edges.opens_raw..ran.edges.closes_raw;
        late += planned
            .iter()
            .flatten()
            .filter(|at_ns| window.contains(at_ns) && away.contains(at_ns))
            .count();
        late_with_room += expected.late_with_room;
        let verdict = expected.holds(ran).load.unwrap().verdict;
        kept += u64::from(verdict == LoadVerdict::Kept);
        not_kept += u64::from(verdict == LoadVerdict::NotKept);
    });
    // Each kind is there often.
    assert!(late > 1_000 && late_with_room > 10 && kept > 50 && not_kept > 50);
}

/// Queues of any depth make a FIFO of the planned messages, so that each waits as Lindley says.
#[test]
fn an_overloaded_server_has_the_latencies_of_its_growing_backlog() {
    const WARM_UP_NS: u64 = 300 * MS;
    const WINDOW_NS: u64 = 2 * SECOND;
    let (mut never_sent, mut overloaded) = (0, 0);
    for_seeds(SEEDS, |seed| {
        let percent = seed.choices.one(&[110, 150, 200]);
        let service_ns = seed.within(6 * MS..12 * MS);
        let qps = seed.choices.upto(2) as u32;
        let rate = u64::from(qps) * SECOND * percent / 100 / service_ns;
        let depth = seed.choices.one(&[1, 2, 128]);
        let case = case_of(Settings {
            arrivals: any_arrivals(seed),
            qps,
            tx_depth: depth,
            ..at_rate(seed, rate, WINDOW_NS)
        });
        let set_up = seed.bench(&case, constant(service_ns, true));
        let ran = Ran::new(&set_up, WARM_UP_NS, WINDOW_NS, NEVER);
        let WindowEdges { opens_raw, closes_raw } = ran.edges;
        let planned = planned_times(seed, &case, closes_raw);
        let mut is_busy = true;
        for (times, served) in planned.iter().zip(served_by_qp(&ran.over)) {
            let done = done_ns(times, |_| service_ns, &NEVER);
            let shown = served.iter().map(|it| it.done_ns);
            assert!(shown.eq(done[..served.len()].iter().copied()));
            // From the window's first instant to its last.
            let free = done
                .iter()
                .zip(times)
                .filter(|(done_ns, planned_ns)| **done_ns - **planned_ns == service_ns);
            is_busy &= free.map(|(done_ns, _)| *done_ns).max().unwrap() < opens_raw;
        }
        let expected = Expected::new(&planned, &ran);
        never_sent += expected.never_sent;
        let sent = expected.holds(ran);
        let load = sent.load.unwrap();
        if is_busy {
            // The server's rate, but for a message at each edge.
            let done = f64::from(qps) * WINDOW_NS as f64 / service_ns as f64;
            assert!((sent.totals.messages as f64 - done).abs() < f64::from(qps));
        }
        // Deviations of a Poisson count.
        let offered = load.offered as f64;
        let missing = offered - sent.totals.messages as f64 - f64::from(qps);
        if is_busy && missing > 4.0 * offered.sqrt() {
            overloaded += 1;
            assert_eq!(load.verdict, LoadVerdict::Overloaded);
        }
    });
    assert!(never_sent > 0 && overloaded > 50, "{overloaded}");
}

/// A server of `service_ns`.
fn load_of(
    seed: &mut Seed,
    (rate, depth): (u64, u32),
    (service_ns, window_ns): (u64, u64),
) -> Load {
    let case = case_of(Settings {
        arrivals: Arrivals::Poisson,
        tx_depth: depth,
        ..at_rate(seed, rate, window_ns)
    });
    let set_up = seed.bench(&case, constant(service_ns, false));
    let ran = Ran::new(&set_up, 100 * MS, window_ns, NEVER);
    ran.over.report().sent.unwrap().load.unwrap()
}

/// A share of 4 / sqrt(n) that is missing of n messages is no chance: whatever the queues hold.
#[test]
fn a_server_is_overloaded_whatever_its_queues_hold_and_none_is_by_chance() {
    const SERVED: u64 = 2_000;
    let service_ns = SECOND / SERVED;
    for (rate, depth, window_ns, seeds, expected) in [
        // 20 % more than it can, behind a queue that holds all of the backlog, most of it, or none.
        (2_400, 8_192, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (2_400, 64, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (2_400, 1, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (2_200, 512, 5 * SECOND, 5, LoadVerdict::Overloaded),
        // 100 messages of a server with two thirds of its time free, of which 2 or 3 may be left at the end.
        (600, 1, 167 * MS, 200, LoadVerdict::Kept),
        (1_900, 64, SECOND, 20, LoadVerdict::Kept),
        (2_000, 64, SECOND, 20, LoadVerdict::Kept),
    ] {
        for_seeds(seeds, |seed| {
            let load = load_of(seed, (rate, depth), (service_ns, window_ns));
            assert_eq!(load.verdict, expected, "{rate} {depth}: {load:?}");
        });
    }
}

/// 200 messages a second one at a time for a server of 1 ms are no load, and 100 of them are done: the worker looks each
/// 10 ms.
#[test]
fn what_is_missing_because_the_worker_was_away_is_no_overload() {
    for_seeds(1, |seed| {
        let case = case_of(Settings {
            arrivals: Arrivals::Fixed,
            tx_depth: 1,
            ..at_rate(seed, 200, SECOND)
        });
        let mut set_up = seed.bench(&case, constant(MS, false));
        set_up.pass_ns = Some(10 * MS);
        let ran = Ran::new(&set_up, 100 * MS, SECOND, NEVER);
        let sent = ran.over.report().sent.unwrap();
        let load = sent.load.unwrap();
        assert!(load.offered == 200 && sent.totals.messages <= 100);
        let verdict = (load.verdict, load.not_kept_by);
        assert_eq!(verdict, (LoadVerdict::NotKept, Some(NotKeptBy::Away)));
    });
}

/// A server of 1 ms that 3,000 messages a second overload, one at a time. Its worker is away for 0.4 s of its window: the
/// queue is empty soon, and what waits is late by all of that.
#[test]
fn a_worker_that_was_away_behind_a_full_queue_is_late_and_the_queue_was_not_full() {
    const AWAY_NS: u64 = 400 * MS;
    for_seeds(1, |seed| {
        let case = case_of(Settings {
            arrivals: Arrivals::Fixed,
            tx_depth: 1,
            ..at_rate(seed, 3_000, SECOND)
        });
        let from_ns = START_NS + 500 * MS;
        let set_up = seed.bench(&case, constant(MS, false));
        let ran = Ran::new(&set_up, 100 * MS, SECOND, from_ns..from_ns + AWAY_NS);
        let planned = planned_times(seed, &case, ran.edges.closes_raw);
        let sent = Expected::new(&planned, &ran).holds(ran);
        let full_ns = (sent.load.unwrap().queue_full_seconds * 1e9) as u64;
        let late_ns = sent.lateness_ns.unwrap().max;
        // It may have been empty since the last look, less than 0.5 ms before.
        let least_ns = AWAY_NS..AWAY_NS + 500 * US;
        assert!(least_ns.contains(&(SECOND - full_ns)), "{full_ns}");
        // Two digits.
        assert!((AWAY_NS..AWAY_NS / 100 * 101 + 500 * US).contains(&late_ns), "{late_ns}");
    });
}

/// 2,000 messages a second for a server of 0.1 ms, of which those are late that were planned while the worker was away.
#[test]
fn percentiles_that_are_the_workers_own_lateness_are_not_told() {
    const WINDOW_NS: u64 = 6 * SECOND;
    let not_kept = (LoadVerdict::NotKept, Some(NotKeptBy::Lateness));
    for (times, away_ns, has_percentiles, expected) in [
        // 7,200, 96, 24 and 4 of 12,000 messages are late.
        (6, 600 * MS, None, not_kept),
        (4, 12 * MS, Some([true, false, false]), not_kept),
        (1, 12 * MS, Some([true, true, false]), not_kept),
        (1, 2 * MS, Some([true; 3]), (LoadVerdict::Kept, None)),
    ] {
        for_seeds(1, |seed| {
            let case = case_of(Settings {
                arrivals: Arrivals::Fixed,
                tx_depth: 64,
                ..at_rate(seed, 2_000, WINDOW_NS)
            });
            let set_up = seed.bench(&case, constant(100 * US, false));
            let ran = Ran::with(&set_up, 100 * MS, WINDOW_NS, NEVER, |bench| {
                for number in 1..=times {
                    bench.away(0, START_NS + number * 900 * MS, away_ns);
                }
            });
            let sent = ran.over.report().sent.unwrap();
            let load = sent.load.unwrap();
            assert_eq!(load.offered, 12_000);
            let late_ns = sent.lateness_ns.unwrap().max;
            assert!(late_ns > away_ns - MS && late_ns < away_ns + away_ns / 100);
            assert_eq!((load.verdict, load.not_kept_by), expected, "{times}");
            let percentiles = sent.latency_ns.map(|it| {
                // Two digits.
                let is_right = |ns: u64| (100 * US..101 * US).contains(&ns);
                assert!(it.p50.is_none_or(is_right));
                let tail = [it.p90, it.p99, it.p99_9];
                assert!(tail.into_iter().flatten().all(is_right), "{tail:?}");
                tail.map(|ns| ns.is_some())
            });
            assert_eq!(percentiles, has_percentiles, "{times}");
        });
    }
}

/// Of as many seeds 9 or more have a probability below 1 %, and 22 or more one below 5 %, once in 2,000 such trials each;
/// and the distance of Kolmogorov and Smirnov is beyond 1.95 once in 1,000.
#[test]
fn gaps_are_exponential_and_no_two_qps_share_them() {
    const RATE: u64 = 20_000;
    let (mut all, mut p_values) = (Vec::new(), Vec::new());
    let mut first_gaps = HashSet::new();
    let mut qps_in_all = 0;
    for_seeds(SEEDS, |seed| {
        let qps = seed.choices.upto(4) as u32;
        let case = case_of(Settings {
            arrivals: Arrivals::Poisson,
            qps,
            tx_depth: 64,
            ..at_rate(seed, RATE, 50 * MS)
        });
        let set_up = seed.bench(&case, constant(1, true));
        let ran = Ran::new(&set_up, 0, 50 * MS, NEVER);
        let planned = posted_by_qp(&ran.over);
        let mean_gap_ns = 1e9 / RATE as f64;
        for times in &planned {
            qps_in_all += 1;
            first_gaps.insert((times[0], times[1]));
            let began = [START_NS].into_iter().chain(times.iter().copied());
            // A number of gaps that does not depend on them.
            let gaps = times.iter().zip(began).map(|(at, began)| at - began).take(200);
            all.extend(gaps.map(|gap| gap as f64 / (mean_gap_ns * f64::from(qps))));
        }
        // Those of the worker are of each message in the window that is so many after another.
        let mut posts: Vec<u64> = planned.into_iter().flatten().collect();
        posts.retain(|at_ns| (ran.edges.opens_raw..ran.edges.closes_raw).contains(at_ns));
        posts.sort_unstable();
        let every_eighth: Vec<u64> = posts.into_iter().step_by(8).collect();
        let samples: Vec<f64> = every_eighth
            .windows(2)
            .map(|it| it[1] - it[0])
            .map(|gap| gap as f64 / mean_gap_ns)
            .collect();
        let load = ran.over.rest.client.2[0].load.as_ref().unwrap();
        assert_eq!(load.gaps.messages_of_gap, 8);
        let shown = load.gaps.mean_gaps.clone();
        assert_eq!(shown.len(), samples.len());
        for (gap, right) in shown.iter().zip(&samples) {
            assert!((gap - right).abs() < 1e-9, "{gap} {right}");
        }
        let gaps = ran.over.report().sent.unwrap().load.unwrap().gaps.unwrap();
        assert_eq!(gaps.samples, samples.len() as u64);
        assert_eq!(gaps.p_value, gaps_p_value(&shown, 8).unwrap());
        p_values.push(gaps.p_value);
    });
    assert_eq!(first_gaps.len(), qps_in_all);
    all.sort_by(f64::total_cmp);
    let n = all.len() as f64;
    let furthest = all
        .iter()
        .enumerate()
        .map(|(index, gap)| (1.0 - (-gap).exp() - (index as f64 + 0.5) / n).abs())
        .fold(0.0, f64::max)
        + 0.5 / n;
    assert!(furthest * n.sqrt() < 1.95, "{}", furthest * n.sqrt());
    for (level, most) in [(0.01, 8), (0.05, 21)] {
        let below = p_values.iter().filter(|p| **p < level).count();
        assert!(below <= most, "{below} of {SEEDS} below {level}");
    }
    // Five standard errors of a half.
    let half = p_values.iter().filter(|p| **p < 0.5).count();
    assert!(half.abs_diff(100) < 36, "{half}");
}
