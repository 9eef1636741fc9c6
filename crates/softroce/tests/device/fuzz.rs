//! Forged packets by the thousand, as chance makes them, mostly nearly right, since others are refused at once:
//! nothing breaks, and who is real is served as if there were none.

use std::sync::Arc;

use fastrand::Rng;
use softroce::transport::{Kind, Operation, PdId, QpEvent, State};
use softroce::wire::{Cnp, Opcode, Packet, ParseError, Service};
use testing::embedded_device::rounds;

use crate::support::end::{End, Plan, QKEY, pair, post, request};
use crate::support::peer::{CE, ECT_0, PORT, Peer, QPN, forge, wire};

pub fn operations() -> Vec<(Service, Opcode)> {
    (0..=u8::MAX).filter_map(Opcode::parse).collect()
}

/// What a packet refers to.
#[derive(Default)]
pub struct Target {
    pub qpn: u32,
    /// The next that its QP sends, and the next that it expects.
    psns: (u32, u32),
    pub address: u64,
    pub key: u32,
}

impl Target {
    /// A QP of this end, and a place in its memory.
    pub fn new(end: &End, numbers: &mut Rng) -> Target {
        Target {
            qpn: end.qps[0].number(),
            psns: end.qps[0].psns(),
            address: end.address(numbers.usize(..end.memory.len()) & !7),
            key: end.key,
        }
    }
}

/// A packet of this operation but for its CRC. What its headers say is right most times, else by chance.
pub fn packet(
    numbers: &mut Rng,
    (service, opcode): (Service, Opcode),
    target: &Target,
    payload_bytes: usize,
) -> Vec<u8> {
    let header = |there: bool, bytes: usize| if there { bytes } else { 0 };
    let first = 12 + header(service == Service::Ud, 8);
    let headers = header(opcode.has_reth(), 16)
        + header(opcode.has_atomic_eth(), 28)
        + header(opcode.has_aeth(), 4)
        + header(opcode.has_atomic_ack(), 8)
        + header(opcode.has_immediate(), 4)
        + header(opcode.has_ieth(), 4);
    let pad_bytes = payload_bytes.next_multiple_of(4) - payload_bytes;
    let mut bytes = vec![0; first + headers + payload_bytes + pad_bytes];
    numbers.fill(&mut bytes);
    let (sends, expects) = target.psns;
    let psn = if opcode.is_answer() { sends.wrapping_sub(numbers.u32(..8)) } else { expects };
    let lengths = [payload_bytes as u32, payload_bytes as u32, 5000, u32::MAX];
    let syndrome = [0x1f, 0x1f, 0x1f, 0x2c, 0x60, 0x62][numbers.usize(..6)];
    let mut put = |at: usize, field: &[u8]| {
        if numbers.u8(..32) > 0 {
            bytes[at..at + field.len()].copy_from_slice(field);
        }
    };
    put(0, &[opcode.byte(service)]);
    put(2, &[0xff, 0xff]);
    put(5, &target.qpn.to_be_bytes()[1..]);
    put(9, &psn.to_be_bytes()[1..]);
    if service == Service::Ud {
        put(12, &QKEY.to_be_bytes());
    }
    if opcode.has_reth() || opcode.has_atomic_eth() {
        put(first, &target.address.to_be_bytes());
        put(first + 8, &target.key.to_be_bytes());
    }
    if opcode.has_aeth() {
        put(first, &[syndrome]);
    }
    if opcode.has_reth() {
        let length = lengths[numbers.usize(..4)];
        bytes[first + 12..first + 16].copy_from_slice(&length.to_be_bytes());
    }
    bytes[1] = bytes[1] & 0xc0 | (pad_bytes as u8) << 4;
    bytes
}

/// Changes some bytes, or how many there are.
pub fn mutate(bytes: &mut Vec<u8>, numbers: &mut Rng) {
    for _ in 0..=numbers.usize(..4) {
        let at = numbers.usize(..=bytes.len());
        // The opcode and the flags determine how the rest is parsed.
        let place = if numbers.bool() { at } else { numbers.usize(..2) };
        match (numbers.u8(..5), bytes.get_mut(place)) {
            (0 | 1, Some(byte)) => *byte ^= 1 << numbers.u8(..8),
            (2, _) => bytes.truncate(at),
            (3, _) => bytes.insert(at, numbers.u8(..)),
            (4, _) => bytes.resize(at + numbers.usize(..200), 0xff),
            _ => {}
        }
    }
}

