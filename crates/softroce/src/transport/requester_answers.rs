//! A requester's handling of answers: acknowledgements, NAKs, READ responses, results of atomics, time-outs
//! (InfiniBand specification 9.7.5 to 9.7.7), and what it does before an answer's time-out.
//!
//! Its timer is the time-out of an answer, or the pause after an RNR NAK. `timer_ns` of the QP says when it is
//! due. The QP's entry in `Timers` may be earlier, because a time-out
//! that is restarted with every answer is not worth moving it: when the entry comes, it is put back to where it
//! belongs.
//!
//! A probe asks after packets before the time-out of their answer. If what was sent last has been lost, no later packet
//! tells the responder of a gap, and the time-out is long. It costs no retry.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use provider::Operation;

use crate::transport::completion_queue::Status;
use crate::transport::memory;
use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::qp_state::{Requester, State};
use crate::transport::work_queues::{Bytes, read_part_packets};
use crate::wire::{Aeth, NakCode, Opcode, Packet, Psn, Syndrome, time_of_code_ns};

/// Bytes retransmitted at once after a loss.
const AGAIN_BYTES: usize = 128 << 10;
/// The RNR retry count that means for ever.
const FOR_EVER: u8 = 7;

impl Requester {
    pub(crate) fn take(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        packet: &Packet<'_>,
        source: SocketAddr,
    ) {
        // Only sent packets can be answered.
        if !self.is_from_peer(work, source)
            || !matches!(work.qp.state(), State::Rts | State::Sqd)
            || packet.psn.distance_from(self.sent_until) >= 0
        {
            return;
        }
        if packet.psn.distance_from(self.unacked) >= 0 {
            self.source_port.learn(source.port());
        }
        match (packet.opcode, packet.extended.aeth) {
            (Opcode::Acknowledge, Some(aeth)) => {
                self.take_acknowledgement(work, outbox, packet.psn, aeth);
            }
            (Opcode::AtomicAcknowledge, _) => {
                let answer = packet.extended.atomic_answer.unwrap_or_default();
                self.take_data(work, outbox, packet.psn, &answer.to_ne_bytes(), true);
            }
            _ => self.take_data(work, outbox, packet.psn, packet.payload, false),
        }
    }

    /// Whether a packet is from the peer's address and port.
    pub(crate) fn is_from_peer(&self, work: QpWork<'_>, source: SocketAddr) -> bool {
        let address = self.path.as_ref().map(|path| path.address);
        let from_peer = address == Some(source.ip()) && self.source_port.may_be(source.port());
        if !from_peer {
            work.core.statistics.wrong_source.add(1);
        }
        from_peer
    }

    fn take_acknowledgement(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        psn: Psn,
        aeth: Aeth,
    ) {
        match aeth.syndrome {
            Syndrome::Ack { .. } => {
                if !self.acknowledge(work, psn.plus(1)) {
                    self.lose(work, outbox);
                }
            }
            Syndrome::Nak(code) => self.take_refusal(work, outbox, psn, code),
            Syndrome::RnrNak { timer } => {
                self.acknowledge(work, psn);
                if psn == self.unacked && !self.pauses {
                    self.take_not_ready(work, timer);
                }
            }
            Syndrome::Reserved(_) => {}
        }
    }

    /// Completes all requests before `end`. `false` if that includes data that should have come and did not.
    fn acknowledge(&mut self, work: QpWork<'_>, end: Psn) -> bool {
        let before = self.unacked;
        if before.distance_from(end) >= 0 {
            return true;
        }
        let mut arrived_bytes = 0;
        let mut whole = true;
        while self.unacked.distance_from(end) < 0 {
            let Some(wqe) = self.oldest() else {
                break;
            };
            if wqe.is_fetch() {
                whole = false;
                break;
            }
            let after = wqe.last_psn().plus(1);
            if after.distance_from(end) > 0 {
                arrived_bytes += self.settle_part(end.distance_from(self.unacked).cast_unsigned());
                self.unacked = end;
                break;
            }
            arrived_bytes += self.settle();
            self.unacked = after;
            self.complete_head(work.qp);
            if work.qp.state() == State::Err {
                self.credit(arrived_bytes);
                return true;
            }
        }
        if self.unacked != before {
            self.credit(arrived_bytes);
            self.advanced(work);
        }
        whole
    }

