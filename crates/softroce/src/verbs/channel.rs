//! Completion channels: CQ events for programs that sleep. It must not access the verbs structs of CQs, only carry
//! their pointers.

use std::io;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use rdma_sys::{ibv_comp_channel, ibv_context, ibv_cq};

use super::context::Context;
use super::errno::{code, minus_one_or_zero, pointer_or_errno, zero_or_error};
use super::events::Queue;
use super::object::Behind;
use super::users::{Use, Users};
use crate::lock::Lock;
use crate::transport;

/// An event of a CQ, for the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Notice(pub(super) *mut ibv_cq);

// SAFETY: the pointer is only carried, never followed, on the way to the program.
unsafe impl Send for Notice {}
// SAFETY: as above.
unsafe impl Sync for Notice {}

/// The data of a completion channel.
pub(super) struct Channel {
    pub(super) notices: Arc<Queue<Notice>>,
    pub(super) users: Users,
    /// Those whose events come here.
    pub(super) cqs: Lock<Vec<transport::Cq>>,
    _context: Use,
}

impl Behind<ibv_comp_channel> for Channel {}

impl Channel {
    /// The next event. Some programs request an event on a CQ, take some of its completions, and wait (perftest's `-b
    /// -e` of version 4.5). They rely on adapters, such as Mellanox', on which a request on a CQ that is not empty
    /// raises an event at once. Here the event is raised when the program waits, so that programs that emptied the CQ
    /// get no useless one.
    fn next(&self) -> io::Result<Notice> {
        if self.notices.is_empty() {
            for cq in self.cqs.lock().iter() {
                cq.remind();
            }
        }
        self.notices.next()
    }
}

pub unsafe extern "C" fn create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    let made = Queue::new().map(|notices| {
        let fd = notices.fd();
        let channel = Channel {
            notices: Arc::new(notices),
            users: Users::default(),
            cqs: Lock::default(),
            // SAFETY: an open context.
            _context: unsafe { Context::of(context) }.users.begin(),
        };
        channel.lend(ibv_comp_channel { context, fd, refcnt: 0 })
    });
    pointer_or_errno(made.map_err(|error| code(&error)))
}

/// `ibv_destroy_comp_channel(3)`. EBUSY while a CQ uses it.
pub unsafe extern "C" fn destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    // SAFETY: a live channel, which goes if nobody uses it.
    zero_or_error(unsafe {
        let unused = Channel::of(channel).users.none();
        unused.map(|()| drop(Channel::take_back(channel)))
    })
}

/// `ibv_get_cq_event(3)`: blocks, or returns -1 with EAGAIN if the descriptor is non-blocking.
pub unsafe extern "C" fn get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    cq_context: *mut *mut c_void,
) -> c_int {
    // SAFETY: a live channel of an open context, and two writable places; the CQ lives at least until its event is
    // acknowledged.
    minus_one_or_zero(unsafe {
        Context::own((*channel).context).and_then(|_| {
            let next = Channel::of(channel).next();
            let Notice(source) = next.map_err(|error| code(&error))?;
            cq.write(source);
            cq_context.write((*source).cq_context);
            Ok(())
        })
    })
}
