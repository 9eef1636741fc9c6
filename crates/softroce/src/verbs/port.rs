//! The only port of a device: its attributes, its GID and its partition key.

use std::mem::offset_of;
use std::os::raw::{c_int, c_uint};

use rdma_sys::{
    ibv_context, ibv_gid, ibv_gid_entry, ibv_mtu, ibv_port_attr, ibv_port_cap_flags, ibv_port_state,
};

use super::context::Context;
use super::errno::minus_one_or_zero;
use super::gid;
use crate::transport::MAX_MESSAGE_BYTES;

const LINK_LAYER_ETHERNET: u8 = 2;
const PHYS_STATE_LINK_UP: u8 = 5;
const PHYS_STATE_DISABLED: u8 = 3;
const WIDTH_1X: u8 = 1;
/// A lane of 2.5 Gb/s, by the code of `active_speed` and in 100 Mb/s.
const SPEED_SDR: u8 = 1;
const SPEED_SDR_100_MBPS: u64 = 25;
/// The default partition, full membership.
pub(crate) const DEFAULT_PKEY: u16 = 0xffff;

/// UDP, base transport, RDMA extended transport (the longest extension before a payload), immediate data, and the
/// invariant CRC.
const ROCE_HEADER_BYTES: u32 = 8 + 12 + 16 + 4 + 4;
const IPV4_HEADER_BYTES: u32 = 20;
const IPV6_HEADER_BYTES: u32 = 40;

/// Payload bytes of an `ibv_mtu` code.
pub(super) fn mtu_bytes(code: ibv_mtu::Type) -> u32 {
    128 << code
}

/// The MTU code of a device's port.
pub(crate) fn active_mtu_of(device: &Context) -> ibv_mtu::Type {
    active_mtu(device.device.place.interface_mtu_bytes, device.address().is_ipv4())
}

/// The largest InfiniBand MTU whose packets fit the interface without fragmentation; 256 bytes if none does.
fn active_mtu(interface_mtu_bytes: u32, ipv4: bool) -> ibv_mtu::Type {
    let ip = if ipv4 { IPV4_HEADER_BYTES } else { IPV6_HEADER_BYTES };
    let payload = interface_mtu_bytes.saturating_sub(ip + ROCE_HEADER_BYTES);
    (ibv_mtu::IBV_MTU_256..=ibv_mtu::IBV_MTU_4096)
        .rev()
        .find(|code| mtu_bytes(*code) <= payload)
        .unwrap_or(ibv_mtu::IBV_MTU_256)
}

fn attributes(active_mtu: ibv_mtu::Type, is_up: bool) -> ibv_port_attr {
    // SAFETY: integers only.
    let mut attr: ibv_port_attr = unsafe { std::mem::zeroed() };
    (attr.state, attr.phys_state) = if is_up {
        (ibv_port_state::IBV_PORT_ACTIVE, PHYS_STATE_LINK_UP)
    } else {
        (ibv_port_state::IBV_PORT_DOWN, PHYS_STATE_DISABLED)
    };
    attr.max_mtu = ibv_mtu::IBV_MTU_4096;
    attr.active_mtu = active_mtu;
    attr.gid_tbl_len = 1;
    attr.port_cap_flags = ibv_port_cap_flags::IBV_PORT_IP_BASED_GIDS.0;
    attr.max_msg_sz = MAX_MESSAGE_BYTES;
    attr.pkey_tbl_len = 1;
    attr.max_vl_num = 1;
    // The least that there is, as of Linux' Soft-RoCE on loopback: the processors' speed is no property of a link, but programs
    // take 0 for an error.
    (attr.active_width, attr.active_speed) = (WIDTH_1X, SPEED_SDR);
    attr.link_layer = LINK_LAYER_ETHERNET;
    attr
}

/// `ibv_query_port(3)` by the pointer in `verbs_context`: fills as much of the struct as the program knows.
///
/// # Safety
/// As for libibverbs: `attr` has `attr_bytes` bytes.
pub unsafe extern "C" fn query_port_bytes(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    attr_bytes: usize,
) -> c_int {
    if port != gid::PORT {
        return libc::EINVAL;
    }
    // SAFETY: an open context.
    let context = unsafe { Context::of(context) };
    let whole = attributes(active_mtu_of(context), context.nic.port_is_up());
    let known = attr_bytes.min(size_of::<ibv_port_attr>());
    // SAFETY: the caller's struct has `attr_bytes`; of `whole` no more than there is is read.
    unsafe {
        attr.cast::<u8>().write_bytes(0, attr_bytes);
        attr.cast::<u8>().copy_from_nonoverlapping((&raw const whole).cast(), known);
    }
    0
}

/// `ibv_query_port(3)`, the whole struct. EINVAL for any port but 1.
pub unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { query_port_bytes(context, port, attr, size_of::<ibv_port_attr>()) }
}

