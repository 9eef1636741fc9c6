//! Members of one address, all in this process: who gets which packets, while others come and go.

use std::net::{IpAddr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::super::{Claim, Faults, GsoBatch, Port, SLOTS, hand_on, open, os_error, with_slot};
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
    let packets: Vec<_> = members
        .iter()
        .map(|port| [1, 2].map(|salt| addressed(port, parts(12, &[256], salt))))
        .collect();
    each_gets(members, &packets);
}

/// Sends each of them these packets, and checks that nobody gets another's.
fn each_gets(members: &mut [Port], packets: &[[Parts; 2]]) {
    let transmitter = &members[0].transmitter;
    for both in packets {
        let flow = transmitter.flow(members[0].common.address, 5, 0, 0);
        send(transmitter, &flow, both);
    }
    for (port, both) in members.iter_mut().zip(packets) {
        let expected = both.each_ref().map(whole);
        assert_eq!(collect(port, both.len()), expected);
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
    let flow = sender.transmitter.flow(gone.common.address, 5, 0, 0);
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
        .map(|slot| format!("softroce/{user}/{}/{slot}", first.common.address))
        .map(|name| SocketAddr::from_abstract_name(name).unwrap())
        .map(|name| UnixListener::bind_addr(&name).unwrap())
        .collect();
    let error = open(Some(first.common.address), &Faults::default(), None).err().unwrap();
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
        let flow = members[0].transmitter.flow(to.common.address, 5, 0, 0);
        [7, 9].map(|number| flow.clone().to_process_of(with_slot(number, slot(to))))
    });
    let mut gso_batch = GsoBatch::new();
    gso_batch.begin(&flows[0][0]);
    assert!(gso_batch.is_for(&flows[0][1]));
    assert!(!gso_batch.is_for(&flows[1][0]));
}

/// A message of a connection manager with this attribute and these first two numbers.
fn mad(attribute: u16, numbers: [u32; 2], salt: usize) -> Parts {
    let (mut headers, mut pieces) = parts(12, &[276], salt);
    headers[5..8].copy_from_slice(&[0, 0, 1]);
    // After 8 bytes of DETH.
    let whole = &mut pieces[0][8..];
    whole[16..18].copy_from_slice(&attribute.to_be_bytes());
    whole[24..28].copy_from_slice(&numbers[0].to_be_bytes());
    whole[28..32].copy_from_slice(&numbers[1].to_be_bytes());
    (headers, pieces)
}

/// The number that the process of this slot has given to a connection.
fn number_of(slot: u8) -> u32 {
    u32::from(slot) << 27 | 5
}

#[test]
fn answers_to_connection_managers_reach_the_one_that_asked() {
    let mut members = [address(6); 3].map(member);
    let packets = members.each_ref().map(slot).map(|slot| {
        [
            mad(0x13, [number_of(31), number_of(slot)], 1),
            // An answer about a datagram service has the number first, and then a status.
            mad(0x18, [number_of(slot), 0xff00_0000], 2),
        ]
    });
    each_gets(&mut members, &packets);
}

#[test]
fn any_member_takes_requests_and_no_other_sees_them() {
    let mut members = [address(7); 3].map(member);
    let packets = [
        mad(0x10, [number_of(1), 0], 1),
        // A look-up has a partition key there.
        mad(0x17, [number_of(2), 0xffff_0000], 2),
    ];
    let send_both = |ports: &[Port]| {
        let transmitter = &ports[0].transmitter;
        let flow = transmitter.flow(ports[0].common.address, 5, 0, 0);
        send(transmitter, &flow, &packets);
    };
    let take = |port: &mut Port| {
        let mut taken = Vec::new();
        let requests = port.requests.as_mut().unwrap();
        requests.take(|_| true, |arrival| taken.push(arrival.bytes.to_vec()));
        taken
    };
    // Nobody has asked for them yet.
    send_both(&members);
    let begin = |port: &mut Port| port.requests.as_mut().unwrap().begin().unwrap();
    begin(&mut members[1]);
    assert!(take(&mut members[1]).is_empty());
    // Who begins does not know for how long they have waited.
    send_both(&members);
    begin(&mut members[2]);
    assert!(take(&mut members[1]).is_empty());
    for receiver in [2, 1] {
        send_both(&members);
        // On loopback they are there when the call returns.
        assert_eq!(take(&mut members[receiver]), packets.each_ref().map(whole));
        let others = [0, 1, 2].map(|it| members[it].receiver.receive(|_| true, |_| ()));
        assert_eq!(others, [0; 3]);
    }
}

#[test]
fn a_service_is_of_one_process_until_it_lets_go() {
    let (at, from) = (address(8), IpAddr::from([192, 0, 2, 1]));
    let claim = Claim::new(at, 7).unwrap();
    let second = Claim::new(at, 7).err().unwrap();
    assert_eq!(second.raw_os_error(), Some(libc::EADDRINUSE));
    let _beside_it = [Claim::new(at, 8).unwrap(), Claim::new(address(9), 7).unwrap()];
    let mut room = [0; 64];
    assert_eq!(claim.take(&mut room), None);
    let senders = [from, Ipv6Addr::LOCALHOST.into()];
    for sender in senders {
        assert!(hand_on(at, 7, sender, b"request"));
    }
    for sender in senders {
        assert_eq!(claim.take(&mut room), Some((sender, &b"request"[..])));
    }
    drop(claim);
    assert!(!hand_on(at, 7, from, b"request"));
    Claim::new(at, 7).unwrap();
}
