//! Threads that serve several flows: each flow is counted and measured for itself, goes through its phases alone, and
//! may fail alone.

use std::time::Duration;

use datapath::{Counts, Phase, WindowEdges, WorkerPoolError};
use plan::Case;
use settings::{CqMode, Op, PollMode, Settings, Stop};

use crate::accounting::{check_counted, mix};
use crate::loopback_node::{
    Choices, Device, Flows, Pair, Rest, Steer as _, all_asleep, case_of, port, small,
};

const NONE_YET: [Counts; 2] = [Counts { posted: 0, completed: 0, received: 0 }; 2];

/// Waits for messages that complete from now on.
fn traffic(pair: &mut Pair) {
    let completed = |flow: &Pair| flow.client.shared.counts().completed;
    let before = completed(pair);
    pair.wait("traffic", |flow| completed(flow) > before + 500).unwrap();
}

/// Three flows of `poll` on two threads: one per kind of CQ, so that a sleeping thread has CQs of its own and CQs that
/// it shares.
fn one_of_each_cq(poll: PollMode) -> Vec<Case> {
    Op::ALL
        .iter()
        .zip(CqMode::ALL)
        .map(|(op, &cq)| case_of(Settings { poll, cq, qps: 4, workers: 2, ..small(*op) }))
        .collect()
}

#[test]
fn every_message_of_every_flow_is_accounted_for() {
    let _device = Device::get();
    let mut choices = Choices(5);
    for seed in 0..45 {
        let threads = choices.one(&[1, 2]);
        let flow_count = choices.one(&[2, 3]);
        let poll = PollMode::ALL[seed as usize % 3];
        let (cases, messages): (Vec<Case>, Vec<u64>) = (0..flow_count)
            .map(|_| {
                let cq = choices.one(CqMode::ALL);
                let (case, messages, _) = mix(&mut choices, poll, cq, threads as u32);
                (case, messages)
            })
            .unzip();
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(Duration::from_micros(choices.one(&[0, 5, 100])));
        let mut flows = Flows::new(&cases, threads);
        for (pair, &count) in flows.pairs.iter().zip(&messages) {
            pair.start_counted(count);
        }
        let pairs = flows.pairs.iter_mut().zip(&messages);
        let measured: Vec<_> = pairs
            .map(|(pair, &count)| {
                let outcome = pair.complete(count, NONE_YET);
                (outcome, pair.counts())
            })
            .collect();
        let rests = flows.finish();
        for ((rest, count), (outcome, counts)) in rests.iter().zip(messages).zip(measured) {
            rest.assert_clean();
            outcome.unwrap();
            check_counted(rest, count, false, counts);
            assert_threads(rest, threads);
        }
    }
}

/// Each flow's reports are those of its workers, in order of their threads.
fn assert_threads(rest: &Rest, threads: usize) {
    for (objects, _, reports) in [&rest.client, &rest.server] {
        assert_eq!(reports.len(), objects.workers());
        for (index, report) in reports.iter().enumerate() {
            assert_eq!(report.index, index);
            assert!(report.thread < threads);
            assert!(index == 0 || reports[index - 1].thread < report.thread);
        }
    }
}

#[test]
fn each_flow_has_a_window_of_its_own() {
    let _device = Device::get();
    for poll in PollMode::ALL {
        let mut cases = one_of_each_cq(*poll);
        for case in &mut cases {
            case.set_stop(Stop::DurationNs(100_000_000));
        }
        let mut flows = Flows::new(&cases, 2);
        let clock = flows.pairs[0].client.shared.clock().clone();
        for pair in &flows.pairs {
            pair.set_phase(Phase::Warmup);
        }
        for pair in &mut flows.pairs {
            pair.wait("warm-up", |pair| pair.entered(Phase::Warmup)).unwrap();
        }
        let now_raw = clock.raw();
        let edge = |ms: u64| clock.raw_after(now_raw, ms * 1_000_000);
        // One window has the next in it; the third is after both.
        let windows = [(20, 220), (70, 170), (240, 340)].map(|(opens, closes)| WindowEdges {
            opens_raw: edge(opens),
            closes_raw: edge(closes),
        });
        for (pair, edges) in flows.pairs.iter().zip(windows) {
            for end in [&pair.client, &pair.server] {
                end.shared.set_edges(edges);
            }
            pair.set_phase(Phase::Measure);
        }
        for pair in &mut flows.pairs {
            pair.wait("end of the window", |pair| pair.client.shared.window().is_closed).unwrap();
        }
        for pair in &mut flows.pairs {
            pair.drain().unwrap();
        }
        for (rest, edges) in flows.finish().iter().zip(windows) {
            rest.assert_clean();
            for report in &rest.client.2 {
                let (start_raw, end_raw) = report.window_raw.unwrap();
                // A worker that is away over the whole window opens it after the end.
                assert!(start_raw <= end_raw && end_raw <= edges.closes_raw.max(start_raw));
            }
            let sums = rest.client_sums();
            let mut counts = sums.posted_in_all.iter().zip(&sums.completed);
            assert!(counts.all(|(counts, window)| window < counts), "{poll:?}: {sums:?}");
        }
    }
}

