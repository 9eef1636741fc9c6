//! Queue pairs: creating, querying and destroying them, and their states.
//!
//! The valid transitions and their attributes are those of the InfiniBand specification's table "QP state transition
//! properties" as implemented by Linux (`ib_modify_qp_is_ok`).

use std::os::raw::c_int;
use std::ptr::null_mut;

use rdma_sys::{
    ibv_mig_state, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as Mask, ibv_qp_cap, ibv_qp_ex,
    ibv_qp_init_attr, ibv_qp_state as state, ibv_qp_type,
};

use crate::Lock;
use crate::context::Context;
use crate::cq::Cq;
use crate::domain::Pd;
use crate::engine::{Limits, Objects, QpEngine, QpRequest};
use crate::errno::{pointer_or_errno, zero_or_error};
use crate::events::{ObjectEvents, Source};
use crate::object::{Behind, Use};
use crate::srq::Srq;

/// The data of a QP.
#[repr(C)]
pub(crate) struct Qp<E = ()> {
    /// The engine's part, and the end of the object, by functions that know the former's type.
    engine_of: unsafe fn(*mut ibv_qp) -> &'static dyn QpEngine,
    free: unsafe fn(*mut ibv_qp),
    pub(crate) events: ObjectEvents,
    /// The attributes set by `modify_qp`. This lock comes before all of the engine's, whose callbacks must not take it.
    attributes: Lock<ibv_qp_attr>,
    cap: ibv_qp_cap,
    signal_all: bool,
    _uses: Vec<Use>,
    pub(crate) engine: E,
}

/// The struct is the extended one, whose first member is the `ibv_qp`.
impl<E> Behind<ibv_qp, ibv_qp_ex> for Qp<E> {}

/// The capacities for a request, never smaller. EINVAL beyond the limits.
fn room(
    requested: &ibv_qp_cap,
    shared_receives: bool,
    limits: &Limits,
) -> Result<ibv_qp_cap, c_int> {
    let mut cap = *requested;
    if shared_receives {
        cap.max_recv_wr = 0;
        cap.max_recv_sge = 0;
    }
    let (wrs, sges) = (limits.attributes.max_qp_wr, limits.attributes.max_sge);
    let fits = [cap.max_send_wr, cap.max_recv_wr].iter().all(|it| *it <= wrs.cast_unsigned())
        && [cap.max_send_sge, cap.max_recv_sge].iter().all(|it| *it <= sges.cast_unsigned())
        && cap.max_inline_data <= limits.inline_bytes;
    if !fits {
        return Err(libc::EINVAL);
    }
    if cap.max_send_wr > 0 {
        cap.max_send_sge = cap.max_send_sge.max(1);
    }
    if cap.max_recv_wr > 0 {
        cap.max_recv_sge = cap.max_recv_sge.max(1);
    }
    Ok(cap)
}

