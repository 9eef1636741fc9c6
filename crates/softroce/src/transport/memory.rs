//! The memory of programs: regions, their keys and access rights, and copying to and from them.
//!
//! [`Memories::resolve`], and `resolve_remote` of `windows`, are the only ways from an address in a request to a pointer. This is the only file of the
//! transport that accesses a program's memory: every pointer comes from there, and the tables stay locked for
//! reading, so the region stays registered.
//!
//! All 32 bits of a key are drawn: it is all that a peer has to show, so that others must not guess it, and one that
//! was deregistered must stay dead.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use fastrand::Rng;
use provider::{Lock, Sge};

use crate::transport::windows::Windows;

/// A protection domain's number, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PdId(pub u32);

/// Access rights of a region or a QP; the bits are those of `ibv_access_flags`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access(pub u32);

impl Access {
    /// Reading for sends, which every region allows.
    pub const NONE: Access = Access(0);
    /// Incoming data may be written here.
    pub const LOCAL_WRITE: Access = Access(1);
    pub const REMOTE_WRITE: Access = Access(2);
    pub const REMOTE_READ: Access = Access(4);
    /// The peer may do atomics.
    pub const REMOTE_ATOMIC: Access = Access(8);
    /// Memory windows may be bound to it.
    pub const BIND: Access = Access(0x10);
    /// Addresses begin with 0.
    pub const ZERO_BASED: Access = Access(0x20);

    /// Whether it includes all of `other`.
    pub fn allows(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A region to be registered.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub pd: PdId,
    /// Its address in this process.
    pub address: u64,
    pub length_bytes: u64,
    /// The address of its start in requests (`ibv_reg_mr_iova`; otherwise equal to `address`).
    pub iova: u64,
    pub access: Access,
}

/// Why a region was not registered, or stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// Remote writing or atomics without local writing, or an address range that wraps (EINVAL).
    #[error("the region's access flags or bounds make no sense")]
    Invalid,
    #[error("there are no more memory keys")]
    Full,
    /// A window is bound to the region (EBUSY).
    #[error("a memory window is bound to the region")]
    InUse,
}

/// The most regions of a device: few of all keys, so that one that is free is soon found and none is soon guessed.
pub const MAX_REGIONS: usize = (1 << 24) - 1;

/// The regions and windows of a device by key.
#[derive(Default)]
pub(crate) struct Memories {
    pub(crate) regions: HashMap<u32, Region, BuildHasherDefault<KeyHasher>>,
    /// Bound and invalidated by threads that send, while the tables are locked for reading.
    pub(crate) windows: Lock<Windows>,
    pub(crate) keys: Unguessable,
}

/// Hashes a key of which all bits are random already: a multiplication spreads them to where the table looks.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, key: u32) {
        self.0 = (self.0 ^ u64::from(key)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Memories {
    /// Of no regions, whose keys will be these.
    pub(crate) fn new(keys: Unguessable) -> Memories {
        Memories { keys, ..Memories::default() }
    }

    /// Registers a region; returns its key.
    pub(crate) fn insert(&mut self, region: Region) -> Result<u32, MemoryError> {
        let remote_change = region.access.0 & (Access::REMOTE_WRITE.0 | Access::REMOTE_ATOMIC.0);
        let wraps = [region.address, region.iova]
            .into_iter()
            .any(|start| start.checked_add(region.length_bytes).is_none());
        if wraps || (remote_change != 0 && !region.access.allows(Access::LOCAL_WRITE)) {
            return Err(MemoryError::Invalid);
        }
        if self.regions.len() >= MAX_REGIONS {
            return Err(MemoryError::Full);
        }
        // No region has key 0.
        let mut key = 0;
        while key == 0 || self.regions.contains_key(&key) || self.is_of_window(key) {
            key = self.keys.draw() as u32;
        }
        self.regions.insert(key, region);
        Ok(key)
    }

    pub(crate) fn remove(&mut self, key: u32) -> Result<(), MemoryError> {
        if self.has_windows(key) {
            return Err(MemoryError::InUse);
        }
        self.regions.remove(&key);
        Ok(())
    }

    /// A pointer to `length_bytes` from `iova`, if all of them lie in the region of `key`, the region is in `pd`, and
    /// it allows `need`.
    pub(crate) fn resolve(
        &self,
        key: u32,
        pd: PdId,
        iova: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        self.regions.get(&key)?.at(pd, iova, length_bytes, need)
    }
}

impl Region {
    /// As [`Memories::resolve`], of this region.
    pub(crate) fn at(
        &self,
        pd: PdId,
        iova: u64,
        length_bytes: u64,
        need: Access,
    ) -> Option<*mut u8> {
        let offset = offset_within(self.iova, self.length_bytes, iova, length_bytes)?;
        let allowed = self.pd == pd && self.access.allows(need);
        allowed.then(|| ptr::with_exposed_provenance_mut((self.address + offset) as usize))
    }
}

/// Where `length_bytes` from `address` begin in what has `total_bytes` from `start`; `None` if they are not within.
#[inline]
pub(crate) fn offset_within(
    start: u64,
    total_bytes: u64,
    address: u64,
    length_bytes: u64,
) -> Option<u64> {
    let offset = address.checked_sub(start)?;
    (offset <= total_bytes && length_bytes <= total_bytes - offset).then_some(offset)
}

/// Of the next packet's place: all 4096 bytes at once cost more than they save.
const FETCHED_AHEAD_BYTES: usize = 1024;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const CACHE_LINE_BYTES: usize = 64;

/// An element has a wrong key, bounds or access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forbidden;

/// The pieces of bytes `[skip, skip + want)` of a scatter/gather list, as pointers.
pub(crate) fn pieces<'a>(
    memories: &'a Memories,
    pd: PdId,
    sges: &'a [Sge],
    mut skip: u64,
    mut want: usize,
    need: Access,
) -> impl Iterator<Item = Result<(*mut u8, usize), Forbidden>> + Clone + 'a {
    sges.iter().filter_map(move |sge| {
        let length = u64::from(sge.length_bytes);
        if skip >= length {
            skip -= length;
            return None;
        }
        if want == 0 {
            return None;
        }
        let take = usize::try_from(length - skip).unwrap_or(want).min(want);
        let at = sge.address.checked_add(skip);
        skip = 0;
        want -= take;
        let found = at.and_then(|at| memories.resolve(sge.lkey, pd, at, take as u64, need));
        Some(found.map(|pointer| (pointer, take)).ok_or(Forbidden))
    })
}

