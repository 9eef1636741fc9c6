//! Endpoints: ids with their address, route and QP in one call (`rdma_create_ep(3)`).
//!
//! The addresses are those of `rdma_getaddrinfo(3)`: names and services to addresses, by the C library's
//! `getaddrinfo(3)`.

use std::os::raw::{c_char, c_int};
use std::ptr::null_mut;

use libc::{addrinfo, sockaddr};
use provider::{Behind, last_errno, minus_one_or_zero};
use rdma_sys::{
    ibv_pd, ibv_qp_init_attr, ibv_qp_type, rdma_addrinfo, rdma_cm_event_type as kind, rdma_cm_id,
    rdma_port_space,
};

use super::address::{bind_addr, resolve_addr, resolve_route};
use super::event::{ack_own, create_id, destroy_id, get_cm_event};
use super::id::Id;
use super::qp::{create_qp, destroy_qp, destroy_srq};

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
            Id::from_raw(id).own(|own| own.qp_init = init.as_ref().copied());
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
        let inner = Id::from_raw(listener);
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

/// `RAI_PASSIVE`: the result is an address to bind to.
pub(super) const PASSIVE: c_int = 1;
/// `RAI_NUMERICHOST`: the node is an address, no name to look up.
const NUMERIC_HOST: c_int = 2;

const RC: c_int = ibv_qp_type::IBV_QPT_RC as c_int;
const UD: c_int = ibv_qp_type::IBV_QPT_UD as c_int;
const TCP: c_int = rdma_port_space::RDMA_PS_TCP as c_int;
const UDP: c_int = rdma_port_space::RDMA_PS_UDP as c_int;

/// The hints in the form of the C library.
fn plain_hints(hints: &rdma_addrinfo) -> addrinfo {
    // SAFETY: integers and pointers, for which zero is a value.
    let mut plain: addrinfo = unsafe { std::mem::zeroed() };
    if hints.ai_flags & PASSIVE != 0 {
        plain.ai_flags |= libc::AI_PASSIVE;
    }
    if hints.ai_flags & NUMERIC_HOST != 0 {
        plain.ai_flags |= libc::AI_NUMERICHOST;
    }
    plain.ai_family = hints.ai_family;
    plain.ai_socktype = match hints.ai_qp_type {
        RC => libc::SOCK_STREAM,
        UD => libc::SOCK_DGRAM,
        _ => 0,
    };
    plain.ai_protocol = match hints.ai_port_space {
        TCP => libc::IPPROTO_TCP,
        UDP => libc::IPPROTO_UDP,
        _ => 0,
    };
    plain
}

/// A copy of an address, by `malloc`.
///
/// # Safety
/// `from` has `bytes`.
unsafe fn copy(from: *const sockaddr, bytes: u32) -> *mut sockaddr {
    // SAFETY: the caller's; new memory of the same length, or null.
    unsafe {
        let to = libc::malloc(bytes as usize);
        if !to.is_null() {
            to.cast::<u8>().copy_from_nonoverlapping(from.cast(), bytes as usize);
        }
        to.cast()
    }
}

unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: &rdma_addrinfo,
    found: &mut rdma_addrinfo,
) -> Result<(), c_int> {
    let plain = plain_hints(hints);
    let mut list: *mut addrinfo = null_mut();
    // SAFETY: strings or null, hints, and a place for the list.
    let code = unsafe { libc::getaddrinfo(node, service, &raw const plain, &raw mut list) };
    match code {
        0 => {}
        libc::EAI_MEMORY => return Err(libc::ENOMEM),
        libc::EAI_SYSTEM => return Err(last_errno()),
        _ => return Err(libc::EADDRNOTAVAIL),
    }
    // SAFETY: a list of at least one, freed below.
    unsafe {
        let first = &*list;
        found.ai_flags = hints.ai_flags;
        found.ai_family = first.ai_family;
        let datagrams = first.ai_socktype == libc::SOCK_DGRAM;
        let (qp_type, port_space) = if datagrams { (UD, UDP) } else { (RC, TCP) };
        found.ai_qp_type = if hints.ai_qp_type == 0 { qp_type } else { hints.ai_qp_type };
        found.ai_port_space =
            if hints.ai_port_space == 0 { port_space } else { hints.ai_port_space };
        let address = copy(first.ai_addr, first.ai_addrlen);
        if hints.ai_flags & PASSIVE != 0 {
            (found.ai_src_addr, found.ai_src_len) = (address, first.ai_addrlen);
        } else {
            (found.ai_dst_addr, found.ai_dst_len) = (address, first.ai_addrlen);
        }
        libc::freeaddrinfo(list);
        if address.is_null() { Err(libc::ENOMEM) } else { Ok(()) }
    }
}

/// `rdma_getaddrinfo(3)`: one result, and no route, which RoCE does not need.
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    result: *mut *mut rdma_addrinfo,
) -> c_int {
    // SAFETY: integers and pointers, for which zero is a value.
    let none: rdma_addrinfo = unsafe { std::mem::zeroed() };
    // SAFETY: null, or readable hints.
    let given = unsafe { hints.as_ref() };
    if node.is_null() && service.is_null() && given.is_none() {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    let wanted = given.unwrap_or(&none);
    let mut whole = Box::new(none);
    // SAFETY: strings or null; addresses as long as the hints say.
    let looked_up = unsafe {
        if node.is_null() && service.is_null() {
            whole.ai_flags = wanted.ai_flags;
            whole.ai_family = wanted.ai_family;
            whole.ai_qp_type = wanted.ai_qp_type;
            whole.ai_port_space = wanted.ai_port_space;
            if wanted.ai_dst_len > 0 {
                whole.ai_dst_addr = copy(wanted.ai_dst_addr, wanted.ai_dst_len);
                whole.ai_dst_len = wanted.ai_dst_len;
            }
            Ok(())
        } else {
            look_up(node, service, wanted, &mut whole)
        }
    };
    if looked_up.is_ok() && whole.ai_src_len == 0 && wanted.ai_src_len > 0 {
        // SAFETY: as above.
        whole.ai_src_addr = unsafe { copy(wanted.ai_src_addr, wanted.ai_src_len) };
        whole.ai_src_len = wanted.ai_src_len;
    }
    let found = Box::into_raw(whole);
    // SAFETY: a place for the pointer; made above.
    minus_one_or_zero(unsafe {
        looked_up.map(|()| result.write(found)).inspect_err(|_| freeaddrinfo(found))
    })
}

pub unsafe extern "C" fn freeaddrinfo(list: *mut rdma_addrinfo) {
    // SAFETY: one of `getaddrinfo`, or null; its addresses are by `malloc`, or null.
    unsafe {
        if !list.is_null() {
            let whole = Box::from_raw(list);
            libc::free(whole.ai_src_addr.cast());
            libc::free(whole.ai_dst_addr.cast());
        }
    }
}
