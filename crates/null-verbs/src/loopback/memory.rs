//! Memory regions: the addresses that a key gives access to, and copying with a key.

use std::os::raw::c_int;

use rdma_sys::{ibv_access_flags, ibv_sge};

use super::numbers::Numbered;

pub(super) const LOCAL_WRITE: u32 = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
pub(super) const REMOTE_WRITE: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE.0;
pub(super) const REMOTE_READ: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_READ.0;
pub(super) const REMOTE_ATOMIC: u32 = ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC.0;

/// Bytes on which an atomic operation acts.
pub(super) const ATOMIC_BYTES: u64 = 8;

/// The low byte of keys, different for local and remote keys, so that mixing them up fails.
const LKEY_TAG: u32 = 0x4c;
const RKEY_TAG: u32 = 0x52;

/// One element of a scatter or gather list.
#[derive(Clone, Copy)]
pub(super) struct Segment {
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) lkey: u32,
}

pub(super) struct Region {
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) access: u32,
    pub(super) pd: usize,
}

/// All regions of the device, by the upper three bytes of their keys.
#[derive(Default)]
pub(super) struct Memory {
    regions: Numbered<u32, Region>,
    next: u32,
}

impl Memory {
    /// Registers memory and returns its lkey and rkey.
    pub(super) fn register(&mut self, region: Region) -> [u32; 2] {
        self.next += 1;
        self.regions.insert(self.next, region);
        [LKEY_TAG, RKEY_TAG].map(|tag| self.next << 8 | tag)
    }

    pub(super) fn forget(&mut self, lkey: u32) {
        self.regions.remove(&(lkey >> 8));
    }

    pub(super) fn pd_in_use(&self, pd: usize) -> bool {
        self.regions.values().any(|region| region.pd == pd)
    }

    fn opens(
        &self,
        (key, tag): (u32, u32),
        pd: usize,
        address: u64,
        length: u64,
        need: u32,
    ) -> bool {
        self.regions.get(&(key >> 8)).is_some_and(|region| {
            let end = address.checked_add(length);
            key & 0xff == tag
                && region.pd == pd
                && region.access & need == need
                && address >= region.start
                && end.is_some_and(|end| end <= region.start + region.length)
        })
    }

    /// Whether all `segments` lie in regions of `pd` with the access `need`.
    pub(super) fn local_ok(&self, segments: &[Segment], pd: usize, need: u32) -> bool {
        segments.iter().filter(|segment| segment.length > 0).all(|segment| {
            let length = u64::from(segment.length);
            self.opens((segment.lkey, LKEY_TAG), pd, segment.address, length, need)
        })
    }

    /// Whether `rkey` gives a peer access to the range. An empty range needs no key.
    pub(super) fn remote_ok(
        &self,
        rkey: u32,
        pd: usize,
        address: u64,
        length: u64,
        need: u32,
    ) -> bool {
        length == 0 || self.opens((rkey, RKEY_TAG), pd, address, length, need)
    }
}

/// The elements of a work request.
///
/// # Safety
/// `list` has `count` entries.
pub(super) unsafe fn segments(list: *const ibv_sge, count: c_int) -> Vec<Segment> {
    (0..count.max(0) as usize)
        .map(|index| {
            // SAFETY: the caller vouches for the entries.
            let sge = unsafe { &*list.add(index) };
            Segment { address: sge.addr, length: sge.length, lkey: sge.lkey }
        })
        .collect()
}

/// Appends the contents of `segments` to `bytes`.
///
/// # Safety
/// The ranges are readable: checked against a region, or given with `IBV_SEND_INLINE`.
pub(super) unsafe fn gather(segments: &[Segment], bytes: &mut Vec<u8>) {
    for segment in segments.iter().filter(|segment| segment.length > 0) {
        let length = segment.length as usize;
        bytes.reserve(length);
        // SAFETY: room was reserved, and the caller vouches for the range. Its owner may write to it meanwhile, as to
        // memory that a device reads; then the bytes are undefined.
        unsafe {
            let from = segment.address as *const u8;
            let to = bytes.as_mut_ptr().add(bytes.len());
            from.copy_to_nonoverlapping(to, length);
            bytes.set_len(bytes.len() + length);
        }
    }
}

/// Copies `bytes` into `segments`, in order, up to the shorter length.
///
/// # Safety
/// The ranges are writable: checked against a region.
pub(super) unsafe fn scatter(mut bytes: &[u8], segments: &[Segment]) {
    for segment in segments {
        let (now, later) = bytes.split_at(bytes.len().min(segment.length as usize));
        if !now.is_empty() {
            // SAFETY: the caller vouches for the range; `bytes` is the device's own memory.
            unsafe { (segment.address as *mut u8).copy_from(now.as_ptr(), now.len()) };
        }
        bytes = later;
    }
}

/// The sum of the segments' lengths, in bytes.
pub(super) fn total_bytes(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.length)).sum()
}
