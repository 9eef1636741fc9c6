//! Asking for connections, accepting, refusing and ending them.

use std::os::raw::{c_int, c_void};

use rdma_sys::{ibv_event_type, rdma_cm_id, rdma_conn_param};

use super::event::complete;
use super::id::Id;
use super::port_space::PortSpace;
use super::qp;
use super::service;
use super::state::State;
use super::terms::{ACK_TIMEOUT, HOP_LIMIT, PSN_BITS, Terms, UDP_QKEY};
use crate::verbs::errno::minus_one_or_zero;
use crate::verbs::limits::{LOCAL_ACK_DELAY, MAX_RD_ATOM};
use crate::verbs::object::Behind;
use crate::verbs::port::DEFAULT_PKEY;
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
    match place.is_null() {
        true => &[],
        // SAFETY: the caller's.
        false => unsafe { std::slice::from_raw_parts(place.cast(), length.into()) },
    }
}

/// The parameters of a program.
struct Wanted<'a> {
    private_data: &'a [u8],
    /// `None`: as many as can be.
    responder_resources: Option<u8>,
    initiator_depth: Option<u8>,
    flow_control: bool,
    retry_count: u8,
    rnr_retry_count: u8,
    srq: bool,
    qpn: u32,
}

impl Wanted<'_> {
    /// Of the parameters, and of the id's QP if it has one. EINVAL for more private data than the message has room for,
    /// for more READs than the device does, and without parameters and QP.
    ///
    /// # Safety
    /// `id` is live, `parameters` null or readable with its private data.
    unsafe fn read<'a>(
        id: *mut rdma_cm_id,
        parameters: *const rdma_conn_param,
        room_bytes: usize,
    ) -> Result<Wanted<'a>, c_int> {
        // SAFETY: a live QP or null.
        let qp = unsafe { (*id).qp.as_ref() };
        // SAFETY: null or readable.
        let parameters = unsafe { parameters.as_ref() };
        let depth = |number: Option<u8>| match number {
            None | Some(AS_MANY_AS_CAN_BE) => Ok(None),
            Some(0..=MAX_RD_ATOM) => Ok(number),
            _ => Err(libc::EINVAL),
        };
        let retries = |count: fn(&rdma_conn_param) -> u8| {
            parameters.map_or(RETRIES, |given| count(given).min(RETRIES))
        };
        let (srq, qpn) = match (qp, parameters) {
            (Some(qp), _) => (!qp.srq.is_null(), qp.qp_num),
            (None, Some(given)) => (given.srq != 0, given.qp_num),
            (None, None) => return Err(libc::EINVAL),
        };
        let private_data = parameters.map_or(&[][..], |given| {
            // SAFETY: as long as the program says.
            unsafe { bytes(given.private_data, given.private_data_len) }
        });
        if private_data.len() > room_bytes {
            return Err(libc::EINVAL);
        }
        Ok(Wanted {
            private_data,
            responder_resources: depth(parameters.map(|given| given.responder_resources))?,
            initiator_depth: depth(parameters.map(|given| given.initiator_depth))?,
            flow_control: parameters.is_none_or(|given| given.flow_control != 0),
            retry_count: retries(|given| given.retry_count),
            rnr_retry_count: retries(|given| given.rnr_retry_count),
            srq,
            qpn,
        })
    }
}

