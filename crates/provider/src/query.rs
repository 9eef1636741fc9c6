//! What a device and its ports say of themselves: limits, attributes, GIDs and partition keys.

use std::mem::offset_of;
use std::os::raw::{c_int, c_uint};

use rdma_sys::{ibv_context, ibv_device_attr, ibv_gid, ibv_gid_entry, ibv_mtu, ibv_port_attr};

use crate::context::Context;
use crate::engine::Port;
use crate::errno::{minus_one_or_zero, set_errno, zero_or_error};

/// The default partition, full membership, the only entry of each table of keys.
pub const DEFAULT_PKEY: u16 = 0xffff;

/// Payload bytes of an `ibv_mtu` code.
pub fn mtu_bytes(code: ibv_mtu::Type) -> u32 {
    128 << code
}

/// The `ibv_mtu` code of so many payload bytes, at least 128.
pub fn mtu_code(bytes: u32) -> ibv_mtu::Type {
    bytes.max(128).ilog2() - 7
}

/// Fills as much of a struct as the program knows, which has `known_bytes`, and zeroes what this library does not know.
///
/// # Safety
/// `to` has `known_bytes` bytes; a `T` is plain data.
pub unsafe fn fill_as_known<T>(to: *mut T, known_bytes: usize, whole: &T) {
    // SAFETY: the caller's; of `whole` no more than there is is read.
    unsafe {
        to.cast::<u8>().write_bytes(0, known_bytes);
        let common = known_bytes.min(size_of::<T>());
        to.cast::<u8>().copy_from_nonoverlapping((&raw const *whole).cast(), common);
    }
}

unsafe fn port(context: *mut ibv_context, number: u32) -> Result<Port, c_int> {
    // SAFETY: an open context.
    unsafe { Context::from_raw(context) }.description().port(number).ok_or(libc::EINVAL)
}

pub unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: an open context and a writable struct of plain data.
    unsafe { attr.copy_from(&raw const Context::from_raw(context).limits.attributes, 1) };
    0
}

/// `ibv_query_port(3)` by the pointer in `verbs_context`: fills as much of the struct as the program knows. EINVAL for a
/// port that it has not.
///
/// # Safety
/// As for libibverbs: `attr` has `attr_bytes` bytes.
pub unsafe extern "C" fn query_port_bytes(
    context: *mut ibv_context,
    number: u8,
    attr: *mut ibv_port_attr,
    attr_bytes: usize,
) -> c_int {
    // SAFETY: an open context, and the caller's struct.
    zero_or_error(unsafe {
        port(context, number.into()).map(|port| fill_as_known(attr, attr_bytes, &port.attributes))
    })
}

/// `ibv_query_port(3)`, the whole struct. EINVAL for a port that it has not.
pub unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    number: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { query_port_bytes(context, number, attr, size_of::<ibv_port_attr>()) }
}

/// For programs built for the struct without `port_cap_flags2`.
///
/// # Safety
/// As for libibverbs: `attr` has room for the members before that one.
pub unsafe extern "C" fn query_port_compat(
    context: *mut ibv_context,
    number: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { query_port_bytes(context, number, attr, offset_of!(ibv_port_attr, port_cap_flags2)) }
}

/// `ibv_query_port_speed(3)`. EINVAL for a port that it has not, EOPNOTSUPP where the driver has no such function.
pub unsafe extern "C" fn query_port_speed(
    context: *mut ibv_context,
    number: u32,
    speed_100mbit_per_s: *mut u64,
) -> c_int {
    // SAFETY: an open context and a writable number.
    zero_or_error(unsafe {
        port(context, number)
            .and_then(|port| port.speed_100mbit_per_s.ok_or(libc::EOPNOTSUPP))
            .map(|speed| speed_100mbit_per_s.write(speed))
    })
}

/// An entry of a table of GIDs. EINVAL for a port that it has not, ENODATA for an empty entry.
unsafe fn gid(context: *mut ibv_context, number: u32, index: u32) -> Result<ibv_gid_entry, c_int> {
    // SAFETY: an open context.
    unsafe {
        port(context, number)?;
        Context::from_raw(context).description().gid(number, index).ok_or(libc::ENODATA)
    }
}

