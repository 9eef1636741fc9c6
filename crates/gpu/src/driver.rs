//! GPUs of both makers: what is asked of a maker's library, and a GPU of it.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use crate::cuda::Cuda;
use crate::library::{Call, functions};
use crate::rocm::Rocm;
use crate::{GpuError, GpuMemory};

/// Whose library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Maker {
    /// NVIDIA's: `libcuda.so.1`.
    Cuda,
    /// AMD's: `libamdhip64.so` and `libhsa-runtime64.so.1`.
    Rocm,
}

impl Maker {
    pub const ALL: [Maker; 2] = [Maker::Cuda, Maker::Rocm];

    /// Its word in names of GPUs: `cuda`, `rocm`.
    pub fn word(self) -> &'static str {
        match self {
            Maker::Cuda => "cuda",
            Maker::Rocm => "rocm",
        }
    }

    /// Its library, opened and initialised by the first call.
    pub(crate) fn driver(self) -> Result<&'static dyn Driver, GpuError> {
        static CUDA: OnceLock<Cuda> = OnceLock::new();
        static ROCM: OnceLock<Rocm> = OnceLock::new();
        // Two threads may both open it; the second one's functions are the same.
        match self {
            Maker::Cuda => match CUDA.get() {
                Some(driver) => Ok(driver),
                None => Cuda::open().map(|driver| CUDA.get_or_init(|| driver) as &dyn Driver),
            },
            Maker::Rocm => match ROCM.get() {
                Some(driver) => Ok(driver),
                None => Rocm::open().map(|driver| ROCM.get_or_init(|| driver) as &dyn Driver),
            },
        }
    }

    /// All GPUs that its library shows.
    ///
    /// # Errors
    /// No library, or one that cannot be initialised.
    pub fn gpus(self) -> Result<Vec<Gpu>, GpuError> {
        let count = self.driver()?.count()?;
        (0..count).map(|ordinal| Gpu::new(self, ordinal)).collect()
    }

    /// The version of its driver, as people write it.
    ///
    /// # Errors
    /// As for [`Maker::gpus`].
    pub fn version(self) -> Result<String, GpuError> {
        self.driver()?.version()
    }
}

impl fmt::Display for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Maker::Cuda => "CUDA",
            Maker::Rocm => "ROCm",
        })
    }
}

/// A GPU of this machine.
#[derive(Clone, Copy)]
pub struct Gpu {
    pub(crate) driver: &'static dyn Driver,
    maker: Maker,
    ordinal: u32,
    /// What the driver calls it: a context of CUDA, the ordinal of ROCm.
    pub(crate) handle: usize,
}

impl Gpu {
    /// GPU `ordinal` of this maker.
    ///
    /// # Errors
    /// No library, no such GPU, or a GPU that cannot be opened.
    pub fn new(maker: Maker, ordinal: u32) -> Result<Gpu, GpuError> {
        let driver = maker.driver()?;
        let count = driver.count()?;
        if ordinal >= count {
            let gpu = format!("{}:{ordinal}", maker.word());
            return Err(GpuError::NoSuchGpu { maker, gpu, count });
        }
        Ok(Gpu { driver, maker, ordinal, handle: driver.open_gpu(ordinal)? })
    }

    pub fn maker(&self) -> Maker {
        self.maker
    }

    /// Its number among the maker's GPUs.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Its product name.
    ///
    /// # Errors
    /// The failed call.
    pub fn name(&self) -> Result<String, GpuError> {
        self.driver.name(self.ordinal)
    }

    /// Its PCI address as sysfs writes it: `0000:65:00.0`.
    ///
    /// # Errors
    /// The failed call.
    pub fn pci_address(&self) -> Result<String, GpuError> {
        self.driver.pci_address(self.ordinal)
    }

    /// Whether it has no memory of its own but uses the machine's.
    ///
    /// # Errors
    /// The failed call.
    pub fn is_integrated(&self) -> Result<bool, GpuError> {
        self.driver.is_integrated(self.ordinal)
    }

    /// Whether the driver says that it exports memory as dmabufs.
    ///
    /// # Errors
    /// The failed call.
    pub fn exports_dmabufs(&self) -> Result<bool, GpuError> {
        self.driver.exports_dmabufs(self.ordinal)
    }

