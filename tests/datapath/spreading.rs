//! A worker that is one source for its QPs, and messages of several sizes: every message and byte is accounted for,
//! shares are those asked for, and no queue is overfilled (the device refuses one WR more).

use rocebench::datapath::{Geometry, Sizes};
use rocebench::plan::Case;
use settings::{CqMode, Op, Settings, Spread};

use crate::bench::{SetUp, whole};
use crate::loopback_node::{Choices, QpSums, Rest, case_of, small};

const SOURCES: [Spread; 3] = [Spread::RoundRobin, Spread::LeastLoaded, Spread::Hash];

/// With messages of several sizes, the largest last.
fn mixed(settings: Settings, mix: &str) -> Case {
    let mut settings = Settings {
        size_mix: Some(mix.parse().unwrap()),
        ..settings
    };
    settings.fit();
    case_of(settings)
}

/// A source posts its QPs' messages, whichever QP each is on.
fn is_accounted_for(case: &Case, seed: u64, messages: u64, warm_up: Option<u64>) -> Rest {
    let rest = whole(case, seed, messages, warm_up);
    let (client, server) = (rest.client_sums(), rest.server_sums());
    let mut senders = vec![(&client, &server)];
    if case.bidirectional {
        senders.push((&server, &client));
    }
    for (sender, receiver) in senders {
        let all: u64 = sender.completed.iter().sum();
        assert_eq!(all, messages * u64::from(case.qps), "{case:?}");
        if warm_up.is_none() {
            assert_eq!(sender.completed, sender.posted_in_all, "{case:?}");
        }
        if case.op.profile().receives {
            assert_eq!(receiver.received_in_all, sender.posted_in_all, "{case:?}");
        }
    }
    rest
}

#[test]
fn sources_account_for_every_message() {
    let mut choices = Choices(7);
    for seed in 0..150 {
        let signal_every = choices.one(&[1, 1, 4, 9]);
        let settings = Settings {
            spread: choices.one(&SOURCES),
            cq: choices.one(&[CqMode::PerWorker, CqMode::PerQp]),
            workers: choices.upto(3) as u32,
            qps: choices.upto(9) as u32,
            signal_every,
            post_list: choices.one(&[1, signal_every, 2 * signal_every]),
            tx_depth: 2 * signal_every + choices.upto(20) as u32,
            rx_depth: choices.upto(64) as u32,
            bidirectional: choices.one(&[true, false]),
            verify: choices.one(&[true, false]),
            no_latency: choices.one(&[true, false]),
            outstanding: choices.one(&[None, Some(18)]),
            ..small(choices.one(Op::ALL))
        };
        let warm_up = choices.one(&[None, Some(20)]);
        is_accounted_for(&case_of(settings), seed, choices.upto(150), warm_up);
    }
}

/// Bytes posted on each QP, from the number of posts of each position.
fn posted_bytes(rest: &Rest) -> Vec<u64> {
    let sizes = Sizes::of(&rest.case);
    let contexts = rest.client.1.qp_contexts().iter();
    let posts = contexts.map(|qp_context| qp_context.sender.as_ref().unwrap().posts().unwrap());
    let sum = |(qp, posts): (u32, Vec<u32>)| {
        let bytes =
            |(position, count): (u32, u32)| u64::from(count) * u64::from(sizes.at(qp, position));
        (0..).zip(posts).map(bytes).sum()
    };
    (0..).zip(posts).map(sum).collect()
}

#[test]
fn bytes_are_counted_exactly_where_sizes_differ() {
    let mut choices = Choices(9);
    for seed in 0..120 {
        let signal_every = choices.one(&[1, 3, 8]);
        let spread = choices.one(&[Spread::Own, Spread::Own, Spread::RoundRobin, Spread::Hash]);
        let cq = match spread {
            Spread::Own => choices.one(&[CqMode::Shared, CqMode::PerQp]),
            _ => CqMode::PerWorker,
        };
        let settings = Settings {
            spread,
            cq,
            workers: choices.one(&[1, 3]),
            qps: choices.upto(5) as u32,
            signal_every,
            post_list: choices.one(&[1, signal_every, 2 * signal_every]),
            tx_depth: 2 * signal_every + choices.upto(30) as u32,
            rx_depth: choices.upto(64) as u32,
            inline_bytes: choices.one(&[0, 64]),
            verify: true,
            ..small(choices.one(Op::ALL))
        };
        let case = mixed(
            settings,
            choices.one(&["1:2,64:3,5000:1", "64:9,4K:1", "7:1,8:1"]),
        );
        let rest = is_accounted_for(&case, seed, choices.upto(100), None);
        let QpSums {
            completed_bytes, ..
        } = rest.client_sums();
        assert_eq!(completed_bytes, posted_bytes(&rest), "{case:?}");
        let server = rest.server_sums();
        if server.received == server.received_in_all && case.op.profile().receives {
            assert_eq!(server.received_bytes, completed_bytes, "{case:?}");
        }
    }
}

#[test]
fn one_size_takes_the_same_bytes_for_each_message() {
    let case = case_of(small(Op::Send));
    let rest = whole(&case, 1, 100, None);
    assert_eq!(rest.client_sums().completed_bytes, [100 * 64]);
}

/// Without `--verify`, a slot that one call posts is posted as fast as with one size, and its bytes are counted.
#[test]
fn shares_of_sizes_are_right() {
    for signal_every in [1, 8] {
        let settings = Settings {
            qps: 5,
            signal_every,
            post_list: signal_every,
            ..small(Op::Write)
        };
        let case = mixed(settings, "64:9,4K:1");
        assert_eq!(Geometry::of(&case).ring() * case.qps % 10, 0);
        let sums = whole(&case, 1, 160, None).client_sums();
        // Each QP posts each of its positions ten times.
        let bytes: u64 = sums.completed_bytes.iter().sum();
        assert_eq!(bytes, 80 * (9 * 64 + 4096));
    }
}

#[test]
fn a_message_of_the_wrong_size_is_found() {
    let settings = Settings {
        verify: true,
        ..small(Op::Send)
    };
    let case = mixed(settings, "64:3,128:1");
    let mut server_case = case.clone();
    server_case.size_mix = "64:1,128:3".parse().ok();
    let set_up = SetUp {
        server_case: Some(server_case),
        ..SetUp::delayed(case, 1)
    };
    let failure = set_up.failing(20, |_| {}).server_failure().unwrap();
    assert!(failure.message.contains("wrong length"), "{failure}");
}
