//! `ibv_modify_qp(3)`: checks the transition, its attributes and their values, then calls the transport.

use std::os::raw::c_int;

use rdma_sys::{ibv_mig_state, ibv_mtu, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask as Mask};

use super::context::Context;
use super::gid::{self, Destination};
use super::limits::MAX_RD_ATOM;
use super::object::Behind;
use super::port::{active_mtu_of, mtu_bytes};
use super::qp::Qp;
use super::{domain, transitions};
use crate::transport::{Access, Connection, Deliveries, Kind, State};

/// Mask of PSNs and QPNs.
const BITS_24: u32 = 0x00ff_ffff;
/// The largest code of a time-out and of the RNR pause.
const MAX_TIMER_CODE: u8 = 31;
const MAX_RETRIES: u8 = 7;
/// Attributes that the transport accepts only between INIT and RTS.
const FIXED_WITH_THE_CONNECTION: u32 = Mask::IBV_QP_AV.0
    | Mask::IBV_QP_TIMEOUT.0
    | Mask::IBV_QP_RETRY_CNT.0
    | Mask::IBV_QP_RNR_RETRY.0
    | Mask::IBV_QP_MAX_QP_RD_ATOMIC.0
    | Mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;

fn has(mask: u32, bit: Mask) -> bool {
    mask & bit.0 != 0
}

