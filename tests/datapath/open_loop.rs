//! Open loops: every planned message is accounted for, in the histograms too; a full queue is told and counts as
//! latency; what cannot be sent is told; and planned times do not move.

use std::time::{Duration, Instant};

use rocebench::datapath::{Phase, WindowEdges, WorkerLoad};
use rocebench::metrics::histogram::Recorder;
use rocebench::plan::Case;
use settings::{Arrivals, CqMode, Op, PollMode, Rate, Settings, TimeSpan};

use crate::loopback_node::{Choices, Device, Pair, Rest, case_of, clock, small};

const DELAYS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(50)];

fn open(settings: Settings, messages_per_second: u64) -> Settings {
    Settings {
        rate: Rate::Messages(messages_per_second),
        iterations_per_qp: None,
        duration_seconds: TimeSpan::from_ns(1_000_000_000),
        ..settings
    }
}

/// A run with a window of `length`, which opens soon after the workers know it.
fn run(case: &Case, length: Duration) -> Rest {
    let pair = Pair::new(case);
    pair.set_phase(Phase::Warmup);
    let warm = pair.wait("warm-up", |pair| pair.entered(Phase::Warmup));
    warm.unwrap();
    let opens_raw = clock().raw_after(clock().raw(), 20_000_000);
    for end in [&pair.client, &pair.server] {
        end.shared.set_edges(WindowEdges {
            opens_raw,
            closes_raw: clock().raw_after(opens_raw, length.as_nanos() as u64),
        });
    }
    pair.set_phase(Phase::Measure);
    pair.wait("window", |pair| pair.client.shared.window().is_closed)
        .unwrap();
    pair.drain().unwrap();
    let rest = pair.finish();
    rest.assert_clean();
    if case.verify {
        assert_eq!(rest.verified(), None, "{case:?}");
    }
    rest
}

fn loads(rest: &Rest) -> impl Iterator<Item = &WorkerLoad> {
    let workers = rest.client.2.iter();
    workers.filter_map(|worker| worker.load.as_ref())
}

fn sum(rest: &Rest, figure: fn(&WorkerLoad) -> u64) -> u64 {
    loads(rest).map(figure).sum()
}

fn lateness(rest: &Rest) -> Recorder {
    let of_qps = loads(rest).flat_map(|load| &load.lateness);
    Recorder::merged(of_qps.map(|(_, recorder)| recorder)).unwrap()
}

fn latency(rest: &Rest) -> Recorder {
    let qps = rest.client.2.iter().flat_map(|worker| &worker.qps);
    Recorder::merged(qps.filter_map(|qp| qp.latency.as_ref())).unwrap()
}

/// Every message that was planned in the window is in each histogram once.
fn is_accounted_for(rest: &Rest) {
    let (offered, never_sent) = (
        sum(rest, |load| load.offered),
        sum(rest, |load| load.never_sent),
    );
    let service = loads(rest).flat_map(|load| load.service.iter().flatten());
    let service: u64 = service.map(Recorder::count).sum();
    assert!(offered > 0);
    assert_eq!(latency(rest).count(), offered, "{:?}", rest.case);
    assert_eq!(lateness(rest).count(), offered - never_sent);
    assert_eq!(service, offered - never_sent);
    let (client, server) = (rest.client_sums(), rest.server_sums());
    if rest.case.op.profile().receives {
        assert_eq!(client.posted_in_all, server.received_in_all);
    }
}

#[test]
fn every_planned_message_is_accounted_for() {
    let _device = Device::get();
    let mut choices = Choices(11);
    for seed in 0..25 {
        let settings = Settings {
            arrivals: choices.one(&[Arrivals::Poisson, Arrivals::Fixed]),
            cq: choices.one(&[CqMode::Shared, CqMode::PerWorker, CqMode::PerQp]),
            poll: choices.one(&[PollMode::Busy, PollMode::Event, PollMode::Adaptive]),
            workers: choices.upto(3) as u32,
            qps: choices.upto(9) as u32,
            tx_depth: choices.upto(20) as u32,
            bidirectional: choices.one(&[true, false]),
            verify: choices.one(&[true, false]),
            ..small(choices.one(Op::ALL))
        };
        null_verbs::loopback::set_seed(seed);
        null_verbs::loopback::set_max_delay(choices.one(&DELAYS));
        let case = case_of(open(settings, 3_000));
        is_accounted_for(&run(&case, Duration::from_millis(50)));
    }
}

