//! The cells of memory that prebuilt WRs use. The WRs of a ring walk together through more cells than they are: a lap is one
//! use of each WR, and each lap has cells of its own.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use rdma_sys::ibv_sge;

use crate::MemoryRegion;

/// Cells of equal size, in the order in which the WRs of a ring use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    cell_bytes: usize,
    positions: u32,
    laps: u64,
    shuffle: Option<Shuffle>,
}

/// A permutation of the first numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shuffle {
    keys: [u64; 2],
    count: u64,
    /// Bits of the largest of them.
    bits: u32,
}

impl Walk {
    /// `laps` times a cell of `cell_bytes` for each of `positions`, at least one; in the order of memory, or shuffled by
    /// `keys`.
    pub fn new(cell_bytes: usize, positions: u32, laps: u64, keys: Option<[u64; 2]>) -> Walk {
        let (positions, laps) = (positions.max(1), laps.max(1));
        let count = laps.saturating_mul(positions.into());
        Walk { cell_bytes, positions, laps, shuffle: keys.map(|keys| Shuffle::new(keys, count)) }
    }

    /// How many laps there are until a WR uses a cell again.
    pub fn laps(&self) -> u64 {
        self.laps
    }

    pub fn bytes(&self) -> usize {
        let cells =
            usize::try_from(self.laps.saturating_mul(self.positions.into())).unwrap_or(usize::MAX);
        self.cell_bytes.saturating_mul(cells)
    }

    /// Offset of the cell that WR `position` uses after `uses` others; WRs beyond the positions have the cells of the first.
    pub fn offset(&self, position: u32, uses: u64) -> usize {
        self.offset_in_lap((position % self.positions).into(), uses % self.laps)
    }

    #[inline]
    fn offset_in_lap(&self, position: u64, lap: u64) -> usize {
        let cell = lap * u64::from(self.positions) + position;
        let cell = match &self.shuffle {
            None => cell,
            Some(shuffle) => shuffle.place(cell),
        };
        cell as usize * self.cell_bytes
    }
}

impl Shuffle {
    fn new(keys: [u64; 2], count: u64) -> Shuffle {
        Shuffle { keys, count, bits: u64::BITS - count.saturating_sub(1).leading_zeros() }
    }

    /// Each step permutes the numbers of so many bits: a product with an odd number, a sum, and an exclusive or with the upper
    /// half. Where that leads beyond the count, the way goes on until it is back (cycle walking: J. Black, P. Rogaway,
    /// "Ciphers with arbitrary finite domains", CT-RSA 2002), which takes less than two steps in the mean.
    #[inline]
    fn place(&self, number: u64) -> u64 {
        let mask = 1u64.unbounded_shl(self.bits).wrapping_sub(1);
        let half = self.bits.div_ceil(2).max(1);
        let mut at = number;
        loop {
            for key in self.keys {
                at = at.wrapping_mul(key | 1).wrapping_add(key >> 32) & mask;
                at ^= at >> half;
            }
            if at < self.count {
                return at;
            }
        }
    }
}

/// Where each WR of one ring is on its walk.
pub(super) struct Walker {
    walk: Walk,
    /// Address of a message in the first cell.
    start: u64,
    /// The lap of each WR's last use; of one that was never used the last.
    laps: Box<[AtomicU64]>,
}

impl Walker {
    /// Memory for each WR, in bytes.
    pub(super) const BYTES_PER_WR: usize = size_of::<AtomicU64>();

