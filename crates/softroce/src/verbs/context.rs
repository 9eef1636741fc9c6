//! An open device: the data behind the context pointer. It must not know the functions of the context;
//! [`super::open`] fills them in.

use std::mem::offset_of;
use std::net::IpAddr;
use std::os::raw::c_int;
use std::sync::{Arc, Once};

use rdma_sys::{ibv_context, ibv_event_type, verbs_context};

use super::device::{Device, complain};
use super::events::{Acks, Queue};
use super::occurrence::{Occurrence, Source};
use super::users::Users;
use crate::transport::{Nic, PortListener};

/// An open device; `verbs.context` is the struct that programs hold.
#[repr(C)]
struct Open {
    verbs: verbs_context,
    inner: Context,
}

/// The data after the verbs struct.
pub(crate) struct Context {
    pub(crate) nic: Arc<Nic>,
    pub(super) device: &'static Device,
    pub(super) events: Arc<Queue<Occurrence>>,
    /// Puts the port's events there.
    pub(super) _port_listener: Arc<PortListener>,
    /// Protection domains, CQs and completion channels.
    pub(crate) users: Users,
}

impl Context {
    /// Gives the context to the program as its verbs struct, until [`Context::close`].
    pub(super) fn lend(self, verbs: verbs_context) -> *mut ibv_context {
        let open = Box::into_raw(Box::new(Open { verbs, inner: self }));
        // SAFETY: just made; the pointer is good for the whole of it.
        unsafe { &raw mut (*open).verbs.context }
    }

    /// Frees the context.
    ///
    /// # Safety
    /// As for [`Context::of`]; nothing of it is used again.
    pub(super) unsafe fn close(context: *mut ibv_context) {
        // SAFETY: made by `lend` from such a box; the caller gives it up.
        drop(unsafe { Box::from_raw(Context::open(context)) });
    }

    /// The context behind a verbs pointer.
    ///
    /// # Safety
    /// `context` came from [`Context::lend`] and was not closed.
    pub(crate) unsafe fn of<'a>(context: *mut ibv_context) -> &'a Context {
        // SAFETY: the verbs struct lies there in an `Open`. The reference covers nothing that programs write.
        unsafe { &(*Self::open(context)).inner }
    }

    /// As [`Context::of`]. EIO, and a line on stderr the first time, in a child of the process that opened the device:
    /// there the locks are as another thread of the parent may have left them.
    pub(super) unsafe fn own<'a>(context: *mut ibv_context) -> Result<&'a Context, c_int> {
        static SAID: Once = Once::new();
        // SAFETY: the caller's.
        let inner = unsafe { Self::of(context) };
        if inner.nic.is_of_this_process() {
            return Ok(inner);
        }
        SAID.call_once(|| {
            complain(format_args!(
                "a device that was opened before fork or daemon is the parent's; open it again in the child"
            ));
        });
        Err(libc::EIO)
    }

    unsafe fn open(context: *mut ibv_context) -> *mut Open {
        let offset = offset_of!(Open, verbs) + offset_of!(verbs_context, context);
        // SAFETY: the caller vouches that it lies in an `Open`.
        unsafe { context.byte_sub(offset).cast() }
    }

    /// Raises events of an object, which the program acknowledges to `acks`.
    pub(super) fn events_of(
        &self,
        source: Source,
        acks: &Arc<Acks>,
    ) -> impl Fn(ibv_event_type) + Send + Sync + 'static {
        let (events, acks) = (self.events.clone(), acks.clone());
        move |kind| events.raise(Occurrence { kind, source }, Some(acks.clone()))
    }

    /// Forgets the events of an object that is about to go, once the program has acknowledged those that it took.
    pub(super) fn end_events_of(&self, source: Source, acks: &Acks) {
        drop(self.events.take_out(|event| event.source == source));
        acks.wait();
    }

    pub(crate) fn address(&self) -> IpAddr {
        self.nic.address()
    }

    pub(crate) fn guid(&self) -> u64 {
        self.device.guid()
    }
}
