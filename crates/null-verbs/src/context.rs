//! An open device, common to both.

use std::io;

use rdma_sys::{ibv_async_event, ibv_context, ibv_context_ops, ibv_device, ibv_event_type};

use crate::device::Device;
use crate::events::{Event, EventQueue, Source};
use crate::objects::keep;
use crate::persona::{Adapter, Engine};

/// A context; the verbs struct comes first, so a pointer to one is a pointer to the other.
#[repr(C)]
pub(crate) struct Context {
    verbs: ibv_context,
    device: &'static Device,
    events: EventQueue<Event>,
}

impl Context {
    /// Opens `device`, with `ops` as its data path.
    ///
    /// # Safety
    /// `device` is of a list of this library.
    pub(crate) unsafe fn open(
        device: *mut ibv_device,
        ops: ibv_context_ops,
    ) -> io::Result<*mut ibv_context> {
        let events = EventQueue::new()?;
        // `abi_compat` stays null, so that no program looks for extended verbs before this struct.
        // SAFETY: pointers, integers, optional function pointers and a pthread mutex, for all of
        // which zero is a value (that of PTHREAD_MUTEX_INITIALIZER).
        let mut verbs: ibv_context = unsafe { std::mem::zeroed() };
        verbs.device = device;
        verbs.cmd_fd = -1;
        verbs.async_fd = events.fd();
        verbs.num_comp_vectors = 1;
        verbs.ops = ops;
        let context = Context {
            verbs,
            // SAFETY: the caller's.
            device: unsafe { Device::from_raw(device) },
            events,
        };
        Ok(keep(context).cast())
    }

    /// The context behind a verbs pointer.
    ///
    /// # Safety
    /// `context` came from [`Context::open`] and was not closed.
    pub(crate) unsafe fn from_raw<'a>(context: *mut ibv_context) -> &'a Context {
        // SAFETY: the verbs struct is the first field of a `Context`.
        unsafe { &*context.cast::<Context>() }
    }

    pub(crate) fn engine(&self) -> Engine {
        self.device.table.engine
    }

    /// What the device says of itself.
    pub(crate) fn table(&self) -> &'static Adapter {
        self.device.table
    }

    pub(crate) fn raise(&self, kind: ibv_event_type, source: Source) {
        self.events.raise(Event { kind, source });
    }

    /// Discards the events of an object that is being destroyed.
    pub(crate) fn forget(&self, source: Source) {
        self.events.forget(|event| event.source == source);
    }

    /// Waits for an event, as `ibv_get_async_event` does.
    pub(crate) fn next_event(&self, into: &mut ibv_async_event) -> io::Result<()> {
        let event = self.events.next()?;
        into.event_type = event.kind;
        match event.source {
            Source::Cq(cq) => into.element.cq = cq,
            Source::Qp(qp) => into.element.qp = qp,
            Source::Srq(srq) => into.element.srq = srq,
        }
        Ok(())
    }
}
