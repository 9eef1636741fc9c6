//! The port space of datagrams: the QP of a service is looked up.

use std::net::SocketAddr;

use rdma_sys::rdma_cm_event_type::*;
use rdma_sys::rdma_port_space::{RDMA_PS_TCP, RDMA_PS_UDP};
use rdma_sys::*;
use softroce::rdmacm;

use super::testbed::{Channel, Device, Id};
use crate::support::raw::*;

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
    let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_eq!(asked.listener, listener.0);
    assert_eq!(asked.private_data.len(), 180);
    assert!(asked.private_data.starts_with(b"which QP?\0"));
    let passive = Id(asked.id);
    assert_eq!((passive.ps, passive.qp_type), (RDMA_PS_UDP, UD));
    passive.make_qp();
    passive.accept(b"this one");
    let found = channel.expect(RDMA_CM_EVENT_ESTABLISHED);
    assert_eq!((found.id, found.status), (active.0, 0));
    assert_eq!(found.private_data.len(), 136);
    assert!(found.private_data.starts_with(b"this one\0"));
    let mut told = found.datagrams;
    // SAFETY: a live QP.
    let qpn = unsafe { (*passive.qp).qp_num };
    assert_eq!((told.qp_num, told.qkey), (qpn, QKEY));
    active.transfer(&passive, Some(&mut told));
    // The end that was asked is told nothing more.
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
    let active = asking(&channel, &devices[0], nobody);
    let told = channel.expect(RDMA_CM_EVENT_UNREACHABLE);
    assert_eq!((told.id, told.status), (active.0, 1), "not supported");
    let active = asking(&channel, &devices[0], to);
    let passive = Id(channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST).id);
    passive.reject(b"no");
    let told = channel.expect(RDMA_CM_EVENT_UNREACHABLE);
    assert_eq!((told.id, told.status), (active.0, 2), "refused");
    assert!(told.private_data.starts_with(b"no\0"));
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
        let asked = channel.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
        let passive = Id(asked.id);
        assert_eq!((asked.listener, passive.ps), (listener.0, space));
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
