//! Executes sends: the effects of a WR on its own QP and on the peer's.

use std::time::{Duration, Instant};

use rdma_sys::{ibv_event_type, ibv_qp_state, ibv_wc_opcode, ibv_wc_status, ibv_wr_opcode};

use super::fabric::{Cqe, Fabric, Frees, Payload, Qp, RecvWr, SendWr};
use super::memory::{
    ATOMIC_BYTES, LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE, Segment, gather, scatter,
    total_bytes,
};
use crate::device::MAX_MESSAGE_BYTES;

/// Time-out of a transmission: a WR fails after `retry_cnt` of them without an answer.
const RETRY_TIMEOUT: Duration = Duration::from_millis(50);
/// Pause before a retry when the receiver is not ready: `rnr_retry` times, or for ever if that is 7.
const RNR_TIMEOUT: Duration = Duration::from_millis(1);
/// PSNs have 24 bits.
const PSN_MASK: u32 = 0x00ff_ffff;
/// The `rnr_retry` that means for ever.
const RNR_RETRY_FOR_EVER: u8 = 7;

enum Outcome {
    Done { opcode: u32, byte_len: u32 },
    Failed(ibv_wc_status::Type),
    Wait,
}

/// Attributes of a WR's own QP for its execution.
struct Requester {
    qpn: u32,
    pd: usize,
    max_rd_atomic: u8,
    rnr_retry: u8,
}

/// Attributes of the peer's QP.
struct Responder {
    qpn: u32,
    pd: usize,
    access: u32,
    max_dest_rd_atomic: u8,
}

impl Fabric {
    /// Executes every WR that is due.
    pub(super) fn progress(&mut self) {
        if self.active.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut turn = std::mem::take(&mut self.active);
        let first = (self.random() % turn.len() as u64) as usize;
        turn.rotate_left(first);
        for qpn in &turn {
            while self.step(*qpn, now) {}
        }
        turn.retain(|qpn| self.qps.get(qpn).is_some_and(|qp| !qp.sends.is_empty()));
        self.active = turn;
    }

    /// Executes a QP's oldest WR; false if it must wait or there is none.
    fn step(&mut self, qpn: u32, now: Instant) -> bool {
        let Some(qp) = self.qps.get_mut(&qpn) else {
            return false;
        };
        if qp.sends.front().is_none_or(|wr| wr.due > now) {
            return false;
        }
        let Some(mut wr) = qp.sends.pop_front() else {
            return false;
        };
        match self.execute(qpn, &mut wr, now) {
            Outcome::Wait => {
                if let Some(qp) = self.qps.get_mut(&qpn) {
                    qp.sends.push_front(wr);
                }
                return false;
            }
            Outcome::Failed(status) => {
                self.fail_send(qpn, &wr, status);
                self.move_to_error(qpn);
            }
            Outcome::Done { opcode, byte_len } => {
                if let (true, Some(qp)) = (wr.signalled, self.qps.get(&qpn)) {
                    let cqe = Cqe {
                        wr_id: wr.wr_id,
                        status: ibv_wc_status::IBV_WC_SUCCESS,
                        opcode,
                        byte_len,
                        imm: None,
                        qp_num: qpn,
                        frees: Frees::SendsUpTo(wr.sequence),
                    };
                    self.complete(qp.send_cq, cqe);
                }
            }
        }
        true
    }

    fn execute(&mut self, qpn: u32, wr: &mut SendWr, now: Instant) -> Outcome {
        let Some(qp) = self.qps.get(&qpn) else {
            return Outcome::Wait;
        };
        let requester = Requester {
            qpn,
            pd: qp.pd,
            max_rd_atomic: qp.attr.max_rd_atomic,
            rnr_retry: qp.attr.rnr_retry,
        };
        let patience = RETRY_TIMEOUT * u32::from(qp.attr.retry_cnt.max(1));
        if let Some(status) = self.hooks.fail.take() {
            return Outcome::Failed(status);
        }
        let Some(responder) = self.responder(qpn) else {
            let status = ibv_wc_status::IBV_WC_RETRY_EXC_ERR;
            return wait_or_fail(&mut wr.unanswered_since, now, patience, status);
        };
        wr.unanswered_since = None;
        let length = match &wr.payload {
            Payload::Inline(bytes) => bytes.len() as u64,
            Payload::Segments(segments) => total_bytes(segments),
        };
        if length > u64::from(MAX_MESSAGE_BYTES) {
            return Outcome::Failed(ibv_wc_status::IBV_WC_LOC_LEN_ERR);
        }
        match wr.opcode {
            ibv_wr_opcode::IBV_WR_RDMA_READ => {
                let opcode = ibv_wc_opcode::IBV_WC_RDMA_READ;
                self.fetch(&requester, &responder, wr, length, opcode)
            }
            ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP => {
                let opcode = ibv_wc_opcode::IBV_WC_COMP_SWAP;
                self.fetch(&requester, &responder, wr, ATOMIC_BYTES, opcode)
            }
            ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD => {
                let opcode = ibv_wc_opcode::IBV_WC_FETCH_ADD;
                self.fetch(&requester, &responder, wr, ATOMIC_BYTES, opcode)
            }
            ibv_wr_opcode::IBV_WR_SEND | ibv_wr_opcode::IBV_WR_SEND_WITH_IMM => {
                self.send(&requester, &responder, wr, now)
            }
            ibv_wr_opcode::IBV_WR_RDMA_WRITE | ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM => {
                self.write(&requester, &responder, wr, now, length)
            }
            _ => Outcome::Failed(ibv_wc_status::IBV_WC_LOC_QP_OP_ERR),
        }
    }

