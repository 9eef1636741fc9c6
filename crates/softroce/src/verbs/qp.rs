//! Queue pairs: their data, querying and destroying them, and their states. `ibv_modify_qp(3)` checks a transition, its
//! attributes and their values, then calls the transport. [`super::qp_create`] creates them.
//!
//! The valid transitions and their attributes are those of the InfiniBand specification's table "QP state transition
//! properties" as implemented by Linux (`ib_modify_qp_is_ok`).
//!
//! Each QP has a [`Batch`]: the requests that extended posting collects between `wr_start` and `wr_complete`.

use std::cell::UnsafeCell;
use std::os::raw::c_int;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use rdma_sys::{
    ibv_mig_state, ibv_mtu, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as Mask, ibv_qp_cap, ibv_qp_ex,
    ibv_qp_init_attr, ibv_qp_rate_limit_attr, ibv_send_flags,
};

use super::context::{Acks, Context, Source};
use super::errno::zero_or_error;
use super::gid::Destination;
use super::object::{Behind, Latch, Use};
use super::query::{LEAST_KBIT_PER_S, MAX_RD_ATOM, MOST_KBIT_PER_S, active_mtu_of, mtu_bytes};
use super::{domain, gid};
use crate::lock::Lock;
use crate::transport;
use crate::transport::{
    Access, Connection, Datagram, Deliveries, Kind, Operation, Payload, SendRequest, Sge, State,
};

/// The data of a QP.
pub(super) struct Qp {
    pub(super) transport: transport::Qp,
    pub(super) kind: Kind,
    pub(super) acks: Arc<Acks>,
    /// Requests being collected, if the QP was created with operations for `ibv_wr_*`.
    pub(super) builder: Option<Builder>,
    /// The attributes set by `modify_qp`. This lock comes before all of the transport, whose callbacks must not take it
    /// (see `transport/device.rs`).
    pub(super) attributes: Lock<ibv_qp_attr>,
    pub(super) cap: ibv_qp_cap,
    pub(super) signal_all: bool,
    pub(super) _uses: Vec<Use>,
}

/// The struct is the extended one, whose first member is the `ibv_qp`.
impl Behind<ibv_qp, ibv_qp_ex> for Qp {}

/// `ibv_qp_to_qp_ex(3)`: null for a QP created without operations for `ibv_wr_*`.
pub unsafe extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: a live QP.
    let builder = unsafe { &Qp::from_raw(qp).builder };
    builder.as_ref().map_or(null_mut(), |_| qp.cast())
}

/// `mlx5dv_modify_qp_udp_sport(3)`: EOPNOTSUPP, since the ports are those of the device's sockets.
pub unsafe extern "C" fn modify_qp_udp_sport(_qp: *mut ibv_qp, _port: u16) -> c_int {
    libc::EOPNOTSUPP
}

/// The UDP source port of a connected QP's packets; `None` before RTR and for datagrams.
///
/// # Safety
/// A live QP.
pub unsafe fn udp_source_port(qp: NonNull<ibv_qp>) -> Option<u16> {
    // SAFETY: the caller's.
    unsafe { Qp::from_raw(qp.as_ptr()) }.transport.udp_source_port()
}

/// `ibv_query_qp(3)`: all attributes, whatever the mask.
pub unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: a live QP of an open context.
    let (own, inner) = unsafe { (Context::own((*qp).context), Qp::from_raw(qp)) };
    // SAFETY: two writable structs of plain data; a live QP, of which nothing changes but the state.
    zero_or_error(own.map(|_| unsafe {
        let kept = inner.attributes.lock();
        let state = inner.transport.state();
        attr.copy_from_nonoverlapping(&raw const *kept, 1);
        let attr = &mut *attr;
        attr.qp_state = state as u32;
        attr.cur_qp_state = state as u32;
        attr.cap = inner.cap;
        let (sq_psn, rq_psn) = inner.transport.psns();
        if !matches!(state, State::Reset | State::Init) {
            attr.rq_psn = rq_psn;
        }
        if !matches!(state, State::Reset | State::Init | State::Rtr) {
            attr.sq_psn = sq_psn;
        }
        let draining = state == State::Sqd && !inner.transport.send_queue_is_empty();
        attr.sq_draining = u8::from(draining);
        init.write(ibv_qp_init_attr {
            qp_context: (*qp).qp_context,
            send_cq: (*qp).send_cq,
            recv_cq: (*qp).recv_cq,
            srq: (*qp).srq,
            cap: inner.cap,
            qp_type: (*qp).qp_type,
            sq_sig_all: c_int::from(inner.signal_all),
        });
    }))
}

