//! The channel by which rdma_cm tells what became of each id, and its events as plain values.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::time::Duration;

use rdma_sys::{rdma_cm_event, rdma_cm_event_type as header, rdma_event_channel};
use rustix::event::{PollFd, PollFlags, poll};

use super::library::CmLibrary;
use super::{CmError, CmId, CmStep};

/// An event channel; the ids that were made on it keep it.
pub struct CmChannel {
    pub(super) library: &'static CmLibrary,
    raw: NonNull<rdma_event_channel>,
}

// SAFETY: librdmacm's functions may be called from any thread; a channel is a file descriptor that never changes.
unsafe impl Send for CmChannel {}
// SAFETY: as above.
unsafe impl Sync for CmChannel {}

/// What happened to an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each variant is RDMA_CM_EVENT_ and its name
pub enum CmEventKind {
    AddrResolved,
    AddrError,
    RouteResolved,
    RouteError,
    ConnectRequest,
    ConnectResponse,
    ConnectError,
    Unreachable,
    Rejected,
    Established,
    Disconnected,
    DeviceRemoval,
    AddrChange,
    TimewaitExit,
    /// One that has nothing to do with connections, or that a newer kernel sends.
    Other(u32),
}

impl CmEventKind {
    fn of(code: u32) -> Self {
        match code {
            header::RDMA_CM_EVENT_ADDR_RESOLVED => CmEventKind::AddrResolved,
            header::RDMA_CM_EVENT_ADDR_ERROR => CmEventKind::AddrError,
            header::RDMA_CM_EVENT_ROUTE_RESOLVED => CmEventKind::RouteResolved,
            header::RDMA_CM_EVENT_ROUTE_ERROR => CmEventKind::RouteError,
            header::RDMA_CM_EVENT_CONNECT_REQUEST => CmEventKind::ConnectRequest,
            header::RDMA_CM_EVENT_CONNECT_RESPONSE => CmEventKind::ConnectResponse,
            header::RDMA_CM_EVENT_CONNECT_ERROR => CmEventKind::ConnectError,
            header::RDMA_CM_EVENT_UNREACHABLE => CmEventKind::Unreachable,
            header::RDMA_CM_EVENT_REJECTED => CmEventKind::Rejected,
            header::RDMA_CM_EVENT_ESTABLISHED => CmEventKind::Established,
            header::RDMA_CM_EVENT_DISCONNECTED => CmEventKind::Disconnected,
            header::RDMA_CM_EVENT_DEVICE_REMOVAL => CmEventKind::DeviceRemoval,
            header::RDMA_CM_EVENT_ADDR_CHANGE => CmEventKind::AddrChange,
            header::RDMA_CM_EVENT_TIMEWAIT_EXIT => CmEventKind::TimewaitExit,
            code => CmEventKind::Other(code),
        }
    }

    /// Whether `param.conn` of the event is filled.
    fn has_connection(self) -> bool {
        matches!(
            self,
            CmEventKind::ConnectRequest
                | CmEventKind::ConnectResponse
                | CmEventKind::Rejected
                | CmEventKind::Established
        )
    }
}

impl fmt::Display for CmEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            CmEventKind::AddrResolved => "ADDR_RESOLVED",
            CmEventKind::AddrError => "ADDR_ERROR",
            CmEventKind::RouteResolved => "ROUTE_RESOLVED",
            CmEventKind::RouteError => "ROUTE_ERROR",
            CmEventKind::ConnectRequest => "CONNECT_REQUEST",
            CmEventKind::ConnectResponse => "CONNECT_RESPONSE",
            CmEventKind::ConnectError => "CONNECT_ERROR",
            CmEventKind::Unreachable => "UNREACHABLE",
            CmEventKind::Rejected => "REJECTED",
            CmEventKind::Established => "ESTABLISHED",
            CmEventKind::Disconnected => "DISCONNECTED",
            CmEventKind::DeviceRemoval => "DEVICE_REMOVAL",
            CmEventKind::AddrChange => "ADDR_CHANGE",
            CmEventKind::TimewaitExit => "TIMEWAIT_EXIT",
            CmEventKind::Other(code) => return write!(f, "RDMA_CM_EVENT number {code}"),
        };
        write!(f, "RDMA_CM_EVENT_{name}")
    }
}

