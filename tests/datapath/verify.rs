//! `--verify`: right payloads pass, and each kind of wrong one is found and named.

use rocebench::datapath::Mismatch;
use settings::{CqMode, Op, Settings};

use crate::loopback_node::{Choices, Device, Pair, case_of, small};

fn verified(op: Op) -> Settings {
    Settings {
        verify: true,
        no_latency: true,
        ..small(op)
    }
}

#[test]
fn right_payloads_pass_in_every_mix() {
    let _device = Device::get();
    let mut choices = Choices(4);
    let mut seed = 0;
    for &op in Op::ALL {
        for cq in [CqMode::Shared, CqMode::PerWorker, CqMode::PerQp] {
            for workers in [1, 3] {
                for size_bytes in [1, 7, 64, 4096, 5000] {
                    let case = case_of(Settings {
                        cq,
                        workers,
                        size_bytes,
                        qps: 3,
                        signal_every: choices.one(&[1, 4]),
                        post_list: choices.one(&[1, 4, 8]),
                        tx_depth: choices.one(&[8, 11]),
                        rx_depth: choices.one(&[1, 16]),
                        bidirectional: choices.one(&[true, false]),
                        inline_bytes: choices.one(&[0, 64]),
                        ..verified(op)
                    });
                    seed += 1;
                    null_verbs::loopback::set_seed(seed);
                    let pair = Pair::new(&case);
                    let outcome = pair.run_counted(29, choices.one(&[None, Some(30)]));
                    let rest = pair.finish();
                    rest.assert_clean();
                    outcome.unwrap();
                    assert_eq!(rest.verified(), None, "{case:?}");
                    let posted = &rest.client_sums().posted_in_all;
                    for (qp_context, &posted) in rest.client.1.qp_contexts().iter().zip(posted) {
                        let posts = qp_context.sender.as_ref().unwrap().posts().unwrap();
                        assert_eq!(posts.into_iter().map(u64::from).sum::<u64>(), posted);
                    }
                }
            }
        }
    }
}

/// Corrupts byte 37 of the next message of QP 1, runs, and returns what both ends say.
fn corrupted(op: Op) -> (Option<String>, Option<String>, Option<String>) {
    let case = case_of(Settings {
        qps: 2,
        size_bytes: 100,
        ..verified(op)
    });
    let pair = Pair::new(&case);
    let qpn = pair.client.shared.qp_contexts()[1].qp.qpn();
    null_verbs::loopback::corrupt_next_message(Some(qpn), 37);
    // Fewer messages than the ring has positions, so that none is written over.
    let outcome = pair.run_counted(5, None);
    if op == Op::Write {
        outcome.unwrap();
    } else {
        outcome.unwrap_err();
    }
    let rest = pair.finish();
    let text = |failure: Option<rocebench::protocol::failure::RunFailure>| {
        failure.map(|failure| {
            assert!(failure.hint.is_some());
            failure.message
        })
    };
    let (client, server) = (rest.client_failure(), rest.server_failure());
    (text(client), text(server), rest.verified())
}

#[test]
fn a_corrupted_send_is_found_in_the_receive_buffer() {
    let _device = Device::get();
    let (client, server, _) = corrupted(Op::Send);
    assert_eq!(client, None);
    let server = server.unwrap();
    let expected = "verification failed: wrong payload in the receive buffer: QP 1, slot 0, sequence 0: \
                    byte 37 of 100 is ";
    assert!(server.starts_with(expected), "{server}");
}

/// The device inverts the byte, so what was found is the complement of what should be there.
#[test]
fn the_wrong_byte_and_the_right_one_are_both_named() {
    let _device = Device::get();
    let pair = Pair::new(&case_of(verified(Op::Read)));
    null_verbs::loopback::corrupt_next_message(None, 63);
    pair.run_counted(5, None).unwrap_err();
    let rest = pair.finish();
    let Mismatch::Byte { wrong, .. } = &rest.client.2[0].trouble.mismatches[0] else {
        panic!("another mismatch");
    };
    assert_eq!((wrong.byte, wrong.found), (63, !wrong.expected));
}

#[test]
fn a_corrupted_read_is_found_in_the_readers_memory() {
    let _device = Device::get();
    let (client, server, _) = corrupted(Op::Read);
    assert_eq!(server, None);
    let client = client.unwrap();
    let expected = "verification failed: wrong payload in the reader's memory: QP 1, slot 0, sequence 0: \
                    byte 37 of 100 is ";
    assert!(client.starts_with(expected), "{client}");
}

#[test]
fn a_corrupted_write_is_found_in_the_targets_memory() {
    let _device = Device::get();
    let (client, server, verified) = corrupted(Op::Write);
    assert_eq!((client, server), (None, None));
    let verified = verified.unwrap();
    let expected =
        "wrong payload in the target's memory: QP 1, slot 0, sequence 0: byte 37 of 100 is ";
    assert!(verified.starts_with(expected), "{verified}");
}

#[test]
fn the_other_direction_is_verified_too() {
    let _device = Device::get();
    let case = case_of(Settings {
        bidirectional: true,
        ..verified(Op::Send)
    });
    let pair = Pair::new(&case);
    let qpn = pair.server.shared.qp_contexts()[0].qp.qpn();
    null_verbs::loopback::corrupt_next_message(Some(qpn), 0);
    pair.run_counted(5, None).unwrap_err();
    let rest = pair.finish();
    assert!(rest.server_failure().is_none());
    let failure = rest.client_failure().unwrap();
    assert!(failure.message.contains("QP 0, slot 0"), "{failure}");
}

#[test]
fn lost_and_doubled_messages_are_found() {
    let _device = Device::get();
    let pair = Pair::new(&case_of(verified(Op::Send)));
    pair.run_counted(40, None).unwrap();
    let rest = pair.finish();
    rest.assert_clean();
    let posts = rest.client.1.qp_contexts()[0]
        .sender
        .as_ref()
        .unwrap()
        .posts();
    let posts = posts.unwrap();
    let receiver = rest.server.1.qp_contexts()[0].receiver.as_ref().unwrap();
    let checked = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut posts = posts.clone();
        change(&mut posts);
        receiver.check_counts(&posts).map(|m| m.to_string())
    };
    assert_eq!(checked(&|_| {}), None);
    assert_eq!(
        checked(&|posts| posts[3] += 1).unwrap(),
        "messages lost or doubled on QP 0, slot 3: 3 arrived of 4"
    );
    assert_eq!(
        checked(&|posts| posts[15] -= 1).unwrap(),
        "messages lost or doubled on QP 0, slot 15: 2 arrived of 1"
    );
}
