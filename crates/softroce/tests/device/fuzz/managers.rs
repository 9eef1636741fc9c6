//! Messages to connection managers, from somebody who has seen theirs: connections come and go as if there were none.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use softroce::cm::{Event, Happening, Manager, Output};
use softroce::net::{Direction, Faults};
use softroce::transport::{Nic, World};
use softroce::wire::cm::{GSI_QKEY, GSI_QPN, MAD_BYTES, Rep, Req, TCP_PORT_SPACE};
use softroce::wire::{Deth, Extended, Opcode, Packet, Psn, Service};

use super::rounds;
use crate::support::peer::{PORT, crc, wire};

const SERVICE: u64 = TCP_PORT_SPACE | 7471;
/// Between two turns of the managers.
const A_TURN: u32 = 16;

type Mail = Arc<Mutex<VecDeque<(IpAddr, Vec<u8>)>>>;

struct Port {
    nic: Arc<Nic>,
    manager: Manager,
    mail: Mail,
    events: VecDeque<Event>,
}

struct Fuzzed {
    world: World,
    forger: IpAddr,
    ports: [Port; 2],
    /// Messages that the ports have sent each other.
    seen: Vec<[u8; MAD_BYTES]>,
    /// What the ports call the connection between them.
    connection: [u32; 2],
    sent: u32,
    /// Connections that the forger has asked for.
    asked: u64,
}

impl Fuzzed {
    /// Does something at a port, and sends what follows from it.
    fn at<R>(&mut self, port: usize, step: impl FnOnce(&mut Manager, u64, &mut Output) -> R) -> R {
        let mut out = Output::default();
        let Port {
            nic,
            manager,
            events,
            ..
        } = &mut self.ports[port];
        let result = step(manager, self.world.now_ns(), &mut out);
        events.extend(out.events);
        for message in out.datagrams {
            nic.send_management(message.to, &message.bytes);
            if message.to != self.forger && self.seen.len() < 1000 {
                self.seen.push(message.bytes);
            }
        }
        result
    }

    /// When the next timer of a port is due.
    fn next_ns(&self) -> Option<u64> {
        let timers = self
            .ports
            .iter()
            .filter_map(|it| it.manager.next_timer_ns());
        timers.min()
    }

    /// Handles what comes at this time, and lets go of what the forger asks for.
    fn run_until(&mut self, now_ns: u64) {
        self.world.run_until(now_ns);
        for port in [0, 1, 0, 1, 0] {
            while let Some((from, bytes)) = self.next_mail(port) {
                self.at(port, |manager, now, out| {
                    manager.take(now, from, &bytes, out)
                });
            }
            self.at(port, |manager, now, out| manager.wake(now, out));
            self.let_go_of_forged(port);
            self.world.run_until(now_ns);
        }
    }

    fn next_mail(&self, port: usize) -> Option<(IpAddr, Vec<u8>)> {
        self.ports[port].mail.lock().unwrap().pop_front()
    }

    fn let_go_of_forged(&mut self, port: usize) {
        let forger = self.forger;
        let is_forged = |it: &Event| matches!(it.happening, Happening::Requested { peer, .. } if peer == forger);
        let events = &mut self.ports[port].events;
        let (forged, real): (VecDeque<_>, _) = events.drain(..).partition(is_forged);
        *events = real;
        self.asked += forged.len() as u64;
        for Event { comm, .. } in forged {
            self.at(port, |manager, now, out| manager.let_go(now, comm, out));
        }
    }

    fn event(&mut self, port: usize) -> Event {
        self.run_until(self.world.now_ns());
        while self.ports[port].events.is_empty() {
            let next_ns = self.next_ns().expect("nothing more happens");
            self.run_until(next_ns);
        }
        self.ports[port].events.pop_front().unwrap()
    }

    /// Makes a connection between the ports.
    fn connect(&mut self, numbers: &mut Rng) {
        let req = Box::new(Req {
            service: SERVICE,
            qpn: 0x11,
            starting_psn: numbers.u32(..1 << 24),
            mtu: 5,
            ..Req::default()
        });
        let to = self.ports[1].nic.address();
        let active = self.at(0, |manager, now, out| manager.connect(now, to, req, out));
        let asked = self.event(1);
        assert!(matches!(asked.happening, Happening::Requested { .. }));
        let rep = Box::new(Rep {
            qpn: 0x22,
            ..Rep::default()
        });
        let accepted = self.at(1, |it, now, out| it.accept(now, asked.comm, rep, out));
        assert_eq!(accepted, Ok(()));
        let replied = self.event(0);
        assert!(
            matches!(replied.happening, Happening::Replied(_)),
            "{replied:?}"
        );
        let established = self.at(0, |it, _, out| it.establish(active, out));
        assert_eq!(established, Ok(()));
        assert_eq!(self.event(1).happening, Happening::Established);
        self.connection = [active, asked.comm];
    }

