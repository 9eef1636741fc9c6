//! Every message is accounted for: no completion lost, none counted twice, no post refused, whatever
//! the mix of workers, QPs, CQ modes, moderation and lists, in whichever order completions come.

use std::time::Duration;

use datapath::{Counts, Geometry, Shared, Sizes};
use plan::Case;
use results::sample::from_words;
use settings::{CqMode, MrMode, Op, PollMode, RecvQueue, Settings, Spread, TouchOrder};

use crate::bench::{Bench, SetUp, US};
use crate::loopback_node::{Choices, Device, Flows, Pair, Rest, Steer, case_of, port, small};

const DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_micros(5), Duration::from_micros(100)];

/// Runs a case of `messages` a QP with threads and checks every sum.
fn counted(case: &Case, messages: u64, warm_up: Option<u64>) {
    let mut flows = Flows::alone(&port(), case);
    let pair = &mut flows.pairs[0];
    let outcome = pair.run_counted(messages, warm_up);
    let (counts, of_qps) = (pair.counts(), completed_of_qps(pair));
    let rest = flows.finish().remove(0);
    rest.assert_clean();
    outcome.unwrap();
    check_sampled(&rest, &of_qps);
    check_counted(&rest, messages, warm_up.is_some(), counts);
}

/// The same on the bench, where workers may be away when a phase begins, so that they enter it at different times.
fn counted_on_bench(case: Case, seed: u64, messages: u64, warm_up: Option<u64>) {
    let choices = &mut Choices(seed);
    let away_ns: Vec<u64> = (0..6).map(|_| choices.one(&[0, 0, 20 * US])).collect();
    let ((counts, of_qps), over) = SetUp::delayed(case, seed).run(|bench: &mut Bench<'_>| {
        for (thread, &absence_ns) in (0..bench.threads()).zip(&away_ns) {
            bench.away(thread, bench.now_ns() + 1, absence_ns);
        }
        bench.run_for(2);
        bench.run_counted(messages, warm_up).unwrap();
        check_activity(&bench.pair.client.shared);
        check_activity(&bench.pair.server.shared);
        (bench.pair.counts(), completed_of_qps(bench.pair))
    });
    over.rest.assert_clean();
    check_sampled(&over.rest, &of_qps);
    check_counted(&over.rest, messages, warm_up.is_some(), counts);
}

fn completed_of_qps(pair: &Pair) -> [Vec<u64>; 2] {
    [&pair.client, &pair.server].map(|end| {
        let mut completed = vec![u64::MAX; pair.case.qps as usize];
        end.shared.read_completed(&mut completed);
        completed
    })
}

/// What is told of workers besides messages agrees with these: receives that are used and not posted again are no more than
/// there are.
fn check_activity(shared: &Shared) {
    let (counts, activity) = (shared.counts(), shared.activity());
    assert!(activity.empty_polls <= activity.polls, "{activity:?}");
    let used = counts.received.checked_sub(activity.receives_posted);
    assert!(used.is_some_and(|used| used <= shared.flow().receives()), "{counts:?} {activity:?}");
}

fn check_sampled(rest: &Rest, of_qps: &[Vec<u64>; 2]) {
    for (completed, sums) in of_qps.iter().zip([rest.client_sums(), rest.server_sums()]) {
        assert_eq!(completed, &sums.posted_in_all, "sampled in {:?}", rest.case);
    }
}

