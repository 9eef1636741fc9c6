//! RESET → INIT → RTR → RTS with rdma_cm's attributes; a case's settings replace rdma_cm's guesses.

use std::mem::zeroed;

use rdma_sys::{ibv_qp_attr, ibv_qp_attr_mask as mask, ibv_qp_state};

use crate::{Access, Gid, Operation, Path, QueuePair, Reliability, VerbsError};

use super::{CmError, CmId, CmStep};

/// The attributes of these transitions. Kernels before 5.15 may set further ones that programs must not use.
const KNOWN: u32 = mask::IBV_QP_STATE.0
    | mask::IBV_QP_PKEY_INDEX.0
    | mask::IBV_QP_PORT.0
    | mask::IBV_QP_ACCESS_FLAGS.0
    | mask::IBV_QP_AV.0
    | mask::IBV_QP_PATH_MTU.0
    | mask::IBV_QP_DEST_QPN.0
    | mask::IBV_QP_RQ_PSN.0
    | mask::IBV_QP_MAX_DEST_RD_ATOMIC.0
    | mask::IBV_QP_MIN_RNR_TIMER.0
    | mask::IBV_QP_TIMEOUT.0
    | mask::IBV_QP_RETRY_CNT.0
    | mask::IBV_QP_RNR_RETRY.0
    | mask::IBV_QP_SQ_PSN.0
    | mask::IBV_QP_MAX_QP_RD_ATOMIC.0;

/// A transition failed: rdma_cm did not return its attributes, or the device refused it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // The texts say what the fields are.
pub enum CmTransitionError {
    #[error(transparent)]
    Cm(#[from] CmError),
    #[error(transparent)]
    Verbs(#[from] VerbsError),
}

impl QueuePair {
    /// RESET → INIT; `remote` is the peer's access to this end's memory.
    pub fn to_init_by_cm(&self, id: &CmId, remote: Access) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_INIT;
        let (mut attr, bits) = id.attributes(self, state, "INIT")?;
        attr.qp_access_flags = remote.qp_flags();
        Ok(self.modify(&mut attr, bits, Operation::ModifyToInit)?)
    }

    /// INIT → RTR, to the QP `remote_qpn` from the control connection.
    ///
    /// # Errors
    /// The failed call; another port, GID or QP than the run's.
    pub fn to_rtr_by_cm(
        &self,
        id: &CmId,
        path: &Path,
        remote_qpn: u32,
        reliability: &Reliability,
    ) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_RTR;
        let (mut attr, bits) = id.attributes(self, state, "RTR")?;
        // SAFETY: every bit pattern is a valid GID.
        let to = Gid(unsafe { attr.ah_attr.grh.dgid.raw }).address();
        let gid_index = attr.ah_attr.grh.sgid_index;
        let other = |taken: String, wanted: String| CmError::OtherPort {
            address: to.to_string(),
            taken,
            wanted,
        };
        if path.gid_index.is_some_and(|wanted| wanted != gid_index) {
            let wanted = path.gid_index.unwrap_or(0);
            let (taken, wanted) = (format!("GID index {gid_index}"), format!("GID index {wanted}"));
            return Err(other(taken, wanted).into());
        }
        if attr.dest_qp_num != remote_qpn {
            let taken = format!("QP number {:#08x}", attr.dest_qp_num);
            return Err(other(taken, format!("QP number {remote_qpn:#08x}")).into());
        }
        attr.path_mtu = path.mtu_code;
        attr.max_dest_rd_atomic = reliability.responder_reads;
        attr.min_rnr_timer = reliability.min_rnr_timer;
        attr.ah_attr.sl = path.service_level;
        attr.ah_attr.grh.traffic_class = path.traffic_class;
        // Without one, rdma_cm chooses a label.
        if path.flow_label != 0 {
            attr.ah_attr.grh.flow_label = path.flow_label;
        }
        attr.ah_attr.grh.hop_limit = path.hop_limit;
        let operation = Operation::ModifyToRtr { gid_index: Some(gid_index) };
        Ok(self.modify(&mut attr, bits, operation)?)
    }

    /// RTR → RTS.
    pub fn to_rts_by_cm(
        &self,
        id: &CmId,
        reliability: &Reliability,
    ) -> Result<(), CmTransitionError> {
        let state = ibv_qp_state::IBV_QPS_RTS;
        let (mut attr, bits) = id.attributes(self, state, "RTS")?;
        attr.timeout = reliability.timeout;
        attr.retry_cnt = reliability.retry_cnt;
        attr.rnr_retry = reliability.rnr_retry;
        attr.max_rd_atomic = reliability.initiator_reads;
        Ok(self.modify(&mut attr, bits, Operation::ModifyToRts)?)
    }
}

impl CmId {
    /// The attributes of a transition to `state`.
    fn attributes(
        &self,
        qp: &QueuePair,
        state: ibv_qp_state::Type,
        name: &'static str,
    ) -> Result<(ibv_qp_attr, mask), CmError> {
        // SAFETY: plain data, for which zero is valid.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        attr.qp_state = state;
        let mut bits = 0;
        // SAFETY: the id is alive, and both are writable.
        let code =
            unsafe { (self.channel().library.init_qp_attr)(self.raw(), &mut attr, &mut bits) };
        if code != 0 {
            let object = format!("QP number {:#08x}", qp.qpn());
            return Err(CmError::last(CmStep::InitQpAttr { state: name }, object));
        }
        Ok((attr, mask(bits.cast_unsigned() & KNOWN)))
    }
}
