//! Lists of devices, and the devices in them.

use std::ffi::c_void;
use std::os::raw::{c_char, c_int};
use std::ptr::{from_ref, null};

use rdma_sys::ibv_device;

/// A device of a list; the verbs struct comes first, so a pointer to one is a pointer to the other. It lives as long as
/// the process.
#[repr(C)]
pub struct Listed {
    verbs: ibv_device,
    /// Where providers of rdma-core look whether a device is theirs (`struct verbs_device.ops` in its `driver.h`):
    /// mlx5's and EFA's functions do so with every device. Null is of nobody.
    _provider: *const c_void,
}

// SAFETY: the raw pointers are function pointers in the verbs struct and one to a provider, and all stay null; nothing
// is written after the making.
unsafe impl Send for Listed {}
// SAFETY: as above.
unsafe impl Sync for Listed {}

impl Listed {
    /// A device of this name, with codes of `ibv_node_type` and `ibv_transport_type`. The paths stay empty.
    pub fn new(name: &str, node_type: c_int, transport_type: c_int) -> Listed {
        // SAFETY: integers, arrays of them and optional function pointers: zero is a value of each.
        let mut verbs: ibv_device = unsafe { std::mem::zeroed() };
        verbs.node_type = node_type;
        verbs.transport_type = transport_type;
        write_name(&mut verbs.name, name);
        write_name(&mut verbs.dev_name, name);
        Listed { verbs, _provider: null() }
    }

    /// The pointer that programs get.
    pub fn verbs(&'static self) -> *mut ibv_device {
        from_ref(self).cast::<ibv_device>().cast_mut()
    }

    /// Its name, from the struct that programs read.
    pub fn name(&self) -> String {
        self.verbs
            .name
            .iter()
            .take_while(|byte| **byte != 0)
            .flat_map(|byte| byte.to_ne_bytes())
            .map(char::from)
            .collect()
    }
}

/// Writes a text into a field of a verbs struct, which is zeroed, and keeps the last zero.
pub fn write_name(field: &mut [c_char], text: &str) {
    let most = field.len().saturating_sub(1);
    for (to, from) in field.iter_mut().take(most).zip(text.bytes()) {
        *to = from as c_char;
    }
}

/// A list of pointers that ends with a null, by `calloc`.
///
/// # Errors
/// ENOMEM.
pub fn null_terminated<T>(
    pointers: impl ExactSizeIterator<Item = *mut T>,
) -> Result<*mut *mut T, c_int> {
    // SAFETY: no pointer is passed.
    let list = unsafe { libc::calloc(pointers.len() + 1, size_of::<*mut T>()) }.cast::<*mut T>();
    if list.is_null() {
        return Err(libc::ENOMEM);
    }
    for (index, pointer) in pointers.enumerate() {
        // SAFETY: the list has room for one more than there are.
        unsafe { list.add(index).write(pointer) };
    }
    Ok(list)
}

/// `ibv_free_device_list(3)`.
///
/// # Safety
/// `list` came from [`null_terminated`], or is null, and is not used again.
pub unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: made by `calloc`, or null.
    unsafe { libc::free(list.cast()) };
}

/// `ibv_get_device_name(3)`.
pub unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: devices live as long as the process.
    unsafe { (&raw const (*device).name).cast() }
}
