//! Addresses and routes: binding, listening, resolving. There is nothing to ask anybody for, so that a call has done
//! its work when it returns, and the event follows at once.
//!
//! Options of ids, and the list of devices.

use std::net::{IpAddr, SocketAddr};
use std::os::raw::{c_int, c_void};

use libc::sockaddr;
use provider::{Behind, minus_one_or_zero, null_terminated, pointer_or_errno};
use rdma_sys::{ibv_context, ibv_sa_path_rec, rdma_cm_event_type as kind, rdma_cm_id};

use super::event::{complete, errno};
use super::id::{Id, any_like, read_address};
use super::state;
use super::state::{Entry, State};
use super::terms::{ACK_TIMEOUT, HOP_LIMIT};
use crate::verbs::{gid, refuse};

/// The backlog of a program that gives none, and the largest: the kernel's (`max_backlog` of rdma_ucm).
const MAX_BACKLOG: c_int = 1024;
/// "Exactly", of the selectors of a path record (specification 15.2.5.16).
const EXACTLY: u8 = 2;

/// The ports that are tried for an id that wants any: with half of all taken, one id in a million finds none.
const TRIES: usize = 20;

/// Binds an id to an address of this machine, or to all. A loopback address that no device has stands for all, as the
/// kernel takes each (`cma_any_addr`): libfabric asks by 127.0.0.1 which devices there are. Who may come to listen at an
/// address keeps its port from other processes there; of all addresses that is done by the listening.
fn bind(state: &mut State, key: u64, address: SocketAddr, may_listen: bool) -> Result<(), c_int> {
    let entry = state.entry(key)?;
    if entry.local.is_some() {
        return Err(libc::EINVAL);
    }
    let space = entry.space;
    let mut ip = address.ip();
    let device = if ip.is_unspecified() {
        None
    } else {
        match state.devices.open(ip) {
            Err(libc::ENODEV) if ip.is_loopback() => {
                ip = any_like(ip);
                None
            }
            opened => Some(opened?),
        }
    };
    let mut tries = if address.port() == 0 { TRIES } else { 1 };
    let port = loop {
        let port = state.port(space, ip, address.port())?;
        let claimed = match device.filter(|_| may_listen) {
            Some(device) => state.claim(key, device, port),
            None => Ok(()),
        };
        tries -= 1;
        match claimed {
            Ok(()) => break port,
            Err(libc::EADDRINUSE) if tries > 0 => {}
            Err(error) => return Err(error),
        }
    };
    if let Some(device) = device {
        state.bind_device(key, device)?;
    }
    state.set_addresses(key, SocketAddr::new(ip, port), None)?;
    state.entry(key)?.owns_port = true;
    Ok(())
}

/// `rdma_bind_addr(3)`. ENODEV for an address that no device has, EADDRINUSE if another id has the port, or somebody the
/// address who does not share it.
pub unsafe extern "C" fn bind_addr(id: *mut rdma_cm_id, address: *mut sockaddr) -> c_int {
    // SAFETY: a live id and an address.
    let (key, address) = unsafe { (Id::from_raw(id).key, read_address(address)) };
    minus_one_or_zero(match address {
        None => Err(libc::EINVAL),
        Some(address) => state::with(|state, _| bind(state, key, address, true)),
    })
}

fn start_listening(state: &mut State, now: u64, key: u64, backlog: usize) -> Result<(), c_int> {
    if state.entry(key)?.local.is_none() {
        bind(state, key, (IpAddr::from([0, 0, 0, 0]), 0).into(), true)?;
    }
    let entry = state.entry(key)?;
    let local = entry.local.ok_or(libc::EINVAL)?;
    let service = entry.space.service(local.port());
    if entry.listens || entry.remote.is_some() {
        return Err(libc::EINVAL);
    }
    let mut addresses =
        if local.ip().is_unspecified() { state.devices.open_all()? } else { vec![local.ip()] };
    addresses.retain(|address| local.is_ipv6() || address.is_ipv4());
    for address in addresses {
        let listens = state.claim(key, address, local.port()).and_then(|()| {
            let listens =
                state.run(address, |manager, out| manager.listen(now, service, key, backlog, out));
            listens.ok_or(libc::ENODEV)?.map_err(errno)
        });
        if let Err(error) = listens {
            // Of the devices that listen already, none keeps it.
            for (_, device) in state.devices.iter_mut() {
                device.manager.stop_listening(key);
            }
            let claims = &mut state.entry(key)?.claims;
            claims.retain(|claimed| claimed.at == local.ip());
            return Err(error);
        }
    }
    state.entry(key)?.listens = true;
    Ok(())
}

