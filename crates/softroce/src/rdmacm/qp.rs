//! QPs that belong to ids, with their CQs: creating them, and the transitions that librdmacm does for programs.

use std::mem::replace;
use std::os::raw::c_int;
use std::ptr::null_mut;

use provider::{Behind, last_errno, minus_one_or_zero, pointer_or_errno};
use rdma_sys::{
    ibv_comp_channel, ibv_cq, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as mask,
    ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_qp_init_attr_mask as init_mask, ibv_qp_state,
    ibv_srq_init_attr, rdma_cm_id,
};

use super::id::{Id, PortSpace};
use super::state;
use super::terms::Terms;
use crate::verbs;

/// The mask of a transition without attributes.
const STATE: u32 = mask::IBV_QP_STATE.0;

pub unsafe extern "C" fn init_qp_attr(
    id: *mut rdma_cm_id,
    attr: *mut ibv_qp_attr,
    attr_mask: *mut c_int,
) -> c_int {
    // SAFETY: a live id, and two places to write.
    minus_one_or_zero(unsafe {
        attributes(id, &mut *attr).map(|bits| attr_mask.write(bits.cast_signed()))
    })
}

unsafe fn attributes(id: *mut rdma_cm_id, attr: &mut ibv_qp_attr) -> Result<u32, c_int> {
    // SAFETY: the caller's.
    let (key, space) = unsafe { (Id::from_raw(id).key, Id::from_raw(id).space) };
    let terms = state::with(|state, _| state.entry(key).map(|entry| entry.terms))?;
    *attr = blank(attr.qp_state);
    match space {
        PortSpace::Tcp => terms.attributes(attr),
        PortSpace::Udp => Ok(Terms::attributes_of_datagrams(attr)),
    }
}

/// The attributes of a transition that are the same in each.
fn blank(state: ibv_qp_state::Type) -> ibv_qp_attr {
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    attr.qp_state = state;
    attr
}

/// Brings a QP to a state by the attributes that `fill` sets; it returns their mask.
unsafe fn modify(
    qp: *mut ibv_qp,
    state: ibv_qp_state::Type,
    fill: impl FnOnce(&mut ibv_qp_attr) -> Result<u32, c_int>,
) -> Result<(), c_int> {
    let mut attr = blank(state);
    let bits = fill(&mut attr)?;
    // SAFETY: the caller's.
    match unsafe { verbs::modify_qp(qp, &raw mut attr, bits.cast_signed()) } {
        0 => Ok(()),
        error => Err(error),
    }
}

/// Brings the id's QP, if it has one, to RTS.
pub(super) unsafe fn to_rts(id: *mut rdma_cm_id) -> Result<(), c_int> {
    // SAFETY: the caller's.
    unsafe {
        let qp = (*id).qp;
        if qp.is_null() {
            return Ok(());
        }
        // Before the connection was asked for the other end had no access.
        for state in
            [ibv_qp_state::IBV_QPS_INIT, ibv_qp_state::IBV_QPS_RTR, ibv_qp_state::IBV_QPS_RTS]
        {
            modify(qp, state, |attr| attributes(id, attr))?;
        }
        Ok(())
    }
}

/// Brings the id's QP, if it has one, to ERR.
pub(super) unsafe fn fail(id: *mut rdma_cm_id) {
    // SAFETY: the caller's.
    unsafe {
        if !(*id).qp.is_null() {
            // From RESET there is no way to ERR, and nothing to flush.
            let _ = modify((*id).qp, ibv_qp_state::IBV_QPS_ERR, |_| Ok(STATE));
        }
    }
}

/// A CQ for an id, with a channel.
///
/// # Safety
/// `id` is live and has a device.
unsafe fn create_cq(
    id: *mut rdma_cm_id,
    entries: u32,
) -> Result<(*mut ibv_comp_channel, *mut ibv_cq), c_int> {
    // SAFETY: the caller's.
    unsafe {
        let channel = verbs::create_comp_channel((*id).verbs);
        if channel.is_null() {
            return Err(last_errno());
        }
        let entries = c_int::try_from(entries).unwrap_or(c_int::MAX);
        let cq = verbs::create_cq((*id).verbs, entries, id.cast(), channel, 0);
        if cq.is_null() {
            let error = last_errno();
            verbs::destroy_comp_channel(channel);
            return Err(error);
        }
        Ok((channel, cq))
    }
}

/// Destroys the CQs that were made for the id's QP; those of a QP that exists stay.
unsafe fn destroy_cqs(id: *mut rdma_cm_id) {
    // SAFETY: a live id.
    unsafe {
        if !(*id).qp.is_null() {
            return;
        }
        for cq in [&mut (*id).recv_cq, &mut (*id).send_cq] {
            if !cq.is_null() {
                verbs::destroy_cq(replace(cq, null_mut()));
            }
        }
        for channel in [&mut (*id).recv_cq_channel, &mut (*id).send_cq_channel] {
            if !channel.is_null() {
                verbs::destroy_comp_channel(replace(channel, null_mut()));
            }
        }
    }
}