const BYTES: usize = 16 << 10;
/// Packets between two looks at the QPs of the forger.
const A_LOOK: u64 = 8;

struct Fuzzed {
    forger: Peer,
    /// A real peer, and the device's end of their connection.
    real: End,
    device: End,
    /// What the memory of that end must be.
    expected: Vec<u8>,
    /// Ends on the same device for the forger, with memory of another protection domain.
    open: [End; 3],
    forged: u64,
    completions: usize,
}

fn fuzzed() -> Fuzzed {
    let mut plan = Plan {
        memory_bytes: BYTES,
        mtu_bytes: 1024,
        send_wrs: 16,
        recv_wrs: 16,
        ..Plan::on(1, "")
    };
    plan.deliveries.timeout = 9;
    let (real, device) = pair(&plan);
    Fuzzed {
        forger: Peer::new(plan.world.as_ref().unwrap()),
        open: [Kind::Rc, Kind::Uc, Kind::Ud].map(|kind| {
            let plan = Plan { kind, pd: PdId(2), ..plan.clone() };
            End::on(Arc::clone(&device.nic), &plan)
        }),
        real,
        device,
        expected: vec![0; BYTES],
        forged: 0,
        completions: 0,
    }
}

impl Fuzzed {
    fn forge(&mut self, numbers: &mut Rng) {
        let world = &self.forger.world;
        if numbers.bool() {
            world.run_until(world.now_ns() + numbers.u64(..2_000));
        }
        if self.forged.is_multiple_of(A_LOOK) {
            self.renew(numbers);
        }
        self.forged += 1;
        let end = match numbers.u8(..16) {
            0 => &self.device,
            more => &self.open[usize::from(more) % 3],
        };
        let mut target = Target::new(end, numbers);
        if numbers.u8(..16) == 0 {
            // The real peer's memory is not for QPs of others.
            let real = Target::new(&self.device, numbers);
            (target.address, target.key) = (real.address, real.key);
        }
        let fits = operations().into_iter().filter(|(of, _)| *of == end.plan.kind);
        let operation = numbers.choice(fits.collect::<Vec<_>>()).unwrap();
        let most = [9, 1025, 1025, 4097][numbers.usize(..4)];
        let payload_bytes = numbers.usize(..most);
        let mut bytes = packet(numbers, operation, &target, payload_bytes);
        if numbers.u8(..32) == 0 {
            bytes[0] = Cnp::OPCODE_BYTE;
            bytes.truncate(12);
            bytes.resize(Cnp::BYTES, 0);
        }
        if numbers.u8(..8) == 0 {
            mutate(&mut bytes, numbers);
        }
        let source = match numbers.u8(..16) {
            // In the name of the real peer, but not from a port that it sends from.
            0 => (self.real.nic.address(), 4791),
            1 => (self.forger.address, PORT + 1),
            _ => (self.forger.address, PORT),
        };
        let class = [0, ECT_0, CE][numbers.usize(..3)];
        let (to, right) = (self.device.nic.address(), numbers.u8(..32) > 0);
        forge(&self.forger.world, source, to, class, &bytes, right);
    }

    /// Renews what the forger has broken and used up.
    fn renew(&mut self, numbers: &mut Rng) {
        let fabric = self.forger.world.fabric();
        while fabric.take(self.forger.address).is_some() {}
        for end in &self.open {
            for cq in [&end.cq, &end.recv_cq] {
                self.completions += cq.poll(1000, |_| ()).unwrap();
            }
            let qp = &end.qps[0];
            if qp.state() != State::Rts {
                qp.reset();
                end.connect_to(qp, self.forger.address, QPN, 0);
            }
            let sges = [end.sge(numbers.usize(..BYTES / 2), numbers.usize(..BYTES / 2))];
            while numbers.u8(..4) > 0 && qp.post_recv(1, &sges).is_ok() {}
            let operation = match numbers.u8(..3) {
                0 => Operation::Send,
                1 => self.device.write_to(0),
                _ => self.device.read_from(0),
            };
            if end.plan.kind == Kind::Rc {
                // There may be no room.
                let _ = post(qp, &[request(2, operation, &sges)]);
            }
        }
    }

