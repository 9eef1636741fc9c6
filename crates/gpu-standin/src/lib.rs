//! For tests alone: GPUs without hardware, under the names of CUDA's driver and of ROCm's runtimes. A test puts this library
//! where the dynamic linker looks, as `libcuda.so.1`, `libamdhip64.so` and `libhsa-runtime64.so.1`.
//!
//! A GPU's memory has addresses that nothing in the process has, so that who touches it as a CPU ends. Each allocation lies
//! inside a larger one of its own, which is a memfd: the dmabuf that is exported. So an offset of 0 is other bytes.
//!
//! The environment says what is there: `GPU_STANDIN_GPUS` (PCI addresses, with commas between them; one GPU without),
//! `GPU_STANDIN_BYTES` (memory of each) and `GPU_STANDIN_FAULT`: `no-device`, `no-export`, `integrated`, or `lost:N`, which
//! loses the context after N copies.
//!
//! # Safety
//! Each function here is as safe as the one of its name in its library.
#![allow(unsafe_code)]
#![allow(clippy::missing_safety_doc)] // it stands above, once for all

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const NO_DEVICE: c_int = 100;
const INVALID_DEVICE: c_int = 101;
const CONTEXT_IS_DESTROYED: c_int = 709;
const NOT_SUPPORTED: c_int = 801;

/// Attributes that CUDA has, and the one of ROCm.
const INTEGRATED: [c_int; 2] = [18, 16];
const DMA_BUF_SUPPORTED: c_int = 124;

/// From the beginning of the larger allocation to that of the one that was asked for.
const BEFORE: u64 = 0x3000;

/// The first address, which no process has.
const FIRST_ADDRESS: u64 = 0x7ff0_0000_0000_0000;

/// The bytes of a GPU without `GPU_STANDIN_BYTES`.
const USUAL_BYTES: u64 = 1 << 30;

struct Machine {
    /// By the first address of the larger allocation: its bytes, and how many they are.
    blocks: BTreeMap<u64, (File, u64)>,
    next: u64,
    used_bytes: u64,
    copies: u64,
}

fn machine() -> MutexGuard<'static, Machine> {
    static MACHINE: Mutex<Machine> = Mutex::new(Machine {
        blocks: BTreeMap::new(),
        next: FIRST_ADDRESS,
        used_bytes: 0,
        copies: 0,
    });
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn has_fault(fault: &str) -> bool {
    variable("GPU_STANDIN_FAULT") == fault
}

fn addresses() -> Vec<String> {
    match variable("GPU_STANDIN_GPUS").as_str() {
        "" => vec!["0000:00:1f.7".to_owned()],
        list => list.split(',').map(str::to_owned).collect(),
    }
}

fn total_bytes() -> u64 {
    variable("GPU_STANDIN_BYTES").parse().unwrap_or(USUAL_BYTES)
}

impl Machine {
    fn allocate(&mut self, length: u64) -> Result<u64, c_int> {
        if length > total_bytes() - self.used_bytes.min(total_bytes()) {
            return Err(OUT_OF_MEMORY);
        }
        let whole = BEFORE + length.next_multiple_of(4096) + 4096;
        let file = rustix::fs::memfd_create("gpu", rustix::fs::MemfdFlags::CLOEXEC)
            .map(File::from)
            .map_err(|_| OUT_OF_MEMORY)?;
        file.set_len(whole).map_err(|_| OUT_OF_MEMORY)?;
        let base = self.next;
        self.next += whole;
        self.used_bytes += length;
        self.blocks.insert(base, (file, whole));
        Ok(base + BEFORE)
    }

    fn free(&mut self, address: u64) -> Result<(), c_int> {
        let (_, whole) = self.blocks.remove(&address.wrapping_sub(BEFORE)).ok_or(INVALID_VALUE)?;
        self.used_bytes = self.used_bytes.saturating_sub(whole - BEFORE - 4096);
        Ok(())
    }