/// What both kinds of attributes for a QP have, filled in from the id where the program gives nothing: CQs, which are
/// made if the id has none, SRQ and domain.
unsafe fn prepare(
    id: *mut rdma_cm_id,
    pd: &mut *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    unsafe {
        if !(*id).qp.is_null() || (*id).verbs.is_null() {
            return Err(libc::EINVAL);
        }
        if pd.is_null() {
            *pd = (*id).pd;
        }
        if (**pd).context != (*id).verbs {
            return Err(libc::EINVAL);
        }
        for (given, own, channel, entries) in [
            (
                &mut init.recv_cq,
                &mut (*id).recv_cq,
                &mut (*id).recv_cq_channel,
                init.cap.max_recv_wr,
            ),
            (
                &mut init.send_cq,
                &mut (*id).send_cq,
                &mut (*id).send_cq_channel,
                init.cap.max_send_wr,
            ),
        ] {
            if given.is_null() && own.is_null() {
                (*channel, *own) = create_cq(id, entries.max(1))?;
            }
            if given.is_null() {
                *given = *own;
            }
        }
        if init.srq.is_null() {
            init.srq = (*id).srq;
        }
    }
    Ok(())
}

/// Brings a QP that was just made to INIT, and one for datagrams to RTS.
///
/// # Safety
/// `id` and `qp` are live.
unsafe fn begin(id: *mut rdma_cm_id, qp: *mut ibv_qp) -> Result<(), c_int> {
    // SAFETY: the caller's.
    unsafe {
        modify(qp, ibv_qp_state::IBV_QPS_INIT, |attr| attributes(id, attr))?;
        if Id::from_raw(id).space == PortSpace::Udp {
            // It needs to know nobody.
            let last = STATE | mask::IBV_QP_SQ_PSN.0;
            modify(qp, ibv_qp_state::IBV_QPS_RTR, |_| Ok(STATE))?;
            modify(qp, ibv_qp_state::IBV_QPS_RTS, |_| Ok(last))?;
        }
    }
    Ok(())
}

/// Gives the id its QP, in INIT, or of datagrams in RTS, if one was made.
///
/// # Safety
/// `id` is live, `qp` is live or null with `errno` set.
unsafe fn adopt(id: *mut rdma_cm_id, qp: *mut ibv_qp) -> Result<(), c_int> {
    if qp.is_null() {
        return Err(last_errno());
    }
    // SAFETY: the caller's.
    unsafe {
        begin(id, qp).inspect_err(|_| {
            verbs::destroy_qp(qp);
        })?;
        (*id).pd = (*qp).pd;
        (*id).qp = qp;
    }
    Ok(())
}

/// `rdma_create_qp(3)`: without a domain and CQs the id's own are used.
pub unsafe extern "C" fn create_qp(
    id: *mut rdma_cm_id,
    mut pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: a live id, and attributes that can be changed.
    minus_one_or_zero(unsafe {
        let made =
            prepare(id, &mut pd, &mut *init).and_then(|()| adopt(id, verbs::create_qp(pd, init)));
        made.inspect_err(|_| destroy_cqs(id))
    })
}

pub unsafe extern "C" fn create_qp_ex(
    id: *mut rdma_cm_id,
    init: *mut ibv_qp_init_attr_ex,
) -> c_int {
    // SAFETY: a live id, and attributes that can be changed.
    minus_one_or_zero(unsafe {
        let given = &mut *init;
        let has_pd = given.comp_mask & init_mask::IBV_QP_INIT_ATTR_PD.0 != 0;
        let mut pd = if has_pd { given.pd } else { null_mut() };
        let mut plain = verbs::plain_attributes(given);
        let made = prepare(id, &mut pd, &mut plain).and_then(|()| {
            given.pd = pd;
            given.comp_mask |= init_mask::IBV_QP_INIT_ATTR_PD.0;
            (given.send_cq, given.recv_cq) = (plain.send_cq, plain.recv_cq);
            given.srq = plain.srq;
            adopt(id, verbs::create_qp_ex((*id).verbs, init))
        });
        made.inspect_err(|_| destroy_cqs(id))
    })
}

/// `rdma_destroy_qp(3)`, with the CQs that were made for it.
pub unsafe extern "C" fn destroy_qp(id: *mut rdma_cm_id) {
    // SAFETY: a live id with a QP.
    unsafe {
        verbs::destroy_qp((*id).qp);
        (*id).qp = null_mut();
        destroy_cqs(id);
    }
}

/// `rdma_create_srq(3)`: the id's QP will use it.
pub unsafe extern "C" fn create_srq(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_srq_init_attr,
) -> c_int {
    // SAFETY: a live id, attributes, and a domain or null.
    unsafe {
        let pd = if pd.is_null() { (*id).pd } else { pd };
        let srq = if pd.is_null() {
            pointer_or_errno(Err(libc::EINVAL))
        } else {
            verbs::create_srq(pd, init)
        };
        if srq.is_null() {
            return -1;
        }
        ((*id).pd, (*id).srq) = (pd, srq);
    }
    0
}

pub unsafe extern "C" fn destroy_srq(id: *mut rdma_cm_id) {
    // SAFETY: a live id with an SRQ that no QP uses.
    unsafe {
        verbs::destroy_srq((*id).srq);
        (*id).srq = null_mut();
    }
}