#[test]
fn sizes_by_weight_are_offered_too() {
    let _device = Device::get();
    let mut settings = Settings {
        size_mix: "64:3,256:1".parse().ok(),
        qps: 2,
        ..open(small(Op::Send), 4_000)
    };
    settings.fit();
    let rest = run(&case_of(settings), Duration::from_millis(100));
    is_accounted_for(&rest);
    let (client, server) = (rest.client_sums(), rest.server_sums());
    let bytes: u64 = client.completed_bytes.iter().sum();
    let messages: u64 = client.completed.iter().sum();
    let mean = bytes as f64 / messages as f64;
    assert!((mean - 112.0).abs() < 3.0, "{mean}");
    assert_eq!(client.posted_in_all, server.received_in_all);
}

#[test]
fn planned_times_follow_from_the_rate_alone() {
    let _device = Device::get();
    for (qps, workers, cq) in [
        (1, 1, CqMode::Shared),
        (4, 2, CqMode::Shared),
        (6, 2, CqMode::PerQp),
    ] {
        let settings = Settings {
            arrivals: Arrivals::Fixed,
            qps,
            workers,
            cq,
            ..open(small(Op::Write), 10_000)
        };
        let rest = run(&case_of(settings), Duration::from_millis(200));
        is_accounted_for(&rest);
        // One message more or less at an edge, on each QP.
        let offered = sum(&rest, |load| load.offered);
        assert!(offered.abs_diff(2_000) <= u64::from(qps), "{offered}");
    }
}

#[test]
fn a_full_queue_is_told_and_its_wait_is_latency_and_not_lateness() {
    let _device = Device::get();
    null_verbs::loopback::set_max_delay(Duration::from_millis(2));
    let settings = Settings {
        tx_depth: 1,
        ..open(small(Op::Write), 8_000)
    };
    let rest = run(&case_of(settings), Duration::from_millis(200));
    is_accounted_for(&rest);
    let (offered, waited) = (
        sum(&rest, |load| load.offered),
        sum(&rest, |load| load.queue_full_messages),
    );
    // A message takes 1 ms, and 8 come in that time.
    assert!(waited * 10 > offered * 9, "{waited} of {offered}");
    let full = Duration::from_nanos(sum(&rest, |load| load.queue_full_ns));
    assert!(
        full > Duration::from_millis(160) && full <= Duration::from_millis(202),
        "{full:?}"
    );
    let (latency, lateness) = (latency(&rest), lateness(&rest));
    let median = |of: &Recorder| Duration::from_nanos(of.histogram().value_at_quantile(0.5));
    // The backlog grows by 0.9 s in each second.
    assert!(
        median(&latency) > Duration::from_millis(200),
        "{:?}",
        median(&latency)
    );
    assert!(
        median(&lateness) < Duration::from_millis(5),
        "{:?}",
        median(&lateness)
    );
    let never_sent = sum(&rest, |load| load.never_sent);
    // 1,600 messages are planned and 1,200 are sent, first those of the warm-up.
    assert!(never_sent > offered / 10, "{never_sent} of {offered}");
}

#[test]
fn what_is_planned_before_the_window_and_after_it_is_not_counted() {
    let _device = Device::get();
    let settings = Settings {
        arrivals: Arrivals::Fixed,
        ..open(small(Op::Send), 5_000)
    };
    let case = case_of(settings);
    let started = Instant::now();
    let rest = run(&case, Duration::from_millis(60));
    let most = started.elapsed().as_secs_f64() * 5_000.0;
    let posted: u64 = rest.client_sums().posted_in_all.iter().sum();
    let offered = sum(&rest, |load| load.offered);
    assert!((299..=301).contains(&offered), "{offered}");
    // 20 ms before the window at least.
    assert!(
        posted >= offered + 99 && (posted as f64) <= most + 1.0,
        "{posted} of {most}"
    );
}
