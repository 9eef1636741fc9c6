//! A worker that is one source for its QPs, and messages of several sizes: every message and byte is accounted for,
//! shares are those asked for, and no queue is overfilled (the device refuses one WR more).

use rocebench::datapath::{Geometry, Sizes};
use rocebench::plan::Case;
use settings::{CqMode, Op, Settings, Spread};

use crate::bench::{SetUp, whole};
use crate::loopback_node::{Choices, QpSums, Rest, case_of, small};

/// With messages of several sizes, the largest last.
fn mixed(settings: Settings, mix: &str) -> Case {
    let mut settings = Settings {
        size_mix: Some(mix.parse().unwrap()),
        ..settings
    };
    settings.fit();
    case_of(settings)
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
