//! The memory of one side: the bytes that the device reads and writes, and those that the model expects there.
//! It knows nothing of QPs; parts of it are dealt out so that no two requests on their way share a byte.

use std::ops::Range;

use fastrand::Rng;

/// Bytes before and after the registered region that nobody may touch.
const GUARD_BYTES: usize = 4096;
/// Bytes at the start of the region that are never assigned: one atomic counter for each QP.
pub const COUNTER_BYTES: usize = 64;

pub fn random(numbers: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    numbers.fill(&mut bytes);
    bytes
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    pub offset: usize,
    pub bytes: usize,
}

/// A region between two guards, and the expected contents of all three.
pub struct Memory {
    start: *mut u8,
    // Aligned as atomics need it. Only `start` leads there.
    _words: Vec<u64>,
    expected: Vec<u8>,
    dealt: usize,
}

impl Memory {
    pub fn new(region_bytes: usize, numbers: &mut Rng) -> Memory {
        let bytes = region_bytes + 2 * GUARD_BYTES;
        let mut words = vec![0; bytes / 8];
        let start: *mut u8 = words.as_mut_ptr().cast();
        let expected = random(numbers, bytes);
        // SAFETY: `start` has room for `bytes` bytes, and nobody else knows it yet.
        unsafe { start.copy_from_nonoverlapping(expected.as_ptr(), bytes) };
        Memory { start, _words: words, expected, dealt: COUNTER_BYTES }
    }

    pub fn region_bytes(&self) -> usize {
        self.expected.len() - 2 * GUARD_BYTES
    }

    pub fn region_address(&self) -> u64 {
        self.start as u64 + GUARD_BYTES as u64
    }

    pub fn address(&self, part: Part) -> u64 {
        self.region_address() + part.offset as u64
    }

    pub fn room(&self) -> usize {
        self.region_bytes() - self.dealt
    }

    pub fn collect(&mut self) {
        self.dealt = COUNTER_BYTES;
    }

    /// A part that no other request has, `gap` bytes after the last one; `aligned` to a multiple of 8.
    pub fn deal(&mut self, bytes: usize, gap: usize, aligned: bool) -> Part {
        let multiple = if aligned { 8 } else { 1 };
        let offset = (self.dealt + gap).next_multiple_of(multiple);
        self.dealt = offset + bytes;
        assert!(self.dealt <= self.region_bytes(), "dealt out too much");
        Part { offset, bytes }
    }

    fn range(part: Part) -> Range<usize> {
        let start = GUARD_BYTES + part.offset;
        start..start + part.bytes
    }

    pub fn expected(&self, part: Part) -> &[u8] {
        &self.expected[Memory::range(part)]
    }

    /// Writes `bytes` to the start of the part in the model; drops what does not fit.
    pub fn expect(&mut self, part: Part, bytes: &[u8]) {
        let range = Memory::range(part);
        for (to, from) in self.expected[range].iter_mut().zip(bytes) {
            *to = *from;
        }
    }

    pub fn put(&mut self, part: Part, bytes: &[u8]) {
        assert_eq!(part.bytes, bytes.len());
        self.expect(part, bytes);
        // SAFETY: the part lies in the region (`range` was just used on as many bytes); requests that are on
        // their way have other parts.
        unsafe {
            let to = self.start.add(Memory::range(part).start);
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    fn real(&self) -> &[u8] {
        // SAFETY: the allocation has this length and was initialised; no request is on its way.
        unsafe { std::slice::from_raw_parts(self.start, self.expected.len()) }
    }

    /// The first difference between memory and model, in words. Call it only while no request is in flight.
    pub fn difference(&self) -> Option<String> {
        let real = self.real();
        if real == self.expected {
            return None;
        }
        let all: Vec<usize> =
            (0..real.len()).filter(|index| real[*index] != self.expected[*index]).collect();
        let (count, first, last) = (all.len(), *all.first()?, *all.last()?);
        let (is, should_be) = (real[first], self.expected[first]);
        Some(format!(
            "{count} bytes differ, from {first} to {last} after a start of {GUARD_BYTES} bytes that nobody may touch: \
             {is:#04x}, the model has {should_be:#04x}"
        ))
    }

    /// Copies a part from memory to the model, after a request that may have left anything there.
    pub fn accept(&mut self, part: Part) {
        let range = Memory::range(part);
        let real = self.real()[range.clone()].to_vec();
        self.expected[range].copy_from_slice(&real);
    }
}