/// # Safety
/// As of [`new_qp`]; the engine is that of the context.
pub(crate) unsafe fn make<E: Objects>(
    engine: &E,
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    is_extended: bool,
) -> Result<*mut ibv_qp, c_int> {
    // SAFETY: a live domain of an open context, and live CQs; there may be no SRQ.
    let (context, open, domain, send, recv, shared) = unsafe {
        let (context, srq) = ((*pd).context, init.srq.as_ref());
        let open = Context::own(context)?;
        let cqs = [(*init.send_cq).context, (*init.recv_cq).context];
        if cqs != [context; 2] || srq.is_some_and(|srq| srq.context != context) {
            return Err(libc::EINVAL);
        }
        let [send, recv] = [init.send_cq, init.recv_cq].map(|cq| Cq::<E::Cq>::from_raw(cq));
        let shared = srq.map(|_| Srq::<E::Srq>::from_raw(init.srq));
        (context, open, Pd::from_raw(pd), send, recv, shared)
    };
    let mut cap = room(&init.cap, shared.is_some(), &open.limits)?;
    // Its events contain its address.
    let qp = Qp::<E::Qp>::reserve();
    let events = ObjectEvents::new(&open.events, Source::Qp(qp));
    let request = QpRequest {
        qp,
        pd: domain.id,
        init,
        cap: &mut cap,
        send_cq: &send.engine,
        recv_cq: &recv.engine,
        srq: shared.map(|shared| &shared.engine),
        is_extended,
        events: events.clone(),
    };
    let made = engine.create_qp(request).inspect_err(|_| {
        // SAFETY: reserved above, and nothing was made there.
        unsafe { Qp::<E::Qp>::give_up(qp) };
    })?;
    // SAFETY: pointers, integers, optional function pointers and pthread objects, for all of which zero is a value,
    // and RESET is 0.
    let mut verbs: ibv_qp_ex = unsafe { std::mem::zeroed() };
    let plain = &mut verbs.qp_base;
    plain.context = context;
    plain.qp_context = init.qp_context;
    plain.pd = pd;
    plain.send_cq = init.send_cq;
    plain.recv_cq = init.recv_cq;
    plain.srq = init.srq;
    plain.handle = made.number();
    plain.qp_num = made.number();
    plain.qp_type = init.qp_type;
    let mut uses = vec![domain.users.begin(), send.users.begin(), recv.users.begin()];
    uses.extend(shared.map(|shared| shared.users.begin()));
    let inner = Qp {
        // SAFETY: as the caller's: an object of this engine.
        engine_of: |object| unsafe { E::qp(object) },
        free: Qp::<E::Qp>::free,
        events,
        // SAFETY: integers and arrays of them: zero is a value of each.
        attributes: Lock::new(unsafe { std::mem::zeroed() }),
        cap,
        signal_all: init.sq_sig_all != 0,
        _uses: uses,
        engine: made,
    };
    init.cap = cap;
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(qp, verbs) };
    Ok(qp)
}

/// Creates a QP from plain attributes and writes back its capacities.
///
/// # Errors
/// The engine's for a service that it lacks; EINVAL beyond the limits, without CQs or with CQs of another context;
/// ENOMEM beyond the device's number of QPs.
pub unsafe fn new_qp(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    is_extended: bool,
) -> Result<*mut ibv_qp, c_int> {
    // SAFETY: a live domain or null, of an open context.
    let Some(context) = (unsafe { pd.as_ref().map(|pd| Context::from_raw(pd.context)) }) else {
        return Err(libc::EINVAL);
    };
    context.description().has_service(init.qp_type)?;
    if init.send_cq.is_null() || init.recv_cq.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: as the caller's.
    unsafe { context.maker.make_qp(pd, init, is_extended) }
}

/// `ibv_create_qp(3)`. The engine's error for a service that it lacks; EINVAL beyond the device's limits, without CQs or
/// with CQs of another context; ENOMEM beyond its number of QPs.
pub unsafe extern "C" fn create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: a live domain, and a struct that can be read and written.
    pointer_or_errno(unsafe { new_qp(pd, &mut *init, false) })
}

/// `ibv_qp_to_qp_ex(3)`: null for a QP created without operations for `ibv_wr_*`.
pub unsafe extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    // SAFETY: a live QP.
    let is_extended = unsafe { (Qp::<()>::from_raw(qp).engine_of)(qp) }.is_extended();
    if is_extended { qp.cast() } else { null_mut() }
}

/// A QP of a context that this process may use, and the context.
unsafe fn own<'a>(qp: *mut ibv_qp) -> Result<(&'a Qp, &'a Context), c_int> {
    // SAFETY: a live QP of an open context.
    unsafe { Context::own((*qp).context).map(|context| (Qp::from_raw(qp), context)) }
}

