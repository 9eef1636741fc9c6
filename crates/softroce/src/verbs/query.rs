//! What a device and its only port say of themselves: limits, attributes, GID and partition key; and what Linux would
//! show of them in files below `/dev` and `/sys`, for programs that look there although verbs would tell them.

use std::mem::offset_of;
use std::os::raw::{c_char, c_int, c_uint};

use rdma_sys::{
    ibv_atomic_cap, ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_device_cap_flags,
    ibv_gid, ibv_gid_entry, ibv_mtu, ibv_packet_pacing_caps, ibv_port_attr, ibv_port_cap_flags,
    ibv_port_state, ibv_qp_type, ibv_query_device_ex_input, ibv_values_ex, ibv_values_mask,
};

use super::context::Context;
use super::device::{Device, devices};
use super::errno::minus_one_or_zero;
use super::gid;
use crate::net::now_ns;
use crate::transport::{MAX_MESSAGE_BYTES, MAX_QPS, MAX_REGIONS};

/// 1 Mb/s: a packet of 4096 bytes each 33 ms.
pub(super) const LEAST_KBIT_PER_S: u32 = 1_000;
/// 100 Gb/s, more than one QP reaches.
pub(super) const MOST_KBIT_PER_S: u32 = 100_000_000;

/// What `ibv_query_device_ex(3)` tells of it. Datagrams have no limits.
pub(super) const PACING_CAPS: ibv_packet_pacing_caps = ibv_packet_pacing_caps {
    qp_rate_limit_min: LEAST_KBIT_PER_S,
    qp_rate_limit_max: MOST_KBIT_PER_S,
    supported_qpts: 1 << ibv_qp_type::IBV_QPT_RC | 1 << ibv_qp_type::IBV_QPT_UC,
};

/// As Linux' Soft-RoCE has: of no vendor. Programs take 0 for an error.
const VENDOR_ID: u32 = 0x00ff_ffff;
/// The most QPs of a device.
const MAX_QP: c_int = MAX_QPS as c_int;
/// The most WRs of a send, receive or shared receive queue.
pub(super) const MAX_QP_WR: u32 = 16384;
/// The most scatter/gather elements of a WR.
pub(super) const MAX_SGE: u32 = 16;
/// The most inline bytes of a send.
pub(super) const MAX_INLINE_BYTES: u32 = 1024;
/// The most completions of a CQ.
pub(super) const MAX_CQE: u32 = 4_194_303;
/// The most outstanding READs and atomics of a QP, in either role.
pub(crate) const MAX_RD_ATOM: u8 = 128;
/// The most receives of an SRQ.
pub(super) const MAX_SRQ_WR: u32 = 16384;
/// Reported for objects that only memory limits.
const MAX_OBJECTS: c_int = 1 << 20;
/// Ticks in a millisecond of the clock that stamps completions, which is the system's monotonic one.
const STAMP_KHZ: u64 = 1_000_000;
/// 4.096 µs × 2^15 = 134 ms: an engine thread that waits for a core answers late.
pub(crate) const LOCAL_ACK_DELAY: u8 = 15;

/// Completion vectors: as many as CPUs, as Linux' Soft-RoCE has, since programs ask for the vector of the CPU on which
/// they poll. Here all are the same, because the device has no interrupts.
pub(super) fn completion_vectors() -> c_int {
    // SAFETY: takes no pointers.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    c_int::try_from(cpus).map_or(1, |cpus| cpus.max(1))
}

pub unsafe extern "C" fn query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: an open context and a writable struct.
    unsafe { attr.write(device_attributes(Context::from_raw(context).guid())) };
    0
}

/// `ibv_query_device_ex(3)`, by the pointer in `verbs_context`. EINVAL for a struct without room for the plain
/// attributes, or for unknown input.
///
/// # Safety
/// As for libibverbs: `attr` has `attr_bytes` bytes.
pub unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
    attr_bytes: usize,
) -> c_int {
    // SAFETY: null, or a readable struct.
    let input_mask = unsafe { input.as_ref() }.map_or(0, |input| input.comp_mask);
    if input_mask != 0 || attr_bytes < size_of::<ibv_device_attr>() + size_of::<u32>() {
        return libc::EINVAL;
    }
    // SAFETY: integers and arrays of them, for which zero is a value, and says that the capability is not there.
    let mut whole: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
    // SAFETY: an open context.
    whole.orig_attr = device_attributes(unsafe { Context::from_raw(context) }.guid());
    whole.device_cap_flags_ex = u64::from(whole.orig_attr.device_cap_flags);
    whole.phys_port_cnt_ex = 1;
    whole.completion_timestamp_mask = u64::MAX;
    whole.hca_core_clock = STAMP_KHZ;
    whole.packet_pacing_caps = PACING_CAPS;
    let known = attr_bytes.min(size_of::<ibv_device_attr_ex>());
    // SAFETY: the caller's struct has `attr_bytes`; of `whole` no more than there is is read.
    unsafe {
        attr.cast::<u8>().write_bytes(0, attr_bytes);
        attr.cast::<u8>().copy_from_nonoverlapping((&raw const whole).cast(), known);
    }
    0
}

/// `ibv_query_rt_values_ex(3)`, by the pointer in `verbs_context`: the clock of stamps. EINVAL for other values.
pub unsafe extern "C" fn query_rt_values(
    _context: *mut ibv_context,
    values: *mut ibv_values_ex,
) -> c_int {
    // SAFETY: a struct that can be read and written.
    let values = unsafe { &mut *values };
    if values.comp_mask & !ibv_values_mask::IBV_VALUES_MASK_RAW_CLOCK.0 != 0 {
        return libc::EINVAL;
    }
    // As mlx5 does: ticks, and no seconds.
    values.raw_clock.tv_sec = 0;
    values.raw_clock.tv_nsec = now_ns().cast_signed();
    0
}

