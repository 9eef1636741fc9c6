//! What goes wrong is reported as what it is: the cause apart from the flushes that follow, with QP,
//! operation and status; and nothing hangs.

use std::time::{Duration, Instant};

use rocebench::datapath::Phase;
use rocebench::protocol::failure::RunFailure;
use settings::{CqMode, Op, PollMode, Settings, Stop, TimeSpan};
use verbs::{AsyncEvent, AsyncEvents, CompletionChannel, WcStatus};

use crate::loopback_node::{Device, Pair, case, case_of, null_port, small};

/// Status codes of `enum ibv_wc_status` that a send can fail with.
const CAUSES: [u32; 14] = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 19, 21];

#[test]
fn each_status_is_told_apart_from_its_flushes() {
    let _device = Device::get();
    for (index, code) in CAUSES.into_iter().enumerate() {
        for workers in [1, 3] {
            let op = Op::ALL[index % 3];
            let case = case_of(Settings {
                poll: PollMode::ALL[index % 3],
                workers,
                qps: 3,
                signal_every: 4,
                ..small(op)
            });
            let pair = Pair::new(&case);
            null_verbs::loopback::fail_next(code);
            pair.run_counted(1000, None).unwrap_err();
            wait_for_flushes(&pair);
            let rest = pair.finish();
            let failure = rest.client_failure().unwrap();
            let status = WcStatus(code);
            let start = format!("{} on QP ", op.name().to_uppercase());
            let name = format!(
                "failed with {} ({code}): {}",
                status.name(),
                status.meaning()
            );
            assert!(failure.message.starts_with(&start), "{failure}");
            assert!(failure.message.contains(&name), "{failure}");
            assert!(!failure.message.contains("more failed"), "{failure}");
            assert_eq!(failure.hint.as_deref(), Some(status.remedy()));
            let troubles = || rest.client.2.iter().map(|worker| &worker.trouble);
            assert_eq!(troubles().map(|t| t.failed_count).sum::<u64>(), 1);
            assert!(troubles().map(|t| t.flushed_count).sum::<u64>() > 0);
            assert!(troubles().all(|t| t.refused.is_none()));
            assert!(
                rest.server_failure().is_none(),
                "{:?}",
                rest.server_failure()
            );
        }
    }
}

/// Ends the run as a session does, and lets what is flushed come in.
fn wait_for_flushes(pair: &Pair) {
    pair.set_phase(Phase::Abort);
    let started = Instant::now();
    while !pair.entered(Phase::Abort) {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::yield_now();
    }
}

#[test]
fn a_device_without_completion_events_is_named() {
    let _device = Device::get();
    let port = null_port();
    let error = CompletionChannel::new(&port.context).err().unwrap();
    assert_eq!(
        error.to_string(),
        "ibv_create_comp_channel failed for null0: Operation not supported (os error 95)"
    );
    assert!(error.hint().unwrap().contains("--poll busy"));
}

/// How long workers have nothing to do in each phase.
const IDLE: Duration = Duration::from_millis(100);

/// Nothing ever completes, so only the phases wake the workers.
#[test]
fn workers_that_sleep_wake_for_every_phase() {
    let _device = Device::get();
    for poll in [PollMode::Event, PollMode::Adaptive] {
        for workers in [1, 3] {
            let case = case_of(Settings {
                poll,
                workers,
                qps: 3,
                iterations_per_qp: None,
                duration_seconds: TimeSpan::from_ns(1),
                rnr_retry: 7,
                ..small(Op::Send)
            });
            // A server that posts no receive.
            let pair = Pair::with_server_case(&case, |case| case.op = Op::Write.into());
            for phase in [Phase::Warmup, Phase::Measure] {
                pair.client.shared.set_phase(phase);
                pair.wait("workers in step", |pair| {
                    pair.client.shared.all_entered(phase)
                })
                .unwrap();
                std::thread::sleep(IDLE);
            }
            let started = Instant::now();
            pair.client.objects.flush();
            wait_for_flushes(&pair);
            // As a session does.
            std::thread::sleep(Duration::from_millis(100));
            let rest = pair.finish();
            assert!(started.elapsed() < Duration::from_secs(20), "{case:?}");
            let slept = rest.client.2.iter().map(|worker| worker.cpu_seconds);
            let slept: f64 = slept.sum();
            assert!(slept < IDLE.as_secs_f64() / 2.0, "{slept} s: {case:?}");
            let flushed = rest
                .client
                .2
                .iter()
                .map(|worker| worker.trouble.flushed_count);
            assert!(flushed.sum::<u64>() > 0, "{case:?}");
        }
    }
}