/// `ibv_query_gid_ex(3)`. EINVAL for a port that it has not, ENODATA for an empty entry.
pub unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    if flags != 0 {
        return zero_or_error(Err(libc::EINVAL));
    }
    // SAFETY: an open context and a writable struct.
    zero_or_error(unsafe { gid(context, port, gid_index).map(|there| entry.write(there)) })
}

/// The symbol behind `ibv_query_gid_ex(3)`. EINVAL for entries of a different size.
pub unsafe extern "C" fn query_gid_ex_sized(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    entry_bytes: usize,
) -> c_int {
    if entry_bytes != size_of::<ibv_gid_entry>() {
        return zero_or_error(Err(libc::EINVAL));
    }
    // SAFETY: as the caller's.
    unsafe { query_gid_ex(context, port, gid_index, entry, flags) }
}

/// The symbol behind `ibv_query_gid_table(3)`: returns the number of entries written, or the negative error. -EINVAL for
/// entries of a different size, and without room for all.
///
/// # Safety
/// As for libibverbs: `entries` has room for `max_entries`.
pub unsafe extern "C" fn query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max_entries: usize,
    flags: u32,
    entry_bytes: usize,
) -> isize {
    let invalid = || {
        set_errno(libc::EINVAL);
        -(libc::EINVAL as isize)
    };
    if flags != 0 || entry_bytes != size_of::<ibv_gid_entry>() {
        return invalid();
    }
    let mut written = 0;
    // SAFETY: an open context, and room for `max_entries`.
    unsafe {
        for number in 1..=u32::from(Context::from_raw(context).limits.attributes.phys_port_cnt) {
            let length = port(context, number).map_or(0, |port| port.attributes.gid_tbl_len);
            for index in 0..length.cast_unsigned() {
                let Ok(entry) = gid(context, number, index) else { continue };
                if written == max_entries {
                    return invalid();
                }
                entries.add(written).write(entry);
                written += 1;
            }
        }
    }
    written as isize
}

/// Writes an entry of a table; -1 and EINVAL if there is none.
///
/// # Safety
/// `to` is writable.
unsafe fn write_entry<T>(to: *mut T, entry: Option<T>) -> c_int {
    // SAFETY: the caller's.
    let written = entry.map(|entry| unsafe { to.write(entry) });
    minus_one_or_zero(written.ok_or(libc::EINVAL))
}

/// `ibv_query_gid(3)`: -1 and `errno` if there is none.
pub unsafe extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    to: *mut ibv_gid,
) -> c_int {
    // SAFETY: an open context and a writable GID.
    unsafe {
        let entry = gid(context, port.into(), index.cast_unsigned());
        write_entry(to, entry.ok().map(|entry| entry.gid))
    }
}

/// `ibv_query_gid_type`, which ibv_devinfo calls: 1 means RoCE v2 here, as in sysfs.
pub unsafe extern "C" fn query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: c_uint,
    gid_type: *mut c_uint,
) -> c_int {
    /// `IBV_GID_TYPE_ROCE_V2`.
    const ROCE_V2: u32 = 2;
    // SAFETY: an open context and a writable number.
    unsafe {
        let entry = gid(context, port.into(), index);
        write_entry(gid_type, entry.ok().map(|entry| u32::from(entry.gid_type == ROCE_V2)))
    }
}

/// `ibv_query_pkey(3)`: the default partition at index 0.
pub unsafe extern "C" fn query_pkey(
    context: *mut ibv_context,
    number: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    // SAFETY: an open context and a writable key.
    unsafe {
        let is_there = index == 0 && port(context, number.into()).is_ok();
        write_entry(pkey, is_there.then_some(DEFAULT_PKEY.to_be()))
    }
}

/// `ibv_get_pkey_index(3)`: 0 for the default partition, else -1.
pub unsafe extern "C" fn get_pkey_index(context: *mut ibv_context, number: u8, pkey: u16) -> c_int {
    // SAFETY: an open context.
    let has_port = unsafe { port(context, number.into()) }.is_ok();
    let is_there = has_port && u16::from_be(pkey) == DEFAULT_PKEY;
    minus_one_or_zero(is_there.then_some(()).ok_or(libc::EINVAL))
}
