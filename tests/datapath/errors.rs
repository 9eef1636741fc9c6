//! What goes wrong is reported as what it is: the cause apart from the flushes that follow, with QP,
//! operation and status; and nothing hangs.

use std::time::Duration;

use datapath::Phase;
use null_verbs::loopback::fail_next;
use protocol::endpoints::Endpoints;
use protocol::failure::RunFailure;
use settings::{CqMode, Op, PollMode, Settings, Stop, TimeSpan};
use verbs::{AsyncEvent, AsyncEvents, CompletionChannel, WcStatus};

use crate::bench::{Bench, MS, SECOND, SetUp, US, constant};
use crate::loopback_node::{
    Device, Flows, Pair, Steer, all_asleep, case, case_of, null_port, port, small,
};

/// Status codes of `enum ibv_wc_status` that a send can fail with.
const CAUSES: [u32; 14] = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 19, 21];

#[test]
fn each_status_is_told_apart_from_its_flushes() {
    for (index, code) in CAUSES.into_iter().enumerate() {
        for workers in [1, 3] {
            let op = Op::ALL[index % 3];
            let case = case_of(Settings { workers, qps: 3, signal_every: 4, ..small(op) });
            let set_up = SetUp::delayed(case, index as u64);
            let rest = set_up.failing(1000, |_| fail_next(code));
            let failure = rest.client_failure().unwrap();
            let status = WcStatus(code);
            let start = format!("{} on QP ", op.name().to_uppercase());
            let name = format!("failed with {} ({code}): {}", status.name(), status.meaning());
            assert!(failure.message.starts_with(&start), "{failure}");
            assert!(failure.message.contains(&name), "{failure}");
            assert!(!failure.message.contains("more failed"), "{failure}");
            assert_eq!(failure.hint.as_deref(), Some(status.remedy()));
            let troubles = || rest.client.2.iter().map(|worker| &worker.trouble);
            assert_eq!(troubles().map(|t| t.failed_count).sum::<u64>(), 1);
            assert!(troubles().map(|t| t.flushed_count).sum::<u64>() > 0);
            assert!(troubles().all(|t| t.refused.is_none()));
            assert!(rest.server_failure().is_none(), "{:?}", rest.server_failure());
        }
    }
}

#[test]
fn a_device_without_completion_events_is_named() {
    let port = null_port();
    let error = CompletionChannel::new(&port.context).err().unwrap();
    assert_eq!(
        error.to_string(),
        "ibv_create_comp_channel failed for null0: Operation not supported (os error 95)"
    );
    assert!(error.hint().unwrap().contains("--poll busy"));
}

/// No WR takes a noticeable part of so long a delay by chance.
const NEVER: Duration = Duration::from_secs(1 << 24);

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
                ..small(Op::Write)
            });
            let mut flows = Flows::alone(&port(), &case);
            let pair = &mut flows.pairs[0];
            null_verbs::loopback::set_max_delay(NEVER);
            for phase in [Phase::Warmup, Phase::Measure, Phase::Abort] {
                all_asleep();
                if phase == Phase::Abort {
                    pair.client.objects.flush();
                }
                pair.set_phase(phase);
                let outcome = pair
                    .wait("workers in step", |pair: &Pair| pair.client.shared.all_entered(phase));
                assert!(outcome.is_ok() || phase == Phase::Abort);
            }
            all_asleep();
            let rest = flows.finish().remove(0);
            let flushed: u64 =
                rest.client.2.iter().map(|worker| &worker.trouble).map(|it| it.flushed_count).sum();
            assert_eq!(flushed, 3 * u64::from(case.tx_depth), "{case:?}");
        }
    }
}

#[test]
fn flushes_do_not_overflow_the_cq() {
    for (tx_depth, signal_every) in [(128, 100), (128, 32), (16, 1)] {
        let case = case_of(Settings { tx_depth, signal_every, ..small(Op::Write) });
        let rest = SetUp::delayed(case, 1)
            .run(|bench: &mut Bench<'_>| {
                fail_next(10);
                bench.run_counted(1000, None).unwrap_err();
                bench.set_phase(Phase::Abort);
                assert_eq!(bench.pair.client.events.next(), None);
            })
            .1
            .rest;
        assert!(rest.client_failure().is_some());
    }
}

/// A session may set the next phase before it sees that a worker failed in this one. The failure must stay
/// what is reported.
#[test]
fn later_phases_do_not_hide_a_failure() {
    for stop in [Stop::MessagesPerQp(1000), Stop::DurationNs(1)] {
        for workers in [1, 2] {
            let mut case = case_of(Settings { workers, qps: 3, ..small(Op::Write) });
            case.set_stop(stop);
            let rest = SetUp::delayed(case, 1)
                .run(|bench: &mut Bench<'_>| {
                    bench.pair.set_budgets(1000);
                    fail_next(10);
                    bench.set_phase(Phase::Warmup);
                    bench.wait("failure", |_| false).unwrap_err();
                    for phase in [Phase::Measure, Phase::Drain, Phase::Abort] {
                        bench.set_phase(phase);
                        assert!(bench.pair.client.shared.all_entered(phase));
                    }
                })
                .1
                .rest;
            let failure = rest.client_failure().unwrap();
            assert!(failure.message.contains("REM_ACCESS_ERR"), "{failure}");
        }
    }
}

