//! Requests of one QP take effect in their order: a READ gets what was there before the requests behind it, also if these
//! change it before it is answered, and what those before it have left.

use softroce::transport::{Operation, SendRequest};

use super::pair_with;
use crate::support::end::{End, Plan, post, request};

/// At the requester the bytes of the other request, or its result, and those that are read.
const GIVEN: usize = 0;
const READ: usize = 1 << 20;
/// Also more than one READ request, and more than is answered at once.
const SIZES: [usize; 5] = [8, 4096, 20_000, 60_000, 1 << 20];
const OLD: u8 = 1;
const NEW: u8 = 2;

/// What changes all bytes, or the first eight if it is an atomic.
fn changes(to: &End) -> [Operation; 4] {
    let (address, rkey) = (to.address(0), to.key);
    let add = u64::from_ne_bytes([NEW - OLD; 8]);
    let [compare, swap] = [OLD, NEW].map(|byte| u64::from_ne_bytes([byte; 8]));
    [
        to.write_to(0),
        Operation::Send,
        Operation::FetchAdd { address, rkey, add },
        Operation::CompareSwap { address, rkey, compare, swap },
    ]
}

/// Posts a READ and what changes what it reads in one list; the READ is `first` or last.
fn change(from: &mut End, to: &mut End, change: Operation, bytes: usize, first: bool, fence: bool) {
    let changed = match change {
        Operation::Write { .. } | Operation::Send => bytes,
        _ => 8,
    };
    to.memory[..bytes].fill(OLD);
    from.memory[GIVEN..GIVEN + changed].fill(NEW);
    from.memory[READ..READ + bytes].fill(0);
    let sends = matches!(change, Operation::Send);
    if sends {
        to.qps[0].post_recv(5, &[to.sge(0, bytes)]).unwrap();
    }
    let sges = [from.sge(READ, bytes), from.sge(GIVEN, changed)];
    let mut list: [SendRequest<'_>; 2] =
        [request(0, to.read_from(0), &sges[..1]), request(1, change, &sges[1..])];
    if !first {
        list.reverse();
    }
    list[1].fence = fence;
    post(&from.qps[0], &list).unwrap();
    from.succeeds(2);
    to.succeeds(usize::from(sends));
    let mut left = vec![OLD; bytes];
    left[..changed].fill(NEW);
    assert!(to.memory[..bytes] == left, "{change:?}, {bytes} bytes");
    if first {
        left.fill(OLD);
    }
    let got = &from.memory[READ..READ + bytes];
    let wrong = (0..bytes).find(|at| got[*at] != left[*at]);
    assert_eq!(wrong, None, "READ and {change:?}, {bytes} bytes");
}

#[test]
fn a_read_gets_what_was_there_in_its_turn() {
    const LOSSY: &str = "rx.drop=5%,seed=3";
    for (faults, first, fence) in [
        (["", ""], true, false),
        (["", ""], false, false),
        (["", LOSSY], true, false),
        // A READ whose answer is lost is repeated and reads anew, so that only a fence keeps the order.
        ([LOSSY, ""], true, true),
    ] {
        let plan = Plan::on(1, "delay=2us");
        let (mut from, mut to) = pair_with(&plan, faults);
        for operation in changes(&to) {
            for bytes in SIZES {
                change(&mut from, &mut to, operation, bytes, first, fence);
            }
        }
    }
}
