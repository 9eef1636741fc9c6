//! The connection manager (rdma_cm), the kernel's or the embedded device's: ids, their events, and a QP's transitions with its attributes.
//!
//! QPs stay this project's own: an id has no QP (`id.qp` is NULL), only the QP's number, and `rdma_init_qp_attr(3)`
//! returns the attributes of each transition. So librdmacm's own device contexts are not used: QPN, port and GID
//! index mean the same in all contexts of a device.

use std::ffi::{CStr, c_int, c_void};
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::path;
use std::ptr::{NonNull, null_mut, without_provenance_mut};
use std::sync::Arc;
use std::time::Duration;

use librdmacm::CmLibrary;
use rdma_sys::{
    ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_state, rdma_cm_event, rdma_cm_id,
    rdma_conn_param, rdma_event_channel, rdma_port_space,
};
use rustix::event::{PollFd, PollFlags, poll};

use crate::{
    Access, Gid, GidEntry, Operation, QueuePair, Reliability, VerbsError, VerbsLibrary, kernel,
};

mod cm_error;
mod librdmacm;

pub use cm_error::{CmError, CmEventKind, CmStep, RejectReason};

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
    unsafe fn requested(channel: &Arc<CmChannel>, raw: NonNull<rdma_cm_id>) -> CmId {
        CmId { channel: Arc::clone(channel), raw }
    }

    fn raw(&self) -> *mut rdma_cm_id {
        self.raw.as_ptr()
    }

    fn channel(&self) -> &CmChannel {
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
        let raw_address = std::ptr::addr_of_mut!(storage).cast();
        // SAFETY: the id is alive and the address complete.
        let code = unsafe { (self.channel.library.bind_addr)(self.raw(), raw_address) };
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

/// The channel that delivers the events of its ids, which keep it.
pub struct CmChannel {
    library: &'static CmLibrary,
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

    fn raw(&self) -> *mut rdma_event_channel {
        self.raw.as_ptr()
    }

    /// Readable while an event waits.
    fn file(&self) -> BorrowedFd<'_> {
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

/// An event as a plain value, already acknowledged.
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
            let event = raw.as_ref();
            let kind = CmEventKind::from_code(event.event);
            let (mut private_data, mut qpn) = (Vec::new(), 0);
            if kind.has_connection() {
                let connection = event.param.conn;
                qpn = connection.qp_num;
                let start = connection.private_data.cast::<u8>();
                if !start.is_null() {
                    let length = usize::from(connection.private_data_len);
                    private_data = std::slice::from_raw_parts(start, length).to_vec();
                }
            }
            CmEvent {
                token: (*event.id).context.addr() as u32,
                kind,
                status: event.status,
                private_data,
                qpn,
                request: match (kind, NonNull::new(event.id)) {
                    (CmEventKind::ConnectRequest, Some(id)) => Some(CmId::requested(self, id)),
                    _ => None,
                },
            }
        }
    }
}

// RESET → INIT → RTR → RTS with rdma_cm's attributes; a case's settings replace rdma_cm's guesses.

/// The attributes of these transitions. Kernels before 5.15 may set further ones that programs must not use.
const KNOWN: u32 = mask::IBV_QP_STATE.0
    | mask::IBV_QP_PKEY_INDEX.0
    | mask::IBV_QP_PORT.0
    | mask::IBV_QP_ACCESS_FLAGS.0
    | mask::IBV_QP_AV.0
    | mask::IBV_QP_PATH_MTU.0
    | mask::IBV_QP_DEST_QPN.0
    | mask::IBV_QP_RQ_PSN.0
    | mask::IBV_QP_MAX_DEST_RD_ATOMIC.0
    | mask::IBV_QP_MIN_RNR_TIMER.0
    | mask::IBV_QP_TIMEOUT.0
    | mask::IBV_QP_RETRY_CNT.0
    | mask::IBV_QP_RNR_RETRY.0
    | mask::IBV_QP_SQ_PSN.0
    | mask::IBV_QP_MAX_QP_RD_ATOMIC.0;

