//! Flows that are not on all the time, in virtual time: what they post, and when. `by_hand` has their figures.

use datapath::Geometry;
use results::model::LoadVerdict;
use settings::{Op, Settings, Spread};

use crate::bench::{MS, US, constant, for_seeds, timed};
use crate::loopback_node::{case_of, small};

const WINDOW_NS: u64 = 100 * MS;

/// Long enough for all that is under way to complete.
const DRAINED_NS: u64 = 5 * MS;

fn with_pauses(flags: &[(&str, &str)], settings: Settings) -> Settings {
    let on_times: Settings = flags.iter().copied().collect();
    Settings {
        start_seconds: on_times.start_seconds,
        stop_seconds: on_times.stop_seconds,
        on_seconds: on_times.on_seconds,
        off_seconds: on_times.off_seconds,
        ..timed(settings, WINDOW_NS)
    }
}

#[test]
fn nothing_is_posted_while_a_flow_is_off_and_full_queues_when_it_is_on_again() {
    for_seeds(120, |seed| {
        let slots = [(16, 1, 1), (16, 4, 1), (10, 4, 1), (16, 4, 2), (16, 1, 4), (12, 4, 4)];
        let (tx_depth, signal_every, post_list) = slots[seed.number as usize % slots.len()];
        let spread = [Spread::Own, Spread::LeastLoaded][seed.number as usize / 8 % 2];
        let on_times: &[(&str, &str)] = match seed.number % 3 {
            0 => &[("start", "5ms"), ("on", "10ms"), ("off", "15ms")],
            1 => &[("on", "10ms"), ("off", "10ms"), ("stop", "75ms")],
            _ => &[("start", "20ms"), ("stop", "60ms")],
        };
        let settings = Settings {
            qps: seed.within(1..5) as u32,
            verify: seed.number % 2 == 0,
            tx_depth,
            signal_every,
            post_list,
            spread,
            ..small(Op::Write)
        };
        let case = case_of(with_pauses(on_times, settings));
        let full = u64::from(Geometry::from_flow(&case).depth()) * u64::from(case.qps);
        let service_ns = seed.within(10 * US..40 * US);
        let ((), over) = seed.bench(&case, constant(service_ns, true)).run(|bench| {
            let opens_ns = bench.open_window(2 * MS, WINDOW_NS).opens_raw;
            let mut rested = 0;
            for on in case.on_times().unwrap().until(WINDOW_NS) {
                if on.start > 0 {
                    bench.run_until_ns(opens_ns + on.start - 1);
                    assert_eq!(bench.pair.client.shared.counts().posted, rested);
                    bench.run_until_ns(opens_ns + on.start + 1);
                    let posted = bench.pair.client.shared.counts().posted - rested;
                    assert!(posted == full || case.spread != Spread::Own && posted > 0, "{posted}");
                }
                if on.end < WINDOW_NS {
                    bench.run_until_ns(opens_ns + on.end + DRAINED_NS);
                    let counts = bench.pair.client.shared.counts();
                    assert_eq!(counts.posted, counts.completed);
                    rested = counts.posted;
                }
            }
            bench.close_window();
        });
        over.rest.assert_clean();
    });
}

/// A message each millisecond, the first half a one after the flow is on: 10 in each of 4 stretches, whoever is away.
#[test]
fn an_open_loop_plans_its_messages_while_it_is_on() {
    for away_ns in [0, 300 * US] {
        let planned = Settings {
            rate: "1000".parse().unwrap(),
            arrivals: "fixed".parse().unwrap(),
            ..small(Op::Write)
        };
        let on_times = [("start", "5ms"), ("on", "10ms"), ("off", "15ms")];
        let case = case_of(with_pauses(&on_times, planned));
        for_seeds(3, |seed| {
            let ((), over) = seed.bench(&case, constant(20 * US, true)).run(|bench| {
                let opens_ns = bench.open_window(2 * MS, WINDOW_NS).opens_raw;
                bench.away(0, opens_ns + 29_900 * US, away_ns);
                bench.run_until_ns(opens_ns + 5 * MS);
                assert_eq!(bench.pair.client.shared.counts().posted, 0);
                bench.close_window();
            });
            let sent = over.report().sent.unwrap();
            let load = sent.load.unwrap();
            assert_eq!((load.offered, load.never_sent, load.verdict), (40, 0, LoadVerdict::Kept));
            assert_eq!((load.offered_per_second, sent.totals.messages), (1_000.0, 40));
            assert!((sent.window.seconds - 0.04).abs() < 1e-6, "{}", sent.window.seconds);
        });
    }
}
