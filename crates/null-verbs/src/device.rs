//! Devices as verbs' structs: made from a persona's table, listed, and asked for their properties.

use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_uint};
use std::ptr::null_mut;

use rdma_sys::{ibv_device, ibv_device_attr, ibv_gid_entry, ibv_mtu, ibv_port_attr};

use crate::objects::keep;
use crate::persona::{Adapter, Persona, Port, State};

/// The longest message of `loop0`'s engine, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: u32 = 1 << 30;

/// Codes of verbs.h.
const PHYS_STATE_LINK_UP: u8 = 5;
const PHYS_STATE_DISABLED: u8 = 3;
/// `IBV_QPF_GRH_REQUIRED`.
const GRH_REQUIRED: u8 = 1;

/// A device; the verbs struct comes first, so a pointer to one is a pointer to the other. It lives as long as the process.
#[repr(C)]
pub(crate) struct Device {
    verbs: ibv_device,
    pub(crate) table: &'static Adapter,
}

pub(crate) struct Devices(Vec<*mut ibv_device>);

// SAFETY: the structs are written before they are shared, and never again.
unsafe impl Send for Devices {}
// SAFETY: as above.
unsafe impl Sync for Devices {}

impl Devices {
    pub(crate) fn from_persona(persona: &'static Persona) -> Devices {
        Devices(
            persona
                .device
                .iter()
                .map(|table| {
                    // SAFETY: integers, arrays of them and optional function pointers: zero is a value of each.
                    let mut verbs: ibv_device = unsafe { std::mem::zeroed() };
                    verbs.node_type = table.node as c_int;
                    verbs.transport_type = table.transport as c_int;
                    write_name(&mut verbs.name, &table.name);
                    write_name(&mut verbs.dev_name, &table.name);
                    keep(Device { verbs, table }).cast()
                })
                .collect(),
        )
    }

    /// `ibv_get_device_list(3)`.
    ///
    /// # Safety
    /// `count` is null or writable.
    pub(crate) unsafe fn list(&self, count: *mut c_int) -> *mut *mut ibv_device {
        let listed = self.0.iter().copied().chain([null_mut()]);
        if !count.is_null() {
            // SAFETY: the caller vouches for it.
            unsafe { *count = self.0.len() as c_int };
        }
        Box::into_raw(listed.collect::<Box<[_]>>()).cast()
    }
}

impl Device {
    /// The device behind a verbs pointer.
    ///
    /// # Safety
    /// `device` is of a list of this library.
    pub(crate) unsafe fn from_raw(device: *mut ibv_device) -> &'static Device {
        // SAFETY: made by `Devices::of` from such a box, which is never freed.
        unsafe { &*device.cast::<Device>() }
    }
}

/// `ibv_free_device_list(3)`.
///
/// # Safety
/// `list` came from a function of this library and is not used again.
pub unsafe extern "C" fn free_device_list(list: *mut *mut ibv_device) {
    if list.is_null() {
        return;
    }
    let mut length = 1;
    // SAFETY: made by `Devices::list` from a boxed slice whose last entry is null, and only that one.
    unsafe {
        while !(*list.add(length - 1)).is_null() {
            length += 1;
        }
        drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(list, length)));
    }
}

/// `ibv_get_device_name(3)`.
///
/// # Safety
/// `device` is one of the list's.
pub unsafe extern "C" fn get_device_name(device: *mut ibv_device) -> *const c_char {
    // SAFETY: devices live as long as the process.
    unsafe { CStr::from_ptr((&raw const (*device).name).cast()) }.as_ptr()
}

/// A name in the form of verbs' structs.
fn write_name(into: &mut [c_char], name: &str) {
    let last = into.len().saturating_sub(1);
    for (to, from) in into.iter_mut().take(last).zip(name.bytes()) {
        *to = from as c_char;
    }
}

pub(crate) fn mtu_code(bytes: u32) -> ibv_mtu::Type {
    bytes.max(128).ilog2() - 7
}

pub(crate) fn fill_device_attributes(table: &Adapter, attr: &mut ibv_device_attr) {
    // SAFETY: integers and arrays of them: zero is a value of each.
    *attr = unsafe { std::mem::zeroed() };
    write_name(&mut attr.fw_ver, &table.firmware);
    attr.node_guid = 1_u64.to_be();
    attr.sys_image_guid = 1_u64.to_be();
    attr.vendor_id = table.vendor_id;
    attr.vendor_part_id = table.vendor_part_id;
    attr.max_mr_size = u64::MAX;
    attr.page_size_cap = 4096;
    attr.max_qp = table.max_qp;
    attr.max_qp_wr = table.max_qp_wr as c_int;
    attr.max_sge = table.max_sge as c_int;
    attr.max_sge_rd = table.max_sge_rd as c_int;
    attr.max_cq = table.max_cq;
    attr.max_cqe = table.max_cqe;
    attr.max_mr = 65536;
    attr.max_pd = 65536;
    attr.max_qp_rd_atom = table.max_qp_rd_atom.into();
    attr.max_qp_init_rd_atom = table.max_qp_init_rd_atom.into();
    attr.max_res_rd_atom = c_int::from(table.max_qp_rd_atom).saturating_mul(table.max_qp);
    attr.max_srq = table.max_srq;
    attr.max_srq_wr = table.max_srq_wr as c_int;
    attr.max_srq_sge = table.max_srq_sge as c_int;
    attr.max_pkeys = 1;
    attr.atomic_cap = table.atomics as c_uint;
    attr.local_ca_ack_delay = 15;
    attr.phys_port_cnt = table.port.len() as u8;
}

pub(crate) fn fill_port_attributes(port: &Port, attr: &mut ibv_port_attr) {
    // SAFETY: integers only.
    *attr = unsafe { std::mem::zeroed() };
    attr.state = port.state as c_uint;
    attr.max_mtu = mtu_code(port.max_mtu);
    attr.active_mtu = mtu_code(port.active_mtu);
    attr.gid_tbl_len = port.gid.iter().map(|gid| gid.index + 1).max().unwrap_or(0) as c_int;
    attr.max_msg_sz = port.max_message_bytes;
    attr.pkey_tbl_len = port.pkeys;
    attr.lid = port.lid;
    attr.max_vl_num = 1;
    attr.active_width = port.width_code;
    attr.active_speed = port.speed_code;
    attr.phys_state = match port.state {
        State::Down => PHYS_STATE_DISABLED,
        _ => PHYS_STATE_LINK_UP,
    };
    attr.link_layer = port.link_layer as u8;
    attr.flags = if port.grh_required { GRH_REQUIRED } else { 0 };
}

/// Fills the entry of GID `index`; `None` for one that is empty.
pub(crate) fn fill_gid(port: &Port, index: u32, entry: &mut ibv_gid_entry) -> Option<()> {
    let gid = port.gid.iter().find(|gid| gid.index == index)?;
    entry.gid.raw = gid.gid.octets();
    entry.gid_index = index;
    entry.port_num = port.number.into();
    entry.gid_type = gid.r#type as u32;
    entry.ndev_ifindex = gid.ifindex;
    Some(())
}
