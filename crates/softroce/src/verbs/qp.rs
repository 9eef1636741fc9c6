//! Queue pairs: the device's part of one, creating it, and its changes, which call the transport.
//!
//! Each QP has a [`Batch`]: the requests that extended posting collects between `wr_start` and `wr_complete`.

use std::cell::UnsafeCell;
use std::net::IpAddr;
use std::os::raw::c_int;
use std::ptr::NonNull;

use provider::{
    Change, Context, Objects, QpEngine, QpRequest, mtu_bytes, pointer_or_errno, zero_or_error,
};
use rdma_sys::{
    ibv_context, ibv_event_type, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as Mask, ibv_qp_init_attr,
    ibv_qp_init_attr_ex, ibv_qp_init_attr_mask, ibv_qp_rate_limit_attr, ibv_qp_type,
    ibv_send_flags,
};

use super::errno::refuse;
use super::gid::Destination;
use super::latch::Latch;
use super::open::Softroce;
use super::query::{LEAST_KBIT_PER_S, MOST_KBIT_PER_S};
use super::{domain, gid, post};
use crate::transport;
use crate::transport::{
    Access, Capacities, Connection, Datagram, Deliveries, Kind, Operation, Payload, PdId, QpEvent,
    QpOptions, ReceiveSource, SendRequest, Sge, State,
};

/// The device's part of a QP.
pub(crate) struct Qp {
    pub(super) transport: transport::Qp,
    pub(super) kind: Kind,
    /// Requests being collected, if the QP was created with operations for `ibv_wr_*`.
    pub(super) builder: Option<Builder>,
    /// The device's address.
    address: IpAddr,
}

// SAFETY: who holds the latch of the builder has its batch; the rest may be used by any thread.
unsafe impl Sync for Qp {}

impl Qp {
    /// ENOMEM beyond the device's number of QPs.
    pub(super) fn new(device: &Softroce, request: QpRequest<'_, Softroce>) -> Result<Qp, c_int> {
        let QpRequest { init, cap, events, .. } = request;
        if cap.max_send_wr > 0 {
            // A request has this room anyway.
            let elements_bytes = cap.max_send_sge * size_of::<Sge>() as u32;
            cap.max_inline_data = cap.max_inline_data.max(elements_bytes);
        }
        let kind = kind(init.qp_type)?;
        let options = QpOptions {
            kind,
            pd: PdId(request.pd),
            send_cq: request.send_cq.transport.clone(),
            recv_cq: request.recv_cq.transport.clone(),
            receives: request
                .srq
                .map_or(ReceiveSource::Own, |srq| ReceiveSource::Shared(srq.queue.clone())),
            capacities: Capacities {
                send_wrs: cap.max_send_wr,
                recv_wrs: cap.max_recv_wr,
                send_sges: cap.max_send_sge,
                recv_sges: cap.max_recv_sge,
                inline_bytes: cap.max_inline_data,
            },
            signal_all: init.sq_sig_all != 0,
            on_event: Box::new(move |event| events.raise(event_kind(event))),
        };
        Ok(Qp {
            transport: transport::Qp::new(&device.nic, options).ok_or(libc::ENOMEM)?,
            kind,
            builder: request.is_extended.then(Builder::default),
            address: device.address(),
        })
    }
}

impl QpEngine for Qp {
    fn number(&self) -> u32 {
        self.transport.number()
    }

    fn state(&self, _set: u32) -> u32 {
        self.transport.state() as u32
    }

    /// ETIMEDOUT for a destination that no packet can reach; EOPNOTSUPP for another path, time-outs or depths of a QP in SQD.
    fn modify(&self, change: &Change<'_>) -> Result<(), c_int> {
        let number = |state| State::from_number(state).ok_or(libc::EINVAL);
        let (from, to) = (number(change.from)?, number(change.to)?);
        let access = Access(change.attr.qp_access_flags & domain::TRANSPORT_ACCESS);
        if from == State::Sqd && to == State::Sqd && change.mask & FIXED_WITH_THE_CONNECTION != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        let destination = change
            .has(Mask::IBV_QP_AV)
            .then(|| gid::destination(&change.attr.ah_attr, self.address))
            .transpose()?;
        apply(self, (from, to), change, access, destination);
        Ok(())
    }

