//! The device as librdmacm: two devices of this process connect by messages of their connection managers. Ids,
//! connections, the port space of datagrams, and an address that several processes share, of which the other is a
//! socket with the name that it would have.

mod testbed;

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixDatagram};
use std::ptr::null_mut;

use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::rdma_port_space::{RDMA_PS_TCP, RDMA_PS_UDP};
use rdma_sys::*;
use softroce::rdmacm;

use crate::rdmacm::testbed::{Channel, Device, Id, parameters, qp_attributes, raw_address};
use crate::support::look::SOON;
use crate::support::raw::*;

/// Both ends, connected with QPs; the channel gets the events of all.
fn connected(channel: &Channel, devices: [&Device; 2]) -> (Id, Id, Id) {
    let (listener, to) = channel.listener(devices[1]);
    let active = channel.asking(devices[0], to, b"from the client");
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(request.listener, listener.0);
    assert_eq!(request.private_data.len(), 56);
    assert!(request.private_data.starts_with(b"from the client\0"));
    let offered = request.parameters;
    // What one end serves the other asks for.
    assert_eq!((offered.responder_resources, offered.initiator_depth), (3, 2));
    // SAFETY: a live QP.
    assert_eq!(offered.qp_num, unsafe { (*active.qp).qp_num });
    let passive = Id(request.id);
    passive.make_qp();
    passive.accept(b"from the server");
    // Either end may be told first.
    for _ in 0..2 {
        let event = channel.expect(RDMA_CM_EVENT_ESTABLISHED);
        if event.id == active.0 {
            assert!(event.private_data.starts_with(b"from the server\0"));
        } else {
            assert_eq!(event.id, passive.0);
        }
    }
    (listener, active, passive)
}

#[test]
fn two_ids_connect_exchange_and_part() {
    let devices = Device::two();
    let channel = Channel::new();
    let (listener, active, passive) = connected(&channel, [&devices[0], &devices[1]]);
    active.transfer(&passive, None);
    passive.transfer(&active, None);
    // SAFETY: a live id.
    let peer_port = u16::from_be(unsafe { rdmacm::get_dst_port(passive.0) });
    assert_eq!(peer_port, active.local_port());
    assert_eq!(passive.local_port(), listener.local_port());
    assert_eq!(passive.port_num, 1);
    passive.disconnect();
    assert_eq!(passive.qp_state(), ibv_qp_state::IBV_QPS_ERR);
    channel.expect_of_both(RDMA_CM_EVENT_DISCONNECTED);
    // The other end's answer, which is late: nothing is left to tell.
    active.disconnect();
    channel.expect_of_both(RDMA_CM_EVENT_TIMEWAIT_EXIT);
    assert!(channel.waiting().is_none());
}

