//! Messages of several sizes, and receives of an SRQ.

use datapath::Geometry;
use null_verbs::loopback::corrupt_next_message;
use settings::{Op, RecvQueue, Settings};
use verbs::AsyncEvent;

use crate::bench::{Bench, SetUp, whole};
use crate::loopback_node::{Pair, Steer, case_of, small};

#[test]
fn bytes_of_mixed_sizes_are_those_of_the_qp_that_took_the_receive() {
    let case = case_of(Settings {
        qps: 3,
        recv_queue: RecvQueue::Shared,
        size_mix: "64:1,4096:1".parse().ok(),
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
    let case =
        case_of(Settings { qps: 4, recv_queue: RecvQueue::Shared, rx_depth: 8, ..small(Op::Send) });
    SetUp::delayed(case, 1)
        .run(|bench: &mut Bench<'_>| {
            let pair = bench.pair;
            let receives = pair.server.objects.shared_receives().unwrap();
            assert!(pair.client.objects.shared_receives().is_none());
            // Senders have 64 messages in flight, so fewer than the limit of two receives are left often.
            let limit_was_told = |ends: &Pair| {
                let mut events = std::iter::from_fn(|| ends.server.events.next());
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
        })
        .1
        .rest
        .assert_clean();
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
    let rest = SetUp::delayed(case, 1).failing(5, |bench| {
        let qpn = bench.pair.client.shared.qp_contexts()[2].qp.qpn();
        corrupt_next_message(Some(qpn), 70);
    });
    let failure = rest.server_failure().unwrap();
    let place = "QP 2, slot 0, sequence 0: byte 70 of 100";
    assert!(failure.message.contains(place), "{failure}");
}

/// Without `--verify`, a slot that one call posts is posted as fast as with one size, and its bytes are counted.
#[test]
fn shares_of_sizes_are_right() {
    for signal_every in [1, 8] {
        let case = case_of(Settings {
            qps: 5,
            signal_every,
            post_list: signal_every,
            size_mix: "64:9,4K:1".parse().ok(),
            ..small(Op::Write)
        });
        assert_eq!(Geometry::from_flow(&case).ring() * case.qps % 10, 0);
        let sums = whole(&case, 1, 160, None).client_sums();
        // Each QP posts each of its positions ten times.
        let bytes: u64 = sums.completed_bytes.iter().sum();
        assert_eq!(bytes, 80 * (9 * 64 + 4096));
    }
}

#[test]
fn a_message_of_the_wrong_size_is_found() {
    let case =
        case_of(Settings { verify: true, size_mix: "64:3,128:1".parse().ok(), ..small(Op::Send) });
    let mut server_case = case.clone();
    server_case.size_mix = "64:1,128:3".parse().ok();
    let set_up = SetUp { server_case: Some(server_case), ..SetUp::delayed(case, 1) };
    let failure = set_up.failing(20, |_| {}).server_failure().unwrap();
    assert!(failure.message.contains("wrong length"), "{failure}");
}