fn ask(state: &mut State, now: u64, key: u64, wanted: &Wanted<'_>) -> Result<(), c_int> {
    let entry = state.entry(key)?;
    let (Some(local), Some(remote), Some(address), None) =
        (entry.local, entry.remote, entry.device, entry.comm)
    else {
        return Err(libc::EINVAL);
    };
    let (traffic_class, ack_timeout) = (entry.traffic_class, entry.ack_timeout);
    let service = entry.space.service(remote.port());
    let header = IpHeader {
        source_port: local.port(),
        source: local.ip(),
        destination: remote.ip(),
    };
    if entry.space == PortSpace::Udp {
        entry.terms = Terms::of_datagrams(remote.ip());
        let req = Box::new(SidrReq {
            request: 0,
            pkey: DEFAULT_PKEY,
            service,
            private_data: header.join(wanted.private_data),
        });
        let asked = state.run(address, |manager, out| {
            manager.look_up(now, remote.ip(), req, out)
        });
        return state.has_asked(key, address, asked);
    }
    let req = Box::new(Req {
        service,
        qpn: wanted.qpn & PSN_BITS,
        responder_resources: wanted.responder_resources.unwrap_or(MAX_RD_ATOM),
        initiator_depth: wanted.initiator_depth.unwrap_or(MAX_RD_ATOM),
        flow_control: wanted.flow_control,
        starting_psn: fastrand::u32(..) & PSN_BITS,
        retry_count: wanted.retry_count,
        pkey: DEFAULT_PKEY,
        mtu: state.devices.get(address).ok_or(libc::ENODEV)?.mtu(),
        rnr_retry_count: wanted.rnr_retry_count,
        srq: wanted.srq,
        local_gid: as_ipv6(local.ip()).octets(),
        remote_gid: as_ipv6(remote.ip()).octets(),
        traffic_class,
        hop_limit: HOP_LIMIT,
        ack_timeout: ack_timeout.unwrap_or(ACK_TIMEOUT),
        private_data: header.join(wanted.private_data),
        ..Req::default()
    });
    let terms = Terms::asking(remote.ip(), &req);
    let entry = state.entry(key)?;
    entry.terms = terms;
    // The answer is taken under the same lock, so that the number is known before.
    let asked = state.run(address, |manager, out| {
        manager.connect(now, remote.ip(), req, out)
    });
    state.has_asked(key, address, asked)
}

/// `rdma_connect(3)`: asks for a connection, or for the QP of a datagram service; without a QP of the id its number is in the
/// parameters. EINVAL for more than 56 bytes of private data, 180 for datagrams, or more READs at once than the device does.
pub unsafe extern "C" fn connect(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    // SAFETY: a live id.
    let inner = unsafe { Id::of(id) };
    let room_bytes = match inner.space {
        PortSpace::Tcp => PROGRAM_DATA_BYTES,
        PortSpace::Udp => SIDR_REQ_DATA_BYTES - IP_HEADER_BYTES,
    };
    // SAFETY: a live id; parameters or null.
    let asked = unsafe { Wanted::read(id, parameters, room_bytes) }
        .and_then(|wanted| service::with(|state, now| ask(state, now, inner.key, &wanted)));
    // SAFETY: a live id.
    minus_one_or_zero(asked.and_then(|()| unsafe { complete(id) }))
}

unsafe fn answer(id: *mut rdma_cm_id, parameters: *const rdma_conn_param) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let wanted = unsafe { Wanted::read(id, parameters, REP_DATA_BYTES) }?;
    // SAFETY: a live id.
    let key = unsafe { Id::of(id) }.key;
    service::with(|state, _| {
        let terms = &mut state.entry(key)?.terms;
        let chosen = |wanted: Option<u8>, offered: u8| wanted.unwrap_or(offered.min(MAX_RD_ATOM));
        terms.responder_resources = chosen(wanted.responder_resources, terms.responder_resources);
        terms.initiator_depth = chosen(wanted.initiator_depth, terms.initiator_depth);
        Ok::<_, c_int>(())
    })?;
    // SAFETY: a live id, with its QP if it has one.
    unsafe { qp::to_rts(id) }?;
    service::with(|state, _| {
        let terms = &state.entry(key)?.terms;
        let rep = Box::new(Rep {
            qpn: wanted.qpn & PSN_BITS,
            starting_psn: terms.rq_psn,
            responder_resources: terms.responder_resources,
            initiator_depth: terms.initiator_depth,
            target_ack_delay: LOCAL_ACK_DELAY,
            flow_control: wanted.flow_control,
            rnr_retry_count: wanted.rnr_retry_count,
            srq: wanted.srq,
            private_data: wanted.private_data.to_vec(),
            ..Rep::default()
        });
        state.of_connection(key, |it, now, out| it.accept(now, rep, out))
    })
}

