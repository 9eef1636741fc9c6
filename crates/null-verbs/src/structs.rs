//! Verbs' structs as both devices fill, make and free them: what is asked of a device and its ports, objects, and a QP's attributes
//! (which ones a transition takes, and what `modify_qp` keeps for `query_qp`).

use std::os::raw::{c_int, c_uint, c_void};

use rdma_sys::{
    ibv_context, ibv_cq, ibv_device_attr, ibv_gid_entry, ibv_mr, ibv_mtu, ibv_pd, ibv_port_attr,
    ibv_qp, ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_state, ibv_srq,
    ibv_srq_init_attr,
};

use crate::personas::{Adapter, Port, State, write_name};

/// Values of `ibv_port_attr.phys_state`, as in `ibv_query_port(3)`.
const PHYS_STATE_LINK_UP: u8 = 5;
const PHYS_STATE_DISABLED: u8 = 3;
/// `IBV_QPF_GRH_REQUIRED`: the bit of `ibv_port_attr.flags`.
const GRH_REQUIRED: u8 = 1;

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

pub(crate) fn mtu_code(bytes: u32) -> ibv_mtu::Type {
    bytes.max(128).ilog2() - 7
}

/// A pointer to a new object, for [`free`].
pub(crate) fn keep<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Frees an object. Returns 0, as the functions do that destroy one.
///
/// # Safety
/// [`keep`] made it, and it is not used again.
pub(crate) unsafe fn free<T>(object: *mut T) -> c_int {
    // SAFETY: made from such a box.
    drop(unsafe { Box::from_raw(object) });
    0
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    [lkey, rkey]: [u32; 2],
) -> *mut ibv_mr {
    keep(ibv_mr {
        // SAFETY: the caller vouches for `pd`.
        context: unsafe { (*pd).context },
        pd,
        addr,
        length,
        handle: lkey,
        lkey,
        rkey,
    })
}

