//! Two managers at the ports of a network in memory, between which messages get lost, come twice or late.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use crate::cm::connection::RESPONSE_TIMEOUT;
use crate::cm::{Asker, CmError, Connection, Datagram, Event, Happening, Manager, Output};
use crate::net::{Direction, Faults};
use crate::transport::{Nic, World};
use crate::wire::cm::{CmMad, Message, RejReason, Rep, Req, TCP_PORT_SPACE};
use crate::wire::time_of_code_ns;

pub(super) const SERVICE: u64 = TCP_PORT_SPACE | 7471;
pub(super) const LISTENER: u64 = 5;
pub(super) const INTERVAL_NS: u64 = time_of_code_ns(RESPONSE_TIMEOUT);

pub(super) const ASKER: Asker = Asker { listener: LISTENER, peer: address(0) };

pub(super) const fn address(end: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, end as u8 + 1))
}

/// What happens to a datagram on its way: arrives as often as this.
pub(super) type Fate = Box<dyn FnMut() -> usize>;

pub(super) struct Pair {
    /// For messages it takes no time.
    pub(super) world: World,
    pub(super) ports: [Arc<Nic>; 2],
    /// To which end, from whom and what.
    pub(super) mail: Receiver<(usize, IpAddr, Vec<u8>)>,
    pub(super) now: u64,
    pub(super) ends: [Manager; 2],
    pub(super) events: [VecDeque<Event>; 2],
    pub(super) sent: [Vec<CmMad>; 2],
    pub(super) fate: Fate,
}

impl Pair {
    pub(super) fn new(fate: Fate) -> Pair {
        let world = World::new(1, Direction::default());
        let (put, mail) = channel();
        let ports = [0, 1].map(|end| {
            let (port, put) = (world.nic(&Faults::default(), None).unwrap(), put.clone());
            port.receive_management(Some(Box::new(move |from, bytes: &[u8]| {
                put.send((end, from, bytes.to_vec())).unwrap();
            })));
            port
        });
        let mut pair = Pair {
            world,
            ports,
            mail,
            now: 1,
            ends: [Manager::new(1, 5, 3, 100), Manager::new(2, 5, 0, 900)],
            events: Default::default(),
            sent: Default::default(),
            fate,
        };
        pair.listen(SERVICE);
        pair
    }

    /// Makes the passive end listen.
    pub(super) fn listen(&mut self, service: u64) {
        self.at(1, |manager, now, out| manager.listen(now, service, LISTENER, 4, out)).unwrap();
    }

    pub(super) fn safe() -> Pair {
        Pair::new(Box::new(|| 1))
    }

    /// Does something at one end, and what follows from it at both.
    pub(super) fn at<R>(
        &mut self,
        end: usize,
        step: impl FnOnce(&mut Manager, u64, &mut Output) -> R,
    ) -> R {
        let mut out = Output::default();
        let result = step(&mut self.ends[end], self.now, &mut out);
        self.send(end, out);
        while self.world.step() {}
        while let Ok((to, from, bytes)) = self.mail.try_recv() {
            let mut answers = Output::default();
            self.ends[to].take(self.now, from, &bytes, &mut answers);
            self.send(to, answers);
            while self.world.step() {}
        }
        result
    }

    pub(super) fn send(&mut self, end: usize, mut out: Output) {
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

    pub(super) fn connect(&mut self) -> u32 {
        self.ask(|_| {})
    }

    /// Connects, and the passive end is asked; returns both numbers.
    pub(super) fn connecting(&mut self) -> (u32, u32) {
        (self.connect(), self.requested())
    }

    /// Asks for a connection; the request is the usual one but for this.
    pub(super) fn ask(&mut self, change: impl FnOnce(&mut Req)) -> u32 {
        let mut req = Box::new(Req {
            service: SERVICE,
            qpn: 0x11,
            starting_psn: 77,
            mtu: 5,
            private_data: vec![3; 92],
            ..Req::default()
        });
        change(&mut req);
        self.at(0, |manager, now, out| manager.connect(now, address(1), req, out))
    }

    /// Does something with a connection of one end.
    pub(super) fn with(
        &mut self,
        end: usize,
        comm: u32,
        step: impl FnOnce(&mut Connection, u64, &mut Output) -> bool,
    ) -> Result<(), CmError> {
        self.at(end, |manager, now, out| manager.with(comm, |it| step(it, now, out)))
    }

    pub(super) fn accept(&mut self, comm: u32) -> Result<(), CmError> {
        let rep = Box::new(Rep { qpn: 0x22, ..Rep::default() });
        self.with(1, comm, |it, now, out| it.accept(now, rep, out))
    }

    pub(super) fn refuse(&mut self, comm: u32) {
        self.with(1, comm, |it, _, out| it.reject(RejReason::CONSUMER, b"no", out)).unwrap();
    }

    pub(super) fn establish(&mut self, active: u32) {
        self.with(0, active, |it, _, out| it.establish(out)).unwrap();
    }

    pub(super) fn disconnect(&mut self, end: usize, comm: u32) {
        self.with(end, comm, Connection::disconnect).unwrap();
        let happenings = [0, 1].map(|each| self.happening(each));
        assert_eq!(happenings, [(); 2].map(|()| Happening::Disconnected));
    }

    /// Waits until both have forgotten a connection.
    pub(super) fn is_over(&mut self) {
        let happenings = [0, 1].map(|each| self.happening(each));
        assert_eq!(happenings, [(); 2].map(|()| Happening::TimeWaitOver));
    }

    pub(super) fn let_go(&mut self, end: usize, comm: u32) {
        self.at(end, |manager, now, out| manager.let_go(now, comm, out));
    }

    /// Lets time pass until the next timer; false if there is none.
    pub(super) fn pass(&mut self) -> bool {
        let Some(next) = self.ends.iter().filter_map(Manager::next_timer_ns).min() else {
            return false;
        };
        self.now = next;
        for end in [0, 1] {
            self.at(end, Manager::wake);
        }
        true
    }

    pub(super) fn event(&mut self, end: usize) -> Event {
        while self.events[end].is_empty() {
            assert!(self.pass(), "nothing more happens");
        }
        self.events[end].pop_front().unwrap()
    }

    pub(super) fn happening(&mut self, end: usize) -> Happening {
        self.event(end).happening
    }

    pub(super) fn requested(&mut self) -> u32 {
        let request = self.event(1);
        assert!(matches!(request.happening, Happening::Requested(..)));
        request.comm
    }

    pub(super) fn rejected(&mut self, end: usize) -> RejReason {
        match self.happening(end) {
            Happening::Rejected(reason, _) => reason,
            other => panic!("{other:?}"),
        }
    }

    /// Connects; returns both numbers.
    pub(super) fn connected(&mut self) -> (u32, u32) {
        let (active, passive) = self.connecting();
        self.accept(passive).unwrap();
        assert!(matches!(self.happening(0), Happening::Replied(_)));
        self.establish(active);
        assert_eq!(self.happening(1), Happening::Established);
        (active, passive)
    }

    pub(super) fn connections(&self) -> [usize; 2] {
        self.ends.each_ref().map(|it| it.connections.len())
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.events.iter().all(VecDeque::is_empty)
    }

    pub(super) fn count(&self, end: usize, is: impl Fn(&Message) -> bool) -> usize {
        self.sent[end].iter().filter(|mad| is(&mad.message)).count()
    }
}
