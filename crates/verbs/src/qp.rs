//! Queue pairs of all services with their states RESET → INIT → RTR → RTS → ERR, the address handles by which datagrams go, and
//! shared receive queues.

use std::mem::zeroed;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rdma_sys::{
    ibv_ah, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_cap, ibv_qp_init_attr,
    ibv_qp_rate_limit_attr, ibv_qp_state, ibv_send_wr, ibv_srq, ibv_srq_attr, ibv_srq_attr_mask,
    ibv_srq_init_attr,
};

use crate::error::TeardownToken;
use crate::ffi::modify_qp_rate_limit;
use crate::qp_attributes::address_vector;
use crate::{
    Access, CompletionQueue, Context, Operation, Path, ProtectionDomain, QpAttributes, QpCapacity,
    QpState, Reliability, RemoteQp, Service, Teardown, ThreadDomain, VerbsError, extended,
};

pub(super) type PostSend =
    unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> i32;

/// What a QP is made with besides its CQs.
#[derive(Clone, Copy, Default)]
pub struct QpParts<'a> {
    /// Where its receives come from, if it has none of its own.
    pub srq: Option<&'a Arc<SharedReceiveQueue>>,
    /// The domain of the only thread that uses it; without one the library locks it.
    pub domain: Option<&'a Arc<ThreadDomain>>,
    /// Its sends are posted by `ibv_wr_post(3)`, and not by `ibv_post_send(3)`.
    pub extended_post: bool,
}

pub struct QueuePair {
    pd: Arc<ProtectionDomain>,
    /// Keeps the CQs alive as long as the QP.
    _cqs: [Arc<CompletionQueue>; 2],
    /// Keep the SRQ and the thread domain alive, if it has them.
    _srq: Option<Arc<SharedReceiveQueue>>,
    _domain: Option<Arc<ThreadDomain>>,
    raw: NonNull<ibv_qp>,
    extended_post: bool,
    service: Service,
    /// Flow label and QP of a connection, once it is in RTR.
    connection: OnceLock<(u32, u32)>,
    /// The UDP source port that it was given.
    udp_source_port: OnceLock<u16>,
    destroyed: bool,
}

// SAFETY: posting and modifying may be done from any thread (libibverbs locks), and the fields never
// change.
unsafe impl Send for QueuePair {}

// SAFETY: as above.
unsafe impl Sync for QueuePair {}