/// Checks every sum of a run of `messages` a QP; `counts` of client and server before the workers ended.
pub fn check_counted(rest: &Rest, messages: u64, warmed_up: bool, counts: [Counts; 2]) {
    let case = &rest.case;
    let geometry = Geometry::from_flow(case);
    let (client, server) = (rest.client_sums(), rest.server_sums());
    assert!(geometry.depth() <= case.tx_depth);
    let each = vec![messages; case.qps as usize];
    let whole_slots = messages / u64::from(geometry.unit);
    let samples = whole_slots * u64::from(geometry.completions_per_slot());
    let mut senders = vec![(&client, &server, &rest.client.1)];
    if case.bidirectional {
        senders.push((&server, &client, &rest.server.1));
    }
    for (sender, receiver, shared) in senders {
        // A source posts its QPs' messages, whichever QP each is on.
        if case.spread == Spread::Own {
            assert_eq!(sender.completed, each, "window of {case:?}");
            if !case.no_latency {
                let samples = vec![samples; case.qps as usize];
                assert_eq!(sender.latencies, samples, "latencies of {case:?}");
            }
        }
        let completed: u64 = sender.completed.iter().sum();
        assert_eq!(completed, messages * u64::from(case.qps), "{case:?}");
        if !warmed_up {
            assert_eq!(sender.posted_in_all, sender.completed, "posted in {case:?}");
            if case.verify {
                assert_eq!(sender.completed_bytes, posted_bytes(shared), "{case:?}");
            }
        }
        if case.op.profile().receives {
            let (sent, received) = (&sender.posted_in_all, &receiver.received_in_all);
            assert_eq!(sent, received, "{case:?}");
            if receiver.received == receiver.received_in_all {
                assert_eq!(sender.completed_bytes, receiver.received_bytes, "{case:?}");
            }
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

/// Bytes posted on each QP, from the number of posts of each position.
fn posted_bytes(shared: &Shared) -> Vec<u64> {
    let sizes = Sizes::new(shared.flow());
    let posts = shared
        .qp_contexts()
        .iter()
        .map(|qp_context| qp_context.sender.as_ref().unwrap().posts().unwrap());
    (0..)
        .zip(posts)
        .map(|(qp, posts)| {
            (0..)
                .zip(posts)
                .map(|(position, count)| u64::from(count) * u64::from(sizes.at(qp, position)))
                .sum()
        })
        .collect()
}

/// A random mix of all that the accounting may depend on, and how many messages and how long a warm-up.
pub fn mix(
    choices: &mut Choices,
    poll: PollMode,
    cq: CqMode,
    workers: u32,
) -> (Case, u64, Option<u64>) {
    let signal_every = choices.one(&[1, 1, 4, 32, 7, 40, 100]);
    // A longer list has to be a multiple of it.
    let post_list = match choices.upto(3) {
        1 => signal_every * choices.upto(4) as u32,
        _ => choices.upto(signal_every.into()) as u32,
    };
    let unit = signal_every.max(post_list);
    let op = choices.one(Op::ALL);
    let mut settings = Settings {
        poll,
        cq,
        workers,
        qps: choices.one(&[1, 2, 3, 5, 16]),
        size_bytes: choices.one(&[1, 3, 7, 64, 1000, 5000]),
        signal_every,
        post_list,
        tx_depth: choices.one(&[unit, 2 * unit, 3 * unit + unit / 2, unit + 100]),
        rx_depth: choices.one(&[1, 7, 64]),
        inline_bytes: choices.one(&[0, 64]),
        mr: choices.one(&[MrMode::One, MrMode::PerQp]),
        alignment_bytes: choices.one(&[8, 64, 1000, 4096]),
        offset_bytes: choices.one(&[0, 8, 40]),
        bidirectional: choices.one(&[true, false]),
        no_latency: choices.one(&[true, false]),
        verify: choices.one(&[true, false]),
        ..small(op)
    };
    match choices.upto(4) {
        1 => {
            let mix = choices.one(&["1:2,64:3,5000:1", "64:9,4K:1", "7:1,8:1"]);
            settings.size_mix = mix.parse().ok();
        }
        2 => {
            settings.recv_queue = choices.one(&[RecvQueue::PerQp, RecvQueue::Shared]);
            let has_one_poster =
                cq != CqMode::Shared && settings.recv_queue == RecvQueue::PerQp || workers == 1;
            if has_one_poster || !op.profile().fills_receives() {
                settings.memory_bytes = choices.one(&[None, Some(100_000), Some(300_000)]);
                settings.touch_order = choices.one(&[TouchOrder::Sequential, TouchOrder::Random]);
            }
            if !op.profile().is_atomic() {
                settings.sges = choices.one(&[1, 2, 3, 4, 16]);
            }
        }
        3 if cq != CqMode::Shared => {
            settings.spread = choices.one(&[Spread::RoundRobin, Spread::LeastLoaded, Spread::Hash]);
            settings.outstanding = choices.one(&[None, Some(2 * unit)]);
        }
        _ => {}
    }
    let case = case_of(settings);
    // Less than a slot, whole slots and not, less than the depth and more.
    let depth = u64::from(Geometry::from_flow(&case).depth());
    let unit = u64::from(unit);
    let counts = [1, unit.max(2) - 1, unit, depth.max(2) - 1, 2 * depth + 1, 5 * unit + unit / 3];
    let messages = choices.one(&counts).min(600 / u64::from(case.qps));
    (case, messages, choices.one(&[None, None, Some(20)]))
}

/// No queue is deeper than asked: the device refuses one WR more.
#[test]
fn random_mixes_account_for_every_message() {
    let mut choices = Choices(2);
    for seed in 0..200 {
        let cq = choices.one(CqMode::ALL);
        let workers = choices.upto(4) as u32;
        let (case, messages, warm_up) = mix(&mut choices, PollMode::Busy, cq, workers);
        counted_on_bench(case, seed, messages, warm_up);
    }
}

/// Workers of one CQ take completions from each other, in whichever order threads come.
#[test]
fn a_shared_cq_loses_nothing_and_counts_nothing_twice() {
    let _device = Device::get();
    let mut choices = Choices(1);
    for seed in 0..80 {
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
        let workers = choices.upto(3) as u32 + 1;
        let (case, messages, warm_up) = mix(&mut choices, PollMode::Busy, CqMode::Shared, workers);
        counted(&case, messages, warm_up);
    }
}

/// The device gives one event for one asking, and none for what was there before: a worker that slept over a
/// completion would sleep for ever.
#[test]
fn sleeping_workers_miss_nothing() {
    let _device = Device::get();
    let mut choices = Choices(4);
    for seed in 0..120 {
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
        let poll = choices.one(&[PollMode::Event, PollMode::Adaptive]);
        let cq = choices.one(CqMode::ALL);
        let workers = choices.upto(4) as u32;
        let (case, messages, warm_up) = mix(&mut choices, poll, cq, workers);
        counted(&case, messages, warm_up);
    }
}

/// Workers of a run find its QPs as those before have left them: all receives are posted, and an old answer is no new one.
#[test]
fn new_workers_go_on_where_others_have_stopped() {
    for (words, messages) in [
        // Receives are posted two together, of which one is used up at the end of each run: in eight runs all eight.
        ("iters=3 op=send size=64 tx-depth=4 rx-depth=8", 3),
        ("iters=3 op=send size=64 qps=2 tx-depth=4 rx-depth=16 recv-queue=shared", 3),
        // Each of two workers holds back one of two.
        ("iters=3 op=send size=64 qps=2 tx-depth=4 rx-depth=16 workers=2 cq=shared", 3),
        ("iters=3 op=write size=64 ping-pong=true", 3),
        ("iters=3 op=send size=64 ping-pong=true", 3),
    ] {
        let case = case_of(from_words(words));
        SetUp::delayed(case, messages).run_again(
            8,
            |bench| bench.run_counted(messages, None).unwrap(),
            |rest| {
                let (client, server) = (rest.client_sums(), rest.server_sums());
                let each = vec![messages; rest.case.qps as usize];
                assert_eq!(client.posted_in_all, each, "{words}");
                let answered = if rest.case.ping_pong { &server.posted_in_all } else { &each };
                assert_eq!(answered, &each, "{words}");
                let receives = rest.case.op.profile().receives;
                assert!(!receives || server.received_in_all == each, "{words}: {server:?}");
            },
        );
    }
}
