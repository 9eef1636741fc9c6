//! What QPs are made with, what their transitions take, and what they report.

use std::fmt;
use std::mem::zeroed;

use rdma_sys::{ibv_ah_attr, ibv_qp_attr_mask as mask, ibv_qp_state, ibv_qp_type};
use serde::{Deserialize, Serialize};

use crate::{Gid, LinkLayer};

/// The transport service of a QP, which says what each of its transitions takes (`ibv_modify_qp(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    ReliableConnection,
    UnreliableConnection,
    Datagram {
        /// The Q_Key that datagrams to the QP must have.
        qkey: u32,
    },
}

impl Service {
    pub(super) fn qp_type(self) -> ibv_qp_type::Type {
        match self {
            Service::ReliableConnection => ibv_qp_type::IBV_QPT_RC,
            Service::UnreliableConnection => ibv_qp_type::IBV_QPT_UC,
            Service::Datagram { .. } => ibv_qp_type::IBV_QPT_UD,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Service::ReliableConnection => "RC",
            Service::UnreliableConnection => "UC",
            Service::Datagram { .. } => "UD",
        }
    }

    /// The Q_Key; 0 of a connection.
    pub(super) fn qkey(self) -> u32 {
        match self {
            Service::Datagram { qkey } => qkey,
            Service::ReliableConnection | Service::UnreliableConnection => 0,
        }
    }

    /// The attributes of RESET → INIT.
    pub(super) fn init_bits(self) -> mask {
        let bits = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
        match self {
            Service::Datagram { .. } => bits | mask::IBV_QP_QKEY,
            Service::ReliableConnection | Service::UnreliableConnection => {
                bits | mask::IBV_QP_ACCESS_FLAGS
            }
        }
    }

    /// The attributes of INIT → RTR.
    pub(super) fn rtr_bits(self) -> mask {
        let connected = mask::IBV_QP_STATE
            | mask::IBV_QP_AV
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN;
        match self {
            Service::ReliableConnection => {
                connected | mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER
            }
            Service::UnreliableConnection => connected,
            Service::Datagram { .. } => mask::IBV_QP_STATE,
        }
    }

    /// The attributes of RTR → RTS.
    pub(super) fn rts_bits(self) -> mask {
        let base = mask::IBV_QP_STATE | mask::IBV_QP_SQ_PSN;
        match self {
            Service::ReliableConnection => {
                base | mask::IBV_QP_TIMEOUT
                    | mask::IBV_QP_RETRY_CNT
                    | mask::IBV_QP_RNR_RETRY
                    | mask::IBV_QP_MAX_QP_RD_ATOMIC
            }
            Service::UnreliableConnection | Service::Datagram { .. } => base,
        }
    }
}

/// Sizes of a QP's queues.
#[derive(Clone, Copy, Debug)]
pub struct QpCapacity {
    /// WRs outstanding on the send queue.
    pub send_wr: u32,
    /// WRs outstanding on the receive queue.
    pub recv_wr: u32,
    /// The most bytes of a message sent inline.
    pub inline_bytes: u32,
    /// Scatter/gather elements of a WR at most.
    pub sges: u32,
}

impl QpCapacity {
    /// One WR of one element in each queue: what a device takes if it makes such QPs at all.
    pub(super) const LEAST: QpCapacity =
        QpCapacity { send_wr: 1, recv_wr: 1, inline_bytes: 0, sges: 1 };
}

/// The attributes of packets from this end's port.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The port's number, counted from 1.
    pub port: u8,
    /// The port's link layer; RoCE always carries a GRH.
    pub link_layer: LinkLayer,
    /// Index of the source GID; on InfiniBand, `Some` requests a GRH.
    pub gid_index: Option<u8>,
    pub service_level: u8,
    /// Traffic class of the GRH; of RoCE v2 that of the IP header, with DSCP and ECN.
    pub traffic_class: u8,
    /// GRH flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit of the GRH; of RoCE v2 the TTL of the IP header.
    pub hop_limit: u8,
    /// Path MTU code of `enum ibv_mtu` (1 is 256 bytes, 5 is 4096).
    pub mtu_code: u32,
}

impl Path {
    /// The `enum ibv_mtu` code of an MTU in bytes.
    pub fn mtu_code(bytes: u32) -> u32 {
        bytes.max(256).ilog2() - 7
    }