    /// Updates the state after `unacked` has advanced.
    fn advanced(&mut self, work: QpWork<'_>) {
        self.renew_retries();
        self.note_answer(work.now_ns);
        self.went_back_to = None;
        self.pauses = false;
        let answered = self.answered_packets();
        if self.next < self.queue.head {
            self.next = self.queue.head;
            self.sent_packets = answered;
        } else if self.next == self.queue.head {
            self.sent_packets = self.sent_packets.max(answered);
        }
        self.break_if_failed(work.qp);
        self.tell_if_drained(work.qp);
        self.was_answered = true;
    }

    /// Restarts the time-out if answers have come, once for all that came together.
    pub(crate) fn watch_if_answered(&mut self, work: QpWork<'_>) {
        if self.was_answered && work.qp.state() != State::Err {
            self.watch(work);
        }
    }

    /// Takes data for the oldest request: a packet of a READ's response, or an atomic's result.
    fn take_data(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        psn: Psn,
        bytes: &[u8],
        atomic: bool,
    ) {
        // It also acknowledges all requests before its own.
        let whole = self.acknowledge(work, psn);
        match psn.distance_from(self.unacked) {
            0 if whole => {}
            1.. => return self.lose(work, outbox),
            _ => return,
        }
        let (Some(wqe), Some(path)) = (self.oldest().copied(), &self.path) else {
            return;
        };
        let read = matches!(wqe.operation, Operation::Read { .. });
        if !wqe.is_fetch() || read == atomic {
            return;
        }
        let mtu = path.mtu_bytes;
        let packet = psn.distance_from(wqe.first_psn).max(0).cast_unsigned();
        let offset = packet * mtu;
        let expected = if read { mtu.min(wqe.length_bytes - offset) } else { 8 };
        if bytes.len() != expected as usize {
            return;
        }
        if let Bytes::Registered(sges) = self.queue.bytes(self.queue.head) {
            let memories = &work.tables.memories;
            let put = memory::scatter(memories, work.qp.pd, sges, offset.into(), bytes);
            if put.is_err() {
                self.break_at_head(work.qp, Status::LocalProtectionError);
                return;
            }
        }
        let arrived_bytes = self.settle_part(1);
        self.credit(arrived_bytes);
        self.unacked = psn.plus(1);
        let last = packet + 1 == wqe.packets;
        if last || (packet + 1).is_multiple_of(read_part_packets(mtu)) {
            self.fetches = self.fetches.saturating_sub(1);
        }
        if last {
            self.complete_head(work.qp);
        }
        if work.qp.state() != State::Err {
            self.advanced(work);
        }
    }

    fn take_refusal(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>, psn: Psn, code: NakCode) {
        // It acknowledges the packets before the refused one.
        let whole = self.acknowledge(work, psn);
        if code == NakCode::PsnSequenceError || !whole {
            // An old NAK changes nothing.
            if psn.distance_from(self.unacked) >= 0 {
                self.lose(work, outbox);
            }
            return;
        }
        if psn.distance_from(self.unacked) < 0 || work.qp.state() == State::Err {
            return;
        }
        let status = match code {
            NakCode::RemoteAccessError => Status::RemoteAccessError,
            NakCode::RemoteOperationalError => Status::RemoteOperationError,
            _ => Status::RemoteInvalidRequestError,
        };
        self.break_at_head(work.qp, status);
    }

    fn take_not_ready(&mut self, work: QpWork<'_>, timer: u8) {
        if self.rnr_retries_left == 0 {
            self.break_at_head(work.qp, Status::RnrRetryExceededError);
            return;
        }
        if self.rnr_retries_left != FOR_EVER {
            self.rnr_retries_left -= 1;
        }
        self.go_back();
        self.pause(work, rnr_pause_ns(timer));
    }