/// A transition failed: rdma_cm did not return its attributes, or the device refused it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CmTransitionError {
    #[error(transparent)]
    Cm(#[from] CmError),
    #[error(transparent)]
    Verbs(#[from] VerbsError),
}

impl QueuePair {
    /// RESET → INIT; `remote` is the peer's access to this end's memory.
    pub fn to_init_by_cm(&self, id: &CmId, remote: Access) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_INIT;
        let (mut attr, bits) = id.attributes(self, state, "INIT")?;
        attr.qp_access_flags = remote.qp_flags();
        Ok(self.modify(&mut attr, bits, Operation::ModifyToInit)?)
    }

    /// INIT → RTR, to the QP `remote_qpn` from the control connection.
    ///
    /// # Errors
    /// The failed call; another port, GID or QP than the run's.
    pub fn to_rtr_by_cm(
        &self,
        id: &CmId,
        path: &crate::Path,
        remote_qpn: u32,
        reliability: &Reliability,
    ) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_RTR;
        let (mut attr, bits) = id.attributes(self, state, "RTR")?;
        // SAFETY: every bit pattern is a valid GID.
        let to = Gid(unsafe { attr.ah_attr.grh.dgid.raw }).address();
        let gid_index = attr.ah_attr.grh.sgid_index;
        let other = |taken: String, wanted: String| CmError::OtherPort {
            address: to.to_string(),
            taken,
            wanted,
        };
        if path.gid_index.is_some_and(|wanted| wanted != gid_index) {
            let wanted = path.gid_index.unwrap_or(0);
            let (taken, wanted) = (format!("GID index {gid_index}"), format!("GID index {wanted}"));
            return Err(other(taken, wanted).into());
        }
        if attr.dest_qp_num != remote_qpn {
            let taken = format!("QP number {:#08x}", attr.dest_qp_num);
            return Err(other(taken, format!("QP number {remote_qpn:#08x}")).into());
        }
        attr.path_mtu = path.mtu_code;
        attr.max_dest_rd_atomic = reliability.responder_reads;
        attr.min_rnr_timer = reliability.min_rnr_timer;
        attr.ah_attr.sl = path.service_level;
        attr.ah_attr.grh.traffic_class = path.traffic_class;
        // Without one, rdma_cm chooses a label.
        if path.flow_label != 0 {
            attr.ah_attr.grh.flow_label = path.flow_label;
        }
        attr.ah_attr.grh.hop_limit = path.hop_limit;
        let operation = Operation::ModifyToRtr { gid_index: Some(gid_index) };
        Ok(self.modify(&mut attr, bits, operation)?)
    }

    /// RTR → RTS, with this end's limits as requester.
    pub fn to_rts_by_cm(
        &self,
        id: &CmId,
        reliability: &Reliability,
    ) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_RTS;
        let (mut attr, bits) = id.attributes(self, state, "RTS")?;
        attr.timeout = reliability.timeout;
        attr.retry_cnt = reliability.retry_cnt;
        attr.rnr_retry = reliability.rnr_retry;
        attr.max_rd_atomic = reliability.initiator_reads;
        Ok(self.modify(&mut attr, bits, Operation::ModifyToRts)?)
    }
}

impl CmId {
    /// The attributes of a transition to `state`.
    fn attributes(
        &self,
        qp: &QueuePair,
        state: ibv_qp_state::Type,
        name: &'static str,
    ) -> Result<(ibv_qp_attr, mask), CmError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = state;
        let mut bits = 0;
        // SAFETY: the id is alive, and both are writable.
        let code =
            unsafe { (self.channel().library.init_qp_attr)(self.raw(), &mut attr, &mut bits) };
        if code != 0 {
            let object = format!("QP number {:#08x}", qp.qpn());
            return Err(CmError::last(CmStep::InitQpAttr { state: name }, object));
        }
        Ok((attr, mask(bits.cast_unsigned() & KNOWN)))
    }
}

/// The address of a RoCE port, which is that of its GID: an IP address, its interface if it needs one, a port number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmAddress(SocketAddr);

