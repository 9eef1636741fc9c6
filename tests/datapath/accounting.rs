//! Every message is accounted for: no completion lost, none counted twice, no post refused, whatever
//! the mix of workers, QPs, CQ modes, moderation and lists, in whichever order completions come.

use std::time::Duration;

use rocebench::datapath::{Counts, Geometry};
use rocebench::plan::Case;
use settings::{CqMode, Op, PollMode, Settings, TimeSpan};

use crate::loopback_node::{Choices, Device, Pair, Rest, case_of, small};

const DELAYS: [Duration; 3] = [
    Duration::ZERO,
    Duration::from_micros(5),
    Duration::from_micros(100),
];

/// Runs a case of `messages` a QP and checks every sum.
fn counted(case: &Case, messages: u64, warm_up: Option<u64>) {
    let pair = Pair::new(case);
    let outcome = pair.run_counted(messages, warm_up);
    let counts = [pair.client.shared.counts(), pair.server.shared.counts()];
    let of_qps = [&pair.client, &pair.server].map(|end| {
        let mut completed = vec![u64::MAX; case.qps as usize];
        end.shared.read_completed(&mut completed);
        completed
    });
    let rest = pair.finish();
    rest.assert_clean();
    outcome.unwrap();
    for (completed, sums) in of_qps.iter().zip([rest.client_sums(), rest.server_sums()]) {
        assert_eq!(completed, &sums.posted_in_all, "sampled in {case:?}");
    }
    check_counted(&rest, messages, warm_up.is_some(), counts);
}

/// Checks every sum of a run of `messages` a QP; `counts` of client and server before the workers ended.
pub fn check_counted(rest: &Rest, messages: u64, warmed_up: bool, counts: [Counts; 2]) {
    let case = &rest.case;
    let geometry = Geometry::of(case);
    let (client, server) = (rest.client_sums(), rest.server_sums());
    let each = vec![messages; case.qps as usize];
    let whole_slots = messages / u64::from(geometry.unit);
    let samples = whole_slots * u64::from(geometry.completions_per_slot());
    let mut senders = vec![(&client, &server)];
    if case.bidirectional {
        senders.push((&server, &client));
    }
    for (sender, receiver) in senders {
        assert_eq!(sender.completed, each, "window of {case:?}");
        if !case.no_latency {
            let samples = vec![samples; case.qps as usize];
            assert_eq!(sender.latencies, samples, "latencies of {case:?}");
        }
        if !warmed_up {
            assert_eq!(sender.posted_in_all, each, "posted in {case:?}");
        }
        if case.op.profile().receives {
            assert_eq!(
                receiver.received_in_all, sender.posted_in_all,
                "received in {case:?}"
            );
        }
    }
    for (count, sums) in counts.iter().zip([&client, &server]) {
        assert_eq!(count.posted, count.completed);
        assert_eq!(count.posted, sums.posted_in_all.iter().sum::<u64>());
        assert_eq!(count.received, sums.received_in_all.iter().sum::<u64>());
    }
    if case.verify {
        assert_eq!(rest.verified(), None, "{case:?}");
    }
}

/// Depths to try with a slot of `unit` WRs: one slot, whole slots, and not whole ones.
fn depths(unit: u32) -> [u32; 4] {
    [unit, 2 * unit, 3 * unit + unit / 2, 128.max(unit)]
}

/// Message counts to try: less than a slot, whole slots and not, less than the depth and more.
fn message_counts(geometry: &Geometry) -> [u64; 6] {
    let (unit, depth) = (u64::from(geometry.unit), u64::from(geometry.depth()));
    [
        1,
        unit.saturating_sub(1).max(1),
        unit,
        (depth - 1).max(1),
        2 * depth + 1,
        5 * unit + unit / 3,
    ]
}

#[test]
fn a_shared_cq_loses_nothing_and_counts_nothing_twice() {
    let _device = Device::get();
    let mut choices = Choices(1);
    let mut seed = 0;
    for workers in 1..=4 {
        for qps in [1, 3, 16] {
            for signal_every in [1, 4, 32] {
                for post_list in [1, 8, 32] {
                    if post_list > signal_every && post_list % signal_every != 0 {
                        continue;
                    }
                    for &op in Op::ALL {
                        let tx_depth = choices.one(&depths(signal_every.max(post_list)));
                        let case = case_of(Settings {
                            workers,
                            qps,
                            signal_every,
                            post_list,
                            tx_depth,
                            rx_depth: choices.one(&[1, 7, 64]),
                            no_latency: choices.one(&[true, false]),
                            ..small(op)
                        });
                        let messages = choices.one(&message_counts(&Geometry::of(&case)));
                        let warm_up = choices.one(&[None, None, Some(20)]);
                        seed += 1;
                        null_verbs::loopback::set_seed(seed);
                        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
                        counted(&case, messages, warm_up);
                    }
                }
            }
        }
    }
}

