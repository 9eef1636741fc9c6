//! Executes sends: the effects of a WR on its own QP and on the peer's.

use provider::{Operation, Sge};
use rdma_sys::ibv_wc_status::{
    IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_REM_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_SUCCESS, Type as Status,
};
use rdma_sys::{ibv_event_type, ibv_qp_state, ibv_wc_opcode};

use super::fabric::{
    ATOMIC_BYTES, Cqe, Fabric, Frees, LOCAL_WRITE, Payload, REMOTE_ATOMIC, REMOTE_READ,
    REMOTE_WRITE, RecvWr, SendWr, Served, gather, scatter, total_bytes,
};

/// The longest message, in bytes.
const MAX_MESSAGE_BYTES: u32 = 1 << 30;
/// Time-out of a transmission: a WR fails after `retry_cnt` of them without an answer.
const RETRY_TIMEOUT_NS: u64 = 50_000_000;
/// Pause before a retry when the receiver is not ready: `rnr_retry` times, or for ever if that is 7.
const RNR_TIMEOUT_NS: u64 = 1_000_000;
/// The bits of a PSN: the upper 8 of `rq_psn` and `sq_psn` do not count.
const PSN_MASK: u32 = 0x00ff_ffff;
/// The `rnr_retry` that means for ever.
const RNR_RETRY_FOR_EVER: u8 = 7;

/// What became of a QP's oldest WR.
#[derive(PartialEq, Eq)]
enum Step {
    Done,
    /// It must wait, or there is none.
    Waits,
}

/// The opcode of its completion and its length, if a WR does not have to wait.
type Outcome = Result<Option<(u32, u32)>, Status>;

/// Attributes of a WR's own QP for its execution.
struct Requester {
    qpn: u32,
    pd: u32,
    max_rd_atomic: u8,
    rnr_retry: u8,
    is_unreliable: bool,
}

/// Attributes of the peer's QP.
struct Responder {
    qpn: u32,
    pd: u32,
    access: u32,
    max_dest_rd_atomic: u8,
}

impl Fabric {
    /// Executes every WR that is due.
    pub(super) fn progress(&mut self) {
        let now_ns = self.time.now_ns();
        if self.active.is_empty() || now_ns < self.look_again_ns {
            return;
        }
        let mut turn = std::mem::take(&mut self.active);
        let first = (self.random() % turn.len() as u64) as usize;
        turn.rotate_left(first);
        if self.service.is_in_order() {
            self.step_in_order(&turn, now_ns);
        } else {
            for qpn in &turn {
                while self.step(*qpn, now_ns) == Step::Done {}
            }
        }
        turn.retain(|qpn| self.qps.get(qpn).is_some_and(|qp| !qp.sends.is_empty()));
        self.look_again_ns = self.next_due_of(&turn).unwrap_or(u64::MAX);
        self.active = turn;
    }

    /// The WRs of these QPs that are due, in the order in which they are. One that waits for its peer keeps its QP waiting.
    fn step_in_order(&mut self, turn: &[u32], now_ns: u64) {
        let mut ready: Vec<u32> = turn.to_vec();
        loop {
            ready.retain(|qpn| self.due_of(*qpn).is_some_and(|due_ns| due_ns <= now_ns));
            let Some(&next) = ready.iter().min_by_key(|qpn| self.due_of(**qpn)) else {
                return;
            };
            if self.step(next, now_ns) == Step::Waits {
                ready.retain(|qpn| *qpn != next);
            }
        }
    }

    /// When the oldest WR of a QP is due.
    fn due_of(&self, qpn: u32) -> Option<u64> {
        Some(self.qps.get(&qpn)?.sends.front()?.due_ns)
    }

    /// When the first WR of these QPs is due.
    pub(super) fn next_due_of(&self, qpns: &[u32]) -> Option<u64> {
        qpns.iter().filter_map(|qpn| self.due_of(*qpn)).min()
    }

