//! `--verify`: right payloads pass, and each kind of wrong one is found and named.

use datapath::{Geometry, Layout, Mismatch, Regions, Sizes, check_written, fill_for_reads};
use null_verbs::loopback::corrupt_next_message;
use settings::{AtomicTarget, Op, Service, Settings};
use verbs::{Access, Place, ProtectionDomain, VerbsError};

use crate::bench::{Bench, SetUp, whole};
use crate::loopback_node::{Pair, Rest, Steer, case_of, port, small};

fn verified(op: Op) -> Settings {
    Settings { verify: true, no_latency: true, ..small(op) }
}

/// A run of few messages, of which byte `byte` of the next of a QP is inverted: fewer than the ring has positions, so that
/// none is written over.
fn corrupted(settings: Settings, byte: usize, qpn: impl FnOnce(&Pair) -> Option<u32>) -> Rest {
    let set_up = SetUp::delayed(case_of(settings), 1);
    set_up.failing(5, |bench| corrupt_next_message(qpn(bench.pair), byte))
}

fn qp_1(pair: &Pair) -> Option<u32> {
    Some(pair.client.shared.qp_contexts()[1].qp.qpn())
}

/// Two QPs of messages of 100 bytes.
fn two(op: Op) -> Settings {
    Settings { qps: 2, size_bytes: 100, ..verified(op) }
}

const WRONG: &str = "QP 1, slot 0, sequence 0: byte 37 of 100 is ";

#[test]
fn a_corrupted_payload_is_found_where_it_came() {
    for (op, place) in [(Op::Send, "the receive buffer"), (Op::Read, "the initiator's memory")] {
        let rest = corrupted(two(op), 37, qp_1);
        let mut failures = [rest.client_failure(), rest.server_failure()];
        // The end that has the memory tells.
        failures.rotate_left(usize::from(op == Op::Send));
        let [found, none] = failures;
        assert!(none.is_none(), "{op:?}");
        let found = found.unwrap();
        let expected = format!("verification failed: wrong payload in {place}: {WRONG}");
        assert!(found.message.starts_with(&expected), "{found}");
        assert!(found.hint.is_some());
    }
}

/// Of a WRITE the target's memory tells at the end.
#[test]
fn a_corrupted_write_is_found_in_the_targets_memory() {
    let rest = SetUp::delayed(case_of(two(Op::Write)), 1)
        .run(|bench: &mut Bench<'_>| {
            corrupt_next_message(qp_1(bench.pair), 37);
            bench.run_counted(5, None).unwrap();
        })
        .1
        .rest;
    rest.assert_clean();
    let verified = rest.verified().unwrap();
    let expected = format!("wrong payload in the target's memory: {WRONG}");
    assert!(verified.starts_with(&expected), "{verified}");
}

/// The device inverts the byte, so what was found is the complement of what should be there.
#[test]
fn the_wrong_byte_and_the_right_one_are_both_named() {
    let rest = corrupted(verified(Op::Read), 63, |_| None);
    let Mismatch::Byte { wrong, .. } = &rest.client.2[0].trouble.mismatches[0] else {
        panic!("another mismatch");
    };
    assert_eq!((wrong.byte, wrong.found), (63, !wrong.expected));
}

#[test]
fn the_other_direction_is_verified_too() {
    let settings = Settings { bidirectional: true, ..verified(Op::Send) };
    let rest =
        corrupted(settings, 0, |pair: &Pair| Some(pair.server.shared.qp_contexts()[0].qp.qpn()));
    assert!(rest.server_failure().is_none());
    let failure = rest.client_failure().unwrap();
    assert!(failure.message.contains("QP 0, slot 0"), "{failure}");
}

#[test]
fn lost_and_doubled_messages_are_found() {
    let rest = whole(&case_of(verified(Op::Send)), 1, 40, None);
    let posts = rest.client.1.qp_contexts()[0].sender.as_ref().unwrap().posts().unwrap();
    let receiver = rest.server.1.qp_contexts()[0].receiver.as_ref().unwrap();
    let checked = |change: &dyn Fn(&mut Vec<u32>)| {
        let mut posts = posts.clone();
        change(&mut posts);
        receiver.check_counts(|_| &posts).map(|m| m.to_string())
    };
    assert_eq!(checked(&|_| {}), None);
    assert_eq!(
        checked(&|counts| counts[3] += 1).unwrap(),
        "messages lost or doubled on QP 0, slot 3: 3 arrived of 4"
    );
    assert_eq!(
        checked(&|counts| counts[15] -= 1).unwrap(),
        "messages lost or doubled on QP 0, slot 15: 2 arrived of 1"
    );
}

