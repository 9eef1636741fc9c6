//! Querying a QP (`ibv_query_qp(3)`).

use std::fmt;
use std::mem::zeroed;

use rdma_sys::{ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_init_attr, ibv_qp_state};
use serde::{Deserialize, Serialize};

use super::{Operation, QueuePair, VerbsError};

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

/// The attributes that a QP reports.
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

impl QpState {
    fn of(code: u32) -> QpState {
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

impl QueuePair {
    pub fn query(&self) -> Result<QpAttributes, VerbsError> {
        let bits = mask::IBV_QP_STATE
            | mask::IBV_QP_PATH_MTU
            | mask::IBV_QP_DEST_QPN
            | mask::IBV_QP_RQ_PSN
            | mask::IBV_QP_SQ_PSN;
        // SAFETY: plain data, for which zero is valid.
        let (mut attr, mut init): (ibv_qp_attr, ibv_qp_init_attr) = unsafe { (zeroed(), zeroed()) };
        let query = self.context().library().query_qp;
        // SAFETY: the QP is alive, and both structs are writable.
        let code = unsafe { query(self.raw(), &mut attr, bits.0.cast_signed(), &mut init) };
        if code != 0 {
            let object = format!("{} QP {:#08x}", self.context().name(), self.qpn());
            return Err(VerbsError::returned(Operation::QueryQp, object, code));
        }
        let state = QpState::of(attr.qp_state);
        let connected = !matches!(state, QpState::Reset | QpState::Init);
        Ok(QpAttributes {
            state,
            path_mtu_bytes: match attr.path_mtu {
                code @ 1..=5 if connected => 128 << code,
                _ => 0,
            },
            remote_qpn: if connected { attr.dest_qp_num } else { 0 },
            rq_psn: if connected { attr.rq_psn } else { 0 },
            sq_psn: if connected && state != QpState::Rtr { attr.sq_psn } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_their_names() {
        for (code, name) in
            [(0, "RESET"), (1, "INIT"), (2, "RTR"), (3, "RTS"), (6, "ERR"), (9, "unknown")]
        {
            assert_eq!(QpState::of(code).to_string(), name);
        }
    }
}
