//! Helpers of this crate's tests: a device opened through the public functions, connected QPs, and WRs of one SGE.

use std::os::raw::c_int;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdma_sys::{
    ibv_context, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_attr_mask, ibv_qp_cap,
    ibv_qp_init_attr, ibv_qp_state, ibv_qp_type, ibv_recv_wr, ibv_send_flags, ibv_send_wr, ibv_sge,
    ibv_wc,
};

use crate as verbs;

pub(crate) const SIGNALED: u32 = ibv_send_flags::IBV_SEND_SIGNALED.0;
pub(crate) const INLINE: u32 = ibv_send_flags::IBV_SEND_INLINE.0;
/// Local and remote write, remote read.
pub(crate) const ALL_ACCESS: c_int = 7;

/// A device used by one test at a time, since hooks and switches belong to the process.
pub(crate) struct OpenDevice {
    pub(crate) context: *mut ibv_context,
    pub(crate) pd: *mut ibv_pd,
    _alone: MutexGuard<'static, ()>,
}

impl OpenDevice {
    /// Opens the device at `index` of the list.
    pub(crate) fn open(index: usize) -> OpenDevice {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        verbs::loopback::reset_hooks();
        verbs::null::set_locked(false);
        verbs::null::set_receives_complete(false);
        // SAFETY: the calls in the order that their manual pages ask for.
        unsafe {
            let mut count = 0;
            let list = verbs::get_device_list(&raw mut count);
            assert_eq!(count, 2);
            let context = verbs::open_device(*list.add(index));
            verbs::free_device_list(list);
            assert!(!context.is_null());
            libc::fcntl((*context).async_fd, libc::F_SETFL, libc::O_NONBLOCK);
            OpenDevice {
                context,
                pd: verbs::alloc_pd(context),
                _alone: alone,
            }
        }
    }

    pub(crate) fn cq(&self, size: c_int) -> *mut ibv_cq {
        // SAFETY: the context is open.
        let cq = unsafe { verbs::create_cq(self.context, size, null_mut(), null_mut(), 0) };
        assert!(!cq.is_null());
        cq
    }

    /// An RC QP of 4 sends and 4 receives, both of one SGE, 64 bytes inline.
    pub(crate) fn qp(&self, cq: *mut ibv_cq) -> *mut ibv_qp {
        let qp = self.qp_of(cq, ibv_qp_type::IBV_QPT_RC);
        assert!(!qp.is_null());
        qp
    }

    /// Such a QP of any type; null where the device has none.
    pub(crate) fn qp_of(&self, cq: *mut ibv_cq, qp_type: ibv_qp_type::Type) -> *mut ibv_qp {
        let mut init = ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: cq,
            recv_cq: cq,
            srq: null_mut(),
            cap: ibv_qp_cap {
                max_send_wr: 4,
                max_recv_wr: 4,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 64,
            },
            qp_type,
            sq_sig_all: 0,
        };
        // SAFETY: both are live.
        unsafe { verbs::create_qp(self.pd, &raw mut init) }
    }

    /// Two QPs in RTS, connected to each other.
    pub(crate) fn pair(&self, cq: *mut ibv_cq, tune: fn(&mut ibv_qp_attr)) -> [*mut ibv_qp; 2] {
        let pair = [self.qp(cq), self.qp(cq)];
        connect(pair[0], number(pair[1]), tune);
        connect(pair[1], number(pair[0]), tune);
        pair
    }

    pub(crate) fn mr(&self, memory: &mut [u8], access: c_int) -> ibv_sge {
        let mr = self.mr_pointer(memory, access);
        // SAFETY: just registered.
        unsafe { sge(memory, (*mr).lkey) }
    }

    pub(crate) fn mr_pointer(&self, memory: &mut [u8], access: c_int) -> *mut ibv_mr {
        // SAFETY: the tests keep the memory longer than they post.
        let mr =
            unsafe { verbs::reg_mr(self.pd, memory.as_mut_ptr().cast(), memory.len(), access) };
        assert!(!mr.is_null());
        mr
    }

    /// The type of the next asynchronous event, if there is one.
    pub(crate) fn event(&self) -> Option<u32> {
        // SAFETY: zero is a value of each field; the context is open.
        unsafe {
            let mut event = std::mem::zeroed();
            let outcome = verbs::get_async_event(self.context, &raw mut event);
            (outcome == 0).then_some(event.event_type as u32)
        }
    }
}

pub(crate) fn number(qp: *mut ibv_qp) -> u32 {
    // SAFETY: the tests pass live QPs.
    unsafe { (*qp).qp_num }
}

pub(crate) fn sge(memory: &[u8], lkey: u32) -> ibv_sge {
    ibv_sge {
        addr: memory.as_ptr() as u64,
        length: memory.len() as u32,
        lkey,
    }
}

/// Attributes for every transition of a QP whose peer is `peer`.
pub(crate) fn attributes(peer: u32) -> ibv_qp_attr {
    // SAFETY: integers and arrays of them.
    let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
    attr.port_num = 1;
    attr.qp_access_flags = ALL_ACCESS as u32;
    attr.path_mtu = 5;
    attr.dest_qp_num = peer;
    attr.max_rd_atomic = 1;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.timeout = 14;
    attr.retry_cnt = 1;
    attr.rnr_retry = 7;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.sgid_index = 1;
    attr.ah_attr.grh.dgid.raw = crate::device::GIDS[1].0;
    attr
}