/// `rdma_listen(3)`: on all devices of this machine that this process can open, if the id is bound to no address.
/// EADDRINUSE if another process listens there.
pub unsafe extern "C" fn listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    // SAFETY: a live id.
    let key = unsafe { Id::from_raw(id) }.key;
    let backlog = match backlog {
        1..=MAX_BACKLOG => backlog,
        _ => MAX_BACKLOG,
    };
    minus_one_or_zero(state::with(|state, now| {
        start_listening(state, now, key, backlog.cast_unsigned() as usize)
    }))
}

fn resolve(
    state: &mut State,
    key: u64,
    source: Option<SocketAddr>,
    target: SocketAddr,
) -> Result<(), c_int> {
    if state.entry(key)?.listens || target.ip().is_unspecified() {
        return Err(libc::EINVAL);
    }
    if state.entry(key)?.local.is_none() {
        let any = SocketAddr::new(any_like(target.ip()), 0);
        bind(state, key, source.unwrap_or(any), false)?;
    }
    let mut local = state.entry(key)?.local.ok_or(libc::EINVAL)?;
    if local.is_ipv4() != target.is_ipv4() {
        return Err(libc::EINVAL);
    }
    if local.ip().is_unspecified() {
        let device = state.devices.open_toward(target.ip())?;
        state.bind_device(key, device)?;
        local.set_ip(device);
        if local.is_ipv4() != target.is_ipv4() {
            return Err(libc::ENETUNREACH);
        }
    }
    state.set_addresses(key, local, Some(target))?;
    state.succeed(key, kind::RDMA_CM_EVENT_ADDR_RESOLVED)
}

/// `rdma_resolve_addr(3)`: finds the device from which packets go to the address. The time-out is not needed.
pub unsafe extern "C" fn resolve_addr(
    id: *mut rdma_cm_id,
    source: *mut sockaddr,
    target: *mut sockaddr,
    _timeout_ms: c_int,
) -> c_int {
    // SAFETY: a live id, an address or null, and an address.
    let (key, from, to) =
        unsafe { (Id::from_raw(id).key, read_address(source), read_address(target)) };
    let resolved = match to {
        Some(to) if from.is_some() || source.is_null() => {
            state::with(|state, _| resolve(state, key, from, to))
        }
        _ => Err(libc::EINVAL),
    };
    // SAFETY: a live id.
    minus_one_or_zero(resolved.and_then(|()| unsafe { complete(id) }))
}

/// The path of a RoCE connection: what a program may look up of it.
fn path(state: &mut State, key: u64) -> Result<ibv_sa_path_rec, c_int> {
    let entry = state.entry(key)?;
    let (Some(local), Some(remote), Some(device)) = (entry.local, entry.remote, entry.device)
    else {
        return Err(libc::EINVAL);
    };
    let traffic_class = entry.traffic_class;
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut path: ibv_sa_path_rec = unsafe { std::mem::zeroed() };
    path.sgid = gid::of_address(local.ip());
    path.dgid = gid::of_address(remote.ip());
    path.hop_limit = HOP_LIMIT;
    path.traffic_class = traffic_class;
    path.reversible = 1;
    path.numb_path = 1;
    path.pkey = 0xffff;
    path.mtu_selector = EXACTLY;
    path.mtu = state.devices.get(device).ok_or(libc::ENODEV)?.mtu;
    path.packet_life_time_selector = EXACTLY;
    path.packet_life_time = ACK_TIMEOUT - 1;
    Ok(path)
}

pub unsafe extern "C" fn resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
    // SAFETY: a live id.
    let inner = unsafe { Id::from_raw(id) };
    let found = state::with(|state, _| path(state, inner.key));
    let resolved = found.and_then(|path| {
        inner.own(|own| {
            let place: &mut ibv_sa_path_rec = own.path.insert(Box::new(path));
            // SAFETY: a live id, which the caller may change; the path lives as long as the id.
            unsafe {
                (*id).route.path_rec = place;
                (*id).route.num_paths = 1;
            }
        });
        state::with(|state, _| state.succeed(inner.key, kind::RDMA_CM_EVENT_ROUTE_RESOLVED))
    });
    // SAFETY: a live id.
    minus_one_or_zero(resolved.and_then(|()| unsafe { complete(id) }))
}