    fn complete_query(&self, attr: &mut ibv_qp_attr) {
        let (sq_psn, rq_psn) = self.transport.psns();
        let state = State::from_number(attr.qp_state);
        if !matches!(state, Some(State::Reset | State::Init)) {
            attr.rq_psn = rq_psn;
        }
        if !matches!(state, Some(State::Reset | State::Init | State::Rtr)) {
            attr.sq_psn = sq_psn;
        }
        let draining = state == Some(State::Sqd) && !self.transport.send_queue_is_empty();
        attr.sq_draining = u8::from(draining);
    }

    fn is_extended(&self) -> bool {
        self.builder.is_some()
    }

    fn close(&self) {
        self.transport.destroy();
    }
}

/// Attributes that the transport accepts only between INIT and RTS.
const FIXED_WITH_THE_CONNECTION: u32 = Mask::IBV_QP_AV.0
    | Mask::IBV_QP_TIMEOUT.0
    | Mask::IBV_QP_RETRY_CNT.0
    | Mask::IBV_QP_RNR_RETRY.0
    | Mask::IBV_QP_MAX_QP_RD_ATOMIC.0
    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;

/// Applies attributes that may change while a QP works.
fn apply_changes(qp: &Qp, change: &Change<'_>, access: Access) {
    if change.has(Mask::IBV_QP_ACCESS_FLAGS) {
        qp.transport.set_access(access);
    }
    if change.has(Mask::IBV_QP_QKEY) {
        qp.transport.set_qkey(change.attr.qkey);
    }
    if change.has(Mask::IBV_QP_MIN_RNR_TIMER) {
        qp.transport.set_min_rnr_timer(change.attr.min_rnr_timer);
    }
}

/// Performs the checked transition.
fn apply(
    qp: &Qp,
    (from, to): (State, State),
    change: &Change<'_>,
    access: Access,
    destination: Option<Destination>,
) {
    let attr = change.attr;
    match (from, to) {
        (_, State::Reset) => qp.transport.reset(),
        (_, State::Err) => qp.transport.fail(),
        (_, State::Init) => qp.transport.initialize(access, attr.qkey),
        (_, State::Rtr) => {
            apply_changes(qp, change, access);
            let connection = destination.map(|path| Connection {
                address: path.address,
                qpn: attr.dest_qp_num,
                flow_label: path.flow_label,
                traffic_class: path.traffic_class,
                hop_limit: path.hop_limit,
                mtu_bytes: mtu_bytes(attr.path_mtu),
            });
            qp.transport.ready_to_receive(
                connection,
                attr.rq_psn,
                attr.max_dest_rd_atomic,
                attr.min_rnr_timer,
            );
        }
        (State::Rtr, State::Rts) => {
            apply_changes(qp, change, access);
            let deliveries = (qp.kind == Kind::Rc).then_some(Deliveries {
                timeout: attr.timeout,
                retry_count: attr.retry_cnt,
                rnr_retry: attr.rnr_retry,
                max_rd_atomic: attr.max_rd_atomic,
            });
            qp.transport.ready_to_send(attr.sq_psn, deliveries);
        }
        (State::Sqd | State::Sqe, State::Rts) => {
            apply_changes(qp, change, access);
            qp.transport.resume();
        }
        (State::Rts, State::Sqd) => {
            let notifies = change.has(Mask::IBV_QP_EN_SQD_ASYNC_NOTIFY);
            qp.transport.drain(notifies && attr.en_sqd_async_notify != 0);
        }
        _ => apply_changes(qp, change, access),
    }
}

/// The service in the form of the transport. EOPNOTSUPP for XRC, raw packets and others.
pub(super) fn kind(qp_type: ibv_qp_type::Type) -> Result<Kind, c_int> {
    match qp_type {
        ibv_qp_type::IBV_QPT_RC => Ok(Kind::Rc),
        ibv_qp_type::IBV_QPT_UC => Ok(Kind::Uc),
        ibv_qp_type::IBV_QPT_UD => Ok(Kind::Ud),
        _ => {
            refuse("a QP of another type than RC, UC and UD");
            Err(libc::EOPNOTSUPP)
        }
    }
}

fn event_kind(event: QpEvent) -> ibv_event_type {
    match event {
        QpEvent::CommunicationEstablished => ibv_event_type::IBV_EVENT_COMM_EST,
        QpEvent::SendQueueDrained => ibv_event_type::IBV_EVENT_SQ_DRAINED,
        QpEvent::RequestError => ibv_event_type::IBV_EVENT_QP_REQ_ERR,
        QpEvent::AccessError => ibv_event_type::IBV_EVENT_QP_ACCESS_ERR,
        QpEvent::LastWqeReached => ibv_event_type::IBV_EVENT_QP_LAST_WQE_REACHED,
        QpEvent::Fatal => ibv_event_type::IBV_EVENT_QP_FATAL,
    }
}