    /// The larger allocation around bytes of one: its first address, its bytes, and the offset of the first of them.
    fn around(&self, address: u64, length: usize) -> Result<(u64, &(File, u64), u64), c_int> {
        let (base, block) = self.blocks.range(..=address).next_back().ok_or(INVALID_VALUE)?;
        let offset = address - base;
        let is_inside = offset.checked_add(length as u64).is_some_and(|end| end <= block.1);
        if is_inside { Ok((*base, block, offset)) } else { Err(INVALID_VALUE) }
    }

    /// The same for a copy, which may find the context lost.
    fn copied(&mut self, address: u64, length: usize) -> Result<(&File, u64), c_int> {
        self.copies += 1;
        let lost = variable("GPU_STANDIN_FAULT");
        let last = lost.strip_prefix("lost:").and_then(|number| number.parse().ok());
        if last.is_some_and(|last: u64| self.copies > last) {
            return Err(CONTEXT_IS_DESTROYED);
        }
        let (_, block, offset) = self.around(address, length)?;
        Ok((&block.0, offset))
    }

    fn export(&self, start: u64, length: usize) -> Result<c_int, c_int> {
        if has_fault("no-export") {
            return Err(NOT_SUPPORTED);
        }
        let (_, block, offset) = self.around(start, length)?;
        // A part would be a descriptor of its own, which a memfd cannot give.
        if offset != 0 || length as u64 != block.1 {
            return Err(INVALID_VALUE);
        }
        block.0.try_clone().map(IntoRawFd::into_raw_fd).map_err(|_| OUT_OF_MEMORY)
    }
}

fn code(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// Stores a value where the caller wants it.
unsafe fn store<T>(value: Result<T, c_int>, into: *mut T) -> c_int {
    // SAFETY: the caller's place for a value.
    code(value.map(|value| unsafe { into.write(value) }))
}

fn count() -> Result<c_int, c_int> {
    if has_fault("no-device") { Err(NO_DEVICE) } else { Ok(addresses().len() as c_int) }
}

unsafe fn store_text(text: &str, into: *mut c_char, length: c_int) -> c_int {
    let text = CString::new(text).unwrap_or_default();
    let bytes = text.as_bytes_with_nul();
    if bytes.len() > length as usize {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's buffer of this length.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), into, bytes.len()) };
    0
}

unsafe fn store_pci_address(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
    match addresses().get(ordinal as usize) {
        // SAFETY: as the caller's.
        Some(address) => unsafe { store_text(address, into, length) },
        None => INVALID_DEVICE,
    }
}

unsafe fn store_name(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
    // SAFETY: as the caller's.
    unsafe { store_text(&format!("Stand-in {ordinal}"), into, length) }
}

unsafe fn store_memory(free: *mut usize, total: *mut usize) -> c_int {
    let used = machine().used_bytes;
    // SAFETY: the caller's places for two numbers.
    unsafe {
        total.write(total_bytes() as usize);
        free.write(total_bytes().saturating_sub(used) as usize);
    }
    0
}

unsafe fn store_range(base: *mut u64, length: *mut usize, address: u64) -> c_int {
    match machine().around(address, 1) {
        Ok((start, (_, bytes), _)) => {
            // SAFETY: the caller's places for an address and a length.
            unsafe {
                base.write(start);
                length.write(*bytes as usize);
            }
            0
        }
        Err(code) => code,
    }
}

unsafe fn copy_in(address: u64, source: *const c_void, length: usize) -> c_int {
    // SAFETY: the caller's bytes.
    let bytes = unsafe { std::slice::from_raw_parts(source.cast::<u8>(), length) };
    let mut machine = machine();
    code(
        machine
            .copied(address, length)
            .and_then(|(file, offset)| file.write_all_at(bytes, offset).map_err(|_| INVALID_VALUE)),
    )
}

unsafe fn copy_out(target: *mut c_void, address: u64, length: usize) -> c_int {
    // SAFETY: the caller's place for so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), length) };
    let mut machine = machine();
    code(
        machine.copied(address, length).and_then(|(file, offset)| {
            file.read_exact_at(bytes, offset).map_err(|_| INVALID_VALUE)
        }),
    )
}

fn fill(address: u64, byte: u8, length: usize) -> c_int {
    let machine = machine();
    code(machine.around(address, length).and_then(|(_, block, offset)| {
        // What is new is zeroes.
        let is_new = byte == 0 && offset == BEFORE;
        let written =
            if is_new { Ok(()) } else { block.0.write_all_at(&vec![byte; length], offset) };
        written.map_err(|_| INVALID_VALUE)
    }))
}

/// The host's memory: pages of this process.
fn allocate_of_host(length: usize) -> Result<*mut c_void, c_int> {
    let whole = length.next_multiple_of(4096);
    // SAFETY: the layout is not empty and its alignment a power of two.
    let memory = unsafe { libc::memalign(4096, whole) };
    if memory.is_null() { Err(OUT_OF_MEMORY) } else { Ok(memory) }
}

/// Exports functions, each with its body.
macro_rules! export {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: as the caller's.
            #[allow(unused_unsafe)]
            unsafe { $body }
        }
    )*};
}

