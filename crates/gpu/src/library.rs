//! Libraries that are opened at run time, and tables of their functions.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use crate::{GpuError, Maker};

/// An open library. It is never closed: its functions stay where they are.
pub(crate) struct Library {
    handle: NonNull<c_void>,
    name: &'static str,
}

impl Library {
    /// Opens the first of `files` that the dynamic linker finds.
    ///
    /// # Errors
    /// The linker's words on the last of them.
    pub(crate) fn open(
        maker: Maker,
        name: &'static str,
        files: &[&CStr],
    ) -> Result<Library, GpuError> {
        let mut reason = String::new();
        for file in files {
            // SAFETY: the name is a C string; the library's initialisers are its maker's.
            let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            match NonNull::new(handle) {
                Some(handle) => return Ok(Library { handle, name }),
                None => reason = last_error(),
            }
        }
        Err(GpuError::NoLibrary { maker, reason })
    }

    /// The address of a function.
    ///
    /// # Errors
    /// The library does not have it.
    pub(crate) fn symbol(&self, function: &'static CStr) -> Result<NonNull<c_void>, GpuError> {
        // SAFETY: the library is open and the name a C string.
        let symbol = unsafe { libc::dlsym(self.handle.as_ptr(), function.as_ptr()) };
        NonNull::new(symbol).ok_or(GpuError::NoFunction {
            library: self.name,
            function: function.to_str().unwrap_or_default(),
        })
    }
}

/// The dynamic linker's last error.
fn last_error() -> String {
    // SAFETY: it returns null or a C string that lives until this thread's next call of the linker.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "the dynamic linker does not say why".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

/// A function, with the name that the maker's manual has for it: without the version of its type.
pub(crate) struct Call<F> {
    pub(crate) name: &'static str,
    pub(crate) function: F,
}

/// A table of a library's functions, and `load`, which looks all of them up. Of functions that both makers have alike the table
/// has both names, CUDA's first.
macro_rules! functions {
    ($table:ident { $($field:ident = $cuda:literal | $rocm:literal ($($argument:ty),*) -> $result:ty;)* }) => {
        pub(crate) struct $table {
            $(pub(crate) $field: $crate::library::Call<unsafe extern "C" fn($($argument),*) -> $result>,)*
        }

        impl $table {
            pub(crate) fn load(library: &$crate::library::Library, maker: $crate::Maker) -> Result<$table, $crate::GpuError> {
                Ok($table {
                    $($field: {
                        let symbol_name: &'static std::ffi::CStr = match maker {
                            $crate::Maker::Cuda => $cuda,
                            $crate::Maker::Rocm => $rocm,
                        };
                        let symbol = library.symbol(symbol_name)?;
                        let name = symbol_name.to_str().unwrap_or_default();
                        $crate::library::Call {
                            name: name.strip_suffix("_v2").unwrap_or(name),
                            // SAFETY: as for the tables of one maker below.
                            function: unsafe { std::mem::transmute_copy(&symbol) },
                        }
                    },)*
                })
            }
        }
    };
    ($table:ident { $($field:ident = $name:literal ($($argument:ty),*) -> $result:ty;)* }) => {
        struct $table {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl $table {
            fn load(library: &$crate::library::Library) -> Result<$table, $crate::GpuError> {
                Ok($table {
                    $($field: {
                        let symbol = library.symbol($name)?;
                        // SAFETY: the address of the function of this name, whose declaration in its maker's header the
                        // field's type follows; pointers to functions and to data have one size.
                        unsafe { std::mem::transmute_copy(&symbol) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;
