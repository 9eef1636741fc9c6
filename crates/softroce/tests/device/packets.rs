//! Packets that no device of ours sends: broken, hostile, of other makes, or at instants of the test's choice.
//!
//! - Requests on the wire, and packets that are not taken: of another service, partition or operation, from another
//!   port of the peer's address, for QPs that do not exist, and more READs than agreed on.
//! - Marked packets, notifications of congestion (CNPs), and the rate that they leave a QP.
//! - QPs that fail: all that is posted is flushed, and the program is told once.
//! - A request that changes what a READ before it is still to be answered from, or takes its window back. Both come at one
//!   instant, so that the device cannot answer in between. What SENDs cannot take back.
//! - The protocol's times, at exact instants: time-outs, pauses, probes, and what repeated READs may cost.

use std::sync::Arc;

use softroce::transport::{
    Access, Attached, Kind, Operation, PdId, QpEvent, RecvQueue, Sge, State, Status, WindowType,
};
use softroce::wire::{
    Aeth, Cnp, Deth, Extended, NakCode, Opcode, Packet, Psn, Reth, Service, Syndrome,
    time_of_code_ns,
};

use crate::support::end::{End, Plan, QKEY, register};
use crate::support::peer::{CE, ECT_0, PORT, Peer, QPN, wire};

const PSN: u32 = 0x00ff_fffe;
const MTU: u32 = 1024;
const ACK: Syndrome = Syndrome::Ack { credits: 31 };

/// Of a QP of this service on a network of its own, which waits for ever for answers.
fn plan(kind: Kind) -> Plan {
    let mut plan = Plan {
        kind,
        memory_bytes: 64 << 10,
        send_wrs: 16,
        recv_wrs: 16,
        mtu_bytes: MTU,
        first_psn: PSN,
        receive_completions: Some(64),
        ..Plan::on(1, "")
    };
    (plan.deliveries.timeout, plan.deliveries.max_rd_atomic) = (0, 2);
    plan
}

/// A peer, and a device whose QPs are connected to it.
fn connected_by(plan: &Plan) -> (Peer, End) {
    let peer = Peer::new(plan.world.as_ref().unwrap());
    let device = End::new(plan);
    for qp in &device.qps {
        device.connect_to(qp, peer.address, QPN, 0);
    }
    (peer, device)
}

fn connected() -> (Peer, End) {
    connected_by(&plan(Kind::Rc))
}

impl End {
    fn post_send(&self, length: u32) {
        self.post(0, Operation::Send, &[self.sge(0, length as usize)]);
    }

    fn packet<'a>(&self, opcode: Opcode, psn: u32) -> Packet<'a> {
        Packet {
            service: self.plan.kind,
            opcode,
            solicited: false,
            pkey: 0xffff,
            destination_qpn: self.qps[0].number(),
            ack_request: true,
            psn: Psn::new(psn & 0x00ff_ffff),
            extended: Extended::default(),
            payload: &[],
        }
    }

    /// A WRITE of this payload to the start of its memory.
    fn write<'a>(&self, psn: u32, payload: &'a [u8]) -> Packet<'a> {
        Packet {
            extended: self.reth(payload.len() as u32),
            payload,
            ..self.packet(Opcode::WriteOnly, psn)
        }
    }

    /// The acknowledgement of its first message, with this PSN.
    fn acknowledgement(&self, psn: u32) -> Packet<'static> {
        self.answer_with(ACK, psn)
    }

    fn answer_with(&self, syndrome: Syndrome, psn: u32) -> Packet<'static> {
        Packet {
            ack_request: false,
            extended: Extended { aeth: Some(Aeth { syndrome, msn: 1 }), ..Extended::default() },
            ..self.packet(Opcode::Acknowledge, psn)
        }
    }

    fn reth(&self, length_bytes: u32) -> Extended {
        Extended {
            reth: Some(Reth { address: self.address(0), rkey: self.key, length_bytes }),
            ..Extended::default()
        }
    }
}

