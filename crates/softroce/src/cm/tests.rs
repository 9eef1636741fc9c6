//! Two managers at the ports of a network in memory, between which messages get lost, come twice or late.

mod fuzz;
mod look_ups;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use proptest::prelude::*;

use super::connection::Connection;
use super::event::{Asker, Event, Happening};
use super::manager::{CmError, Manager};
use super::output::{Datagram, Output};
use super::timing::{
    LISTENER_PATIENCE_NS, MAX_RETRIES, RESPONSE_TIMEOUT, SERVICE_TIMEOUT, TIME_WAIT_NS,
};
use crate::net::{Direction, Faults};
use crate::transport::{Nic, World};
use crate::wire::cm::{CmMad, Message, RejReason, Rep, Req, TCP_PORT_SPACE, Transport};
use crate::wire::time_of_code_ns;

const SERVICE: u64 = TCP_PORT_SPACE | 7471;
const LISTENER: u64 = 5;
const INTERVAL_NS: u64 = time_of_code_ns(RESPONSE_TIMEOUT);

const ASKER: Asker = Asker {
    listener: LISTENER,
    peer: address(0),
};

const fn address(end: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, end as u8 + 1))
}

/// What happens to a datagram on its way: arrives as often as this.
type Fate = Box<dyn FnMut() -> usize>;

struct Pair {
    /// For messages it takes no time.
    world: World,
    ports: [Arc<Nic>; 2],
    /// To which end, from whom and what.
    mail: Receiver<(usize, IpAddr, Vec<u8>)>,
    now: u64,
    ends: [Manager; 2],
    events: [VecDeque<Event>; 2],
    sent: [Vec<CmMad>; 2],
    fate: Fate,
}

impl Pair {
    fn new(fate: Fate) -> Pair {
        let mut passive = Manager::new(2, 5, 0, 900);
        let mut out = Output::default();
        passive.listen(0, SERVICE, LISTENER, 4, &mut out).unwrap();
        let world = World::new(1, Direction::default());
        let (put, mail) = channel();
        let ports = [0, 1].map(|end| {
            let (port, put) = (world.nic(&Faults::default(), None).unwrap(), put.clone());
            let receive = move |from, bytes: &[u8]| put.send((end, from, bytes.to_vec())).unwrap();
            port.receive_management(Some(Box::new(receive)));
            port
        });
        Pair {
            world,
            ports,
            mail,
            now: 1,
            ends: [Manager::new(1, 5, 3, 100), passive],
            events: Default::default(),
            sent: Default::default(),
            fate,
        }
    }

    fn safe() -> Pair {
        Pair::new(Box::new(|| 1))
    }

    /// Does something at one end, and what follows from it at both.
    fn at<R>(&mut self, end: usize, step: impl FnOnce(&mut Manager, u64, &mut Output) -> R) -> R {
        let mut out = Output::default();
        let result = step(&mut self.ends[end], self.now, &mut out);
        self.send(end, out);
        while self.world.step() {}
        while let Ok((end, from, bytes)) = self.mail.try_recv() {
            let mut out = Output::default();
            self.ends[end].take(self.now, from, &bytes, &mut out);
            self.send(end, out);
            while self.world.step() {}
        }
        result
    }

    fn send(&mut self, end: usize, mut out: Output) {
        for unheard in std::mem::take(&mut out.unheard) {
            self.ends[end].refuse(&unheard, &mut out);
        }
        self.events[end].extend(out.events);
        for Datagram { to, bytes } in out.datagrams {
            self.sent[end].push(CmMad::parse(&bytes).unwrap());
            for _ in 0..(self.fate)() {
                self.ports[end].send_management(to, &bytes);
            }
        }
    }

    fn connect(&mut self) -> u32 {
        self.ask(|_| {})
    }

    /// Connects, and the passive end is asked; returns both numbers.
    fn connecting(&mut self) -> (u32, u32) {
        (self.connect(), self.asked())
    }

