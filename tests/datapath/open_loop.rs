//! Open loops: every planned message is counted once with its exact times, a full queue's wait is told apart from a worker's,
//! and the verdict is that of the rules: against figures that were worked out by hand. Chance is held to what is known of it.

use std::collections::HashSet;

use datapath::{Phase, WindowEdges};
use null_verbs::loopback;
use results::model::{Load, LoadVerdict, NotKeptBy};
use settings::{Arrivals, Op, Rate, Settings, Stop, TimeSpan};
use statistics::gaps_p_value;

use crate::bench::{
    Bench, MS, Over, SECOND, Seed, SetUp, US, constant, for_seeds, longest_pass_ns, recorder_of,
};
use crate::by_hand::{set_up, table, times_ns};
use crate::loopback_node::{case_of, small};

/// When virtual time begins, and with it a warm-up.
pub const START_NS: u64 = SECOND;

/// Flags of each row of a load of 1,000 messages a second, at fixed times.
const LOAD: &str = "rate=1000 arrivals=fixed";

/// Times are in microseconds from the opening of a window of 40,000, which opens 10,000 after the first QP's first plan; so
/// messages are planned at -9,500, -8,500 … 500, 1,500 … 39,500, and 40 of them in the window. Columns: flags | time of
/// the device | when the client is `away`, or the device stands `still` | completed in the window, and never sent | messages
/// behind a full queue, and for how long that was full | latencies, from the plan | service, from the post | lateness, from
/// the plan to the post | verdict.
const PLANNED: &str = "
# A device that has time: each message is posted when it is planned.
tx-depth=16 | 100 each | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
qps=2 tx-depth=16 | 100 one | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
op=send verify=true cq=per-qp qps=2 tx-depth=4 | 100 each | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
op=write-imm bidirectional=true tx-depth=4 | 100 each | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
op=read workers=2 qps=2 cq=per-worker | 100 each | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
op=fetch-add size=8 workers=2 qps=2 cq=shared | 100 each | - | 40 0 | 0 0 | 100*40 | 100*40 | 0*40 | kept
# One message at a time takes 5,000: number k from 0 is planned at 1,000k - 9,500 and done at 5,000k - 4,500, so that it takes
# 4,000k + 5,000; in the window are k = 10 to 49. Eight are done in it, at 500, 5,500 … 35,500; all of it the queue is full.
tx-depth=1 | 5000 each | - | 8 0 | 40 40000 | 45000..201000/4000 | 5000*40 | 0*40 | overloaded
# A queue of four changes nothing but where they wait: each has three before it.
tx-depth=4 | 5000 each | - | 8 0 | 40 40000 | 45000..201000/4000 | 20000*40 | 0*40 | overloaded
# 200,000 each: of the first ones five are posted until a second after the window, 1,040,000, none of which was planned in it.
# So long have those of 500 to 39,500 waited at least.
tx-depth=1 | 200000 each | - | 0 40 | 40 40000 | 1000500..1039500/1000 | none | none | overloaded
# The device stands still from 10,000 to 25,000: the 15 planned at 10,500 … 24,500 are done at 25,100, 25,200 … 26,500, the next
# at 26,600 and 26,700; the other 23 find it idle.
tx-depth=16 | 100 each | still 10000..25000 | 40 0 | 0 0 | 2000..14600/900 1100 200 100*23 | 2000..14600/900 1100 200 100*23 | 0*40 | kept
# The worker is away: three that were planned meanwhile are posted together at 12,600, late by 2,100, 1,100 and 100.
tx-depth=16 | 100 each | away 9700..12600 | 40 0 | 0 0 | 2200 1300 400 100*37 | 100 200 300 100*37 | 2100 1100 100 0*37 | kept
# Away over the end: the message planned at 39,500 is posted behind the window, which is more than 1 % of 40.
tx-depth=16 | 100 each | away 38650..41000 | 39 0 | 0 0 | 1600 100*39 | 100*40 | 1500 0*39 | schedule not kept, not posted
# One at a time takes 2,000: number k is posted at 2,000k - 9,500. The worker is away from its look at 2,900 until 9,000, when it
# finds room that there may have been all that time: the queue was not full, and who waited was late by as much: 6,100 who
# was planned before, then 5,500 … 500. Number 7 is posted at 9,000, so that number 10, the first in the window, is done at
# 17,000, the others 2,000 later each. Done in it: 500, 2,500, what is seen at 9,000, and 11,000 … 39,000.
tx-depth=1 | 2000 each | away 3000..9000 | 18 0 | 40 33900 | 16500..55500/1000 | 2000*40 | 6100*3 5500 4500 3500 2500 1500 500 0*31 | overloaded
# A worker that looks each 5,000 posts one at a time: 5,000 to 35,000 are seven in its window of 35,000 from its last look before
# the opening, and it was away for all of that: no message waited for room. Whether the device could have done more nobody can tell.
tx-depth=1 | 100 each, looks 5000 | - | 7 0 | 0 0 | ? | ? | ? | schedule not kept, workers away
";