#[test]
fn a_packet_of_another_service_or_partition_is_dropped() {
    let (peer, device) = connected();
    let foreign = device.write(PSN, &[1; 8]);
    let service = Service::Uc;
    peer.send(&device, &Packet { service, ..foreign });
    device.counts("wrong_service", 1);
    let of_partition = |pkey| Packet { pkey, ..foreign };
    peer.send(&device, &of_partition(0x8001));
    device.counts("pkey_violations", 1);
    assert_eq!(device.memory[..8], [0; 8]);
    // A limited member of the partition may talk to a full one.
    peer.send(&device, &of_partition(0x7fff));
    assert_eq!(peer.acknowledged(), (PSN, ACK));
    assert_eq!(device.memory[..8], [1; 8]);
}

/// Sends a packet with an operation that there is not.
fn send_unknown(peer: &Peer, device: &End, psn: u32, opcode: u8) {
    let mut bytes = wire(&device.packet(Opcode::Acknowledge, psn));
    bytes[0] = opcode;
    peer.send_bytes(device, PORT, 0, &bytes);
}

#[test]
fn an_operation_that_does_not_exist_is_an_invalid_request() {
    const RESERVED: u8 = 0x15;
    let (peer, device) = connected();
    device.qps[0].post_recv(5, &[device.sge(0, 8)]).unwrap();
    // Not its turn.
    send_unknown(&peer, &device, PSN - 1, RESERVED);
    device.counts("duplicate_requests", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
    send_unknown(&peer, &device, PSN, RESERVED);
    let refused = (PSN, Syndrome::Nak(NakCode::InvalidRequest));
    assert_eq!(peer.acknowledged(), refused);
    let flushed = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((flushed.wr_id, flushed.status), (5, Status::FlushError));
    assert_eq!(device.qps[0].state(), State::Err);
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
}

#[test]
fn an_unreliable_qp_drops_operations_that_do_not_exist() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    send_unknown(&peer, &device, PSN, 0x37);
    device.counts("unparsed", 1);
    assert_eq!(device.qps[0].state(), State::Rts);
}

#[test]
fn more_reads_at_once_than_agreed_are_an_invalid_request() {
    const BYTES: u32 = 16 << 20;
    let (peer, device) = connected_by(&Plan { memory_bytes: BYTES as usize, ..plan(Kind::Rc) });
    for number in 0..64 {
        let psn = PSN.wrapping_add(number * (BYTES / MTU));
        let read =
            Packet { extended: device.reth(BYTES), ..device.packet(Opcode::ReadRequest, psn) };
        peer.send(&device, &read);
    }
    // The event comes after the state.
    assert_eq!(device.heard(1), [QpEvent::RequestError]);
    assert_eq!(device.qps[0].state(), State::Err);
}

#[test]
fn a_long_send_has_a_first_and_a_last_packet_and_asks_for_acknowledgements() {
    const PACKETS: u32 = 40;
    let (peer, mut device) = connected();
    let length = PACKETS * MTU - 5;
    device.fill();
    device.post_send(length);
    let sent = peer.answers(PACKETS as usize);
    let pieces = device.memory[..length as usize].chunks(MTU as usize);
    for ((number, bytes), piece) in (0..).zip(&sent).zip(pieces) {
        let packet = Packet::parse_body(bytes).unwrap();
        let opcode = match number {
            0 => Opcode::SendFirst,
            39 => Opcode::SendLast,
            _ => Opcode::SendMiddle,
        };
        let psn = (PSN + number) & 0x00ff_ffff;
        assert_eq!((packet.opcode, packet.psn.value()), (opcode, psn));
        // PSN 0x00ff_ffff is the second packet's; then each sixteenth, so that the peer's window moves; and the last.
        let asks = matches!(number, 1 | 17 | 33 | 39);
        assert_eq!(packet.ack_request, asks, "packet {number}");
        assert_eq!(packet.payload, piece, "packet {number}");
    }
}

#[test]
fn a_request_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    peer.send(&device, &device.write(PSN, &[1; 8]));
    peer.answer();
    let strange = wire(&device.write(PSN + 1, &[2; 8]));
    peer.send_bytes(&device, PORT + 1, 0, &strange);
    device.counts("wrong_source", 1);
    assert_eq!(device.memory[..8], [1; 8]);
    // It is the first with this PSN: a repetition would change nothing.
    peer.send(&device, &device.write(PSN + 1, &[3; 8]));
    peer.answer();
    assert_eq!(device.memory[..8], [3; 8]);
}

