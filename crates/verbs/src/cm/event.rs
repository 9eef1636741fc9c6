//! Events of a channel, as plain values.

use std::ptr::{NonNull, null_mut};
use std::sync::Arc;
use std::time::Duration;

use rdma_sys::rdma_cm_event;
use rustix::event::{PollFd, PollFlags, poll};

use super::error::{CmError, CmStep};
use super::event_kind::CmEventKind;
use super::id::CmChannel;
use super::id::CmId;

/// An event that is already acknowledged.
pub struct CmEvent {
    /// The token of its id; a request has its listener's.
    pub token: u32,
    pub kind: CmEventKind,
    /// 0, a negative error number, or the reason of a rejection.
    pub status: i32,
    /// The other end's private data, followed by zeros.
    pub private_data: Vec<u8>,
    /// The other end's QP number, if the event has one.
    pub qpn: u32,
    /// The new id of a request. Dropping it rejects the request.
    pub request: Option<CmId>,
}

impl CmChannel {
    /// Waits for the next event, at most `limit`; `None` if none came.
    pub fn next(self: &Arc<Self>, limit: Duration) -> Result<Option<CmEvent>, CmError> {
        if let Some(event) = self.take()? {
            return Ok(Some(event));
        }
        let file = self.file();
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
            let kind = CmEventKind::from_code(raw.event);
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
