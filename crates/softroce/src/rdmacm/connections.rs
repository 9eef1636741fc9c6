//! What is done to the connection of an id.

use std::os::raw::c_int;

use rdma_sys::rdma_cm_id;

use super::id::Id;
use super::service;
use crate::cm::{CmError, Connection, Output};
use crate::verbs::object::Behind;

/// The error number of a call that does not fit the connection.
pub(super) fn errno(error: CmError) -> c_int {
    match error {
        CmError::Ended => libc::ENOTCONN,
        CmError::State => libc::EINVAL,
        CmError::Taken => libc::EADDRINUSE,
    }
}

/// Does something with an id's connection. ENOTCONN if it has ended, EINVAL if there was none, or in another state.
pub(super) unsafe fn of_connection(
    id: *mut rdma_cm_id,
    step: impl FnOnce(&mut Connection, u64, &mut Output) -> bool,
) -> Result<(), c_int> {
    // SAFETY: a live id.
    let key = unsafe { Id::of(id) }.key;
    service::with(|state, now| {
        let entry = state.entry(key)?;
        let (Some(address), Some(comm)) = (entry.device, entry.comm) else {
            return Err(libc::EINVAL);
        };
        let done = state.run(address, |manager, out| {
            manager.with(comm, |connection| step(connection, now, out))
        });
        done.ok_or(libc::ENODEV)?.map_err(errno)
    })
}
