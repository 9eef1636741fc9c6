//! The calls of the data path: posting and polling. Each call also runs the device.
//!
//! A thread runs the device while a CQ is armed, because the program may sleep then.

use std::os::raw::c_int;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use provider::{Operation, Payload as Sges, SendRequest, Sge, post_list, post_receives};
use rdma_sys::{
    ibv_cq, ibv_qp, ibv_qp_state, ibv_recv_wr, ibv_send_wr, ibv_srq, ibv_wc, ibv_wc_flags,
    ibv_wc_status,
};

use super::fabric::{Fabric, Frees, Payload, RecvWr, SendWr, fabric, gather, total_bytes};

/// `ibv_post_send(3)`. EINVAL before RTS, for too many SGEs, inline data or an unknown opcode;
/// ENOMEM when the queue is full. In ERR the WR is flushed.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: the caller passes a live QP of this device and a list of WRs, as ibv_post_send(3) asks.
    unsafe {
        let qpn = (*qp).qp_num;
        posting(|fabric| {
            post_list(
                wr,
                bad,
                |wr| wr.next,
                |wr| post_one_send(fabric, qpn, &SendRequest::from_wr(wr, None)?),
            )
        })
    }
}

/// Posts to the device and runs it.
fn posting(post: impl FnOnce(&mut Fabric) -> c_int) -> c_int {
    let mut fabric = fabric();
    let outcome = post(&mut fabric);
    if outcome == 0 {
        fabric.progress();
    }
    outcome
}

/// # Safety
/// Inline data of the request is readable.
unsafe fn post_one_send(
    fabric: &mut Fabric,
    qpn: u32,
    request: &SendRequest<'_>,
) -> Result<(), c_int> {
    let qp = fabric.qps.get_mut(&qpn).ok_or(libc::EINVAL)?;
    let in_error = qp.state() == ibv_qp_state::IBV_QPS_ERR;
    if !in_error && qp.state() != ibv_qp_state::IBV_QPS_RTS {
        return Err(libc::EINVAL);
    }
    if qp.sends_posted - qp.sends_freed >= u64::from(qp.cap.max_send_wr) {
        return Err(libc::ENOMEM);
    }
    let (Sges::Inline(elements) | Sges::Registered(elements)) = request.payload;
    if elements.len() > qp.cap.max_send_sge as usize {
        return Err(libc::EINVAL);
    }
    let operation = request.operation;
    if qp.posts_writes_alone && !matches!(operation, Operation::Write { .. }) {
        return Err(libc::EINVAL);
    }
    if operation.is_local() || matches!(operation, Operation::SendInvalidate { .. }) {
        return Err(libc::EINVAL);
    }
    let payload = if matches!(request.payload, Sges::Inline(_)) {
        if operation.is_fetch() || total_bytes(elements) > u64::from(qp.cap.max_inline_data) {
            return Err(libc::EINVAL);
        }
        let mut bytes = Vec::new();
        // SAFETY: inline data is readable until the call returns, whatever its lkey.
        unsafe { gather(elements, &mut bytes) };
        Payload::Inline(bytes)
    } else {
        Payload::Segments(elements.to_vec())
    };
    let mut send = SendWr {
        sequence: qp.sends_posted,
        wr_id: request.wr_id,
        operation,
        immediate: request.immediate,
        signalled: qp.sq_sig_all || request.signaled,
        payload,
        posted_ns: 0,
        due_ns: 0,
        is_dropped: false,
        sent_again: 0,
        has_waited: false,
        unanswered_since_ns: None,
        not_ready_since_ns: None,
        fails_ns: None,
    };
    qp.sends_posted += 1;
    if in_error {
        fabric.fail_send(qpn, &send, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        return Ok(());
    }
    let now_ns = fabric.time.now_ns();
    send.posted_ns = now_ns;
    fabric.arrive(qpn, &mut send, now_ns);
    fabric.look_again_ns = fabric.look_again_ns.min(send.due_ns);
    let Fabric { qps, active, .. } = fabric;
    if let Some(sender) = qps.get_mut(&qpn) {
        if sender.sends.is_empty() {
            active.push(qpn);
        }
        sender.sends.push_back(send);
    }
    Ok(())
}

/// `ibv_post_recv(3)`. EINVAL in RESET, for a QP with an SRQ, or for too many SGEs; ENOMEM when the queue is full. In ERR
/// the WR is flushed.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live QP of this device and a list of WRs, as ibv_post_recv(3) asks.
    unsafe {
        let qpn = (*qp).qp_num;
        posting(|fabric| {
            post_receives(wr, bad, |wr_id, sges| post_one_receive(fabric, qpn, wr_id, sges))
        })
    }
}