    /// Asks for a connection; the request is the usual one but for this.
    fn ask(&mut self, change: impl FnOnce(&mut Req)) -> u32 {
        let mut req = Box::new(Req {
            service: SERVICE,
            qpn: 0x11,
            starting_psn: 77,
            mtu: 5,
            private_data: [3; 92],
            ..Req::default()
        });
        change(&mut req);
        self.at(0, |manager, now, out| {
            manager.connect(now, address(1), req, out)
        })
    }

    /// Does something with a connection of one end.
    fn with(
        &mut self,
        end: usize,
        comm: u32,
        step: impl FnOnce(&mut Connection, u64, &mut Output) -> bool,
    ) -> Result<(), CmError> {
        self.at(end, |manager, now, out| {
            manager.with(comm, |it| step(it, now, out))
        })
    }

    fn accept(&mut self, comm: u32) -> Result<(), CmError> {
        let rep = Box::new(Rep {
            qpn: 0x22,
            ..Rep::default()
        });
        self.with(1, comm, |it, now, out| it.accept(now, rep, out))
    }

    fn refuse(&mut self, comm: u32) {
        self.with(1, comm, |it, _, out| {
            it.reject(RejReason::CONSUMER, b"no", out)
        })
        .unwrap();
    }

    fn establish(&mut self, active: u32) {
        self.with(0, active, |it, _, out| it.establish(out))
            .unwrap();
    }

    fn disconnect(&mut self, end: usize, comm: u32) {
        self.with(end, comm, |it, now, out| it.disconnect(now, out))
            .unwrap();
        let told = [0, 1].map(|end| self.happening(end));
        assert_eq!(told, [(); 2].map(|()| Happening::Disconnected));
    }

    /// Waits until both have forgotten a connection.
    fn is_over(&mut self) {
        let told = [0, 1].map(|end| self.happening(end));
        assert_eq!(told, [(); 2].map(|()| Happening::TimeWaitOver));
    }

    fn let_go(&mut self, end: usize, comm: u32) {
        self.at(end, |manager, now, out| manager.let_go(now, comm, out));
    }

    /// Lets time pass until the next timer; false if there is none.
    fn pass(&mut self) -> bool {
        let timers = self.ends.iter().filter_map(Manager::next_timer_ns);
        let Some(next) = timers.min() else {
            return false;
        };
        self.now = next;
        for end in [0, 1] {
            self.at(end, |manager, now, out| manager.wake(now, out));
        }
        true
    }

    fn event(&mut self, end: usize) -> Event {
        while self.events[end].is_empty() {
            assert!(self.pass(), "nothing more happens");
        }
        self.events[end].pop_front().unwrap()
    }

    fn happening(&mut self, end: usize) -> Happening {
        self.event(end).happening
    }

    fn asked(&mut self) -> u32 {
        let asked = self.event(1);
        assert!(matches!(asked.happening, Happening::Requested(..)));
        asked.comm
    }

