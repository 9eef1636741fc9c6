//! What a full socket does not take.

use super::super::Count;
use super::super::tests::{Parts, collect, copied, loopback_port, parts, send, whole};
use super::*;

/// These packets as one batch that finds no room.
fn blocked(transmitter: &Transmitter, flow: &Flow, packets: &[Parts]) {
    transmitter.put_by(&copied(flow, packets), |_, _| Err(io::ErrorKind::WouldBlock.into()));
}

#[test]
fn what_a_full_socket_does_not_take_leaves_later_in_order() {
    let mut port = loopback_port();
    let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
    let other = (8..64)
        .map(|entropy| port.transmitter.flow(port.common.address, entropy, 0, 0))
        .find(|other| other.socket != flow.socket);
    let packets: Vec<Parts> = (0..9).map(|salt| parts(12, &[700], salt)).collect();
    assert!(!port.transmitter.is_full());
    assert_eq!(port.transmitter.full_sockets(), None);
    blocked(&port.transmitter, &flow, &packets[..3]);
    assert!(port.transmitter.is_full());
    let full = port.transmitter.full_sockets().unwrap();
    assert_eq!(full.iter().filter(|fd| **fd >= 0).count(), 1);
    // There is room now, and yet these must not overtake the others. Another socket has room.
    send(&port.transmitter, &flow, &packets[3..6]);
    send(&port.transmitter, &flow, &packets[6..8]);
    send(&port.transmitter, &other.unwrap(), &packets[8..]);
    assert_eq!(collect(&mut port, 1), [whole(&packets[8])]);
    assert_eq!(port.receiver.receive(|_| true, |_| ()), 0);
    assert!(port.transmitter.go_on());
    assert!(!port.transmitter.is_full());
    let expected: Vec<Vec<u8>> = packets[..8].iter().map(whole).collect();
    assert_eq!(collect(&mut port, 8), expected);
    let counters = &port.common.counters;
    let (sent, wrong) = (&counters.sent, [&counters.bad_icrc, &counters.send_errors]);
    let told = [&counters.waited, &sent.packets, &sent.datagrams].map(Count::get);
    assert_eq!((told, wrong.map(Count::get)), ([8, 9, 4], [0; 2]));
}

#[test]
fn a_backlog_is_bounded_and_goes_on_only_while_there_is_room() {
    let port = loopback_port();
    let flow = port.transmitter.flow(port.common.address, 7, 0, 0);
    let packet = [parts(12, &[64], 0)];
    for _ in 0..70 {
        blocked(&port.transmitter, &flow, &packet);
    }
    assert_eq!(port.common.counters.waited.get(), 64);
    assert_eq!(port.common.counters.send_errors.get(), 6);
    let backlog = &port.transmitter.outlets[flow.socket].backlog;
    let room = std::cell::Cell::new(10);
    let emptied = backlog.go_on(|_| match room.get() {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        left => {
            room.set(left - 1);
            Ok(())
        }
    });
    assert!(!emptied && port.transmitter.is_full());
    assert!(port.transmitter.go_on());
    assert_eq!(port.common.counters.sent.packets.get(), 54);
}