    /// Handles a loss: retransmits from the oldest unacknowledged packet, once for each such packet.
    fn lose(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        if self.pauses || self.went_back_to == Some(self.unacked) {
            return;
        }
        if work.qp.state() == State::Err || self.unacked == self.position() {
            return;
        }
        self.went_back_to = Some(self.unacked);
        work.core.statistics.go_backs.add(1);
        self.shrink_and_go_back();
        self.go_on(work, outbox);
    }

    /// Takes a loss as a sign that the window is too large, and restarts at the oldest unacknowledged packet.
    fn shrink_and_go_back(&mut self) {
        if let Some(path) = &self.path {
            path.peer.shrink();
        }
        self.go_back();
    }

    /// Sends from where it stands, and restarts the time-out.
    fn go_on(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        self.transmit_in_turn(work, outbox, AGAIN_BYTES);
        outbox.flush();
        self.watch(work);
    }

    /// Handles the expiry of the timer, if it was due at `until_ns`.
    pub(crate) fn wake(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>, until_ns: u64) {
        let due = work.qp.timer_ns.load(Ordering::Relaxed);
        if due > until_ns || !matches!(work.qp.state(), State::Rts | State::Sqd) {
            return;
        }
        work.qp.timer_ns.store(u64::MAX, Ordering::Relaxed);
        if self.pauses {
            self.pauses = false;
        } else if self.deliveries.timeout == 0 {
            self.give_window_back();
            return self.watch(work);
        } else if until_ns < self.deadline_ns {
            if !self.may_be_queued(work) {
                self.probe(work, outbox);
            }
            return;
        } else {
            work.core.statistics.timeouts.add(1);
            if self.retries_left == 0 {
                self.break_at_head(work.qp, Status::RetryExceededError);
                return;
            }
            self.retries_left -= 1;
            self.shrink_and_go_back();
        }
        self.go_on(work, outbox);
    }
}

