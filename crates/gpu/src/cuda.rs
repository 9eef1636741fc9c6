//! NVIDIA's GPUs, by the driver's own library. Declarations follow cuda.h; a name with `_v2` is the one that the header
//! gives programs of today.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use crate::driver::{Calls, Driver, text};
use crate::library::{Library, functions};
use crate::{GpuError, Maker};

functions! { Functions {
    error_name = c"cuGetErrorName" (c_int, *mut *const c_char) -> c_int;
    retain_context = c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int) -> c_int;
    set_context = c"cuCtxSetCurrent" (*mut c_void) -> c_int;
    allocate = c"cuMemAlloc_v2" (*mut c_ulonglong, usize) -> c_int;
    free = c"cuMemFree_v2" (c_ulonglong) -> c_int;
    allocate_of_host = c"cuMemAllocHost_v2" (*mut *mut c_void, usize) -> c_int;
    free_of_host = c"cuMemFreeHost" (*mut c_void) -> c_int;
    address_range = c"cuMemGetAddressRange_v2" (*mut c_ulonglong, *mut usize, c_ulonglong) -> c_int;
    set_pointer_attribute = c"cuPointerSetAttribute" (*const c_void, c_int, c_ulonglong) -> c_int;
    copy_in = c"cuMemcpyHtoD_v2" (c_ulonglong, *const c_void, usize) -> c_int;
    copy_out = c"cuMemcpyDtoH_v2" (*mut c_void, c_ulonglong, usize) -> c_int;
    fill = c"cuMemsetD8_v2" (c_ulonglong, u8, usize) -> c_int;
} }

// Since CUDA 11.7.
functions! { Exports {
    export = c"cuMemGetHandleForAddressRange" (*mut c_void, c_ulonglong, usize, c_int, c_ulonglong) -> c_int;
} }

const INTEGRATED: c_int = 18;
const DMA_BUF_SUPPORTED: c_int = 124;
/// Copies and fills are synchronous, also with what adapters write.
const SYNC_MEMOPS: c_int = 6;
const DMA_BUF_FD: c_int = 1;

pub(crate) struct Cuda {
    calls: Calls,
    functions: Functions,
    /// `None` for a driver older than dmabufs.
    exports: Option<Exports>,
    /// GPUs with their primary contexts, which stay until the process ends.
    contexts: Mutex<Vec<(u32, usize)>>,
}

impl Cuda {
    pub(crate) fn open() -> Result<Cuda, GpuError> {
        let library = Library::open(Maker::Cuda, "libcuda.so.1", &[c"libcuda.so.1"])?;
        let cuda = Cuda {
            calls: Calls::load(&library, Maker::Cuda)?,
            functions: Functions::load(&library)?,
            exports: Exports::load(&library).ok(),
            contexts: Mutex::new(Vec::new()),
        };
        cuda.init()?;
        Ok(cuda)
    }
}

impl Driver for Cuda {
    fn maker(&self) -> Maker {
        Maker::Cuda
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }

    fn error_name(&self, code: c_int) -> String {
        let mut name: *const c_char = null();
        // SAFETY: it sets `name` to a string that lives for ever, or leaves it for a code that it does not know.
        unsafe {
            (self.functions.error_name)(code, &raw mut name);
            text(name)
        }
    }

    fn version_text(&self, number: c_int) -> String {
        format!("CUDA {}.{}", number / 1000, number % 1000 / 10)
    }

    fn words(&self, _: usize) -> String {
        "the GPU".to_owned()
    }

    fn is_integrated(&self, ordinal: u32) -> Result<bool, GpuError> {
        self.attribute(ordinal, INTEGRATED)
    }

    fn exports_dmabufs(&self, ordinal: u32) -> Result<bool, GpuError> {
        // A driver older than the attribute does not know it.
        Ok(self.exports.is_some() && self.attribute(ordinal, DMA_BUF_SUPPORTED).unwrap_or(false))
    }