    fn rejected(&mut self, end: usize) -> RejReason {
        match self.happening(end) {
            Happening::Rejected(reason, _) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Connects; returns both numbers.
    fn connected(&mut self) -> (u32, u32) {
        let (active, passive) = self.connecting();
        self.accept(passive).unwrap();
        assert!(matches!(self.happening(0), Happening::Replied(_)));
        self.establish(active);
        assert_eq!(self.happening(1), Happening::Established);
        (active, passive)
    }

    fn connections(&self) -> [usize; 2] {
        self.ends.each_ref().map(Manager::connections)
    }

    fn is_quiet(&self) -> bool {
        self.events.iter().all(VecDeque::is_empty)
    }

    fn count(&self, end: usize, is: impl Fn(&Message) -> bool) -> usize {
        self.sent[end].iter().filter(|mad| is(&mad.message)).count()
    }
}

#[test]
fn a_connection_comes_and_goes() {
    let mut pair = Pair::safe();
    let active = pair.connect();
    assert_eq!(active >> 27, 3, "the number begins with the slot");
    let asked = pair.event(1);
    let Happening::Requested(asker, req) = asked.happening else {
        panic!("{asked:?}");
    };
    assert_eq!(asker, ASKER);
    let said = (req.qpn, req.starting_psn, req.private_data);
    assert_eq!(said, (0x11, 77, [3; 92]));
    pair.accept(asked.comm).unwrap();
    assert_eq!(pair.accept(asked.comm), Err(CmError::State), "once");
    let replied = pair.event(0);
    assert_eq!(replied.comm, active);
    assert!(matches!(replied.happening, Happening::Replied(rep) if rep.qpn == 0x22));
    pair.establish(active);
    assert_eq!(pair.happening(1), Happening::Established);

    pair.disconnect(1, asked.comm);
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
    assert_eq!(pair.ends[0].connections(), 0);
    let last = pair.sent[0].last().unwrap();
    assert!(matches!(&last.message, Message::Rej(rej)
        if rej.reason == RejReason::TIMEOUT && rej.ca_guid == Some(1)));
}

#[test]
fn a_repeated_request_is_one_and_gets_the_same_reply() {
    let mut pair = Pair::new(Box::new(|| 2));
    let (_, asked) = pair.connecting();
    assert!(pair.events[1].is_empty(), "a duplicate is no second one");
    let mras = pair.count(1, |message| matches!(message, Message::Mra(_)));
    assert!(mras > 0, "while the program thinks, it is told to wait");
    // The reply gets lost: the request, once its patience is over, brings another.
    pair.fate = Box::new(|| 0);
    pair.accept(asked).unwrap();
    pair.fate = Box::new(|| 1);
    assert!(matches!(pair.happening(0), Happening::Replied(_)));
    let sent = pair.sent[1].iter();
    let replies = sent.filter(|mad| matches!(mad.message, Message::Rep(_)));
    let replies: Vec<&CmMad> = replies.collect();
    assert!(replies.len() > 1 && replies.iter().all(|mad| *mad == replies[0]));
}

#[test]
fn a_program_that_takes_its_time_is_waited_for() {
    let mut pair = Pair::safe();
    let (_, asked) = pair.connecting();
    for _ in 0..3 {
        assert!(pair.pass());
    }
    let asked_for_ns = time_of_code_ns(SERVICE_TIMEOUT);
    assert!(pair.now > asked_for_ns);
    pair.accept(asked).unwrap();
    assert!(matches!(pair.happening(0), Happening::Replied(_)));
}

#[test]
fn lost_confirmations_come_again() {
    let mut pair = Pair::safe();
    let (active, asked) = pair.connecting();
    pair.accept(asked).unwrap();
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
    let (_, asked) = pair.connecting();
    pair.accept(asked).unwrap();
    for _ in 0..2 {
        pair.with(1, asked, |it, _, out| it.notice_data(out))
            .unwrap();
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
    pair.at(1, |manager, now, out| {
        manager.listen(now, SERVICE, LISTENER, 4, out)
    })
    .unwrap();
    pair.asked();
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
    let (_, asked) = pair.connecting();
    pair.refuse(asked);
    let Happening::Rejected(reason, data) = pair.happening(0) else {
        panic!("not rejected");
    };
    assert_eq!((reason, &data[..3]), (RejReason::CONSUMER, &b"no\0"[..]));
    assert_eq!(pair.accept(asked), Err(CmError::Ended));
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
    pair.asked();
}

#[test]
fn requests_beyond_the_backlog_come_again() {
    let mut pair = Pair::safe();
    for qpn in 1..=5 {
        pair.ask(|req| req.qpn = qpn);
    }
    assert_eq!(pair.events[1].len(), 4);
    let first = pair.asked();
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
    let mut pair = Pair::safe();
    let (active, _) = pair.connected();
    pair.let_go(0, active);
    assert_eq!(pair.happening(1), Happening::Disconnected);
    assert!(pair.events[0].is_empty());
    ends(&mut pair);

    for (end, reason) in [(0, RejReason::TIMEOUT), (1, RejReason::CONSUMER)] {
        let mut pair = Pair::safe();
        let (active, asked) = pair.connecting();
        pair.let_go(end, [active, asked][end]);
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
