//! What a persona's table answers, in verbs' structs.

use std::os::raw::{c_int, c_uint};

use provider::{Description, Limits, mtu_code, write_name};
use rdma_sys::{ibv_device_attr, ibv_gid_entry, ibv_port_attr, ibv_qp_type};

use crate::personas::{Adapter, Answer, State};

/// Values of `ibv_port_attr.phys_state`, as in `ibv_query_port(3)`.
const PHYS_STATE_LINK_UP: u8 = 5;
const PHYS_STATE_DISABLED: u8 = 3;
/// `IBV_QPF_GRH_REQUIRED`: the bit of `ibv_port_attr.flags`.
const GRH_REQUIRED: u8 = 1;

impl Description for Adapter {
    fn limits(&self) -> Limits {
        // SAFETY: integers and arrays of them: zero is a value of each.
        let mut attr: ibv_device_attr = unsafe { std::mem::zeroed() };
        write_name(&mut attr.fw_ver, &self.firmware);
        attr.node_guid = 1_u64.to_be();
        attr.sys_image_guid = 1_u64.to_be();
        attr.vendor_id = self.vendor_id;
        attr.vendor_part_id = self.vendor_part_id;
        attr.max_mr_size = u64::MAX;
        attr.page_size_cap = 4096;
        attr.max_qp = self.max_qp;
        attr.max_qp_wr = self.max_qp_wr as c_int;
        attr.max_sge = self.max_sge as c_int;
        attr.max_sge_rd = self.max_sge_rd as c_int;
        attr.max_cq = self.max_cq;
        attr.max_cqe = self.max_cqe;
        attr.max_mr = 65536;
        attr.max_pd = 65536;
        attr.max_ah = 65536;
        attr.max_qp_rd_atom = self.max_qp_rd_atom.into();
        attr.max_qp_init_rd_atom = self.max_qp_init_rd_atom.into();
        attr.max_res_rd_atom = c_int::from(self.max_qp_rd_atom).saturating_mul(self.max_qp);
        attr.max_srq = self.max_srq;
        attr.max_srq_wr = self.max_srq_wr as c_int;
        attr.max_srq_sge = self.max_srq_sge as c_int;
        attr.max_pkeys = 1;
        attr.atomic_cap = self.atomics as c_uint;
        attr.local_ca_ack_delay = 15;
        attr.phys_port_cnt = self.port.len() as u8;
        let path_mtu = self.port.iter().map(|port| mtu_code(port.max_mtu)).max().unwrap_or(0);
        let inline_bytes = self.max_inline_bytes;
        Limits { attributes: attr, inline_bytes, path_mtu, completion_vectors: 1 }
    }

    fn port(&self, number: u32) -> Option<provider::Port> {
        let port = self.port_table(number)?;
        // SAFETY: integers only.
        let mut attr: ibv_port_attr = unsafe { std::mem::zeroed() };
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
        let speed = port.port_speed_100mbit_per_s;
        let speed_100mbit_per_s = (speed > 0).then_some(speed);
        Some(provider::Port { attributes: attr, speed_100mbit_per_s })
    }

    fn gid(&self, port: u32, index: u32) -> Option<ibv_gid_entry> {
        let gid = self.port_table(port)?.gid.iter().find(|gid| gid.index == index)?;
        // SAFETY: integers and arrays of them: zero is a value of each.
        let mut entry: ibv_gid_entry = unsafe { std::mem::zeroed() };
        entry.gid.raw = gid.gid.octets();
        entry.gid_index = index;
        entry.port_num = port;
        entry.gid_type = gid.r#type as u32;
        entry.ndev_ifindex = gid.ifindex;
        Some(entry)
    }

    fn has_service(&self, qp_type: ibv_qp_type::Type) -> Result<(), c_int> {
        use ibv_qp_type::{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
        let Answer(answer) = match qp_type {
            IBV_QPT_RC => self.services.rc,
            IBV_QPT_UC => self.services.uc,
            IBV_QPT_UD => self.services.ud,
            _ => Answer(Err(libc::EINVAL)),
        };
        answer
    }

    fn has_udp_source_ports(&self) -> Result<(), c_int> {
        self.udp_sport.0
    }
}
