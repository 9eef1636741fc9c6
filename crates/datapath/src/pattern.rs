//! The payload pattern of `--verify`. Its bytes follow from QP, ring position and sequence, so that a lost, late,
//! duplicated or misplaced payload is detected.

use std::ops::Range;

use verbs::MemoryRegion;

/// Bytes generated at a time.
const CHUNK: usize = 512;

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

    fn bytes(key: PatternKey, length: usize) -> Vec<u8> {
        let mut all = vec![0; length];
        key.bytes(0, &mut all);
        all
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
        let all = bytes(PatternKey { qp: 3, position: 1, sequence: 9 }, 1 << 16);
        let mut words: Vec<_> = all.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), (1 << 16) / 8);
    }
}
