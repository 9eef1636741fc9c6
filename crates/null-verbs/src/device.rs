//! The two devices and their properties: names, limits, port, GIDs.

use std::ffi::CStr;
use std::os::raw::{c_char, c_int};
use std::ptr::{from_mut, null_mut};
use std::sync::OnceLock;

use rdma_sys::{
    ibv_atomic_cap, ibv_device, ibv_device_attr, ibv_gid_entry, ibv_mtu, ibv_node_type,
    ibv_port_attr, ibv_port_state, ibv_transport_type,
};

/// The most QPs, WRs per queue, CQEs per CQ, outstanding READs and atomics per QP.
pub(crate) const MAX_QP: c_int = 16384;
pub(crate) const MAX_QP_WR: u32 = 16384;
pub(crate) const MAX_CQE: c_int = 4_194_303;
pub(crate) const MAX_RD_ATOM: u8 = 16;
pub(crate) const MAX_SGE: u32 = 16;
pub(crate) const MAX_INLINE_BYTES: u32 = 1024;
/// Longest message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: u32 = 1 << 30;
/// The port's active MTU, and the largest.
pub(crate) const MTU: ibv_mtu::Type = ibv_mtu::IBV_MTU_4096;

const GID_TYPE_ROCE_V1: u32 = 1;
const GID_TYPE_ROCE_V2: u32 = 2;
const LINK_LAYER_ETHERNET: u8 = 2;
const PHYS_STATE_LINK_UP: u8 = 5;
/// Codes of InfiniBand's PortInfo: 4 lanes of 25 Gb/s (EDR).
const WIDTH_4X: u8 = 2;
const SPEED_25_GBIT_PER_S: u8 = 32;

/// The GID table of both ports: the link-local one is RoCE v1, the IPv4-mapped loopback is RoCE v2.
pub(crate) const GIDS: [([u8; 16], u32); 2] = [
    (
        [
            0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0xff, 0xfe, 0, 0, 1,
        ],
        GID_TYPE_ROCE_V1,
    ),
    (
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1],
        GID_TYPE_ROCE_V2,
    ),
];

/// Which of the two devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Null,
    Loopback,
}

struct Devices([*mut ibv_device; 2]);

// SAFETY: the structs are written before they are shared, and never again.
unsafe impl Send for Devices {}
// SAFETY: as above.
unsafe impl Sync for Devices {}

fn devices() -> &'static Devices {
    static DEVICES: OnceLock<Devices> = OnceLock::new();
    DEVICES.get_or_init(|| Devices([new_device(c"null0"), new_device(c"loop0")]))
}

/// A device lives as long as the process.
fn new_device(name: &CStr) -> *mut ibv_device {
    // SAFETY: integers, arrays of them and optional function pointers: zero is a value of each.
    let mut device: ibv_device = unsafe { std::mem::zeroed() };
    device.node_type = ibv_node_type::IBV_NODE_CA;
    device.transport_type = ibv_transport_type::IBV_TRANSPORT_IB;
    for field in [&mut device.name, &mut device.dev_name] {
        for (to, from) in field.iter_mut().zip(name.to_bytes()) {
            *to = *from as c_char;
        }
    }
    from_mut(Box::leak(Box::new(device)))
}

/// The kind of a device pointer from the list, if it is one.
pub(crate) fn kind_of(device: *mut ibv_device) -> Option<Kind> {
    let Devices([null, loopback]) = devices();
    if device == *null {
        Some(Kind::Null)
    } else if device == *loopback {
        Some(Kind::Loopback)
    } else {
        None
    }
}

/// `ibv_get_device_list(3)`: `null0` and `loop0`.
///
/// # Safety
/// `count` is null or writable.
pub unsafe extern "C" fn get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let Devices([null, loopback]) = devices();
    let list = Box::new([*null, *loopback, null_mut()]);
    if !count.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { *count = 2 };
    }
    Box::into_raw(list).cast()
}

/// `ibv_free_device_list(3)`.
///
/// # Safety
/// `list` came from [`get_device_list`] and is not used again.
pub unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    if !list.is_null() {
        // SAFETY: made by `get_device_list` from a box of this type.
        drop(unsafe { Box::from_raw(list.cast::<[*mut ibv_device; 3]>()) });
    }
}

/// `ibv_get_device_name(3)`.
///
/// # Safety
/// `device` is one of the list's.
pub unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: devices live as long as the process.
    unsafe { (&raw const (*device).name).cast() }
}

/// Fills a device's limits.
pub(crate) fn fill_device_attributes(attr: &mut ibv_device_attr) {
    // SAFETY: integers and arrays of them: zero is a value of each.
    *attr = unsafe { std::mem::zeroed() };
    for (to, from) in attr.fw_ver.iter_mut().zip(b"0.1") {
        *to = *from as c_char;
    }
    attr.node_guid = 1_u64.to_be();
    attr.sys_image_guid = 1_u64.to_be();
    attr.max_mr_size = u64::MAX;
    attr.page_size_cap = 4096;
    attr.max_qp = MAX_QP;
    attr.max_qp_wr = MAX_QP_WR as c_int;
    attr.max_sge = MAX_SGE as c_int;
    attr.max_sge_rd = MAX_SGE as c_int;
    attr.max_cq = 65536;
    attr.max_cqe = MAX_CQE;
    attr.max_mr = 65536;
    attr.max_pd = 65536;
    attr.max_qp_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_qp_init_rd_atom = c_int::from(MAX_RD_ATOM);
    attr.max_res_rd_atom = c_int::from(MAX_RD_ATOM) * MAX_QP;
    attr.max_srq = 65536;
    attr.max_srq_wr = MAX_QP_WR as c_int;
    attr.max_srq_sge = MAX_SGE as c_int;
    attr.max_pkeys = 1;
    attr.atomic_cap = ibv_atomic_cap::IBV_ATOMIC_HCA;
    attr.local_ca_ack_delay = 15;
    attr.phys_port_cnt = 1;
}

/// Fills the attributes of the port.
pub(crate) fn fill_port_attributes(attr: &mut ibv_port_attr) {
    // SAFETY: integers only.
    *attr = unsafe { std::mem::zeroed() };
    attr.state = ibv_port_state::IBV_PORT_ACTIVE;
    attr.max_mtu = MTU;
    attr.active_mtu = MTU;
    attr.gid_tbl_len = GIDS.len() as c_int;
    attr.max_msg_sz = MAX_MESSAGE_BYTES;
    attr.pkey_tbl_len = 1;
    attr.max_vl_num = 1;
    attr.active_width = WIDTH_4X;
    attr.active_speed = SPEED_25_GBIT_PER_S;
    attr.phys_state = PHYS_STATE_LINK_UP;
    attr.link_layer = LINK_LAYER_ETHERNET;
}

/// Fills the entry of GID `index`; `None` beyond the end of the table.
pub(crate) fn fill_gid(index: u32, entry: &mut ibv_gid_entry) -> Option<()> {
    let (raw, gid_type) = *GIDS.get(usize::try_from(index).ok()?)?;
    entry.gid.raw = raw;
    entry.gid_index = index;
    entry.port_num = 1;
    entry.gid_type = gid_type;
    // The loopback interface has this index in every network namespace.
    entry.ndev_ifindex = 1;
    Some(())
}