    /// For WRs with these `lists` of elements, which are in the cells of the first lap. `None` if a WR is not in its cell, or
    /// a cell is not all in `memory`.
    pub(super) fn new<'l>(
        walk: Walk,
        memory: &MemoryRegion,
        lists: impl Iterator<Item = &'l [ibv_sge]>,
    ) -> Option<Walker> {
        let mut common_start = None;
        let mut longest_bytes = 0;
        let mut wrs = 0;
        for (list, position) in lists.zip(0u32..) {
            let (first, last) = (list.first()?.addr, list.last()?);
            let first_cell = first.checked_sub(walk.offset(position, 0) as u64)?;
            if *common_start.get_or_insert(first_cell) != first_cell {
                return None;
            }
            longest_bytes = longest_bytes.max(last.addr + u64::from(last.length) - first);
            wrs += 1;
        }
        let start = common_start?;
        let last_cell = walk.bytes().checked_sub(walk.cell_bytes)? as u64;
        let end = start.checked_add(last_cell)?.checked_add(longest_bytes)?;
        let end_of_memory = memory.address() + memory.length_bytes() as u64;
        let is_inside = memory.address() <= start && end <= end_of_memory;
        let is_whole = wrs <= walk.positions;
        (is_inside && is_whole).then(|| Walker {
            walk,
            start,
            laps: (0..wrs).map(|_| AtomicU64::new(walk.laps - 1)).collect(),
        })
    }

    /// Moves the elements of WR `position`, which is about to be posted, to the cell of this use; returns by how many bytes,
    /// modulo 2^64.
    ///
    /// # Safety
    /// `list` are the `count` elements of that WR.
    #[inline]
    pub(super) unsafe fn advance(&self, position: usize, list: *mut ibv_sge, count: i32) -> u64 {
        let Some(place) = self.laps.get(position) else {
            return 0;
        };
        let mut lap = place.load(Relaxed) + 1;
        if lap == self.walk.laps {
            lap = 0;
        }
        place.store(lap, Relaxed);
        let to = self.start + self.walk.offset_in_lap(position as u64, lap) as u64;
        // SAFETY: the list has a first element, as `Walker::new` has seen.
        let by = to.wrapping_sub(unsafe { (*list).addr });
        for element in 0..count.max(0) as usize {
            // SAFETY: the caller vouches for so many elements.
            unsafe { add_to(&raw mut (*list.add(element)).addr, by) };
        }
        by
    }

    /// The lap of the WR's last use.
    pub(super) fn last_lap(&self, position: usize) -> u64 {
        self.laps.get(position).map_or(0, |lap| lap.load(Relaxed))
    }
}

/// Adds to an address, which only who posts its WR changes.
///
/// # Safety
/// `address` is valid, and all of our own accesses that may be at the same time are these.
#[inline]
pub(super) unsafe fn add_to(address: *mut u64, by: u64) {
    // SAFETY: the caller's; a `u64` is aligned as an `AtomicU64` on the platforms of rdma-core.
    let address = unsafe { AtomicU64::from_ptr(address) };
    address.store(address.load(Relaxed).wrapping_add(by), Relaxed);
}

// How a buffer is cut into the scatter/gather elements (SGEs) of a work request.

/// The buffer of a work request, in a MR.
pub(super) struct Buffer {
    /// Offset in the MR, in bytes.
    pub(super) offset: usize,
    pub(super) length_bytes: u32,
    /// Pieces that it is cut into.
    pub(super) sges: u32,
}

/// Where the elements of a work request begin, and how many they are.
pub(super) type List = (*mut ibv_sge, i32);

/// The elements of work requests with these buffers in `memory`, all in one piece of memory, and the list of each; `None`
/// if a buffer is not all in the MR.
pub(super) fn elements(
    memory: &MemoryRegion,
    buffers: impl Iterator<Item = Buffer>,
) -> Option<(Box<[ibv_sge]>, Vec<List>)> {
    let mut elements = Vec::new();
    let mut counts = Vec::new();
    for buffer in buffers {
        let before = elements.len();
        for (start, length) in pieces(buffer.length_bytes, buffer.sges) {
            let at = buffer.offset.checked_add(start as usize)?;
            elements.push(memory.element(at, length)?);
        }
        counts.push(elements.len() - before);
    }
    let mut boxed = elements.into_boxed_slice();
    let mut next = boxed.as_mut_ptr();
    let lists = counts
        .into_iter()
        .map(|count| {
            let list = next;
            next = next.wrapping_add(count);
            (list, i32::try_from(count).unwrap_or(i32::MAX))
        })
        .collect();
    Some((boxed, lists))
}

