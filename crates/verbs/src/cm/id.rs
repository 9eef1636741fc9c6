//! An id: rdma_cm's state of one connection or of a listener.

use std::ffi::{CStr, c_int, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut, without_provenance_mut};
use std::sync::Arc;
use std::time::Duration;

use rdma_sys::{rdma_cm_id, rdma_conn_param, rdma_event_channel, rdma_port_space};

use super::address::CmAddress;
use super::error::{CmError, CmStep};
use super::library::CmLibrary;
use crate::VerbsLibrary;

/// The most private data of a request in the port space of RC connections, in bytes.
pub const MAX_PRIVATE_BYTES: usize = 56;

/// An id. Dropping it ends its connection, or rejects it.
pub struct CmId {
    channel: Arc<CmChannel>,
    raw: NonNull<rdma_cm_id>,
}

// SAFETY: librdmacm's functions on an id may be called from any thread (rdma_cm(7)); `context` is changed only through
// `&mut self`.
unsafe impl Send for CmId {}

/// The parameters with which an end requests or accepts a connection.
#[derive(Clone, Copy, Debug)]
pub struct CmParameters<'a> {
    pub qpn: u32,
    /// READs that this end serves at once.
    pub responder_resources: u8,
    /// READs that this end has outstanding.
    pub initiator_depth: u8,
    /// Retries after a timeout, 0 to 7.
    pub retry_count: u8,
    /// Retries after an RNR NAK, 0 to 7.
    pub rnr_retry_count: u8,
    /// Data for the program at the other end; at most [`MAX_PRIVATE_BYTES`].
    pub private_data: &'a [u8],
}

impl CmId {
    /// An id for an RC connection; its events have `token`.
    pub fn new(channel: &Arc<CmChannel>, token: u32) -> Result<CmId, CmError> {
        let mut raw = null_mut();
        let context = without_provenance_mut(token as usize);
        // SAFETY: the channel is open, `raw` writable, and the context a number that is never followed.
        let code = unsafe {
            (channel.library.create_id)(
                channel.raw(),
                &mut raw,
                context,
                rdma_port_space::RDMA_PS_TCP,
            )
        };
        let raw = NonNull::new(raw)
            .filter(|_| code == 0)
            .ok_or_else(|| CmError::last(CmStep::CreateId, format!("connection {token}")))?;
        Ok(CmId { channel: Arc::clone(channel), raw })
    }

    /// The new id of a request.
    ///
    /// # Safety
    /// `raw` came with a request's event of `channel`, and nobody else owns it.
    pub(super) unsafe fn requested(channel: &Arc<CmChannel>, raw: NonNull<rdma_cm_id>) -> CmId {
        CmId { channel: Arc::clone(channel), raw }
    }

    pub(super) fn raw(&self) -> *mut rdma_cm_id {
        self.raw.as_ptr()
    }

    pub(super) fn channel(&self) -> &CmChannel {
        &self.channel
    }

    /// Changes the token of its events.
    pub fn set_token(&mut self, token: u32) {
        // SAFETY: the id is alive; librdmacm only hands the field out.
        unsafe { (*self.raw()).context = without_provenance_mut(token as usize) };
    }

    /// The device name and port number that rdma_cm chose; `None` before it has.
    pub fn port(&self) -> Option<(String, u8)> {
        // SAFETY: the id is alive, and so are the context and the device that it names once it is bound.
        unsafe {
            let id = self.raw.as_ref();
            let context = id.verbs.as_ref()?;
            let name = CStr::from_ptr(context.device.as_ref()?.name.as_ptr());
            Some((name.to_string_lossy().into_owned(), id.port_num))
        }
    }

    /// Binds to an address; a port number of 0 takes a free one.
    pub fn bind(&self, address: CmAddress) -> Result<(), CmError> {
        let mut storage = address.to_storage();
        let storage = std::ptr::addr_of_mut!(storage).cast();
        // SAFETY: the id is alive and the address complete.
        let code = unsafe { (self.channel.library.bind_addr)(self.raw(), storage) };
        self.checked(code, CmStep::BindAddr, || address.to_string())
    }

    /// Listens on the bound address.
    pub fn listen(&self, backlog: u32) -> Result<(), CmError> {
        let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
        // SAFETY: the id is alive.
        let code = unsafe { (self.channel.library.listen)(self.raw(), backlog) };
        self.checked(code, CmStep::Listen, || "the port for connections".into())
    }

    /// The bound port number, in rdma_cm's own port space.
    pub fn local_port(&self) -> u16 {
        // SAFETY: the id is alive.
        u16::from_be(unsafe { (self.channel.library.get_src_port)(self.raw()) })
    }

    /// Starts to resolve the device and the hardware address for a path from `from` to `to`; an event reports the
    /// result.
    pub fn resolve_address(
        &self,
        from: CmAddress,
        to: CmAddress,
        limit: Duration,
    ) -> Result<(), CmError> {
        let (mut source, mut target) = (from.to_storage(), to.to_storage());
        let source = std::ptr::addr_of_mut!(source).cast();
        let target = std::ptr::addr_of_mut!(target).cast();
        // SAFETY: the id is alive and both addresses complete.
        let code = unsafe {
            (self.channel.library.resolve_addr)(self.raw(), source, target, milliseconds(limit))
        };
        self.checked(code, CmStep::ResolveAddr, || format!("{from} to {to}"))
    }

