//! Ports with deliberate faults, on a network in memory.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::super::{Arrival, Direction, Fabric, Port, open_in};
use super::{Parts, parts, send, whole};

/// What came to each port.
type Arrived = Vec<Vec<Vec<u8>>>;

/// A network whose links are without faults, and ports.
struct Bed {
    fabric: Arc<Fabric>,
    ports: Vec<Port>,
}

fn address(port: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, port as u8).into()
}

/// A port for each text of faults.
fn bed<const N: usize>(faults: [&str; N]) -> Bed {
    let fabric = Fabric::new(1, Direction::default());
    let open =
        |(at, text): (usize, &str)| open_in(&fabric, address(at), &text.parse().unwrap(), 16 << 20);
    let ports = faults.into_iter().enumerate().map(open).collect();
    Bed { fabric, ports }
}

impl Bed {
    fn send(&self, from: usize, to: usize, packets: &[Parts]) -> usize {
        let transmitter = &self.ports[from].transmitter;
        let flow = transmitter.flow(address(to), 3, 0, 0);
        send(transmitter, &flow, packets)
    }

    /// Takes what has come by now.
    fn receive(&mut self) -> Arrived {
        let receive = |port: &mut Port| {
            let mut all = Vec::new();
            let mut each = |it: Arrival<'_>| all.push(it.bytes.to_vec());
            port.transmitter.release_due();
            while self.fabric.has_arrived(port.address) {
                port.receiver.receive(|_| true, &mut each);
            }
            port.receiver.receive(|_| true, &mut each);
            all
        };
        self.ports.iter_mut().map(receive).collect()
    }

    /// Lets time pass until nothing is on its way, and takes what comes.
    fn settle(&mut self) -> Arrived {
        let mut all = self.receive();
        loop {
            let dues = self
                .ports
                .iter()
                .flat_map(|port| [port.transmitter.next_due_ns(), port.receiver.next_due_ns()]);
            let Some(due_ns) = dues.flatten().min() else {
                return all;
            };
            self.fabric.advance_to(due_ns);
            for _ in 0..2 {
                for (all, more) in all.iter_mut().zip(self.receive()) {
                    all.extend(more);
                }
            }
        }
    }
}

fn counts(arrived: &Arrived) -> Vec<usize> {
    arrived.iter().map(Vec::len).collect()
}

fn packets(count: usize, bytes: usize) -> Vec<Parts> {
    (0..count).map(|salt| parts(12, &[bytes], salt)).collect()
}

#[test]
fn packets_that_leave_a_faulty_link_together_share_a_system_call() {
    for (text, salt) in [
        ("tx.drop=1%", 0),
        ("delay=1us", 1),
        ("seed=4,tx.duplicate=1%", 2),
    ] {
        let mut bed = bed([text]);
        for _ in 0..40 {
            let mut packets: Vec<Parts> = (0..31).map(|at| parts(12, &[1024], at + salt)).collect();
            packets.push(parts(12, &[500], salt));
            assert_eq!(bed.send(0, 0, &packets), 1);
            let arrived = &bed.settle()[0];
            let place = |it: &Vec<u8>| packets.iter().position(|sent| whole(sent) == *it);
            assert!(arrived.iter().all(|it| place(it).is_some()), "{text}");
            assert!(arrived.is_sorted_by_key(place), "{text}");
        }
        let counters = &bed.ports[0].counters;
        let (sent, faults) = (&counters.sent, &counters.transmit_faults);
        let expected = 40 * 32 - faults.dropped.get() + faults.duplicated.get();
        assert_eq!(sent.packets.get(), expected);
        let most = 40 + faults.duplicated.get();
        assert!(sent.datagrams.get() <= most, "{counters:?}");
        assert!(faults.dropped.get() + faults.duplicated.get() > 0 || text.contains("delay"));
        assert_eq!(counters.bad_icrc.get(), 0, "{text}");
    }
}

#[test]
fn damage_stays_when_a_packet_changes_its_place() {
    let mut bed = bed(["seed=2,tx.drop=20%,tx.corrupt=20%"]);
    bed.send(0, 0, &packets(64, 512));
    let arrived = bed.settle()[0].len() as u64;
    let counters = &bed.ports[0].counters;
    let faults = &counters.transmit_faults;
    let (lost, damaged) = (faults.dropped.get(), faults.corrupted.get());
    assert!(lost > 0 && damaged > 0);
    assert_eq!(arrived, 64 - lost - damaged);
    assert_eq!(counters.bad_icrc.get(), damaged);
    assert_eq!(counters.sent.datagrams.get(), 1);
}