/// `ibv_query_port_speed(3)`: that of the port's one lane, in 100 Mb/s. EINVAL for any port but 1.
pub unsafe extern "C" fn query_port_speed(
    _context: *mut ibv_context,
    port: u32,
    speed_100_mbps: *mut u64,
) -> c_int {
    if port != u32::from(gid::PORT) {
        return libc::EINVAL;
    }
    // SAFETY: the caller passes a writable number.
    unsafe { speed_100_mbps.write(SPEED_SDR_100_MBPS) };
    0
}

/// For programs built for the struct without `port_cap_flags2`.
///
/// # Safety
/// As for libibverbs: `attr` has room for the members before that one.
pub unsafe extern "C" fn query_port_compat(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: as the caller's.
    unsafe { query_port_bytes(context, port, attr, offset_of!(ibv_port_attr, port_cap_flags2)) }
}

/// `ibv_query_gid_ex(3)`. EINVAL for any port but 1, ENODATA beyond the end of the table.
pub unsafe extern "C" fn query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    gid_index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
) -> c_int {
    if port != u32::from(gid::PORT) || flags != 0 {
        return libc::EINVAL;
    }
    if gid_index != u32::from(gid::INDEX) {
        return libc::ENODATA;
    }
    // SAFETY: an open context and a writable struct.
    unsafe {
        let context = Context::of(context);
        entry.write(ibv_gid_entry {
            gid: gid::of_address(context.address()),
            gid_index,
            port_num: port,
            gid_type: gid::TYPE_ROCE_V2,
            ndev_ifindex: context.device.place.interface_index,
        });
    }
    0
}

/// The symbol behind `ibv_query_gid_table(3)`: returns the number of entries written, or the negative error. -EINVAL for
/// entries of a different size.
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
    if max_entries == 0 || flags != 0 || entry_bytes != size_of::<ibv_gid_entry>() {
        return -(libc::EINVAL as isize);
    }
    let (port, index) = (u32::from(gid::PORT), u32::from(gid::INDEX));
    // SAFETY: there is room for one.
    match unsafe { query_gid_ex(context, port, index, entries, 0) } {
        0 => 1,
        error => -(error as isize),
    }
}

/// Writes what stands in one of the port's tables, each of which has one entry; -1 and EINVAL for another.
///
/// # Safety
/// `to` is writable.
unsafe fn write_entry<T>(port: u8, index: i64, to: *mut T, entry: T) -> c_int {
    let is_there = port == gid::PORT && index == i64::from(gid::INDEX);
    // SAFETY: the caller's.
    let written = is_there.then(|| unsafe { to.write(entry) });
    minus_one_or_zero(written.ok_or(libc::EINVAL))
}

/// `ibv_query_gid(3)`: -1 and `errno` if there is none.
pub unsafe extern "C" fn query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ibv_gid,
) -> c_int {
    // SAFETY: an open context and a writable GID.
    unsafe {
        let entry = gid::of_address(Context::of(context).address());
        write_entry(port, index.into(), gid, entry)
    }
}

/// `ibv_query_gid_type`, which ibv_devinfo calls: 1 means RoCE v2 here, as in sysfs.
pub unsafe extern "C" fn query_gid_type(
    _context: *mut ibv_context,
    port: u8,
    index: c_uint,
    gid_type: *mut c_uint,
) -> c_int {
    const ROCE_V2_IN_SYSFS: c_uint = 1;
    // SAFETY: the caller passes a writable number.
    unsafe { write_entry(port, index.into(), gid_type, ROCE_V2_IN_SYSFS) }
}

/// `ibv_query_pkey(3)`: the default partition at index 0.
pub unsafe extern "C" fn query_pkey(
    _context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    // SAFETY: the caller passes a writable key.
    unsafe { write_entry(port, index.into(), pkey, DEFAULT_PKEY.to_be()) }
}

/// `ibv_get_pkey_index(3)`: 0 for the default partition, else -1.
pub unsafe extern "C" fn get_pkey_index(_context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    let is_there = port == gid::PORT && u16::from_be(pkey) == DEFAULT_PKEY;
    minus_one_or_zero(is_there.then_some(()).ok_or(libc::EINVAL))
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn a_table_has_one_entry() {
        for (port, index, told) in [(1, 0, (0, 0xffff)), (2, 0, (-1, 0)), (1, 1, (-1, 0))] {
            let mut key = 0;
            // SAFETY: a writable key; nobody looks at the context.
            let outcome = unsafe { query_pkey(null_mut(), port, index, &raw mut key) };
            assert_eq!((outcome, key), told, "{port} {index}");
        }
    }

    #[test]
    fn the_active_mtu_is_the_largest_that_fits() {
        for (interface, ipv4, bytes) in [
            (65536, true, 4096),
            (65536, false, 4096),
            (4200, true, 4096),
            (4160, true, 4096),
            (4159, true, 2048),
            (4160, false, 2048),
            (9000, false, 4096),
            (1500, true, 1024),
            (1500, false, 1024),
            (576, true, 512),
            (68, true, 256),
        ] {
            let code = active_mtu(interface, ipv4);
            assert_eq!(mtu_bytes(code), bytes, "{interface} {ipv4}");
        }
    }
}