#[test]
fn a_wrong_key_or_address_is_a_remote_access_error() {
    let tampers: [fn(&mut Endpoints); 2] =
        [|endpoints| endpoints.qps[1].rkey += 1, |endpoints| endpoints.qps[1].address += 1 << 20];
    for (op, name) in [(Op::Write, "WRITE"), (Op::Read, "READ")] {
        for tamper in tampers {
            let case = case_of(Settings { qps: 2, ..small(op) });
            let set_up = SetUp { tamper, ..SetUp::delayed(case, 1) };
            let rest = set_up.failing(100, |_| {});
            let text = rest.client_failure().unwrap().message;
            let start = format!("{name} on QP 1 (number ");
            assert!(text.starts_with(&start), "{text}");
            assert!(text.contains("failed with REM_ACCESS_ERR (10)"), "{text}");
        }
    }
}

/// The target says so too, by an event of its QP.
#[test]
fn the_target_learns_of_a_refused_access() {
    let set_up = SetUp {
        tamper: |endpoints| endpoints.qps[0].rkey += 1,
        ..SetUp::delayed(case(Op::Write), 1)
    };
    set_up.run(|bench| {
        bench.run_counted(100, None).unwrap_err();
        let server = &bench.pair.server;
        let qpn = server.shared.qp_contexts()[0].qp.qpn();
        let event = server.events.next().unwrap();
        let expected = AsyncEvent::QpError { qpn, name: "QP_ACCESS_ERR" };
        assert_eq!(event, expected);
        let failure = RunFailure::from_event(event, "loop0", 1).unwrap();
        assert!(failure.message.contains("QP_ACCESS_ERR"), "{failure}");
    });
}

#[test]
fn a_receiver_that_never_posts_exceeds_the_rnr_retries() {
    let case = case_of(Settings { rx_depth: 1, rnr_retry: 2, ..small(Op::Send) });
    // A receiver that is away posts nothing more than its first receive.
    let set_up = SetUp::delayed(case, 1);
    let rest = set_up.failing(10, |bench| {
        bench.away(1, bench.now_ns() + 1, SECOND);
        bench.run_for(2);
    });
    let failure = rest.client_failure().unwrap();
    assert!(failure.message.contains("RNR_RETRY_EXC_ERR"), "{failure}");
    assert!(failure.hint.unwrap().contains("--rx-depth"));
}

#[test]
fn a_message_longer_than_its_receive_fails_at_both_ends() {
    // The ends of one session run the same case; here the server's is shorter.
    let mut server_case = case(Op::Send);
    server_case.size_bytes = 63;
    let set_up = SetUp { server_case: Some(server_case), ..SetUp::delayed(case(Op::Send), 1) };
    let rest = set_up.failing(10, |_| {});
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
    let set_up = SetUp::delayed(case(Op::Send), 1);
    let rest = set_up.failing(10, |bench| bench.pair.server.objects.flush());
    let failure = rest.server_failure().unwrap();
    assert!(failure.message.contains("WR_FLUSH_ERR"), "{failure}");
    let says = "none of them is the cause";
    assert!(failure.message.contains(says), "{failure}");
}

/// A worker that is away lets completions pile up.
#[test]
fn a_cq_that_overflows_is_an_event_and_no_hang() {
    for cq in [CqMode::Shared, CqMode::PerQp] {
        let case = case_of(Settings {
            cq,
            workers: 2,
            qps: 2,
            tx_depth: 128,
            cq_depth: Some(1),
            ..small(Op::Write)
        });
        let set_up = SetUp::new(case, 1, constant(10 * US, false));
        let (failure, over) = set_up.run(|bench: &mut Bench<'_>| {
            bench.set_phase(Phase::Warmup);
            let now_ns = bench.now_ns();
            (0..2).for_each(|worker| bench.away(worker, now_ns + US, MS));
            let mut event = None;
            bench.run_until("overflow", SECOND, |bench| {
                event = event.or_else(|| bench.pair.client.events.next());
                event.is_some()
            });
            let Some(AsyncEvent::CqError { cq: failed_cq }) = event else {
                panic!("{event:?}");
            };
            let objects = &bench.pair.client.objects;
            assert!(objects.cqs().iter().any(|own| AsyncEvents::is_cq(own, failed_cq)));
            RunFailure::from_event(event.unwrap(), "loop0", objects.cq_entries()).unwrap()
        });
        assert_eq!(
            failure.message,
            "a CQ of loop0 with 1 entries overflowed: completions are lost"
        );
        assert!(failure.hint.unwrap().contains("--cq-depth"));
        // The workers still end when told to.
        assert_eq!(over.rest.client.2.len(), 2);
    }
}
