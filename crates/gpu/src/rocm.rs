//! AMD's GPUs: memory by HIP, its export by the HSA runtime below it. Declarations follow hip_runtime_api.h and
//! hsa_ext_amd.h.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::os::fd::{FromRawFd, OwnedFd};

use crate::driver::{Calls, Driver, text};
use crate::library::{Library, functions};
use crate::{GpuError, Maker};

functions! { Functions {
    error_name = c"hipGetErrorName" (c_int) -> *const c_char;
    set_device = c"hipSetDevice" (c_int) -> c_int;
    allocate = c"hipMalloc" (*mut *mut c_void, usize) -> c_int;
    free = c"hipFree" (*mut c_void) -> c_int;
    allocate_of_host = c"hipHostMalloc" (*mut *mut c_void, usize, c_uint) -> c_int;
    free_of_host = c"hipHostFree" (*mut c_void) -> c_int;
    address_range = c"hipMemGetAddressRange" (*mut *mut c_void, *mut usize, *mut c_void) -> c_int;
    copy = c"hipMemcpy" (*mut c_void, *const c_void, usize, c_int) -> c_int;
    fill = c"hipMemset" (*mut c_void, c_int, usize) -> c_int;
} }

functions! { Exports {
    export = c"hsa_amd_portable_export_dmabuf" (*const c_void, usize, *mut c_int, *mut u64) -> c_int;
    status_text = c"hsa_status_string" (c_int, *mut *const c_char) -> c_int;
} }

/// `hipDeviceAttributeIntegrated`.
const INTEGRATED: c_int = 16;
const HOST_TO_DEVICE: c_int = 1;
const DEVICE_TO_HOST: c_int = 2;

pub(crate) struct Rocm {
    calls: Calls,
    functions: Functions,
    /// `None` where the HSA runtime has no export, which came with ROCm 5.5.
    exports: Option<Exports>,
}

impl Rocm {
    pub(crate) fn open() -> Result<Rocm, GpuError> {
        let files =
            [c"libamdhip64.so", c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"];
        let hip = Library::open(Maker::Rocm, "libamdhip64.so", &files)?;
        let hsa = Library::open(Maker::Rocm, "libhsa-runtime64.so.1", &[c"libhsa-runtime64.so.1"]);
        let exports = hsa.and_then(|library| Exports::load(&library)).ok();
        let calls = Calls::load(&hip, Maker::Rocm)?;
        let rocm = Rocm { calls, functions: Functions::load(&hip)?, exports };
        rocm.init()?;
        Ok(rocm)
    }
}

impl Driver for Rocm {
    fn maker(&self) -> Maker {
        Maker::Rocm
    }

    fn calls(&self) -> &Calls {
        &self.calls
    }

    fn error_name(&self, code: c_int) -> String {
        // SAFETY: it returns a string that lives for ever, for every code.
        unsafe { text((self.functions.error_name)(code)) }
    }

    fn version_text(&self, number: c_int) -> String {
        format!("HIP {}.{}", number / 10_000_000, number / 100_000 % 100)
    }

    fn words(&self, gpu: usize) -> String {
        format!("rocm:{gpu}")
    }

    fn is_integrated(&self, ordinal: u32) -> Result<bool, GpuError> {
        self.attribute(ordinal, INTEGRATED)
    }

    fn exports_dmabufs(&self, _: u32) -> Result<bool, GpuError> {
        Ok(self.exports.is_some())
    }

    fn open_gpu(&self, ordinal: u32) -> Result<usize, GpuError> {
        self.enter(ordinal as usize).map(|()| ordinal as usize)
    }

    fn enter(&self, gpu: usize) -> Result<(), GpuError> {
        // SAFETY: a number, which is checked there.
        let code = unsafe { (self.functions.set_device)(gpu as c_int) };
        self.check("hipSetDevice", code, &|| self.words(gpu))
    }