/// Of extended attributes those that `ibv_create_qp` knows.
pub(crate) fn plain_attributes(init: &ibv_qp_init_attr_ex) -> ibv_qp_init_attr {
    ibv_qp_init_attr {
        qp_context: init.qp_context,
        send_cq: init.send_cq,
        recv_cq: init.recv_cq,
        srq: init.srq,
        cap: init.cap,
        qp_type: init.qp_type,
        sq_sig_all: init.sq_sig_all,
    }
}

/// `ibv_create_qp_ex(3)`, by the pointer in `verbs_context`. As `ibv_create_qp(3)`; EOPNOTSUPP for extensions other than
/// the operations of `ibv_wr_*`.
pub unsafe extern "C" fn create_qp_ex(
    _context: *mut ibv_context,
    init: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    use ibv_qp_init_attr_mask as Mask;
    // SAFETY: a struct that can be read and written.
    let init = unsafe { &mut *init };
    let known = Mask::IBV_QP_INIT_ATTR_PD.0
        | Mask::IBV_QP_INIT_ATTR_CREATE_FLAGS.0
        | Mask::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.0;
    let flags =
        init.comp_mask & Mask::IBV_QP_INIT_ATTR_CREATE_FLAGS.0 != 0 && init.create_flags != 0;
    if init.comp_mask & !known != 0 || flags {
        refuse("ibv_create_qp_ex with creation flags or more than operations for ibv_wr_*");
        return pointer_or_errno(Err(libc::EOPNOTSUPP));
    }
    if init.comp_mask & Mask::IBV_QP_INIT_ATTR_PD.0 == 0 {
        return pointer_or_errno(Err(libc::EINVAL));
    }
    let operations = (init.comp_mask & Mask::IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.0 != 0)
        .then_some(init.send_ops_flags);
    let mut plain = plain_attributes(init);
    let checked = kind(init.qp_type).and_then(|kind| {
        operations.map_or(Ok(()), |operations| post::check_operations(kind, operations))
    });
    // SAFETY: a live domain, and what the attributes name.
    let made = checked
        .and_then(|()| unsafe { provider::new_qp(init.pd, &mut plain, operations.is_some()) });
    init.cap = plain.cap;
    if let (Ok(qp), Some(operations)) = (made, operations) {
        // SAFETY: just made, and nobody else has it; the struct is the extended one.
        post::fill_extended(unsafe { &mut *qp.cast() }, operations);
    }
    pointer_or_errno(made)
}

/// The UDP source port of a connected QP's packets; `None` before RTR and for datagrams.
///
/// # Safety
/// A live QP.
pub unsafe fn udp_source_port(qp: NonNull<ibv_qp>) -> Option<u16> {
    // SAFETY: the caller's.
    unsafe { Softroce::qp(qp.as_ptr()) }.transport.udp_source_port()
}

unsafe fn limit_rate(qp: *mut ibv_qp, attr: Option<&ibv_qp_rate_limit_attr>) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, _) = unsafe { (Softroce::qp(qp), Context::own((*qp).context)?) };
    let kbit_per_s = attr.filter(|attr| attr.comp_mask == 0).ok_or(libc::EINVAL)?.rate_limit;
    if inner.kind == Kind::Ud {
        return Err(libc::EOPNOTSUPP);
    }
    let is_known = kbit_per_s == 0 || (LEAST_KBIT_PER_S..=MOST_KBIT_PER_S).contains(&kbit_per_s);
    if !is_known || inner.transport.state() != State::Rts {
        return Err(libc::EINVAL);
    }
    let bytes_per_ns = f64::from(kbit_per_s) * 1_000.0 / 8.0 / 1e9;
    let limit = (kbit_per_s > 0).then_some(bytes_per_ns);
    inner.transport.limit_rate(limit);
    Ok(())
}

/// `ibv_modify_qp_rate_limit(3)`, by the pointer in `verbs_context`; a rate of 0 ends a limit. Bursts and packets are as they
/// are. EINVAL for a QP that is not in RTS, and for a rate that [`super::query::PACING_CAPS`] has not; EOPNOTSUPP for datagrams; EIO in a child of
/// the process that opened the device.
pub(super) unsafe extern "C" fn modify_qp_rate_limit(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_rate_limit_attr,
) -> c_int {
    // SAFETY: the caller's: a live QP, and a readable struct or null.
    zero_or_error(unsafe { limit_rate(qp, attr.as_ref()) })
}

