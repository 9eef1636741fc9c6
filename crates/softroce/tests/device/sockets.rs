//! What needs sockets, threads and real time: what the kernel is told, a socket that is full, memory that another
//! thread changes, a program that never polls.
//!
//! Memory that changes while the peer reads it: each READ completes with bytes that were there at some time.

use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use softroce::transport::{Datagram, Kind, Operation, SendRequest};
use softroce::wire::UDP_PORT;
use testing::own_network::in_own_network;
use testing::wait::wait_until;

use crate::support::end::{End, Plan, QKEY, pair, post, request};
use crate::support::look::SOON;

const QPS: usize = 16;
const MESSAGE_BYTES: usize = 64;

#[test]
fn posts_of_a_program_that_never_polls_arrive() {
    let (mut client, server) = pair(&Plan { qps: QPS, ..Plan::default() });
    client.memory.fill(7);
    client.cq.poll(1, |_| {}).unwrap();
    for number in 0..8 * QPS {
        let sges = [client.sge(0, MESSAGE_BYTES)];
        let operation = server.write_to(number % QPS * MESSAGE_BYTES);
        let mut unsignaled = request(7, operation, &sges);
        unsignaled.signaled = false;
        post(&client.qps[number % QPS], &[unsignaled]).unwrap();
    }
    let last = QPS * MESSAGE_BYTES - 1;
    wait_until("the last byte", SOON, || server.byte(last) == 7);
}

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

const READ_BYTES: usize = 4096;
const READS: usize = 4000;

#[test]
fn reads_of_an_object_that_is_being_updated_all_complete() {
    let (client, server) = pair(&Plan::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let start = server.address(0);
            let mut value = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                for index in 0..READ_BYTES as u64 / 8 {
                    let at = std::ptr::with_exposed_provenance_mut((start + index * 8) as usize);
                    // SAFETY: aligned, and memory of the server's, which all use as atomics meanwhile.
                    let word = unsafe { AtomicU64::from_ptr(at) };
                    word.store(value, Ordering::Relaxed);
                }
            }
        });
        // Also if it panics, since the scope waits for the other thread.
        let _stop = Stop(&stop);
        client.run(READS, 8, READ_BYTES, |_| (server.read_from(0), 0));
    });
    assert_eq!(client.counter("bad_icrc"), 0);
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Loopback at 100 Mb/s, with a queue that is longer than a socket's buffer, which is as large as any process may have it.
const SLOW_LINK: &str = "ip link set lo up && \
    tc qdisc add dev lo root tbf rate 100mbit burst 128kb limit 100mb && \
    exec setpriv --bounding-set=-net_admin \"$@\"";

#[test]
fn a_full_socket_loses_and_delays_nothing_else() {
    // The kernel needs sch_tbf.
    let own = "sockets::a_full_socket_loses_and_delays_nothing_else";
    in_own_network(own, SLOW_LINK, transfers);
}

/// All connections have it, so that all use one socket.
const FLOW_LABEL: u32 = 5;

fn transfers() {
    // More than one, because the window of each peer is smaller than the socket's buffer.
    const PEERS: usize = 12;
    // So many that the windows grow.
    const EACH: usize = 40;
    const PLACES: usize = 3;
    const BYTES: usize = 64 << 10;
    let mut plan = Plan { memory_bytes: PLACES * BYTES, ..Plan::default() };
    plan.deliveries.timeout = FOR_EVER;
    let mut peers: Vec<End> = (0..PEERS).map(|_| End::new(&plan)).collect();
    let mut from = End::new(&Plan { qps: PEERS, ..plan });
    from.fill();
    for (qp, to) in from.qps.iter().zip(&peers) {
        let back = &to.qps[0];
        from.connect_to(qp, to.nic.address(), back.number(), FLOW_LABEL);
        to.connect_to(back, from.nic.address(), qp.number(), FLOW_LABEL);
    }
    // While the program polls, and while it does not.
    for polls in [true, false] {
        for posted in 0..EACH * PEERS {
            let offset = posted / PEERS % PLACES * BYTES;
            let to = peers[posted % PEERS].write_to(offset);
            from.post(posted % PEERS, to, &[from.sge(offset, BYTES)]);
        }
        if !polls {
            let last = PLACES * BYTES - 1;
            wait_until("the last bytes", SOON, || {
                peers.iter().all(|to| to.byte(last) == from.memory[last])
            });
        }
        from.succeeds(EACH * PEERS);
        for to in &peers {
            assert!(to.memory == from.memory);
        }
        for to in &mut peers {
            to.memory.fill(0);
        }
    }
    assert!(from.counter("packets_waited") > 0, "the link is not slow");
    for nothing in ["send_errors", "timeouts", "go_backs"] {
        assert_eq!(from.counter(nothing), 0, "{nothing}");
    }
}

/// The code of a time-out of more than two hours.
const FOR_EVER: u8 = 31;
