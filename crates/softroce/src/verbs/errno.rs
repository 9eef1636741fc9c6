//! Returning errors to C callers as verbs do: a null pointer or -1 with `errno`, or the error number.

use std::io;
use std::os::raw::c_int;
use std::ptr::null_mut;

use crate::transport::{MemoryError, PostError};

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(error: c_int) {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = error };
}

/// Returns the pointer, or null with `errno` set.
pub(crate) fn pointer_or_errno<T>(result: Result<*mut T, c_int>) -> *mut T {
    result.unwrap_or_else(|error| {
        set_errno(error);
        null_mut()
    })
}

/// Returns 0, or the error number.
pub(crate) fn zero_or_error(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// Returns 0, or -1 with `errno` set to the error number.
pub(crate) fn minus_one_or_zero(result: Result<(), c_int>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            set_errno(error);
            -1
        }
    }
}

pub(crate) fn last_errno() -> c_int {
    code(&io::Error::last_os_error())
}

/// The number of a system error.
pub(crate) fn code(error: &io::Error) -> c_int {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// The return value of a failed post.
pub(crate) fn post_error(error: PostError) -> c_int {
    match error {
        PostError::Full => libc::ENOMEM,
        PostError::Process => libc::EIO,
        PostError::State | PostError::Elements | PostError::Inline | PostError::Operation => {
            libc::EINVAL
        }
    }
}

/// The error number of a failed registration.
pub(crate) fn memory_error(error: MemoryError) -> c_int {
    match error {
        MemoryError::Invalid => libc::EINVAL,
        MemoryError::Full => libc::ENOMEM,
    }
}
