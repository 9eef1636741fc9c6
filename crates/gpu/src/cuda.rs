//! NVIDIA's GPUs, by the driver's own library. Declarations follow cuda.h; a name with `_v2` is the one that the header
//! gives programs of today.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use crate::driver::Driver;
use crate::library::{Library, functions};
use crate::{GpuError, Maker};

functions! { Functions {
    init = c"cuInit" (c_uint) -> c_int;
    driver_version = c"cuDriverGetVersion" (*mut c_int) -> c_int;
    error_name = c"cuGetErrorName" (c_int, *mut *const c_char) -> c_int;
    device_count = c"cuDeviceGetCount" (*mut c_int) -> c_int;
    device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int) -> c_int;
    device_pci_bus_id = c"cuDeviceGetPCIBusId" (*mut c_char, c_int, c_int) -> c_int;
    device_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int) -> c_int;
    retain_context = c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int) -> c_int;
    set_context = c"cuCtxSetCurrent" (*mut c_void) -> c_int;
    synchronize = c"cuCtxSynchronize" () -> c_int;
    memory_info = c"cuMemGetInfo_v2" (*mut usize, *mut usize) -> c_int;
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
            functions: Functions::load(&library)?,
            exports: Exports::load(&library).ok(),
            contexts: Mutex::new(Vec::new()),
        };
        // SAFETY: the first call, with the one value that flags have.
        let code = unsafe { (cuda.functions.init)(0) };
        cuda.check("cuInit", code, || "this machine".to_owned())?;
        Ok(cuda)
    }

    fn check(
        &self,
        function: &'static str,
        code: c_int,
        object: impl Fn() -> String,
    ) -> Result<(), GpuError> {
        if code == 0 {
            return Ok(());
        }
        let mut name: *const c_char = null();
        // SAFETY: it sets `name` to a string that lives for ever, or leaves it for a code that it does not know.
        let name = unsafe {
            (self.functions.error_name)(code, &raw mut name);
            if name.is_null() { c"an unknown error" } else { CStr::from_ptr(name) }
        };
        let name = name.to_string_lossy().into_owned();
        Err(GpuError::Call { maker: Maker::Cuda, function, object: object(), code, name })
    }

    /// Makes the GPU's context that of this thread: all calls on memory need one.
    fn enter(&self, gpu: usize) -> Result<(), GpuError> {
        // SAFETY: a context from `open_gpu`, which stays.
        let code = unsafe { (self.functions.set_context)(gpu as *mut c_void) };
        self.check("cuCtxSetCurrent", code, || "the GPU's context".to_owned())
    }

    fn text(
        &self,
        ordinal: u32,
        function: &'static str,
        call: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int,
    ) -> Result<String, GpuError> {
        let mut text: [c_char; 256] = [0; 256];
        // SAFETY: the buffer has this length, and stays terminated: the last byte is not given away.
        let code = unsafe { call(text.as_mut_ptr(), 255, ordinal.cast_signed()) };
        self.check(function, code, || format!("cuda:{ordinal}"))?;
        // SAFETY: a terminated string, as above.
        Ok(unsafe { CStr::from_ptr(text.as_ptr()) }.to_string_lossy().into_owned())
    }

    fn attribute(&self, ordinal: u32, attribute: c_int) -> Result<bool, GpuError> {
        let mut value = 0;
        // SAFETY: an attribute of a GPU's number; both are checked there.
        let code = unsafe {
            (self.functions.device_attribute)(&raw mut value, attribute, ordinal.cast_signed())
        };
        self.check("cuDeviceGetAttribute", code, || format!("cuda:{ordinal}"))?;
        Ok(value != 0)
    }
}

impl Driver for Cuda {
    fn version(&self) -> Result<String, GpuError> {
        let mut version = 0;
        // SAFETY: it writes one number.
        let code = unsafe { (self.functions.driver_version)(&raw mut version) };
        self.check("cuDriverGetVersion", code, || "this machine".to_owned())?;
        Ok(format!("CUDA {}.{}", version / 1000, version % 1000 / 10))
    }

    fn count(&self) -> Result<u32, GpuError> {
        let mut count = 0;
        // SAFETY: it writes one number.
        let code = unsafe { (self.functions.device_count)(&raw mut count) };
        self.check("cuDeviceGetCount", code, || "this machine".to_owned())?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn name(&self, ordinal: u32) -> Result<String, GpuError> {
        self.text(ordinal, "cuDeviceGetName", self.functions.device_name)
    }

    fn pci_address(&self, ordinal: u32) -> Result<String, GpuError> {
        let address =
            self.text(ordinal, "cuDeviceGetPCIBusId", self.functions.device_pci_bus_id)?;
        Ok(address.to_ascii_lowercase())
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
        self.check("cuDevicePrimaryCtxRetain", code, || format!("cuda:{ordinal}"))?;
        contexts.push((ordinal, context as usize));
        Ok(context as usize)
    }

    fn free_and_total_bytes(&self, gpu: usize) -> Result<(u64, u64), GpuError> {
        self.enter(gpu)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: it writes two numbers.
        let code = unsafe { (self.functions.memory_info)(&raw mut free, &raw mut total) };
        self.check("cuMemGetInfo", code, || "the GPU".to_owned())?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError> {
        self.enter(gpu)?;
        let mut address = 0;
        // SAFETY: it writes one address.
        let code = unsafe { (self.functions.allocate)(&raw mut address, length_bytes) };
        self.check("cuMemAlloc", code, || format!("{length_bytes} bytes"))?;
        let sync: c_uint = 1;
        // SAFETY: the value is of the attribute's type, the address was allocated above.
        let synced = unsafe {
            let value = (&raw const sync).cast();
            (self.functions.set_pointer_attribute)(value, SYNC_MEMOPS, address)
        };
        let checked = self.check("cuPointerSetAttribute", synced, || "SYNC_MEMOPS".to_owned());
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
        self.check("cuMemAllocHost", code, || format!("{length_bytes} bytes"))?;
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
        self.check("cuMemFree", code, || format!("{address:#x}"))
    }

    fn range_of(&self, gpu: usize, address: u64) -> Result<(u64, usize), GpuError> {
        self.enter(gpu)?;
        let (mut base, mut length) = (0, 0);
        // SAFETY: it writes an address and a length.
        let code =
            unsafe { (self.functions.address_range)(&raw mut base, &raw mut length, address) };
        self.check("cuMemGetAddressRange", code, || format!("{address:#x}"))?;
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
        self.check(FUNCTION, code, || format!("{length_bytes} bytes"))?;
        // SAFETY: a new descriptor, which belongs to the caller.
        Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, 0))
    }

    unsafe fn copy_in(&self, gpu: usize, address: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code = unsafe { (self.functions.copy_in)(address, bytes.as_ptr().cast(), bytes.len()) };
        self.check("cuMemcpyHtoD", code, || format!("{} bytes", bytes.len()))
    }

    unsafe fn copy_out(&self, gpu: usize, address: u64, into: &mut [u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code =
            unsafe { (self.functions.copy_out)(into.as_mut_ptr().cast(), address, into.len()) };
        self.check("cuMemcpyDtoH", code, || format!("{} bytes", into.len()))
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
        let (code, synced) = unsafe {
            ((self.functions.fill)(address, byte, length_bytes), (self.functions.synchronize)())
        };
        self.check("cuMemsetD8", code, || format!("{length_bytes} bytes"))?;
        self.check("cuCtxSynchronize", synced, || "the GPU".to_owned())
    }
}