/// `ibv_destroy_qp(3)`: waits until the program has acknowledged all events that it took.
pub unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: a live QP of an open context, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        Context::own((*qp).context).map(|context| {
            let inner = Qp::from_raw(qp);
            inner.transport.destroy();
            context.end_events_of(Source::Qp(qp), &inner.acks);
            drop(Qp::take_back(qp));
        })
    })
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

/// Mask of PSNs and QPNs.
const BITS_24: u32 = 0x00ff_ffff;
/// The largest code of a time-out and of the RNR pause.
const MAX_TIMER_CODE: u8 = 31;
const MAX_RETRIES: u8 = 7;
/// Attributes that the transport accepts only between INIT and RTS.
const FIXED_WITH_THE_CONNECTION: u32 = Mask::IBV_QP_AV.0
    | Mask::IBV_QP_TIMEOUT.0
    | Mask::IBV_QP_RETRY_CNT.0
    | Mask::IBV_QP_RNR_RETRY.0
    | Mask::IBV_QP_MAX_QP_RD_ATOMIC.0
    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;

fn has(mask: u32, bit: Mask) -> bool {
    mask & bit.0 != 0
}

/// Whether each value that `mask` names is valid, except the address vector.
fn check_values(attr: &ibv_qp_attr, mask: u32, active_mtu: ibv_mtu::Type) -> Result<(), c_int> {
    let mtus = ibv_mtu::IBV_MTU_256..=active_mtu;
    let invalid = has(mask, Mask::IBV_QP_PORT) && attr.port_num != gid::PORT
        || has(mask, Mask::IBV_QP_PKEY_INDEX) && attr.pkey_index != 0
        || has(mask, Mask::IBV_QP_PATH_MTU) && !mtus.contains(&attr.path_mtu)
        || has(mask, Mask::IBV_QP_DEST_QPN) && attr.dest_qp_num > BITS_24
        || has(mask, Mask::IBV_QP_RQ_PSN) && attr.rq_psn > BITS_24
        || has(mask, Mask::IBV_QP_SQ_PSN) && attr.sq_psn > BITS_24
        || has(mask, Mask::IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > MAX_RD_ATOM
        || has(mask, Mask::IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > MAX_RD_ATOM
        || has(mask, Mask::IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_TIMEOUT) && attr.timeout > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_RETRY_CNT) && attr.retry_cnt > MAX_RETRIES
        || has(mask, Mask::IBV_QP_RNR_RETRY) && attr.rnr_retry > MAX_RETRIES
        // There is one path: no alternate one, and no migration.
        || has(mask, Mask::IBV_QP_ALT_PATH)
        || has(mask, Mask::IBV_QP_PATH_MIG_STATE)
            && attr.path_mig_state != ibv_mig_state::IBV_MIG_MIGRATED;
    if invalid {
        return Err(libc::EINVAL);
    }
    if has(mask, Mask::IBV_QP_ACCESS_FLAGS) {
        domain::access(attr.qp_access_flags)?;
    }
    Ok(())
}

/// Copies the attributes of `new` that `mask` names into `kept`.
fn merge(kept: &mut ibv_qp_attr, new: &ibv_qp_attr, mask: u32) {
    macro_rules! take {
        ($($bit:ident => $field:ident;)*) => {
            $(if mask & Mask::$bit.0 != 0 { kept.$field = new.$field; })*
        };
    }
    take! {
        IBV_QP_ACCESS_FLAGS => qp_access_flags;
        IBV_QP_PKEY_INDEX => pkey_index;
        IBV_QP_PORT => port_num;
        IBV_QP_QKEY => qkey;
        IBV_QP_AV => ah_attr;
        IBV_QP_PATH_MTU => path_mtu;
        IBV_QP_TIMEOUT => timeout;
        IBV_QP_RETRY_CNT => retry_cnt;
        IBV_QP_RNR_RETRY => rnr_retry;
        IBV_QP_RQ_PSN => rq_psn;
        IBV_QP_SQ_PSN => sq_psn;
        IBV_QP_MAX_QP_RD_ATOMIC => max_rd_atomic;
        IBV_QP_MAX_DEST_RD_ATOMIC => max_dest_rd_atomic;
        IBV_QP_MIN_RNR_TIMER => min_rnr_timer;
        IBV_QP_DEST_QPN => dest_qp_num;
        IBV_QP_EN_SQD_ASYNC_NOTIFY => en_sqd_async_notify;
    }
}

/// Applies attributes that may change while a QP works.
fn apply_changes(qp: &Qp, attr: &ibv_qp_attr, mask: u32, access: Access) {
    if has(mask, Mask::IBV_QP_ACCESS_FLAGS) {
        qp.transport.set_access(access);
    }
    if has(mask, Mask::IBV_QP_QKEY) {
        qp.transport.set_qkey(attr.qkey);
    }
    if has(mask, Mask::IBV_QP_MIN_RNR_TIMER) {
        qp.transport.set_min_rnr_timer(attr.min_rnr_timer);
    }
}

/// Performs the checked transition. `attr` has all attributes set so far, `mask` names the new ones.
fn apply(
    qp: &Qp,
    (from, to): (State, State),
    attr: &ibv_qp_attr,
    mask: u32,
    destination: Option<Destination>,
) -> Result<(), c_int> {
    let access = domain::access(attr.qp_access_flags)?;
    match (from, to) {
        (_, State::Reset) => qp.transport.reset(),
        (_, State::Err) => qp.transport.fail(),
        (_, State::Init) => qp.transport.initialize(access, attr.qkey),
        (_, State::Rtr) => {
            apply_changes(qp, attr, mask, access);
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
            apply_changes(qp, attr, mask, access);
            let deliveries = (qp.kind == Kind::Rc).then_some(Deliveries {
                timeout: attr.timeout,
                retry_count: attr.retry_cnt,
                rnr_retry: attr.rnr_retry,
                max_rd_atomic: attr.max_rd_atomic,
            });
            qp.transport.ready_to_send(attr.sq_psn, deliveries);
        }
        (State::Sqd | State::Sqe, State::Rts) => {
            apply_changes(qp, attr, mask, access);
            qp.transport.resume();
        }
        (State::Rts, State::Sqd) => {
            let notifies = has(mask, Mask::IBV_QP_EN_SQD_ASYNC_NOTIFY);
            qp.transport.drain(notifies && attr.en_sqd_async_notify != 0);
        }
        _ => apply_changes(qp, attr, mask, access),
    }
    Ok(())
}

unsafe fn modify(qp: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, device) = unsafe { (Qp::from_raw(qp), Context::own((*qp).context)?) };
    let mut kept = inner.attributes.lock();
    let from = inner.transport.state();
    let to = if has(mask, Mask::IBV_QP_STATE) {
        State::from_number(attr.qp_state).ok_or(libc::EINVAL)?
    } else {
        from
    };
    let is_elsewhere = has(mask, Mask::IBV_QP_CUR_STATE) && attr.cur_qp_state != from as u32;
    if is_elsewhere || !allowed(inner.kind, from, to, mask) {
        return Err(libc::EINVAL);
    }
    check_values(attr, mask, active_mtu_of(device))?;
    if from == State::Sqd && to == State::Sqd && mask & FIXED_WITH_THE_CONNECTION != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let destination = has(mask, Mask::IBV_QP_AV)
        .then(|| gid::destination(&attr.ah_attr, device.address()))
        .transpose()?;
    if to == State::Reset {
        // SAFETY: integers and arrays of them: zero is a value of each.
        *kept = unsafe { std::mem::zeroed() };
    } else {
        merge(&mut kept, attr, mask);
    }
    apply(inner, (from, to), &kept, mask, destination)?;
    // SAFETY: a live QP; like libibverbs, only this call writes the field.
    unsafe { (*qp).state = to as u32 };
    Ok(())
}