/// Pause that an RNR NAK asks for (InfiniBand specification, table 45).
fn rnr_pause_ns(code: u8) -> u64 {
    const HUNDREDTHS_OF_MS: [u64; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    let hundredths = HUNDREDTHS_OF_MS.get(usize::from(code & 0x1f));
    hundredths.copied().unwrap_or(65_536) * 10_000
}

/// After this time without an answer a QP that waits for ever holds no share of the peer's window: other QPs go on.
const PATIENCE_NS: u64 = 500_000_000;

/// The most retries that a program can ask for. Linux' Soft-RoCE then never gives up. Here a time-out that follows another
/// doubles, up to four times what the program asked for, as far as InfiniBand allows (specification 9.7.6.1.3): a peer that waits
/// for a core, or has the packets of a thousand QPs before this one's, answers late, and later still when all of them are sent
/// again. With fewer retries all time-outs are equal, as Soft-RoCE's, so that a program can say when it gives up.
const MOST_RETRIES: u8 = 7;
const MOST_DOUBLINGS: u8 = 2;
/// The least time before a probe: longer than a thread of a busy machine mostly waits for its core.
const PROBE_NS: u64 = 8_000_000;
/// Time before a probe for each QP of the device, so that many QPs' timers stay cheap.
const PROBE_EACH_NS: u64 = 20_000;

impl Requester {
    /// Restarts the time-out, or stops it if no answer is expected.
    pub(crate) fn watch(&mut self, work: QpWork<'_>) {
        let awaited = self.unacked != self.position();
        if !awaited {
            self.set_timer(work, u64::MAX);
            return;
        }
        let timeout_ns = match self.deliveries.timeout {
            0 => return self.set_timer(work, work.now_ns + PATIENCE_NS),
            code => time_of_code_ns(code) << self.doublings(),
        };
        self.deadline_ns = work.now_ns + timeout_ns;
        self.probes = 0;
        self.wait_for_probe(work);
    }

    /// Sets the timer for the next probe, or for the time-out if that is sooner.
    fn wait_for_probe(&mut self, work: QpWork<'_>) {
        let probe_ns = work.now_ns.saturating_add(self.probe_wait_ns(work));
        self.set_timer(work, self.deadline_ns.min(probe_ns));
    }

    /// The time before a probe: that of an answer, twice as long each time. Without an answer so far it is not known, and
    /// there is no probe.
    fn probe_wait_ns(&self, work: QpWork<'_>) -> u64 {
        let for_all_ns = PROBE_EACH_NS * work.tables.qp_count() as u64;
        match self.peer().map_or(0, |peer| peer.answer_time_ns()) {
            0 => u64::MAX,
            answer_ns => answer_ns.max(PROBE_NS).max(for_all_ns) << self.probes.min(20),
        }
    }

    /// Whether this QP's packets may only be in the queue of a slow link: what has been answered since does not reach
    /// beyond them, and the peer has not been silent for the time before a probe, or twice as long if packets of other
    /// QPs are before them. The timer is then set to the end of that time.
    fn may_be_queued(&mut self, work: QpWork<'_>) -> bool {
        let Some(peer) = self.peer() else {
            return false;
        };
        let behind_others = !peer.has_answered(self.sent_mark - self.in_flight_bytes);
        let silence_ns = self.probe_wait_ns(work) << u32::from(behind_others);
        let until_ns = peer.answered_ns().saturating_add(silence_ns);
        let may_be = !peer.has_answered(self.sent_mark) && work.now_ns < until_ns;
        if may_be {
            self.set_timer(work, self.deadline_ns.min(until_ns));
        }
        may_be
    }

    /// How often the time-out has doubled since the last progress.
    fn doublings(&self) -> u8 {
        match self.deliveries.retry_count {
            MOST_RETRIES => (MOST_RETRIES - self.retries_left).min(MOST_DOUBLINGS),
            _ => 0,
        }
    }

    /// Pauses for the time of an RNR NAK.
    pub(crate) fn pause(&mut self, work: QpWork<'_>, pause_ns: u64) {
        self.pauses = true;
        self.set_timer(work, work.now_ns + pause_ns);
    }

    fn set_timer(&mut self, work: QpWork<'_>, due_ns: u64) {
        self.was_answered = false;
        work.qp.timer_ns.store(due_ns, Ordering::Relaxed);
        let timers = &work.core.timers;
        if self.timer_entry.hasten(timers, work.qp.number, due_ns) {
            work.core.activity.timer_at(due_ns);
        }
        if due_ns == u64::MAX {
            self.timer_entry.idle(timers, work.qp.number);
        }
    }

    /// Handles the QP's entry of this time, which has been taken, as far as timers are believed: until `until_ns`.
    pub(crate) fn timer_came(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        entry_ns: u64,
        until_ns: u64,
    ) {
        work.core.statistics.timer_checks.add(1);
        self.timer_entry.was_taken(entry_ns);
        self.wake(work, outbox, until_ns);
        let due_ns = work.qp.timer_ns.load(Ordering::Relaxed);
        // One that is still due belongs to a QP that does not send.
        if due_ns > until_ns {
            self.set_timer(work, due_ns);
        }
    }

    /// Removes the QP's entry, for good.
    pub(crate) fn forget_timer(&mut self, work: QpWork<'_>) {
        self.timer_entry.remove(&work.core.timers, work.qp.number);
    }
}

/// Bytes sent again at once: up to the next packet that asks for an acknowledgement.
const PROBE_BYTES: usize = 1;

impl Requester {
    /// Sends the last packet again: its answer is an acknowledgement of all that came, or a NAK (as TCP's tail loss probe,
    /// RFC 8985, section 7). A responder refuses a gap once only, so the next time, or where this gap has been refused, the
    /// first packets go again.
    fn probe(&mut self, work: QpWork<'_>, outbox: &mut Outbox<'_>) {
        work.core.statistics.probes.add(1);
        let (deadline_ns, probes) = (self.deadline_ns, self.probes + 1);
        if probes == 1 && self.went_back_to != Some(self.unacked) {
            self.send_last_again(work, outbox);
        } else {
            self.shrink_and_go_back();
            self.transmit_in_turn(work, outbox, PROBE_BYTES);
        }
        outbox.flush();
        (self.deadline_ns, self.probes) = (deadline_ns, probes);
        self.wait_for_probe(work);
    }
}
