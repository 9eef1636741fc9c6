//! What an operation is to verbs, by its profile: its opcode and the access that it needs. And what its messages carry: the
//! words of atomic operations, and the payload pattern of `--verify`.

use std::ops::Range;

use settings::{ATOMIC_BYTES, Access, AtomicTarget, Profile};
use verbs::{Access as MemoryAccess, MemoryRegion, SendOpcode};

/// Memory that the peer offers for one QP's WRITEs and READs.
#[derive(Clone, Copy, Debug)]
pub struct RemoteMemory {
    /// Address of its first byte.
    pub address: u64,
    pub rkey: u32,
}

/// The opcode of a work request; with the target address, if it has one.
pub fn send_opcode(profile: &Profile, remote: RemoteMemory) -> SendOpcode {
    let RemoteMemory { address, rkey } = remote;
    match (profile.access, profile.immediate) {
        (Access::None, false) => SendOpcode::Send,
        (Access::None, true) => SendOpcode::SendImmediate,
        (Access::Write, false) => SendOpcode::Write { address, rkey },
        (Access::Write, true) => SendOpcode::WriteImmediate { address, rkey },
        (Access::Read, _) => SendOpcode::Read { address, rkey },
        (Access::Add, _) => SendOpcode::FetchAdd { address, rkey, add: ADDED },
        (Access::Swap, _) => SendOpcode::CompareSwap { address, rkey },
    }
}

/// The device's access to the initiator's memory.
pub fn initiator_access(profile: &Profile) -> MemoryAccess {
    if profile.fetches { MemoryAccess::LocalWrite } else { MemoryAccess::LocalRead }
}

/// The device's access to the memory that the target offers. Without access, the target has only receive buffers.
pub fn target_access(profile: &Profile) -> MemoryAccess {
    match profile.access {
        Access::None => MemoryAccess::LocalRead,
        Access::Write => MemoryAccess::RemoteWrite,
        Access::Read => MemoryAccess::RemoteRead,
        Access::Add | Access::Swap => MemoryAccess::RemoteAtomic,
    }
}

// What atomic operations add and exchange, and what the words that they act on may hold.
//
// A FETCH-ADD adds 1, so a word counts those that were made on it. The COMPARE-SWAPs of a QP take and free a lock in
// turn: if the word is 0 it becomes the QP's own value, and if it is that it becomes 0. A QP that is alone on its word
// makes every exchange, unless workers that share a CQ post on it in another order than they numbered them; an exchange
// is not made where another QP has the lock.

pub(super) const ADDED: u64 = 1;

/// What a result holds until it is there: no word ever has this value.
pub(super) const AWAITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// It is made if the word has this value.
    pub(super) expected: u64,
    /// The word's value after it.
    pub(super) new: u64,
}

impl Exchange {
    /// The exchange with this number, from 0, of QP `qp` on one word.
    pub(super) fn from_number(qp: u32, number: u64) -> Exchange {
        let held = u64::from(qp) + 1;
        if number.is_multiple_of(2) {
            Exchange { expected: 0, new: held }
        } else {
            Exchange { expected: held, new: 0 }
        }
    }

    /// The number of the exchange that ring position `position` posts for the time `count`, from 0, among those of its QP
    /// on the same word.
    pub(super) fn number(target: AtomicTarget, ring: u32, position: u32, count: u32) -> u64 {
        match target {
            AtomicTarget::Spread => count.into(),
            AtomicTarget::Shared | AtomicTarget::PerQp => {
                u64::from(count) * u64::from(ring) + u64::from(position)
            }
        }
    }

    /// Whether exchanges of `qps` QPs may leave this value.
    pub(super) fn may_leave(value: u64, qps: u32) -> bool {
        value <= qps.into()
    }
}

/// The word at `offset`; [`AWAITED`] outside of the memory.
pub(super) fn word(memory: &MemoryRegion, offset: usize) -> u64 {
    let mut bytes = [0; ATOMIC_BYTES as usize];
    if memory.read_at(offset, &mut bytes) == bytes.len() {
        u64::from_ne_bytes(bytes)
    } else {
        AWAITED
    }
}

/// Bytes generated at a time: a copy to a GPU takes some 10 us, whatever its size up to 4 KiB.
const CHUNK: usize = 4096;

/// What the bytes of a payload of `--verify` follow from, so that a lost, late, duplicated or misplaced one is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternKey {
    pub qp: u32,
    /// Position in the QP's send ring.
    pub position: u16,
    /// How often that position was posted before, modulo 2^16.
    pub sequence: u16,
}

/// A byte that differs from the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongByte {
    /// Offset in the payload, from 0.
    pub byte: usize,
    pub expected: u8,
    pub found: u8,
}

