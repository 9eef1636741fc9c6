//! Memory of a GPU: copies into it and out of it, and its export as a dmabuf.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::param::page_size;

use crate::{Gpu, GpuError};

/// Zeroed memory of a GPU, freed when it is dropped.
///
/// Adapters may read and write it at any time, and programs reach it only by copies of the GPU's library.
#[derive(Debug)]
pub struct GpuMemory {
    gpu: Gpu,
    address: u64,
    length_bytes: usize,
    of_host: bool,
}

impl GpuMemory {
    pub(crate) fn new(gpu: Gpu, least_bytes: usize) -> Result<GpuMemory, GpuError> {
        // Whole pages of the host, so that no other allocation shares an exported page.
        let length_bytes = least_bytes.max(1).next_multiple_of(page_size());
        let of_host = gpu.is_integrated()?;
        let address = if of_host {
            gpu.driver.allocate_of_host(gpu.handle, length_bytes)?
        } else {
            gpu.driver.allocate(gpu.handle, length_bytes)?
        };
        let memory = GpuMemory { gpu, address, length_bytes, of_host };
        memory.fill(0, 0, length_bytes)?;
        Ok(memory)
    }

    pub fn gpu(&self) -> Gpu {
        self.gpu
    }

    /// The GPU's address of the first byte.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes from there: those asked for, rounded up to pages of the host.
    pub fn length_bytes(&self) -> usize {
        self.length_bytes
    }

    /// Whether it is ordinary memory of the host, as that of integrated GPUs: registered by its address, without a dmabuf.
    pub fn is_of_host(&self) -> bool {
        self.of_host
    }

    /// Copies `bytes` to `offset`; drops those beyond the end. They are there when it returns.
    ///
    /// # Errors
    /// The failed call.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), GpuError> {
        let length = bytes.len().min(self.length_bytes.saturating_sub(offset));
        if length == 0 {
            return Ok(());
        }
        // SAFETY: `offset + length` is inside the allocation.
        unsafe { self.gpu.driver.copy_in(self.gpu.handle, self.at(offset), &bytes[..length]) }
    }

    /// Copies bytes from `offset` into `into`; returns how many there were before the end.
    ///
    /// # Errors
    /// The failed call.
    pub fn read_at(&self, offset: usize, into: &mut [u8]) -> Result<usize, GpuError> {
        let length = into.len().min(self.length_bytes.saturating_sub(offset));
        if length > 0 {
            let into = &mut into[..length];
            // SAFETY: `offset + length` is inside the allocation.
            unsafe { self.gpu.driver.copy_out(self.gpu.handle, self.at(offset), into)? };
        }
        Ok(length)
    }

    /// Sets `length_bytes` bytes from `offset`, or those before the end.
    ///
    /// # Errors
    /// The failed call.
    pub fn fill(&self, offset: usize, byte: u8, length_bytes: usize) -> Result<(), GpuError> {
        let length = length_bytes.min(self.length_bytes.saturating_sub(offset));
        if length == 0 {
            return Ok(());
        }
        // SAFETY: `offset + length` is inside the allocation.
        unsafe { self.gpu.driver.fill(self.gpu.handle, self.at(offset), byte, length) }
    }

    fn at(&self, offset: usize) -> u64 {
        self.address + offset as u64
    }

    /// Exports it as a dmabuf. The driver exports whole pages of the host, and this memory may lie inside of a larger
    /// allocation: all of that is exported, and [`Export::offset`] says where this memory begins in it.
    ///
    /// # Errors
    /// The failed call: a driver that exports nothing.
    pub fn export(&self) -> Result<Export, GpuError> {
        let driver = self.gpu.driver;
        let (base, base_bytes) = driver.range_of(self.gpu.handle, self.address)?;
        let page = page_size() as u64;
        let start = base - base % page;
        let end = (base + base_bytes as u64).next_multiple_of(page);
        let exported_bytes = (end - start) as usize;
        let (descriptor, offset) = driver.export(self.gpu.handle, start, exported_bytes)?;
        Ok(Export { descriptor, offset: offset + (self.address - start), exported_bytes })
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        // A failure is harmless: the process gives the memory back with its end.
        // SAFETY: copies borrow `self`, and MRs in it held it, so nothing uses it any more.
        let _ = unsafe { self.gpu.driver.free(self.gpu.handle, self.address, self.of_host) };
    }
}

/// A dmabuf with a GPU's memory.
#[derive(Debug)]
pub struct Export {
    descriptor: OwnedFd,
    offset: u64,
    exported_bytes: usize,
}

impl Export {
    /// Where the memory begins in the dmabuf, in bytes: the offset of `ibv_reg_dmabuf_mr(3)`.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a program can map it, which most drivers of GPUs do not let it do.
    pub fn can_be_mapped(&self) -> bool {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let (length, descriptor) = (self.exported_bytes, self.descriptor.as_raw_fd());
        // SAFETY: a new mapping touches no existing memory.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, rights, libc::MAP_SHARED, descriptor, 0)
        };
        // SAFETY: mapped above, with this length.
        start != libc::MAP_FAILED && unsafe { libc::munmap(start, length) } == 0
    }

    /// Bytes of the exported range.
    pub fn exported_bytes(&self) -> usize {
        self.exported_bytes
    }
}

impl AsFd for Export {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