#[test]
fn faults_of_one_peer_befall_its_packets_alone() {
    let packets = packets(4, 64);
    let mut bed = bed([
        "",
        "",
        "tx.drop=100%,peer=10.0.0.0",
        "rx.drop=100%,peer=10.0.0.0",
    ]);
    for to in [0, 1] {
        assert_eq!(bed.send(2, to, &packets), 1);
        bed.send(to, 3, &packets);
    }
    assert_eq!(counts(&bed.settle()), [0, 4, 0, 4]);
    let [.., sender, receiver] = &bed.ports[..] else {
        panic!("four ports");
    };
    assert_eq!(sender.counters.transmit_faults.dropped.get(), 4);
    assert_eq!(sender.counters.sent.packets.get(), 4);
    assert_eq!(receiver.counters.received.packets.get(), 8);
    assert_eq!(receiver.counters.receive_faults.dropped.get(), 4);
}

#[test]
fn a_slow_link_to_one_peer_delays_no_other() {
    let mut bed = bed(["", "", "delay=50ms,rate=1M,peer=10.0.0.0"]);
    let start_ns = bed.fabric.clock().now_ns();
    for to in [0, 1] {
        bed.send(2, to, &packets(1, 64));
    }
    assert_eq!(counts(&bed.receive()), [0, 1, 0]);
    assert_eq!(counts(&bed.settle()), [1, 0, 0]);
    // 108 bytes with all headers at 1 Mb/s, and the delay.
    let took_ns = bed.fabric.clock().now_ns() - start_ns;
    assert_eq!(took_ns, 864_000 + 50_000_000);
}

#[test]
fn packets_vanish_both_ways_while_the_port_is_down() {
    let mut bed = bed(["down=0s+1000s", ""]);
    bed.send(0, 1, &packets(4, 64));
    bed.send(1, 0, &packets(4, 64));
    assert_eq!(counts(&bed.settle()), [0, 0]);
    let counters = &bed.ports[0].counters;
    assert_eq!(counters.received.packets.get(), 4);
    assert_eq!(counters.sent.packets.get(), 0);
    assert_eq!(counters.transmit_faults.dropped.get(), 4);
    assert_eq!(counters.receive_faults.dropped.get(), 4);
}

/// Has a port send so many packets of 100 bytes to itself, one after the other; returns what came.
fn through_itself(bed: &mut Bed, count: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for at in 0..count {
        let mut packet = parts(12, &[84], 0);
        packet.1[0][..4].copy_from_slice(&(at as u32).to_be_bytes());
        bed.send(0, 0, &[packet]);
        all.extend(bed.receive().remove(0));
    }
    all.extend(bed.settle().remove(0));
    all
}

#[test]
fn faults_of_both_directions_befall_packets() {
    for (text, twice) in [
        ("seed=5,drop=5%,duplicate=2%,reorder=2%,corrupt=1%", true),
        ("seed=5,tx.drop=5%,tx.corrupt=1%", false),
        ("seed=5,rx.drop=5%,rx.duplicate=1%", false),
    ] {
        let mut both = bed([text]);
        let all = through_itself(&mut both, 5000);
        let counters = &both.ports[0].counters;
        let (tx, rx) = (&counters.transmit_faults, &counters.receive_faults);
        let sent = 5000 - tx.dropped.get() + tx.duplicated.get();
        assert_eq!(counters.sent.packets.get(), sent);
        assert_eq!(counters.received.packets.get(), sent);
        let checked = sent - rx.dropped.get() + rx.duplicated.get();
        let (good, bad) = (all.len() as u64, counters.bad_icrc.get());
        assert_eq!(good + bad, checked);
        assert_eq!(tx.dropped.get() > 0 && rx.dropped.get() > 0, twice);
        let damaged = tx.corrupted.get() + rx.corrupted.get();
        assert!(bad <= damaged + tx.duplicated.get() + rx.duplicated.get());
        assert_eq!(bad > 0, damaged > 0);
        assert!(all == through_itself(&mut bed([text]), 5000));
    }
}
