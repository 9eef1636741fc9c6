//! An address that several processes share: who listens at which port. The other process is a socket with the name that it
//! would have.

use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixDatagram};

use rdma_sys::rdma_cm_event_type::*;

use super::testbed::{Channel, Device, Id};
use crate::support::look::SOON;
use crate::support::raw::{errno, ok};

/// An address that no other process' tests have.
fn address(number: u8) -> IpAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    IpAddr::from([127, high | 0x80, low, number])
}

/// The name of who has a port for connections.
fn name_of(at: SocketAddr) -> net::SocketAddr {
    // SAFETY: it takes nothing.
    let user = unsafe { libc::geteuid() };
    let service = 0x0106_0000 | u32::from(at.port());
    let name = format!("softroce/{user}/{}/service/{service:x}", at.ip());
    net::SocketAddr::from_abstract_name(name).unwrap()
}

/// A process that has a port for connections.
fn other_process(at: SocketAddr) -> UnixDatagram {
    let socket = UnixDatagram::bind_addr(&name_of(at)).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    socket
}

#[test]
fn a_port_is_of_one_process_and_gets_its_requests() {
    let device = Device::open("");
    let channel = Channel::new();
    let theirs = SocketAddr::new(address(1), 7471);
    let other = other_process(theirs);
    let id = channel.id();
    let code = id.bind(theirs.ip(), theirs.port());
    assert_eq!((code, errno()), (-1, libc::EADDRINUSE));
    // One that the system gives is free in other processes too, and not here once it is given.
    let ours = SocketAddr::new(theirs.ip(), id.listen(theirs.ip()));
    let code = channel.id().bind(ours.ip(), ours.port());
    assert_eq!((code, errno()), (-1, libc::EADDRINUSE));
    let active = channel.resolved(&device, ours);
    active.connect(b"");
    let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    drop((active, Id(asked.id)));
    // What this process hears and the other listens for goes there: the sender, and the datagram.
    let active = channel.resolved(&device, theirs);
    active.connect(b"");
    let mut request = [0; 300];
    let length = other.recv(&mut request).unwrap();
    assert_eq!(length, 16 + 256);
    let IpAddr::V4(from) = device.address else {
        panic!("{}", device.address);
    };
    assert_eq!(request[..16], from.to_ipv6_mapped().octets());
    assert_eq!(request[16 + 24 + 8..][..8], (0x0106_0000_u64 | 7471).to_be_bytes());
    drop(active);
    // With the process goes what it had.
    drop(other);
    let id = channel.id();
    ok(id.bind(theirs.ip(), theirs.port()));
}

#[test]
fn requests_come_by_another_process_too() {
    let device = Device::open("");
    let channel = Channel::new();
    let at = SocketAddr::new(address(2), 7471);
    let id = channel.id();
    ok(id.bind(at.ip(), at.port()));
    // While nobody listens at the port another process has heard the request, and it waits here.
    let elsewhere = SocketAddr::new(at.ip(), 1);
    let other = other_process(elsewhere);
    let active = channel.asking(&device, elsewhere, b"for the other");
    let mut request = [0; 300];
    let length = other.recv(&mut request).unwrap();
    // As if it were for this one.
    request[16 + 24 + 8 + 6..][..2].copy_from_slice(&at.port().to_be_bytes());
    let request = &request[..length];
    other.send_to_addr(request, &name_of(at)).unwrap();
    ok(id.listen_as_bound());
    let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(asked.listener, id.0);
    assert!(asked.private_data.starts_with(b"for the other\0"));
    let passive = Id(asked.id);
    passive.make_qp();
    passive.accept(b"");
    let both = channel.expect_of_both(RDMA_CM_EVENT_ESTABLISHED);
    assert!(both.contains(&active.0) && both.contains(&passive.0));
}