impl CmAddress {
    /// The address of a local port's GID; the kernel's files of the device are below `root`.
    pub fn local(root: &path::Path, device: &str, port: u8, entry: &GidEntry) -> CmAddress {
        let interface = interface(root, device, port, entry.index);
        CmAddress::new(entry.gid, interface.unwrap_or(0))
    }

    /// The address of a peer's GID with a port number. A link-local address uses this address's interface.
    pub fn peer(&self, gid: Gid, port: u16) -> CmAddress {
        let scope = match self.0 {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let mut peer = CmAddress::new(gid, scope);
        peer.0.set_port(port);
        peer
    }

    fn new(gid: Gid, scope: u32) -> CmAddress {
        let mut address = SocketAddr::new(gid.address(), 0);
        if let (SocketAddr::V6(v6), true) = (&mut address, gid.is_link_local()) {
            v6.set_scope_id(scope);
        }
        CmAddress(address)
    }

    pub fn ip(&self) -> IpAddr {
        self.0.ip()
    }

    /// In the form of the C library.
    fn to_storage(self) -> libc::sockaddr_storage {
        // SAFETY: plain data, for which zero is valid.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let start = std::ptr::addr_of_mut!(storage);
        const { assert!(size_of::<libc::sockaddr_in6>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: a storage has room for, and the alignment of, every kind of address.
        unsafe {
            match self.0 {
                SocketAddr::V4(v4) => {
                    let to = &mut *start.cast::<libc::sockaddr_in>();
                    to.sin_family = libc::AF_INET as libc::sa_family_t;
                    to.sin_port = v4.port().to_be();
                    to.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                }
                SocketAddr::V6(v6) => {
                    let to = &mut *start.cast::<libc::sockaddr_in6>();
                    to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                    to.sin6_port = v6.port().to_be();
                    to.sin6_addr.s6_addr = v6.ip().octets();
                    to.sin6_scope_id = v6.scope_id();
                }
            }
        }
        storage
    }
}

impl std::fmt::Display for CmAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.port() {
            0 => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

/// Index of the network interface of a GID.
fn interface(root: &path::Path, device: &str, port: u8, gid_index: u8) -> Option<u32> {
    let netdev = kernel::netdev(&kernel::port_folder(root, device, port), gid_index)?;
    kernel::interface_index(root, &netdev)
}

#[cfg(test)]
mod tests {
    use crate::GidType;

    use super::*;

    fn entry(text: &str) -> GidEntry {
        GidEntry {
            index: 1,
            gid: Gid::parse(text).unwrap(),
            gid_type: GidType::RoceV2,
            interface: None,
        }
    }

    #[test]
    fn ipv4_goes_as_ipv4_with_its_port() {
        let local = CmAddress::local(path::Path::new("/"), "none", 1, &entry("::ffff:10.0.0.2"));
        let peer = local.peer(Gid::parse("::ffff:10.0.0.9").unwrap(), 7471);
        let shown = [&local, &peer].map(ToString::to_string);
        assert_eq!(shown, ["10.0.0.2", "10.0.0.9:7471"]);
        let storage = peer.to_storage();
        assert_eq!(i32::from(storage.ss_family), libc::AF_INET);
        // SAFETY: the family says that this is what it holds.
        let v4 = unsafe { &*std::ptr::addr_of!(storage).cast::<libc::sockaddr_in>() };
        assert_eq!(v4.sin_addr.s_addr.to_ne_bytes(), [10, 0, 0, 9]);
        assert_eq!(u16::from_be(v4.sin_port), 7471);
    }

    #[test]
    fn only_link_local_peers_are_on_an_interface() {
        let mut local = CmAddress::new(Gid::parse("fe80::2").unwrap(), 7);
        let scope = |address: CmAddress| match address.0 {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => panic!("IPv6"),
        };
        assert_eq!(scope(local.peer(Gid::parse("fe80::9").unwrap(), 1)), 7);
        assert_eq!(scope(local.peer(Gid::parse("fd00::9").unwrap(), 1)), 0);
        local = CmAddress::new(Gid::parse("fd00::2").unwrap(), 7);
        assert_eq!(scope(local), 0);
    }
}