#[test]
fn an_id_without_a_qp_is_told_the_transitions() {
    let devices = Device::two();
    let channel = Channel::new();
    let (_listener, to) = channel.listener(&devices[1]);
    let active = channel.resolved(&devices[0], to);
    let query = |id: &Id, state| {
        let (mut attr, mut mask): (ibv_qp_attr, _) = (blank(), 0);
        attr.qp_state = state;
        // SAFETY: a live id and two places.
        match unsafe { rdmacm::init_qp_attr(id.0, &raw mut attr, &raw mut mask) } {
            0 => Ok(attr),
            code => Err((code, errno())),
        }
    };
    let (rtr, rts) = (ibv_qp_state::IBV_QPS_RTR, ibv_qp_state::IBV_QPS_RTS);
    let init = query(&active, ibv_qp_state::IBV_QPS_INIT).unwrap();
    assert_eq!(init.qp_access_flags, 0);
    let too_early = Some((-1, libc::EINVAL));
    assert_eq!(query(&active, rtr).err(), too_early);
    let mut wanted = parameters(b"");
    wanted.qp_num = 0x0012_3456;
    ok(active.connect_with(&raw mut wanted));
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(request.parameters.qp_num, 0x0012_3456);
    let passive = Id(request.id);
    wanted.qp_num = 0x0065_4321;
    // SAFETY: a live id.
    ok(unsafe { rdmacm::accept(passive.0, &raw mut wanted) });
    let replied = channel.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(replied.parameters.qp_num, 0x0065_4321);
    let known = |id, state| query(id, state).unwrap();
    assert_eq!(known(&active, rtr).dest_qp_num, 0x0065_4321);
    assert_eq!(known(&passive, rtr).dest_qp_num, 0x0012_3456);
    assert_eq!(known(&active, rtr).rq_psn, known(&passive, rts).sq_psn);
    assert_eq!(known(&active, rts).sq_psn, known(&passive, rtr).rq_psn);
    // What one end asks for the other serves.
    for (asks, serves) in [(&active, &passive), (&passive, &active)] {
        let most = known(asks, rts).max_rd_atomic;
        assert_eq!(most, known(serves, rtr).max_dest_rd_atomic);
    }
    // SAFETY: a live id.
    ok(unsafe { rdmacm::establish(active.0) });
    let established = channel.expect(RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!(established.id, passive.0);
}

#[test]
fn refusals_reach_the_one_who_asked() {
    let devices = Device::two();
    let channel = Channel::new();
    let (_listener, to) = channel.listener(&devices[1]);
    let asks = |target| channel.asking(&devices[0], target, b"");
    let no_listener = 8;
    let active = asks(SocketAddr::new(to.ip(), to.port() ^ 1));
    assert_eq!(channel.expect(RDMA_CM_EVENT_REJECTED).status, no_listener);
    assert_eq!(active.qp_state(), ibv_qp_state::IBV_QPS_ERR);

    let by_the_program = 28;
    let _refused = asks(to);
    let passive = Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    passive.reject(b"no");
    let refused = channel.expect(RDMA_CM_EVENT_REJECTED);
    assert_eq!(refused.status, by_the_program);
    assert!(refused.private_data.starts_with(b"no\0"));

    // A request that is taken and dropped, and one that is never taken.
    let _dropped = asks(to);
    drop(Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id));
    assert_eq!(channel.expect(RDMA_CM_EVENT_REJECTED).status, by_the_program);
}

#[test]
fn requests_of_a_listener_that_goes_are_refused() {
    let devices = Device::two();
    let (channel, other) = (Channel::new(), Channel::new());
    let (listener, to) = channel.listener(&devices[1]);
    let _active = other.asking(&devices[0], to, b"");
    // SAFETY: a live channel.
    readable(unsafe { (*channel.0).fd }, "a request");
    drop(listener);
    assert_eq!(other.expect(RDMA_CM_EVENT_REJECTED).status, 28);
    assert!(channel.waiting().is_none());
}

#[test]
fn an_address_that_does_not_answer_is_unreachable() {
    let device = Device::open("");
    let at = |last| UdpSocket::bind((Ipv4Addr::new(127, 3, 141, last), 4791));
    let silent = (2..255).find_map(|last| at(last).ok()).unwrap();
    let channel = Channel::new();
    let to = SocketAddr::new(silent.local_addr().unwrap().ip(), 7471);
    let _active = channel.asking(&device, to, b"");
    let event = channel.expect(RDMA_CM_EVENT_UNREACHABLE);
    assert_eq!(event.status, -libc::ETIMEDOUT);
}

// Over a link that loses, repeats and reorders, in both directions, so that of messages and answers fewer come through than
// its figures say, and a manager gives up after 16: a link that is so bad that some connections fail shows nothing.

#[test]
fn a_connection_comes_and_goes_over_a_bad_link() {
    for seed in [1, 2, 3] {
        let faults = format!("drop=20%,duplicate=20%,reorder=10%,seed={seed}");
        let devices = [Device::open(&faults), Device::open("")];
        let channel = Channel::new();
        let (_listener, active, passive) = connected(&channel, [&devices[0], &devices[1]]);
        active.transfer(&passive, None);
        active.disconnect();
        channel.expect_of_both(RDMA_CM_EVENT_DISCONNECTED);
    }
}