    /// When the first WR is due that does not wait for its peer, or one that does gives up.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        if !self.active.is_empty() && self.look_again_ns > self.time.now_ns() {
            return Some(self.look_again_ns);
        }
        self.active
            .iter()
            .filter_map(|qpn| self.qps.get(qpn)?.sends.front())
            .filter_map(|wr| if wr.has_waited { wr.fails_ns } else { Some(wr.due_ns) })
            .min()
    }

    /// Executes a QP's oldest WR, if it is due.
    fn step(&mut self, qpn: u32, now_ns: u64) -> Step {
        if self.due_of(qpn).is_none_or(|due_ns| due_ns > now_ns) {
            return Step::Waits;
        }
        let Some(mut wr) = self.qps.get_mut(&qpn).and_then(|qp| qp.sends.pop_front()) else {
            return Step::Waits;
        };
        if wr.is_dropped {
            return self.send_again(qpn, wr);
        }
        let outcome = match self.hooks.fail.take() {
            Some(status) => Err(status),
            None => self.execute(qpn, &mut wr, now_ns),
        };
        if matches!(outcome, Ok(None)) {
            wr.has_waited = true;
            self.put_back(qpn, wr);
            return Step::Waits;
        }
        self.served(qpn, &wr, now_ns);
        match outcome {
            Err(status) => {
                self.fail_send(qpn, &wr, status);
                self.move_to_error(qpn);
            }
            Ok(done) => {
                let qp = self.qps.get(&qpn).filter(|_| wr.signalled);
                if let (Some((opcode, byte_len)), Some(qp)) = (done, qp) {
                    let frees = Frees::SendsUpTo(wr.sequence);
                    let cqe =
                        Cqe { opcode, byte_len, ..Cqe::bare(wr.wr_id, IBV_WC_SUCCESS, qpn, frees) };
                    self.complete(qp.send_cq, cqe);
                }
            }
        }
        Step::Done
    }

    /// Posts a WR again that a full queue had dropped, unless its retries are over.
    fn send_again(&mut self, qpn: u32, mut wr: SendWr) -> Step {
        let Some(qp) = self.qps.get(&qpn) else {
            return Step::Waits;
        };
        if wr.sent_again > qp.attr.retry_cnt {
            self.fail_send(qpn, &wr, IBV_WC_RETRY_EXC_ERR);
            self.move_to_error(qpn);
            return Step::Done;
        }
        let due_ns = wr.due_ns;
        self.arrive(qpn, &mut wr, due_ns);
        self.put_back(qpn, wr);
        Step::Done
    }

    fn put_back(&mut self, qpn: u32, wr: SendWr) {
        if let Some(qp) = self.qps.get_mut(&qpn) {
            qp.sends.push_front(wr);
        }
    }

    /// Decides when a WR that reaches its server at `at_ns` is due.
    pub(super) fn arrive(&mut self, qpn: u32, wr: &mut SendWr, at_ns: u64) {
        let draw = self.random();
        match self.service.arrive(qpn, at_ns, draw) {
            Some(due_ns) => (wr.due_ns, wr.is_dropped) = (due_ns, false),
            None => {
                wr.sent_again += 1;
                (wr.due_ns, wr.is_dropped) = (at_ns + RETRY_TIMEOUT_NS, true);
            }
        }
    }

    /// Notes a WR that has been executed.
    fn served(&mut self, qpn: u32, wr: &SendWr, now_ns: u64) {
        let done_ns = if wr.has_waited { now_ns } else { wr.due_ns };
        self.service.left(qpn);
        if let Some(log) = &mut self.log {
            log.push(Served {
                qp_num: qpn,
                wr_id: wr.wr_id,
                posted_ns: wr.posted_ns,
                done_ns,
                is_signalled: wr.signalled,
            });
        }
    }

    fn execute(&mut self, qpn: u32, wr: &mut SendWr, now_ns: u64) -> Outcome {
        let Some(qp) = self.qps.get(&qpn) else {
            return Ok(None);
        };
        let requester = Requester {
            qpn,
            pd: qp.pd,
            max_rd_atomic: qp.attr.max_rd_atomic,
            rnr_retry: qp.attr.rnr_retry,
            is_unreliable: qp.is_unreliable,
        };
        let patience_ns = RETRY_TIMEOUT_NS * u64::from(qp.attr.retry_cnt.max(1));
        let Some(responder) = self.responder(qpn) else {
            let since_ns = *wr.unanswered_since_ns.get_or_insert(now_ns);
            wait_or_fail(wr, since_ns + patience_ns, now_ns, IBV_WC_RETRY_EXC_ERR)?;
            return Ok(None);
        };
        wr.unanswered_since_ns = None;
        wr.fails_ns = None;
        let length = match &wr.payload {
            Payload::Inline(bytes) => bytes.len() as u64,
            Payload::Segments(segments) => total_bytes(segments),
        };
        if length > u64::from(MAX_MESSAGE_BYTES) {
            return Err(IBV_WC_LOC_LEN_ERR);
        }
        match wr.operation {
            Operation::Send => self.send(&requester, &responder, wr, now_ns),
            Operation::Write { address, rkey } => {
                let to = Remote { address, rkey, length, need: REMOTE_WRITE };
                self.write(&requester, &responder, wr, now_ns, to)
            }
            Operation::Read { address, rkey } => {
                let from = Remote { address, rkey, length, need: REMOTE_READ };
                self.fetch(&requester, &responder, wr, from, ibv_wc_opcode::IBV_WC_RDMA_READ)
            }
            Operation::FetchAdd { address, rkey, .. } => {
                let from = Remote { address, rkey, length: ATOMIC_BYTES, need: REMOTE_ATOMIC };
                self.fetch(&requester, &responder, wr, from, ibv_wc_opcode::IBV_WC_FETCH_ADD)
            }
            Operation::CompareSwap { address, rkey, .. } => {
                let from = Remote { address, rkey, length: ATOMIC_BYTES, need: REMOTE_ATOMIC };
                self.fetch(&requester, &responder, wr, from, ibv_wc_opcode::IBV_WC_COMP_SWAP)
            }
            // Refused when it was posted.
            Operation::Bind { .. }
            | Operation::Invalidate { .. }
            | Operation::SendInvalidate { .. } => Err(IBV_WC_LOC_QP_OP_ERR),
        }
    }

    /// The QP at the other end, if it would answer: it is connected to this one and expects its PSN.
    fn responder(&self, qpn: u32) -> Option<Responder> {
        let requester = self.qps.get(&qpn)?;
        let peer_qpn = requester.attr.dest_qp_num;
        let peer = self.qps.get(&peer_qpn)?;
        let ready = matches!(peer.state(), ibv_qp_state::IBV_QPS_RTR | ibv_qp_state::IBV_QPS_RTS);
        let same_psn = (peer.attr.rq_psn ^ requester.attr.sq_psn) & PSN_MASK == 0;
        (ready && same_psn && peer.attr.dest_qp_num == qpn).then_some(Responder {
            qpn: peer_qpn,
            pd: peer.pd,
            access: peer.attr.qp_access_flags,
            max_dest_rd_atomic: peer.attr.max_dest_rd_atomic,
        })
    }

    /// The payload of a send or write, as it arrives.
    fn outgoing(&mut self, requester: &Requester, wr: &SendWr) -> Result<Vec<u8>, Status> {
        let mut bytes = Vec::new();
        match &wr.payload {
            Payload::Inline(inline) => bytes.extend_from_slice(inline),
            Payload::Segments(segments) => {
                if !self.memory.local_ok(segments, requester.pd, 0) {
                    return Err(IBV_WC_LOC_PROT_ERR);
                }
                // SAFETY: just checked against the regions.
                unsafe { gather(segments, &mut bytes) };
            }
        }
        self.corrupt(requester.qpn, &mut bytes);
        Ok(bytes)
    }

    fn corrupt(&mut self, qpn: u32, bytes: &mut [u8]) {
        if let Some((wanted, index)) = self.hooks.corrupt
            && wanted.is_none_or(|wanted| wanted == qpn)
            && let Some(byte) = bytes.get_mut(index)
        {
            *byte = !*byte;
            self.hooks.corrupt = None;
        }
    }

    /// Whether the peer has a receive for the WR. If not, it waits, or fails in the end; over UC it is lost.
    fn is_ready(
        &self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now_ns: u64,
    ) -> Result<bool, Status> {
        let peer = self.qps.get(&responder.qpn);
        let is_ready = peer.is_some_and(|peer| match self.srqs.get(&peer.srq) {
            Some(srq) => !srq.receives.is_empty(),
            None => !peer.receives.is_empty(),
        });
        if !is_ready && !requester.is_unreliable && requester.rnr_retry != RNR_RETRY_FOR_EVER {
            let patience_ns = RNR_TIMEOUT_NS * u64::from(requester.rnr_retry);
            let since_ns = *wr.not_ready_since_ns.get_or_insert(now_ns);
            let fails_ns = since_ns + patience_ns;
            wait_or_fail(wr, fails_ns, now_ns, IBV_WC_RNR_RETRY_EXC_ERR)?;
        }
        Ok(is_ready)
    }

    fn take_receive(&mut self, responder: &Responder) -> Option<RecvWr> {
        let peer = self.qps.get_mut(&responder.qpn)?;
        let srq = peer.srq;
        if srq.is_null() { peer.receives.pop_front() } else { self.take_shared_receive(srq) }
    }

    fn receive_done(
        &mut self,
        responder: &Responder,
        wr_id: u64,
        opcode: u32,
        byte_len: u32,
        imm: Option<u32>,
    ) {
        let Some(peer) = self.qps.get(&responder.qpn) else {
            return;
        };
        let cqe = Cqe {
            opcode,
            byte_len,
            imm,
            ..Cqe::bare(wr_id, IBV_WC_SUCCESS, responder.qpn, Frees::OneReceive)
        };
        self.complete(peer.recv_cq, cqe);
    }

    fn send(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now_ns: u64,
    ) -> Outcome {
        if !self.is_ready(requester, responder, wr, now_ns)? {
            return Ok(requester.is_unreliable.then_some((ibv_wc_opcode::IBV_WC_SEND, 0)));
        }
        let bytes = self.outgoing(requester, wr)?;
        let Some(receive) = self.take_receive(responder) else {
            return Ok(None);
        };
        let byte_len = bytes.len() as u32;
        let (segments, pd) = (&receive.segments, responder.pd);
        let refused = if total_bytes(segments) < u64::from(byte_len) {
            Some((IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR))
        } else if !self.memory.local_ok(segments, pd, LOCAL_WRITE) {
            Some((IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR))
        } else {
            None
        };
        if let Some((at_the_peer, here)) = refused {
            self.fail_receive(responder.qpn, receive.wr_id, at_the_peer);
            self.move_to_error(responder.qpn);
            return Err(here);
        }
        // SAFETY: just checked against the regions.
        unsafe { scatter(&bytes, &receive.segments) };
        let opcode = ibv_wc_opcode::IBV_WC_RECV;
        self.receive_done(responder, receive.wr_id, opcode, byte_len, wr.immediate);
        Ok(Some((ibv_wc_opcode::IBV_WC_SEND, byte_len)))
    }

    fn write(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now_ns: u64,
        to: Remote,
    ) -> Outcome {
        let with_imm = wr.immediate.is_some();
        if with_imm && !self.is_ready(requester, responder, wr, now_ns)? {
            return Ok(requester.is_unreliable.then_some((ibv_wc_opcode::IBV_WC_RDMA_WRITE, 0)));
        }
        let bytes = self.outgoing(requester, wr)?;
        if !self.remote_ok(responder, to) {
            return Err(self.remote_access_error(responder));
        }
        // SAFETY: just checked against the region.
        unsafe { scatter(&bytes, &[to.segment()]) };
        let byte_len = bytes.len() as u32;
        if with_imm && let Some(receive) = self.take_receive(responder) {
            let opcode = ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM;
            self.receive_done(responder, receive.wr_id, opcode, byte_len, wr.immediate);
        }
        Ok(Some((ibv_wc_opcode::IBV_WC_RDMA_WRITE, byte_len)))
    }

    /// Fetches bytes of the responder, which an atomic operation then changes.
    fn fetch(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &SendWr,
        from: Remote,
        opcode: u32,
    ) -> Outcome {
        let Payload::Segments(segments) = &wr.payload else {
            return Err(IBV_WC_LOC_QP_OP_ERR);
        };
        if requester.max_rd_atomic == 0 {
            return Err(IBV_WC_LOC_QP_OP_ERR);
        }
        if !self.memory.local_ok(segments, requester.pd, LOCAL_WRITE) {
            return Err(IBV_WC_LOC_PROT_ERR);
        }
        let is_aligned = from.need == REMOTE_READ || from.address.is_multiple_of(ATOMIC_BYTES);
        if responder.max_dest_rd_atomic == 0 || !is_aligned {
            self.move_to_error(responder.qpn);
            return Err(IBV_WC_REM_INV_REQ_ERR);
        }
        if !self.remote_ok(responder, from) {
            return Err(self.remote_access_error(responder));
        }
        let mut bytes = Vec::new();
        // SAFETY: both just checked against their regions.
        unsafe {
            gather(&[from.segment()], &mut bytes);
            if let Ok(old) = <[u8; 8]>::try_from(&bytes[..])
                && let Some(new) = exchanged(wr.operation, u64::from_ne_bytes(old))
            {
                scatter(&new.to_ne_bytes(), &[from.segment()]);
            }
            self.corrupt(requester.qpn, &mut bytes);
            scatter(&bytes, segments);
        }
        Ok(Some((opcode, from.length as u32)))
    }

    /// Whether both the peer's QP and its MR allow the access.
    fn remote_ok(&self, responder: &Responder, remote: Remote) -> bool {
        let Remote { address, rkey, length, need } = remote;
        responder.access & need == need
            && self.memory.remote_ok(rkey, responder.pd, address, length, need)
    }

    fn remote_access_error(&mut self, responder: &Responder) -> Status {
        self.raise_for_qp(responder.qpn, ibv_event_type::IBV_EVENT_QP_ACCESS_ERR);
        self.move_to_error(responder.qpn);
        IBV_WC_REM_ACCESS_ERR
    }
}

/// The peer's side of a write, read or atomic operation.
#[derive(Clone, Copy)]
struct Remote {
    address: u64,
    rkey: u32,
    length: u64,
    /// The access that it needs.
    need: u32,
}

impl Remote {
    /// For who has checked its key.
    fn segment(self) -> Sge {
        Sge { address: self.address, length_bytes: self.length as u32, lkey: 0 }
    }
}

/// What an atomic operation makes of 8 bytes; `None` for others, and where it leaves them as they are.
fn exchanged(operation: Operation, old: u64) -> Option<u64> {
    match operation {
        Operation::FetchAdd { add, .. } => Some(old.wrapping_add(add)),
        Operation::CompareSwap { compare, swap, .. } => (old == compare).then_some(swap),
        _ => None,
    }
}

/// The WR waits for its peer until `fails_ns`.
fn wait_or_fail(wr: &mut SendWr, fails_ns: u64, now_ns: u64, status: Status) -> Result<(), Status> {
    wr.fails_ns = Some(fails_ns);
    (now_ns < fails_ns).then_some(()).ok_or(status)
}