/// Offsets and lengths of the pieces of `length_bytes`, in order: as equal as can be, on boundaries of 8 bytes where each
/// has so many. No piece is empty, so a message of fewer bytes than `most` has a piece for each byte.
fn pieces(length_bytes: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    let count = most.min(length_bytes).max(1);
    let is_wide = length_bytes / count >= 8;
    let boundary = move |piece: u32| {
        let even = u64::from(length_bytes) * u64::from(piece) / u64::from(count);
        if is_wide && piece < count { even as u32 & !7 } else { even as u32 }
    };
    (0..count).map(move |piece| (boundary(piece), boundary(piece + 1) - boundary(piece)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// In either order all cells are used, each once, before any is used again.
    #[test]
    fn every_cell_is_used_once_in_all_laps() {
        let orders = [None, Some([0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9]), Some([0; 2])];
        for ((positions, laps), keys) in (1..20u32)
            .flat_map(|positions| (1..20u64).map(move |laps| (positions, laps)))
            .flat_map(|size| orders.map(|keys| (size, keys)))
        {
            let walk = Walk::new(64, positions, laps, keys);
            let mut offsets = HashSet::new();
            for uses in 0..laps {
                for position in 0..positions {
                    let offset = walk.offset(position, uses);
                    assert!(offset.is_multiple_of(64) && offset + 64 <= walk.bytes());
                    assert!(offsets.insert(offset), "{positions} {laps} {keys:?}");
                    assert_eq!(walk.offset(position, uses + laps), offset);
                }
            }
            assert_eq!(offsets.len() * 64, walk.bytes());
        }
    }

    #[test]
    fn shuffled_cells_are_far_from_the_one_before() {
        let offsets = |keys| {
            let walk = Walk::new(1, 128, 8192, keys);
            let uses = (0..8192).flat_map(|uses| (0..128).map(move |position| (position, uses)));
            uses.map(move |(position, uses)| walk.offset(position, uses) as i64).collect::<Vec<_>>()
        };
        let sequential = offsets(None);
        assert!(sequential.windows(2).all(|pair| pair[1] == pair[0] + 1));
        for keys in [
            [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9],
            [0x94d0_49bb_1331_11eb, 0x1234_5678_9abc_def0],
        ] {
            // One of 128 would be by chance.
            let near = offsets(Some(keys))
                .windows(2)
                .filter(|pair| (pair[1] - pair[0]).abs() < 4096)
                .count();
            assert!(near < sequential.len() / 32, "{keys:x?}: {near}");
        }
        let one = offsets(Some([0x1234_5678_9abc_def0, 3]));
        assert_ne!(one, offsets(Some([0x1234_5678_9abc_def0, 4])));
    }

    #[test]
    fn pieces_follow_each_other_and_none_is_empty() {
        for length in [0, 1, 2, 3, 7, 8, 31, 32, 33, 100, 4096, 65_535, u32::MAX] {
            for count in [1, 2, 3, 4, 7, 16] {
                let cut: Vec<_> = pieces(length, count).collect();
                assert_eq!(cut.len() as u32, count.min(length).max(1));
                let mut end = 0;
                for &(start, bytes) in &cut {
                    assert_eq!(start, end, "{length} in {count}");
                    assert!(bytes > 0 || length == 0, "{length} in {count}");
                    end = start + bytes;
                }
                assert_eq!(end, length);
                let lengths = || cut.iter().map(|&(_, bytes)| bytes);
                let (least, most) = (lengths().min().unwrap(), lengths().max().unwrap());
                assert!(most - least <= 16, "{length} in {count}: {least} to {most}");
                if length / count >= 8 {
                    assert!(cut.iter().all(|(start, _)| start % 8 == 0));
                }
            }
        }
    }
}