/// `ibv_modify_qp(3)`. EINVAL for an invalid transition, for missing or excess attributes, and for values out of
/// range; ETIMEDOUT for a destination that no packet can reach; EOPNOTSUPP for another path, time-outs or depths of a
/// QP in SQD.
pub unsafe extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: a live QP and a readable struct; the mask is a set of bits.
    zero_or_error(unsafe { modify(qp, &*attr, mask.cast_unsigned()) })
}

const ACCESS: u32 = Mask::IBV_QP_ACCESS_FLAGS.0;
const ALT_PATH: u32 = Mask::IBV_QP_ALT_PATH.0;
const AV: u32 = Mask::IBV_QP_AV.0;
const CUR_STATE: u32 = Mask::IBV_QP_CUR_STATE.0;
const DEST_QPN: u32 = Mask::IBV_QP_DEST_QPN.0;
const MAX_DEST_RD_ATOMIC: u32 = Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;
const MAX_RD_ATOMIC: u32 = Mask::IBV_QP_MAX_QP_RD_ATOMIC.0;
const MIGRATION: u32 = Mask::IBV_QP_PATH_MIG_STATE.0;
const MIN_RNR_TIMER: u32 = Mask::IBV_QP_MIN_RNR_TIMER.0;
const PATH_MTU: u32 = Mask::IBV_QP_PATH_MTU.0;
const PKEY: u32 = Mask::IBV_QP_PKEY_INDEX.0;
const PORT: u32 = Mask::IBV_QP_PORT.0;
const QKEY: u32 = Mask::IBV_QP_QKEY.0;
const RETRY: u32 = Mask::IBV_QP_RETRY_CNT.0 | Mask::IBV_QP_RNR_RETRY.0;
const RQ_PSN: u32 = Mask::IBV_QP_RQ_PSN.0;
const SQD_NOTIFY: u32 = Mask::IBV_QP_EN_SQD_ASYNC_NOTIFY.0;
const SQ_PSN: u32 = Mask::IBV_QP_SQ_PSN.0;
const STATE: u32 = Mask::IBV_QP_STATE.0;
const TIMEOUT: u32 = Mask::IBV_QP_TIMEOUT.0;