    /// Starts to resolve the path; an event reports the result.
    pub fn resolve_route(&self, limit: Duration) -> Result<(), CmError> {
        // SAFETY: the id is alive.
        let code = unsafe { (self.channel.library.resolve_route)(self.raw(), milliseconds(limit)) };
        self.checked(code, CmStep::ResolveRoute, || "the path".into())
    }

    /// Requests the connection; an event brings the answer.
    pub fn connect(&self, parameters: &CmParameters<'_>) -> Result<(), CmError> {
        let mut raw = parameters.to_raw();
        // SAFETY: the id is alive; the private data that `raw` points to lives as long as `parameters`.
        let code = unsafe { (self.channel.library.connect)(self.raw(), &mut raw) };
        self.checked(code, CmStep::Connect, || parameters.object())
    }

    /// Accepts a requested connection whose QP is ready; an event reports when the other end knows.
    pub fn accept(&self, parameters: &CmParameters<'_>) -> Result<(), CmError> {
        let mut raw = parameters.to_raw();
        // SAFETY: as for `connect`.
        let code = unsafe { (self.channel.library.accept)(self.raw(), &mut raw) };
        self.checked(code, CmStep::Accept, || parameters.object())
    }

    /// Confirms the answer to a request, whose QP is ready.
    pub fn establish(&self) -> Result<(), CmError> {
        // SAFETY: the id is alive and has no QP of librdmacm's.
        let code = unsafe { (self.channel.library.establish)(self.raw()) };
        self.checked(code, CmStep::Establish, || "the answer".into())
    }

    /// Rejects a requested connection with a reason.
    pub fn reject(self, why: &str) -> Result<(), CmError> {
        let data = &why.as_bytes()[..why.len().min(MAX_PRIVATE_BYTES)];
        let length = data.len() as u8;
        // SAFETY: the id is alive and `data` has `length` bytes.
        let code = unsafe {
            (self.channel.library.reject)(self.raw(), data.as_ptr().cast::<c_void>(), length)
        };
        self.checked(code, CmStep::Reject, || "a request".into())
    }

    /// Tells the other end that the connection has ended.
    pub fn disconnect(&self) {
        // SAFETY: the id is alive. A connection that is over already needs no more.
        unsafe { (self.channel.library.disconnect)(self.raw()) };
    }

    fn checked(
        &self,
        code: c_int,
        step: CmStep,
        object: impl FnOnce() -> String,
    ) -> Result<(), CmError> {
        if code == 0 {
            return Ok(());
        }
        // Read `errno` before another call changes it.
        let source = std::io::Error::last_os_error();
        Err(CmError::Call { step, object: object(), source })
    }
}

impl Drop for CmId {
    fn drop(&mut self) {
        // SAFETY: nobody else owns it, and every event of it was acknowledged when it was taken.
        unsafe { (self.channel.library.destroy_id)(self.raw()) };
    }
}

impl CmParameters<'_> {
    fn to_raw(self) -> rdma_conn_param {
        let private = &self.private_data[..self.private_data.len().min(MAX_PRIVATE_BYTES)];
        rdma_conn_param {
            private_data: private.as_ptr().cast(),
            private_data_len: private.len() as u8,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            flow_control: 1,
            retry_count: self.retry_count,
            rnr_retry_count: self.rnr_retry_count,
            srq: 0,
            qp_num: self.qpn,
        }
    }

    fn object(&self) -> String {
        format!("QP number {:#08x}", self.qpn)
    }
}

fn milliseconds(limit: Duration) -> c_int {
    c_int::try_from(limit.as_millis()).unwrap_or(c_int::MAX)
}

// The channel that delivers rdma_cm's events for its ids.

/// An event channel, kept by the ids that were made on it.
pub struct CmChannel {
    pub(super) library: &'static CmLibrary,
    raw: NonNull<rdma_event_channel>,
}

// SAFETY: librdmacm's functions may be called from any thread; a channel is a file descriptor that never changes.
unsafe impl Send for CmChannel {}
// SAFETY: as above.
unsafe impl Sync for CmChannel {}

impl CmChannel {
    /// Opens a channel of the connection manager that goes with a verbs library; loads librdmacm if it is that.
    ///
    /// # Errors
    /// No library, no rdma_cm in the kernel, or no permission to use it.
    pub fn open(verbs: &VerbsLibrary) -> Result<Arc<Self>, CmError> {
        let library = CmLibrary::new(verbs)?;
        // SAFETY: the function takes nothing.
        let raw = unsafe { (library.create_event_channel)() };
        let failed = || CmError::last(CmStep::CreateEventChannel, "/dev/infiniband/rdma_cm");
        let channel = CmChannel { library, raw: NonNull::new(raw).ok_or_else(failed)? };
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

    /// Readable while an event waits.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as the channel.
        unsafe { BorrowedFd::borrow_raw(self.raw.as_ref().fd) }
    }
}

impl Drop for CmChannel {
    fn drop(&mut self) {
        // SAFETY: opened by this library, and all ids held an `Arc` to it.
        unsafe { (self.library.destroy_event_channel)(self.raw()) };
    }
}
