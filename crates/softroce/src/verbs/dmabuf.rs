//! Memory behind a descriptor (`ibv_reg_dmabuf_mr(3)`): a dmabuf of the system heap or of udmabuf, or a plain memfd. An adapter
//! imports a dmabuf; this device maps it, so it takes those alone whose driver lets programs map them.

use std::io;
use std::os::fd::RawFd;
use std::os::raw::{c_int, c_void};
use std::ptr::null_mut;

use provider::{Region, code, last_errno};
use rdma_sys::ibv_access_flags;
use rustix::param::page_size;

use super::domain::register;
use super::errno::refuse;
use crate::transport::Nic;

/// The kernel's own number for an operation that is not supported, which GPUs' drivers let out.
const ENOTSUPP: c_int = 524;

/// A part of what a descriptor stands for, mapped while this lives.
pub(super) struct MappedDescriptor {
    mapped: *mut c_void,
    mapped_bytes: usize,
}

// SAFETY: the mapping is this object's alone, which only unmaps it.
unsafe impl Send for MappedDescriptor {}

impl MappedDescriptor {
    /// Maps `length` bytes from `offset`, and the page before them; with the address of the first of them. EINVAL for bytes
    /// beyond the end, EBADF for what is no descriptor, EOPNOTSUPP for one that cannot be mapped.
    fn new(
        descriptor: RawFd,
        (offset, length): (u64, usize),
        is_written: bool,
    ) -> Result<(MappedDescriptor, *mut c_void), c_int> {
        let end = offset.checked_add(length as u64).ok_or(libc::EINVAL)?;
        if end > size_of_descriptor(descriptor)? {
            return Err(libc::EINVAL);
        }
        let before = offset % page_size() as u64;
        let mapped_bytes = usize::try_from(before).map_err(|_| libc::EINVAL)? + length;
        let start = libc::off_t::try_from(offset - before).map_err(|_| libc::EINVAL)?;
        let rights = if is_written { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        // SAFETY: a new mapping touches no existing memory.
        let mapped = unsafe {
            libc::mmap(null_mut(), mapped_bytes, rights, libc::MAP_SHARED, descriptor, start)
        };
        if mapped == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::ENODEV | libc::EOPNOTSUPP | libc::ENXIO | ENOTSUPP) => {
                    refuse(
                        "ibv_reg_dmabuf_mr of memory that its driver lets no program map, such as most GPUs'",
                    );
                    libc::EOPNOTSUPP
                }
                _ => code(&error),
            });
        }
        let memory = MappedDescriptor { mapped, mapped_bytes };
        Ok((memory, mapped.wrapping_byte_add(before as usize)))
    }
}

impl Drop for MappedDescriptor {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the region in it was deregistered.
        unsafe { libc::munmap(self.mapped, self.mapped_bytes) };
    }
}

/// Bytes behind a descriptor, which the kernel knows of dmabufs since Linux 5.3.
fn size_of_descriptor(descriptor: RawFd) -> Result<u64, c_int> {
    // SAFETY: plain data, for which zero is valid, and a number that is checked by the call.
    let (code, status) = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut status), status)
    };
    if code != 0 {
        return Err(last_errno());
    }
    u64::try_from(status.st_size).map_err(|_| libc::EINVAL)
}

/// Registers what is behind a descriptor from `offset` on. Errors as for [`register`]; EINVAL for bytes beyond the end of the
/// memory, EOPNOTSUPP where no program can map it.
pub(super) fn register_descriptor(
    nic: &Nic,
    descriptor: RawFd,
    offset: u64,
    region: Region,
) -> Result<([u32; 2], Box<dyn Send>), c_int> {
    let is_written = region.access & ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0 != 0;
    let length = usize::try_from(region.length_bytes).map_err(|_| libc::EINVAL)?;
    let (memory, start) = MappedDescriptor::new(descriptor, (offset, length), is_written)?;
    let region = Region { address: start.addr() as u64, ..region };
    // SAFETY: the memory goes with the region.
    let key = unsafe { register(nic, region) }?;
    Ok(([key; 2], Box::new(memory)))
}