#[test]
fn many_connections_over_a_bad_link() {
    const CONNECTIONS: usize = 100;
    let devices = [Device::open("drop=10%,seed=5"), Device::open("")];
    let channel = Channel::new();
    let (_listener, to) = channel.listener(&devices[1]);
    let active: Vec<Id> = (0..CONNECTIONS).map(|_| channel.resolved(&devices[0], to)).collect();
    active.iter().for_each(Id::make_qp);
    // More than the listener's backlog ask at once.
    active.iter().for_each(|id| id.connect(b""));
    let mut passive = Vec::new();
    let mut established = 0;
    while established < 2 * CONNECTIONS {
        let event = channel.next();
        match event.kind {
            RDMA_CM_EVENT_CONNECT_REQUEST => {
                let id = Id(event.id);
                id.make_qp();
                id.accept(b"");
                passive.push(id);
            }
            RDMA_CM_EVENT_ESTABLISHED => established += 1,
            kind => panic!("event {kind}, status {}", event.status),
        }
    }
    assert_eq!(passive.len(), CONNECTIONS);
}

const QKEY: u32 = 0x0123_4567;

fn listener(channel: &Channel, at: &Device) -> (Id, SocketAddr) {
    let id = channel.id_of(RDMA_PS_UDP);
    let port = id.listen(at.address);
    (id, SocketAddr::new(at.address, port))
}

/// An id whose request for a QP is on its way.
fn asking(channel: &Channel, from: &Device, to: SocketAddr) -> Id {
    let id = channel.resolved_of(RDMA_PS_UDP, from, to);
    id.make_qp();
    id.connect(b"which QP?");
    id
}

