//! `dlopen` and `dlvsym` of the C library, for programs (NCCL, gloo, sideway) that open libibverbs or librdmacm while they
//! run: they get this library in their place, and its functions by the names and versions that they ask for. A folder with
//! those libraries' names would not do, because perftest and others also link libmlx5, which needs the real one.
//!
//! The C library looks from where it is called, for the caller's search path and what comes after the caller
//! (`RTLD_NEXT`). So both are left by a jump, as if the program had called there.
//!
//! Texts and rates stay the real libraries', and are passed on to them, since a program asks one handle for all names.

use std::arch::naked_asm;
use std::ffi::CStr;
use std::mem::transmute;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// Names under which programs open them, in whatever folder.
const OPENED: [&[u8]; 4] =
    [b"libibverbs.so.1", b"libibverbs.so", b"librdmacm.so.1", b"librdmacm.so"];
const VERSIONS: [&[u8]; 2] = [b"IBVERBS_", b"RDMACM_"];

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// Where a call goes on, in the two registers of a result.
#[repr(C)]
struct Way {
    path: *const c_char,
    function: *mut c_void,
}

extern "C" fn null() -> *mut c_void {
    null_mut()
}

/// The C library's function.
fn real(name: &CStr) -> *mut c_void {
    // SAFETY: a string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if function.is_null() { null as *mut c_void } else { function }
}

/// The file of this library.
fn own_path() -> Option<*const c_char> {
    // SAFETY: pointers, for which null is a value.
    let mut own: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address of this library, and a writable struct.
    let found = unsafe { libc::dladdr(null as *const c_void, &raw mut own) };
    (found != 0).then_some(own.dli_fname)
}

/// # Safety
/// `path` is null or a C string.
unsafe extern "C" fn way_of_opening(path: *const c_char) -> Way {
    let is_ours = !path.is_null() && {
        // SAFETY: the caller vouches for it.
        let name = unsafe { CStr::from_ptr(path) }.to_bytes().rsplit(|byte| *byte == b'/').next();
        name.is_some_and(|name| OPENED.contains(&name))
    };
    let own = if is_ours { own_path() } else { None };
    Way { path: own.unwrap_or(path), function: real(c"dlopen") }
}

/// # Safety
/// `version` is null or a C string.
unsafe extern "C" fn way_of_looking(version: *const c_char) -> *mut c_void {
    let is_ours = !version.is_null() && {
        // SAFETY: the caller vouches for it.
        let version = unsafe { CStr::from_ptr(version) }.to_bytes();
        VERSIONS.iter().any(|start| version.starts_with(start))
    };
    // Here each name has one version.
    real(if is_ours { c"dlsym" } else { c"dlvsym" })
}

/// `dlopen(3)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(path: *const c_char, mode: c_int) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rsi",
        "call {way}",
        "pop rsi",
        "mov rdi, rax",
        "jmp rdx",
        way = sym way_of_opening,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x1, x30, [sp, #-16]!",
        "bl {way}",
        "mov x16, x1",
        "ldp x1, x30, [sp], #16",
        "br x16",
        way = sym way_of_opening,
    );
}

/// `dlvsym(3)`.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn dlvsym(
    handle: *mut c_void,
    name: *const c_char,
    version: *const c_char,
) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "mov rdi, rdx",
        "call {way}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        way = sym way_of_looking,
    );
    #[cfg(target_arch = "aarch64")]
    naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "stp x2, x30, [sp, #16]",
        "mov x0, x2",
        "bl {way}",
        "mov x16, x0",
        "ldp x2, x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        way = sym way_of_looking,
    );
}

/// A function of the real library; `None` where that is not installed.
fn passed_on(library: &CStr, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a function of this type, and strings; the library stays open.
    let function = unsafe {
        let open = transmute::<*mut c_void, Open>(real(c"dlopen"));
        let handle = open(library.as_ptr(), libc::RTLD_LAZY);
        if handle.is_null() { null_mut() } else { libc::dlsym(handle, name.as_ptr()) }
    };
    (!function.is_null()).then_some(function)
}

/// Exports functions that take a number, if anything, and pass it on; without the real library they return 0 or null.
macro_rules! pass_on {
    ($library:literal; $($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, the real library's.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(argument: usize) -> usize {
            const NAME: &str = concat!(stringify!($name), "\0");
            let name = CStr::from_bytes_with_nul(NAME.as_bytes()).unwrap_or_default();
            passed_on($library, name).map_or(0, |function| {
                // SAFETY: a function of one number or none, of which more than it takes is not looked at.
                unsafe { transmute::<*mut c_void, extern "C" fn(usize) -> usize>(function)(argument) }
            })
        }
    )*};
}

pass_on! { c"libibverbs.so.1";
    ibv_event_type_str ibv_fork_init ibv_is_fork_initialized ibv_node_type_str ibv_port_state_str ibv_rate_to_mbps
    ibv_rate_to_mult ibv_wc_status_str mbps_to_ibv_rate mult_to_ibv_rate
}

pass_on! { c"librdmacm.so.1"; rdma_event_str }