    pub fn mtu_bytes(&self) -> u32 {
        128 << self.mtu_code
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RemoteQp {
    pub qpn: u32,
    /// First PSN that it sends.
    pub psn: u32,
    /// LID of its port, for InfiniBand.
    pub lid: u16,
    pub gid: Gid,
}

/// Retries and timeouts of the connection, and the number of READs in flight.
#[derive(Clone, Copy, Debug)]
pub struct Reliability {
    /// Local ACK timeout, as the exponent of 4.096 µs × 2^n; 0 is for ever.
    pub timeout: u8,
    /// Retries after a timeout, 0 to 7.
    pub retry_cnt: u8,
    /// Retries after an RNR NAK, 0 to 7; 7 is for ever.
    pub rnr_retry: u8,
    /// RNR NAK timer, as a code: 1 is 0.01 ms, 31 is 491.52 ms, and 0 is 655.36 ms.
    pub min_rnr_timer: u8,
    /// READs and atomics outstanding as requester.
    pub initiator_reads: u8,
    /// READs and atomics served at once as responder.
    pub responder_reads: u8,
}

/// The address vector: for RoCE the GID with a GRH; for InfiniBand the LID, with a GRH if there is a GID index.
pub(super) fn address_vector(path: &Path, remote: &RemoteQp) -> ibv_ah_attr {
    // SAFETY: plain data, for which zero is valid.
    let mut ah: ibv_ah_attr = unsafe { zeroed() };
    ah.port_num = path.port;
    ah.sl = path.service_level;
    if !path.link_layer.has_gid_addresses() {
        ah.dlid = remote.lid;
    }
    if path.link_layer.has_gid_addresses() || path.gid_index.is_some() {
        ah.is_global = 1;
        ah.grh.dgid.raw = remote.gid.0;
        ah.grh.sgid_index = path.gid_index.unwrap_or(0);
        ah.grh.hop_limit = path.hop_limit;
        ah.grh.traffic_class = path.traffic_class;
        ah.grh.flow_label = path.flow_label;
    }
    ah
}

/// The state of a QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // each is the specification's name
pub enum QpState {
    Reset,
    Init,
    Rtr,
    Rts,
    Sqd,
    Sqe,
    Err,
    /// Not a state of the specification.
    Unknown,
}

impl QpState {
    pub(super) fn from_code(code: u32) -> QpState {
        match code {
            ibv_qp_state::IBV_QPS_RESET => QpState::Reset,
            ibv_qp_state::IBV_QPS_INIT => QpState::Init,
            ibv_qp_state::IBV_QPS_RTR => QpState::Rtr,
            ibv_qp_state::IBV_QPS_RTS => QpState::Rts,
            ibv_qp_state::IBV_QPS_SQD => QpState::Sqd,
            ibv_qp_state::IBV_QPS_SQE => QpState::Sqe,
            ibv_qp_state::IBV_QPS_ERR => QpState::Err,
            _ => QpState::Unknown,
        }
    }

    /// Its name in the specification.
    pub fn name(self) -> &'static str {
        match self {
            QpState::Reset => "RESET",
            QpState::Init => "INIT",
            QpState::Rtr => "RTR",
            QpState::Rts => "RTS",
            QpState::Sqd => "SQD",
            QpState::Sqe => "SQE",
            QpState::Err => "ERR",
            QpState::Unknown => "unknown",
        }
    }
}

impl fmt::Display for QpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The attributes that a QP reports (`ibv_query_qp(3)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QpAttributes {
    pub state: QpState,
    /// Path MTU in bytes; 0 before RTR.
    pub path_mtu_bytes: u32,
    /// The peer's QP; 0 before RTR.
    pub remote_qpn: u32,
    /// PSN of the next packet that it expects; 0 before RTR.
    pub rq_psn: u32,
    /// PSN of the next packet that it sends; 0 before RTS.
    pub sq_psn: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(link_layer: LinkLayer, gid_index: Option<u8>) -> Path {
        Path {
            port: 1,
            link_layer,
            gid_index,
            service_level: 3,
            traffic_class: 106,
            flow_label: 7,
            hop_limit: 64,
            mtu_code: Path::mtu_code(4096),
        }
    }

    fn remote() -> RemoteQp {
        RemoteQp { qpn: 17, psn: 5, lid: 0x2a, gid: Gid::parse("::ffff:10.0.0.9").unwrap() }
    }

    #[test]
    fn roce_goes_by_gid_and_never_by_lid() {
        let ah = address_vector(&path(LinkLayer::Ethernet, Some(3)), &remote());
        assert_eq!((ah.is_global, ah.dlid, ah.sl), (1, 0, 3));
        let grh = ah.grh;
        let fields = [grh.sgid_index, grh.traffic_class, grh.hop_limit];
        assert_eq!((fields, grh.flow_label), ([3, 106, 64], 7));
        // SAFETY: every bit pattern is a valid GID.
        assert_eq!(Gid(unsafe { ah.grh.dgid.raw }), remote().gid);
    }

    #[test]
    fn infiniband_goes_by_lid_with_a_grh_only_where_asked() {
        for (gid_index, is_global) in [(None, 0), (Some(0), 1)] {
            let ah = address_vector(&path(LinkLayer::Infiniband, gid_index), &remote());
            assert_eq!((ah.is_global, ah.dlid), (is_global, 0x2a));
        }
    }

    #[test]
    fn mtu_codes_are_those_of_the_header() {
        use rdma_sys::ibv_mtu as header;
        for (bytes, code) in [
            (256, header::IBV_MTU_256),
            (512, header::IBV_MTU_512),
            (1024, header::IBV_MTU_1024),
            (2048, header::IBV_MTU_2048),
            (4096, header::IBV_MTU_4096),
        ] {
            assert_eq!(Path::mtu_code(bytes), code);
        }
    }

    #[test]
    fn states_have_their_names() {
        for (code, name) in
            [(0, "RESET"), (1, "INIT"), (2, "RTR"), (3, "RTS"), (6, "ERR"), (9, "unknown")]
        {
            assert_eq!(QpState::from_code(code).to_string(), name);
        }
    }
}