#[test]
fn planned_messages_have_the_times_that_were_worked_out() {
    for row in table(PLANNED) {
        let [flags, device, absence, done, full, latencies, services, latenesses, verdict] = row;
        let text = row.join(" | ");
        let mut set_up = set_up(&format!("{LOAD} {flags}"), device, 1);
        set_up.case.set_stop(Stop::DurationNs(40 * MS));
        // Looks in the warm-up are as often as in the window.
        let (_, over) = measured(&set_up, (5 * MS, 40 * MS), |bench| {
            let opens_ns = bench.now_ns() + 10 * MS;
            if let Some((what, times)) = absence.split_once(' ') {
                let (from, until) = times.split_once("..").unwrap();
                let [from, until]: [u64; 2] = [from, until].map(|us| us.parse().unwrap());
                let (from_ns, length_ns) = (opens_ns + from * US, (until - from) * US);
                match what {
                    "away" => bench.away(0, from_ns, length_ns),
                    _ => loopback::stand_still(from_ns, length_ns),
                }
            }
        });
        over.rest.assert_clean();
        assert_eq!(over.rest.verified(), None, "{text}");
        let [client, server] = [over.rest.client_sums(), over.rest.server_sums()];
        if over.rest.case.op.profile().receives {
            assert_eq!(client.posted_in_all, server.received_in_all, "{text}");
        }
        let sent = over.report().sent.unwrap();
        let load = sent.load.unwrap();
        assert_eq!(load.offered, 40, "{text}");
        assert_eq!(format!("{} {}", sent.totals.messages, load.never_sent), done, "{text}");
        let full_us = (load.queue_full_seconds * 1e6).round();
        if full != "?" {
            assert_eq!(format!("{} {full_us}", load.queue_full_messages), full, "{text}");
        }
        for (what, told, column) in [
            ("latency", &sent.latency_ns, latencies),
            ("service", &sent.service_ns, services),
            ("lateness", &sent.lateness_ns, latenesses),
        ] {
            if column != "?" {
                let expected = recorder_of(&times_ns(column)).latency();
                assert_eq!(told, &expected, "{what}: {text}");
            }
        }
        let by = load.not_kept_by.map_or(String::new(), |by| format!(", {}", by.name()));
        assert_eq!(format!("{}{by}", load.verdict.name()), verdict, "{text}");
    }
}

/// Settings of an open loop to vary.
pub fn at_rate(seed: &Seed, messages_per_second: u64, window_ns: u64) -> Settings {
    Settings {
        rate: Rate::Messages(messages_per_second),
        iterations_per_qp: None,
        duration_seconds: TimeSpan::from_ns(window_ns),
        seed: seed.number,
        ..small(Op::Write)
    }
}