    /// The QP at the other end, if it would answer: it is connected to this one and expects its PSN.
    fn responder(&self, qpn: u32) -> Option<Responder> {
        let requester = self.qps.get(&qpn)?;
        let peer_qpn = requester.attr.dest_qp_num;
        let peer = self.qps.get(&peer_qpn)?;
        let ready = matches!(
            peer.state(),
            ibv_qp_state::IBV_QPS_RTR | ibv_qp_state::IBV_QPS_RTS
        );
        let same_psn = (peer.attr.rq_psn ^ requester.attr.sq_psn) & PSN_MASK == 0;
        (ready && same_psn && peer.attr.dest_qp_num == qpn).then_some(Responder {
            qpn: peer_qpn,
            pd: peer.pd,
            access: peer.attr.qp_access_flags,
            max_dest_rd_atomic: peer.attr.max_dest_rd_atomic,
        })
    }

    /// The payload of a send or write, as it arrives.
    fn outgoing(
        &mut self,
        requester: &Requester,
        wr: &SendWr,
    ) -> Result<Vec<u8>, ibv_wc_status::Type> {
        let mut bytes = Vec::new();
        match &wr.payload {
            Payload::Inline(inline) => bytes.extend_from_slice(inline),
            Payload::Segments(segments) => {
                if !self.memory.local_ok(segments, requester.pd, 0) {
                    return Err(ibv_wc_status::IBV_WC_LOC_PROT_ERR);
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

    /// How to go on if the peer has no receive for the WR; `None` if it has one.
    fn not_ready(
        &self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now: Instant,
    ) -> Option<Outcome> {
        let peer = self.qps.get(&responder.qpn);
        let has_receive = |peer: &Qp| match self.srqs.get(&peer.srq) {
            Some(srq) => !srq.receives.is_empty(),
            None => !peer.receives.is_empty(),
        };
        if peer.is_some_and(has_receive) {
            return None;
        }
        if requester.rnr_retry == RNR_RETRY_FOR_EVER {
            return Some(Outcome::Wait);
        }
        let patience = RNR_TIMEOUT * u32::from(requester.rnr_retry);
        let status = ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR;
        Some(wait_or_fail(&mut wr.not_ready_since, now, patience, status))
    }

    fn take_receive(&mut self, responder: &Responder) -> Option<RecvWr> {
        let peer = self.qps.get_mut(&responder.qpn)?;
        let srq = peer.srq;
        match srq.is_null() {
            true => peer.receives.pop_front(),
            false => self.take_shared_receive(srq),
        }
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
            wr_id,
            status: ibv_wc_status::IBV_WC_SUCCESS,
            opcode,
            byte_len,
            imm,
            qp_num: responder.qpn,
            frees: Frees::OneReceive,
        };
        self.complete(peer.recv_cq, cqe);
    }

    fn send(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now: Instant,
    ) -> Outcome {
        if let Some(outcome) = self.not_ready(requester, responder, wr, now) {
            return outcome;
        }
        let bytes = match self.outgoing(requester, wr) {
            Ok(bytes) => bytes,
            Err(status) => return Outcome::Failed(status),
        };
        let Some(receive) = self.take_receive(responder) else {
            return Outcome::Wait;
        };
        let byte_len = bytes.len() as u32;
        let refused = if total_bytes(&receive.segments) < u64::from(byte_len) {
            Some((
                ibv_wc_status::IBV_WC_LOC_LEN_ERR,
                ibv_wc_status::IBV_WC_REM_INV_REQ_ERR,
            ))
        } else if !self
            .memory
            .local_ok(&receive.segments, responder.pd, LOCAL_WRITE)
        {
            Some((
                ibv_wc_status::IBV_WC_LOC_PROT_ERR,
                ibv_wc_status::IBV_WC_REM_OP_ERR,
            ))
        } else {
            None
        };
        if let Some((at_the_peer, here)) = refused {
            self.fail_receive(responder.qpn, receive.wr_id, at_the_peer);
            self.move_to_error(responder.qpn);
            return Outcome::Failed(here);
        }
        // SAFETY: just checked against the regions.
        unsafe { scatter(&bytes, &receive.segments) };
        let imm = (wr.opcode == ibv_wr_opcode::IBV_WR_SEND_WITH_IMM).then_some(wr.imm);
        self.receive_done(
            responder,
            receive.wr_id,
            ibv_wc_opcode::IBV_WC_RECV,
            byte_len,
            imm,
        );
        Outcome::Done {
            opcode: ibv_wc_opcode::IBV_WC_SEND,
            byte_len,
        }
    }

    fn write(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &mut SendWr,
        now: Instant,
        length: u64,
    ) -> Outcome {
        let with_imm = wr.opcode == ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
        if with_imm && let Some(outcome) = self.not_ready(requester, responder, wr, now) {
            return outcome;
        }
        let bytes = match self.outgoing(requester, wr) {
            Ok(bytes) => bytes,
            Err(status) => return Outcome::Failed(status),
        };
        if !self.remote_ok(responder, wr, length, REMOTE_WRITE) {
            return self.remote_access_error(responder);
        }
        let byte_len = bytes.len() as u32;
        // SAFETY: just checked against the region.
        unsafe { scatter(&bytes, &[remote_segment(wr, byte_len)]) };
        if with_imm && let Some(receive) = self.take_receive(responder) {
            let opcode = ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM;
            self.receive_done(responder, receive.wr_id, opcode, byte_len, Some(wr.imm));
        }
        Outcome::Done {
            opcode: ibv_wc_opcode::IBV_WC_RDMA_WRITE,
            byte_len,
        }
    }

    /// Fetches `length` bytes of the responder, which an atomic operation then changes.
    fn fetch(
        &mut self,
        requester: &Requester,
        responder: &Responder,
        wr: &SendWr,
        length: u64,
        opcode: u32,
    ) -> Outcome {
        let Payload::Segments(segments) = &wr.payload else {
            return Outcome::Failed(ibv_wc_status::IBV_WC_LOC_QP_OP_ERR);
        };
        if requester.max_rd_atomic == 0 {
            return Outcome::Failed(ibv_wc_status::IBV_WC_LOC_QP_OP_ERR);
        }
        if !self.memory.local_ok(segments, requester.pd, LOCAL_WRITE) {
            return Outcome::Failed(ibv_wc_status::IBV_WC_LOC_PROT_ERR);
        }
        if responder.max_dest_rd_atomic == 0 {
            self.move_to_error(responder.qpn);
            return Outcome::Failed(ibv_wc_status::IBV_WC_REM_INV_REQ_ERR);
        }
        let need = match wr.exchange {
            None => REMOTE_READ,
            Some(_) if !wr.remote_address.is_multiple_of(ATOMIC_BYTES) => {
                self.move_to_error(responder.qpn);
                return Outcome::Failed(ibv_wc_status::IBV_WC_REM_INV_REQ_ERR);
            }
            Some(_) => REMOTE_ATOMIC,
        };
        if !self.remote_ok(responder, wr, length, need) {
            return self.remote_access_error(responder);
        }
        let byte_len = length as u32;
        let mut bytes = Vec::new();
        // SAFETY: both just checked against their regions.
        unsafe {
            gather(&[remote_segment(wr, byte_len)], &mut bytes);
            if let (Some(exchange), Ok(old)) = (wr.exchange, <[u8; 8]>::try_from(&bytes[..])) {
                let new = exchange.new_value(u64::from_ne_bytes(old));
                scatter(&new.to_ne_bytes(), &[remote_segment(wr, byte_len)]);
            }
            self.corrupt(requester.qpn, &mut bytes);
            scatter(&bytes, segments);
        }
        Outcome::Done { opcode, byte_len }
    }

    /// Whether both the peer's QP and its MR allow the WR.
    fn remote_ok(&self, responder: &Responder, wr: &SendWr, length: u64, need: u32) -> bool {
        let address = wr.remote_address;
        responder.access & need == need
            && self
                .memory
                .remote_ok(wr.rkey, responder.pd, address, length, need)
    }

    fn remote_access_error(&mut self, responder: &Responder) -> Outcome {
        self.raise_for_qp(responder.qpn, ibv_event_type::IBV_EVENT_QP_ACCESS_ERR);
        self.move_to_error(responder.qpn);
        Outcome::Failed(ibv_wc_status::IBV_WC_REM_ACCESS_ERR)
    }
}

/// The peer's side of a write or read; the caller has checked its key.
fn remote_segment(wr: &SendWr, length: u32) -> Segment {
    Segment {
        address: wr.remote_address,
        length,
        lkey: 0,
    }
}

fn wait_or_fail(
    since: &mut Option<Instant>,
    now: Instant,
    patience: Duration,
    status: ibv_wc_status::Type,
) -> Outcome {
    let since = *since.get_or_insert(now);
    if now.duration_since(since) >= patience {
        Outcome::Failed(status)
    } else {
        Outcome::Wait
    }
}
