//! QPs that fail: all that is posted is flushed, and the program is told once.

use std::sync::Arc;

use softroce::transport::{Access, Kind, QpEvent, RecvQueue, Sge, State, Status};
use softroce::wire::{Deth, Extended, Opcode, Packet};

use super::{MTU, PSN, connected, connected_by, plan};
use crate::support::end::{End, Plan, QKEY};
use crate::support::peer::QPN;

fn message(device: &End, number: u32) -> Packet<'static> {
    Packet { payload: &[7; 8], ..device.packet(Opcode::SendOnly, PSN + number) }
}

#[test]
fn sends_are_flushed_when_the_cq_of_receives_overruns() {
    let (peer, device) = connected_by(&Plan { receive_completions: Some(1), ..plan(Kind::Rc) });
    device.post_send(8);
    for number in 0..2 {
        device.qps[0].post_recv(1, &[device.sge(0, 8)]).unwrap();
        peer.send(&device, &message(&device, number));
    }
    assert_eq!(device.completion().status, Status::FlushError);
    assert_eq!(device.qps[0].state(), State::Err);
    assert_eq!(device.heard(1), [QpEvent::Fatal]);
}

#[test]
fn the_last_receive_of_a_shared_queue_is_told_once() {
    let (_peer, device) = connected_by(&Plan {
        shared: Some(Arc::new(RecvQueue::new(4, 1, None))),
        ..plan(Kind::Rc)
    });
    for times in 1..=2 {
        device.qps[0].fail();
        device.qps[0].fail();
        assert_eq!(device.heard(times), vec![QpEvent::LastWqeReached; times]);
        device.qps[0].reset();
        device.qps[0].initialize(Access(15), QKEY);
    }
}

#[test]
fn an_unreliable_qp_fails_with_a_receive_whose_key_is_wrong() {
    for kind in [Kind::Uc, Kind::Ud] {
        let (peer, device) = connected_by(&plan(kind));
        let wrong = Sge { lkey: !device.key, ..device.sge(0, 100) };
        device.qps[0].post_recv(1, &[wrong]).unwrap();
        device.qps[0].post_recv(2, &[device.sge(0, 100)]).unwrap();
        let (qkey, source_qpn) = (QKEY, QPN);
        let deth = Deth { qkey, source_qpn };
        let packet = Packet {
            ack_request: false,
            extended: Extended { deth: (kind == Kind::Ud).then_some(deth), ..Extended::default() },
            ..message(&device, 0)
        };
        peer.send(&device, &packet);
        let ended: Vec<_> =
            device.completions(&device.recv_cq, 2).iter().map(|it| (it.wr_id, it.status)).collect();
        let expected = [(1, Status::LocalProtectionError), (2, Status::FlushError)];
        assert_eq!(ended, expected, "{kind:?}");
        assert_eq!(device.qps[0].state(), State::Err, "{kind:?}");
    }
}

#[test]
fn what_has_completed_is_acknowledged_before_its_qp_is_given_up() {
    let give_up: [fn(&End); 2] = [|device| device.qps[0].fail(), |device| device.qps[0].reset()];
    for give_up in give_up {
        let (peer, device) = connected();
        device.qps[0].post_recv(1, &[device.sge(0, 8)]).unwrap();
        peer.send(&device, &message(&device, 0));
        device.completions(&device.recv_cq, 1);
        give_up(&device);
        let answer = peer.answer();
        assert_eq!(answer.first(), Some(&(Opcode::Acknowledge as u8)));
    }
}

#[test]
fn a_message_of_an_unreliable_connection_that_lacks_a_packet_leaves_its_receive_to_the_next() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    device.qps[0].post_recv(1, &[device.sge(0, 5000)]).unwrap();
    for (number, opcode, payload) in [
        (0, Opcode::SendFirst, &[1; MTU as usize][..]),
        (2, Opcode::SendLast, &[2; 8]),
        (3, Opcode::SendFirst, &[3; MTU as usize]),
        (4, Opcode::SendOnly, &[4; 8]),
    ] {
        let packet = Packet { ack_request: false, payload, ..device.packet(opcode, PSN + number) };
        peer.send(&device, &packet);
    }
    let received = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((received.wr_id, received.length_bytes), (1, 8));
    assert_eq!(device.memory[..9], [4, 4, 4, 4, 4, 4, 4, 4, 3]);
    device.counts("out_of_sequence", 1);
    device.counts("dropped_datagrams", 1);
}
