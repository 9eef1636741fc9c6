//! Messages to connection managers, from somebody who has seen theirs: connections come and go as if there were none.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use fastrand::Rng;
use softroce::cm::{Event, Happening, Manager, Output};
use softroce::net::{Direction, Faults};
use softroce::transport::{Nic, World};
use softroce::wire::cm::{MAD_BYTES, Rep, Req, TCP_PORT_SPACE};

use super::rounds;

const SERVICE: u64 = TCP_PORT_SPACE | 7471;
/// Messages between two moments.
const A_MOMENT: u64 = 16;
/// Where the attribute of a message lies, and what most of them tell: numbers, services and QPs.
const ATTRIBUTE: std::ops::Range<usize> = 16..18;
const NUMBERS: std::ops::Range<usize> = 24..64;

struct Port {
    nic: Arc<Nic>,
    manager: Manager,
    mail: Receiver<(IpAddr, Vec<u8>)>,
    events: VecDeque<Event>,
}

struct Fuzzed {
    world: World,
    ports: [Port; 2],
    /// What the ports call the connection between them.
    connection: [u32; 2],
    forger: Arc<Nic>,
    /// Messages that the ports have sent each other.
    seen: Vec<[u8; MAD_BYTES]>,
    forged: u64,
    /// Connections that the forger has asked for.
    asked: u64,
}

impl Fuzzed {
    /// Does something at a port, and what follows from it; lets go of what the forger asks for.
    fn at<R>(&mut self, at: usize, step: impl FnOnce(&mut Manager, u64, &mut Output) -> R) -> R {
        let (port, now_ns, mut out) = (&mut self.ports[at], self.world.now_ns(), Output::default());
        let result = step(&mut port.manager, now_ns, &mut out);
        for unheard in std::mem::take(&mut out.unheard) {
            port.manager.refuse(&unheard, &mut out);
        }
        for event in std::mem::take(&mut out.events) {
            match event.happening {
                Happening::Requested { peer, .. } | Happening::LookedUp { peer, .. }
                    if peer == self.forger.address() =>
                {
                    self.asked += 1;
                    port.manager.let_go(now_ns, event.comm, &mut out);
                }
                _ => port.events.push_back(event),
            }
        }
        for message in out.datagrams {
            port.nic.send_management(message.to, &message.bytes);
            if message.to != self.forger.address() && self.seen.len() < 1000 {
                self.seen.push(message.bytes);
            }
        }
        result
    }

    /// Lets the ports handle what has come, and their timers.
    fn settle(&mut self) {
        for at in [0, 1] {
            self.at(at, Manager::wake);
        }
        loop {
            self.world.run_until(self.world.now_ns());
            let next = |at: usize| Some((at, self.ports[at].mail.try_recv().ok()?));
            let Some((at, (from, bytes))) = next(0).or_else(|| next(1)) else {
                return;
            };
            self.at(at, |it, now, out| it.take(now, from, &bytes, out));
        }
    }

    /// Lets time pass until a timer of a port; false if there is none.
    fn pass(&mut self) -> bool {
        let timers = self
            .ports
            .iter()
            .filter_map(|it| it.manager.next_timer_ns());
        let next_ns = timers.min();
        next_ns.into_iter().for_each(|ns| self.world.run_until(ns));
        self.settle();
        next_ns.is_some()
    }

    fn event(&mut self, at: usize) -> Event {
        self.settle();
        while self.ports[at].events.is_empty() {
            assert!(self.pass(), "nothing more happens");
        }
        self.ports[at].events.pop_front().unwrap()
    }

    /// Makes a connection between the ports.
    fn connect(&mut self) {
        let req = Box::new(Req {
            service: SERVICE,
            qpn: 0x11,
            mtu: 5,
            ..Req::default()
        });
        let to = self.ports[1].nic.address();
        let active = self.at(0, |it, now, out| it.connect(now, to, req, out));
        let asked = self.event(1);
        assert!(matches!(asked.happening, Happening::Requested { .. }));
        let rep = Box::new(Rep {
            qpn: 0x22,
            ..Rep::default()
        });
        self.at(1, |it, now, out| it.accept(now, asked.comm, rep, out))
            .unwrap();
        assert!(matches!(self.event(0).happening, Happening::Replied(_)));
        self.at(0, |it, _, out| it.establish(active, out)).unwrap();
        assert_eq!(self.event(1).happening, Happening::Established);
        self.connection = [active, asked.comm];
    }

    /// The connection ends when a port wants it and not before, and leaves nothing, nor does what was forged; another is made.
    fn check(&mut self, numbers: &mut Rng) {
        self.settle();
        assert!(self.ports.iter().all(|it| it.events.is_empty()));
        let end = numbers.usize(..2);
        let comm = self.connection[end];
        self.at(end, |it, now, out| it.disconnect(now, comm, out))
            .unwrap();
        for happening in [Happening::Disconnected, Happening::TimeWaitOver] {
            let told = [0, 1].map(|at| self.event(at));
            let expected = self.connection.map(|comm| Event {
                comm,
                happening: happening.clone(),
            });
            assert_eq!(told, expected);
        }
        while self.pass() {}
        let left = self.ports.each_ref().map(|it| it.manager.connections());
        assert_eq!(left, [0, 0]);
        self.connect();
    }

    fn forge(&mut self, numbers: &mut Rng) {
        if self.forged.is_multiple_of(A_MOMENT) {
            let now_ns = self.world.now_ns();
            self.world.run_until(now_ns + numbers.u64(..10_000_000));
            self.settle();
        }
        self.forged += 1;
        let mut bytes = self.seen[numbers.usize(..self.seen.len())];
        for _ in 0..numbers.usize(..6) {
            match numbers.u8(..4) {
                0 => bytes[ATTRIBUTE].copy_from_slice(&numbers.u16(0x10..0x19).to_be_bytes()),
                1 => bytes[numbers.usize(..MAD_BYTES)] = numbers.u8(..),
                _ => bytes[numbers.usize(NUMBERS)] ^= 1 << numbers.u8(..8),
            }
        }
        let to = self.ports[numbers.usize(..2)].nic.address();
        self.forger.send_management(to, &bytes);
    }
}

#[test]
fn connection_managers_that_get_forged_messages_serve_each_other() {
    let world = World::new(1, Direction::default());
    let nic = || world.nic(&Faults::default(), None).unwrap();
    let port = |number| {
        let (nic, (put, mail)) = (nic(), channel());
        nic.receive_management(Some(Box::new(move |from, bytes| {
            put.send((from, bytes.to_vec())).unwrap();
        })));
        Port {
            nic,
            manager: Manager::new(number, 5, 0, 1000 * number as u32),
            mail,
            events: VecDeque::new(),
        }
    };
    let mut fuzzed = Fuzzed {
        ports: [1, 2].map(port),
        connection: [0; 2],
        forger: nic(),
        seen: Vec::new(),
        forged: 0,
        asked: 0,
        world,
    };
    fuzzed
        .at(1, |it, now, out| it.listen(now, SERVICE, 5, 4, out))
        .unwrap();
    fuzzed.connect();
    rounds(
        "managers",
        100_000,
        &mut fuzzed,
        Fuzzed::forge,
        Fuzzed::check,
    );
    // Refusing everything would test nothing.
    assert!(fuzzed.asked > 1000, "{}", fuzzed.asked);
}
