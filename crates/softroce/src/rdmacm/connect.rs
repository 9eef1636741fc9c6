//! Asking for connections, accepting, refusing and ending them.

use std::os::raw::{c_int, c_void};
use std::ptr::null;

use provider::{Behind, DEFAULT_PKEY, minus_one_or_zero};
use rdma_sys::{ibv_event_type, rdma_cm_id, rdma_conn_param};

use super::event::{complete, of_connection};
use super::id::{Id, PortSpace};
use super::state::State;
use super::terms::{ACK_TIMEOUT, HOP_LIMIT, PSN_BITS, Terms, UDP_QKEY};
use super::{qp, state};
use crate::verbs::query::{LOCAL_ACK_DELAY, MAX_RD_ATOM};
use crate::wire::as_ipv6;
use crate::wire::cm::{
    IP_HEADER_BYTES, IpHeader, PROGRAM_DATA_BYTES, REJ_DATA_BYTES, REP_DATA_BYTES, RejReason, Rep,
    Req, SIDR_REP_DATA_BYTES, SIDR_REQ_DATA_BYTES, SidrRep, SidrReq, SidrStatus,
};

/// "As many as the device can" (`RDMA_MAX_RESP_RES`, `RDMA_MAX_INIT_DEPTH`).
const AS_MANY_AS_CAN_BE: u8 = 0xff;
/// Retries of a program that gives no parameters.
const RETRIES: u8 = 7;

/// A program's private data; none without a place.
///
/// # Safety
/// `place` is null or has so many readable bytes.
unsafe fn bytes<'a>(place: *const c_void, length: u8) -> &'a [u8] {
    if place.is_null() {
        return &[];
    }
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(place.cast(), length.into()) }
}

/// Whether it is a number of READs at once that the device can do.
fn is_depth(depth: u8) -> bool {
    depth <= MAX_RD_ATOM || depth == AS_MANY_AS_CAN_BE
}

/// The number of READs at once that a program wants, or as many as the other end offers and the device can do.
fn chosen_depth(wanted: u8, offered: u8) -> u8 {
    match wanted {
        AS_MANY_AS_CAN_BE => offered.min(MAX_RD_ATOM),
        _ => wanted,
    }
}

/// The parameters of a program, or the usual ones, and of the id's QP if it has one. EINVAL for more private data than the
/// message has room for, for more READs than the device does, and without parameters and QP.
unsafe fn wanted<'a>(
    id: *mut rdma_cm_id,
    given: *const rdma_conn_param,
    room_bytes: usize,
) -> Result<(rdma_conn_param, &'a [u8]), c_int> {
    // SAFETY: a live QP or null; null or readable.
    let (qp, given) = unsafe { ((*id).qp.as_ref(), given.as_ref()) };
    let mut wanted = *given.unwrap_or(&rdma_conn_param {
        private_data: null(),
        private_data_len: 0,
        responder_resources: AS_MANY_AS_CAN_BE,
        initiator_depth: AS_MANY_AS_CAN_BE,
        flow_control: 1,
        retry_count: RETRIES,
        rnr_retry_count: RETRIES,
        srq: 0,
        qp_num: 0,
    });
    match (qp, given) {
        (Some(qp), _) => (wanted.srq, wanted.qp_num) = ((!qp.srq.is_null()).into(), qp.qp_num),
        (None, Some(_)) => {}
        (None, None) => return Err(libc::EINVAL),
    }
    wanted.retry_count = wanted.retry_count.min(RETRIES);
    wanted.rnr_retry_count = wanted.rnr_retry_count.min(RETRIES);
    // SAFETY: as long as the program says.
    let data = unsafe { bytes(wanted.private_data, wanted.private_data_len) };
    let has_room = data.len() <= room_bytes;
    if has_room && is_depth(wanted.responder_resources) && is_depth(wanted.initiator_depth) {
        Ok((wanted, data))
    } else {
        Err(libc::EINVAL)
    }
}