/// The masks of the three transitions to RTS, without that of the state.
pub(crate) fn transitions() -> [(ibv_qp_state::Type, u32); 3] {
    use ibv_qp_attr_mask as Mask;
    let init = Mask::IBV_QP_PKEY_INDEX | Mask::IBV_QP_PORT | Mask::IBV_QP_ACCESS_FLAGS;
    let rtr = Mask::IBV_QP_AV
        | Mask::IBV_QP_PATH_MTU
        | Mask::IBV_QP_DEST_QPN
        | Mask::IBV_QP_RQ_PSN
        | Mask::IBV_QP_MAX_DEST_RD_ATOMIC
        | Mask::IBV_QP_MIN_RNR_TIMER;
    let rts = Mask::IBV_QP_TIMEOUT
        | Mask::IBV_QP_RETRY_CNT
        | Mask::IBV_QP_RNR_RETRY
        | Mask::IBV_QP_SQ_PSN
        | Mask::IBV_QP_MAX_QP_RD_ATOMIC;
    [
        (ibv_qp_state::IBV_QPS_INIT, init.0),
        (ibv_qp_state::IBV_QPS_RTR, rtr.0),
        (ibv_qp_state::IBV_QPS_RTS, rts.0),
    ]
}

/// `modify_qp` to a state, with the attributes of `mask`.
pub(crate) fn modify(
    qp: *mut ibv_qp,
    mut attr: ibv_qp_attr,
    (state, mask): (ibv_qp_state::Type, u32),
) -> c_int {
    attr.qp_state = state;
    let mask = mask | ibv_qp_attr_mask::IBV_QP_STATE.0;
    // SAFETY: the tests pass live QPs.
    unsafe { verbs::modify_qp(qp, &raw mut attr, mask.cast_signed()) }
}

pub(crate) fn connect(qp: *mut ibv_qp, peer: u32, tune: fn(&mut ibv_qp_attr)) {
    for transition in transitions() {
        let mut attr = attributes(peer);
        tune(&mut attr);
        assert_eq!(modify(qp, attr, transition), 0, "to state {}", transition.0);
    }
}

/// A send WR of one SGE.
pub(crate) fn send_wr(wr_id: u64, opcode: u32, flags: u32, sge: &mut ibv_sge) -> ibv_send_wr {
    // SAFETY: integers, pointers and unions of them.
    let mut wr: ibv_send_wr = unsafe { std::mem::zeroed() };
    wr.wr_id = wr_id;
    wr.opcode = opcode;
    wr.send_flags = flags;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr
}

pub(crate) fn post_wr(qp: *mut ibv_qp, wr: &mut ibv_send_wr) -> c_int {
    let mut bad = null_mut();
    // SAFETY: a live QP; the WR and its SGE outlive the call.
    unsafe {
        let outcome = (*(*qp).context).ops.post_send.unwrap()(qp, wr, &raw mut bad);
        assert_eq!(outcome != 0, !bad.is_null());
        outcome
    }
}

pub(crate) fn post(
    qp: *mut ibv_qp,
    wr_id: u64,
    opcode: u32,
    flags: u32,
    mut sge: ibv_sge,
) -> c_int {
    post_wr(qp, &mut send_wr(wr_id, opcode, flags, &mut sge))
}

/// Posts a write or read of the range `remote` under `rkey`.
pub(crate) fn post_remote(
    qp: *mut ibv_qp,
    (wr_id, opcode): (u64, u32),
    mut sge: ibv_sge,
    (remote, rkey): (u64, u32),
) -> c_int {
    let mut wr = send_wr(wr_id, opcode, SIGNALED, &mut sge);
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = rkey;
    post_wr(qp, &mut wr)
}

pub(crate) fn post_receive(qp: *mut ibv_qp, wr_id: u64, mut sge: ibv_sge) -> c_int {
    let mut wr = ibv_recv_wr {
        wr_id,
        next: null_mut(),
        sg_list: &raw mut sge,
        num_sge: 1,
    };
    let mut bad = null_mut();
    // SAFETY: as for `post_wr`.
    unsafe { (*(*qp).context).ops.post_recv.unwrap()(qp, &raw mut wr, &raw mut bad) }
}

/// Up to 16 completions of a CQ.
pub(crate) fn poll(cq: *mut ibv_cq) -> Vec<ibv_wc> {
    // SAFETY: a live CQ, room for 16; integers, for which zero is a value.
    unsafe {
        let mut wc: [ibv_wc; 16] = std::mem::zeroed();
        let count = (*(*cq).context).ops.poll_cq.unwrap()(cq, 16, wc.as_mut_ptr());
        wc.into_iter()
            .take(usize::try_from(count).unwrap())
            .collect()
    }
}

/// Polls until `count` completions came; fails when they do not.
pub(crate) fn wait(cq: *mut ibv_cq, count: usize) -> Vec<ibv_wc> {
    let end = Instant::now() + Duration::from_secs(20);
    let mut all = Vec::new();
    while all.len() < count {
        assert!(Instant::now() < end, "{} of {count} completions", all.len());
        all.extend(poll(cq));
    }
    all
}

/// The (wr_id, status) of each.
pub(crate) fn statuses(wcs: &[ibv_wc]) -> Vec<(u64, u32)> {
    wcs.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}
