//! Marked packets: transfers stay right, and senders are told. How much slower they become is tested in the transport at
//! made-up instants.

use crate::support::end::{End, Plan};

const MESSAGES: usize = 64;
const BYTES: usize = 64 << 10;
const DEPTH: usize = 8;

fn end(faults: &str) -> End {
    End::new(&Plan {
        memory_bytes: MESSAGES * BYTES,
        faults: faults.parse().unwrap(),
        ..Plan::default()
    })
}

/// Moves all of the memory of one end to the other: `reads` by READs of the target, else by WRITEs of the source.
fn transfer(source: &str, target: &str, reads: bool) -> (End, End) {
    let (mut from, to) = (end(source), end(target));
    from.connect(&to);
    to.connect(&from);
    from.fill();
    let (requester, responder) = match reads {
        true => (&to, &from),
        false => (&from, &to),
    };
    requester.run(MESSAGES, DEPTH, BYTES, |at| match reads {
        true => (responder.read_from(at * BYTES), at * BYTES),
        false => (responder.write_to(at * BYTES), at * BYTES),
    });
    assert!(from.memory == to.memory);
    (from, to)
}

#[test]
fn who_sends_marked_data_is_told_and_nothing_is_lost() {
    for (source, target, reads) in [
        ("tx.mark=100%", "", false),
        ("", "rx.mark=100%", false),
        ("", "rx.mark=100%", true),
    ] {
        let (from, to) = transfer(source, target, reads);
        let packets = (MESSAGES * BYTES / 4096) as u64;
        assert!(to.counter("np_ecn_marked_roce_packets") >= packets);
        assert!(to.counter("np_cnp_sent") > 0);
        assert!(from.counter("rp_cnp_handled") > 0);
    }
}

#[test]
fn without_marks_nobody_is_told_or_waits() {
    let (from, to) = transfer("", "", false);
    for name in [
        "np_ecn_marked_roce_packets",
        "np_cnp_sent",
        "rp_cnp_handled",
        "rp_cnp_ignored",
        "rate_waits",
    ] {
        assert_eq!((from.counter(name), to.counter(name)), (0, 0), "{name}");
    }
}
