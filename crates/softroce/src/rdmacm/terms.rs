//! What the two ends have agreed on, and the attributes of a QP's transitions that follow from it, as
//! `rdma_init_qp_attr(3)` tells them.
//!
//! They go to the program as the parameters of an event, a [`Notice`].

use std::net::IpAddr;
use std::os::raw::{c_int, c_void};
use std::sync::Arc;

use provider::{Acks, required};
use rdma_sys::{
    ibv_access_flags as access, ibv_ah_attr, ibv_qp_attr, ibv_qp_state, ibv_qp_type, param_t,
    rdma_cm_event_type, rdma_cm_id, rdma_conn_param, rdma_ud_param,
};

use crate::verbs::gid;
use crate::verbs::query::{LOCAL_ACK_DELAY, MAX_RD_ATOM};
use crate::wire::cm::{Rep, Req, SidrRep};

/// The time-out of packets, as the code of `timeout` of a QP: twice the device's delay.
pub(super) const ACK_TIMEOUT: u8 = LOCAL_ACK_DELAY + 1;
/// IPv6's and IPv4's usual limit.
pub(super) const HOP_LIMIT: u8 = 64;
/// Those of a PSN or a QPN.
pub(super) const PSN_BITS: u32 = 0x00ff_ffff;
/// The key of all QPs in the port space of datagrams (`RDMA_UDP_QKEY`).
pub(super) const UDP_QKEY: u32 = 0x0123_4567;

/// What a connection's QP has to know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    /// `None` before a connection is asked for.
    pub(super) peer: Option<IpAddr>,
    /// 0 until it is known.
    pub(super) remote_qpn: u32,
    pub(super) rq_psn: u32,
    pub(super) sq_psn: u32,
    pub(super) mtu: u8,
    pub(super) responder_resources: u8,
    pub(super) initiator_depth: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry_count: u8,
    pub(super) ack_timeout: u8,
    pub(super) traffic_class: u8,
}

/// The path to a peer, as attributes of an address handle.
pub(super) fn path_to(peer: IpAddr, traffic_class: u8) -> ibv_ah_attr {
    let mut path = gid::path_to(peer);
    path.grh.hop_limit = HOP_LIMIT;
    path.grh.traffic_class = traffic_class;
    path
}

impl Terms {
    /// Those of a look-up of a datagram service, which negotiates nothing.
    pub(super) fn of_datagrams(peer: IpAddr) -> Terms {
        Terms { peer: Some(peer), ..Terms::default() }
    }

    /// Fills the attributes of a QP for datagrams, the same for each state, as the kernel does; returns their mask.
    pub(super) fn attributes_of_datagrams(attr: &mut ibv_qp_attr) -> u32 {
        attr.port_num = gid::PORT;
        attr.qkey = UDP_QKEY;
        required(ibv_qp_type::IBV_QPT_UD, ibv_qp_state::IBV_QPS_RESET, ibv_qp_state::IBV_QPS_INIT)
    }

    /// Of a connection that this end has asked for.
    pub(super) fn asking(peer: IpAddr, req: &Req) -> Terms {
        Terms {
            peer: Some(peer),
            remote_qpn: 0,
            rq_psn: req.starting_psn,
            sq_psn: 0,
            mtu: req.mtu,
            responder_resources: req.responder_resources,
            initiator_depth: req.initiator_depth,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            ack_timeout: req.ack_timeout,
            traffic_class: req.traffic_class,
        }
    }

    /// Of a connection that the other end has asked for.
    pub(super) fn answering(peer: IpAddr, req: &Req, rq_psn: u32) -> Terms {
        Terms {
            remote_qpn: req.qpn,
            rq_psn,
            sq_psn: req.starting_psn,
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            ..Terms::asking(peer, req)
        }
    }

    /// Takes over what the passive end has answered.
    pub(super) fn replied(&mut self, rep: &Rep) {
        self.remote_qpn = rep.qpn;
        self.sq_psn = rep.starting_psn;
        self.responder_resources = rep.initiator_depth;
        self.initiator_depth = rep.responder_resources;
        self.rnr_retry_count = rep.rnr_retry_count;
    }

