//! `access`, `stat` and `open` of the C library, for programs (UCX) that look for RDMA devices in Linux' files instead
//! of asking verbs: they find those of the embedded device, and all other files as they are.
//!
//! Programs call these anywhere, before `main` and in signal handlers too. For other files they are the system call that
//! the C library would make, and nothing else: they take no lock and no memory.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, IntoRawFd};
use std::os::raw::{c_char, c_int};
use std::os::unix::fs::FileExt;

use libc::mode_t;
use softroce::verbs::{KernelFile, kernel_file};

/// # Safety
/// `path` is null or a C string.
unsafe fn file(path: *const c_char) -> Option<KernelFile> {
    if path.is_null() {
        return None;
    }
    // SAFETY: the caller vouches for it.
    let path = unsafe { CStr::from_ptr(path) };
    kernel_file(path.to_bytes())
}

fn refuse(error: c_int) -> c_int {
    // SAFETY: the C library's place of this thread's error number, always there.
    unsafe { *libc::__errno_location() = error };
    -1
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn access(path: *const c_char, mode: c_int) -> c_int {
    // SAFETY: as the caller's.
    match unsafe { file(path) } {
        // SAFETY: as the caller's.
        None => unsafe { libc::faccessat(libc::AT_FDCWD, path, mode, 0) },
        Some(KernelFile::Device) if mode & libc::X_OK == 0 => 0,
        Some(KernelFile::Text(_)) if mode & (libc::X_OK | libc::W_OK) == 0 => 0,
        Some(_) => refuse(libc::EACCES),
    }
}

/// `stat(2)`: of our files the kind, the permissions and the length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stat(path: *const c_char, status: *mut libc::stat) -> c_int {
    // SAFETY: as the caller's.
    let Some(file) = (unsafe { file(path) }) else {
        // SAFETY: as the caller's.
        return unsafe { libc::fstatat(libc::AT_FDCWD, path, status, 0) };
    };
    // SAFETY: integers, for which zero is a value.
    let mut ours: libc::stat = unsafe { std::mem::zeroed() };
    ours.st_nlink = 1;
    match file {
        KernelFile::Device => ours.st_mode = libc::S_IFCHR | 0o666,
        KernelFile::Text(text) => {
            ours.st_mode = libc::S_IFREG | 0o444;
            ours.st_size = text.len() as libc::off_t;
        }
    }
    // SAFETY: the caller's struct is writable.
    unsafe { status.write(ours) };
    0
}

/// `open(2)`. The C library's takes `mode` only with some flags; without them whatever stands in its place is passed
/// on, and ignored by the kernel.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: as the caller's.
    match unsafe { file(path) } {
        // SAFETY: as the caller's.
        None => unsafe { libc::openat(libc::AT_FDCWD, path, flags, mode) },
        // Without a kernel driver there is nothing to talk to behind it.
        Some(KernelFile::Device) => refuse(libc::ENXIO),
        Some(KernelFile::Text(_)) if flags & libc::O_ACCMODE != libc::O_RDONLY => {
            refuse(libc::EACCES)
        }
        Some(KernelFile::Text(text)) => hold(&text, flags)
            .unwrap_or_else(|error| refuse(error.raw_os_error().unwrap_or(libc::EIO))),
    }
}

/// A descriptor from which the text can be read.
fn hold(text: &str, flags: c_int) -> io::Result<c_int> {
    let close_on_exec = match flags & libc::O_CLOEXEC {
        0 => 0,
        _ => libc::MFD_CLOEXEC,
    };
    // SAFETY: a constant string.
    let descriptor = unsafe { libc::memfd_create(c"softroce".as_ptr(), close_on_exec) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.write_all_at(text.as_bytes(), 0)?;
    Ok(file.into_raw_fd())
}
