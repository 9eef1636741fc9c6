//! Copies to and from registered memory. It is the only file of the transport that accesses a program's memory. Every
//! pointer comes from [`Memories::resolve`], and the tables stay locked for reading, so the region stays registered.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::regions::{Access, Memories, PdId};
use super::sge::Sge;

/// Of the next packet's place: all 4096 bytes at once cost more than they save.
const FETCHED_AHEAD_BYTES: usize = 1024;
#[cfg(target_arch = "x86_64")]
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
        fetch_ahead(to.wrapping_add(bytes.len()));
    }
    // SAFETY: the caller vouches for the memory; it is not the receiver's own buffer, which is not registered.
    // The program may access it meanwhile, as during a device's DMA.
    unsafe {
        ptr::copy_nonoverlapping(rest.as_ptr(), to, rest.len());
        fence(Ordering::Release);
        to.add(rest.len()).write_volatile(*last);
    }
}

/// Tells the processor that the bytes from `to` on are probably written soon: those of a message's next packet, after
/// its CRC. Processors fetch ahead by themselves, but not into the next page.
#[cfg(target_arch = "x86_64")]
fn fetch_ahead(to: *mut u8) {
    use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
    for line in (0..FETCHED_AHEAD_BYTES).step_by(CACHE_LINE_BYTES) {
        // SAFETY: a hint; it accesses no memory and causes no fault, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(to.wrapping_add(line).cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn fetch_ahead(_to: *mut u8) {}

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