/// Tells the QP of a datagram service.
unsafe fn tell_qp(id: *mut rdma_cm_id, parameters: *const rdma_conn_param) -> Result<(), c_int> {
    // SAFETY: the caller's.
    let wanted = unsafe { Wanted::read(id, parameters, SIDR_REP_DATA_BYTES) }?;
    let rep = Box::new(SidrRep {
        qpn: wanted.qpn & PSN_BITS,
        qkey: UDP_QKEY,
        private_data: wanted.private_data.to_vec(),
        status: SidrStatus::VALID,
        ..SidrRep::default()
    });
    // SAFETY: a live id.
    let key = unsafe { Id::of(id) }.key;
    service::with(|state, _| state.of_connection(key, |it, _, out| it.answer(rep, out)))
}

/// `rdma_accept(3)`: brings the id's QP, if it has one, to RTS, and replies. Of datagrams there is no event.
pub unsafe extern "C" fn accept(id: *mut rdma_cm_id, parameters: *mut rdma_conn_param) -> c_int {
    // SAFETY: a live id; parameters or null.
    if unsafe { Id::of(id) }.space == PortSpace::Udp {
        // SAFETY: as above.
        return minus_one_or_zero(unsafe { tell_qp(id, parameters) });
    }
    // SAFETY: a live id; parameters or null.
    let accepted = unsafe { answer(id, parameters) };
    if accepted.is_err() {
        // SAFETY: a live id, with its QP if it has one.
        unsafe { qp::fail(id) };
    }
    // SAFETY: a live id.
    minus_one_or_zero(accepted.and_then(|()| unsafe { complete(id) }))
}

/// `rdma_establish(3)`, for an id without a QP of its own.
pub unsafe extern "C" fn establish(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id.
    let (key, has_qp) = unsafe { (Id::of(id).key, !(*id).qp.is_null()) };
    minus_one_or_zero(match has_qp {
        true => Err(libc::EINVAL),
        false => service::with(|state, _| state.of_connection(key, |it, _, out| it.establish(out))),
    })
}

/// `rdma_reject(3)`. EINVAL for more than 148 bytes of private data.
pub unsafe extern "C" fn reject(
    id: *mut rdma_cm_id,
    private_data: *const c_void,
    private_data_bytes: u8,
) -> c_int {
    // SAFETY: as long as the program says.
    let data = unsafe { bytes(private_data, private_data_bytes) };
    if data.len() > REJ_DATA_BYTES {
        return minus_one_or_zero(Err(libc::EINVAL));
    }
    // SAFETY: a live id.
    let key = unsafe { Id::of(id) }.key;
    minus_one_or_zero(service::with(|state, _| {
        state.of_connection(key, |it, _, out| it.reject(RejReason::CONSUMER, data, out))
    }))
}

/// `rdma_disconnect(3)`: flushes the id's QP if it has one, and tells the other end. Where the connection has ended
/// already there is nothing to tell.
pub unsafe extern "C" fn disconnect(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: a live id, with its QP if it has one.
    let key = unsafe {
        qp::fail(id);
        Id::of(id).key
    };
    let ended = service::with(|state, _| {
        if state.entry(key)?.terms.peer.is_none() {
            return Err(libc::EINVAL);
        }
        // It may have ended, at this end or the other.
        let _ = state.of_connection(key, |it, now, out| it.disconnect(now, out));
        Ok(())
    });
    // SAFETY: a live id; of datagrams, which have no connection, there is no event.
    minus_one_or_zero(ended.and_then(|()| unsafe {
        match Id::of(id).space {
            PortSpace::Tcp => complete(id),
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
    let key = unsafe { Id::of(id) }.key;
    minus_one_or_zero(service::with(|state, _| {
        state.of_connection(key, |it, _, out| it.notice_data(out))
    }))
}