#[test]
fn flushes_do_not_overflow_the_cq() {
    let _device = Device::get();
    for (tx_depth, signal_every) in [(128, 100), (128, 32), (16, 1)] {
        let case = case_of(Settings {
            tx_depth,
            signal_every,
            ..small(Op::Write)
        });
        let pair = Pair::new(&case);
        null_verbs::loopback::fail_next(10);
        pair.run_counted(1000, None).unwrap_err();
        wait_for_flushes(&pair);
        assert_eq!(pair.client.events.next(), None, "{case:?}");
        assert!(pair.finish().client_failure().is_some());
    }
}

/// A session may set the next phase before it sees that a worker failed in this one. The failure must stay
/// what is reported.
#[test]
fn later_phases_do_not_hide_a_failure() {
    let _device = Device::get();
    for stop in [Stop::MessagesPerQp(1000), Stop::DurationNs(1)] {
        for workers in [1, 2] {
            let mut case = case_of(Settings {
                workers,
                qps: 3,
                ..small(Op::Write)
            });
            case.set_stop(stop);
            let pair = Pair::new(&case);
            pair.set_budgets(1000);
            null_verbs::loopback::fail_next(10);
            pair.set_phase(Phase::Warmup);
            pair.wait("failure", |_| false).unwrap_err();
            for phase in [Phase::Measure, Phase::Drain, Phase::Abort] {
                pair.set_phase(phase);
                let started = Instant::now();
                while !pair.client.shared.all_entered(phase) {
                    assert!(started.elapsed() < Duration::from_secs(20));
                    std::thread::yield_now();
                }
            }
            let failure = pair.finish().client_failure().unwrap();
            assert!(failure.message.contains("REM_ACCESS_ERR"), "{failure}");
        }
    }
}

/// The client's failure when `tamper` changed what it knows of the server's memory.
fn with_wrong_memory(
    op: Op,
    tamper: impl FnOnce(&mut rocebench::protocol::endpoints::QpEndpoint),
) -> RunFailure {
    let case = case_of(Settings {
        qps: 2,
        ..small(op)
    });
    let pair = Pair::tampered(&case, |endpoints| tamper(&mut endpoints.qps[1]));
    pair.run_counted(100, None).unwrap_err();
    pair.finish().client_failure().unwrap()
}

#[test]
fn a_wrong_key_or_address_is_a_remote_access_error() {
    let _device = Device::get();
    for (op, name) in [(Op::Write, "WRITE"), (Op::Read, "READ")] {
        for failure in [
            with_wrong_memory(op, |qp| qp.rkey += 1),
            with_wrong_memory(op, |qp| qp.address += 1 << 20),
        ] {
            let text = &failure.message;
            assert!(
                text.starts_with(&format!("{name} on QP 1 (number ")),
                "{text}"
            );
            assert!(text.contains("failed with REM_ACCESS_ERR (10)"), "{text}");
        }
    }
}

/// The target says so too, by an event of its QP.
#[test]
fn the_target_learns_of_a_refused_access() {
    let _device = Device::get();
    let pair = Pair::tampered(&case(Op::Write), |endpoints| endpoints.qps[0].rkey += 1);
    let qpn = pair.server.shared.qp_contexts()[0].qp.qpn();
    pair.run_counted(100, None).unwrap_err();
    let event = pair.server.events.next().unwrap();
    assert_eq!(
        event,
        AsyncEvent::QpError {
            qpn,
            name: "QP_ACCESS_ERR"
        }
    );
    let failure = RunFailure::from_event(event, "loop0", 1).unwrap();
    assert!(failure.message.contains("QP_ACCESS_ERR"), "{failure}");
    pair.finish();
}