/// A request that is being built.
pub(super) struct Pending {
    pub(super) wr_id: u64,
    pub(super) flags: u32,
    pub(super) operation: Operation,
    pub(super) immediate: Option<u32>,
    pub(super) inline: bool,
    /// Index of its first element, and their number.
    pub(super) first_sge: usize,
    pub(super) sges: usize,
    pub(super) datagram: Option<Datagram>,
}

/// The requests since `wr_start`. Keeps its memory for the next batch.
#[derive(Default)]
pub(super) struct Batch {
    requests: Vec<Pending>,
    /// Elements of all requests. Those of inline data contain an offset in `bytes` until `wr_complete`.
    sges: Vec<Sge>,
    /// Inline data, copied because the program may change it after the call.
    bytes: Vec<u8>,
    /// The error of a call that cannot return it.
    pub(super) error: Option<c_int>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.requests.clear();
        self.sges.clear();
        self.bytes.clear();
        self.error = None;
    }

    /// Starts a request without data.
    pub(super) fn begin(
        &mut self,
        wr_id: u64,
        flags: u32,
        operation: Operation,
        immediate: Option<u32>,
    ) {
        let first_sge = self.sges.len();
        self.requests.push(Pending {
            wr_id,
            flags,
            operation,
            immediate,
            inline: false,
            first_sge,
            sges: 0,
            datagram: None,
        });
    }

    /// Changes the current request; without one the program called the setter too early.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut Pending)) {
        match self.requests.last_mut() {
            Some(request) => change(request),
            None => self.error = Some(libc::EINVAL),
        }
    }

    pub(super) fn set_elements(&mut self, elements: &[Sge]) {
        self.add_elements(elements, false);
    }

    fn add_elements(&mut self, elements: &[Sge], inline: bool) {
        let first_sge = self.sges.len();
        self.sges.extend_from_slice(elements);
        self.set(|request| {
            request.inline = inline;
            request.first_sge = first_sge;
            request.sges = elements.len();
        });
    }

    /// Copies the pieces into one element.
    pub(super) fn set_inline<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>) {
        let offset = self.bytes.len();
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        let Ok(length_bytes) = u32::try_from(self.bytes.len() - offset) else {
            self.error = Some(libc::EINVAL);
            return;
        };
        let element = Sge { address: offset as u64, length_bytes, lkey: 0 };
        self.add_elements(&[element], true);
    }

    /// Replaces offsets by addresses: the bytes do not move from now on.
    pub(super) fn settle(&mut self) {
        let start = self.bytes.as_ptr().addr() as u64;
        for request in self.requests.iter().filter(|request| request.inline) {
            for sge in &mut self.sges[request.first_sge..][..request.sges] {
                sge.address += start;
            }
        }
    }

    pub(super) fn request(&self, index: usize) -> Option<SendRequest<'_>> {
        let request = self.requests.get(index)?;
        let sges = &self.sges[request.first_sge..][..request.sges];
        Some(SendRequest {
            wr_id: request.wr_id,
            operation: request.operation,
            immediate: request.immediate,
            signaled: request.flags & ibv_send_flags::IBV_SEND_SIGNALED.0 != 0,
            solicited: request.flags & ibv_send_flags::IBV_SEND_SOLICITED.0 != 0,
            fence: request.flags & ibv_send_flags::IBV_SEND_FENCE.0 != 0,
            payload: if request.inline { Payload::Inline(sges) } else { Payload::Registered(sges) },
            datagram: request.datagram,
        })
    }
}

/// Collects requests; held by a thread from `wr_start` to `wr_complete` or `wr_abort`.
#[derive(Default)]
pub(super) struct Builder {
    pub(super) latch: Latch,
    pub(super) batch: UnsafeCell<Batch>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setter_without_a_request_is_an_error() {
        let mut batch = Batch::default();
        batch.set_elements(&[]);
        assert_eq!(batch.error, Some(libc::EINVAL));
        batch.clear();
        assert_eq!(batch.error, None);
    }

    #[test]
    fn states_are_numbers_to_six() {
        for number in 0..7 {
            assert_eq!(State::from_number(number).unwrap() as u32, number);
        }
        assert_eq!(State::from_number(7), None);
    }
}