/// A port of an id in network order; 0 without an address.
unsafe fn port(id: *mut rdma_cm_id, of: fn(&Entry) -> Option<SocketAddr>) -> u16 {
    // SAFETY: the caller's.
    let key = unsafe { Id::from_raw(id) }.key;
    let address = state::with(|state, _| of(state.entry(key).ok()?));
    address.map_or(0, |address| address.port().to_be())
}

/// `rdma_get_src_port(3)`: in network order, 0 without an address.
pub unsafe extern "C" fn get_src_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: a live id.
    unsafe { port(id, |entry| entry.local) }
}

/// `rdma_get_dst_port(3)`: in network order, 0 without an address.
pub unsafe extern "C" fn get_dst_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: a live id.
    unsafe { port(id, |entry| entry.remote) }
}

/// `RDMA_OPTION_ID`: the level of the options below.
const LEVEL_ID: c_int = 0;
/// `RDMA_OPTION_ID_TOS`: the traffic class of the path, a byte.
const TOS: c_int = 0;
/// `RDMA_OPTION_ID_REUSEADDR` and `RDMA_OPTION_ID_AFONLY`: ports are the process's own, and there is nothing to share.
const REUSE_ADDRESS: c_int = 1;
const ONE_FAMILY_ONLY: c_int = 2;
/// `RDMA_OPTION_ID_ACK_TIMEOUT`: a code of 5 bits in a byte.
const ACK_TIMEOUT_OPTION: c_int = 3;
const LARGEST_ACK_TIMEOUT: u8 = 31;

fn change(key: u64, step: impl FnOnce(&mut Entry)) -> Result<(), c_int> {
    state::with(|state, _| state.entry(key).map(step))
}

/// `rdma_set_option(3)`. EOPNOTSUPP for options of paths.
pub unsafe extern "C" fn set_option(
    id: *mut rdma_cm_id,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    value_bytes: usize,
) -> c_int {
    // SAFETY: a live id.
    let key = unsafe { Id::from_raw(id) }.key;
    // SAFETY: as many bytes as the program says.
    let byte = (!value.is_null() && value_bytes > 0).then(|| unsafe { *value.cast::<u8>() });
    let set = match (level, name, byte) {
        (LEVEL_ID, TOS, Some(class)) => change(key, |entry| entry.traffic_class = class),
        (LEVEL_ID, ACK_TIMEOUT_OPTION, Some(code)) if code <= LARGEST_ACK_TIMEOUT => {
            change(key, |entry| entry.ack_timeout = Some(code))
        }
        (LEVEL_ID, REUSE_ADDRESS | ONE_FAMILY_ONLY, Some(_)) => Ok(()),
        (LEVEL_ID, _, _) => Err(libc::EINVAL),
        _ => {
            refuse("an option of rdma_cm other than those of ids");
            Err(libc::EOPNOTSUPP)
        }
    };
    minus_one_or_zero(set)
}

/// `rdma_get_devices(3)`: the devices that this process can open. They stay open until the process ends, since the
/// program may keep what it finds in the list.
pub unsafe extern "C" fn get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    let opened = state::start().and_then(|()| {
        state::with(|state, _| {
            state.devices.open_all()?;
            Ok(state
                .devices
                .iter_mut()
                .map(|(_, device)| {
                    device.users += 1;
                    device.context
                })
                .collect::<Vec<_>>())
        })
    });
    pointer_or_errno(opened.and_then(|contexts| {
        let list = null_terminated(contexts.iter().copied())?;
        if !count.is_null() {
            // SAFETY: the caller vouches for it.
            unsafe { *count = c_int::try_from(contexts.len()).unwrap_or(c_int::MAX) };
        }
        Ok(list)
    }))
}

/// `rdma_free_devices(3)`: frees the list; the devices stay open.
pub unsafe extern "C" fn free_devices(list: *mut *mut ibv_context) {
    // SAFETY: made by `calloc`, or null.
    unsafe { libc::free(list.cast()) };
}