/// A word at the target that is short of an addition, or one more.
#[test]
fn lost_and_doubled_additions_are_found() {
    for (target, expected) in [
        (AtomicTarget::Shared, "QP 0, slot 0: 0x50, and 0x51 was added"),
        (AtomicTarget::PerQp, "QP 1, slot 0: 0x28, and 0x29 was added"),
        (AtomicTarget::Spread, "QP 1, slot 3: 0x3, and 0x4 was added"),
    ] {
        let case = case_of(Settings { qps: 2, atomic_target: target, ..verified(Op::FetchAdd) });
        let rest = whole(&case, 1, 40, None);
        let mut posts: Vec<Vec<u32>> = rest
            .client
            .1
            .qp_contexts()
            .iter()
            .map(|context| context.sender.as_ref().unwrap().posts().unwrap())
            .collect();
        posts[1][3] += 1;
        let found = rest.server.0.check_sums(posts.iter().map(Vec::as_slice)).unwrap().to_string();
        assert!(found.ends_with(expected), "{target}: {found}");
    }
}

/// Over UC a packet's place may hold what was sent there before, or nothing, and nothing else.
#[test]
fn what_unreliable_writes_left_may_be_old_and_not_wrong() {
    let reliable =
        Settings { size_bytes: 1000, qps: 2, tx_depth: 4, signal_every: 1, ..verified(Op::Write) };
    let unreliable = Settings { service: Service::Uc, ..reliable.clone() };
    let layout = Layout::requests(&reliable, &Geometry::from_flow(&reliable));
    let sizes = Sizes::new(&reliable);
    let pd = ProtectionDomain::new(&port().context).unwrap();
    let access = Access::RemoteWrite;
    let memory = Regions::new(&pd, &reliable, &layout, access, (Place::Ordinary, None), || {
        Ok::<(), VerbsError>(())
    })
    .unwrap();
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
    let bytes = memory.of_qp(1);
    bytes.write_at(layout.offset(1, 2) + 256, &[0; 256]);
    assert_eq!(found(&unreliable, 3), None, "a packet was never there");
    bytes.write_at(layout.offset(1, 2) + 700, &[0]);
    let wrong = found(&unreliable, 1).unwrap();
    assert!(wrong.contains("QP 1, slot 2, sequence 0"), "{wrong}");
}

/// Exchanges that each QP made of 101.
fn exchanges(settings: Settings, seed: u64) -> Vec<u64> {
    let rest = whole(&case_of(settings), seed, 101, None);
    rest.client.2.iter().flat_map(|worker| &worker.qps).map(|qp| qp.swaps_made).collect()
}

#[test]
fn a_qp_alone_on_its_word_makes_every_exchange() {
    for (qps, tx_depth) in [(1, 1), (1, 7), (3, 16)] {
        let settings = Settings { qps, tx_depth, verify: false, ..verified(Op::CompareSwap) };
        let made = exchanges(settings, 1);
        assert_eq!(made, vec![101; qps as usize], "depth {tx_depth}");
    }
}

/// Each QP has a lock in turn with the others, so that some exchanges are made and some are not.
#[test]
fn qps_on_one_word_take_it_from_each_other() {
    for seed in 0..20 {
        let settings =
            Settings { qps: 4, atomic_target: AtomicTarget::Shared, ..verified(Op::CompareSwap) };
        let made: u64 = exchanges(settings, seed).iter().sum();
        assert!((1..4 * 101).contains(&made), "{made}");
    }
}

#[test]
fn an_atomic_operation_that_fetched_nothing_is_found() {
    let rest = corrupted(verified(Op::CompareSwap), 5, |_| None);
    let failure = rest.client_failure().unwrap().message;
    let expected = "verification failed: wrong value in the initiator's memory: QP 0, slot 0: 0x";
    assert!(failure.starts_with(expected), "{failure}");
}