#[test]
fn random_mixes_account_for_every_message() {
    let _device = Device::get();
    let mut choices = Choices(2);
    for seed in 0..80 {
        let signal_every = choices.upto(40) as u32;
        // A longer list has to be a multiple of it.
        let post_list = match choices.upto(3) {
            1 => signal_every * choices.upto(4) as u32,
            _ => choices.upto(signal_every.into()) as u32,
        };
        let case = case_of(Settings {
            cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
            workers: choices.upto(3) as u32,
            qps: choices.upto(5) as u32,
            size_bytes: choices.one(&[1, 7, 64, 5000]),
            signal_every,
            post_list,
            tx_depth: signal_every.max(post_list) + choices.upto(100) as u32 - 1,
            rx_depth: choices.upto(64) as u32,
            inline_bytes: choices.one(&[0, 64]),
            bidirectional: choices.one(&[true, false]),
            verify: choices.one(&[true, false, false]),
            ..small(choices.one(Op::ALL))
        });
        let messages = choices.upto(400);
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
        counted(&case, messages, choices.one(&[None, Some(20)]));
    }
}

/// The device gives one event for one asking, and none for what was there before: a worker that slept over a
/// completion would sleep for ever.
#[test]
fn sleeping_workers_miss_nothing() {
    let _device = Device::get();
    let mut choices = Choices(4);
    let mut seed = 0;
    for poll in [PollMode::Event, PollMode::Adaptive] {
        for &op in Op::ALL {
            for cq in [CqMode::Shared, CqMode::PerWorker, CqMode::PerQp] {
                for workers in [1, 3] {
                    for delay in DELAYS {
                        let case = case_of(Settings {
                            poll,
                            cq,
                            workers,
                            qps: choices.one(&[1, 4, 9]),
                            signal_every: choices.one(&[1, 4]),
                            tx_depth: choices.one(&[1, 4, 16]).max(4),
                            rx_depth: choices.one(&[1, 7, 64]),
                            bidirectional: choices.one(&[true, false]),
                            verify: choices.one(&[true, false]),
                            ..small(op)
                        });
                        seed += 1;
                        null_verbs::loopback::set_seed(seed);
                        null_verbs::loopback::set_max_delay(delay);
                        counted(&case, choices.upto(150), choices.one(&[None, Some(20)]));
                    }
                }
            }
        }
    }
}

/// Workers that enter a phase late meet completions of those that entered it early: with one slot a QP,
/// a completion that is dropped or not charged shows at once.
#[test]
fn workers_may_enter_a_phase_at_different_times() {
    let _device = Device::get();
    null_verbs::loopback::set_max_delay(Duration::ZERO);
    for round in 0..100 {
        let case = case_of(Settings {
            workers: 2 + round % 3,
            qps: 2,
            tx_depth: 1,
            no_latency: true,
            ..small(Op::Write)
        });
        counted(&case, 3, (round % 2 == 0).then_some(3));
    }
}

/// The queue is never deeper than asked: the device refuses one WR more.
#[test]
fn the_send_queue_never_overflows() {
    let _device = Device::get();
    for (tx_depth, signal_every, post_list) in [
        (128, 100, 1),
        (128, 100, 20),
        (128, 100, 30),
        (100, 100, 1),
        (1, 1, 1),
        (2, 1, 1),
        (7, 3, 2),
        (33, 32, 8),
        (64, 4, 32),
        (70, 4, 32),
    ] {
        for workers in [1, 2] {
            for op in [Op::Send, Op::Read] {
                let case = case_of(Settings {
                    tx_depth,
                    signal_every,
                    post_list,
                    workers,
                    ..small(op)
                });
                assert!(Geometry::of(&case).depth() <= tx_depth);
                counted(&case, 1000 / u64::from(workers * 3), None);
            }
        }
    }
}

#[test]
fn runs_by_time_come_to_rest_with_every_message_accounted_for() {
    let _device = Device::get();
    let mut choices = Choices(3);
    for seed in 0..40 {
        let case = case_of(Settings {
            poll: PollMode::ALL[seed as usize % 3],
            cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
            workers: choices.one(&[1, 2, 3]),
            qps: choices.one(&[1, 3, 8]),
            signal_every: choices.one(&[1, 8, 10]),
            tx_depth: choices.one(&[10, 32, 128]),
            bidirectional: choices.one(&[true, false]),
            iterations_per_qp: None,
            duration_seconds: TimeSpan::from_ns(1_000_000),
            ..small(choices.one(Op::ALL))
        });
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
        let pair = Pair::new(&case);
        let outcome = pair.run_for(50, 200);
        let counts = [pair.client.shared.counts(), pair.server.shared.counts()];
        let rest = pair.finish();
        rest.assert_clean();
        outcome.unwrap();
        let (client, server) = (rest.client_sums(), rest.server_sums());
        for (count, sums) in counts.iter().zip([&client, &server]) {
            assert_eq!(count.posted, count.completed, "{case:?}");
            assert_eq!(count.posted, sums.posted_in_all.iter().sum::<u64>());
            for (window, all) in sums.completed.iter().zip(&sums.posted_in_all) {
                assert!(window <= all, "{window} of {all} in {case:?}");
            }
            for (window, all) in sums.received.iter().zip(&sums.received_in_all) {
                assert!(window <= all, "{window} of {all} in {case:?}");
            }
        }
        // The window opens for all workers only after the wait for it began, within their first pass.
        assert!(client.completed.iter().sum::<u64>() > 0, "{case:?}");
        if case.op.profile().receives {
            assert_eq!(server.received_in_all, client.posted_in_all, "{case:?}");
            assert_eq!(client.received_in_all, server.posted_in_all, "{case:?}");
        }
    }
}
