//! The memory of one side: the bytes that the device reads and writes, and those that the model expects there.
//! It knows nothing of QPs; parts of it are dealt out so that no two requests on their way share a byte.

use std::ops::Range;

/// Bytes before and after the registered region that nobody may touch.
const GUARD_BYTES: usize = 4096;
/// Bytes at the start of the region that are never assigned: one atomic counter for each QP.
pub const COUNTER_BYTES: usize = 64;

pub struct Numbers(fastrand::Rng);

impl Numbers {
    pub fn new(seed: u64) -> Numbers {
        Numbers(fastrand::Rng::with_seed(seed))
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.fill(&mut bytes);
        bytes
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Offset from the region's start.
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
    /// A region of this size, filled from `numbers`.
    pub fn new(region_bytes: usize, numbers: &mut Numbers) -> Memory {
        let bytes = region_bytes + 2 * GUARD_BYTES;
        let mut words = vec![0; bytes / 8];
        let start: *mut u8 = words.as_mut_ptr().cast();
        let expected = numbers.bytes(bytes);
        // SAFETY: `start` has room for `bytes` bytes, and nobody else knows it yet.
        unsafe { start.copy_from_nonoverlapping(expected.as_ptr(), bytes) };
        Memory {
            start,
            _words: words,
            expected,
            dealt: COUNTER_BYTES,
        }
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
        let offset = self.dealt + gap;
        let offset = if aligned {
            offset.next_multiple_of(8)
        } else {
            offset
        };
        self.dealt = offset + bytes;
        assert!(
            self.dealt <= self.region_bytes(),
            "the test dealt out too much"
        );
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

    /// Writes `bytes` to the part in memory and in the model.
    pub fn put(&mut self, part: Part, bytes: &[u8]) {
        assert_eq!(part.bytes, bytes.len());
        self.expect(part, bytes);
        // SAFETY: the part lies in the region (`range` was just used on as many bytes); requests that are on
        // their way have other parts.
        unsafe {
            self.start
                .add(Memory::range(part).start)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    /// The first difference between memory and model, in words. Call it only while no request is in flight.
    pub fn difference(&self) -> Option<String> {
        // SAFETY: the allocation has this length and was initialised; no request is on its way.
        let real = unsafe { std::slice::from_raw_parts(self.start, self.expected.len()) };
        if real == self.expected {
            return None;
        }
        let differs = |index: &usize| real[*index] != self.expected[*index];
        let all: Vec<usize> = (0..real.len()).filter(differs).collect();
        let first = *all.first()?;
        Some(format!(
            "{} bytes differ, the first at {} of a region of {} (the last at {}): {:#04x}, the model has {:#04x}",
            all.len(),
            first as i64 - GUARD_BYTES as i64,
            self.region_bytes(),
            all[all.len() - 1] as i64 - GUARD_BYTES as i64,
            real[first],
            self.expected[first],
        ))
    }

    /// Copies a part from memory to the model, after a request that may have left anything there.
    pub fn accept(&mut self, part: Part) {
        let range = Memory::range(part);
        // SAFETY: as for `difference`.
        let real = unsafe { std::slice::from_raw_parts(self.start, self.expected.len()) };
        self.expected[range.clone()].copy_from_slice(&real[range]);
    }
}