    /// The real peer's requests do what they should, and nobody else has touched the memory for it.
    fn serves(&mut self, numbers: &mut Rng) {
        let (real, device) = (&mut self.real, &self.device);
        numbers.fill(&mut real.memory);
        let bytes = numbers.usize(1..BYTES / 4);
        let [from, to, place] = [(); 3].map(|()| numbers.usize(..BYTES / 4));
        let (back, received) = (BYTES / 2, BYTES / 2 + place);
        let receive = [device.sge(received, bytes)];
        device.qps[0].post_recv(9, &receive).unwrap();
        for (operation, at) in
            [(device.write_to(to), from), (device.read_from(to), back), (Operation::Send, from)]
        {
            real.post(0, operation, &[real.sge(at, bytes)]);
        }
        real.succeeds(3);
        device.succeeds(1);
        let data = &real.memory[from..from + bytes];
        assert!(real.memory[back..back + bytes] == *data);
        for at in [to, received] {
            self.expected[at..at + bytes].copy_from_slice(data);
        }
        assert!(device.memory == self.expected);
        for end in [&*real, device] {
            assert_eq!(end.qps[0].state(), State::Rts);
            assert_eq!(*end.events.lock().unwrap(), [] as [QpEvent; 0]);
        }
    }
}

#[test]
fn a_device_that_gets_forged_packets_serves_its_real_peer() {
    let mut fuzzed = fuzzed();
    fuzzed.serves(&mut Rng::with_seed(0));
    let test = "-p softroce --test device fuzz::device";
    rounds(
        test,
        100_000,
        &mut fuzzed,
        |it: &mut Fuzzed, number| it.forge(&mut Rng::with_seed(number)),
        |it: &mut Fuzzed, number| it.serves(&mut Rng::with_seed(number)),
    );
    // Refusing everything or nothing would test nothing.
    let reached = "bad_icrc short_packets unknown_qp unparsed wrong_service pkey_violations wrong_source acks_sent \
        naks_sent rnr_naks_sent duplicate_requests out_of_sequence go_backs dropped_datagrams np_cnp_sent rp_cnp_handled";
    for name in reached.split_whitespace() {
        assert!(fuzzed.device.counter(name) > 0, "{name}");
    }
    assert!(fuzzed.completions > 1000, "{}", fuzzed.completions);
}

/// Bytes of the CRC, which the parser ignores.
const CRC: [u8; 4] = [0; 4];

/// Built again, a packet has the bytes that it was parsed from, but for bits that tell nothing, and its padding.
fn is_built_as_it_was(packet: &Packet<'_>, bytes: &[u8]) {
    let mut again = wire(packet);
    let length = packet.headers_for(0, &mut [0; Packet::HEADER_ROOM]);
    // Migration and padding, marks of congestion, reserved bits.
    let nothing: &[(usize, u8)] = match packet.service {
        Service::Ud => &[(1, 0x70), (4, 0xff), (8, 0x7f), (16, 0xff)],
        _ => &[(1, 0x70), (4, 0xff), (8, 0x7f)],
    };
    let mut headers = bytes[..length].to_vec();
    for (at, bits) in nothing {
        headers[*at] &= !bits;
        again[*at] &= !bits;
    }
    assert!(again[..length] == headers, "{packet:?} of {bytes:02x?}");
    let rest = &bytes[length..bytes.len() - CRC.len()];
    assert!(rest.starts_with(packet.payload), "{packet:?}");
    // The padding may have been longer or shorter than needed; the payload must not be.
    assert!(rest.len() - packet.payload.len() < 4, "{packet:?}");
    let whole = [wire(packet), CRC.to_vec()].concat();
    assert_eq!(Packet::parse(&whole), Ok(*packet));
}

#[test]
fn mutated_packets_parse_back_or_are_refused() {
    let supported = operations();
    assert_eq!(supported.len(), 37);
    let mut times = [0; 4];
    rounds(
        "-p softroce --test device fuzz::parser",
        100_000,
        &mut times,
        |times: &mut [u32; 4], number| {
            let numbers = &mut Rng::with_seed(number);
            let operation = supported[numbers.usize(..supported.len())];
            let payload_bytes = numbers.usize(..100);
            let mut bytes = packet(numbers, operation, &Target::default(), payload_bytes);
            bytes.extend(CRC);
            if numbers.bool() {
                mutate(&mut bytes, numbers);
            }
            let outcome = match Packet::parse(&bytes) {
                Ok(packet) => {
                    is_built_as_it_was(&packet, &bytes);
                    0
                }
                Err(ParseError::Short { .. }) => 1,
                Err(ParseError::Version) => 2,
                Err(ParseError::Opcode(_)) => 3,
            };
            times[outcome] += 1;
        },
        |_, _| (),
    );
    // Refusing everything or nothing would test nothing.
    assert!(times.iter().all(|times| *times > 0), "{times:?}");
}