fn device_attributes(guid: u64) -> ibv_device_attr {
    use ibv_device_cap_flags as Cap;
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    for (to, from) in attr.fw_ver.iter_mut().zip(version) {
        *to = *from as c_char;
    }
    attr.node_guid = guid.to_be();
    attr.sys_image_guid = guid.to_be();
    attr.vendor_id = VENDOR_ID;
    attr.max_mr_size = i64::MAX.cast_unsigned();
    // SAFETY: has no preconditions; it cannot fail.
    attr.page_size_cap = unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.cast_unsigned();
    attr.max_qp = MAX_QP;
    attr.max_qp_wr = MAX_QP_WR.cast_signed();
    attr.device_cap_flags = Cap::IBV_DEVICE_CURR_QP_STATE_MOD.0
        | Cap::IBV_DEVICE_RC_RNR_NAK_GEN.0
        | Cap::IBV_DEVICE_SYS_IMAGE_GUID.0;
    attr.max_sge = MAX_SGE.cast_signed();
    attr.max_sge_rd = MAX_SGE.cast_signed();
    attr.max_cq = MAX_OBJECTS;
    attr.max_cqe = MAX_CQE.cast_signed();
    attr.max_mr = MAX_REGIONS as c_int;
    attr.max_pd = MAX_OBJECTS;
    attr.max_qp_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_qp_init_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_res_rd_atom = c_int::from(MAX_RD_ATOM) * MAX_QP;
    attr.atomic_cap = ibv_atomic_cap::IBV_ATOMIC_HCA;
    attr.max_ah = MAX_OBJECTS;
    attr.max_srq = MAX_OBJECTS;
    attr.max_srq_wr = MAX_SRQ_WR.cast_signed();
    attr.max_srq_sge = MAX_SGE.cast_signed();
    attr.max_pkeys = 1;
    attr.local_ca_ack_delay = LOCAL_ACK_DELAY;
    attr.phys_port_cnt = 1;
    attr
}

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

fn port_attributes(active_mtu: ibv_mtu::Type, is_up: bool) -> ibv_port_attr {
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
    let context = unsafe { Context::from_raw(context) };
    let whole = port_attributes(active_mtu_of(context), context.nic.port_is_up());
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
        let context = Context::from_raw(context);
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
        let entry = gid::of_address(Context::from_raw(context).address());
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

/// A file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFile {
    /// The character device by which programs without this library open the device; everybody may.
    Device,
    /// A text in sysfs, to be read only.
    Text(String),
}

/// The file of this path, if it is about one of the devices: `/dev/infiniband/NAME`, and in
/// `/sys/class/infiniband/NAME/ports/1` the type and network interface of the GID and the partition key (Linux'
/// `Documentation/ABI/stable/sysfs-class-infiniband`). Any other path costs two comparisons.
pub fn kernel_file(path: &[u8]) -> Option<KernelFile> {
    if let Some(name) = path.strip_prefix(b"/dev/infiniband/") {
        return named(name).map(|_| KernelFile::Device);
    }
    let below = path.strip_prefix(b"/sys/class/infiniband/")?;
    let slash = below.iter().position(|byte| *byte == b'/')?;
    let (name, attribute) = below.split_at(slash);
    let attribute =
        str::from_utf8(attribute).ok()?.strip_prefix(&format!("/ports/{}/", gid::PORT))?;
    let (kind, index) = attribute.rsplit_once('/')?;
    if index != gid::INDEX.to_string() {
        return None;
    }
    let device = named(name)?;
    let text = match kind {
        "gid_attrs/types" => "RoCE v2".to_owned(),
        "gid_attrs/ndevs" => interface_name(device.place.interface_index)?,
        // Their table too has one entry.
        "pkeys" => format!("{DEFAULT_PKEY:#06x}"),
        _ => return None,
    };
    Some(KernelFile::Text(text + "\n"))
}

fn named(name: &[u8]) -> Option<&'static Device> {
    let mut devices = devices().ok()?.iter();
    devices.find(|device| device.name().as_bytes() == name)
}

/// The interface's current name, which may differ from the one at the start.
fn interface_name(index: u32) -> Option<String> {
    let mut name: [c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    // SAFETY: there is room for the longest name.
    if unsafe { libc::if_indextoname(index, name.as_mut_ptr()) }.is_null() {
        return None;
    }
    Some(
        name.iter()
            .take_while(|byte| **byte != 0)
            .flat_map(|byte| byte.to_ne_bytes())
            .map(char::from)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn a_table_has_one_entry() {
        for (port, index, expected) in [(1, 0, (0, 0xffff)), (2, 0, (-1, 0)), (1, 1, (-1, 0))] {
            let mut key = 0;
            // SAFETY: a writable key; nobody looks at the context.
            let outcome = unsafe { query_pkey(null_mut(), port, index, &raw mut key) };
            assert_eq!((outcome, key), expected, "{port} {index}");
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

    #[test]
    fn other_files_are_not_its() {
        for path in [
            "",
            "/dev/null",
            "/dev/infiniband/",
            "/dev/infiniband/soft",
            "/dev/infiniband/soft0/",
            "/dev/infiniband/uverbs0",
            "/sys/class/infiniband/soft0",
            "/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1",
            "/sys/class/infiniband/soft0/ports/2/gid_attrs/types/0",
            "/sys/class/infiniband/soft0/ports/1/gid_attrs/gids/0",
            "/sys/class/infiniband/soft0/ports/1/pkeys/1",
            "/sys/class/infiniband/soft0/ports/1/pkeys",
            "/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0",
        ] {
            assert_eq!(kernel_file(path.as_bytes()), None, "{path}");
        }
    }
}