    /// Fills the attributes of the transition to `attr.qp_state`; returns their mask. EINVAL for another state than
    /// INIT, RTR and RTS, and for the latter two before the other end is known.
    pub(super) fn attributes(&self, attr: &mut ibv_qp_attr) -> Result<u32, i32> {
        let known = self.peer.filter(|_| self.remote_qpn != 0);
        let (from, to) = match attr.qp_state {
            ibv_qp_state::IBV_QPS_INIT => {
                attr.port_num = gid::PORT;
                if self.peer.is_some() {
                    attr.qp_access_flags = access::IBV_ACCESS_REMOTE_WRITE.0;
                    if self.responder_resources > 0 {
                        attr.qp_access_flags |=
                            access::IBV_ACCESS_REMOTE_READ.0 | access::IBV_ACCESS_REMOTE_ATOMIC.0;
                    }
                }
                (ibv_qp_state::IBV_QPS_RESET, ibv_qp_state::IBV_QPS_INIT)
            }
            ibv_qp_state::IBV_QPS_RTR => {
                attr.ah_attr = path_to(known.ok_or(libc::EINVAL)?, self.traffic_class);
                attr.path_mtu = self.mtu.into();
                attr.dest_qp_num = self.remote_qpn;
                attr.rq_psn = self.rq_psn;
                attr.max_dest_rd_atomic = self.responder_resources.min(MAX_RD_ATOM);
                (ibv_qp_state::IBV_QPS_INIT, ibv_qp_state::IBV_QPS_RTR)
            }
            ibv_qp_state::IBV_QPS_RTS if known.is_some() => {
                attr.sq_psn = self.sq_psn;
                attr.timeout = self.ack_timeout;
                attr.retry_cnt = self.retry_count;
                attr.rnr_retry = self.rnr_retry_count;
                attr.max_rd_atomic = self.initiator_depth.min(MAX_RD_ATOM);
                (ibv_qp_state::IBV_QPS_RTR, ibv_qp_state::IBV_QPS_RTS)
            }
            _ => return Err(libc::EINVAL),
        };
        Ok(required(ibv_qp_type::IBV_QPT_RC, from, to))
    }
}

/// An event in a channel's queue.
pub(super) struct Notice {
    /// The id that it is about; of a request the new one.
    pub(super) id: *mut rdma_cm_id,
    /// The id that listened, of a request; otherwise null.
    pub(super) listener: *mut rdma_cm_id,
    pub(super) kind: rdma_cm_event_type::Type,
    pub(super) status: c_int,
    pub(super) parameters: Parameters,
    /// Of the id that cannot be destroyed before the event is acknowledged.
    pub(super) acks: Arc<Acks>,
}

// SAFETY: the pointers are only carried to the program's thread; both ids live until the event is taken or forgotten.
unsafe impl Send for Notice {}

/// What the other end has said.
pub(super) struct Parameters {
    /// In the form in which the program gets it.
    pub(super) param: param_t,
    pub(super) private_data: Box<[u8]>,
}

/// Where private data are, and their length.
fn place(private_data: &[u8]) -> (*const c_void, u8) {
    let place =
        if private_data.is_empty() { std::ptr::null() } else { private_data.as_ptr().cast() };
    (place, u8::try_from(private_data.len()).unwrap_or(u8::MAX))
}

impl Parameters {
    fn of_connection(private_data: Box<[u8]>, tell: impl FnOnce(&mut rdma_conn_param)) -> Self {
        // SAFETY: a pointer and integers: zero is a value of each.
        let mut conn: rdma_conn_param = unsafe { std::mem::zeroed() };
        (conn.private_data, conn.private_data_len) = place(&private_data);
        tell(&mut conn);
        let param = param_t { conn };
        Parameters { param, private_data }
    }

    fn of_datagrams(private_data: &[u8], tell: impl FnOnce(&mut rdma_ud_param)) -> Self {
        // SAFETY: a pointer, integers and arrays of them: zero is a value of each.
        let mut ud: rdma_ud_param = unsafe { std::mem::zeroed() };
        let private_data = Box::from(private_data);
        (ud.private_data, ud.private_data_len) = place(&private_data);
        tell(&mut ud);
        let param = param_t { ud };
        Parameters { param, private_data }
    }

    /// Of a request. What the other end can serve is what this end may ask for, and the other way round.
    pub(super) fn of_request(req: &Req, program_data: &[u8]) -> Parameters {
        Parameters::of_connection(program_data.into(), |conn| {
            conn.responder_resources = req.initiator_depth;
            conn.initiator_depth = req.responder_resources;
            conn.flow_control = req.flow_control.into();
            conn.retry_count = req.retry_count;
            conn.rnr_retry_count = req.rnr_retry_count;
            conn.srq = req.srq.into();
            conn.qp_num = req.qpn;
        })
    }

    pub(super) fn of_reply(rep: &Rep) -> Parameters {
        Parameters::of_connection((&*rep.private_data).into(), |conn| {
            conn.responder_resources = rep.initiator_depth;
            conn.initiator_depth = rep.responder_resources;
            conn.flow_control = rep.flow_control.into();
            conn.rnr_retry_count = rep.rnr_retry_count;
            conn.srq = rep.srq.into();
            conn.qp_num = rep.qpn;
        })
    }

    /// Of a rejection; without data of an event that tells nothing.
    pub(super) fn of_data(private_data: Box<[u8]>) -> Parameters {
        Parameters::of_connection(private_data, |_| {})
    }

    /// Of a look-up, or of a reply without a QP: only private data are told.
    pub(super) fn of_look_up(private_data: &[u8]) -> Parameters {
        Parameters::of_datagrams(private_data, |_| {})
    }

    /// Of the QP that was looked up.
    pub(super) fn of_found(rep: &SidrRep, path: ibv_ah_attr) -> Parameters {
        Parameters::of_datagrams(&rep.private_data, |ud| {
            (ud.ah_attr, ud.qp_num, ud.qkey) = (path, rep.qpn, rep.qkey);
        })
    }
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters::of_data(Box::default())
    }
}
