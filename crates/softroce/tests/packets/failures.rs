//! QPs that fail: all that is posted is flushed, and the program is told once.

use std::sync::Arc;

use softroce::transport::{Kind, QpEvent, ReceiveSource, RecvQueue, Sge, State, Status};
use softroce::wire::{Deth, Extended, Opcode, Packet, Service};

use crate::device::{Device, PSN, Plan};
use crate::peer::{Peer, QPN};

#[test]
fn sends_are_flushed_when_the_cq_of_receives_overruns() {
    let peer = Peer::new();
    let plan = Plan {
        receive_completions: 1,
        ..Plan::default()
    };
    let device = Device::new(&peer, plan);
    device.post_send(3, 8);
    for wr_id in 0..2 {
        device.qp.post_recv(wr_id, &[device.sge(8)]).unwrap();
        let packet = Packet {
            payload: &[7; 8],
            ..device.packet(Opcode::SendOnly, PSN + wr_id as u32)
        };
        peer.send(device.nic.address(), &packet);
    }
    let flushed = &Device::completions(&device.send_cq, 1)[0];
    assert_eq!((flushed.wr_id, flushed.status), (3, Status::FlushError));
    assert_eq!(device.qp.state(), State::Err);
    assert_eq!(*device.events.lock().unwrap(), [QpEvent::Fatal]);
}

#[test]
fn the_last_receive_of_a_shared_queue_is_told_once() {
    let peer = Peer::new();
    let plan = Plan {
        receives: ReceiveSource::Shared(Arc::new(RecvQueue::new(4, 1, None))),
        ..Plan::default()
    };
    let device = Device::new(&peer, plan);
    device.qp.fail();
    device.qp.fail();
    assert_eq!(*device.events.lock().unwrap(), [QpEvent::LastWqeReached]);
    device.qp.reset();
    device.qp.initialize(softroce::transport::Access(15), 7);
    device.qp.fail();
    assert_eq!(
        *device.events.lock().unwrap(),
        [QpEvent::LastWqeReached; 2],
        "once each time"
    );
}

#[test]
fn an_unreliable_qp_fails_with_a_receive_whose_key_is_wrong() {
    let peer = Peer::new();
    for (kind, service) in [(Kind::Uc, Service::Uc), (Kind::Ud, Service::Ud)] {
        let device = Device::new(
            &peer,
            Plan {
                kind,
                ..Plan::default()
            },
        );
        let wrong = Sge {
            lkey: !device.key,
            ..device.sge(100)
        };
        device.qp.post_recv(1, &[wrong]).unwrap();
        device.qp.post_recv(2, &[device.sge(100)]).unwrap();
        let deth = Deth {
            qkey: 7,
            source_qpn: QPN,
        };
        let packet = Packet {
            service,
            ack_request: false,
            extended: Extended {
                deth: (kind == Kind::Ud).then_some(deth),
                ..Extended::default()
            },
            payload: &[7; 8],
            ..device.packet(Opcode::SendOnly, PSN)
        };
        peer.send(device.nic.address(), &packet);
        let ended: Vec<_> = Device::completions(&device.recv_cq, 2)
            .iter()
            .map(|it| (it.wr_id, it.status))
            .collect();
        let expected = [(1, Status::LocalProtectionError), (2, Status::FlushError)];
        assert_eq!(ended, expected, "{kind:?}");
        assert_eq!(device.qp.state(), State::Err, "{kind:?}");
    }
}

#[test]
fn what_has_completed_is_acknowledged_before_its_qp_is_given_up() {
    let give_up: [fn(&Device); 2] = [|device| device.qp.fail(), |device| device.qp.reset()];
    for give_up in give_up {
        let peer = Peer::new();
        let device = Device::new(&peer, Plan::default());
        device.qp.post_recv(1, &[device.sge(8)]).unwrap();
        let packet = Packet {
            payload: &[7; 8],
            ..device.packet(Opcode::SendOnly, PSN)
        };
        peer.send(device.nic.address(), &packet);
        Device::completions(&device.recv_cq, 1);
        give_up(&device);
        let answer = peer.one_answer();
        assert_eq!(answer.first(), Some(&(Opcode::Acknowledge as u8)));
    }
}