/// The required and the optional attributes of a transition; `None` if it is invalid.
fn attributes(kind: Kind, from: State, to: State) -> Option<(u32, u32)> {
    use State::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    // By service: unreliable datagram, unreliable connection, reliable connection.
    let by_kind = |ud: u32, uc: u32, rc: u32| match kind {
        Kind::Ud => ud,
        Kind::Uc => uc,
        Kind::Rc => rc,
    };
    let first = PKEY | PORT | by_kind(QKEY, ACCESS, ACCESS);
    let path = ALT_PATH | ACCESS | MIGRATION;
    // Attributes that may change while the QP sends.
    let running = CUR_STATE | by_kind(QKEY, path, path | MIN_RNR_TIMER);
    Some(match (from, to) {
        // Linux allows no transition from RESET to ERR, although the specification says "any state".
        (Reset, Reset) | (Init | Rtr | Rts | Sqd | Sqe | Err, Reset | Err) => (0, 0),
        (Reset, Init) => (first, 0),
        (Init, Init) => (0, first),
        (Init, Rtr) => {
            let connected = AV | PATH_MTU | DEST_QPN | RQ_PSN;
            let reliable = connected | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
            let optional = by_kind(QKEY, ALT_PATH | ACCESS, ALT_PATH | ACCESS);
            (by_kind(0, connected, reliable), PKEY | optional)
        }
        (Rtr, Rts) => {
            let reliable = TIMEOUT | RETRY | SQ_PSN | MAX_RD_ATOMIC;
            (by_kind(SQ_PSN, SQ_PSN, reliable), running)
        }
        (Rts | Sqd, Rts) => (0, running),
        (Rts, Sqd) => (0, SQD_NOTIFY),
        (Sqd, Sqd) => {
            let connected = AV | PKEY | path;
            let depths = MAX_RD_ATOMIC | MAX_DEST_RD_ATOMIC;
            let reliable = connected | PORT | TIMEOUT | RETRY | depths | MIN_RNR_TIMER;
            (0, by_kind(PKEY | QKEY, connected, reliable))
        }
        // A reliable QP is never in SQE.
        (Sqe, Rts) => (0, by_kind(CUR_STATE | QKEY, CUR_STATE | ACCESS, 0)),
        _ => return None,
    })
}

