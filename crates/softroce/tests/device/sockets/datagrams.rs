//! What the kernel is told of each datagram.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use softroce::transport::{Datagram, Kind, Operation, SendRequest};
use softroce::wire::UDP_PORT;

use crate::support::end::{End, Plan, QKEY, post, request};

#[derive(Default)]
struct Seen {
    port: u16,
    traffic_class: u8,
    hop_limit: i32,
}

fn header(socket: &UdpSocket) -> Seen {
    let (mut bytes, mut control) = ([0_u8; 2048], [0_u64; 16]);
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: zeroes are an empty name and an empty message.
    let (mut name, mut message): (libc::sockaddr_in, libc::msghdr) = unsafe { zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as _;
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the message points to a name, a piece and control bytes that outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    assert!(received > 0, "{}", io::Error::last_os_error());
    let mut seen = Seen { port: u16::from_be(name.sin_port), ..Seen::default() };
    // SAFETY: the kernel has filled in the control messages.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(one) = at.as_ref() {
            let data = libc::CMSG_DATA(at);
            match one.cmsg_type {
                libc::IP_TOS => seen.traffic_class = *data,
                libc::IP_TTL => seen.hop_limit = data.cast::<i32>().read_unaligned(),
                _ => {}
            }
            at = libc::CMSG_NXTHDR(&raw const message, at);
        }
    }
    seen
}

#[test]
fn a_datagram_has_the_flow_label_traffic_class_and_hop_limit_of_its_address_handle() {
    let [.., high, low] = std::process::id().to_be_bytes();
    let inbox = UdpSocket::bind((Ipv4Addr::new(127, 88, high, low), UDP_PORT)).unwrap();
    for option in [libc::IP_RECVTOS, libc::IP_RECVTTL] {
        let on = 1_i32;
        // SAFETY: the pointer is to an int.
        let set = unsafe {
            let (value, bytes) = ((&raw const on).cast(), size_of::<i32>() as libc::socklen_t);
            libc::setsockopt(inbox.as_raw_fd(), libc::IPPROTO_IP, option, value, bytes)
        };
        assert_eq!(set, 0);
    }
    let device = End::new(&Plan { kind: Kind::Ud, ..Plan::default() });
    let address = inbox.local_addr().unwrap().ip();
    device.connect_to(&device.qps[0], address, 5, 0);
    let seen = |flow_label, traffic_class, hop_limit| {
        let sges = [device.sge(0, 8)];
        let request = SendRequest {
            datagram: Some(Datagram {
                address,
                qpn: 5,
                qkey: QKEY,
                flow_label,
                traffic_class,
                hop_limit,
            }),
            ..request(1, Operation::Send, &sges)
        };
        post(&device.qps[0], &[request]).unwrap();
        header(&inbox)
    };
    let marked = seen(0, 0x68, 9);
    assert_eq!((marked.traffic_class, marked.hop_limit), (0x68, 9));
    let plain = seen(0, 0, 0);
    assert_eq!((plain.traffic_class, plain.port), (0, marked.port));
    // One source port may be the same as that of another label; all of them are not.
    let ports = (1..20).map(|label| seen(label, 0, 0).port);
    assert!(ports.into_iter().any(|port| port != plain.port));
}
