//! Ports with deliberate faults.

use std::sync::Arc;

use super::super::{Arrival, Port, now_ns, open};
use super::{Parts, SOON, collect, loopback_port, parts, send, whole};
use testing::wait::wait_until;

fn faulty_port(text: &str) -> Port {
    open(None, &text.parse().unwrap(), None).unwrap()
}

fn send_to(from: &Port, to: &Port, packets: &[Parts]) -> usize {
    let flow = from.transmitter.flow(to.address, 3, 0, 0);
    send(&from.transmitter, &flow, packets)
}

fn packets(count: usize, bytes: usize) -> Vec<Parts> {
    (0..count).map(|salt| parts(12, &[bytes], salt)).collect()
}

/// Sends this many packets of 100 bytes to itself and receives meanwhile; returns the packets.
fn through_itself(port: &mut Port, packets: usize) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut receive = |port: &mut Port| {
        let each = |it: Arrival<'_>| all.push(it.bytes.to_vec());
        port.receiver.receive(|_| true, each);
    };
    for at in 0..packets {
        let mut packet = parts(12, &[84], 0);
        packet.1[0][..4].copy_from_slice(&(at as u32).to_be_bytes());
        send_to(port, port, &[packet]);
        receive(port);
    }
    let sent = Arc::clone(&port.counters);
    wait_until("the last packet", SOON, || {
        port.transmitter.release_due();
        receive(port);
        let due_ns = port.transmitter.next_due_ns();
        due_ns.or(port.receiver.next_due_ns()).is_none()
            && sent.received.packets.get() == sent.sent.packets.get()
    });
    all
}

/// Waits until all that a link holds back has left it.
fn leaves(port: &Port) {
    wait_until("packets to leave the link", SOON, || {
        port.transmitter.release_due();
        port.transmitter.next_due_ns().is_none()
    });
}