/// A measurement of an open loop, with something else set before.
pub fn measured(
    set_up: &SetUp,
    (warm_up_ns, window_ns): (u64, u64),
    set: impl FnOnce(&mut Bench<'_>),
) -> (WindowEdges, Over) {
    set_up.run(|bench| {
        set(bench);
        bench.set_phase(Phase::Warmup);
        // A thread that looks less often takes itself for one that was away.
        let pass_ns = longest_pass_ns(window_ns);
        (0..warm_up_ns / pass_ns).for_each(|_| bench.run_for(pass_ns));
        bench.measure(0, window_ns)
    })
}

/// When each message was posted, by QP of the client.
fn posted_by_qp(over: &Over) -> Vec<Vec<u64>> {
    let of_qp = |qpn: u32| over.served.iter().filter(move |it| it.qp_num == qpn);
    let contexts = over.rest.client.1.qp_contexts().iter();
    contexts.map(|qp| of_qp(qp.qp.qpn()).map(|it| it.posted_ns).collect()).collect()
}

const SEEDS: u64 = 200;

/// A server of `service_ns`.
fn load_of(
    seed: &mut Seed,
    arrivals: Arrivals,
    (rate, depth): (u64, u32),
    (service_ns, window_ns): (u64, u64),
) -> Load {
    let case = case_of(Settings { arrivals, tx_depth: depth, ..at_rate(seed, rate, window_ns) });
    let set_up = seed.bench(&case, constant(service_ns, false));
    let (_, over) = measured(&set_up, (100 * MS, window_ns), |_| {});
    over.report().sent.unwrap().load.unwrap()
}

/// A share of 4 / sqrt(n) that is missing of n messages is no chance, and with fixed arrivals 1 / sqrt(n): whatever the queues
/// hold.
#[test]
fn a_server_is_overloaded_whatever_its_queues_hold_and_none_is_by_chance() {
    const SERVED: u64 = 2_000;
    let service_ns = SECOND / SERVED;
    for (arrivals, rate, depth, window_ns, seeds, expected) in [
        // 20 % more than it can, behind a queue that holds all of the backlog, most of it, or none.
        (Arrivals::Poisson, 2_400, 8_192, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (Arrivals::Poisson, 2_400, 64, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (Arrivals::Poisson, 2_400, 1, 2 * SECOND, 5, LoadVerdict::Overloaded),
        (Arrivals::Poisson, 2_200, 512, 5 * SECOND, 5, LoadVerdict::Overloaded),
        // 100 messages of a server with two thirds of its time free, of which 2 or 3 may be left at the end.
        (Arrivals::Poisson, 600, 1, 167 * MS, 200, LoadVerdict::Kept),
        (Arrivals::Poisson, 1_900, 64, SECOND, 20, LoadVerdict::Kept),
        (Arrivals::Poisson, 2_000, 64, SECOND, 20, LoadVerdict::Kept),
        // 2 % more than it can, of 2,500 messages at equal distances; the rate that it can is kept.
        (Arrivals::Fixed, 2_050, 64, 1_250 * MS, 1, LoadVerdict::Overloaded),
        (Arrivals::Fixed, 2_000, 64, 1_250 * MS, 1, LoadVerdict::Kept),
    ] {
        for_seeds(seeds, |seed| {
            let load = load_of(seed, arrivals, (rate, depth), (service_ns, window_ns));
            assert_eq!(load.verdict, expected, "{rate} {depth}: {load:?}");
        });
    }
}

/// 2,000 messages a second for a server of 0.1 ms, of which those are late that were planned while the worker was away.
#[test]
fn percentiles_that_are_the_workers_own_lateness_are_not_told() {
    const WINDOW_NS: u64 = 6 * SECOND;
    let not_kept = (LoadVerdict::NotKept, Some(NotKeptBy::Lateness));
    for (times, away_ns, has_percentiles, expected) in [
        // 7,200, 96, 24 and 4 of 12,000 messages are late. Of the first ones more than √12,000 are not done by the end.
        (6, 600 * MS, None, (LoadVerdict::NotKept, Some(NotKeptBy::Away))),
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
            let (_, over) = measured(&set_up, (100 * MS, WINDOW_NS), |bench| {
                for number in 1..=times {
                    bench.away(0, START_NS + number * 900 * MS, away_ns);
                }
            });
            let sent = over.report().sent.unwrap();
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
        let (edges, over) = measured(&set_up, (0, 50 * MS), |_| {});
        let planned = posted_by_qp(&over);
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
        posts.retain(|at_ns| (edges.opens_raw..edges.closes_raw).contains(at_ns));
        posts.sort_unstable();
        let every_eighth: Vec<u64> = posts.into_iter().step_by(8).collect();
        let samples: Vec<f64> = every_eighth
            .windows(2)
            .map(|it| it[1] - it[0])
            .map(|gap| gap as f64 / mean_gap_ns)
            .collect();
        let load = over.rest.client.2[0].load.as_ref().unwrap();
        assert_eq!(load.gaps.messages_of_gap, 8);
        let shown = load.gaps.mean_gaps.clone();
        assert_eq!(shown.len(), samples.len());
        for (gap, right) in shown.iter().zip(&samples) {
            assert!((gap - right).abs() < 1e-9, "{gap} {right}");
        }
        let gaps = over.report().sent.unwrap().load.unwrap().gaps.unwrap();
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