#[test]
fn the_qp_of_a_service_is_told_and_gets_datagrams() {
    let devices = Device::two();
    let channel = Channel::new();
    let (listener, to) = listener(&channel, &devices[1]);
    let active = asking(&channel, &devices[0], to);
    assert_eq!(active.qp_state(), ibv_qp_state::IBV_QPS_RTS);
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(request.listener, listener.0);
    assert_eq!(request.private_data.len(), 180);
    assert!(request.private_data.starts_with(b"which QP?\0"));
    let passive = Id(request.id);
    assert_eq!((passive.ps, passive.qp_type), (RDMA_PS_UDP, UD));
    passive.make_qp();
    passive.accept(b"this one");
    let found = channel.expect(RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!((found.id, found.status), (active.0, 0));
    assert_eq!(found.private_data.len(), 136);
    assert!(found.private_data.starts_with(b"this one\0"));
    let mut path = found.datagrams;
    // SAFETY: a live QP.
    let qpn = unsafe { (*passive.qp).qp_num };
    assert_eq!((path.qp_num, path.qkey), (qpn, QKEY));
    active.transfer(&passive, Some(&mut path));
    // The end that was request is told nothing more.
    assert!(channel.waiting().is_none());
    for id in [&active, &passive] {
        id.disconnect();
        assert_eq!(id.qp_state(), ibv_qp_state::IBV_QPS_ERR);
    }
    assert!(channel.waiting().is_none(), "there is no connection to end");
}

#[test]
fn a_service_that_nobody_offers_or_that_refuses_is_unreachable() {
    let devices = Device::two();
    let channel = Channel::new();
    let (_listener, to) = listener(&channel, &devices[1]);
    let nobody = SocketAddr::new(to.ip(), to.port() ^ 1);
    let unknown = asking(&channel, &devices[0], nobody);
    let unsupported = channel.expect(RDMA_CM_EVENT_UNREACHABLE);
    assert_eq!((unsupported.id, unsupported.status), (unknown.0, 1), "not supported");
    let active = asking(&channel, &devices[0], to);
    let passive = Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    passive.reject(b"no");
    let refused = channel.expect(RDMA_CM_EVENT_UNREACHABLE);
    assert_eq!((refused.id, refused.status), (active.0, 2), "refused");
    assert!(refused.private_data.starts_with(b"no\0"));
}

#[test]
fn each_port_space_has_ports_of_its_own() {
    let devices = Device::two();
    let channel = Channel::new();
    let (datagrams, to) = listener(&channel, &devices[1]);
    let connections = channel.id();
    ok(connections.bind(to.ip(), to.port()));
    ok(connections.listen_as_bound());
    for (space, listener) in [(RDMA_PS_UDP, &datagrams), (RDMA_PS_TCP, &connections)] {
        let active = channel.resolved_of(space, &devices[0], to);
        active.make_qp();
        active.connect(b"");
        let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
        let passive = Id(request.id);
        assert_eq!((request.listener, passive.ps), (listener.0, space));
        passive.reject(b"");
        channel.next();
    }
}

#[test]
fn attributes_for_a_qp_of_the_program_have_the_key() {
    let device = Device::open("");
    let channel = Channel::new();
    let id = channel.resolved_of(RDMA_PS_UDP, &device, SocketAddr::new(device.address, 1));
    let (mut attr, mut mask): (ibv_qp_attr, i32) = (blank(), 0);
    attr.qp_state = ibv_qp_state::IBV_QPS_INIT;
    // SAFETY: a live id and places for what is told.
    ok(unsafe { rdmacm::init_qp_attr(id.0, &mut attr, &mut mask) });
    assert_eq!((attr.qkey, attr.port_num), (QKEY, 1));
    let bits = ibv_qp_attr_mask::IBV_QP_STATE
        | ibv_qp_attr_mask::IBV_QP_PKEY_INDEX
        | ibv_qp_attr_mask::IBV_QP_PORT
        | ibv_qp_attr_mask::IBV_QP_QKEY;
    assert_eq!(mask, bits.0 as i32);
}

#[test]
fn ports_are_given_once() {
    let device = Device::open("");
    let channel = Channel::new();
    let first = channel.id();
    let port = first.listen(device.address);
    assert!(port >= 32768);
    let second = channel.id();
    let bind = |id: &Id, wanted| (id.bind(device.address, wanted), errno());
    assert_eq!(bind(&second, port), (-1, libc::EADDRINUSE));
    assert_eq!(bind(&first, 0), (-1, libc::EINVAL), "bound");
    drop(first);
    ok(second.bind(device.address, port));
}

#[test]
fn the_device_of_a_bound_id_is_told() {
    let device = Device::open("");
    let channel = Channel::new();
    let id = channel.id();
    let foreign = IpAddr::from([192, 0, 2, 77]);
    assert_eq!((id.bind(foreign, 0), errno()), (-1, libc::ENODEV));
    ok(id.bind(device.address, 0));
    // SAFETY: its device is open, and has a name.
    let name = unsafe { CStr::from_ptr((*(*id.verbs).device).name.as_ptr()) };
    assert_eq!((name, id.port_num), (c"soft0", 1));
    assert!(!id.pd.is_null());
}

#[test]
fn other_port_spaces_are_refused() {
    let channel = Channel::new();
    let mut id = null_mut();
    let space = rdma_port_space::RDMA_PS_IPOIB;
    // SAFETY: a live channel and a place for the pointer.
    let code = unsafe { rdmacm::create_id(channel.0, &raw mut id, null_mut(), space) };
    assert_eq!((code, errno()), (-1, libc::EOPNOTSUPP));
}

#[test]
fn too_much_private_data_and_too_many_reads_are_refused() {
    let device = Device::open("");
    let channel = Channel::new();
    let id = channel.resolved(&device, SocketAddr::new(device.address, 1));
    let mut greedy = parameters(b"");
    greedy.initiator_depth = 200;
    for mut refused in [parameters(&[0; 57]), greedy] {
        let code = id.connect_with(&raw mut refused);
        assert_eq!((code, errno()), (-1, libc::EINVAL));
    }
}

#[test]
fn a_refusal_is_the_error_of_a_call_that_waits() {
    let device = Device::open("");
    let node = CString::new(device.address.to_string()).unwrap();
    let mut source = raw_address((device.address, 0).into());
    let mut hints: rdma_addrinfo = blank();
    hints.ai_src_addr = (&raw mut source).cast();
    hints.ai_src_len = size_of_val(&source) as u32;
    hints.ai_port_space = RDMA_PS_TCP as i32;
    let (mut found, mut id) = (null_mut(), null_mut());
    let (node, port, mut init) = (node.as_ptr(), c"9".as_ptr(), qp_attributes(RC));
    // SAFETY: strings, hints, attributes and places for the pointers; the addresses are not used again.
    unsafe {
        ok(rdmacm::getaddrinfo(node, port, &hints, &mut found));
        ok(rdmacm::create_ep(&mut id, found, null_mut(), &mut init));
        rdmacm::freeaddrinfo(found);
    }
    // Its end may change errno.
    let id = Id(id);
    let outcome = (id.connect_with(null_mut()), errno());
    assert_eq!(outcome, (-1, libc::ECONNREFUSED));
}

#[test]
fn events_move_with_their_id() {
    let device = Device::open("");
    let (old, new) = (Channel::new(), Channel::new());
    let id = old.id();
    id.resolve_addr(None, SocketAddr::new(device.address, 1));
    // SAFETY: a live id and a live channel.
    ok(unsafe { rdmacm::migrate_id(id.0, new.0) });
    assert_eq!(id.channel, new.0);
    assert!(old.waiting().is_none());
    let event = new.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_eq!(event.id, id.0);
}

/// rping's client ends by one thread while another one asks for the next event.
#[test]
fn a_channel_that_is_gone_is_no_channel() {
    let channel = Channel::new();
    let gone = channel.0;
    drop(channel);
    let mut event = null_mut();
    // SAFETY: the channel's address is looked for before anything is read there, and this thread has made no other.
    let returned = unsafe { rdmacm::get_cm_event(gone, &raw mut event) };
    assert_eq!((returned, errno()), (-1, libc::EBADF));
}

#[test]
fn the_structs_are_those_of_the_header() {
    // <rdma/rdma_cma.h> of rdma-core 44 on a 64-bit machine.
    let of_ids = [size_of::<rdma_cm_id>(), size_of::<rdma_cm_event>()];
    let of_calls = [size_of::<rdma_conn_param>(), size_of::<rdma_addrinfo>()];
    assert_eq!((of_ids, of_calls), ([416, 80], [24, 96]));
}

#[test]
fn an_id_on_every_address_is_reached_by_each_device() {
    let devices = Device::two();
    let channel = Channel::new();
    let listener = channel.id();
    ok(listener.listen_as_bound());
    let port = listener.local_port();
    for (from, to) in [(0, 1), (1, 0), (0, 0)] {
        let to = SocketAddr::new(devices[to].address, port);
        let active = channel.resolved(&devices[from], to);
        active.connect(b"");
        let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
        let _passive = Id(request.id);
        drop(active);
        let gone = channel.expect(RDMA_CM_EVENT_REJECTED);
        assert_eq!((gone.id, gone.status), (request.id, 4), "it gave up");
    }
}

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
    let again = channel.id().bind(ours.ip(), ours.port());
    assert_eq!((again, errno()), (-1, libc::EADDRINUSE));
    let own = channel.resolved(&device, ours);
    own.connect(b"");
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    drop((own, Id(request.id)));
    // What this process hears and the other listens for goes there: the sender, and the datagram.
    let active = channel.resolved(&device, theirs);
    active.connect(b"");
    let mut datagram = [0; 300];
    let length = other.recv(&mut datagram).unwrap();
    assert_eq!(length, 16 + 256);
    let IpAddr::V4(from) = device.address else {
        panic!("{}", device.address);
    };
    assert_eq!(datagram[..16], from.to_ipv6_mapped().octets());
    assert_eq!(datagram[16 + 24 + 8..][..8], (0x0106_0000_u64 | 7471).to_be_bytes());
    drop(active);
    // With the process goes what it had.
    drop(other);
    let successor = channel.id();
    ok(successor.bind(theirs.ip(), theirs.port()));
}

/// Where processes share the address, a port is a socket's name, and the thread of the connection managers waits for the
/// socket.
#[test]
fn a_port_is_free_as_soon_as_its_id_is_gone() {
    let channel = Channel::new();
    let kept = channel.id();
    ok(kept.bind(address(3), 0));
    for _ in 0..1000 {
        ok(channel.id().bind(address(3), 7471));
    }
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
    let mut datagram = [0; 300];
    let length = other.recv(&mut datagram).unwrap();
    // As if it were for this one.
    datagram[16 + 24 + 8 + 6..][..2].copy_from_slice(&at.port().to_be_bytes());
    other.send_to_addr(&datagram[..length], &name_of(at)).unwrap();
    ok(id.listen_as_bound());
    let request = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(request.listener, id.0);
    assert!(request.private_data.starts_with(b"for the other\0"));
    let passive = Id(request.id);
    passive.make_qp();
    passive.accept(b"");
    let both = channel.expect_of_both(RDMA_CM_EVENT_ESTABLISHED);
    assert!(both.contains(&active.0) && both.contains(&passive.0));
}
