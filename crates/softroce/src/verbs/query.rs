//! What a device and its only port say of themselves: limits, attributes, GIDs and partition key; and what Linux would
//! show of them in files below `/dev` and `/sys`, for programs that look there although verbs would tell them.

use std::os::raw::{c_char, c_int};

use provider::{
    DEFAULT_PKEY, Limits, Objects, Port, fill_as_known, mtu_bytes, write_name, zero_or_error,
};
use rdma_sys::{
    ibv_atomic_cap, ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_device_cap_flags,
    ibv_gid_entry, ibv_mtu, ibv_packet_pacing_caps, ibv_port_attr, ibv_port_cap_flags,
    ibv_port_state, ibv_qp_type, ibv_query_device_ex_input, ibv_values_ex, ibv_values_mask,
};
use rustix::param::page_size;

use super::device::{Device, devices, flags};
use super::gid;
use super::open::Softroce;
use crate::net::now_ns;
use crate::transport::{MAX_MESSAGE_BYTES, MAX_QPS, MAX_REGIONS, MAX_WINDOWS};

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
const MAX_QP_WR: u32 = 16384;
/// The most scatter/gather elements of a WR.
const MAX_SGE: u32 = 16;
/// The most inline bytes of a send.
const MAX_INLINE_BYTES: u32 = 1024;
/// The most completions of a CQ.
const MAX_CQE: u32 = 4_194_303;
/// The most outstanding READs and atomics of a QP, in either role.
pub(crate) const MAX_RD_ATOM: u8 = 128;
/// The most receives of an SRQ.
const MAX_SRQ_WR: u32 = 16384;
/// Reported for objects that only memory limits.
const MAX_OBJECTS: c_int = 1 << 20;
/// Ticks in a millisecond of the clock that stamps completions, which is the system's monotonic one.
const STAMP_KHZ: u64 = 1_000_000;
/// 4.096 µs × 2^15 = 134 ms: an engine thread that waits for a core answers late.
pub(crate) const LOCAL_ACK_DELAY: u8 = 15;

/// Completion vectors: as many as CPUs, as Linux' Soft-RoCE has, since programs ask for the vector of the CPU on which
/// they poll. Here all are the same, because the device has no interrupts.
fn completion_vectors() -> c_int {
    // SAFETY: takes no pointers.
    let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    c_int::try_from(cpus).map_or(1, |cpus| cpus.max(1))
}

pub(super) fn limits(device: &Softroce) -> Limits {
    Limits {
        attributes: device_attributes(device.guid()),
        inline_bytes: MAX_INLINE_BYTES,
        path_mtu: active_mtu_of(device),
        completion_vectors: completion_vectors(),
    }
}

/// The only port.
pub(super) fn port(device: &Softroce) -> Port {
    Port {
        attributes: port_attributes(
            active_mtu_of(device),
            device.nic.port_is_up() && is_up(device.device.place.interface_index),
        ),
        speed_100mbit_per_s: Some(SPEED_SDR_100_MBPS),
    }
}