#[test]
fn an_answer_from_another_port_of_the_peers_address_is_dropped() {
    let (peer, device) = connected();
    for number in 0..2 {
        device.post_send(8);
        peer.answer();
        let answer = device.acknowledgement(PSN + number);
        // The peer's port is known once it has answered.
        if number > 0 {
            peer.send_bytes(&device, PORT + 1, 0, &wire(&answer));
            device.counts("wrong_source", 1);
            assert_eq!(device.cq.poll(1, |_| ()), Ok(0));
        }
        peer.send(&device, &answer);
        device.succeeds(1);
    }
}

#[test]
fn a_packet_to_no_qp_costs_no_crc() {
    let (peer, device) = connected();
    let mut packet = device.write(PSN, &[1; 8]);
    peer.send_damaged(&device, &wire(&packet));
    device.counts("bad_icrc", 1);
    packet.destination_qpn ^= 1 << 20;
    peer.send_damaged(&device, &wire(&packet));
    device.counts("unknown_qp", 1);
    assert_eq!(device.counter("bad_icrc"), 1);
}

fn cnp(device: &End) -> [u8; Cnp::BYTES] {
    let cnp = Cnp { destination_qpn: device.qps[0].number(), pkey: 0xffff };
    cnp.to_bytes()
}

#[test]
fn a_marked_packet_is_answered_by_a_cnp_and_others_are_not() {
    let (peer, device) = connected();
    for (number, class) in [0, 1, ECT_0].into_iter().enumerate() {
        let packet = device.write(PSN + number as u32, &[1; 8]);
        peer.send_bytes(&device, PORT, class, &wire(&packet));
        assert_eq!(peer.acknowledged().0, packet.psn.value());
    }
    let marked = device.write(PSN + 3, &[2; 8]);
    peer.send_bytes(&device, PORT, CE, &wire(&marked));
    let answers = peer.answers(2);
    let mut expected = [0; 28];
    expected[..5].copy_from_slice(&[0x81, 0, 0xff, 0xff, 0x40]);
    expected[5..8].copy_from_slice(&QPN.to_be_bytes()[1..]);
    assert!(answers.contains(&expected.to_vec()), "{answers:02x?}");
    peer.is_left_alone();
    device.counts("np_ecn_marked_roce_packets", 1);
    device.counts("np_cnp_sent", 1);
    assert_eq!(device.memory[..8], [2; 8]);
}

#[test]
fn cnps_are_50_us_apart() {
    let (peer, device) = connected();
    let start_ns = peer.world.now_ns();
    let marked = wire(&device.write(PSN, &[1; 8]));
    let sent = [0, 1, 49_999, 50_000, 99_999, 200_000, 249_999].map(|after_ns| {
        peer.world.run_until(start_ns + after_ns);
        peer.send_bytes(&device, PORT, CE, &marked);
        peer.world.run_until(start_ns + after_ns);
        device.counter("np_cnp_sent")
    });
    assert_eq!(sent, [1, 1, 1, 2, 2, 3, 3]);
    device.counts("np_ecn_marked_roce_packets", 7);
}

#[test]
fn a_cnp_is_answered_by_nothing() {
    let (peer, device) = connected();
    peer.send_bytes(&device, PORT, CE, &cnp(&device));
    peer.is_left_alone();
    device.counts("rp_cnp_handled", 1);
    device.counts("np_cnp_sent", 0);
}

#[test]
fn cnps_of_others_and_for_others_change_nothing() {
    let (peer, device) = connected();
    // The peer's port is known from here on.
    peer.send(&device, &device.write(PSN, &[1; 8]));
    peer.answer();
    device.post_send(8);
    peer.answer();
    peer.send(&device, &device.acknowledgement(PSN));
    device.succeeds(1);

    let right = cnp(&device);
    let changed = |at: usize, byte: u8| {
        let mut bytes = right;
        bytes[at] ^= byte;
        bytes
    };
    peer.send_bytes(&device, PORT + 1, 0, &right);
    device.counts("wrong_source", 1);
    for (bytes, crc_is_right, counter) in [
        (&changed(5, 1)[..], true, "unknown_qp"),
        (&changed(2, 0xed), true, "pkey_violations"),
        (&right[..24], true, "unparsed"),
        (&right, false, "bad_icrc"),
    ] {
        if crc_is_right {
            peer.send_bytes(&device, PORT, 0, bytes);
        } else {
            peer.send_damaged(&device, bytes);
        }
        device.counts(counter, 1);
    }
    device.qps[0].fail();
    peer.send_bytes(&device, PORT, 0, &right);
    device.counts("rp_cnp_ignored", 1);
    assert_eq!(device.counter("rp_cnp_handled"), 0);
}