/// Whether each value that `mask` names is valid, except the address vector.
fn check_values(attr: &ibv_qp_attr, mask: u32, active_mtu: ibv_mtu::Type) -> Result<(), c_int> {
    let mtus = ibv_mtu::IBV_MTU_256..=active_mtu;
    let invalid = has(mask, Mask::IBV_QP_PORT) && attr.port_num != gid::PORT
        || has(mask, Mask::IBV_QP_PKEY_INDEX) && attr.pkey_index != 0
        || has(mask, Mask::IBV_QP_PATH_MTU) && !mtus.contains(&attr.path_mtu)
        || has(mask, Mask::IBV_QP_DEST_QPN) && attr.dest_qp_num > BITS_24
        || has(mask, Mask::IBV_QP_RQ_PSN) && attr.rq_psn > BITS_24
        || has(mask, Mask::IBV_QP_SQ_PSN) && attr.sq_psn > BITS_24
        || has(mask, Mask::IBV_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > MAX_RD_ATOM
        || has(mask, Mask::IBV_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > MAX_RD_ATOM
        || has(mask, Mask::IBV_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_TIMEOUT) && attr.timeout > MAX_TIMER_CODE
        || has(mask, Mask::IBV_QP_RETRY_CNT) && attr.retry_cnt > MAX_RETRIES
        || has(mask, Mask::IBV_QP_RNR_RETRY) && attr.rnr_retry > MAX_RETRIES
        // There is one path: no alternate one, and no migration.
        || has(mask, Mask::IBV_QP_ALT_PATH)
        || has(mask, Mask::IBV_QP_PATH_MIG_STATE)
            && attr.path_mig_state != ibv_mig_state::IBV_MIG_MIGRATED;
    if invalid {
        return Err(libc::EINVAL);
    }
    if has(mask, Mask::IBV_QP_ACCESS_FLAGS) {
        domain::access(attr.qp_access_flags)?;
    }
    Ok(())
}

/// Copies the attributes of `new` that `mask` names into `kept`.
fn merge(kept: &mut ibv_qp_attr, new: &ibv_qp_attr, mask: u32) {
    macro_rules! take {
        ($($bit:ident => $field:ident;)*) => {
            $(if mask & Mask::$bit.0 != 0 { kept.$field = new.$field; })*
        };
    }
    take! {
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
        IBV_QP_EN_SQD_ASYNC_NOTIFY => en_sqd_async_notify;
    }
}

/// Applies attributes that may change while a QP works.
fn apply_changes(qp: &Qp, attr: &ibv_qp_attr, mask: u32, access: Access) {
    if has(mask, Mask::IBV_QP_ACCESS_FLAGS) {
        qp.transport.set_access(access);
    }
    if has(mask, Mask::IBV_QP_QKEY) {
        qp.transport.set_qkey(attr.qkey);
    }
    if has(mask, Mask::IBV_QP_MIN_RNR_TIMER) {
        qp.transport.set_min_rnr_timer(attr.min_rnr_timer);
    }
}

/// Performs the checked transition. `attr` has all attributes set so far, `mask` names the new ones.
fn apply(
    qp: &Qp,
    (from, to): (State, State),
    attr: &ibv_qp_attr,
    mask: u32,
    destination: Option<Destination>,
) -> Result<(), c_int> {
    let access = domain::access(attr.qp_access_flags)?;
    match (from, to) {
        (_, State::Reset) => qp.transport.reset(),
        (_, State::Err) => qp.transport.fail(),
        (_, State::Init) => qp.transport.initialize(access, attr.qkey),
        (_, State::Rtr) => {
            apply_changes(qp, attr, mask, access);
            let connection = destination.map(|to| Connection {
                address: to.address,
                qpn: attr.dest_qp_num,
                flow_label: to.flow_label,
                traffic_class: to.traffic_class,
                hop_limit: to.hop_limit,
                mtu_bytes: mtu_bytes(attr.path_mtu),
            });
            qp.transport.ready_to_receive(
                connection,
                attr.rq_psn,
                attr.max_dest_rd_atomic,
                attr.min_rnr_timer,
            );
        }
        (State::Rtr, State::Rts) => {
            apply_changes(qp, attr, mask, access);
            let deliveries = (qp.kind == Kind::Rc).then_some(Deliveries {
                timeout: attr.timeout,
                retry_count: attr.retry_cnt,
                rnr_retry: attr.rnr_retry,
                max_rd_atomic: attr.max_rd_atomic,
            });
            qp.transport.ready_to_send(attr.sq_psn, deliveries);
        }
        (State::Sqd | State::Sqe, State::Rts) => {
            apply_changes(qp, attr, mask, access);
            qp.transport.resume();
        }
        (State::Rts, State::Sqd) => {
            let notifies = has(mask, Mask::IBV_QP_EN_SQD_ASYNC_NOTIFY);
            qp.transport.drain(notifies && attr.en_sqd_async_notify != 0);
        }
        _ => apply_changes(qp, attr, mask, access),
    }
    Ok(())
}

unsafe fn modify(qp: *mut ibv_qp, attr: &ibv_qp_attr, mask: u32) -> Result<(), c_int> {
    // SAFETY: a live QP of an open context.
    let (inner, device) = unsafe { (Qp::of(qp), Context::own((*qp).context)?) };
    let mut kept = inner.attributes.lock();
    let from = inner.transport.state();
    let to = if has(mask, Mask::IBV_QP_STATE) {
        State::from_number(attr.qp_state).ok_or(libc::EINVAL)?
    } else {
        from
    };
    let is_elsewhere = has(mask, Mask::IBV_QP_CUR_STATE) && attr.cur_qp_state != from as u32;
    if is_elsewhere || !transitions::allowed(inner.kind, from, to, mask) {
        return Err(libc::EINVAL);
    }
    check_values(attr, mask, active_mtu_of(device))?;
    if from == State::Sqd && to == State::Sqd && mask & FIXED_WITH_THE_CONNECTION != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let destination = has(mask, Mask::IBV_QP_AV)
        .then(|| gid::destination(&attr.ah_attr, device.address()))
        .transpose()?;
    if to == State::Reset {
        // SAFETY: integers and arrays of them: zero is a value of each.
        *kept = unsafe { std::mem::zeroed() };
    } else {
        merge(&mut kept, attr, mask);
    }
    apply(inner, (from, to), &kept, mask, destination)?;
    // SAFETY: a live QP; like libibverbs, only this call writes the field.
    unsafe { (*qp).state = to as u32 };
    Ok(())
}

/// `ibv_modify_qp(3)`. EINVAL for an invalid transition, for missing or excess attributes, and for values out of
/// range; ETIMEDOUT for a destination that no packet can reach; EOPNOTSUPP for another path, time-outs or depths of a
/// QP in SQD.
pub unsafe extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    // SAFETY: a live QP and a readable struct; the mask is a set of bits.
    super::errno::zero_or_error(unsafe { modify(qp, &*attr, mask.cast_unsigned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(attr: &mut ibv_qp_attr, bit: Mask, value: u32) {
        match bit {
            Mask::IBV_QP_PORT => attr.port_num = value as u8,
            Mask::IBV_QP_PKEY_INDEX => attr.pkey_index = value as u16,
            Mask::IBV_QP_PATH_MTU => attr.path_mtu = value,
            Mask::IBV_QP_DEST_QPN => attr.dest_qp_num = value,
            Mask::IBV_QP_RQ_PSN => attr.rq_psn = value,
            Mask::IBV_QP_SQ_PSN => attr.sq_psn = value,
            Mask::IBV_QP_MAX_QP_RD_ATOMIC => attr.max_rd_atomic = value as u8,
            Mask::IBV_QP_MAX_DEST_RD_ATOMIC => attr.max_dest_rd_atomic = value as u8,
            Mask::IBV_QP_MIN_RNR_TIMER => attr.min_rnr_timer = value as u8,
            Mask::IBV_QP_TIMEOUT => attr.timeout = value as u8,
            Mask::IBV_QP_RETRY_CNT => attr.retry_cnt = value as u8,
            Mask::IBV_QP_RNR_RETRY => attr.rnr_retry = value as u8,
            Mask::IBV_QP_PATH_MIG_STATE => attr.path_mig_state = value,
            Mask::IBV_QP_ACCESS_FLAGS => attr.qp_access_flags = value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_are_checked_where_the_mask_names_them() {
        let cases: [(Mask, &[u32], &[u32]); 14] = [
            (Mask::IBV_QP_PORT, &[1], &[0, 2]),
            (Mask::IBV_QP_PKEY_INDEX, &[0], &[1]),
            (Mask::IBV_QP_PATH_MTU, &[1, 3], &[0, 4, 5, 6]),
            (Mask::IBV_QP_DEST_QPN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_RQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_SQ_PSN, &[0, BITS_24], &[BITS_24 + 1]),
            (Mask::IBV_QP_MAX_QP_RD_ATOMIC, &[0, 128], &[129]),
            (Mask::IBV_QP_MAX_DEST_RD_ATOMIC, &[0, 128], &[129]),
            (Mask::IBV_QP_MIN_RNR_TIMER, &[0, 31], &[32]),
            (Mask::IBV_QP_TIMEOUT, &[0, 31], &[32]),
            (Mask::IBV_QP_RETRY_CNT, &[0, 7], &[8]),
            (Mask::IBV_QP_RNR_RETRY, &[0, 7], &[8]),
            (Mask::IBV_QP_PATH_MIG_STATE, &[0], &[1, 2]),
            (Mask::IBV_QP_ACCESS_FLAGS, &[0, 15], &[0x100, 0x40]),
        ];
        for (bit, good, bad) in cases {
            // SAFETY: integers and arrays of them: zero is a value of each.
            let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
            for value in [good, bad].concat() {
                set(&mut attr, bit, value);
                let is_good = [bit.0, 0].map(|mask| {
                    let outcome = check_values(&attr, mask, ibv_mtu::IBV_MTU_1024);
                    outcome.is_ok()
                });
                assert_eq!(is_good, [good.contains(&value), true], "{bit:?} {value}");
            }
        }
    }

    #[test]
    fn only_named_attributes_are_taken_over() {
        // SAFETY: integers and arrays of them: zero is a value of each.
        let (mut kept, mut new): (ibv_qp_attr, ibv_qp_attr) = unsafe { std::mem::zeroed() };
        new.timeout = 14;
        new.retry_cnt = 7;
        new.ah_attr.port_num = 1;
        merge(&mut kept, &new, Mask::IBV_QP_TIMEOUT.0 | Mask::IBV_QP_AV.0);
        assert_eq!((kept.timeout, kept.retry_cnt), (14, 0));
        assert_eq!(kept.ah_attr.port_num, 1);
    }

    #[test]
    fn states_are_numbers_to_six() {
        for number in 0..7 {
            assert_eq!(State::from_number(number).unwrap() as u32, number);
        }
        assert_eq!(State::from_number(7), None);
    }
}