#[test]
fn a_receiver_that_never_posts_exceeds_the_rnr_retries() {
    let _device = Device::get();
    let case = case_of(Settings {
        rx_depth: 1,
        rnr_retry: 2,
        ..small(Op::Send)
    });
    let pair = Pair::new(&case);
    // A receiver that returned polls nothing and posts nothing more than its first receive.
    pair.server.shared.set_phase(Phase::Exit);
    pair.wait("exit", |pair| pair.server.shared.all_entered(Phase::Exit))
        .unwrap();
    pair.set_budgets(10);
    pair.client.shared.set_phase(Phase::Measure);
    pair.wait("failure", |_| false).unwrap_err();
    let failure = pair.finish().client_failure().unwrap();
    assert!(failure.message.contains("RNR_RETRY_EXC_ERR"), "{failure}");
    assert!(failure.hint.unwrap().contains("--rx-depth"));
}

#[test]
fn a_dead_peer_exceeds_the_retries() {
    let _device = Device::get();
    let pair = Pair::new(&case(Op::Write));
    pair.server.objects.flush();
    pair.run_counted(10, None).unwrap_err();
    let failure = pair.finish().client_failure().unwrap();
    assert!(failure.message.contains("RETRY_EXC_ERR (12)"), "{failure}");
}

#[test]
fn a_message_longer_than_its_receive_fails_at_both_ends() {
    let _device = Device::get();
    // The ends of one session run the same case; here the server's is shorter.
    let pair = Pair::with_server_case(&case(Op::Send), |case| case.size_bytes = 63);
    pair.run_counted(10, None).unwrap_err();
    wait_for_flushes(&pair);
    let rest = pair.finish();
    let client = rest.client_failure().unwrap();
    assert!(client.message.starts_with("SEND on QP 0"), "{client}");
    assert!(client.message.contains("REM_INV_REQ_ERR (9)"), "{client}");
    let server = rest.server_failure().unwrap();
    assert!(server.message.starts_with("receive on QP 0"), "{server}");
    assert!(server.message.contains("LOC_LEN_ERR (1)"), "{server}");
}

/// Nothing but flushes: the message says that none of them is the cause.
#[test]
fn flushes_alone_are_not_taken_for_a_cause() {
    let _device = Device::get();
    let pair = Pair::new(&case(Op::Send));
    pair.server.objects.flush();
    pair.wait("flushes", |_| false).unwrap_err();
    let failure = pair.finish().server_failure().unwrap();
    assert!(failure.message.contains("WR_FLUSH_ERR"), "{failure}");
    assert!(
        failure.message.contains("none of them the cause"),
        "{failure}"
    );
}

#[test]
fn a_cq_that_overflows_is_an_event_and_no_hang() {
    let _device = Device::get();
    for cq in [CqMode::Shared, CqMode::PerQp] {
        let case = case_of(Settings {
            cq,
            workers: 2,
            qps: 2,
            tx_depth: 128,
            cq_depth: Some(1),
            ..small(Op::Write)
        });
        null_verbs::loopback::set_max_delay(Duration::ZERO);
        let pair = Pair::new(&case);
        pair.set_phase(Phase::Warmup);
        let mut event = None;
        pair.wait("overflow", |pair| {
            event = event.or_else(|| pair.client.events.next());
            event.is_some()
        })
        .unwrap();
        let Some(AsyncEvent::CqError { cq }) = event else {
            panic!("{event:?}");
        };
        let cqs = pair.client.objects.cqs();
        assert!(cqs.iter().any(|own| AsyncEvents::is_cq(own, cq)));
        let failure =
            RunFailure::from_event(event.unwrap(), "loop0", pair.client.objects.cq_entries());
        let failure = failure.unwrap();
        assert_eq!(
            failure.message,
            "a CQ of loop0 with 1 entries overflowed: completions are lost"
        );
        assert!(failure.hint.unwrap().contains("--cq-depth"));
        // The workers still end when told to.
        let rest = pair.finish();
        assert_eq!(rest.client.2.len(), 2);
    }
}