    /// Free bytes of its memory, and all.
    ///
    /// # Errors
    /// The failed call.
    pub fn free_and_total_bytes(&self) -> Result<(u64, u64), GpuError> {
        self.driver.free_and_total_bytes(self.handle)
    }

    /// Allocates zeroed memory of at least `length_bytes`; of an integrated GPU the driver's memory of the host.
    ///
    /// # Errors
    /// The failed call: out of memory.
    pub fn allocate(&self, length_bytes: usize) -> Result<GpuMemory, GpuError> {
        GpuMemory::new(*self, length_bytes)
    }
}

impl PartialEq for Gpu {
    fn eq(&self, other: &Gpu) -> bool {
        (self.maker, self.ordinal) == (other.maker, other.ordinal)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.maker.word(), self.ordinal)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

functions! { Calls {
    init = c"cuInit" | c"hipInit" (c_uint) -> c_int;
    driver_version = c"cuDriverGetVersion" | c"hipDriverGetVersion" (*mut c_int) -> c_int;
    device_count = c"cuDeviceGetCount" | c"hipGetDeviceCount" (*mut c_int) -> c_int;
    device_name = c"cuDeviceGetName" | c"hipDeviceGetName" (*mut c_char, c_int, c_int) -> c_int;
    device_pci_bus_id = c"cuDeviceGetPCIBusId" | c"hipDeviceGetPCIBusId" (*mut c_char, c_int, c_int) -> c_int;
    device_attribute = c"cuDeviceGetAttribute" | c"hipDeviceGetAttribute" (*mut c_int, c_int, c_int) -> c_int;
    synchronize = c"cuCtxSynchronize" | c"hipDeviceSynchronize" () -> c_int;
    memory_info = c"cuMemGetInfo_v2" | c"hipMemGetInfo" (*mut usize, *mut usize) -> c_int;
} }

/// What is asked of a maker's library. `gpu` is what `open_gpu` returned; addresses are the GPU's, in memory that was allocated
/// there. All calls may come from any thread.
pub(crate) trait Driver: Send + Sync {
    fn maker(&self) -> Maker;
    /// What both makers have alike.
    fn calls(&self) -> &Calls;
    /// The name of an error's code.
    fn error_name(&self, code: c_int) -> String;
    /// The driver's number of its version, as people write it.
    fn version_text(&self, number: c_int) -> String;
    /// An opened GPU, in errors.
    fn words(&self, gpu: usize) -> String;
    fn is_integrated(&self, ordinal: u32) -> Result<bool, GpuError>;
    fn exports_dmabufs(&self, ordinal: u32) -> Result<bool, GpuError>;
    fn open_gpu(&self, ordinal: u32) -> Result<usize, GpuError>;
    /// Makes it the GPU of this thread: all calls on memory need one.
    fn enter(&self, gpu: usize) -> Result<(), GpuError>;
    fn allocate(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError>;
    /// Allocates memory of the host, which the GPU reaches at the same address.
    fn allocate_of_host(&self, gpu: usize, length_bytes: usize) -> Result<u64, GpuError>;
    /// Frees what `allocate` returned, or with `of_host` what `allocate_of_host` did.
    ///
    /// # Safety
    /// Nothing uses the memory any more.
    unsafe fn free(&self, gpu: usize, address: u64, of_host: bool) -> Result<(), GpuError>;
    /// First byte and length of the allocation in which `address` lies.
    fn range_of(&self, gpu: usize, address: u64) -> Result<(u64, usize), GpuError>;
    /// Exports this range, which begins and ends on the host's page boundaries; with the offset of its first byte in the
    /// dmabuf.
    fn export(
        &self,
        gpu: usize,
        start: u64,
        length_bytes: usize,
    ) -> Result<(OwnedFd, u64), GpuError>;
    /// Copies into the GPU's memory; the bytes are there when it returns.
    ///
    /// # Safety
    /// The range is allocated.
    unsafe fn copy_in(&self, gpu: usize, address: u64, bytes: &[u8]) -> Result<(), GpuError>;
    /// Copies from the GPU's memory.
    ///
    /// # Safety
    /// The range is allocated.
    unsafe fn copy_out(&self, gpu: usize, address: u64, into: &mut [u8]) -> Result<(), GpuError>;
    /// Sets each byte.
    ///
    /// # Safety
    /// The range is allocated.
    unsafe fn fill(
        &self,
        gpu: usize,
        address: u64,
        byte: u8,
        length_bytes: usize,
    ) -> Result<(), GpuError>;

    /// An error of what a call returned.
    fn check(
        &self,
        function: &'static str,
        code: c_int,
        object: &dyn Fn() -> String,
    ) -> Result<(), GpuError> {
        if code == 0 {
            return Ok(());
        }
        let (maker, name) = (self.maker(), self.error_name(code));
        Err(GpuError::Call { maker, function, object: object(), code, name })
    }

    /// Has to be the first call.
    fn init(&self) -> Result<(), GpuError> {
        let call = &self.calls().init;
        // SAFETY: the one value that flags have.
        self.check(call.name, unsafe { (call.function)(0) }, &|| "this machine".to_owned())
    }

    fn version(&self) -> Result<String, GpuError> {
        Ok(self.version_text(self.number_of_machine(&self.calls().driver_version)?))
    }

    fn count(&self) -> Result<u32, GpuError> {
        Ok(u32::try_from(self.number_of_machine(&self.calls().device_count)?).unwrap_or(0))
    }

    fn number_of_machine(
        &self,
        call: &Call<unsafe extern "C" fn(*mut c_int) -> c_int>,
    ) -> Result<c_int, GpuError> {
        let mut number = 0;
        // SAFETY: it writes one number.
        let code = unsafe { (call.function)(&raw mut number) };
        self.check(call.name, code, &|| "this machine".to_owned())?;
        Ok(number)
    }

    fn name(&self, ordinal: u32) -> Result<String, GpuError> {
        self.text_of_device(&self.calls().device_name, ordinal)
    }

    fn pci_address(&self, ordinal: u32) -> Result<String, GpuError> {
        let address = self.text_of_device(&self.calls().device_pci_bus_id, ordinal)?;
        Ok(address.to_ascii_lowercase())
    }

    fn text_of_device(
        &self,
        call: &Call<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>,
        ordinal: u32,
    ) -> Result<String, GpuError> {
        let mut buffer: [c_char; 256] = [0; 256];
        // SAFETY: the buffer has this length, and stays terminated: the last byte is not given away.
        let code = unsafe { (call.function)(buffer.as_mut_ptr(), 255, ordinal.cast_signed()) };
        self.check(call.name, code, &|| format!("{}:{ordinal}", self.maker().word()))?;
        // SAFETY: a terminated string, as above.
        Ok(unsafe { text(buffer.as_ptr()) })
    }

    /// Whether an attribute of a GPU is set.
    fn attribute(&self, ordinal: u32, attribute: c_int) -> Result<bool, GpuError> {
        let (call, mut value) = (&self.calls().device_attribute, 0);
        // SAFETY: an attribute of a GPU's number; both are checked there.
        let code = unsafe { (call.function)(&raw mut value, attribute, ordinal.cast_signed()) };
        self.check(call.name, code, &|| format!("{}:{ordinal}", self.maker().word()))?;
        Ok(value != 0)
    }

    fn free_and_total_bytes(&self, gpu: usize) -> Result<(u64, u64), GpuError> {
        self.enter(gpu)?;
        let (call, mut free, mut total) = (&self.calls().memory_info, 0, 0);
        // SAFETY: it writes two numbers.
        let code = unsafe { (call.function)(&raw mut free, &raw mut total) };
        self.check(call.name, code, &|| self.words(gpu))?;
        Ok((free as u64, total as u64))
    }

    /// Waits until all that was asked of the GPU of this thread is done.
    fn synchronize(&self, gpu: usize) -> Result<(), GpuError> {
        let call = &self.calls().synchronize;
        // SAFETY: the call has no preconditions.
        self.check(call.name, unsafe { (call.function)() }, &|| self.words(gpu))
    }
}

/// A library's text.
///
/// # Safety
/// `text` is null or a C string.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return "an unknown error".to_owned();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
