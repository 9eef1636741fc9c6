//! Returning errors to C callers as verbs do: a null pointer, -1 or the error number, and `errno` is set.

use std::io;
use std::os::raw::c_int;
use std::ptr::null_mut;

/// Sets the calling thread's `errno`.
pub fn set_errno(error: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// Returns the pointer, or null with `errno` set.
pub fn pointer_or_errno<T>(result: Result<*mut T, c_int>) -> *mut T {
    result.unwrap_or_else(|error| {
        set_errno(error);
        null_mut()
    })
}

/// Returns 0, or the error number, to which `errno` is set too: libibverbs' calls fail in a system call.
pub fn zero_or_error(result: Result<(), c_int>) -> c_int {
    result.inspect_err(|error| set_errno(*error)).err().unwrap_or(0)
}

/// Returns 0, or -1 with `errno` set to the error number.
pub fn minus_one_or_zero(result: Result<(), c_int>) -> c_int {
    match zero_or_error(result) {
        0 => 0,
        _ => -1,
    }
}

/// The calling thread's `errno`.
pub fn last_errno() -> c_int {
    code(&io::Error::last_os_error())
}

/// The number of a system error; EIO for one that has none.
pub fn code(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}
