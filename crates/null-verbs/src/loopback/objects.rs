//! Creating, changing and destroying the device's objects.

use std::collections::VecDeque;
use std::os::raw::{c_int, c_void};

use rdma_sys::{
    ibv_comp_channel, ibv_context, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask,
    ibv_qp_init_attr, ibv_qp_state, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask, ibv_srq_init_attr,
};

use super::fabric::{Cq, LOCAL_WRITE, Qp, REMOTE_ATOMIC, REMOTE_WRITE, Region, Srq, fabric};
use crate::context::{Channel, Context};
use crate::personas::{Adapter, LinkLayer};
use crate::structs::{
    fill_qp_query, free, keep, merge, mtu_code, new_cq, new_mr, new_qp, new_srq, transition_allowed,
};

/// A QPN has 24 bits; after the last the first unused one comes again.
const MAX_QPN: u32 = 0x00ff_ffff;

pub(crate) fn pd_in_use(pd: *mut ibv_pd) -> bool {
    let fabric = fabric();
    let address = pd as usize;
    fabric.memory.pd_in_use(address)
        || fabric.qps.values().any(|qp| qp.pd == address)
        || fabric.srqs.values().any(|srq| srq.pd == address)
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn reg_mr(
    pd: *mut ibv_pd,
    address: *mut c_void,
    length: usize,
    access: c_int,
) -> Result<*mut ibv_mr, c_int> {
    let flags = access.cast_unsigned();
    // As ibv_reg_mr(3) says.
    let needs_local_write = flags & (REMOTE_WRITE | REMOTE_ATOMIC) != 0;
    let wraps = (address as u64).checked_add(length as u64).is_none();
    if wraps || length == 0 || needs_local_write && flags & LOCAL_WRITE == 0 {
        return Err(libc::EINVAL);
    }
    let keys = fabric().memory.register(Region {
        start: address as u64,
        length: length as u64,
        access: flags,
        pd: pd as usize,
    });
    // SAFETY: the caller's.
    Ok(unsafe { new_mr(pd, address, length, keys) })
}

/// # Safety
/// `mr` is live.
pub(crate) unsafe fn forget_mr(mr: *mut ibv_mr) {
    // SAFETY: the caller vouches for it.
    fabric().memory.forget(unsafe { (*mr).lkey });
}

/// A CQ of exactly `size` entries.
pub(crate) fn create_cq(
    context: *mut ibv_context,
    size: u32,
    cq_context: *mut c_void,
    channel: *mut ibv_comp_channel,
) -> *mut ibv_cq {
    let mut verbs = new_cq(context, size, cq_context);
    verbs.channel = channel;
    let verbs = keep(verbs);
    let cq =
        Cq { capacity: size as usize, entries: VecDeque::new(), overflowed: false, armed: false };
    fabric().cqs.insert(verbs, cq);
    verbs
}

/// # Safety
/// `cq` is live; if the outcome is 0, it is not used again.
pub(crate) unsafe fn destroy_cq(cq: *mut ibv_cq) -> c_int {
    let mut fabric = fabric();
    let mut qps = fabric.qps.values();
    if qps.any(|qp| qp.send_cq == cq || qp.recv_cq == cq) {
        return libc::EBUSY;
    }
    if fabric.cqs.remove(&cq).is_none() {
        return libc::EINVAL;
    }
    // SAFETY: it was in the table, so `create_cq` made it; its channel outlives it.
    unsafe {
        if !(*cq).channel.is_null() {
            Channel::from_raw((*cq).channel).forget(cq);
        }
        free(cq)
    }
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn create_qp(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
) -> Result<*mut ibv_qp, c_int> {
    let mut fabric = fabric();
    if !fabric.cqs.contains_key(&init.send_cq) || !fabric.cqs.contains_key(&init.recv_cq) {
        return Err(libc::EINVAL);
    }
    if !init.srq.is_null() && !fabric.srqs.contains_key(&init.srq) {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller vouches for `pd`.
    let table = unsafe { Context::from_raw((*pd).context) }.table();
    if fabric.qps.len() >= table.max_qp as usize {
        return Err(libc::ENOMEM);
    }
    let mut qpn = fabric.next_qpn;
    while fabric.qps.contains_key(&qpn) {
        qpn = (qpn + 1) & MAX_QPN;
    }
    fabric.next_qpn = (qpn + 1) & MAX_QPN;
    // SAFETY: the caller's.
    let verbs = keep(unsafe { new_qp(pd, init, qpn) });
    let qp = Qp {
        verbs,
        pd: pd as usize,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        // SAFETY: integers and arrays of them: zero is a value of each, and RESET is 0.
        attr: unsafe { std::mem::zeroed() },
        cap: init.cap,
        sq_sig_all: init.sq_sig_all != 0,
        sends: VecDeque::new(),
        sends_posted: 0,
        sends_freed: 0,
        receives: VecDeque::new(),
        receives_outstanding: 0,
    };
    fabric.qps.insert(qpn, qp);
    Ok(verbs)
}

/// # Safety
/// `qp` is live, the others are writable.
pub(crate) unsafe fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let fabric = fabric();
    // SAFETY: the caller's.
    unsafe {
        match fabric.qps.get(&(*qp).qp_num) {
            Some(kept) => {
                fill_qp_query(qp, &kept.attr, kept.cap, kept.sq_sig_all.into(), attr, init)
            }
            None => libc::EINVAL,
        }
    }
}

/// # Safety
/// `qp` is live.
pub(crate) unsafe fn modify_qp(qp: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> c_int {
    let mut fabric = fabric();
    // SAFETY: the caller vouches for it.
    let qpn = unsafe { (*qp).qp_num };
    let Some(state) = fabric.qps.get_mut(&qpn) else {
        return libc::EINVAL;
    };
    let from = state.state();
    let to = match mask & ibv_qp_attr_mask::IBV_QP_STATE.0 {
        0 => from,
        _ => attr.qp_state,
    };
    if !transition_allowed(from, to, mask) {
        return libc::EINVAL;
    }
    // SAFETY: the caller vouches for the QP.
    let table = unsafe { Context::from_raw((*qp).context) }.table();
    if let Err(error) = check_values(table, attr, mask) {
        return error;
    }
    merge(&mut state.attr, attr, mask);
    match to {
        ibv_qp_state::IBV_QPS_ERR => fabric.move_to_error(qpn),
        ibv_qp_state::IBV_QPS_RESET => fabric.clear(qpn),
        _ => {}
    }
    // SAFETY: as above; like libibverbs, only this call writes the field.
    unsafe { (*qp).state = to };
    0
}

fn has(mask: u32, bit: ibv_qp_attr_mask) -> bool {
    mask & bit.0 != 0
}

fn check_values(table: &Adapter, attr: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
    let largest_mtu = table.port.iter().map(|port| mtu_code(port.max_mtu)).max().unwrap_or(0);
    let invalid = has(mask, ibv_qp_attr_mask::IBV_QP_PORT)
        && table.port(attr.port_num.into()).is_none()
        || has(mask, ibv_qp_attr_mask::IBV_QP_PKEY_INDEX) && attr.pkey_index != 0
        || has(mask, ibv_qp_attr_mask::IBV_QP_PATH_MTU)
            && !(1..=largest_mtu).contains(&attr.path_mtu)
        || has(mask, ibv_qp_attr_mask::IBV_QP_DEST_QPN) && attr.dest_qp_num > MAX_QPN
        || has(mask, ibv_qp_attr_mask::IBV_QP_MAX_QP_RD_ATOMIC)
            && attr.max_rd_atomic > table.max_qp_init_rd_atom
        || has(mask, ibv_qp_attr_mask::IBV_QP_MAX_DEST_RD_ATOMIC)
            && attr.max_dest_rd_atomic > table.max_qp_rd_atom
        || has(mask, ibv_qp_attr_mask::IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > 31
        || has(mask, ibv_qp_attr_mask::IBV_QP_TIMEOUT) && attr.timeout > 31
        || has(mask, ibv_qp_attr_mask::IBV_QP_RETRY_CNT) && attr.retry_cnt > 7
        || has(mask, ibv_qp_attr_mask::IBV_QP_RNR_RETRY) && attr.rnr_retry > 7;
    if invalid {
        return Err(libc::EINVAL);
    }
    if has(mask, ibv_qp_attr_mask::IBV_QP_AV) {
        let path = &attr.ah_attr;
        let port = table.port(path.port_num.into()).ok_or(libc::EINVAL)?;
        if path.is_global == 0 {
            // RoCE has no path without a GRH, and not every InfiniBand network.
            let has_lid = matches!(port.link_layer, LinkLayer::Infiniband) && !port.grh_required;
            return if has_lid { Ok(()) } else { Err(libc::EINVAL) };
        }
        let index = u32::from(path.grh.sgid_index);
        let gid = port.gid.iter().find(|gid| gid.index == index);
        // SAFETY: both members of the union are the same 16 bytes.
        if unsafe { path.grh.dgid.raw } != gid.ok_or(libc::EINVAL)?.gid.octets() {
            return Err(libc::ETIMEDOUT);
        }
    }
    Ok(())
}

/// # Safety
/// `qp` is live, and not used again.
pub(crate) unsafe fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    let mut fabric = fabric();
    // SAFETY: the caller vouches for it.
    let qpn = unsafe { (*qp).qp_num };
    fabric.clear(qpn);
    fabric.service.forget(qpn);
    if fabric.qps.remove(&qpn).is_none() {
        return libc::EINVAL;
    }
    // SAFETY: it was in the table, so `create_qp` made it.
    unsafe { free(qp) }
}

/// # Safety
/// `pd` is live.
pub(crate) unsafe fn create_srq(pd: *mut ibv_pd, init: &ibv_srq_init_attr) -> *mut ibv_srq {
    // SAFETY: the caller's.
    let verbs = unsafe { new_srq(pd, init) };
    let srq = Srq {
        pd: pd as usize,
        max_wr: init.attr.max_wr,
        max_sge: init.attr.max_sge.max(1),
        limit: 0,
        receives: VecDeque::new(),
        outstanding: 0,
    };
    fabric().srqs.insert(verbs, srq);
    verbs
}

/// Arms the limit; EINVAL above the capacity, and for another capacity.
pub(crate) fn modify_srq(srq: *mut ibv_srq, attr: &ibv_srq_attr, mask: u32) -> c_int {
    let mut fabric = fabric();
    let Some(state) = fabric.srqs.get_mut(&srq) else {
        return libc::EINVAL;
    };
    if mask != ibv_srq_attr_mask::IBV_SRQ_LIMIT.0 || attr.srq_limit > state.max_wr {
        return libc::EINVAL;
    }
    state.limit = attr.srq_limit;
    0
}

/// EBUSY while a QP uses it.
///
/// # Safety
/// `srq` is live; if the outcome is 0, it is not used again.
pub(crate) unsafe fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    let mut fabric = fabric();
    if fabric.qps.values().any(|qp| qp.srq == srq) {
        return libc::EBUSY;
    }
    if fabric.srqs.remove(&srq).is_none() {
        return libc::EINVAL;
    }
    // SAFETY: it was in the table, so `create_srq` made it.
    unsafe { free(srq) }
}