/// An event, acknowledged already.
pub struct CmEvent {
    /// What the id was given when it was made; a request has that of its listener.
    pub token: u32,
    /// What happened.
    pub kind: CmEventKind,
    /// 0, a negative error number, or for a rejection its reason.
    pub status: i32,
    /// What the other end's program sent with it, and zeros after it.
    pub private_data: Vec<u8>,
    /// The other end's QP number, where the event has one.
    pub qpn: u32,
    /// The new id of a request. Dropping it rejects the request.
    pub request: Option<CmId>,
}

impl CmChannel {
    /// Loads librdmacm and opens a channel.
    ///
    /// # Errors
    /// No library, no rdma_cm in the kernel, or no permission to use it.
    pub fn open() -> Result<Arc<Self>, CmError> {
        let library = CmLibrary::get()?;
        // SAFETY: the function takes nothing.
        let raw = unsafe { (library.create_event_channel)() };
        let failed = || CmError::last(CmStep::CreateEventChannel, "/dev/infiniband/rdma_cm");
        let channel = CmChannel {
            library,
            raw: NonNull::new(raw).ok_or_else(failed)?,
        };
        // SAFETY: a descriptor that is open as long as the channel.
        let set = unsafe {
            let fd = channel.raw.as_ref().fd;
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if set < 0 {
            return Err(failed());
        }
        Ok(Arc::new(channel))
    }

    pub(super) fn raw(&self) -> *mut rdma_event_channel {
        self.raw.as_ptr()
    }

    /// The next event, waited for at most `limit`; `None` if none came.
    ///
    /// # Errors
    /// The failed call.
    pub fn next(self: &Arc<Self>, limit: Duration) -> Result<Option<CmEvent>, CmError> {
        if let Some(event) = self.take()? {
            return Ok(Some(event));
        }
        // SAFETY: the descriptor is open as long as the channel.
        let file = unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().fd) };
        let mut files = [PollFd::new(&file, PollFlags::IN)];
        let limit = rustix::time::Timespec {
            tv_sec: limit.as_secs().cast_signed(),
            tv_nsec: limit.subsec_nanos().into(),
        };
        match poll(&mut files, Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(None),
            Ok(_) => self.take(),
            Err(error) => Err(CmError::Call {
                step: CmStep::GetCmEvent,
                object: "poll".into(),
                source: error.into(),
            }),
        }
    }

    fn take(self: &Arc<Self>) -> Result<Option<CmEvent>, CmError> {
        let mut raw: *mut rdma_cm_event = null_mut();
        // SAFETY: the channel is open and `raw` writable.
        let code = unsafe { (self.library.get_cm_event)(self.raw(), &mut raw) };
        let Some(raw) = NonNull::new(raw).filter(|_| code == 0) else {
            let error = std::io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(CmError::Call {
                    step: CmStep::GetCmEvent,
                    object: "the event channel".into(),
                    source: error,
                }),
            };
        };
        // SAFETY: an event that is not acknowledged yet, and whose id is alive until it is.
        let event = unsafe { self.read(raw) };
        // SAFETY: taken above, acknowledged once. Nothing of it is used after this.
        unsafe { (self.library.ack_cm_event)(raw.as_ptr()) };
        Ok(Some(event))
    }

    /// # Safety
    /// `raw` is an event of this channel that has not been acknowledged.
    unsafe fn read(self: &Arc<Self>, raw: NonNull<rdma_cm_event>) -> CmEvent {
        // SAFETY: the caller vouches for the event; its id is alive, and `param.conn` is filled for the kinds that
        // are asked for it, its private data `private_data_len` bytes within the event.
        unsafe {
            let raw = raw.as_ref();
            let kind = CmEventKind::of(raw.event);
            let (mut private_data, mut qpn) = (Vec::new(), 0);
            if kind.has_connection() {
                let connection = raw.param.conn;
                qpn = connection.qp_num;
                let start = connection.private_data.cast::<u8>();
                if !start.is_null() {
                    let length = usize::from(connection.private_data_len);
                    private_data = std::slice::from_raw_parts(start, length).to_vec();
                }
            }
            CmEvent {
                token: (*raw.id).context.addr() as u32,
                kind,
                status: raw.status,
                private_data,
                qpn,
                request: match (kind, NonNull::new(raw.id)) {
                    (CmEventKind::ConnectRequest, Some(id)) => Some(CmId::requested(self, id)),
                    _ => None,
                },
            }
        }
    }
}

impl Drop for CmChannel {
    fn drop(&mut self) {
        // SAFETY: opened by this library, and all ids held an `Arc` to it.
        unsafe { (self.library.destroy_event_channel)(self.raw()) };
    }
}