impl QueuePair {
    /// A QP of the reliable connection service, as [`QueuePair::with_parts`].
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        send_cq: &Arc<CompletionQueue>,
        recv_cq: &Arc<CompletionQueue>,
        capacity: QpCapacity,
    ) -> Result<Arc<Self>, VerbsError> {
        let service = Service::ReliableConnection;
        let parts = QpParts::default();
        QueuePair::with_parts(service, pd, [send_cq, recv_cq], parts, capacity)
    }

    /// `ibv_create_qp(3)`, or `ibv_create_qp_ex(3)` for extended posting: only WRs with the flag are signalled. `cqs` are
    /// those of sends and of receives; with an SRQ, `capacity` has no receives.
    pub fn with_parts(
        service: Service,
        pd: &Arc<ProtectionDomain>,
        cqs: [&Arc<CompletionQueue>; 2],
        parts: QpParts<'_>,
        capacity: QpCapacity,
    ) -> Result<Arc<Self>, VerbsError> {
        let [send_cq, recv_cq] = cqs;
        let srq = parts.srq;
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_init_attr = unsafe { zeroed() };
        attr.send_cq = send_cq.raw();
        attr.recv_cq = recv_cq.raw();
        attr.srq = srq.map_or(std::ptr::null_mut(), |srq| srq.raw());
        attr.qp_type = service.qp_type();
        attr.cap = ibv_qp_cap {
            max_send_wr: capacity.send_wr,
            max_recv_wr: capacity.recv_wr,
            max_send_sge: capacity.sges,
            max_recv_sge: capacity.sges,
            max_inline_data: capacity.inline_bytes,
        };
        let library = pd.context().library();
        let in_domain = parts.domain.map_or(pd.raw(), |domain| domain.raw());
        // SAFETY: PD, CQs, SRQ and domain are alive and belong to one context; `attr` is filled.
        let (created, operation) = unsafe {
            if parts.extended_post {
                (
                    extended::create_qp(pd.context(), in_domain, &attr, service),
                    Operation::CreateQpEx,
                )
            } else {
                (NonNull::new((library.create_qp)(in_domain, &mut attr)), Operation::CreateQp)
            }
        };
        let raw = created.ok_or_else(|| {
            let QpCapacity {
                send_wr,
                recv_wr,
                inline_bytes,
                sges,
            } = capacity;
            let name = pd.context().name();
            VerbsError::last(
                operation,
                format!("{name} ({send_wr} send WRs, {recv_wr} receive WRs, {inline_bytes} bytes inline, {sges} SGEs)"),
            )
        })?;
        Ok(Arc::new(QueuePair {
            pd: Arc::clone(pd),
            _cqs: cqs.map(Arc::clone),
            _srq: srq.cloned(),
            _domain: parts.domain.cloned(),
            raw,
            extended_post: parts.extended_post,
            service,
            connection: OnceLock::new(),
            udp_source_port: OnceLock::new(),
            destroyed: false,
        }))
    }

    /// The QP's number, of 24 bits.
    pub fn qpn(&self) -> u32 {
        // SAFETY: the QP lives while `self` does.
        unsafe { self.raw.as_ref().qp_num }
    }

    pub(super) fn context(&self) -> &Context {
        self.pd.context()
    }

    pub(super) fn raw(&self) -> *mut ibv_qp {
        self.raw.as_ptr()
    }

    /// What its sends are posted by; `None` on a device without such a function.
    pub(super) fn post_send(&self) -> Option<PostSend> {
        if self.extended_post {
            Some(extended::post_send)
        } else {
            // SAFETY: the QP and so its context are alive, and the table of operations is filled.
            unsafe { (*self.raw.as_ref().context).ops.post_send }
        }
    }

    /// RESET → INIT at a port, with a P_Key of its table; `remote` is the peer's access to this end's memory.
    pub fn to_init(&self, port: u8, pkey_index: u16, remote: Access) -> Result<(), VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = ibv_qp_state::IBV_QPS_INIT;
        attr.port_num = port;
        attr.pkey_index = pkey_index;
        attr.qp_access_flags = remote.qp_flags();
        attr.qkey = self.service.qkey();
        self.modify(&mut attr, self.service.init_bits(), Operation::ModifyToInit)
    }

    /// INIT → RTR: the peer's QP, the path to it, and this end's limits as responder, as far as its service has them.
    ///
    /// # Errors
    /// The failed call; it contains the GID index.
    pub fn to_rtr(
        &self,
        path: &Path,
        remote: &RemoteQp,
        reliability: &Reliability,
    ) -> Result<(), VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = ibv_qp_state::IBV_QPS_RTR;
        attr.path_mtu = path.mtu_code;
        attr.dest_qp_num = remote.qpn;
        attr.rq_psn = remote.psn;
        attr.max_dest_rd_atomic = reliability.responder_reads;
        attr.min_rnr_timer = reliability.min_rnr_timer;
        attr.ah_attr = address_vector(path, remote);
        let gid_index = (attr.ah_attr.is_global != 0).then_some(attr.ah_attr.grh.sgid_index);
        let operation = Operation::ModifyToRtr { gid_index };
        self.modify(&mut attr, self.service.rtr_bits(), operation)
    }

    /// RTR → RTS: the first PSN of this end, and its limits as requester.
    pub fn to_rts(&self, psn: u32, reliability: &Reliability) -> Result<(), VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = ibv_qp_state::IBV_QPS_RTS;
        attr.sq_psn = psn;
        attr.timeout = reliability.timeout;
        attr.retry_cnt = reliability.retry_cnt;
        attr.rnr_retry = reliability.rnr_retry;
        attr.max_rd_atomic = reliability.initiator_reads;
        self.modify(&mut attr, self.service.rts_bits(), Operation::ModifyToRts)
    }

    /// In RTS: limits what it sends, in 1000 bits a second.
    ///
    /// # Errors
    /// The failed call; EOPNOTSUPP where the device has no such limits.
    pub fn limit_rate(&self, kbit_per_s: u32) -> Result<(), VerbsError> {
        // SAFETY: plain data, for which zero is valid, and leaves bursts and packets to the device.
        let mut attr: ibv_qp_rate_limit_attr = unsafe { zeroed() };
        attr.rate_limit = kbit_per_s;
        // SAFETY: the QP is alive.
        let code = unsafe { modify_qp_rate_limit(self.raw(), &mut attr) };
        if code == 0 {
            return Ok(());
        }
        let name = self.pd.context().name();
        let object = format!("{name} QP {:#08x} ({kbit_per_s} kbit/s)", self.qpn());
        Err(VerbsError::returned(Operation::LimitRate, object, code))
    }

    /// In RTS: its packets have this UDP source port from now on.
    ///
    /// # Errors
    /// The failed call; EOPNOTSUPP where the device has no such call, or not for this service.
    pub fn set_udp_source_port(&self, port: u16) -> Result<(), VerbsError> {
        // SAFETY: the QP is alive.
        let code = unsafe { (self.context().library().modify_qp_udp_sport)(self.raw(), port) };
        if code != 0 {
            let object = format!("{} QP {:#08x}", self.context().name(), self.qpn());
            return Err(VerbsError::returned(Operation::SetUdpPort, object, code));
        }
        let _ = self.udp_source_port.set(port);
        Ok(())
    }

    /// The UDP source port of its packets over RoCE v2, by which switches choose a path: the one that it was given, or what the
    /// driver is known to choose. `None` where that is not known, and for datagrams.
    pub fn udp_source_port(&self) -> Option<u16> {
        let &(flow_label, peer) = self.connection.get()?;
        if let Some(port) = self.udp_source_port.get() {
            return Some(*port);
        }
        if self.context().library().is_embedded() {
            // SAFETY: a live QP of the embedded library.
            return unsafe { softroce::verbs::udp_source_port(self.raw) };
        }
        let driver = self.context().driver()?;
        driver.udp_source_port(flow_label, self.qpn(), peer)
    }

    /// Any state → ERR: everything posted is flushed.
    pub fn to_error(&self) -> Result<(), VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = ibv_qp_state::IBV_QPS_ERR;
        self.modify(&mut attr, mask::IBV_QP_STATE, Operation::ModifyToErr)
    }

    pub(super) fn modify(
        &self,
        attr: &mut ibv_qp_attr,
        bits: mask,
        operation: Operation,
    ) -> Result<(), VerbsError> {
        let code_bits = bits.0.cast_signed();
        // SAFETY: the QP is alive and `attr` filled for the bits.
        let code = unsafe { (self.pd.context().library().modify_qp)(self.raw(), attr, code_bits) };
        if code == 0 {
            if bits.0 & mask::IBV_QP_DEST_QPN.0 != 0 && attr.ah_attr.is_global != 0 {
                let connection = (attr.ah_attr.grh.flow_label, attr.dest_qp_num);
                let _ = self.connection.set(connection);
            }
            return Ok(());
        }
        let object = format!("{} QP {:#08x}", self.pd.context().name(), self.qpn());
        Err(VerbsError::returned(operation, object, code))
    }
}