fn ask(
    state: &mut State,
    now: u64,
    key: u64,
    wanted: &rdma_conn_param,
    private_data: &[u8],
) -> Result<(), c_int> {
    let entry = state.entry(key)?;
    let (Some(local), Some(remote), Some(address), None) =
        (entry.local, entry.remote, entry.device, entry.comm)
    else {
        return Err(libc::EINVAL);
    };
    let (traffic_class, ack_timeout) = (entry.traffic_class, entry.ack_timeout);
    let service = entry.space.service(remote.port());
    let header =
        IpHeader { source_port: local.port(), source: local.ip(), destination: remote.ip() };
    // The answer is taken under the same lock, so that the number is known before.
    let number = match entry.space {
        PortSpace::Udp => {
            entry.terms = Terms::of_datagrams(remote.ip());
            let req = Box::new(SidrReq {
                request: 0,
                pkey: DEFAULT_PKEY,
                service,
                private_data: header.join(private_data),
            });
            state.run(address, |manager, out| manager.look_up(now, remote.ip(), req, out))
        }
        PortSpace::Tcp => {
            let req = Box::new(Req {
                service,
                qpn: wanted.qp_num & PSN_BITS,
                responder_resources: wanted.responder_resources.min(MAX_RD_ATOM),
                initiator_depth: wanted.initiator_depth.min(MAX_RD_ATOM),
                flow_control: wanted.flow_control != 0,
                starting_psn: fastrand::u32(..) & PSN_BITS,
                retry_count: wanted.retry_count,
                pkey: DEFAULT_PKEY,
                mtu: state.devices.get(address).ok_or(libc::ENODEV)?.mtu,
                rnr_retry_count: wanted.rnr_retry_count,
                srq: wanted.srq != 0,
                local_gid: as_ipv6(local.ip()).octets(),
                remote_gid: as_ipv6(remote.ip()).octets(),
                traffic_class,
                hop_limit: HOP_LIMIT,
                ack_timeout: ack_timeout.unwrap_or(ACK_TIMEOUT),
                private_data: header.join(private_data),
                ..Req::default()
            });
            state.entry(key)?.terms = Terms::asking(remote.ip(), &req);
            state.run(address, |manager, out| manager.connect(now, remote.ip(), req, out))
        }
    };
    let comm = number.ok_or(libc::ENODEV)?;
    state.entry(key)?.comm = Some(comm);
    let device = state.devices.get(address).ok_or(libc::ENODEV)?;
    device.ids.insert(comm, key);
    Ok(())
}

/// `rdma_connect(3)`: asks for a connection, or for the QP of a datagram service; without a QP of the id its number is in the
/// parameters. EINVAL for more than 56 bytes of private data, 180 for datagrams, or more READs at once than the device does.
pub unsafe extern "C" fn connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    // SAFETY: a live id.
    let inner = unsafe { Id::from_raw(id) };
    let room_bytes = match inner.space {
        PortSpace::Tcp => PROGRAM_DATA_BYTES,
        PortSpace::Udp => SIDR_REQ_DATA_BYTES - IP_HEADER_BYTES,
    };
    // SAFETY: a live id; parameters or null.
    let result = unsafe { wanted(id, parameters, room_bytes) }.and_then(|(wanted, data)| {
        state::with(|state, now| ask(state, now, inner.key, &wanted, data))
    });
    // SAFETY: a live id.
    minus_one_or_zero(result.and_then(|()| unsafe { complete(id) }))
}

unsafe fn answer(id: *mut rdma_cm_id, parameters: *const rdma_conn_param) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let ((wanted, data), key) =
        unsafe { (wanted(id, parameters, REP_DATA_BYTES)?, Id::from_raw(id).key) };
    let terms = state::with(|state, _| {
        let terms = &mut state.entry(key)?.terms;
        terms.responder_resources =
            chosen_depth(wanted.responder_resources, terms.responder_resources);
        terms.initiator_depth = chosen_depth(wanted.initiator_depth, terms.initiator_depth);
        Ok::<_, c_int>(*terms)
    })?;
    let rep = Box::new(Rep {
        qpn: wanted.qp_num & PSN_BITS,
        starting_psn: terms.rq_psn,
        responder_resources: terms.responder_resources,
        initiator_depth: terms.initiator_depth,
        target_ack_delay: LOCAL_ACK_DELAY,
        flow_control: wanted.flow_control != 0,
        rnr_retry_count: wanted.rnr_retry_count,
        srq: wanted.srq != 0,
        private_data: data.to_vec(),
        ..Rep::default()
    });
    // SAFETY: a live id, with its QP if it has one.
    unsafe {
        qp::to_rts(id)?;
        of_connection(id, |it, now, out| it.accept(now, rep, out))
    }
}