/// `mlx5dv_modify_qp_udp_sport(3)`: for RC and UC QPs in RTS, otherwise EOPNOTSUPP; the engine's error if it cannot.
pub unsafe extern "C" fn modify_qp_udp_sport(qp: *mut ibv_qp, _port: u16) -> c_int {
    // SAFETY: a live QP of an open context.
    let (outcome, has_port) = unsafe {
        let connected = (*qp).qp_type != ibv_qp_type::IBV_QPT_UD;
        let has_port = connected && (*qp).state == state::IBV_QPS_RTS;
        (Context::from_raw((*qp).context).description().has_udp_source_ports(), has_port)
    };
    zero_or_error(outcome.and(has_port.then_some(()).ok_or(libc::EOPNOTSUPP)))
}

/// `ibv_query_qp(3)`: all attributes, whatever the mask.
pub unsafe extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    _mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: a live QP, of which nothing changes but the state, and two writable structs of plain data.
    zero_or_error(unsafe {
        own(qp).map(|(inner, _)| {
            let kept = inner.attributes.lock();
            let engine = (inner.engine_of)(qp);
            attr.copy_from_nonoverlapping(&raw const *kept, 1);
            let attr = &mut *attr;
            attr.qp_state = engine.state(kept.qp_state);
            attr.cur_qp_state = attr.qp_state;
            attr.cap = inner.cap;
            engine.complete_query(attr);
            init.write(ibv_qp_init_attr {
                qp_context: (*qp).qp_context,
                send_cq: (*qp).send_cq,
                recv_cq: (*qp).recv_cq,
                srq: (*qp).srq,
                cap: inner.cap,
                qp_type: (*qp).qp_type,
                sq_sig_all: c_int::from(inner.signal_all),
            });
        })
    })
}

/// `ibv_destroy_qp(3)`: waits until the program has acknowledged all events that it took.
pub unsafe extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    // SAFETY: a live QP, to which nobody refers once its events have ended.
    zero_or_error(unsafe {
        own(qp).map(|_| {
            let inner = Qp::<()>::from_raw(qp);
            (inner.engine_of)(qp).close();
            inner.events.end();
            (inner.free)(qp);
        })
    })
}

/// A change of a QP whose transition and values were checked, but the address vector and the access flags.
pub struct Change<'a> {
    pub from: state::Type,
    pub to: state::Type,
    /// All attributes that were set so far, with the new ones.
    pub attr: &'a ibv_qp_attr,
    /// Names the new ones (`ibv_qp_attr_mask`).
    pub mask: u32,
}

impl Change<'_> {
    /// Whether it sets an attribute.
    pub fn has(&self, bit: Mask) -> bool {
        has(self.mask, bit)
    }
}

/// Mask of PSNs and QPNs.
const BITS_24: u32 = 0x00ff_ffff;
/// The largest code of a time-out and of the RNR pause.
const MAX_TIMER_CODE: u8 = 31;
const MAX_RETRIES: u8 = 7;

fn has(mask: u32, bit: Mask) -> bool {
    mask & bit.0 != 0
}

/// Whether each value that `mask` names is valid, except the port, the address vector and the access flags.
fn are_valid(attr: &ibv_qp_attr, mask: u32, limits: &Limits) -> bool {
    let depths = [limits.attributes.max_qp_init_rd_atom, limits.attributes.max_qp_rd_atom];
    let invalid = has(mask, Mask::IBV_QP_PKEY_INDEX) && attr.pkey_index != 0
        || has(mask, Mask::IBV_QP_PATH_MTU) && !(1..=limits.path_mtu).contains(&attr.path_mtu)
        || has(mask, Mask::IBV_QP_DEST_QPN) && attr.dest_qp_num > BITS_24
        || has(mask, Mask::IBV_QP_RQ_PSN) && attr.rq_psn > BITS_24
        || has(mask, Mask::IBV_QP_SQ_PSN) && attr.sq_psn > BITS_24
        || has(mask, Mask::IBV_QP_MAX_QP_RD_ATOMIC) && c_int::from(attr.max_rd_atomic) > depths[0]
        || has(mask, Mask::IBV_QP_MAX_DEST_RD_ATOMIC)
            && c_int::from(attr.max_dest_rd_atomic) > depths[1]
        || has(mask, Mask::IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_TIMEOUT) && attr.timeout > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_RETRY_CNT) && attr.retry_cnt > MAX_RETRIES
        || has(mask, Mask::IBV_QP_RNR_RETRY) && attr.rnr_retry > MAX_RETRIES
        // There is one path: no alternate one, and no migration.
        || has(mask, Mask::IBV_QP_ALT_PATH)
        || has(mask, Mask::IBV_QP_PATH_MIG_STATE)
            && attr.path_mig_state != ibv_mig_state::IBV_MIG_MIGRATED;
    !invalid
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