    /// The connection ends when a port wants it and not before, and leaves nothing, nor does what was forged; another is made.
    fn check(&mut self, numbers: &mut Rng) {
        self.run_until(self.world.now_ns());
        for port in &self.ports {
            assert!(port.events.is_empty(), "{:?}", port.events);
        }
        let end = numbers.usize(..2);
        let comm = self.connection[end];
        let ended = self.at(end, |it, now, out| it.disconnect(now, comm, out));
        assert_eq!(ended, Ok(()));
        for happening in [Happening::Disconnected, Happening::TimeWaitOver] {
            let told = [0, 1].map(|port| self.event(port));
            assert_eq!(told.each_ref().map(|it| it.comm), self.connection);
            assert_eq!(
                told.map(|it| it.happening),
                [(); 2].map(|()| happening.clone())
            );
        }
        while let Some(next_ns) = self.next_ns() {
            self.run_until(next_ns);
        }
        let left = self.ports.each_ref().map(|it| it.manager.connections());
        assert_eq!(left, [0, 0]);
        self.connect(numbers);
    }

    fn forge(&mut self, numbers: &mut Rng) {
        if self.sent.is_multiple_of(A_TURN) {
            self.run_until(self.world.now_ns() + numbers.u64(..10_000_000));
        }
        self.sent += 1;
        let mut bytes = self.seen[numbers.usize(..self.seen.len())];
        let port = numbers.usize(..2);
        // In the name of the other port only what it did not say: with numbers that are none of its connections.
        let source = match numbers.u8(..8) {
            0 => {
                numbers.fill(&mut bytes[24..]);
                self.ports[1 - port].nic.address()
            }
            _ => self.forger,
        };
        for _ in 0..numbers.usize(..6) {
            match numbers.u8(..4) {
                0 => bytes[16..18].copy_from_slice(&numbers.u16(0x10..0x18).to_be_bytes()),
                1 => bytes[numbers.usize(..MAD_BYTES)] = numbers.u8(..),
                // Where most of what is looked at lies: numbers, services, QPs.
                _ => bytes[numbers.usize(24..64)] ^= 1 << numbers.u8(..8),
            }
        }
        let packet = Packet {
            service: Service::Ud,
            opcode: Opcode::SendOnly,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: GSI_QPN,
            ack_request: false,
            psn: Psn::ZERO,
            extended: Extended {
                deth: Some(Deth {
                    qkey: GSI_QKEY,
                    source_qpn: GSI_QPN,
                }),
                ..Extended::default()
            },
            payload: &bytes,
        };
        let mut bytes = wire(&packet);
        let to = self.ports[port].nic.address();
        bytes.extend(crc((source, PORT), to, &bytes));
        self.world
            .fabric()
            .forge((source, PORT).into(), to, 0, &bytes);
    }
}

#[test]
fn connection_managers_that_get_forged_messages_serve_each_other() {
    let world = World::new(1, Direction::default());
    let ports = [1, 2].map(|number| {
        let nic = world.nic(&Faults::default(), None).unwrap();
        let mail = Mail::default();
        let letters = Arc::clone(&mail);
        let put =
            move |from, bytes: &[u8]| letters.lock().unwrap().push_back((from, bytes.to_vec()));
        nic.receive_management(Some(Box::new(put)));
        Port {
            nic,
            manager: Manager::new(number, 5, 0, 1000 * number as u32),
            mail,
            events: VecDeque::new(),
        }
    });
    let mut fuzzed = Fuzzed {
        forger: world.stranger(),
        world,
        ports,
        seen: Vec::new(),
        connection: [0; 2],
        sent: 0,
        asked: 0,
    };
    let listening = fuzzed.at(1, |it, now, out| it.listen(now, SERVICE, 5, 4, out));
    assert_eq!(listening, Ok(()));
    fuzzed.connect(&mut Rng::with_seed(0));
    rounds(
        "managers",
        100_000,
        &mut fuzzed,
        Fuzzed::forge,
        Fuzzed::check,
    );
    // Refusing everything would test nothing.
    assert!(fuzzed.asked > 100, "{}", fuzzed.asked);
}