impl Teardown for QueuePair {
    const OPERATION: Operation = Operation::DestroyQp;

    fn object(&self) -> String {
        format!("{} QP {:#08x}", self.pd.context().name(), self.qpn())
    }

    fn tear_down(&mut self, _: TeardownToken) -> i32 {
        self.destroyed = true;
        // SAFETY: rings held an `Arc` to it, so nobody posts any more; it was not destroyed before.
        unsafe { (self.pd.context().library().destroy_qp)(self.raw()) }
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if !self.destroyed {
            self.tear_down(TeardownToken::new());
        }
    }
}

impl QueuePair {
    pub fn query(&self) -> Result<QpAttributes, VerbsError> {
        let bits = mask::IBV_QP_STATE
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN
            | mask::IBV_QP_SQ_PSN;
        // SAFETY: plain data, for which zero is valid.
        let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = unsafe { (zeroed(), zeroed()) };
        let query = self.context().library().query_qp;
        // SAFETY: the QP is alive, and both structs are writable.
        let code = unsafe { query(self.raw(), &mut attr, bits.0.cast_signed(), &mut init) };
        if code != 0 {
            let object = format!("{} QP {:#08x}", self.context().name(), self.qpn());
            return Err(VerbsError::returned(Operation::QueryQp, object, code));
        }
        let state = QpState::from_code(attr.qp_state);
        let connected = !matches!(state, QpState::Reset | QpState::Init);
        Ok(QpAttributes {
            state,
            path_mtu_bytes: match attr.path_mtu {
                mtu_code @ 1..=5 if connected => 128 << mtu_code,
                _ => 0,
            },
            remote_qpn: if connected { attr.dest_qp_num } else { 0 },
            rq_psn: if connected { attr.rq_psn } else { 0 },
            sq_psn: if connected && state != QpState::Rtr { attr.sq_psn } else { 0 },
        })
    }
}

