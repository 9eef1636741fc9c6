//! Ends that are opened through the C functions.

use std::mem::offset_of;
use std::ptr::null_mut;

use rdma_sys::{ibv_context, verbs_context};
use softroce::verbs;
pub use testing::verbs_user::*;

use super::look::SOON;
use testing::wait::wait_until;

pub fn open(faults: &str) -> Owned<ibv_context> {
    let options =
        verbs::OpenOptions { faults: faults.parse().unwrap(), ..verbs::OpenOptions::default() };
    let context = verbs::open_with("soft0", options).unwrap().as_ptr();
    Owned::new(context, verbs::close_device)
}

pub fn one_end() -> End {
    // SAFETY: the list is freed after the opening.
    unsafe {
        let list = verbs::get_device_list(null_mut());
        let context = verbs::open_device(*list);
        verbs::free_device_list(list);
        End::new(VerbsLibrary::embedded(), context, 1)
    }
}

pub fn two_ends() -> (End, End) {
    (one_end(), one_end())
}

/// The extended context around a plain one; `rdma_sys::verbs_get_ctx` fails to find it on 64 bits.
pub fn extended<'a>(context: *mut ibv_context) -> &'a verbs_context {
    let around = offset_of!(verbs_context, context);
    // SAFETY: an open context of this device.
    unsafe { &*context.byte_sub(around).cast() }
}

#[track_caller]
pub fn readable(fd: i32, what: &str) {
    wait_until(what, SOON, || is_readable(fd));
}
