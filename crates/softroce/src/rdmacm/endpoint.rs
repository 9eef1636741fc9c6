//! Endpoints: ids with their address, route and QP in one call (`rdma_create_ep(3)`).

use std::os::raw::c_int;
use std::ptr::null_mut;

use rdma_sys::{ibv_pd, ibv_qp_init_attr, rdma_addrinfo, rdma_cm_event_type as kind, rdma_cm_id};

use super::address::{bind_addr, resolve_addr, resolve_route};
use super::addrinfo::PASSIVE;
use super::event::get_cm_event;
use super::id::Id;
use super::lifetime::{create_id, destroy_id};
use super::qp::{create_qp, destroy_qp, destroy_srq};
use super::taken::ack_own;
use crate::verbs::errno::{last_errno, minus_one_or_zero};
use crate::verbs::object::Behind;

/// How long an address may take; nothing takes time here.
const TIMEOUT_MS: c_int = 2000;

/// -1 as the error in `errno`.
fn done(code: c_int) -> Result<(), c_int> {
    match code {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

/// # Safety
/// As for [`create_ep`]; `id` is live.
unsafe fn set_up(
    id: *mut rdma_cm_id,
    addresses: &rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> Result<(), c_int> {
    // SAFETY: the caller's.
    unsafe {
        if let Some(init) = init.as_mut() {
            init.qp_type = addresses.ai_qp_type.cast_unsigned();
        }
        if addresses.ai_flags & PASSIVE != 0 {
            done(bind_addr(id, addresses.ai_src_addr))?;
            if !pd.is_null() {
                (*id).pd = pd;
            }
            Id::of(id).own(|own| own.qp_init = init.as_ref().copied());
            return Ok(());
        }
        done(resolve_addr(id, addresses.ai_src_addr, addresses.ai_dst_addr, TIMEOUT_MS))?;
        done(resolve_route(id, TIMEOUT_MS))?;
        if init.is_null() {
            return Ok(());
        }
        done(create_qp(id, pd, init))
    }
}

pub unsafe extern "C" fn create_ep(
    id: *mut *mut rdma_cm_id,
    addresses: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: addresses, a domain or null, attributes or null, and a place for the pointer.
    minus_one_or_zero(unsafe {
        let mut made = null_mut();
        let port_space = (*addresses).ai_port_space.cast_unsigned();
        done(create_id(null_mut(), &raw mut made, null_mut(), port_space)).and_then(|()| {
            let done = set_up(made, &*addresses, pd, init);
            done.map(|()| id.write(made)).inspect_err(|_| {
                destroy_id(made);
            })
        })
    })
}

/// `rdma_destroy_ep(3)`, with QP, SRQ and CQs.
pub unsafe extern "C" fn destroy_ep(id: *mut rdma_cm_id) {
    // SAFETY: a live id.
    unsafe {
        if !(*id).qp.is_null() {
            destroy_qp(id);
        }
        if !(*id).srq.is_null() {
            destroy_srq(id);
        }
        destroy_id(id);
    }
}

unsafe fn next_request(listener: *mut rdma_cm_id) -> Result<*mut rdma_cm_id, c_int> {
    // SAFETY: the caller's; an event's ids are live until it is acknowledged.
    unsafe {
        let inner = Id::of(listener);
        if !inner.is_sync() {
            return Err(libc::EINVAL);
        }
        ack_own(listener);
        let mut event = null_mut();
        done(get_cm_event((*listener).channel, &raw mut event))?;
        let id = (*event).id;
        let is_request = (*event).event == kind::RDMA_CM_EVENT_CONNECT_REQUEST;
        let made = match inner.own(|own| own.qp_init) {
            _ if !is_request => Err(libc::EINVAL),
            None => Ok(()),
            Some(mut init) => done(create_qp(id, (*listener).pd, &raw mut init)),
        };
        let owner = if made.is_ok() { id } else { listener };
        (*owner).event = event;
        made.map(|()| id)
    }
}

/// `rdma_get_request(3)`: waits for a request and makes its QP, if the endpoint was made with attributes for one.
pub unsafe extern "C" fn get_request(listener: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id and a place for the pointer.
    minus_one_or_zero(unsafe { next_request(listener).map(|made| id.write(made)) })
}