    fn allocate(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError> {
        self.enter(gpu)?;
        let mut address = std::ptr::null_mut();
        // SAFETY: it writes one address.
        let code = unsafe { (self.functions.allocate)(&raw mut address, length_bytes) };
        self.check("hipMalloc", code, &|| format!("{length_bytes} bytes"))?;
        Ok(address as u64)
    }

    fn allocate_of_host(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError> {
        self.enter(gpu)?;
        let mut address = std::ptr::null_mut();
        // SAFETY: it writes one address; 0 are the usual flags.
        let code = unsafe { (self.functions.allocate_of_host)(&raw mut address, length_bytes, 0) };
        self.check("hipHostMalloc", code, &|| format!("{length_bytes} bytes"))?;
        Ok(address as u64)
    }

    unsafe fn free(&self, gpu: usize, address: u64, of_host: bool) -> Result<(), GpuError> {
        self.enter(gpu)?;
        let free = if of_host { self.functions.free_of_host } else { self.functions.free };
        // SAFETY: as the caller says.
        let code = unsafe { free(address as *mut c_void) };
        self.check("hipFree", code, &|| format!("{address:#x}"))
    }

    fn range_of(&self, gpu: usize, address: u64) -> Result<(u64, usize), GpuError> {
        self.enter(gpu)?;
        let (mut base, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: it writes an address and a length.
        let code = unsafe {
            let inside = address as *mut c_void;
            (self.functions.address_range)(&raw mut base, &raw mut length, inside)
        };
        self.check("hipMemGetAddressRange", code, &|| format!("{address:#x}"))?;
        Ok((base as u64, length))
    }

    fn export(
        &self,
        _: usize,
        start: u64,
        length_bytes: usize,
    ) -> Result<(OwnedFd, u64), GpuError> {
        const FUNCTION: &str = "hsa_amd_portable_export_dmabuf";
        let exports = self
            .exports
            .as_ref()
            .ok_or(GpuError::NoFunction { library: "libhsa-runtime64.so.1", function: FUNCTION })?;
        let (mut descriptor, mut offset) = (-1, 0);
        // SAFETY: it writes a descriptor and an offset.
        let code = unsafe {
            (exports.export)(
                start as *const c_void,
                length_bytes,
                &raw mut descriptor,
                &raw mut offset,
            )
        };
        if code != 0 {
            let mut name = std::ptr::null();
            // SAFETY: it sets `name` to a string that lives for ever, or leaves it.
            let name = unsafe {
                (exports.status_text)(code, &raw mut name);
                text(name)
            };
            let object = format!("{length_bytes} bytes");
            return Err(GpuError::Call {
                maker: Maker::Rocm,
                function: FUNCTION,
                object,
                code,
                name,
            });
        }
        // SAFETY: a new descriptor, which belongs to the caller.
        Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, offset))
    }

    unsafe fn copy_in(&self, gpu: usize, address: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code = unsafe {
            let (target, source) = (address as *mut c_void, bytes.as_ptr().cast());
            (self.functions.copy)(target, source, bytes.len(), HOST_TO_DEVICE)
        };
        let synced = self.synchronize(gpu);
        self.check("hipMemcpy", code, &|| format!("{} bytes", bytes.len()))?;
        synced
    }

    unsafe fn copy_out(&self, gpu: usize, address: u64, into: &mut [u8]) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code = unsafe {
            let (target, source) = (into.as_mut_ptr().cast(), address as *const c_void);
            (self.functions.copy)(target, source, into.len(), DEVICE_TO_HOST)
        };
        self.check("hipMemcpy", code, &|| format!("{} bytes", into.len()))
    }

    unsafe fn fill(
        &self,
        gpu: usize,
        address: u64,
        byte: u8,
        length_bytes: usize,
    ) -> Result<(), GpuError> {
        self.enter(gpu)?;
        // SAFETY: as the caller says.
        let code =
            unsafe { (self.functions.fill)(address as *mut c_void, byte.into(), length_bytes) };
        let synced = self.synchronize(gpu);
        self.check("hipMemset", code, &|| format!("{length_bytes} bytes"))?;
        synced
    }
}
