//! `--verify`: right payloads pass, and each kind of wrong one is found and named.

use rocebench::datapath::{
    Geometry, Layout, Mismatch, Regions, Sizes, check_written, fill_for_reads,
};
use settings::{AtomicTarget, CqMode, Op, Service, Settings};
use verbs::{Access, ProtectionDomain};

use crate::loopback_node::{Choices, Device, Pair, case_of, port, small, whole};

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
                    let rest = whole(&case, 29, choices.one(&[None, Some(30)]));
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
    let expected = "verification failed: wrong payload in the initiator's memory: QP 1, slot 0, sequence 0: \
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
        receiver.check_counts(|_| &posts).map(|m| m.to_string())
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

/// A word at the target that is short of an addition, or one more.
#[test]
fn lost_and_doubled_additions_are_found() {
    let _device = Device::get();
    for (target, expected) in [
        (
            AtomicTarget::Shared,
            "QP 0, slot 0: 0x50, and 0x51 was added",
        ),
        (
            AtomicTarget::PerQp,
            "QP 1, slot 0: 0x28, and 0x29 was added",
        ),
        (AtomicTarget::Spread, "QP 1, slot 3: 0x3, and 0x4 was added"),
    ] {
        let pair = Pair::new(&case_of(Settings {
            qps: 2,
            atomic_target: target,
            ..verified(Op::FetchAdd)
        }));
        pair.run_counted(40, None).unwrap();
        let rest = pair.finish();
        rest.assert_clean();
        assert_eq!(rest.verified(), None);
        let contexts = rest.client.1.qp_contexts().iter();
        let mut posts: Vec<Vec<u32>> = contexts
            .map(|context| context.sender.as_ref().unwrap().posts().unwrap())
            .collect();
        posts[1][3] += 1;
        let found = rest.server.0.check_sums(posts.iter().map(Vec::as_slice));
        let found = found.unwrap().to_string();
        assert!(found.ends_with(expected), "{target}: {found}");
    }
}

/// Over UC a packet's place may hold what was sent there before, or nothing, and nothing else.
#[test]
fn what_unreliable_writes_left_may_be_old_and_not_wrong() {
    let _device = Device::get();
    let reliable = Settings {
        size_bytes: 1000,
        qps: 2,
        tx_depth: 4,
        signal_every: 1,
        ..verified(Op::Write)
    };
    let unreliable = Settings {
        service: Service::Uc,
        ..reliable.clone()
    };
    let layout = Layout::requests(&reliable, &Geometry::of(&reliable));
    let sizes = Sizes::of(&reliable);
    let pd = ProtectionDomain::new(&port().context).unwrap();
    let memory = Regions::new(&pd, &reliable, &layout, Access::RemoteWrite, None).unwrap();
    let found = |flow: &Settings, posts: u32| {
        let found = check_written(&memory, flow, &sizes, 1, 256, &[posts; 4]);
        found.map(|mismatch| mismatch.to_string())
    };
    assert!(found(&reliable, 1).is_some(), "nothing came");
    assert_eq!(found(&unreliable, 1), None);
    // What the first message of each position brings.
    fill_for_reads(&memory, &reliable, &sizes);
    assert_eq!(found(&reliable, 1), None);
    assert!(found(&reliable, 3).is_some(), "the first is not the third");
    assert_eq!(found(&unreliable, 3), None);
    let bytes = memory.of(1);
    bytes.write_at(layout.offset(1, 2) + 256, &[0; 256]);
    assert_eq!(found(&unreliable, 3), None, "a packet was never there");
    bytes.write_at(layout.offset(1, 2) + 700, &[0]);
    let wrong = found(&unreliable, 1).unwrap();
    assert!(wrong.contains("QP 1, slot 2, sequence 0"), "{wrong}");
}

#[test]
fn a_qp_alone_on_its_word_makes_every_exchange() {
    let _device = Device::get();
    for (qps, tx_depth) in [(1, 1), (1, 7), (3, 16)] {
        let pair = Pair::new(&case_of(Settings {
            qps,
            tx_depth,
            verify: false,
            ..verified(Op::CompareSwap)
        }));
        pair.run_counted(101, None).unwrap();
        let rest = pair.finish();
        rest.assert_clean();
        let workers = rest.client.2.iter().flat_map(|worker| &worker.qps);
        let made: Vec<u64> = workers.map(|qp| qp.swaps_made).collect();
        assert_eq!(made, vec![101; qps as usize], "depth {tx_depth}");
    }
}

/// Each QP has a lock in turn with the others, so that some exchanges are made and some are not.
#[test]
fn qps_on_one_word_take_it_from_each_other() {
    let _device = Device::get();
    let pair = Pair::new(&case_of(Settings {
        qps: 4,
        atomic_target: AtomicTarget::Shared,
        ..verified(Op::CompareSwap)
    }));
    null_verbs::loopback::set_max_delay(std::time::Duration::from_micros(20));
    pair.run_counted(400, None).unwrap();
    let rest = pair.finish();
    rest.assert_clean();
    assert_eq!(rest.verified(), None);
    let workers = rest.client.2.iter().flat_map(|worker| &worker.qps);
    let made: u64 = workers.map(|qp| qp.swaps_made).sum();
    assert!((1..1600).contains(&made), "{made}");
}

#[test]
fn an_atomic_operation_that_fetched_nothing_is_found() {
    let _device = Device::get();
    let pair = Pair::new(&case_of(verified(Op::CompareSwap)));
    null_verbs::loopback::corrupt_next_message(None, 5);
    pair.run_counted(5, None).unwrap_err();
    let failure = pair.finish().client_failure().unwrap().message;
    let expected = "verification failed: wrong value in the initiator's memory: QP 0, slot 0: 0x";
    assert!(failure.starts_with(expected), "{failure}");
}