/// A random-looking number for each number: SplitMix64 (Steele, Lea, Flood 2014), seeded with 0, at its output `number`.
#[inline]
pub(super) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl PatternKey {
    /// As immediate data: workers may post in any order, so the receiver must be told position and sequence.
    pub fn immediate(self) -> u32 {
        u32::from(self.sequence) << 16 | u32::from(self.position)
    }

    /// Decodes immediate data of QP `qp`.
    pub fn from_immediate(qp: u32, immediate: u32) -> Self {
        PatternKey { qp, position: immediate as u16, sequence: (immediate >> 16) as u16 }
    }

    /// The 8-byte word at byte `8 × index`.
    fn word(self, index: u64) -> u64 {
        let key = u64::from(self.qp) << 32 | u64::from(self.immediate());
        mix(key.wrapping_add(index))
    }

    /// The pattern's bytes from `start`, a multiple of 8.
    fn bytes(self, start: usize, into: &mut [u8]) {
        for (index, chunk) in into.chunks_mut(8).enumerate() {
            let word = self.word((start / 8 + index) as u64).to_le_bytes();
            for (byte, value) in chunk.iter_mut().zip(word) {
                *byte = value;
            }
        }
    }

    /// Fills a payload; `inverted` writes each byte's complement, which differs from the right payload everywhere.
    pub fn fill(self, memory: &MemoryRegion, offset: usize, length: usize, inverted: bool) {
        let mut buffer = [0u8; CHUNK];
        for start in (0..length).step_by(CHUNK) {
            let part = CHUNK.min(length - start);
            self.bytes(start, &mut buffer[..part]);
            if inverted {
                buffer[..part].iter_mut().for_each(|byte| *byte = !*byte);
            }
            memory.write_at(offset + start, &buffer[..part]);
        }
    }

    /// The first wrong byte of a payload, if any.
    pub fn check(self, memory: &MemoryRegion, offset: usize, length: usize) -> Option<WrongByte> {
        self.check_part(memory, offset, 0..length)
    }

    /// The first wrong byte of the payload's bytes `part`, which begins at a multiple of 8.
    pub fn check_part(
        self,
        memory: &MemoryRegion,
        offset: usize,
        part: Range<usize>,
    ) -> Option<WrongByte> {
        let mut right = [0u8; CHUNK];
        let mut found = [0u8; CHUNK];
        for start in part.clone().step_by(CHUNK) {
            let length = CHUNK.min(part.end - start);
            self.bytes(start, &mut right[..length]);
            let read = memory.read_at(offset + start, &mut found[..length]);
            if read == length && right[..length] == found[..length] {
                continue;
            }
            let wrong = (0..length).find(|&k| k >= read || right[k] != found[k])?;
            return Some(WrongByte {
                byte: start + wrong,
                expected: right[wrong],
                found: found[wrong],
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the depth and the order of QPs: who frees the lock is who took it, and a QP alone always succeeds.
        #[test]
        fn exchanges_of_qps_take_and_free_a_lock(order in proptest::collection::vec(0..4u32, 1..200), ring in 1..9u32) {
            let (mut word, mut posted, mut made, mut owner) = (0, [0u32; 4], [0u32; 4], None);
            for qp in order {
                let at = qp as usize;
                let number = Exchange::number(AtomicTarget::Shared, ring, posted[at] % ring, posted[at] / ring);
                prop_assert_eq!(number, u64::from(posted[at]));
                posted[at] += 1;
                let exchange = Exchange::from_number(qp, number);
                if word == exchange.expected {
                    prop_assert!(owner.is_none_or(|owner| owner == qp));
                    word = exchange.new;
                    owner = (word != 0).then_some(qp);
                    made[at] += 1;
                }
                prop_assert!(Exchange::may_leave(word, 4));
            }
        }
    }

    fn bytes(key: PatternKey, length: usize) -> Vec<u8> {
        let mut payload = vec![0; length];
        key.bytes(0, &mut payload);
        payload
    }

    proptest! {
        #[test]
        fn immediate_data_names_the_key(qp: u32, position: u16, sequence: u16) {
            let key = PatternKey { qp, position, sequence };
            prop_assert_eq!(PatternKey::from_immediate(qp, key.immediate()), key);
        }

        #[test]
        fn different_keys_have_different_payloads(qp in 0..64u32, position in 0..64u16, sequence in 0..64u16) {
            let key = PatternKey { qp, position, sequence };
            for other in [
                PatternKey { qp: qp + 1, ..key },
                PatternKey { position: position + 1, ..key },
                PatternKey { sequence: sequence + 1, ..key },
            ] {
                prop_assert_ne!(bytes(key, 16), bytes(other, 16));
            }
        }
    }

    #[test]
    fn no_word_repeats_along_a_payload() {
        let payload = bytes(PatternKey { qp: 3, position: 1, sequence: 9 }, 1 << 16);
        let mut words: Vec<_> = payload.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), (1 << 16) / 8);
    }
}
