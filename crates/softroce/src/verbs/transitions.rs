//! The valid state transitions of a QP and their attributes: the InfiniBand specification's table "QP state
//! transition properties" as implemented by Linux (`ib_modify_qp_is_ok`). It must not know their effects.

use rdma_sys::ibv_qp_attr_mask as Mask;

use crate::transport::{Kind, State};

const ACCESS: u32 = Mask::IBV_QP_ACCESS_FLAGS.0;
const ALT_PATH: u32 = Mask::IBV_QP_ALT_PATH.0;
const AV: u32 = Mask::IBV_QP_AV.0;
const CUR_STATE: u32 = Mask::IBV_QP_CUR_STATE.0;
const DEST_QPN: u32 = Mask::IBV_QP_DEST_QPN.0;
const MAX_DEST_RD_ATOMIC: u32 = Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;
const MAX_RD_ATOMIC: u32 = Mask::IBV_QP_MAX_QP_RD_ATOMIC.0;
const MIGRATION: u32 = Mask::IBV_QP_PATH_MIG_STATE.0;
const MIN_RNR_TIMER: u32 = Mask::IBV_QP_MIN_RNR_TIMER.0;
const PATH_MTU: u32 = Mask::IBV_QP_PATH_MTU.0;
const PKEY: u32 = Mask::IBV_QP_PKEY_INDEX.0;
const PORT: u32 = Mask::IBV_QP_PORT.0;
const QKEY: u32 = Mask::IBV_QP_QKEY.0;
const RETRY: u32 = Mask::IBV_QP_RETRY_CNT.0 | Mask::IBV_QP_RNR_RETRY.0;
const RQ_PSN: u32 = Mask::IBV_QP_RQ_PSN.0;
const SQD_NOTIFY: u32 = Mask::IBV_QP_EN_SQD_ASYNC_NOTIFY.0;
const SQ_PSN: u32 = Mask::IBV_QP_SQ_PSN.0;
const STATE: u32 = Mask::IBV_QP_STATE.0;
const TIMEOUT: u32 = Mask::IBV_QP_TIMEOUT.0;

/// The required and the optional attributes of a transition; `None` if it is invalid.
fn attributes(kind: Kind, from: State, to: State) -> Option<(u32, u32)> {
    use State::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
    // By service: unreliable datagram, unreliable connection, reliable connection.
    let by_kind = |ud: u32, uc: u32, rc: u32| match kind {
        Kind::Ud => ud,
        Kind::Uc => uc,
        Kind::Rc => rc,
    };
    let first = PKEY | PORT | by_kind(QKEY, ACCESS, ACCESS);
    let path = ALT_PATH | ACCESS | MIGRATION;
    // Attributes that may change while the QP sends.
    let running = CUR_STATE | by_kind(QKEY, path, path | MIN_RNR_TIMER);
    Some(match (from, to) {
        // Linux allows no transition from RESET to ERR, although the specification says "any state".
        (Reset, Reset) | (Init | Rtr | Rts | Sqd | Sqe | Err, Reset | Err) => (0, 0),
        (Reset, Init) => (first, 0),
        (Init, Init) => (0, first),
        (Init, Rtr) => {
            let connected = AV | PATH_MTU | DEST_QPN | RQ_PSN;
            let reliable = connected | MAX_DEST_RD_ATOMIC | MIN_RNR_TIMER;
            let optional = by_kind(QKEY, ALT_PATH | ACCESS, ALT_PATH | ACCESS);
            (by_kind(0, connected, reliable), PKEY | optional)
        }
        (Rtr, Rts) => {
            let reliable = TIMEOUT | RETRY | SQ_PSN | MAX_RD_ATOMIC;
            (by_kind(SQ_PSN, SQ_PSN, reliable), running)
        }
        (Rts | Sqd, Rts) => (0, running),
        (Rts, Sqd) => (0, SQD_NOTIFY),
        (Sqd, Sqd) => {
            let connected = AV | PKEY | path;
            let depths = MAX_RD_ATOMIC | MAX_DEST_RD_ATOMIC;
            let reliable = connected | PORT | TIMEOUT | RETRY | depths | MIN_RNR_TIMER;
            (0, by_kind(PKEY | QKEY, connected, reliable))
        }
        // A reliable QP is never in SQE.
        (Sqe, Rts) => (0, by_kind(CUR_STATE | QKEY, CUR_STATE | ACCESS, 0)),
        _ => return None,
    })
}

/// The attributes that a valid transition requires, with the state.
pub(crate) fn required(kind: Kind, from: State, to: State) -> u32 {
    STATE | attributes(kind, from, to).map_or(0, |(required, _)| required)
}

/// Whether a QP may change `from` one state `to` another with the attributes of `mask`.
pub(super) fn allowed(kind: Kind, from: State, to: State, mask: u32) -> bool {
    // Only in these states can the state have changed by itself.
    let may_say_current = matches!(from, State::Rtr | State::Rts | State::Sqd | State::Sqe);
    if mask & CUR_STATE != 0 && !may_say_current {
        return false;
    }
    attributes(kind, from, to).is_some_and(|(required, optional)| {
        mask & required == required && mask & !(required | optional | STATE) == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 3] = [Kind::Rc, Kind::Uc, Kind::Ud];

    #[test]
    fn exactly_these_states_follow_each_other() {
        use State::{Err, Init, Reset, Rtr, Rts, Sqd, Sqe};
        for from in State::ALL {
            let followers: &[State] = match from {
                Reset => &[Reset, Init],
                Init => &[Reset, Err, Init, Rtr],
                Rtr => &[Reset, Err, Rts],
                Rts => &[Reset, Err, Rts, Sqd],
                Sqd => &[Reset, Err, Rts, Sqd],
                Sqe => &[Reset, Err, Rts],
                Err => &[Reset, Err],
            };
            for to in State::ALL {
                for kind in KINDS {
                    let exists = attributes(kind, from, to).is_some();
                    let expected = followers.contains(&to);
                    assert_eq!(exists, expected, "{kind:?} {from:?} -> {to:?}");
                }
            }
        }
    }

    #[test]
    fn each_required_attribute_is_missed_and_each_foreign_one_refused() {
        let mut checked = 0;
        for kind in KINDS {
            for from in State::ALL {
                for to in State::ALL {
                    let Some((required, optional)) = attributes(kind, from, to) else {
                        continue;
                    };
                    assert!(allowed(kind, from, to, required | STATE));
                    assert!(allowed(kind, from, to, required | optional | STATE));
                    for bit in (0..32).map(|shift| 1 << shift) {
                        let place = format!("{kind:?} {from:?} -> {to:?} {bit:#x}");
                        if required & bit != 0 {
                            assert!(!allowed(kind, from, to, required & !bit), "{place}");
                            checked += 1;
                        } else if (optional | STATE) & bit == 0 {
                            assert!(!allowed(kind, from, to, required | bit), "{place}");
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert!(checked > 1000, "{checked}");
    }

    #[test]
    fn what_each_service_needs() {
        let needs = |from, to| KINDS.map(|kind| attributes(kind, from, to).unwrap().0);
        // Of RC, UC and UD.
        assert_eq!(needs(State::Reset, State::Init), [0x38, 0x38, 0x70]);
        assert_eq!(needs(State::Init, State::Rtr), [0x129180, 0x101180, 0]);
        assert_eq!(needs(State::Rtr, State::Rts), [0x12e00, 0x10000, 0x10000]);
    }
}