#[test]
fn a_cnp_for_an_unreliable_qp_is_dropped() {
    let (peer, device) = connected_by(&plan(Kind::Uc));
    peer.send_bytes(&device, PORT, 0, &cnp(&device));
    device.counts("wrong_service", 1);
}

#[test]
fn a_qp_that_is_told_of_congestion_sends_in_turns_and_all_in_order() {
    const PACKETS: u32 = 60;
    let (peer, device) = connected();
    for _ in 0..30 {
        peer.send_bytes(&device, PORT, 0, &cnp(&device));
    }
    device.counts("rp_cnp_handled", 30);
    device.post_send(PACKETS * MTU);
    let start_ns = peer.world.now_ns();
    let mut turns_ns = Vec::new();
    for psn in PSN..PSN + PACKETS {
        let packet = Packet::parse_body(&peer.answer()).unwrap().psn.value();
        assert_eq!(packet, psn & 0x00ff_ffff);
        turns_ns.push(peer.world.now_ns() - start_ns);
    }
    // Four packets of 1084 bytes with all headers, at 10 Mb/s; then at rates that grow.
    assert_eq!(turns_ns[..8], [[0; 4], [3_468_800; 4]].concat());
    turns_ns.dedup();
    assert_eq!(turns_ns.len(), 14);
    peer.send(&device, &device.acknowledgement(PSN + PACKETS - 1));
    device.succeeds(1);
}

#[test]
fn packets_of_a_reliable_connection_may_be_marked() {
    let (peer, device) = connected();
    device.post_send(8);
    assert_eq!(peer.arrival().traffic_class, ECT_0);
}

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
        shared: Some(Arc::new(RecvQueue::new(PdId(1), 4, 1, None))),
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

/// A message to a QP of any service.
fn message_to_any(device: &End) -> Packet<'static> {
    let is_datagram = device.plan.kind == Kind::Ud;
    let deth = is_datagram.then_some(Deth { qkey: QKEY, source_qpn: QPN });
    Packet {
        ack_request: false,
        extended: Extended { deth, ..Extended::default() },
        ..message(device, 0)
    }
}

#[test]
fn an_unreliable_qp_fails_with_a_receive_whose_key_is_wrong() {
    for kind in [Kind::Uc, Kind::Ud] {
        let (peer, device) = connected_by(&plan(kind));
        let wrong = Sge { lkey: !device.key, ..device.sge(0, 100) };
        device.qps[0].post_recv(1, &[wrong]).unwrap();
        device.qps[0].post_recv(2, &[device.sge(0, 100)]).unwrap();
        peer.send(&device, &message_to_any(&device));
        let ended: Vec<_> =
            device.completions(&device.recv_cq, 2).iter().map(|it| (it.wr_id, it.status)).collect();
        let expected = [(1, Status::LocalProtectionError), (2, Status::FlushError)];
        assert_eq!(ended, expected, "{kind:?}");
        assert_eq!(device.qps[0].state(), State::Err, "{kind:?}");
    }
}

#[test]
fn a_receive_of_a_shared_queue_has_memory_of_the_domain_of_that_queue() {
    const OF_QUEUE: PdId = PdId(2);
    for kind in [Kind::Rc, Kind::Uc, Kind::Ud] {
        for (pd, status) in [(OF_QUEUE, Status::Success), (PdId(1), Status::LocalProtectionError)] {
            let queue = Arc::new(RecvQueue::new(OF_QUEUE, 4, 1, None));
            let shared = Some(Arc::clone(&queue));
            let (peer, device) = connected_by(&Plan { shared, ..plan(kind) });
            // SAFETY: memory that lives as long as the device.
            let lkey = unsafe { register(&device.nic, pd, device.address(0), 100, Access(1)) };
            queue.post(1, &[Sge { lkey, ..device.sge(0, 100) }]).unwrap();
            peer.send(&device, &message_to_any(&device));
            let received = device.completions(&device.recv_cq, 1)[0];
            assert_eq!((received.wr_id, received.status), (1, status), "{kind:?} {pd:?}");
        }
    }
}