    fn open_gpu(&self, ordinal: u32) -> Result<usize, GpuError> {
        let mut contexts = self.contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, context)) = contexts.iter().find(|(number, _)| *number == ordinal) {
            return Ok(*context);
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: it writes one pointer. A CUdevice is the GPU's ordinal.
        let code =
            unsafe { (self.functions.retain_context)(&raw mut context, ordinal.cast_signed()) };
        self.check("cuDevicePrimaryCtxRetain", code, &|| format!("cuda:{ordinal}"))?;
        contexts.push((ordinal, context as usize));
        Ok(context as usize)
    }

    fn enter(&self, gpu: usize) -> Result<(), GpuError> {
        // SAFETY: a context from `open_gpu`, which stays.
        let code = unsafe { (self.functions.set_context)(gpu as *mut c_void) };
        self.check("cuCtxSetCurrent", code, &|| "the GPU's context".to_owned())
    }

    fn allocate(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError> {
        self.enter(gpu)?;
        let mut address = 0;
        // SAFETY: it writes one address.
        let code = unsafe { (self.functions.allocate)(&raw mut address, length_bytes) };
        self.check("cuMemAlloc", code, &|| format!("{length_bytes} bytes"))?;
        let sync: c_uint = 1;
        // SAFETY: the value is of the attribute's type, the address was allocated above.
        let synced = unsafe {
            let value = (&raw const sync).cast();
            (self.functions.set_pointer_attribute)(value, SYNC_MEMOPS, address)
        };
        let checked = self.check("cuPointerSetAttribute", synced, &|| "SYNC_MEMOPS".to_owned());
        if checked.is_err() {
            // SAFETY: allocated above, and nobody else knows it.
            let _ = unsafe { self.free(gpu, address, false) };
        }
        checked.map(|()| address)
    }

    fn allocate_of_host(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError> {
        self.enter(gpu)?;
        let mut address = std::ptr::null_mut();
        // SAFETY: it writes one address.
        let code = unsafe { (self.functions.allocate_of_host)(&raw mut address, length_bytes) };
        self.check("cuMemAllocHost", code, &|| format!("{length_bytes} bytes"))?;
        Ok(address as u64)
    }

    unsafe fn free(&self, gpu: usize, address: u64, of_host: bool) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code = unsafe {
            if of_host {
                (self.functions.free_of_host)(address as *mut c_void)
            } else {
                (self.functions.free)(address)
            }
        };
        self.check("cuMemFree", code, &|| format!("{address:#x}"))
    }

    fn range_of(&self, gpu: usize, address: u64) -> Result<(u64, usize), GpuError> {
        self.enter(gpu)?;
        let (mut base, mut length) = (0, 0);
        // SAFETY: it writes an address and a length.
        let code =
            unsafe { (self.functions.address_range)(&raw mut base, &raw mut length, address) };
        self.check("cuMemGetAddressRange", code, &|| format!("{address:#x}"))?;
        Ok((base, length))
    }

    fn export(
        &self,
        gpu: usize,
        start: u64,
        length_bytes: usize,
    ) -> Result<(OwnedFd, u64), GpuError> {
        const FUNCTION: &str = "cuMemGetHandleForAddressRange";
        let exports = self
            .exports
            .as_ref()
            .ok_or(GpuError::NoFunction { library: "libcuda.so.1", function: FUNCTION })?;
        self.enter(gpu)?;
        let mut descriptor: c_int = -1;
        // SAFETY: for this kind of handle it writes one descriptor.
        let code = unsafe {
            (exports.export)((&raw mut descriptor).cast(), start, length_bytes, DMA_BUF_FD, 0)
        };
        self.check(FUNCTION, code, &|| format!("{length_bytes} bytes"))?;
        // SAFETY: a new descriptor, which belongs to the caller.
        Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, 0))
    }

    unsafe fn copy_in(&self, gpu: usize, address: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code = unsafe { (self.functions.copy_in)(address, bytes.as_ptr().cast(), bytes.len()) };
        self.check("cuMemcpyHtoD", code, &|| format!("{} bytes", bytes.len()))
    }

    unsafe fn copy_out(&self, gpu: usize, address: u64, into: &mut [u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code =
            unsafe { (self.functions.copy_out)(into.as_mut_ptr().cast(), address, into.len()) };
        self.check("cuMemcpyDtoH", code, &|| format!("{} bytes", into.len()))
    }

    unsafe fn fill(
        &self,
        gpu: usize,
        address: u64,
        byte: u8,
        length_bytes: usize,
    ) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says; the context is this thread's.
        let code = unsafe { (self.functions.fill)(address, byte, length_bytes) };
        let synced = self.synchronize(gpu);
        self.check("cuMemsetD8", code, &|| format!("{length_bytes} bytes"))?;
        synced
    }
}
