//! Connections over a link that loses, repeats and reorders. It does so in both directions, so that of messages and
//! answers fewer come through than its figures say, and a manager gives up after 16: a link that is so bad that some
//! connections fail shows nothing.

use rdma_sys::rdma_cm_event_type::*;

use super::connections::{connected, exchange};
use super::testbed::{Channel, Device, Id};

#[test]
fn a_connection_comes_and_goes_over_a_bad_link() {
    for seed in [1, 2, 3] {
        let faults = format!("drop=20%,duplicate=20%,reorder=10%,seed={seed}");
        let devices = [Device::open(&faults), Device::open("")];
        let channel = Channel::new();
        let (_listener, active, passive) = connected(&channel, [&devices[0], &devices[1]]);
        exchange(&active, &passive);
        active.disconnect();
        for _ in 0..2 {
            channel.expect(RDMA_CM_EVENT_DISCONNECTED);
        }
    }
}

#[test]
fn many_connections_over_a_bad_link() {
    const CONNECTIONS: usize = 100;
    let devices = [Device::open("drop=10%,seed=5"), Device::open("")];
    let channel = Channel::new();
    let (_listener, to) = channel.listener(&devices[1]);
    let active: Vec<Id> = (0..CONNECTIONS)
        .map(|_| channel.resolved(&devices[0], to))
        .collect();
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
