//! Receives of an SRQ, several SGEs, MRs and places of messages: whatever the mix, each message arrives whole and once.

use null_verbs::loopback::corrupt_next_message;
use settings::{CqMode, MrMode, Op, RecvQueue, Settings, SizeMix, TouchOrder};
use verbs::AsyncEvent;

use crate::bench::{Bench, SetUp, whole};
use crate::loopback_node::{Choices, Pair, Steer, case_of, small};

#[test]
fn bytes_of_mixed_sizes_are_those_of_the_qp_that_took_the_receive() {
    let mix: SizeMix = "64:1,4096:1".parse().unwrap();
    let case = case_of(Settings {
        qps: 3,
        recv_queue: RecvQueue::Shared,
        size_mix: Some(mix),
        rx_depth: 20,
        ..small(Op::Send)
    });
    let rest = whole(&case, 1, 32, None);
    let (sent, got) = (rest.client_sums(), rest.server_sums());
    assert_eq!(sent.completed_bytes, [32 * 2080; 3]);
    assert_eq!(sent.completed_bytes, got.received_bytes);
}

/// The device tells once that few are left, and once more after the event was asked for again.
#[test]
fn the_limit_of_an_srq_is_told_and_asked_for_again() {
    let case = case_of(Settings {
        qps: 4,
        recv_queue: RecvQueue::Shared,
        rx_depth: 8,
        ..small(Op::Send)
    });
    let run = |bench: &mut Bench<'_>| {
        let pair = bench.pair;
        let receives = pair.server.objects.shared_receives().unwrap();
        assert!(pair.client.objects.shared_receives().is_none());
        // Senders have 64 messages in flight, so fewer than the limit of two receives are left often.
        let limit_was_told = |pair: &Pair| {
            let mut events = std::iter::from_fn(|| pair.server.events.next());
            events.any(
                |event| matches!(event, AsyncEvent::SrqLimit { srq } if receives.count_limit(srq)),
            )
        };
        bench.run_counted(60, None).unwrap();
        assert!(limit_was_told(pair));
        assert!(!limit_was_told(pair));
        receives.rearm().unwrap();
        bench.run_counted(60, None).unwrap();
        assert!(limit_was_told(pair));
        assert_eq!(receives.limit_events(), 2);
        assert!(!receives.count_limit(0));
    };
    SetUp::delayed(case, 1).run(run).1.rest.assert_clean();
}

/// An error names the QP that took the receive, which only the completion tells.
#[test]
fn a_wrong_payload_in_an_srq_names_the_qp() {
    let case = case_of(Settings {
        qps: 3,
        recv_queue: RecvQueue::Shared,
        size_bytes: 100,
        sges: 3,
        verify: true,
        ..small(Op::Send)
    });
    let rest = SetUp::delayed(case, 1).failing(5, |pair| {
        let qpn = pair.client.shared.qp_contexts()[2].qp.qpn();
        corrupt_next_message(Some(qpn), 70);
    });
    let failure = rest.server_failure().unwrap();
    let place = "QP 2, slot 0, sequence 0: byte 70 of 100";
    assert!(failure.message.contains(place), "{failure}");
}