/// The way of datagrams to a port.
pub struct AddressHandle {
    pd: Arc<ProtectionDomain>,
    raw: NonNull<ibv_ah>,
}

// SAFETY: the handle is only passed to the library, which locks, and never changes.
unsafe impl Send for AddressHandle {}

// SAFETY: as above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// `ibv_create_ah(3)`: by `path` to the port of `remote`, whichever QP there is meant.
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        path: &Path,
        remote: &RemoteQp,
    ) -> Result<Arc<Self>, VerbsError> {
        let mut attr = address_vector(path, remote);
        // SAFETY: the PD is alive and `attr` filled.
        let raw = unsafe { (pd.context().library().create_ah)(pd.raw(), &mut attr) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            let object = format!("{} to GID {}", pd.context().name(), remote.gid);
            VerbsError::last(Operation::CreateAh, object)
        })?;
        Ok(Arc::new(AddressHandle { pd: Arc::clone(pd), raw }))
    }

    pub(super) fn raw(&self) -> *mut ibv_ah {
        self.raw.as_ptr()
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: rings that post with it held an `Arc` to it; it was not destroyed before.
        unsafe { (self.pd.context().library().destroy_ah)(self.raw()) };
    }
}

/// One queue of receives for many QPs.
pub struct SharedReceiveQueue {
    pd: Arc<ProtectionDomain>,
    raw: NonNull<ibv_srq>,
}

// SAFETY: posting and modifying may be done from any thread (libibverbs locks), and the fields never change.
unsafe impl Send for SharedReceiveQueue {}

// SAFETY: as above.
unsafe impl Sync for SharedReceiveQueue {}

impl SharedReceiveQueue {
    /// `ibv_create_srq(3)` with room for `wrs` receives of at most `sges` elements.
    pub fn new(
        pd: &Arc<ProtectionDomain>,
        wrs: u32,
        sges: u32,
    ) -> Result<Arc<SharedReceiveQueue>, VerbsError> {
        // SAFETY: plain data, for which zero is valid.
        let mut init: ibv_srq_init_attr = unsafe { zeroed() };
        init.attr.max_wr = wrs;
        init.attr.max_sge = sges;
        // SAFETY: the PD is alive and `init` filled.
        let raw = unsafe { (pd.context().library().create_srq)(pd.raw(), &mut init) };
        let raw = NonNull::new(raw).ok_or_else(|| {
            let name = pd.context().name();
            VerbsError::last(Operation::CreateSrq, format!("{name} ({wrs} receives)"))
        })?;
        Ok(Arc::new(SharedReceiveQueue { pd: Arc::clone(pd), raw }))
    }

    /// Requests one asynchronous event for when fewer than `limit` receives are left (`ibv_modify_srq(3)`).
    pub fn arm(&self, limit: u32) -> Result<(), VerbsError> {
        let mut attr = ibv_srq_attr { max_wr: 0, max_sge: 0, srq_limit: limit };
        let bits = ibv_srq_attr_mask::IBV_SRQ_LIMIT.0.cast_signed();
        // SAFETY: the SRQ is alive and `attr` filled for the bits.
        match unsafe { (self.pd.context().library().modify_srq)(self.raw(), &mut attr, bits) } {
            0 => Ok(()),
            code => Err(VerbsError::returned(Operation::ModifySrq, self.context().name(), code)),
        }
    }

    pub(super) fn context(&self) -> &Context {
        self.pd.context()
    }

    pub(super) fn raw(&self) -> *mut ibv_srq {
        self.raw.as_ptr()
    }

    /// A number that identifies this SRQ while it lives; asynchronous events contain it.
    pub(super) fn identity(&self) -> usize {
        self.raw.as_ptr() as usize
    }
}

impl Drop for SharedReceiveQueue {
    fn drop(&mut self) {
        // SAFETY: its QPs and rings held an `Arc` to it, so they are gone; events that name it are acknowledged as soon
        // as they are read.
        unsafe { (self.pd.context().library().destroy_srq)(self.raw()) };
    }
}