fn post_one_receive(fabric: &mut Fabric, qpn: u32, wr_id: u64, sges: &[Sge]) -> Result<(), c_int> {
    let qp = fabric.qps.get_mut(&qpn).ok_or(libc::EINVAL)?;
    if qp.state() == ibv_qp_state::IBV_QPS_RESET
        || !qp.srq.is_null()
        || sges.len() > qp.cap.max_recv_sge as usize
    {
        return Err(libc::EINVAL);
    }
    if qp.receives_outstanding >= qp.cap.max_recv_wr {
        return Err(libc::ENOMEM);
    }
    qp.receives_outstanding += 1;
    if qp.state() == ibv_qp_state::IBV_QPS_ERR {
        fabric.fail_receive(qpn, wr_id, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
        return Ok(());
    }
    qp.receives.push_back(RecvWr { wr_id, segments: sges.to_vec() });
    Ok(())
}

/// `ibv_post_srq_recv(3)`. EINVAL for too many SGEs; ENOMEM when the queue is full.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: the caller passes a live SRQ of this device and a list of WRs, as ibv_post_srq_recv(3) asks.
    posting(|fabric| unsafe {
        post_receives(wr, bad, |wr_id, sges| post_one_shared(fabric, srq, wr_id, sges))
    })
}

fn post_one_shared(
    fabric: &mut Fabric,
    srq: *mut ibv_srq,
    wr_id: u64,
    sges: &[Sge],
) -> Result<(), c_int> {
    let srq = fabric.srqs.get_mut(&srq).ok_or(libc::EINVAL)?;
    if sges.len() > srq.max_sge as usize {
        return Err(libc::EINVAL);
    }
    if srq.outstanding >= srq.max_wr {
        return Err(libc::ENOMEM);
    }
    srq.outstanding += 1;
    srq.receives.push_back(RecvWr { wr_id, segments: sges.to_vec() });
    Ok(())
}

/// `ibv_poll_cq(3)`.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn poll_cq(
    cq: *mut ibv_cq,
    num_entries: c_int,
    wc: *mut ibv_wc,
) -> c_int {
    let mut fabric = fabric();
    fabric.progress();
    let Fabric { cqs, qps, srqs, .. } = &mut *fabric;
    let Some(cq) = cqs.get_mut(&cq) else {
        return -1;
    };
    let count = cq.entries.len().min(num_entries.max(0) as usize);
    for (index, cqe) in cq.entries.drain(..count).enumerate() {
        // SAFETY: the caller has room for `num_entries` completions, whatever they hold now.
        unsafe {
            let entry = wc.add(index);
            (*entry).wr_id = cqe.wr_id;
            (*entry).status = cqe.status;
            (*entry).opcode = cqe.opcode;
            (*entry).vendor_err = 0;
            (*entry).byte_len = cqe.byte_len;
            (*entry).imm_data_invalidated_rkey_union.imm_data = cqe.imm.unwrap_or(0);
            (*entry).qp_num = cqe.qp_num;
            (*entry).src_qp = 0;
            (*entry).wc_flags = if cqe.imm.is_some() { ibv_wc_flags::IBV_WC_WITH_IMM.0 } else { 0 };
        }
        if let Some(qp) = qps.get_mut(&cqe.qp_num) {
            match cqe.frees {
                Frees::SendsUpTo(sequence) => qp.sends_freed = qp.sends_freed.max(sequence + 1),
                Frees::OneReceive => match srqs.get_mut(&qp.srq) {
                    Some(srq) => srq.outstanding = srq.outstanding.saturating_sub(1),
                    None => qp.receives_outstanding = qp.receives_outstanding.saturating_sub(1),
                },
            }
        }
    }
    // Where more threads poll than there are cores, those that have something to do would wait for all others' time slices.
    if count == 0 && fabric.time.passes_by_itself() {
        drop(fabric);
        thread::yield_now();
    }
    count as c_int
}

/// Pause between two rounds: about the default delay of a WR.
const TICK: Duration = Duration::from_micros(10);

/// `ibv_req_notify_cq(3)` for any completion. EINVAL for a CQ without a channel.
///
/// # Safety
/// As for libibverbs.
pub(super) unsafe extern "C" fn req_notify_cq(cq: *mut ibv_cq, _solicited_only: c_int) -> c_int {
    let thread = {
        let mut fabric = fabric();
        let Some(state) = fabric.cqs.get_mut(&cq).filter(|cq| cq.notifier.is_some()) else {
            return libc::EINVAL;
        };
        state.armed = true;
        thread()
    };
    thread.unpark();
    0
}

fn thread() -> &'static thread::Thread {
    static STARTED: OnceLock<thread::Thread> = OnceLock::new();
    STARTED.get_or_init(|| {
        // It would have the name of the thread that arms first.
        let named = thread::Builder::new().name("loop0".into()).spawn(run);
        #[expect(clippy::expect_used, reason = "without a thread nobody would be woken")]
        named.expect("a thread of the device").thread().clone()
    })
}

fn run() {
    loop {
        let mut fabric = fabric();
        fabric.progress();
        let sleeps = fabric.cqs.values().any(|cq| cq.armed);
        drop(fabric);
        if sleeps {
            thread::sleep(TICK);
        } else {
            thread::park();
        }
    }
}