/// Whether all elements allow this access.
pub(crate) fn allowed(memories: &Memories, pd: PdId, sges: &[Sge], need: Access) -> bool {
    sges.iter().all(|sge| {
        let length = u64::from(sge.length_bytes);
        length == 0 || memories.resolve(sge.lkey, pd, sge.address, length, need).is_some()
    })
}

/// Copies `bytes` to `to`, the last byte last: programs poll it to see that a WRITE is complete.
///
/// # Safety
/// `to` came from [`Memories::resolve`] for so many bytes and local writing, and the tables are still held.
pub(crate) unsafe fn put(bytes: &[u8], to: *mut u8) {
    let Some((last, rest)) = bytes.split_last() else {
        return;
    };
    if bytes.len() >= FETCHED_AHEAD_BYTES {
        // Those of a message's next packet, after its CRC: processors fetch ahead by themselves, but not into the next page.
        fetch_ahead(to.wrapping_add(bytes.len()), FETCHED_AHEAD_BYTES);
    }
    // SAFETY: the caller vouches for the memory; it is not the receiver's own buffer, which is not registered.
    // The program may access it meanwhile, as during a device's DMA.
    unsafe {
        ptr::copy_nonoverlapping(rest.as_ptr(), to, rest.len());
        AtomicU8::from_ptr(to.add(rest.len())).store(*last, Ordering::Release);
    }
}

