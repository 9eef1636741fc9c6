//! Creating queue pairs: checks the request and creates a QP of the transport.

use std::os::raw::c_int;
use std::sync::Arc;

use rdma_sys::{
    ibv_context, ibv_event_type, ibv_pd, ibv_qp, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr,
    ibv_qp_init_attr_ex, ibv_qp_init_attr_mask, ibv_qp_type,
};

use super::context::{Acks, Context, Source};
use super::cq::Cq;
use super::domain::Pd;
use super::errno::{pointer_or_errno, refuse};
use super::object::{Behind, Users};
use super::post;
use super::post::Srq;
use super::qp::{Builder, Qp};
use super::query::{MAX_INLINE_BYTES, MAX_QP_WR, MAX_SGE};
use crate::lock::Lock;
use crate::transport;
use crate::transport::{Capacities, Kind, QpEvent, QpOptions, ReceiveSource, State};

/// The service in the form of the transport. EOPNOTSUPP for XRC, raw packets and others.
fn kind(qp_type: ibv_qp_type::Type) -> Result<Kind, c_int> {
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

/// The capacities for a request, never smaller. EINVAL beyond the limits.
fn room(requested: &ibv_qp_cap, shared_receives: bool) -> Result<ibv_qp_cap, c_int> {
    let mut cap = *requested;
    if shared_receives {
        cap.max_recv_wr = 0;
        cap.max_recv_sge = 0;
    }
    let fits = cap.max_send_wr <= MAX_QP_WR
        && cap.max_recv_wr <= MAX_QP_WR
        && cap.max_send_sge <= MAX_SGE
        && cap.max_recv_sge <= MAX_SGE
        && cap.max_inline_data <= MAX_INLINE_BYTES;
    if !fits {
        return Err(libc::EINVAL);
    }
    if cap.max_send_wr > 0 {
        cap.max_send_sge = cap.max_send_sge.max(1);
        // A request has this room anyway.
        let elements_bytes = cap.max_send_sge * size_of::<transport::Sge>() as u32;
        cap.max_inline_data = cap.max_inline_data.max(elements_bytes);
    }
    if cap.max_recv_wr > 0 {
        cap.max_recv_sge = cap.max_recv_sge.max(1);
    }
    Ok(cap)
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

/// Creates a QP from plain attributes and writes back its capacities; `operations` are the flags of
/// `ibv_qp_create_send_ops_flags` for `ibv_wr_*`.
unsafe fn create(
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    operations: Option<u64>,
) -> Result<*mut ibv_qp, c_int> {
    let kind = kind(init.qp_type)?;
    if let Some(operations) = operations {
        post::check_operations(kind, operations)?;
    }
    let cap = room(&init.cap, !init.srq.is_null())?;
    if pd.is_null() || init.send_cq.is_null() || init.recv_cq.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: live objects; there may be no SRQ.
    let (context, device, domain, send_cq, recv_cq, shared) = unsafe {
        let (context, shared) = ((*pd).context, init.srq.as_ref());
        let cqs = [(*init.send_cq).context, (*init.recv_cq).context];
        if cqs != [context; 2] || shared.is_some_and(|shared| shared.context != context) {
            return Err(libc::EINVAL);
        }
        (
            context,
            Context::own(context)?,
            Pd::from_raw(pd),
            Cq::from_raw(init.send_cq),
            Cq::from_raw(init.recv_cq),
            shared.map(|_| Srq::from_raw(init.srq)),
        )
    };
    // Its events contain its address.
    let object = Qp::reserve();
    let acks = Arc::new(Acks::default());
    let raise = device.events_of(Source::Qp(object), &acks);
    let options = QpOptions {
        kind,
        pd: domain.id,
        send_cq: send_cq.transport.clone(),
        recv_cq: recv_cq.transport.clone(),
        receives: shared
            .map_or(ReceiveSource::Own, |shared| ReceiveSource::Shared(shared.queue.clone())),
        capacities: Capacities {
            send_wrs: cap.max_send_wr,
            recv_wrs: cap.max_recv_wr,
            send_sges: cap.max_send_sge,
            recv_sges: cap.max_recv_sge,
            inline_bytes: cap.max_inline_data,
        },
        signal_all: init.sq_sig_all != 0,
        on_event: Box::new(move |event| raise(event_kind(event))),
    };
    let Some(transport) = transport::Qp::new(&device.nic, options) else {
        // SAFETY: reserved above, and nothing was made there.
        unsafe { Qp::give_up(object) };
        return Err(libc::ENOMEM);
    };
    // SAFETY: pointers, integers, optional function pointers and pthread objects, for all of which zero is a value.
    let mut verbs: ibv_qp_ex = unsafe { std::mem::zeroed() };
    let plain = &mut verbs.qp_base;
    plain.context = context;
    plain.qp_context = init.qp_context;
    plain.pd = pd;
    plain.send_cq = init.send_cq;
    plain.recv_cq = init.recv_cq;
    plain.srq = init.srq;
    plain.handle = transport.number();
    plain.qp_num = transport.number();
    plain.qp_type = init.qp_type;
    plain.state = State::Reset as u32;
    if let Some(operations) = operations {
        post::fill_extended(&mut verbs, operations);
    }
    let used = [&domain.users, &send_cq.users, &recv_cq.users];
    let mut uses = Vec::from(used.map(Users::begin));
    uses.extend(shared.map(|shared| shared.users.begin()));
    let inner = Qp {
        transport,
        kind,
        acks,
        builder: operations.map(|_| Builder::default()),
        // SAFETY: integers and arrays of them: zero is a value of each.
        attributes: Lock::new(unsafe { std::mem::zeroed() }),
        cap,
        signal_all: init.sq_sig_all != 0,
        _uses: uses,
    };
    init.cap = cap;
    // SAFETY: reserved above for just this.
    unsafe { inner.lend_at(object, verbs) };
    Ok(object)
}

/// `ibv_create_qp(3)`: RC, UC and UD, others EOPNOTSUPP. EINVAL beyond the device's limits, without CQs or with CQs
/// of another context; ENOMEM beyond its number of QPs.
pub unsafe extern "C" fn create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: a live domain, and a struct that can be read and written.
    pointer_or_errno(unsafe { create(pd, &mut *init, None) })
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

/// `ibv_create_qp_ex(3)`, by the pointer in `verbs_context`. As [`create_qp`]; EOPNOTSUPP for extensions other than
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
    // SAFETY: a live domain, and what the attributes name.
    let made = unsafe { create(init.pd, &mut plain, operations) };
    init.cap = plain.cap;
    pointer_or_errno(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_no_less_than_asked_and_no_more_than_there_is() {
        let wanted = ibv_qp_cap {
            max_send_wr: 7,
            max_recv_wr: 9,
            max_send_sge: 0,
            max_recv_sge: 2,
            max_inline_data: 100,
        };
        let granted = room(&wanted, false).unwrap();
        assert_eq!((granted.max_send_wr, granted.max_recv_wr), (7, 9));
        assert_eq!((granted.max_send_sge, granted.max_recv_sge), (1, 2));
        assert_eq!(granted.max_inline_data, 100);
        for (sges, inline_bytes) in [(0, 16), (1, 16), (16, 256)] {
            let wanted = ibv_qp_cap { max_send_sge: sges, max_inline_data: 0, ..wanted };
            assert_eq!(room(&wanted, false).unwrap().max_inline_data, inline_bytes);
        }
        let shared = room(&wanted, true).unwrap();
        assert_eq!((shared.max_recv_wr, shared.max_recv_sge), (0, 0));
        type Member = fn(&mut ibv_qp_cap) -> &mut u32;
        let limits: [(Member, u32); 5] = [
            (|cap| &mut cap.max_send_wr, MAX_QP_WR),
            (|cap| &mut cap.max_recv_wr, MAX_QP_WR),
            (|cap| &mut cap.max_send_sge, MAX_SGE),
            (|cap| &mut cap.max_recv_sge, MAX_SGE),
            (|cap| &mut cap.max_inline_data, MAX_INLINE_BYTES),
        ];
        for (member, limit) in limits {
            let mut cap = wanted;
            *member(&mut cap) = limit;
            assert!(room(&cap, false).is_ok());
            *member(&mut cap) = limit + 1;
            assert_eq!(room(&cap, false).err(), Some(libc::EINVAL));
        }
    }
}