export! {
    fn cuInit(_flags: c_uint) -> c_int { code(count().map(|_| ())) }
    fn cuDriverGetVersion(version: *mut c_int) -> c_int { store(Ok(13_000), version) }
    fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int {
        let text = match code {
            INVALID_VALUE => c"CUDA_ERROR_INVALID_VALUE",
            OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
            NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
            CONTEXT_IS_DESTROYED => c"CUDA_ERROR_CONTEXT_IS_DESTROYED",
            NOT_SUPPORTED => c"CUDA_ERROR_NOT_SUPPORTED",
            _ => return INVALID_VALUE,
        };
        store(Ok(text.as_ptr()), name)
    }
    fn cuDeviceGetCount(into: *mut c_int) -> c_int { store(count(), into) }
    fn cuDeviceGetName(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
        store_name(into, length, ordinal)
    }
    fn cuDeviceGetPCIBusId(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
        store_pci_address(into, length, ordinal)
    }
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, _ordinal: c_int) -> c_int {
        let is_so = match attribute {
            DMA_BUF_SUPPORTED => !has_fault("no-export"),
            _ => INTEGRATED.contains(&attribute) && has_fault("integrated"),
        };
        store(Ok(is_so.into()), value)
    }
    fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, ordinal: c_int) -> c_int {
        store(Ok(std::ptr::without_provenance_mut(ordinal as usize + 1)), context)
    }
    fn cuCtxSetCurrent(_context: *mut c_void) -> c_int { 0 }
    fn cuCtxSynchronize() -> c_int { 0 }
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int { store_memory(free, total) }
    fn cuMemAlloc_v2(address: *mut u64, length: usize) -> c_int {
        store(machine().allocate(length as u64), address)
    }
    fn cuMemFree_v2(address: u64) -> c_int { code(machine().free(address)) }
    fn cuMemAllocHost_v2(address: *mut *mut c_void, length: usize) -> c_int {
        store(allocate_of_host(length), address)
    }
    fn cuMemFreeHost(address: *mut c_void) -> c_int { libc::free(address); 0 }
    fn cuMemGetAddressRange_v2(base: *mut u64, length: *mut usize, address: u64) -> c_int {
        store_range(base, length, address)
    }
    fn cuPointerSetAttribute(_value: *const c_void, _attribute: c_int, _address: u64) -> c_int { 0 }
    fn cuMemGetHandleForAddressRange(
        handle: *mut c_int, start: u64, length: usize, _kind: c_int, _flags: u64
    ) -> c_int {
        store(machine().export(start, length), handle)
    }
    fn cuMemcpyHtoD_v2(address: u64, source: *const c_void, length: usize) -> c_int {
        if is_of_host(address) { return copied_here(address as *mut c_void, source, length); }
        copy_in(address, source, length)
    }
    fn cuMemcpyDtoH_v2(target: *mut c_void, address: u64, length: usize) -> c_int {
        if is_of_host(address) { return copied_here(target, address as *const c_void, length); }
        copy_out(target, address, length)
    }
    fn cuMemsetD8_v2(address: u64, byte: u8, length: usize) -> c_int {
        if is_of_host(address) {
            std::ptr::write_bytes(address as *mut u8, byte, length);
            return 0;
        }
        fill(address, byte, length)
    }

    fn hipInit(flags: c_uint) -> c_int { cuInit(flags) }
    fn hipDriverGetVersion(version: *mut c_int) -> c_int { store(Ok(70_100_000), version) }
    fn hipGetErrorName(code: c_int) -> *const c_char {
        match code {
            OUT_OF_MEMORY => c"hipErrorOutOfMemory".as_ptr(),
            NO_DEVICE => c"hipErrorNoDevice".as_ptr(),
            _ => c"hipErrorUnknown".as_ptr(),
        }
    }
    fn hipGetDeviceCount(into: *mut c_int) -> c_int { store(count(), into) }
    fn hipDeviceGetName(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
        store_name(into, length, ordinal)
    }
    fn hipDeviceGetPCIBusId(into: *mut c_char, length: c_int, ordinal: c_int) -> c_int {
        store_pci_address(into, length, ordinal)
    }
    fn hipDeviceGetAttribute(value: *mut c_int, attribute: c_int, ordinal: c_int) -> c_int {
        cuDeviceGetAttribute(value, attribute, ordinal)
    }
    fn hipSetDevice(_ordinal: c_int) -> c_int { 0 }
    fn hipDeviceSynchronize() -> c_int { 0 }
    fn hipMemGetInfo(free: *mut usize, total: *mut usize) -> c_int { store_memory(free, total) }
    fn hipMalloc(address: *mut u64, length: usize) -> c_int { cuMemAlloc_v2(address, length) }
    fn hipFree(address: u64) -> c_int { cuMemFree_v2(address) }
    fn hipHostMalloc(address: *mut *mut c_void, length: usize, _flags: c_uint) -> c_int {
        cuMemAllocHost_v2(address, length)
    }
    fn hipHostFree(address: *mut c_void) -> c_int { cuMemFreeHost(address) }
    fn hipMemGetAddressRange(base: *mut u64, length: *mut usize, address: u64) -> c_int {
        store_range(base, length, address)
    }
    fn hipMemcpy(target: *mut c_void, source: *const c_void, length: usize, kind: c_int) -> c_int {
        match kind {
            1 => cuMemcpyHtoD_v2(target.addr() as u64, source, length),
            2 => cuMemcpyDtoH_v2(target, source.addr() as u64, length),
            _ => INVALID_VALUE,
        }
    }
    fn hipMemset(address: u64, byte: c_int, length: usize) -> c_int {
        cuMemsetD8_v2(address, byte as u8, length)
    }
    fn hsa_amd_portable_export_dmabuf(
        start: u64, length: usize, descriptor: *mut c_int, offset: *mut u64
    ) -> c_int {
        offset.write(0);
        store(machine().export(start, length), descriptor)
    }
    fn hsa_status_string(_status: c_int, text: *mut *const c_char) -> c_int {
        store(Ok(c"HSA_STATUS_ERROR".as_ptr()), text)
    }
}

/// Whether an address is of this process' own memory.
fn is_of_host(address: u64) -> bool {
    address < FIRST_ADDRESS
}

unsafe fn copied_here(target: *mut c_void, source: *const c_void, length: usize) -> c_int {
    // SAFETY: as the caller's.
    unsafe { std::ptr::copy(source.cast::<u8>(), target.cast::<u8>(), length) };
    0
}
