//! The host's memory behind a dmabuf, made by one of the kernel's devices: as real as a GPU's to an adapter that imports it,
//! and mapped here as well.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::VerbsError;

/// What made a dmabuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmabufSource {
    /// `/dev/dma_heap/system`.
    SystemHeap,
    /// `/dev/udmabuf`, of the pages of a sealed memfd.
    Udmabuf,
    /// No device: it is a memfd, which the embedded device takes as well.
    Memfd,
}

impl fmt::Display for DmabufSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DmabufSource::SystemHeap => "the system heap",
            DmabufSource::Udmabuf => "udmabuf",
            DmabufSource::Memfd => "a memfd",
        })
    }
}

const HEAP: &str = "/dev/dma_heap/system";
const UDMABUF: &str = "/dev/udmabuf";

/// `struct dma_heap_allocation_data` (linux/dma-heap.h).
#[repr(C)]
struct HeapAllocation {
    length: u64,
    descriptor: u32,
    descriptor_flags: u32,
    heap_flags: u64,
}

/// `struct udmabuf_create` (linux/udmabuf.h).
#[repr(C)]
struct UdmabufCreate {
    memfd: u32,
    flags: u32,
    offset: u64,
    length: u64,
}

/// The number of a request that writes and reads, or only writes, a struct of this size.
const fn request(direction: u64, kind: u8, number: u64, bytes: usize) -> u64 {
    direction << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number
}

/// `DMA_HEAP_IOCTL_ALLOC`.
const HEAP_ALLOC: u64 = request(3, b'H', 0, size_of::<HeapAllocation>());
/// `UDMABUF_CREATE`.
const UDMABUF_CREATE: u64 = request(1, b'u', 0x42, size_of::<UdmabufCreate>());

/// Zeroed memory of `length_bytes`, whole pages, by the first of the kernel's devices that gives it, or with `takes_memfd`
/// without one.
///
/// # Errors
/// No device gives it, with what each of them said.
pub(super) fn allocate(
    length_bytes: usize,
    takes_memfd: bool,
) -> Result<(OwnedFd, DmabufSource), VerbsError> {
    let heap_error = match of_heap(length_bytes) {
        Ok(descriptor) => return Ok((descriptor, DmabufSource::SystemHeap)),
        Err(error) => error,
    };
    let udmabuf_error = match of_udmabuf(length_bytes) {
        Ok(descriptor) => return Ok((descriptor, DmabufSource::Udmabuf)),
        Err(error) => error,
    };
    if takes_memfd && let Ok(file) = memfd(length_bytes) {
        return Ok((file.into(), DmabufSource::Memfd));
    }
    Err(VerbsError::NoDmabuf {
        bytes: length_bytes,
        reasons: format!("{HEAP}: {heap_error}; {UDMABUF}: {udmabuf_error}"),
        is_missing: [&heap_error, &udmabuf_error]
            .iter()
            .all(|error| error.kind() == io::ErrorKind::NotFound),
    })
}

fn of_heap(length_bytes: usize) -> io::Result<OwnedFd> {
    let heap = OpenOptions::new().read(true).write(true).open(HEAP)?;
    let mut allocation = HeapAllocation {
        length: length_bytes as u64,
        descriptor: 0,
        descriptor_flags: (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned(),
        heap_flags: 0,
    };
    // SAFETY: an open file and the struct that this request reads and writes.
    let code = unsafe { libc::ioctl(heap.as_raw_fd(), HEAP_ALLOC as _, &raw mut allocation) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which belongs to the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(allocation.descriptor.cast_signed()) })
}

fn of_udmabuf(length_bytes: usize) -> io::Result<OwnedFd> {
    let device = OpenOptions::new().read(true).write(true).open(UDMABUF)?;
    let file = memfd(length_bytes)?;
    rustix::fs::fcntl_add_seals(&file, rustix::fs::SealFlags::SHRINK)?;
    let create = UdmabufCreate {
        memfd: file.as_raw_fd().cast_unsigned(),
        // UDMABUF_FLAGS_CLOEXEC
        flags: 1,
        offset: 0,
        length: length_bytes as u64,
    };
    // SAFETY: an open file and the struct that this request reads.
    let code = unsafe { libc::ioctl(device.as_raw_fd(), UDMABUF_CREATE as _, &raw const create) };
    if code < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor, which belongs to the caller.
    Ok(unsafe { OwnedFd::from_raw_fd(code) })
}

fn memfd(length_bytes: usize) -> io::Result<File> {
    use rustix::fs::MemfdFlags;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("rocebench", flags)?);
    file.set_len(length_bytes as u64)?;
    // The pages are there now: a full file system of memory ends a program that touches the next one.
    rustix::fs::fallocate(
        file.as_fd(),
        rustix::fs::FallocateFlags::empty(),
        0,
        length_bytes as u64,
    )?;
    Ok(file)
}
