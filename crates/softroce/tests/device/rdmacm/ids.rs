//! Ids: addresses, ports, channels, and what is refused.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, SocketAddr};
use std::ptr::null_mut;

use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::*;
use softroce::rdmacm;

use super::testbed::{Channel, Device, Id, parameters, qp_attributes, raw_address};
use crate::support::raw::{RC, blank, errno, ok};

#[test]
fn ports_are_given_once() {
    let device = Device::open("");
    let channel = Channel::new();
    let first = channel.id();
    let port = first.listen(device.address);
    assert!(port >= 32768);
    let second = channel.id();
    let bind = |id: &Id, port| (id.bind(device.address, port), errno());
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
    hints.ai_port_space = rdma_port_space::RDMA_PS_TCP as i32;
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
    let told = (id.connect_with(null_mut()), errno());
    assert_eq!(told, (-1, libc::ECONNREFUSED));
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
        let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
        let _passive = Id(asked.id);
        drop(active);
        let gone = channel.expect(RDMA_CM_EVENT_REJECTED);
        assert_eq!((gone.id, gone.status), (asked.id, 4), "it gave up");
    }
}