#[test]
fn packets_that_leave_a_faulty_link_together_share_a_system_call() {
    for (text, salt) in [
        ("tx.drop=1%", 0),
        ("delay=1us", 1),
        ("seed=4,tx.duplicate=1%", 2),
    ] {
        let mut port = faulty_port(text);
        let counters = Arc::clone(&port.counters);
        let (sent, faults) = (&counters.sent, &counters.transmit_faults);
        for _ in 0..40 {
            let mut packets: Vec<Parts> = (0..31).map(|at| parts(12, &[1024], at + salt)).collect();
            packets.push(parts(12, &[500], salt));
            let before = sent.packets.get();
            assert_eq!(send_to(&port, &port, &packets), 1);
            leaves(&port);
            let arrived = collect(&mut port, (sent.packets.get() - before) as usize);
            let place = |it: &Vec<u8>| packets.iter().position(|sent| whole(sent) == *it);
            assert!(arrived.iter().all(|it| place(it).is_some()), "{text}");
            assert!(arrived.is_sorted_by_key(place), "{text}");
        }
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
    let mut port = faulty_port("seed=2,tx.drop=20%,tx.corrupt=20%");
    send_to(&port, &port, &packets(64, 512));
    let faults = &port.counters.transmit_faults;
    let (lost, damaged) = (faults.dropped.get(), faults.corrupted.get());
    assert!(lost > 0 && damaged > 0);
    collect(&mut port, (64 - lost - damaged) as usize);
    assert_eq!(port.counters.bad_icrc.get(), damaged);
    assert_eq!(port.counters.sent.datagrams.get(), 1);
}

#[test]
fn faults_of_one_peer_befall_its_packets_alone() {
    let (mut first, mut second) = (loopback_port(), loopback_port());
    let packets = packets(4, 64);
    let peer = first.address;
    let lost = |text: &str| faulty_port(&format!("{text},peer={peer}"));
    let sender = lost("tx.drop=100%");
    for (port, arrive) in [(&mut first, 0), (&mut second, 4)] {
        assert_eq!(send_to(&sender, port, &packets), 1);
        collect(port, arrive);
    }
    assert_eq!(sender.counters.transmit_faults.dropped.get(), 4);
    assert_eq!(sender.counters.sent.packets.get(), 4);
    let mut receiver = lost("rx.drop=100%");
    for port in [&first, &second] {
        send_to(port, &receiver, &packets);
    }
    collect(&mut receiver, 4);
    assert_eq!(receiver.counters.received.packets.get(), 8);
    assert_eq!(receiver.counters.receive_faults.dropped.get(), 4);
}

#[test]
fn a_slow_link_to_one_peer_delays_no_other() {
    let mut quick = loopback_port();
    let mut slow = loopback_port();
    const DELAY_NS: u64 = 50_000_000;
    let sender = faulty_port(&format!("delay=50ms,rate=1M,peer={}", slow.address));
    let before_ns = now_ns();
    for to in [&slow, &quick] {
        send_to(&sender, to, &packets(1, 64));
    }
    collect(&mut quick, 1);
    assert!(sender.transmitter.next_due_ns().unwrap() >= before_ns + DELAY_NS);
    assert_eq!(slow.receiver.receive(|_| true, |_| ()), 0);
    leaves(&sender);
    collect(&mut slow, 1);
}

#[test]
fn packets_vanish_both_ways_while_the_port_is_down() {
    let mut down = faulty_port("down=0s+1000s");
    let mut other = loopback_port();
    send_to(&down, &other, &packets(4, 64));
    send_to(&other, &down, &packets(4, 64));
    let counters = Arc::clone(&down.counters);
    wait_until("four packets", SOON, || {
        assert_eq!(down.receiver.receive(|_| true, |_| ()), 0);
        counters.received.packets.get() == 4
    });
    assert_eq!(other.receiver.receive(|_| true, |_| ()), 0);
    assert_eq!(counters.sent.packets.get(), 0);
    assert_eq!(counters.transmit_faults.dropped.get(), 4);
    assert_eq!(counters.receive_faults.dropped.get(), 4);
}

#[test]
fn faults_of_both_directions_befall_packets() {
    for (text, twice) in [
        ("seed=5,drop=5%,duplicate=2%,reorder=2%,corrupt=1%", true),
        ("seed=5,tx.drop=5%,tx.corrupt=1%", false),
        ("seed=5,rx.drop=5%,rx.duplicate=1%", false),
    ] {
        let mut port = faulty_port(text);
        let all = through_itself(&mut port, 5000);
        let counters = &port.counters;
        let (tx, rx) = (&counters.transmit_faults, &counters.receive_faults);
        let sent = 5000 - tx.dropped.get() + tx.duplicated.get();
        assert_eq!(counters.sent.packets.get(), sent);
        let received = counters.received.packets.get();
        assert_eq!(received, sent, "the kernel lost some");
        let checked = sent - rx.dropped.get() + rx.duplicated.get();
        let (good, bad) = (all.len() as u64, counters.bad_icrc.get());
        assert_eq!(good + bad, checked);
        let both = tx.dropped.get() > 0 && rx.dropped.get() > 0;
        assert_eq!(both, twice, "{counters:?}");
        let damaged = tx.corrupted.get() + rx.corrupted.get();
        assert!(bad <= damaged + tx.duplicated.get() + rx.duplicated.get());
        assert_eq!(bad > 0, damaged > 0);
        // How long a reordered packet waits also depends on time, which changes what the other direction sees;
        // without reordering the same packets are lost each time.
        if !twice {
            let again = through_itself(&mut faulty_port(text), 5000);
            assert!(all == again);
        }
    }
}

#[test]
fn a_slow_or_long_link_keeps_the_order() {
    for text in ["delay=5ms", "tx.rate=1M", "rx.rate=1M,rx.delay=1ms"] {
        let all = through_itself(&mut faulty_port(text), 20);
        assert_eq!(all.len(), 20, "{text}");
        assert!(all.is_sorted_by_key(|it| it[12..16].to_vec()), "{text}");
    }
}