pub(crate) fn new_cq(context: *mut ibv_context, size: u32, cq_context: *mut c_void) -> ibv_cq {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut cq: ibv_cq = unsafe { std::mem::zeroed() };
    (cq.context, cq.cq_context, cq.cqe) = (context, cq_context, size as c_int);
    cq
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_srq(pd: *mut ibv_pd, init: &ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut srq: ibv_srq = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    srq.context = unsafe { (*pd).context };
    srq.srq_context = init.srq_context;
    srq.pd = pd;
    keep(srq)
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn new_qp(pd: *mut ibv_pd, init: &ibv_qp_init_attr, qp_num: u32) -> ibv_qp {
    // SAFETY: pointers, integers and pthread objects, for all of which zero is a value.
    let mut qp: ibv_qp = unsafe { std::mem::zeroed() };
    // SAFETY: the caller vouches for `pd`.
    qp.context = unsafe { (*pd).context };
    qp.qp_context = init.qp_context;
    qp.pd = pd;
    qp.send_cq = init.send_cq;
    qp.recv_cq = init.recv_cq;
    qp.srq = init.srq;
    qp.qp_num = qp_num;
    qp.qp_type = init.qp_type;
    qp
}

/// Fills what `ibv_query_qp(3)` asks of a QP: besides its struct these attributes and what it was created with.
///
/// # Safety
/// `qp` is live, the last two are writable.
pub(crate) unsafe fn fill_qp_query(
    qp: *const ibv_qp,
    kept: &ibv_qp_attr,
    cap: ibv_qp_cap,
    sq_sig_all: c_int,
    attr: *mut ibv_qp_attr,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: the caller vouches for all three; an `ibv_qp_attr` is plain data.
    unsafe {
        attr.copy_from_nonoverlapping(kept, 1);
        (*attr).cap = cap;
        (*init).qp_context = (*qp).qp_context;
        (*init).send_cq = (*qp).send_cq;
        (*init).recv_cq = (*qp).recv_cq;
        (*init).srq = (*qp).srq;
        (*init).cap = cap;
        (*init).qp_type = (*qp).qp_type;
        (*init).sq_sig_all = sq_sig_all;
    }
    0
}

type Mask = ibv_qp_attr_mask;

const STATE: u32 = Mask::IBV_QP_STATE.0 | Mask::IBV_QP_CUR_STATE.0;
const INIT: u32 = Mask::IBV_QP_PKEY_INDEX.0 | Mask::IBV_QP_PORT.0 | Mask::IBV_QP_ACCESS_FLAGS.0;
const RTR: u32 = Mask::IBV_QP_AV.0
    | Mask::IBV_QP_PATH_MTU.0
    | Mask::IBV_QP_DEST_QPN.0
    | Mask::IBV_QP_RQ_PSN.0
    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0
    | Mask::IBV_QP_MIN_RNR_TIMER.0;
const RTS: u32 = Mask::IBV_QP_TIMEOUT.0
    | Mask::IBV_QP_RETRY_CNT.0
    | Mask::IBV_QP_RNR_RETRY.0
    | Mask::IBV_QP_SQ_PSN.0
    | Mask::IBV_QP_MAX_QP_RD_ATOMIC.0;
const RTR_OPTIONAL: u32 =
    Mask::IBV_QP_ALT_PATH.0 | Mask::IBV_QP_ACCESS_FLAGS.0 | Mask::IBV_QP_PKEY_INDEX.0;
const RTS_OPTIONAL: u32 = Mask::IBV_QP_ALT_PATH.0
    | Mask::IBV_QP_ACCESS_FLAGS.0
    | Mask::IBV_QP_MIN_RNR_TIMER.0
    | Mask::IBV_QP_PATH_MIG_STATE.0;

/// Whether an RC QP may go `from` one state `to` another with the attributes of `mask`
/// (InfiniBand specification, table "QP state transition properties").
pub(crate) fn transition_allowed(from: u32, to: u32, mask: u32) -> bool {
    use ibv_qp_state::{IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS};
    let (required, optional) = match (from, to) {
        (_, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (INIT, 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, INIT),
        (IBV_QPS_INIT, IBV_QPS_RTR) => (RTR, RTR_OPTIONAL),
        (IBV_QPS_RTR, IBV_QPS_RTS) => (RTS, RTS_OPTIONAL),
        (IBV_QPS_RTS, IBV_QPS_RTS) => (0, RTS_OPTIONAL),
        _ => return false,
    };
    mask & required == required && mask & !(required | optional | STATE) == 0
}

/// Copies the attributes of `new` that `mask` names into `kept`.
pub(crate) fn merge(kept: &mut ibv_qp_attr, new: &ibv_qp_attr, mask: u32) {
    macro_rules! take {
        ($($bit:ident => $($field:ident),+;)*) => {
            $(if mask & Mask::$bit.0 != 0 { $(kept.$field = new.$field;)+ })*
        };
    }
    take! {
        IBV_QP_STATE => qp_state;
        IBV_QP_ACCESS_FLAGS => qp_access_flags;
        IBV_QP_PKEY_INDEX => pkey_index;
        IBV_QP_PORT => port_num;
        IBV_QP_QKEY => qkey;
        IBV_QP_AV => ah_attr;
        IBV_QP_PATH_MTU => path_mtu;
        IBV_QP_TIMEOUT => timeout;
        IBV_QP_RETRY_CNT => retry_cnt;
        IBV_QP_RNR_RETRY => rnr_retry;
        IBV_QP_RQ_PSN => rq_psn;
        IBV_QP_SQ_PSN => sq_psn;
        IBV_QP_MAX_QP_RD_ATOMIC => max_rd_atomic;
        IBV_QP_MAX_DEST_RD_ATOMIC => max_dest_rd_atomic;
        IBV_QP_MIN_RNR_TIMER => min_rnr_timer;
        IBV_QP_DEST_QPN => dest_qp_num;
        IBV_QP_ALT_PATH => alt_ah_attr, alt_pkey_index, alt_port_num, alt_timeout;
        IBV_QP_PATH_MIG_STATE => path_mig_state;
        IBV_QP_RATE_LIMIT => rate_limit;
    }
    kept.cur_qp_state = kept.qp_state;
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_sys::ibv_qp_state::*;

    #[test]
    fn the_way_to_rts_needs_every_required_attribute() {
        let state = Mask::IBV_QP_STATE.0;
        for (from, to, required) in [
            (IBV_QPS_RESET, IBV_QPS_INIT, INIT),
            (IBV_QPS_INIT, IBV_QPS_RTR, RTR),
            (IBV_QPS_RTR, IBV_QPS_RTS, RTS),
        ] {
            let allowed = |mask| transition_allowed(from, to, mask);
            assert!(allowed(required | state));
            for bit in (0..32).map(|bit| 1 << bit).filter(|bit| required & bit != 0) {
                assert!(!allowed(required & !bit), "without {bit:#x}");
            }
            assert!(!allowed(required | Mask::IBV_QP_QKEY.0));
        }
        assert!(!transition_allowed(IBV_QPS_RESET, IBV_QPS_RTR, RTR));
        assert!(!transition_allowed(IBV_QPS_INIT, IBV_QPS_RTS, RTS));
        assert!(transition_allowed(IBV_QPS_INIT, IBV_QPS_ERR, state));
        assert!(!transition_allowed(IBV_QPS_ERR, IBV_QPS_INIT, INIT));
    }
}