#[test]
fn a_write_that_is_refused_ends_the_receive_of_its_immediate() {
    type Break = fn(&mut Reth);
    let cases: [(Break, NakCode, Status); 3] = [
        (|reth| reth.rkey ^= 1, NakCode::RemoteAccessError, Status::LocalAccessError),
        (|reth| reth.address -= 1, NakCode::RemoteAccessError, Status::LocalAccessError),
        (
            |reth| reth.length_bytes = MTU + 1,
            NakCode::InvalidRequest,
            Status::RemoteInvalidRequestError,
        ),
    ];
    for (spoil, code, status) in cases {
        let (peer, device) = connected();
        let mut reth = device.reth(8).reth.unwrap();
        spoil(&mut reth);
        let write = Packet {
            extended: Extended { reth: Some(reth), immediate: Some(7), ..Extended::default() },
            payload: &[1; 8],
            ..device.packet(Opcode::WriteOnlyImmediate, PSN)
        };
        // Without a receive it is not even looked at.
        peer.send(&device, &write);
        assert_eq!(peer.acknowledged(), (PSN, Syndrome::RnrNak { timer: 12 }));
        device.qps[0].post_recv(1, &[]).unwrap();
        device.qps[0].post_recv(2, &[]).unwrap();
        peer.send(&device, &write);
        assert_eq!(peer.acknowledged(), (PSN, Syndrome::Nak(code)));
        let ended = device.completions(&device.recv_cq, 2);
        let statuses = [0, 1].map(|at| (ended[at].wr_id, ended[at].status));
        assert_eq!(statuses, [(1, status), (2, Status::FlushError)]);
    }
}

