//! Options of ids, and the list of devices.

use std::os::raw::{c_int, c_void};

use rdma_sys::{ibv_context, rdma_cm_id};

use super::id::Id;
use super::service;
use super::state::Entry;
use crate::verbs::device::null_terminated;
use crate::verbs::errno::{minus_one_or_zero, pointer_or_errno};
use crate::verbs::object::Behind;
use crate::verbs::refuse;

/// `RDMA_OPTION_ID`.
const LEVEL_ID: c_int = 0;
/// `RDMA_OPTION_ID_TOS`: the traffic class.
const TOS: c_int = 0;
/// `RDMA_OPTION_ID_REUSEADDR` and `RDMA_OPTION_ID_AFONLY`: ports are the process's own, and there is nothing to share.
const REUSE_ADDRESS: c_int = 1;
const ONE_FAMILY_ONLY: c_int = 2;
/// `RDMA_OPTION_ID_ACK_TIMEOUT`.
const ACK_TIMEOUT: c_int = 3;
const LARGEST_ACK_TIMEOUT: u8 = 31;

fn change(key: u64, step: impl FnOnce(&mut Entry)) -> Result<(), c_int> {
    service::with(|state, _| state.entry(key).map(step))
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
    let key = unsafe { Id::of(id) }.key;
    // SAFETY: as many bytes as the program says.
    let byte = (!value.is_null() && value_bytes > 0).then(|| unsafe { *value.cast::<u8>() });
    let set = match (level, name, byte) {
        (LEVEL_ID, TOS, Some(class)) => change(key, |entry| entry.traffic_class = class),
        (LEVEL_ID, ACK_TIMEOUT, Some(code)) if code <= LARGEST_ACK_TIMEOUT => {
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
    let opened = service::start().and_then(|()| {
        service::with(|state, _| {
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

/// `rdma_free_devices(3)`: frees the list.
pub unsafe extern "C" fn free_devices(list: *mut *mut ibv_context) {
    // SAFETY: made by `calloc`, or null.
    unsafe { libc::free(list.cast()) };
}