unsafe fn modify(qp: *mut ibv_qp, new: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, context, engine, qp_type) = unsafe {
        let (inner, context) = own(qp)?;
        (inner, context, (inner.engine_of)(qp), (*qp).qp_type)
    };
    let mut kept = inner.attributes.lock();
    let from = engine.state(kept.qp_state);
    let to = if has(mask, Mask::IBV_QP_STATE) { new.qp_state } else { from };
    let is_elsewhere = has(mask, Mask::IBV_QP_CUR_STATE) && new.cur_qp_state != from;
    let has_port =
        !has(mask, Mask::IBV_QP_PORT) || context.description().port(new.port_num.into()).is_some();
    if is_elsewhere
        || !allowed(qp_type, from, to, mask)
        || !has_port
        || !are_valid(new, mask, &context.limits)
    {
        return Err(libc::EINVAL);
    }
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    if to != state::IBV_QPS_RESET {
        merge(&mut attr, &kept, u32::MAX);
        merge(&mut attr, new, mask);
    }
    attr.qp_state = to;
    engine.modify(&Change { from, to, attr: &attr, mask })?;
    *kept = attr;
    // SAFETY: a live QP; like libibverbs, only this call writes the field.
    unsafe { (*qp).state = to };
    Ok(())
}

/// `ibv_modify_qp(3)`. EINVAL for an invalid transition, for missing or excess attributes, and for values out of range;
/// otherwise the engine's errors.
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
fn attributes(
    qp_type: ibv_qp_type::Type,
    from: state::Type,
    to: state::Type,
) -> Option<(u32, u32)> {
    use state::{
        IBV_QPS_ERR as ERR, IBV_QPS_INIT as INIT, IBV_QPS_RESET as RESET, IBV_QPS_RTR as RTR,
        IBV_QPS_RTS as RTS, IBV_QPS_SQD as SQD, IBV_QPS_SQE as SQE,
    };
    // By service: unreliable datagram, unreliable connection, reliable connection.
    let by_service = |ud: u32, uc: u32, rc: u32| match qp_type {
        ibv_qp_type::IBV_QPT_UD => ud,
        ibv_qp_type::IBV_QPT_UC => uc,
        _ => rc,
    };
    let first = PKEY | PORT | by_service(QKEY, ACCESS, ACCESS);
    let path = ALT_PATH | ACCESS | MIGRATION;
    // Attributes that may change while the QP sends.
    let running = CUR_STATE | by_service(QKEY, path, path | MIN_RNR_TIMER);
    Some(match (from, to) {
        // Linux allows no transition from RESET to ERR, although the specification says "any state".
        (RESET, RESET) | (INIT | RTR | RTS | SQD | SQE | ERR, RESET | ERR) => (0, 0),
        (RESET, INIT) => (first, 0),
        (INIT, INIT) => (0, first),
        (INIT, RTR) => {
            let connected = AV | PATH_MTU | DEST_QPN | RQ_PSN;
            let reliable = connected | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
            let optional = by_service(QKEY, ALT_PATH | ACCESS, ALT_PATH | ACCESS);
            (by_service(0, connected, reliable), PKEY | optional)
        }
        (RTR, RTS) => {
            let reliable = TIMEOUT | RETRY | SQ_PSN | MAX_RD_ATOMIC;
            (by_service(SQ_PSN, SQ_PSN, reliable), running)
        }
        (RTS | SQD, RTS) => (0, running),
        (RTS, SQD) => (0, SQD_NOTIFY),
        (SQD, SQD) => {
            let connected = AV | PKEY | path;
            let depths = MAX_RD_ATOMIC | MAX_DEST_RD_ATOMIC;
            let reliable = connected | PORT | TIMEOUT | RETRY | depths | MIN_RNR_TIMER;
            (0, by_service(PKEY | QKEY, connected, reliable))
        }
        // A reliable QP is never in SQE.
        (SQE, RTS) => (0, by_service(CUR_STATE | QKEY, CUR_STATE | ACCESS, 0)),
        _ => return None,
    })
}