#[test]
fn what_has_completed_is_acknowledged_before_its_qp_is_given_up() {
    let ways: [fn(&End); 2] = [|device| device.qps[0].fail(), |device| device.qps[0].reset()];
    for give_up in ways {
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

const SEND_BYTES: usize = 16;

/// A peer and a device, and packets of a READ of this many bytes and of a SEND into the last ones.
fn read_and_send(bytes: u32) -> (Peer, End, [Packet<'static>; 2]) {
    let (peer, device) = connected_by(&Plan { memory_bytes: bytes as usize, ..plan(Kind::Rc) });
    let place = device.sge(bytes as usize - SEND_BYTES, SEND_BYTES);
    device.qps[0].post_recv(5, &[place]).unwrap();
    let read = Packet { extended: device.reth(bytes), ..device.packet(Opcode::ReadRequest, PSN) };
    let send = Packet {
        payload: &[1; SEND_BYTES],
        ..device.packet(Opcode::SendOnly, PSN + bytes.div_ceil(MTU))
    };
    (peer, device, [read, send])
}

#[test]
fn a_read_is_answered_before_the_memory_changes() {
    let (peer, device, packets) = read_and_send(MTU);
    packets.iter().for_each(|it| peer.send(&device, it));
    let answer = peer.answer();
    let answer = Packet::parse_body(&answer).unwrap();
    assert_eq!(answer.opcode, Opcode::ReadResponseOnly);
    assert_eq!(answer.payload, [0; MTU as usize]);
    let psn = packets[1].psn.value();
    assert_eq!(peer.acknowledged(), (psn, ACK));
    assert_eq!(device.memory[MTU as usize - SEND_BYTES..], [1; SEND_BYTES]);
}

#[test]
fn behind_a_long_read_the_request_is_asked_for_again() {
    const READ_BYTES: u32 = 2 << 20;
    let (peer, device, packets) = read_and_send(READ_BYTES);
    packets.iter().for_each(|it| peer.send(&device, it));
    // Behind the answers.
    device.counts("naks_sent", 1);
    let changed = READ_BYTES as usize - SEND_BYTES..;
    assert_eq!(device.memory[changed.clone()], [0; SEND_BYTES]);
    peer.send(&device, &packets[1]);
    let received = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((received.wr_id, received.status), (5, Status::Success));
    assert_eq!(device.memory[changed], [1; SEND_BYTES]);
}

/// A peer, and a device whose QP has bound a window to the first packet's worth of its memory, with the window's key.
fn with_window() -> (Peer, End, u32) {
    let (peer, device) = connected();
    let (address, bytes) = (device.address(0), device.memory.len());
    let access = Access(15 | Access::BIND.0);
    // SAFETY: the memory lives as long as the device.
    let lkey = unsafe { register(&device.nic, PdId(1), address, bytes, access) };
    let rkey = device.nic.allocate_window(PdId(1), WindowType::Two).unwrap();
    let (new_rkey, length_bytes) = (rkey ^ 1, MTU.into());
    let bind = Operation::Bind { rkey, new_rkey, lkey, access: 0xe, address, length_bytes };
    device.post(0, bind, &[]);
    device.succeeds(1);
    (peer, device, new_rkey)
}

fn invalidation(device: &End, number: u32, rkey: u32) -> Packet<'static> {
    Packet {
        extended: Extended { invalidated: Some(rkey), ..Extended::default() },
        ..device.packet(Opcode::SendOnlyInvalidate, PSN + number)
    }
}

#[test]
fn a_read_by_a_window_is_answered_before_the_window_is_taken_back() {
    let (peer, device, rkey) = with_window();
    device.qps[0].post_recv(5, &[]).unwrap();
    let reth = Reth { rkey, ..device.reth(MTU).reth.unwrap() };
    let extended = Extended { reth: Some(reth), ..Extended::default() };
    let read = |number| Packet { extended, ..device.packet(Opcode::ReadRequest, PSN + number) };
    for packet in [read(0), invalidation(&device, 1, rkey), read(2)] {
        peer.send(&device, &packet);
    }
    let answer = peer.answer();
    let answered = Packet::parse_body(&answer).unwrap();
    assert_eq!((answered.opcode, answered.payload.len()), (Opcode::ReadResponseOnly, MTU as usize));
    assert_eq!(peer.acknowledged(), (PSN + 1, ACK));
    assert_eq!(peer.acknowledged(), (0, Syndrome::Nak(NakCode::RemoteAccessError)));
    let received = device.completions(&device.recv_cq, 1)[0];
    assert_eq!((received.wr_id, received.attached), (5, Attached::Invalidated(rkey)));
}

/// InfiniBand specification 9.9.6.3, class J.
#[test]
fn a_send_that_can_invalidate_nothing_has_no_answer_but_those_before_have() {
    // A key of another window, and one that the window had before.
    for wrong in [0x100, 1] {
        let (peer, device, rkey) = with_window();
        for wr_id in 1..=3 {
            device.qps[0].post_recv(wr_id, &[device.sge(0, 8)]).unwrap();
        }
        peer.send(&device, &message(&device, 0));
        peer.send(&device, &invalidation(&device, 1, rkey ^ wrong));
        assert_eq!(peer.acknowledged(), (PSN, ACK));
        peer.is_left_alone();
        let ended = device.completions(&device.recv_cq, 3);
        let statuses = [0, 1, 2].map(|at| ended[at].status);
        let [taken, refused] = [Status::Success, Status::RemoteInvalidRequestError];
        assert_eq!(statuses, [taken, refused, Status::FlushError]);
        assert_eq!(device.qps[0].state(), State::Err);
        assert_eq!(*device.events.lock().unwrap(), []);
    }
}

const MS: u64 = 1_000_000;
const TIMEOUT: u8 = 14;

/// With so many QPs, which repeat what is lost so often.
fn timed(qps: usize, retry_count: u8) -> (Peer, End) {
    let mut plan = plan(Kind::Rc);
    (plan.qps, plan.send_wrs) = (qps, 64);
    plan.deliveries.timeout = TIMEOUT;
    plan.deliveries.retry_count = retry_count;
    plan.deliveries.rnr_retry = retry_count;
    connected_by(&plan)
}

#[test]
fn a_peer_is_given_up_after_equal_time_outs_or_longer_ones_with_the_most_retries() {
    let cases: [(u8, &[f64]); 3] = [
        (0, &[0.0, 1.0]),
        (5, &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        (7, &[0.0, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]),
    ];
    for (retry_count, expected) in cases {
        let (peer, device) = timed(1, retry_count);
        let mut before_ns = peer.world.now_ns();
        let mut waited = || {
            let now_ns = peer.world.now_ns();
            let waited_ns = now_ns - std::mem::replace(&mut before_ns, now_ns);
            waited_ns as f64 / time_of_code_ns(TIMEOUT) as f64
        };
        device.post_send(8);
        let mut waits = Vec::new();
        for _ in 0..=retry_count {
            peer.answer();
            waits.push(waited());
        }
        let status = device.completion().status;
        waits.push(waited());
        assert_eq!(waits, expected);
        assert_eq!(status, Status::RetryExceededError);
        peer.is_left_alone();
        device.counts("timeouts", u64::from(retry_count) + 1);
    }
}

#[test]
fn a_pause_is_as_long_as_a_receiver_that_is_not_ready_asks_for() {
    for (timer, pause_ns) in [(1, 10_000), (14, 1_280_000), (0, 655_360_000)] {
        let (peer, device) = timed(1, 2);
        let not_ready = device.answer_with(Syndrome::RnrNak { timer }, PSN);
        device.post_send(8);
        peer.answer();
        for _ in 0..2 {
            let told_ns = peer.world.now_ns();
            peer.send(&device, &not_ready);
            peer.answer();
            assert_eq!(peer.world.now_ns() - told_ns, pause_ns);
        }
        peer.send(&device, &not_ready);
        let status = device.completion().status;
        assert_eq!(status, Status::RnrRetryExceededError);
        peer.is_left_alone();
    }
}

#[test]
fn what_may_wait_in_the_queue_of_a_link_is_not_asked_after() {
    let (peer, device) = timed(2, 7);
    let start_ns = peer.world.now_ns();
    let answer = |at_ns: u64, psn: u32| {
        peer.world.run_until(at_ns);
        peer.send(&device, &device.acknowledgement(psn));
        peer.world.run_until(at_ns);
    };
    device.post_send(8);
    answer(start_ns + 10_000, PSN);
    // Both at once, on a link that takes long for the first.
    let posted_ns = start_ns + 100 * MS;
    peer.world.run_until(posted_ns);
    device.post_send(60 * MTU);
    device.post(1, device.write_to(0), &[device.sge(0, 64)]);
    answer(posted_ns + 7 * MS, PSN + 17);
    while peer.world.fabric().take(peer.address).is_some() {}
    // The first asks after the least time before a probe, the second after twice that, since the first's packets are before
    // its own.
    for (of, after_ns) in [(PSN + 60, 15 * MS), (PSN, 23 * MS)] {
        let packet = peer.answer();
        let psn = Packet::parse_body(&packet).unwrap().psn.value();
        let came_ns = peer.world.now_ns() - posted_ns;
        assert_eq!((psn, came_ns), (of & 0x00ff_ffff, after_ns));
    }
    device.counts("probes", 2);
    device.counts("timeouts", 0);
}

#[test]
fn an_answer_that_waits_in_the_receive_buffer_is_in_time() {
    let (peer, device) = timed(1, 7);
    device.post_send(8);
    peer.answer();
    peer.send(&device, &device.acknowledgement(PSN));
    let late_ns = peer.world.now_ns() + 3 * time_of_code_ns(TIMEOUT) / 2;
    peer.world.fabric().advance_to(late_ns);
    device.succeeds(1);
    device.counts("timeouts", 0);
}

#[test]
fn a_read_that_is_repeated_again_and_again_is_answered_within_a_budget() {
    const TIMES: u64 = 2000;
    let (peer, device) = timed(1, 7);
    let length_bytes = device.memory.len() as u32;
    let read =
        Packet { extended: device.reth(length_bytes), ..device.packet(Opcode::ReadRequest, PSN) };
    let send = |times: u64| (0..times).for_each(|_| peer.send(&device, &read));
    send(1 + TIMES);
    device.counts("duplicate_requests", TIMES);
    // The burst of 4 MiB.
    let answered = (4 << 20) / u64::from(length_bytes);
    device.counts("unanswered_duplicates", TIMES - answered);
    // Time earns a byte in 16 ns.
    let earned_ns = peer.world.now_ns() + 16 * u64::from(length_bytes);
    peer.world.run_until(earned_ns);
    send(2);
    device.counts("unanswered_duplicates", TIMES - answered + 1);
}
