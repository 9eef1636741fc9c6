//! Members of one address, all in this process: who gets which packets, while others come and go.

use std::net::{IpAddr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::super::{Faults, GsoBatch, Port, SLOTS, open, os_error, with_slot};
use super::{Parts, addressed, collect, loopback_port, parts, send, turn_on_ipv6_loopback, whole};

/// An address that no other process' tests have.
fn address(number: u8) -> IpAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    IpAddr::from([127, high | 0x80, low, number])
}

fn member(address: IpAddr) -> Port {
    open(Some(address), &Faults::default(), None).unwrap()
}

fn slot(port: &Port) -> u8 {
    port.membership.as_ref().unwrap().slot
}

/// Sends each of them packets of its own, and checks that nobody gets another's.
fn each_gets_its_own(members: &mut [Port]) {
    let two = |port: &Port| [1, 2].map(|salt| addressed(port, parts(12, &[256], salt)));
    let packets: Vec<_> = members.iter().map(two).collect();
    each_gets(members, &packets);
}

/// Sends each of them these packets, and checks that nobody gets another's.
fn each_gets(members: &mut [Port], packets: &[[Parts; 2]]) {
    let transmitter = &members[0].transmitter;
    for packets in packets {
        let flow = transmitter.flow(members[0].address, 5, 0, 0);
        send(transmitter, &flow, packets);
    }
    for (port, packets) in members.iter_mut().zip(packets) {
        let expected = packets.each_ref().map(whole);
        assert_eq!(collect(port, packets.len()), expected);
        let others = port.receiver.receive(|_| true, |_| ());
        assert_eq!(others, 0, "another's packet");
    }
}

#[test]
fn members_get_their_own_packets_while_others_come_and_go() {
    let _turn = turn_on_ipv6_loopback();
    for address in [address(1), Ipv6Addr::LOCALHOST.into()] {
        let mut members = vec![member(address), member(address), member(address)];
        each_gets_its_own(&mut members);
        // The kernel would put the last one's socket into the place of the first.
        let freed = slot(&members.remove(0));
        each_gets_its_own(&mut members);
        members.push(member(address));
        assert_eq!(slot(&members[2]), freed);
        each_gets_its_own(&mut members);
        members.remove(0);
        members.remove(0);
        each_gets_its_own(&mut members);
    }
}

#[test]
fn nobody_gets_packets_for_a_slot_that_is_free() {
    let mut members = [member(address(2)), member(address(2))];
    let gone = member(address(2));
    let packets = [addressed(&gone, parts(12, &[64], 1))];
    let sender = loopback_port();
    let flow = sender.transmitter.flow(gone.address, 5, 0, 0);
    drop(gone);
    send(&sender.transmitter, &flow, &packets);
    each_gets_its_own(&mut members);
    // Nor does its next owner.
    let mut next = member(address(2));
    assert_eq!(next.receiver.receive(|_| true, |_| ()), 0);
}

#[test]
fn there_are_so_many_slots_and_no_more() {
    let first = member(address(3));
    let user = rustix::process::geteuid().as_raw();
    let others: Vec<UnixListener> = (1..SLOTS)
        .map(|slot| format!("softroce/{user}/{}/{slot}", first.address))
        .map(|name| SocketAddr::from_abstract_name(name).unwrap())
        .map(|name| UnixListener::bind_addr(&name).unwrap())
        .collect();
    let error = open(Some(first.address), &Faults::default(), None);
    let error = error.err().unwrap();
    assert_eq!(os_error(&error), Some(libc::EADDRINUSE));
    drop(others);
    assert_ne!(slot(&member(address(3))), slot(&first));
}

#[test]
fn many_may_join_at_once() {
    let joining = [(); 6].map(|()| std::thread::spawn(|| member(address(4))));
    each_gets_its_own(&mut joining.map(|it| it.join().unwrap()));
}

#[test]
fn packets_of_two_members_are_in_two_gso_batches() {
    let members = [member(address(5)), member(address(5))];
    let flows = members.each_ref().map(|to| {
        let flow = members[0].transmitter.flow(to.address, 5, 0, 0);
        [7, 9].map(|number| flow.clone().to_process_of(with_slot(number, slot(to))))
    });
    let mut gso_batch = GsoBatch::new();
    gso_batch.begin(&flows[0][0]);
    assert!(gso_batch.is_for(&flows[0][1]));
    assert!(!gso_batch.is_for(&flows[1][0]));
}

#[test]
fn answers_to_connection_managers_reach_the_one_that_asked() {
    let mut members = [address(6); 3].map(member);
    let mad = |slot: u8, salt: usize| {
        let (mut headers, mut pieces) = parts(12, &[276], salt);
        headers[5..8].copy_from_slice(&[0, 0, 1]);
        // The number of the connection, after 8 bytes of DETH, 24 of header and 4 of the sender's number.
        pieces[0][8 + 24 + 4..][..4].copy_from_slice(&(u32::from(slot) << 27 | 5).to_be_bytes());
        (headers, pieces)
    };
    let slots = members.each_ref().map(slot);
    let packets = slots.map(|slot| [1, 2].map(|salt| mad(slot, salt)));
    each_gets(&mut members, &packets);
}