/// The attributes that a valid transition requires, with the state.
pub fn required(qp_type: ibv_qp_type::Type, from: state::Type, to: state::Type) -> u32 {
    STATE | attributes(qp_type, from, to).map_or(0, |(required, _)| required)
}

/// Whether a QP may change `from` one state `to` another with the attributes of `mask`.
fn allowed(qp_type: ibv_qp_type::Type, from: state::Type, to: state::Type, mask: u32) -> bool {
    // Only in these states can the state have changed by itself.
    let may_say_current = (state::IBV_QPS_RTR..=state::IBV_QPS_SQE).contains(&from);
    if mask & CUR_STATE != 0 && !may_say_current {
        return false;
    }
    attributes(qp_type, from, to).is_some_and(|(required, optional)| {
        mask & required == required && mask & !(required | optional | STATE) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        // SAFETY: integers and arrays of them: zero is a value of each.
        let mut attributes: rdma_sys::ibv_device_attr = unsafe { std::mem::zeroed() };
        attributes.max_qp_wr = 100;
        attributes.max_sge = 16;
        attributes.max_qp_rd_atom = 128;
        attributes.max_qp_init_rd_atom = 127;
        Limits { attributes, inline_bytes: 1024, path_mtu: 3, completion_vectors: 1 }
    }

    #[test]
    fn room_is_no_less_than_asked_and_no_more_than_there_is() {
        let wanted = ibv_qp_cap {
            max_send_wr: 7,
            max_recv_wr: 9,
            max_send_sge: 0,
            max_recv_sge: 2,
            max_inline_data: 100,
        };
        let room = |cap: &ibv_qp_cap, shared| room(cap, shared, &limits());
        let granted = room(&wanted, false).unwrap();
        assert_eq!((granted.max_send_wr, granted.max_recv_wr), (7, 9));
        assert_eq!((granted.max_send_sge, granted.max_recv_sge), (1, 2));
        assert_eq!(granted.max_inline_data, 100);
        let shared = room(&wanted, true).unwrap();
        assert_eq!((shared.max_recv_wr, shared.max_recv_sge), (0, 0));
        type Member = fn(&mut ibv_qp_cap) -> &mut u32;
        let members: [(Member, u32); 5] = [
            (|cap| &mut cap.max_send_wr, 100),
            (|cap| &mut cap.max_recv_wr, 100),
            (|cap| &mut cap.max_send_sge, 16),
            (|cap| &mut cap.max_recv_sge, 16),
            (|cap| &mut cap.max_inline_data, 1024),
        ];
        for (member, limit) in members {
            let mut cap = wanted;
            *member(&mut cap) = limit;
            assert!(room(&cap, false).is_ok());
            *member(&mut cap) = limit + 1;
            assert_eq!(room(&cap, false).err(), Some(libc::EINVAL));
        }
    }

    fn set(attr: &mut ibv_qp_attr, bit: Mask, value: u32) {
        match bit {
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
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_checked_where_the_mask_names_them() {
        let cases: [(Mask, &[u32], &[u32]); 12] = [
            (Mask::IBV_QP_PKEY_INDEX, &[0], &[1]),
            (Mask::IBV_QP_PATH_MTU, &[1, 3], &[0, 4, 5, 6]),
            (Mask::IBV_QP_DEST_QPN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_RQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_SQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_MAX_QP_RD_ATOMIC, &[0, 127], &[128]),
            (Mask::IBV_QP_MAX_DEST_RD_ATOMIC, &[0, 128], &[129]),
            (Mask::IBV_QP_MIN_RNR_TIMER, &[0, 31], &[32]),
            (Mask::IBV_QP_TIMEOUT, &[0, 31], &[32]),
            (Mask::IBV_QP_RETRY_CNT, &[0, 7], &[8]),
            (Mask::IBV_QP_RNR_RETRY, &[0, 7], &[8]),
            (Mask::IBV_QP_PATH_MIG_STATE, &[0], &[1, 2]),
        ];
        for (bit, good, bad) in cases {
            // SAFETY: integers and arrays of them: zero is a value of each.
            let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
            for value in [good, bad].concat() {
                set(&mut attr, bit, value);
                let is_good = [bit.0, 0].map(|mask| are_valid(&attr, mask, &limits()));
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

    const SERVICES: [ibv_qp_type::Type; 3] =
        [ibv_qp_type::IBV_QPT_RC, ibv_qp_type::IBV_QPT_UC, ibv_qp_type::IBV_QPT_UD];
    const STATES: std::ops::RangeInclusive<u32> = state::IBV_QPS_RESET..=state::IBV_QPS_ERR;

    #[test]
    fn exactly_these_states_follow_each_other() {
        use state::*;
        for (from, followers) in [
            (IBV_QPS_RESET, &[IBV_QPS_RESET, IBV_QPS_INIT] as &[u32]),
            (IBV_QPS_INIT, &[IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RTR]),
            (IBV_QPS_RTR, &[IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS]),
            (IBV_QPS_RTS, &[IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QPS_SQD]),
            (IBV_QPS_SQD, &[IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS, IBV_QPS_SQD]),
            (IBV_QPS_SQE, &[IBV_QPS_RESET, IBV_QPS_ERR, IBV_QPS_RTS]),
            (IBV_QPS_ERR, &[IBV_QPS_RESET, IBV_QPS_ERR]),
        ] {
            for to in 0..=7 {
                for service in SERVICES {
                    let exists = attributes(service, from, to).is_some();
                    assert_eq!(exists, followers.contains(&to), "{service} {from} -> {to}");
                }
            }
        }
    }

    #[test]
    fn each_required_attribute_is_missed_and_each_foreign_one_refused() {
        let mut checked = 0;
        for service in SERVICES {
            for from in STATES {
                for to in STATES {
                    let Some((required, optional)) = attributes(service, from, to) else {
                        continue;
                    };
                    assert!(allowed(service, from, to, required | STATE));
                    assert!(allowed(service, from, to, required | optional | STATE));
                    for bit in (0..32).map(|shift| 1 << shift) {
                        let place = format!("{service} {from} -> {to} {bit:#x}");
                        if required & bit != 0 {
                            assert!(!allowed(service, from, to, required & !bit), "{place}");
                            checked += 1;
                        } else if (optional | STATE) & bit == 0 {
                            assert!(!allowed(service, from, to, required | bit), "{place}");
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
        let needs = |from, to| SERVICES.map(|service| attributes(service, from, to).unwrap().0);
        // Of RC, UC and UD.
        assert_eq!(needs(state::IBV_QPS_RESET, state::IBV_QPS_INIT), [0x38, 0x38, 0x70]);
        assert_eq!(needs(state::IBV_QPS_INIT, state::IBV_QPS_RTR), [0x129180, 0x101180, 0]);
        assert_eq!(needs(state::IBV_QPS_RTR, state::IBV_QPS_RTS), [0x12e00, 0x10000, 0x10000]);
    }
}
