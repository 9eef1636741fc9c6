//! Packets as chance makes them: mostly nearly right, since others are refused at once.

use fastrand::Rng;
use softroce::wire::{
    Aeth, AtomicEth, Cnp, Deth, Extended, NakCode, Opcode, Packet, Psn, Reth, Service, Syndrome,
};

use crate::support::end::{End, QKEY};
use crate::support::peer::QPN;

/// What a packet refers to.
#[derive(Default)]
pub struct Target {
    pub qpn: u32,
    /// The next that its QP sends, and the next that it expects.
    pub psns: (u32, u32),
    pub address: u64,
    pub key: u32,
}

impl Target {
    /// A QP of this end, and a place in its memory.
    pub fn of(end: &End, numbers: &mut Rng) -> Target {
        Target {
            qpn: end.qps[0].number(),
            psns: end.qps[0].psns(),
            address: end.address(numbers.usize(..end.memory.len())),
            key: end.key,
        }
    }
}

/// Every operation of every service.
pub fn operations() -> Vec<(Service, Opcode)> {
    (0..=u8::MAX).filter_map(Opcode::parse).collect()
}

/// One of them, once in so many times.
fn mostly<T>(numbers: &mut Rng, times: u32, usual: T, other: impl FnOnce(&mut Rng) -> T) -> T {
    match numbers.u32(..times) {
        0 => other(numbers),
        _ => usual,
    }
}

/// A packet of this operation, with the headers that it has.
pub fn packet<'a>(
    numbers: &mut Rng,
    (service, opcode): (Service, Opcode),
    at: &Target,
    payload: &'a [u8],
) -> Packet<'a> {
    let (sends, expects) = at.psns;
    let psn = match opcode.has_aeth() || opcode == Opcode::ReadResponseMiddle {
        true => sends.wrapping_sub(numbers.u32(..8)),
        false => mostly(numbers, 3, expects, |it| {
            expects.wrapping_add(it.u32(..8)).wrapping_sub(4)
        }),
    };
    let any = |it: &mut Rng| it.u32(..);
    let address = mostly(numbers, 16, at.address, |it| it.u64(..));
    let rkey = mostly(numbers, 16, at.key, any);
    let length_bytes = mostly(numbers, 4, payload.len() as u32, |it| {
        [0, 1, 5000, 64 << 10, u32::MAX][it.usize(..5)]
    });
    let syndrome = match numbers.u8(..8) {
        0 => Syndrome::Nak(NakCode::PsnSequenceError),
        1 => Syndrome::Nak(NakCode::RemoteAccessError),
        2 => Syndrome::RnrNak {
            timer: numbers.u8(..32),
        },
        3 => Syndrome::Reserved(0x40),
        _ => Syndrome::Ack { credits: 31 },
    };
    let deth = Deth {
        qkey: mostly(numbers, 8, QKEY, any),
        source_qpn: QPN,
    };
    let reth = Reth {
        address,
        rkey,
        length_bytes,
    };
    let atomic = AtomicEth {
        address: mostly(numbers, 4, address & !7, |_| address),
        rkey,
        swap_or_add: numbers.u64(..),
        compare: numbers.u64(..2),
    };
    let aeth = Aeth {
        syndrome,
        msn: numbers.u32(..1 << 24),
    };
    Packet {
        service,
        opcode,
        solicited: numbers.bool(),
        pkey: mostly(numbers, 32, 0xffff, |it| it.u16(..)),
        destination_qpn: mostly(numbers, 64, at.qpn, |it| it.u32(..1 << 24)),
        ack_request: numbers.bool(),
        psn: Psn::new(psn & 0x00ff_ffff),
        extended: Extended {
            deth: (service == Service::Ud).then_some(deth),
            reth: opcode.has_reth().then_some(reth),
            atomic: opcode.has_atomic_eth().then_some(atomic),
            aeth: opcode.has_aeth().then_some(aeth),
            atomic_answer: opcode.has_atomic_ack().then(|| numbers.u64(..)),
            immediate: opcode.has_immediate().then(|| numbers.u32(..)),
        },
        payload,
    }
}

/// A notification of congestion.
pub fn cnp(at: &Target) -> [u8; Cnp::BYTES] {
    let cnp = Cnp {
        destination_qpn: at.qpn,
        pkey: 0xffff,
    };
    cnp.to_bytes()
}

/// Changes some bytes, or how many there are.
pub fn mutate(bytes: &mut Vec<u8>, numbers: &mut Rng) {
    for _ in 0..=numbers.usize(..4) {
        let at = numbers.usize(..=bytes.len());
        let edge = [0, 1, 0x7f, 0x80, 0xff][numbers.usize(..5)];
        // The opcode and the flags determine how the rest is parsed.
        let place = match numbers.bool() {
            true => at,
            false => at.min(numbers.usize(..2)),
        };
        match (numbers.u8(..6), bytes.get_mut(place)) {
            (0 | 1, Some(byte)) => *byte ^= 1 << numbers.u8(..8),
            (2, Some(byte)) => *byte = edge,
            (3, _) => bytes.truncate(at),
            (4, _) => bytes.insert(at, edge),
            (5, _) => bytes.resize(at + numbers.usize(..200), edge),
            _ => {}
        }
    }
}
