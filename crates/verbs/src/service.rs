//! The service of a QP, and what each transition of it takes (ibv_modify_qp(3)).

use rdma_sys::{ibv_qp_attr_mask as mask, ibv_qp_type};

/// The transport service of a QP.
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

    /// RESET → INIT.
    pub(super) fn init_bits(self) -> mask {
        let bits = mask::IBV_QP_STATE | mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
        match self {
            Service::Datagram { .. } => bits | mask::IBV_QP_QKEY,
            Service::ReliableConnection | Service::UnreliableConnection => {
                bits | mask::IBV_QP_ACCESS_FLAGS
            }
        }
    }

    /// INIT → RTR.
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

    /// RTR → RTS.
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
