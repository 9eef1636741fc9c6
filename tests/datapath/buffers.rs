//! Receives of an SRQ, several SGEs, MRs and places of messages: whatever the mix, each message arrives whole and once.

use null_verbs::loopback::corrupt_next_message;
use settings::{CqMode, MrMode, Op, RecvQueue, Settings, SizeMix, TouchOrder};
use verbs::AsyncEvent;

use crate::bench::{Bench, SetUp, whole};
use crate::loopback_node::{Choices, Pair, Steer, case_of, small};

#[test]
fn every_mix_of_queues_and_buffers_moves_whole_messages() {
    let mut choices = Choices(11);
    let mut seed = 0;
    for &op in Op::ALL {
        for cq in [CqMode::Shared, CqMode::PerWorker, CqMode::PerQp] {
            for recv_queue in [RecvQueue::PerQp, RecvQueue::Shared] {
                for verify in [true, false] {
                    let is_atomic = op.profile().is_atomic();
                    let workers = choices.one(&[1, 3]);
                    let has_one_poster =
                        cq != CqMode::Shared && recv_queue == RecvQueue::PerQp || workers == 1;
                    let walks = has_one_poster || !op.profile().fills_receives();
                    let case = case_of(Settings {
                        cq,
                        recv_queue,
                        verify,
                        workers,
                        memory_bytes: match walks {
                            true => choices.one(&[None, Some(100_000), Some(300_000)]),
                            false => None,
                        },
                        touch_order: choices.one(&[TouchOrder::Sequential, TouchOrder::Random]),
                        qps: choices.one(&[1, 3, 16]),
                        size_bytes: choices.one(&[1, 3, 64, 1000, 5000]),
                        sges: match is_atomic {
                            true => 1,
                            false => choices.one(&[1, 2, 3, 4, 16]),
                        },
                        mr: choices.one(&[MrMode::One, MrMode::PerQp]),
                        alignment_bytes: choices.one(&[8, 64, 1000, 4096]),
                        offset_bytes: choices.one(&[0, 8, 40]),
                        inline_bytes: choices.one(&[0, 64]),
                        signal_every: choices.one(&[1, 4]),
                        post_list: choices.one(&[1, 4, 8]),
                        tx_depth: choices.one(&[8, 11]),
                        rx_depth: choices.one(&[1, 16, 70]),
                        bidirectional: choices.one(&[true, false]),
                        ..small(op)
                    });
                    seed += 1;
                    let rest = whole(&case, seed, 29, choices.one(&[None, Some(30)]));
                    if op.profile().receives {
                        let (sent, got) = (rest.client_sums(), rest.server_sums());
                        assert_eq!(sent.posted_in_all, got.received_in_all, "{case:?}");
                    }
                }
            }
        }
    }
}

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
