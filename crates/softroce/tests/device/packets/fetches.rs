//! READs that are more than agreed on. READs that are repeated without end are tested in the transport.

use softroce::transport::{Kind, QpEvent, State};
use softroce::wire::{Opcode, Packet};

use super::{MTU, PSN, device, plan};
use crate::support::end::Plan;
use crate::support::peer::Peer;

#[test]
fn more_reads_at_once_than_agreed_are_an_invalid_request() {
    const BYTES: u32 = 16 << 20;
    let peer = Peer::new();
    let plan = Plan {
        memory_bytes: BYTES as usize,
        ..plan(Kind::Rc)
    };
    let device = device(&peer, &plan);
    for number in 0..64 {
        let psn = PSN.wrapping_add(number * (BYTES / MTU));
        let read = Packet {
            extended: device.reth(BYTES),
            ..device.packet(Opcode::ReadRequest, psn)
        };
        peer.send(device.nic.address(), &read);
    }
    // The event comes after the state.
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
    assert_eq!(device.qps[0].state(), State::Err);
}
