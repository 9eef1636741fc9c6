//! What two managers do with each other's messages.

use std::collections::VecDeque;

use pair::*;
use proptest::prelude::*;

use super::connection::{LISTENER_PATIENCE_NS, MAX_RETRIES, SERVICE_TIMEOUT, TIME_WAIT_NS};
use super::{CmError, Happening, Manager};
use crate::net::Faults;
use crate::transport::Nic;
use crate::wire::cm::{CmMad, Message, RejReason, Req, Transport};
use crate::wire::time_of_code_ns;

mod fuzz;
mod look_ups;
mod pair;

#[test]
fn a_connection_comes_and_goes() {
    let mut pair = Pair::safe();
    let active = pair.connect();
    assert_eq!(active >> 27, 3, "the number begins with the slot");
    let request = pair.event(1);
    let Happening::Requested(asker, req) = request.happening else {
        panic!("{request:?}");
    };
    assert_eq!(asker, ASKER);
    let sent = (req.qpn, req.starting_psn, req.private_data);
    assert_eq!(sent, (0x11, 77, vec![3; 92]));
    pair.accept(request.comm).unwrap();
    assert_eq!(pair.accept(request.comm), Err(CmError::State), "once");
    let replied = pair.event(0);
    assert_eq!(replied.comm, active);
    assert!(matches!(replied.happening, Happening::Replied(rep) if rep.qpn == 0x22));
    pair.establish(active);
    assert_eq!(pair.happening(1), Happening::Established);

    pair.disconnect(1, request.comm);
    let before = pair.now;
    pair.is_over();
    assert_eq!(pair.now, before + TIME_WAIT_NS);
    assert_eq!(pair.connections(), [0, 0]);
    assert!(!pair.pass(), "no timer stays");
}

#[test]
fn a_silent_address_is_given_up() {
    let mut pair = Pair::new(Box::new(|| 0));
    pair.connect();
    assert_eq!(pair.happening(0), Happening::Unreachable);
    let requests = pair.count(0, |it| matches!(it, Message::Req(_)));
    assert_eq!(requests, usize::from(MAX_RETRIES) + 1);
    assert_eq!(pair.now, 1 + INTERVAL_NS * requests as u64);
    assert!(pair.ends[0].connections.is_empty());
    let last = pair.sent[0].last().unwrap();
    assert!(matches!(&last.message, Message::Rej(rej)
        if rej.reason == RejReason::TIMEOUT && rej.ca_guid == Some(1)));
}

#[test]
fn a_repeated_request_is_one_and_gets_the_same_reply() {
    let mut pair = Pair::new(Box::new(|| 2));
    let (_, passive) = pair.connecting();
    assert!(pair.events[1].is_empty(), "a duplicate is no second one");
    let mras = pair.count(1, |message| matches!(message, Message::Mra(_)));
    assert!(mras > 0, "while the program thinks, it is told to wait");
    // The reply gets lost: the request, once its patience is over, brings another.
    pair.fate = Box::new(|| 0);
    pair.accept(passive).unwrap();
    pair.fate = Box::new(|| 1);
    assert!(matches!(pair.happening(0), Happening::Replied(_)));
    let replies: Vec<&CmMad> =
        pair.sent[1].iter().filter(|mad| matches!(mad.message, Message::Rep(_))).collect();
    assert!(replies.len() > 1 && replies.iter().all(|mad| *mad == replies[0]));
}

#[test]
fn a_program_that_takes_its_time_is_waited_for() {
    let mut pair = Pair::safe();
    let (_, passive) = pair.connecting();
    for _ in 0..3 {
        assert!(pair.pass());
    }
    let asked_for_ns = time_of_code_ns(SERVICE_TIMEOUT);
    assert!(pair.now > asked_for_ns);
    pair.accept(passive).unwrap();
    assert!(matches!(pair.happening(0), Happening::Replied(_)));
}

#[test]
fn lost_confirmations_come_again() {
    let mut pair = Pair::safe();
    let (active, passive) = pair.connecting();
    pair.accept(passive).unwrap();
    pair.happening(0);
    pair.fate = Box::new(|| 0);
    pair.establish(active);
    pair.fate = Box::new(|| 1);
    assert_eq!(pair.happening(1), Happening::Established);
    assert_eq!(pair.now, 1 + INTERVAL_NS);
}