/// The attributes that a valid transition requires, with the state.
pub(crate) fn required(kind: Kind, from: State, to: State) -> u32 {
    STATE | attributes(kind, from, to).map_or(0, |(required, _)| required)
}

/// Whether a QP may change `from` one state `to` another with the attributes of `mask`.
pub(super) fn allowed(kind: Kind, from: State, to: State, mask: u32) -> bool {
    // Only in these states can the state have changed by itself.
    let may_say_current = matches!(from, State::Rtr | State::Rts | State::Sqd | State::Sqe);
    if mask & CUR_STATE != 0 && !may_say_current {
        return false;
    }
    attributes(kind, from, to).is_some_and(|(required, optional)| {
        mask & required == required && mask & !(required | optional | STATE) == 0
    })
}

unsafe fn limit_rate(qp: *mut ibv_qp, attr: Option<&ibv_qp_rate_limit_attr>) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, _) = unsafe { (Qp::from_raw(qp), Context::own((*qp).context)?) };
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

    fn set(attr: &mut ibv_qp_attr, bit: Mask, value: u32) {
        match bit {
            Mask::IBV_QP_PORT => attr.port_num = value as u8,
            Mask::IBV_QP_PKEY_INDEX => attr.pkey_index = value as u16,
            Mask::IBV_QP_PATH_MTU => attr.path_mtu = value,
            Mask::IBV_QP_DEST_QPN => attr.dest_qp_num = value,
            Mask::IBV_QP_RQ_PSN => attr.rq_psn = value,
            Mask::IBV_QP_SQ_PSN => attr.sq_psn = value,
            Mask::IBV_QP_MAX_QP_RD_ATOMIC => attr.max_rd_atomic = value as u8,
            Mask::IBV_QP_MAX_DEST_RD_ATOMIC => attr.max_dest_rd_atomic = value as u8,
            Mask::IBV_QP_MIN_RNR_TIMER => attr.min_rnr_timer = value as u8,
            Mask::IBV_QP_TIMEOUT => attr.timeout = value as u8,
            Mask::IBV_QP_RETRY_CNT => attr.retry_cnt = value as u8,
            Mask::IBV_QP_RNR_RETRY => attr.rnr_retry = value as u8,
            Mask::IBV_QP_PATH_MIG_STATE => attr.path_mig_state = value,
            Mask::IBV_QP_ACCESS_FLAGS => attr.qp_access_flags = value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_checked_where_the_mask_names_them() {
        let cases: [(Mask, &[u32], &[u32]); 14] = [
            (Mask::IBV_QP_PORT, &[1], &[0, 2]),
            (Mask::IBV_QP_PKEY_INDEX, &[0], &[1]),
            (Mask::IBV_QP_PATH_MTU, &[1, 3], &[0, 4, 5, 6]),
            (Mask::IBV_QP_DEST_QPN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_RQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_SQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_MAX_QP_RD_ATOMIC, &[0, 128], &[129]),
            (Mask::IBV_QP_MAX_DEST_RD_ATOMIC, &[0, 128], &[129]),
            (Mask::IBV_QP_MIN_RNR_TIMER, &[0, 31], &[32]),
            (Mask::IBV_QP_TIMEOUT, &[0, 31], &[32]),
            (Mask::IBV_QP_RETRY_CNT, &[0, 7], &[8]),
            (Mask::IBV_QP_RNR_RETRY, &[0, 7], &[8]),
            (Mask::IBV_QP_PATH_MIG_STATE, &[0], &[1, 2]),
            (Mask::IBV_QP_ACCESS_FLAGS, &[0, 15], &[0x100, 0x40]),
        ];
        for (bit, good, bad) in cases {
            // SAFETY: integers and arrays of them: zero is a value of each.
            let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
            for value in [good, bad].concat() {
                set(&mut attr, bit, value);
                let is_good = [bit.0, 0].map(|mask| {
                    let outcome = check_values(&attr, mask, ibv_mtu::IBV_MTU_1024);
                    outcome.is_ok()
                });
                assert_eq!(is_good, [good.contains(&value), true], "{bit:?} {value}");
            }
        }
    }

    #[test]
    fn only_named_attributes_are_taken_over() {
        // SAFETY: integers and arrays of them: zero is a value of each.
        let (mut kept, mut new): (ibv_qp_attr, ibv_qp_attr) = unsafe { std::mem::zeroed() };
        new.timeout = 14;
        new.retry_cnt = 7;
        new.ah_attr.port_num = 1;
        merge(&mut kept, &new, Mask::IBV_QP_TIMEOUT.0 | Mask::IBV_QP_AV.0);
        assert_eq!((kept.timeout, kept.retry_cnt), (14, 0));
        assert_eq!(kept.ah_attr.port_num, 1);
    }

    #[test]
    fn states_are_numbers_to_six() {
        for number in 0..7 {
            assert_eq!(State::from_number(number).unwrap() as u32, number);
        }
        assert_eq!(State::from_number(7), None);
    }

    const KINDS: [Kind; 3] = [Kind::Rc, Kind::Uc, Kind::Ud];

    #[test]
    fn exactly_these_states_follow_each_other() {
        use State::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
        for from in State::ALL {
            let followers: &[State] = match from {
                Reset => &[Reset, Init],
                Init => &[Reset, Err, Init, Rtr],
                Rtr => &[Reset, Err, Rts],
                Rts => &[Reset, Err, Rts, Sqd],
                Sqd => &[Reset, Err, Rts, Sqd],
                Sqe => &[Reset, Err, Rts],
                Err => &[Reset, Err],
            };
            for to in State::ALL {
                for kind in KINDS {
                    let exists = attributes(kind, from, to).is_some();
                    let expected = followers.contains(&to);
                    assert_eq!(exists, expected, "{kind:?} {from:?} -> {to:?}");
                }
            }
        }
    }

    #[test]
    fn each_required_attribute_is_missed_and_each_foreign_one_refused() {
        let mut checked = 0;
        for kind in KINDS {
            for from in State::ALL {
                for to in State::ALL {
                    let Some((required, optional)) = attributes(kind, from, to) else {
                        continue;
                    };
                    assert!(allowed(kind, from, to, required | STATE));
                    assert!(allowed(kind, from, to, required | optional | STATE));
                    for bit in (0..32).map(|shift| 1 << shift) {
                        let place = format!("{kind:?} {from:?} -> {to:?} {bit:#x}");
                        if required & bit != 0 {
                            assert!(!allowed(kind, from, to, required & !bit), "{place}");
                            checked += 1;
                        } else if (optional | STATE) & bit == 0 {
                            assert!(!allowed(kind, from, to, required | bit), "{place}");
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert!(checked > 1000, "{checked}");
    }

    #[test]
    fn what_each_service_needs() {
        let needs = |from, to| KINDS.map(|kind| attributes(kind, from, to).unwrap().0);
        // Of RC, UC and UD.
        assert_eq!(needs(State::Reset, State::Init), [0x38, 0x38, 0x70]);
        assert_eq!(needs(State::Init, State::Rtr), [0x129180, 0x101180, 0]);
        assert_eq!(needs(State::Rtr, State::Rts), [0x12e00, 0x10000, 0x10000]);
    }
}