/// An entry of the port's table of GIDs.
pub(super) fn gid_entry(device: &Softroce, index: u32) -> Option<ibv_gid_entry> {
    Some(ibv_gid_entry {
        gid: gid::entry(device.address(), index)?,
        gid_index: index,
        port_num: gid::PORT.into(),
        gid_type: gid::TYPE_ROCE_V2,
        ndev_ifindex: device.device.place.interface_index,
    })
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
        return zero_or_error(Err(libc::EINVAL));
    }
    // SAFETY: integers and arrays of them, for which zero is a value, and says that the capability is not there.
    let mut whole: ibv_device_attr_ex = unsafe { std::mem::zeroed() };
    // SAFETY: an open context.
    let device = unsafe { Softroce::from_context(context) };
    whole.orig_attr = device_attributes(device.guid());
    whole.device_cap_flags_ex = u64::from(whole.orig_attr.device_cap_flags);
    whole.phys_port_cnt_ex = 1;
    whole.completion_timestamp_mask = u64::MAX;
    whole.hca_core_clock = STAMP_KHZ;
    whole.packet_pacing_caps = PACING_CAPS;
    // SAFETY: the caller's struct has `attr_bytes`.
    unsafe { fill_as_known(attr, attr_bytes, &whole) };
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
        return zero_or_error(Err(libc::EINVAL));
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
    write_name(&mut attr.fw_ver, env!("CARGO_PKG_VERSION"));
    attr.node_guid = guid.to_be();
    attr.sys_image_guid = guid.to_be();
    attr.vendor_id = VENDOR_ID;
    attr.max_mr_size = i64::MAX.cast_unsigned();
    attr.page_size_cap = page_size() as u64;
    attr.max_qp = MAX_QP;
    attr.max_qp_wr = MAX_QP_WR.cast_signed();
    attr.device_cap_flags = Cap::IBV_DEVICE_CURR_QP_STATE_MOD.0
        | Cap::IBV_DEVICE_RC_RNR_NAK_GEN.0
        | Cap::IBV_DEVICE_MEM_WINDOW.0
        | Cap::IBV_DEVICE_MEM_WINDOW_TYPE_2B.0
        // By which programs (SPDK) look for SEND with invalidate.
        | Cap::IBV_DEVICE_MEM_MGT_EXTENSIONS.0
        | Cap::IBV_DEVICE_SYS_IMAGE_GUID.0;
    attr.max_sge = MAX_SGE.cast_signed();
    attr.max_sge_rd = MAX_SGE.cast_signed();
    attr.max_cq = MAX_OBJECTS;
    attr.max_cqe = MAX_CQE.cast_signed();
    attr.max_mr = MAX_REGIONS as c_int;
    attr.max_mw = MAX_WINDOWS as c_int;
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

/// UDP, base transport, RDMA extended transport (the longest extension before a payload), immediate data, and the
/// invariant CRC.
const ROCE_HEADER_BYTES: u32 = 8 + 12 + 16 + 4 + 4;
const IPV4_HEADER_BYTES: u32 = 20;
const IPV6_HEADER_BYTES: u32 = 40;

/// The MTU code of a device's port.
pub(crate) fn active_mtu_of(device: &Softroce) -> ibv_mtu::Type {
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
    attr.gid_tbl_len = gid::TABLE_LENGTH.into();
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

/// A file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelFile {
    /// The character device by which programs without this library open the device; everybody may.
    Device,
    /// A text in sysfs, to be read only.
    Text(String),
}

/// The file of this path, if it is about one of the devices: `/dev/infiniband/NAME`, and in
/// `/sys/class/infiniband/NAME/ports/1` the types and network interfaces of the GIDs and the partition key (Linux'
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
    let index = (0..gid::TABLE_LENGTH).find(|known| known.to_string() == index)?;
    let device = named(name)?;
    let text = match kind {
        "gid_attrs/types" => "RoCE v2".to_owned(),
        "gid_attrs/ndevs" => interface_name(device.place.interface_index)?,
        "pkeys" if index == 0 => format!("{DEFAULT_PKEY:#06x}"),
        _ => return None,
    };
    Some(KernelFile::Text(text + "\n"))
}

fn named(name: &[u8]) -> Option<&'static Device> {
    devices().ok()?.into_iter().find(|device| device.name().as_bytes() == name)
}

/// Whether the interface is up and has a carrier.
fn is_up(interface_index: u32) -> bool {
    let has_carrier = libc::IFF_UP | libc::IFF_RUNNING;
    interface_name(interface_index)
        .and_then(|name| flags(&name).ok())
        .is_some_and(|flags| flags & has_carrier == has_carrier)
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
    use provider::verbs::{close_device, query_pkey};

    use super::*;
    use crate::verbs::{OpenOptions, open_with};

    #[test]
    fn a_table_has_one_entry() {
        let context = open_with("soft0", OpenOptions::default()).unwrap().as_ptr();
        for (port, index, expected) in [(1, 0, (0, 0xffff)), (2, 0, (-1, 0)), (1, 1, (-1, 0))] {
            let mut key = 0;
            // SAFETY: an open context and a writable key.
            let outcome = unsafe { query_pkey(context, port, index, &raw mut key) };
            assert_eq!((outcome, key), expected, "{port} {index}");
        }
        // SAFETY: an open context, not used again.
        assert_eq!(unsafe { close_device(context) }, 0);
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
            "/sys/class/infiniband/soft0/ports/1/gid_attrs/types/2",
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
