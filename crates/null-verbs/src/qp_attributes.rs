//! A QP's attributes: which ones a transition takes, and what `modify_qp` keeps for `query_qp`.

use rdma_sys::{ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_state};

type Mask = ibv_qp_attr_mask;

const STATE: u32 = Mask::IBV_QP_STATE.0 | Mask::IBV_QP_CUR_STATE.0;
const INIT: u32 = Mask::IBV_QP_PKEY_INDEX.0 | Mask::IBV_QP_PORT.0 | Mask::IBV_QP_ACCESS_FLAGS.0;
const RTR: u32 = Mask::IBV_QP_AV.0
    | Mask::IBV_QP_PATH_MTU.0
    | Mask::IBV_QP_DEST_QPN.0
    | Mask::IBV_QP_RQ_PSN.0
    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0
    | Mask::IBV_QP_MIN_RNR_TIMER.0;
const RTS: u32 = Mask::IBV_QP_TIMEOUT.0
    | Mask::IBV_QP_RETRY_CNT.0
    | Mask::IBV_QP_RNR_RETRY.0
    | Mask::IBV_QP_SQ_PSN.0
    | Mask::IBV_QP_MAX_QP_RD_ATOMIC.0;
const RTR_OPTIONAL: u32 =
    Mask::IBV_QP_ALT_PATH.0 | Mask::IBV_QP_ACCESS_FLAGS.0 | Mask::IBV_QP_PKEY_INDEX.0;
const RTS_OPTIONAL: u32 = Mask::IBV_QP_ALT_PATH.0
    | Mask::IBV_QP_ACCESS_FLAGS.0
    | Mask::IBV_QP_MIN_RNR_TIMER.0
    | Mask::IBV_QP_PATH_MIG_STATE.0;

/// Whether an RC QP may go `from` one state `to` another with the attributes of `mask`
/// (InfiniBand specification, table "QP state transition properties").
pub(crate) fn transition_allowed(from: u32, to: u32, mask: u32) -> bool {
    use ibv_qp_state::{IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS};
    let (required, optional) = match (from, to) {
        (_, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (INIT, 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, INIT),
        (IBV_QPS_INIT, IBV_QPS_RTR) => (RTR, RTR_OPTIONAL),
        (IBV_QPS_RTR, IBV_QPS_RTS) => (RTS, RTS_OPTIONAL),
        (IBV_QPS_RTS, IBV_QPS_RTS) => (0, RTS_OPTIONAL),
        _ => return false,
    };
    mask & required == required && mask & !(required | optional | STATE) == 0
}

/// Copies the attributes of `new` that `mask` names into `kept`.
pub(crate) fn merge(kept: &mut ibv_qp_attr, new: &ibv_qp_attr, mask: u32) {
    macro_rules! take {
        ($($bit:ident => $($field:ident),+;)*) => {
            $(if mask & Mask::$bit.0 != 0 { $(kept.$field = new.$field;)+ })*
        };
    }
    take! {
        IBV_QP_STATE => qp_state;
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
        IBV_QP_ALT_PATH => alt_ah_attr, alt_pkey_index, alt_port_num, alt_timeout;
        IBV_QP_PATH_MIG_STATE => path_mig_state;
        IBV_QP_RATE_LIMIT => rate_limit;
    }
    kept.cur_qp_state = kept.qp_state;
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_sys::ibv_qp_state::*;

    #[test]
    fn the_way_to_rts_needs_every_required_attribute() {
        let state = Mask::IBV_QP_STATE.0;
        for (from, to, required) in [
            (IBV_QPS_RESET, IBV_QPS_INIT, INIT),
            (IBV_QPS_INIT, IBV_QPS_RTR, RTR),
            (IBV_QPS_RTR, IBV_QPS_RTS, RTS),
        ] {
            let allowed = |mask| transition_allowed(from, to, mask);
            assert!(allowed(required | state));
            for bit in (0..32).map(|bit| 1 << bit).filter(|bit| required & bit != 0) {
                assert!(!allowed(required & !bit), "without {bit:#x}");
            }
            assert!(!allowed(required | Mask::IBV_QP_QKEY.0));
        }
        assert!(!transition_allowed(IBV_QPS_RESET, IBV_QPS_RTR, RTR));
        assert!(!transition_allowed(IBV_QPS_INIT, IBV_QPS_RTS, RTS));
        assert!(transition_allowed(IBV_QPS_INIT, IBV_QPS_ERR, state));
        assert!(!transition_allowed(IBV_QPS_ERR, IBV_QPS_INIT, INIT));
    }
}
