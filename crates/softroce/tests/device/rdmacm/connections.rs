//! Connections from the request to the end.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::*;
use softroce::rdmacm;

use super::testbed::{Channel, Device, Id, parameters};
use crate::support::raw::*;

/// Both ends, connected with QPs; the channel gets the events of all.
fn connected(channel: &Channel, devices: [&Device; 2]) -> (Id, Id, Id) {
    let (listener, to) = channel.listener(devices[1]);
    let active = channel.asking(devices[0], to, b"from the client");
    let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(asked.listener, listener.0);
    assert_eq!(asked.private_data.len(), 56);
    assert!(asked.private_data.starts_with(b"from the client\0"));
    let told = asked.parameters;
    // What one end serves the other asks for.
    assert_eq!((told.responder_resources, told.initiator_depth), (3, 2));
    // SAFETY: a live QP.
    assert_eq!(told.qp_num, unsafe { (*active.qp).qp_num });
    let passive = Id(asked.id);
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
    let told = |id: &Id, state| {
        let (mut attr, mut mask): (ibv_qp_attr, _) = (blank(), 0);
        attr.qp_state = state;
        // SAFETY: a live id and two places.
        match unsafe { rdmacm::init_qp_attr(id.0, &raw mut attr, &raw mut mask) } {
            0 => Ok(attr),
            code => Err((code, errno())),
        }
    };
    let (rtr, rts) = (ibv_qp_state::IBV_QPS_RTR, ibv_qp_state::IBV_QPS_RTS);
    let init = told(&active, ibv_qp_state::IBV_QPS_INIT).unwrap();
    assert_eq!(init.qp_access_flags, 0);
    let too_early = Some((-1, libc::EINVAL));
    assert_eq!(told(&active, rtr).err(), too_early);
    let mut wanted = parameters(b"");
    wanted.qp_num = 0x0012_3456;
    ok(active.connect_with(&raw mut wanted));
    let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(asked.parameters.qp_num, 0x0012_3456);
    let passive = Id(asked.id);
    wanted.qp_num = 0x0065_4321;
    // SAFETY: a live id.
    ok(unsafe { rdmacm::accept(passive.0, &raw mut wanted) });
    let replied = channel.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
    assert_eq!(replied.parameters.qp_num, 0x0065_4321);
    let told = |id, state| told(id, state).unwrap();
    assert_eq!(told(&active, rtr).dest_qp_num, 0x0065_4321);
    assert_eq!(told(&passive, rtr).dest_qp_num, 0x0012_3456);
    assert_eq!(told(&active, rtr).rq_psn, told(&passive, rts).sq_psn);
    assert_eq!(told(&active, rts).sq_psn, told(&passive, rtr).rq_psn);
    // What one end asks for the other serves.
    for (asks, serves) in [(&active, &passive), (&passive, &active)] {
        let most = told(asks, rts).max_rd_atomic;
        assert_eq!(most, told(serves, rtr).max_dest_rd_atomic);
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
    let asks = |to| channel.asking(&devices[0], to, b"");
    let no_listener = 8;
    let active = asks(SocketAddr::new(to.ip(), to.port() ^ 1));
    assert_eq!(channel.expect(RDMA_CM_EVENT_REJECTED).status, no_listener);
    assert_eq!(active.qp_state(), ibv_qp_state::IBV_QPS_ERR);

    let by_the_program = 28;
    let _active = asks(to);
    let passive = Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    passive.reject(b"no");
    let refused = channel.expect(RDMA_CM_EVENT_REJECTED);
    assert_eq!(refused.status, by_the_program);
    assert!(refused.private_data.starts_with(b"no\0"));

    // A request that is taken and dropped, and one that is never taken.
    let _active = asks(to);
    drop(Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id));
    let refused = channel.expect(RDMA_CM_EVENT_REJECTED);
    assert_eq!(refused.status, by_the_program);
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