#[test]
fn a_flow_goes_through_its_phases_alone() {
    let _device = Device::get();
    for poll in PollMode::ALL {
        let mut flows = Flows::new(&one_of_each_cq(*poll), 2);
        let [first, second, third] = &mut flows.pairs[..] else {
            panic!("three flows");
        };
        first.set_phase(Phase::Warmup);
        // Traffic takes one worker of each end.
        first.wait("warm-up", |pair| pair.entered(Phase::Warmup)).unwrap();
        traffic(first);
        second.run_counted(300, Some(20)).unwrap();
        assert!(first.entered(Phase::Warmup));
        assert!(third.entered(Phase::Idle));
        assert_eq!(third.counts(), NONE_YET);
        traffic(first);
        // A flow that has ended does not end the thread, nor keep it awake.
        second.set_phase(Phase::Exit);
        second.wait("exit", |pair| pair.entered(Phase::Exit)).unwrap();
        first.drain().unwrap();
        third.run_counted(300, None).unwrap();
        let counts = flows.pairs.iter().map(Pair::counts).collect::<Vec<_>>();
        for (rest, [client, _]) in flows.finish().iter().zip(counts) {
            rest.assert_clean();
            let sums = rest.client_sums();
            assert_eq!(client.posted, client.completed);
            assert_eq!(client.posted, sums.posted_in_all.iter().sum::<u64>());
        }
    }
}

#[test]
fn a_flow_that_fails_stops_no_other() {
    let _device = Device::get();
    for poll in PollMode::ALL {
        for failing in 0..3 {
            let mut flows = Flows::new(&one_of_each_cq(*poll), 2);
            for pair in &flows.pairs {
                pair.set_phase(Phase::Warmup);
            }
            flows.pairs[failing].server.objects.flush();
            flows.pairs[failing].wait("failure", |_: &Pair| false).unwrap_err();
            for (_, pair) in
                flows.pairs.iter_mut().enumerate().filter(|(index, _)| *index != failing)
            {
                traffic(pair);
                pair.drain().unwrap();
                pair.run_counted(200, None).unwrap();
            }
            let at_end: Vec<_> = flows.pairs.iter().map(Pair::counts).collect();
            for (index, (rest, [client, server])) in flows.finish().iter().zip(at_end).enumerate() {
                if index == failing {
                    let failure = rest.client_failure().or_else(|| rest.server_failure());
                    assert!(failure.is_some());
                    continue;
                }
                rest.assert_clean();
                assert_eq!(client.posted, client.completed);
                if rest.case.op.profile().receives {
                    assert_eq!(server.received, client.posted);
                }
                let posted = rest.client_sums().posted_in_all;
                assert_eq!(client.posted, posted.iter().sum::<u64>());
            }
        }
    }
}

#[test]
fn a_thread_sleeps_while_all_of_its_flows_are_idle() {
    let _device = Device::get();
    for poll in [PollMode::Event, PollMode::Adaptive] {
        let mut flows = Flows::new(&one_of_each_cq(poll), 2);
        for messages in [10, 20] {
            for pair in &mut flows.pairs {
                pair.run_counted(messages, None).unwrap();
            }
            all_asleep();
        }
        flows.finish().iter().for_each(Rest::assert_clean);
    }
}

#[test]
fn small_flows_are_spread_over_the_threads() {
    let _device = Device::get();
    let case = case_of(Settings { cq: CqMode::PerWorker, workers: 3, ..small(Op::Write) });
    let cases = vec![case; 4];
    let mut flows = Flows::new(&cases, 3);
    for pair in &mut flows.pairs {
        pair.run_counted(10, None).unwrap();
    }
    // Two flows are initiated at each node, and only the initiator of a WRITE has a worker.
    let rests = flows.finish();
    let threads: Vec<_> = rests.iter().map(|rest| rest.client.2[0].thread).collect();
    assert_eq!(threads, [0, 0, 1, 1]);
}

#[test]
fn a_core_that_cannot_be_used_is_an_error() {
    let _device = Device::get();
    for flows in [1, 2] {
        let cases = vec![case_of(small(Op::Write)); flows];
        let error = Flows::on_cores(&port(), &cases, 1, &[Some(1_000_000)]).err();
        assert!(matches!(error, Some(WorkerPoolError::Core(_))), "{error:?}");
    }
}