#[test]
fn data_stands_for_a_lost_confirmation() {
    let mut pair = Pair::safe();
    let (_, passive) = pair.connecting();
    pair.accept(passive).unwrap();
    for _ in 0..2 {
        pair.with(1, passive, |it, _, out| it.notice_data(out)).unwrap();
    }
    assert_eq!(pair.happening(1), Happening::Established);
    assert!(pair.events[1].is_empty(), "once");
}

#[test]
fn a_listener_may_come_a_little_later() {
    let mut pair = Pair::new(Box::new(|| 2));
    pair.ends[1].stop_listening(LISTENER);
    pair.connect();
    assert!(pair.pass(), "the request comes again");
    assert!(pair.is_quiet());
    pair.listen(SERVICE);
    pair.requested();
    assert!(pair.events[1].is_empty(), "once");
    assert!(pair.now < LISTENER_PATIENCE_NS);
}

#[test]
fn rejections_tell_their_reason() {
    type Change = fn(&mut Req);
    const OTHER: Transport = Transport::Other(3);
    let cases: [(Change, RejReason); 3] = [
        (|req| req.service += 1, RejReason::INVALID_SERVICE),
        (|req| req.mtu = 6, RejReason::INVALID_MTU),
        (|req| req.transport = OTHER, RejReason::INVALID_TRANSPORT),
    ];
    for (change, reason) in cases {
        let mut pair = Pair::safe();
        pair.ask(change);
        assert_eq!(pair.rejected(0), reason);
        assert!(pair.events[1].is_empty());
        assert_eq!(pair.connections(), [0, 0]);
    }

    let mut pair = Pair::safe();
    let (_, passive) = pair.connecting();
    pair.refuse(passive);
    let Happening::Rejected(reason, data) = pair.happening(0) else {
        panic!("not rejected");
    };
    assert_eq!((reason, &data[..3]), (RejReason::CONSUMER, &b"no\0"[..]));
    assert_eq!(pair.accept(passive), Err(CmError::Ended));
}

#[test]
fn a_qp_that_is_in_a_connection_is_stale_and_the_former_ends() {
    let mut pair = Pair::safe();
    pair.connected();
    // Its process has died; the next one has a QP of the same number.
    pair.ends[0] = Manager::new(1, 5, 3, 5000);
    pair.connect();
    assert_eq!(pair.rejected(0), RejReason::STALE);
    assert_eq!(pair.happening(1), Happening::Disconnected);
    assert_eq!(pair.happening(1), Happening::TimeWaitOver);
    pair.connect();
    pair.requested();
}

#[test]
fn requests_beyond_the_backlog_come_again() {
    let mut pair = Pair::safe();
    for qpn in 1..=5 {
        pair.ask(|req| req.qpn = qpn);
    }
    assert_eq!(pair.events[1].len(), 4);
    let first = pair.requested();
    pair.accept(first).unwrap();
    pair.events[1].clear();
    assert!(matches!(pair.happening(1), Happening::Requested(_, req) if req.qpn == 5));
}

#[test]
fn a_program_that_lets_go_leaves_nothing() {
    let ends = |pair: &mut Pair| {
        while pair.pass() {}
        assert_eq!(pair.connections(), [0, 0]);
    };
    let mut open = Pair::safe();
    let (comm, _) = open.connected();
    open.let_go(0, comm);
    assert_eq!(open.happening(1), Happening::Disconnected);
    assert!(open.events[0].is_empty());
    ends(&mut open);

    for (end, reason) in [(0, RejReason::TIMEOUT), (1, RejReason::CONSUMER)] {
        let mut pair = Pair::safe();
        let (active, passive) = pair.connecting();
        pair.let_go(end, [active, passive][end]);
        assert_eq!(pair.rejected(1 - end), reason);
        ends(&mut pair);
    }
}

proptest! {
    /// A connection is made once, ends once, and leaves nothing, if no more datagrams are lost than a message is repeated:
    /// each exchange that fails has lost one.
    #[test]
    fn whatever_gets_lost_or_comes_twice(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut may_be_lost = MAX_RETRIES;
        let fate = move || match random.u8(0..10) {
            0..3 if may_be_lost > 0 => {
                may_be_lost -= 1;
                0
            }
            3..5 => 2,
            _ => 1,
        };
        let mut pair = Pair::new(Box::new(fate));
        let (active, passive) = pair.connected();
        prop_assert!(pair.is_quiet());
        let (end, comm) = if seed % 2 == 0 { (0, active) } else { (1, passive) };
        pair.disconnect(end, comm);
        pair.is_over();
        prop_assert!(pair.is_quiet());
        while pair.pass() {}
        prop_assert_eq!(pair.connections(), [0, 0]);
    }
}