/// Tells the processor that bytes are probably written soon.
#[cfg(target_arch = "x86_64")]
pub(crate) fn fetch_ahead(from: *const u8, bytes: usize) {
    use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
    for line in (0..bytes).step_by(CACHE_LINE_BYTES) {
        // SAFETY: a hint; it accesses no memory and causes no fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(from.wrapping_add(line).cast()) };
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn fetch_ahead(from: *const u8, bytes: usize) {
    for line in (0..bytes).step_by(CACHE_LINE_BYTES) {
        // SAFETY: a hint; it accesses no memory and causes no fault, whatever the address.
        unsafe {
            std::arch::asm!("prfm pstl1keep, [{}]", in(reg) from.wrapping_add(line), options(nostack, preserves_flags, readonly));
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn fetch_ahead(_from: *const u8, _bytes: usize) {}

/// Copies `bytes` into a scatter list from its byte `skip`; drops what does not fit.
pub(crate) fn scatter(
    memories: &Memories,
    pd: PdId,
    sges: &[Sge],
    skip: u64,
    bytes: &[u8],
) -> Result<(), Forbidden> {
    let mut rest = bytes;
    for piece in pieces(memories, pd, sges, skip, bytes.len(), Access::LOCAL_WRITE) {
        let (to, length) = piece?;
        let (part, after) = rest.split_at(length.min(rest.len()));
        // SAFETY: just resolved for `length` bytes and local writing, from the tables that the caller holds.
        unsafe { put(part, to) };
        rest = after;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    Add(u64),
    Swap { compare: u64, swap: u64 },
}

/// Applies it to the eight bytes at `at`; returns their old value. Atomic also for the processor's own atomics.
///
/// # Safety
/// `at` is a multiple of 8 and came from [`Memories::resolve`] for 8 bytes and remote atomics, and the tables are
/// still held.
pub(crate) unsafe fn atomic(at: *mut u8, operation: Atomic) -> u64 {
    // SAFETY: aligned and mapped, as the caller vouches.
    let word = unsafe { AtomicU64::from_ptr(at.cast()) };
    match operation {
        Atomic::Add(add) => word.fetch_add(add, Ordering::SeqCst),
        Atomic::Swap { compare, swap } => word
            .compare_exchange(compare, swap, Ordering::SeqCst, Ordering::SeqCst)
            .unwrap_or_else(|found| found),
    }
}

/// Numbers that a stranger cannot guess, not even with some of them at hand: SipHash of a counter, with a key from
/// the system's randomness (`RandomState` has one). In a network in memory, which nobody attacks, they come from its
/// seed.
pub(crate) enum Unguessable {
    /// Each is the hash of the next number.
    Keyed(RandomState, u64),
    /// The same from the same seed.
    Seeded(Rng),
}

impl Default for Unguessable {
    fn default() -> Unguessable {
        Unguessable::Keyed(RandomState::new(), 0)
    }
}

impl Unguessable {
    pub(crate) fn from_seed(seed: Option<u64>) -> Unguessable {
        seed.map_or_else(Unguessable::default, |seed| Unguessable::Seeded(Rng::with_seed(seed)))
    }

    pub(crate) fn draw(&mut self) -> u64 {
        match self {
            Unguessable::Keyed(key, drawn) => {
                *drawn += 1;
                key.hash_one(*drawn)
            }
            Unguessable::Seeded(chance) => chance.u64(..),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region {
        pd: PdId(1),
        address: 0x1000,
        length_bytes: 0x100,
        iova: 0x8_0000,
        access: Access(1 | 4),
    };

    fn found(memories: &Memories, key: u32, iova: u64, length: u64, need: Access) -> Option<usize> {
        let found = memories.resolve(key, PdId(1), iova, length, need);
        found.map(<*mut u8>::addr)
    }

    #[test]
    fn only_what_is_inside_and_allowed_is_found() {
        let mut memories = Memories::default();
        let key = memories.insert(REGION).unwrap();
        let read = Access::REMOTE_READ;
        for (used, iova, length, need, expected) in [
            (key, 0x8_0010, 0xf0, read, Some(0x1010)),
            (key, 0x8_0100, 0, read, Some(0x1100)),
            (key, 0x8_0010, 0xf1, read, None),
            (key, 0x7_ffff, 1, read, None),
            (key, 0x8_0010, u64::MAX, read, None),
            (key, 0x8_0000, 1, Access::REMOTE_WRITE, None),
            (key ^ 1, 0x8_0000, 1, read, None),
            (0, 0x8_0000, 1, read, None),
        ] {
            let at = found(&memories, used, iova, length, need);
            assert_eq!(at, expected, "{iova:#x} {length:#x}");
        }
        assert!(memories.resolve(key, PdId(2), 0x8_0000, 1, read).is_none());
    }

    #[test]
    fn a_key_is_dead_after_its_region() {
        let mut memories = Memories::default();
        let old = memories.insert(REGION).unwrap();
        memories.remove(old).unwrap();
        let new = memories.insert(REGION).unwrap();
        assert_eq!(found(&memories, old, 0x8_0000, 1, Access::NONE), None);
        assert!(found(&memories, new, 0x8_0000, 1, Access::NONE).is_some());
        memories.remove(old).unwrap();
        assert!(found(&memories, new, 0x8_0000, 1, Access::NONE).is_some());
    }

    #[test]
    fn keys_tell_nothing_of_each_other() {
        let mut memories = Memories::default();
        let keys: Vec<u32> = (0..1000).map(|_| memories.insert(REGION).unwrap()).collect();
        // Of differences between two numbers that were drawn, half have a given bit, give or take 16 (one standard
        // deviation); of those between numbers that count, the high bits have none.
        for bit in 0..32 {
            let count = keys.windows(2).filter(|pair| (pair[0] ^ pair[1]) >> bit & 1 == 1).count();
            assert!((380..=620).contains(&count), "bit {bit}: {count}");
        }
    }

    #[test]
    fn flags_and_bounds_must_make_sense() {
        let mut memories = Memories::default();
        let remote_only = Region { access: Access::REMOTE_WRITE, ..REGION };
        let wrapping = Region { length_bytes: u64::MAX, ..REGION };
        for bad in [remote_only, wrapping] {
            assert_eq!(memories.insert(bad), Err(MemoryError::Invalid));
        }
    }
}
