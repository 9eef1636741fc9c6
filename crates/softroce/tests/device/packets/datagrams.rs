//! What leaves for an address handle.

use std::io;
use std::mem::zeroed;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use softroce::transport::{Datagram, Kind, Operation, SendRequest};

use super::{connected_by, plan};
use crate::support::end::{QKEY, request};
use crate::support::peer::{QPN, set_ip_option};

#[derive(Default)]
pub struct Seen {
    port: u16,
    pub traffic_class: u8,
    hop_limit: i32,
}

pub fn header(socket: &UdpSocket) -> Seen {
    let (mut bytes, mut control) = ([0_u8; 2048], [0_u64; 16]);
    let mut piece = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: zeroes are an empty name and an empty message.
    let (mut name, mut message): (libc::sockaddr_in, libc::msghdr) = unsafe { zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = size_of::<libc::sockaddr_in>() as _;
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    socket.set_nonblocking(false).unwrap();
    // SAFETY: the message points to a name, a piece and control bytes that outlive the call.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    assert!(received > 0, "{}", io::Error::last_os_error());
    let mut seen = Seen {
        port: u16::from_be(name.sin_port),
        ..Seen::default()
    };
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
    let (peer, device) = connected_by(&plan(Kind::Ud));
    set_ip_option(&peer.inbox, libc::IP_RECVTOS, 1);
    set_ip_option(&peer.inbox, libc::IP_RECVTTL, 1);
    let seen = |flow_label, traffic_class, hop_limit| {
        let sges = [device.sge(0, 8)];
        let mut request = Some(SendRequest {
            datagram: Some(Datagram {
                address: peer.address.into(),
                qpn: QPN,
                qkey: QKEY,
                flow_label,
                traffic_class,
                hop_limit,
            }),
            ..request(1, Operation::Send, &sges)
        });
        // SAFETY: nothing is inline.
        unsafe { device.qps[0].post_send(|| request.take()) }.unwrap();
        header(&peer.inbox)
    };
    let marked = seen(0, 0x68, 9);
    assert_eq!((marked.traffic_class, marked.hop_limit), (0x68, 9));
    let plain = seen(0, 0, 0);
    assert_eq!((plain.traffic_class, plain.port), (0, marked.port));
    // One source port may be the same as that of another label; all of them are not.
    let ports = (1..20).map(|label| seen(label, 0, 0).port);
    assert!(ports.into_iter().any(|port| port != plain.port));
}