/// Tells the QP of a datagram service.
unsafe fn tell_qp(id: *mut rdma_cm_id, parameters: *const rdma_conn_param) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let (wanted, data) = unsafe { wanted(id, parameters, SIDR_REP_DATA_BYTES) }?;
    let rep = Box::new(SidrRep {
        status: SidrStatus::VALID,
        qpn: wanted.qp_num & PSN_BITS,
        qkey: UDP_QKEY,
        private_data: data.to_vec(),
        ..SidrRep::default()
    });
    // SAFETY: a live id.
    unsafe { of_connection(id, |it, _, out| it.answer(rep, out)) }
}

/// `rdma_accept(3)`: brings the id's QP, if it has one, to RTS, and replies. Of datagrams there is no event.
pub unsafe extern "C" fn accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    // SAFETY: a live id, with its QP if it has one; parameters or null.
    minus_one_or_zero(unsafe {
        match Id::from_raw(id).space {
            PortSpace::Udp => tell_qp(id, parameters),
            PortSpace::Tcp => {
                answer(id, parameters).inspect_err(|_| qp::fail(id)).and_then(|()| complete(id))
            }
        }
    })
}

/// `rdma_establish(3)`, for an id without a QP of its own.
pub unsafe extern "C" fn establish(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id.
    minus_one_or_zero(unsafe {
        if (*id).qp.is_null() {
            of_connection(id, |it, _, out| it.establish(out))
        } else {
            Err(libc::EINVAL)
        }
    })
}

/// `rdma_reject(3)`. EINVAL for more than 148 bytes of private data.
pub unsafe extern "C" fn reject(
    id: *mut rdma_cm_id,
    private_data: *const c_void,
    private_data_bytes: u8,
) -> c_int {
    // SAFETY: a live id, and data as long as the program says.
    minus_one_or_zero(unsafe {
        match bytes(private_data, private_data_bytes) {
            data if data.len() > REJ_DATA_BYTES => Err(libc::EINVAL),
            data => of_connection(id, |it, _, out| it.reject(RejReason::CONSUMER, data, out)),
        }
    })
}

/// `rdma_disconnect(3)`: flushes the id's QP if it has one, and tells the other end. Where the connection has ended
/// already there is nothing to tell.
pub unsafe extern "C" fn disconnect(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id, with its QP if it has one.
    let inner = unsafe {
        qp::fail(id);
        Id::from_raw(id)
    };
    let terms = state::with(|state, _| state.entry(inner.key).map(|entry| entry.terms));
    // SAFETY: as above.
    minus_one_or_zero(terms.and_then(|terms| unsafe {
        terms.peer.ok_or(libc::EINVAL)?;
        // It may have ended, at this end or the other.
        let _ = of_connection(id, crate::cm::Connection::disconnect);
        match inner.space {
            PortSpace::Tcp => complete(id),
            // There is no connection, and no event.
            PortSpace::Udp => Ok(()),
        }
    }))
}

/// `rdma_notify(3)`: data on a QP (`IBV_EVENT_COMM_EST`) stands for a confirmation that was lost.
pub unsafe extern "C" fn notify(id: *mut rdma_cm_id, event: c_int) -> c_int {
    if event != ibv_event_type::IBV_EVENT_COMM_EST as c_int {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: a live id.
    minus_one_or_zero(unsafe { of_connection(id, |it, _, out| it.notice_data(out)) })
}
