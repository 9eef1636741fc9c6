//! What the two ends have agreed on, and the attributes of a QP's transitions that follow from it, as
//! `rdma_init_qp_attr(3)` tells them.

use std::net::IpAddr;

use rdma_sys::{ibv_access_flags as access, ibv_ah_attr, ibv_qp_attr, ibv_qp_state};

use crate::transport::{Kind, State};
use crate::verbs::gid;
use crate::verbs::qp::required;
use crate::verbs::query::{LOCAL_ACK_DELAY, MAX_RD_ATOM};
use crate::wire::cm::{Rep, Req};

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
    /// Between datagram services.
    pub(super) fn of_datagrams(peer: IpAddr) -> Terms {
        Terms { peer: Some(peer), ..Terms::default() }
    }

    /// Fills the attributes of a QP for datagrams, the same for each state, as the kernel does; returns their mask.
    pub(super) fn attributes_of_datagrams(attr: &mut ibv_qp_attr) -> u32 {
        attr.port_num = gid::PORT;
        attr.qkey = UDP_QKEY;
        required(Kind::Ud, State::Reset, State::Init)
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

    /// After the reply.
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
                (State::Reset, State::Init)
            }
            ibv_qp_state::IBV_QPS_RTR => {
                attr.ah_attr = path_to(known.ok_or(libc::EINVAL)?, self.traffic_class);
                attr.path_mtu = self.mtu.into();
                attr.dest_qp_num = self.remote_qpn;
                attr.rq_psn = self.rq_psn;
                attr.max_dest_rd_atomic = self.responder_resources.min(MAX_RD_ATOM);
                (State::Init, State::Rtr)
            }
            ibv_qp_state::IBV_QPS_RTS if known.is_some() => {
                attr.sq_psn = self.sq_psn;
                attr.timeout = self.ack_timeout;
                attr.retry_cnt = self.retry_count;
                attr.rnr_retry = self.rnr_retry_count;
                attr.max_rd_atomic = self.initiator_depth.min(MAX_RD_ATOM);
                (State::Rtr, State::Rts)
            }
            _ => return Err(libc::EINVAL),
        };
        Ok(required(Kind::Rc, from, to))
    }
}
