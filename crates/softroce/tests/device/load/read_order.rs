//! Requests of one QP take effect in their order: a READ gets what was there before the requests behind it, also if these
//! change it before it is answered, and what those before it have left.

use softroce::transport::{Operation, SendRequest};

use super::{on, pair_with};
use crate::support::end::{End, Plan, request};

/// At the requester the bytes of the other request, or its result, and those that are read.
const GIVEN: usize = 0;
const READ: usize = 1 << 20;
/// Also more than one READ request, and more than is answered at once.
const SIZES: [usize; 5] = [8, 4096, 20_000, 60_000, 1 << 20];
const OLD: u8 = 1;
const NEW: u8 = 2;

/// Changes all bytes, or the first eight if it is an atomic.
type Change = fn(&End) -> Operation;

const CHANGES: [Change; 4] = [|to| to.write_to(0), |_| Operation::Send, fetch_add, swap];

fn fetch_add(to: &End) -> Operation {
    Operation::FetchAdd {
        address: to.address(0),
        rkey: to.key,
        add: u64::from_ne_bytes([NEW - OLD; 8]),
    }
}

fn swap(to: &End) -> Operation {
    Operation::CompareSwap {
        address: to.address(0),
        rkey: to.key,
        compare: u64::from_ne_bytes([OLD; 8]),
        swap: u64::from_ne_bytes([NEW; 8]),
    }
}

/// Posts a READ and each change of what it reads in one list; the READ is `first` or last.
fn all_changes((mut from, mut to): (End, End), first: bool, fence: bool) {
    for change in CHANGES {
        for bytes in SIZES {
            let change = change(&to);
            let (changed, sends) = match change {
                Operation::Send => (bytes, true),
                Operation::Write { .. } => (bytes, false),
                _ => (8, false),
            };
            to.memory[..bytes].fill(OLD);
            from.memory[GIVEN..GIVEN + changed].fill(NEW);
            from.memory[READ..READ + bytes].fill(0);
            if sends {
                let place = [to.sge(0, bytes)];
                to.qps[0].post_recv(5, &place).unwrap();
            }
            let read = [from.sge(READ, bytes)];
            let given = [from.sge(GIVEN, changed)];
            let mut list = [
                request(0, to.read_from(0), &read),
                request(1, change, &given),
            ];
            if !first {
                list.reverse();
            }
            list[1].fence = fence;
            post(&from, &list);
            from.succeeds(2);
            if sends {
                to.succeeds(1);
            }
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
    }
}

fn post(from: &End, list: &[SendRequest<'_>]) {
    let mut next = list.iter().copied();
    // SAFETY: nothing is inline.
    unsafe { from.qps[0].post_send(|| next.next()) }.unwrap();
}

/// Ends that meet these faults.
fn ends(faults: [&str; 2]) -> (End, End) {
    pair_with(&on(1, "delay=2us", Plan::default()), faults)
}

#[test]
fn a_read_gets_what_was_there_before_the_requests_behind_it() {
    all_changes(ends([""; 2]), true, false);
}

#[test]
fn a_read_gets_what_the_requests_before_it_have_left() {
    all_changes(ends([""; 2]), false, false);
}

const LOSSY: &str = "rx.drop=5%,seed=3";

#[test]
fn lost_requests_do_not_change_the_order() {
    all_changes(ends(["", LOSSY]), true, false);
}

/// A READ whose answer is lost is repeated and reads anew, so that only a fence keeps the order.
#[test]
fn lost_answers_do_not_change_the_order_of_requests_with_a_fence() {
    all_changes(ends([LOSSY, ""]), true, true);
}
