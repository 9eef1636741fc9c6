//! Packets as chance makes them: mostly nearly right, since others are refused at once.

use fastrand::Rng;
use softroce::wire::{Opcode, Service};

use crate::support::end::{End, QKEY};

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
    pub fn of(end: &End, numbers: &mut Rng) -> Target {
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
    at: &Target,
    payload_bytes: usize,
) -> Vec<u8> {
    let header = |there: bool, bytes: usize| if there { bytes } else { 0 };
    let first = 12 + header(service == Service::Ud, 8);
    let headers = header(opcode.has_reth(), 16)
        + header(opcode.has_atomic_eth(), 28)
        + header(opcode.has_aeth(), 4)
        + header(opcode.has_atomic_ack(), 8)
        + header(opcode.has_immediate(), 4);
    let pad_bytes = payload_bytes.next_multiple_of(4) - payload_bytes;
    let mut bytes = vec![0; first + headers + payload_bytes + pad_bytes];
    numbers.fill(&mut bytes);
    let (sends, expects) = at.psns;
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
    put(5, &at.qpn.to_be_bytes()[1..]);
    put(9, &psn.to_be_bytes()[1..]);
    if service == Service::Ud {
        put(12, &QKEY.to_be_bytes());
    }
    if opcode.has_reth() || opcode.has_atomic_eth() {
        put(first, &at.address.to_be_bytes());
        put(first + 8, &at.key.to_be_bytes());
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
