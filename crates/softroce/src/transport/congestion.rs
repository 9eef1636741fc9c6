//! Congestion (annex A17.9, and DCQCN): the notification point answers packets that came marked by a CNP; the
//! reaction point, a QP that got one, sends at a rate, in turns, until that rate is the full one again. A QP that
//! has a limit always does. How much it slows down is in `sending_rate`.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;

use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::progress::Arrived;
use crate::transport::qp_state::{Kind, Requester, State};
use crate::transport::sending_rate::SendingRate;
use crate::transport::work_queues::PKEY;
use crate::wire::{Cnp, PacketKind};

/// The least time between two CNPs of a QP (DCQCN's N).
const CNP_INTERVAL_NS: u64 = 50_000;

impl QpWork<'_> {
    /// Tells the sender of a marked packet, unless it was told a short time ago. Only of reliable connections: other QPs of
    /// this device send nothing that may be marked. A CNP is not answered.
    #[cold]
    pub(crate) fn notify_sender(
        self,
        outbox: &mut Outbox<'_>,
        arrived: &Arrived<'_>,
        source: SocketAddr,
    ) {
        let statistics = &self.core.statistics;
        statistics.np_ecn_marked_roce_packets.add(1);
        let due_ns = self.qp.next_cnp_ns.load(Ordering::Relaxed);
        let is_answered = self.qp.kind == Kind::Rc && !matches!(arrived, Arrived::Notification);
        if !is_answered || self.now_ns < due_ns || !self.qp.state().receives() {
            return;
        }
        let responder = self.qp.responder.lock();
        let path = responder.path_from(source).cloned();
        drop(responder);
        // While a socket is full, a CNP would wait behind all the rest.
        let Some(path) = path.filter(|_| !self.core.transmitter.is_full()) else {
            return;
        };
        let next_ns = self.now_ns + CNP_INTERVAL_NS;
        self.qp.next_cnp_ns.store(next_ns, Ordering::Relaxed);
        let cnp = Cnp { destination_qpn: path.qpn, pkey: PKEY };
        outbox.push_headers(&path.flow, &cnp.to_bytes());
        statistics.np_cnp_sent.add(1);
        // How many data of READs are on their way is for this end to say: it has asked for them.
        if let Arrived::Packet(packet) = arrived
            && packet.opcode.kind() == PacketKind::ReadResponse
        {
            self.qp.requester.lock().slow_down(self.now_ns);
        }
    }
}

impl Requester {
    pub(crate) fn take_notification(&mut self, work: QpWork<'_>, source: SocketAddr) {
        let statistics = &work.core.statistics;
        if !self.is_from_peer(work, source) {
            return;
        }
        if !matches!(work.qp.state(), State::Rts | State::Sqd) {
            statistics.rp_cnp_ignored.add(1);
            return;
        }
        statistics.rp_cnp_handled.add(1);
        self.slow_down(work.now_ns);
    }

    /// Limits it to so many bytes a nanosecond; `None` ends that.
    pub(crate) fn limit_rate(&mut self, now_ns: u64, limit: Option<f64>) {
        self.rate = limit.map(|limit| SendingRate::limited(now_ns, limit));
    }

    fn slow_down(&mut self, now_ns: u64) {
        self.rate.get_or_insert_with(|| SendingRate::full(now_ns)).cut(now_ns);
    }

    /// How many of these bytes the rate allows now. If none, the QP's turn comes when it allows some.
    pub(crate) fn allowed_bytes(&mut self, work: QpWork<'_>, bytes: usize) -> Option<usize> {
        let Some(rate) = &mut self.rate else {
            return Some(bytes);
        };
        if rate.recover(work.now_ns) {
            self.rate = None;
            return Some(bytes);
        }
        let allowed = rate.allowance_bytes();
        if allowed == 0 {
            self.wait_for_rate(work);
            return None;
        }
        Some(allowed.min(bytes))
    }

    /// Counts bytes that were sent in a turn. If the turn was over, the next one comes when the rate allows it.
    pub(crate) fn spend(&mut self, work: QpWork<'_>, bytes: usize, is_over: bool) {
        if let Some(rate) = &mut self.rate {
            rate.spend(bytes);
            if is_over && self.wants_to_send() {
                self.wait_for_rate(work);
            }
        }
    }

    fn wait_for_rate(&mut self, work: QpWork<'_>) {
        let due_ns = self.rate.as_ref().map_or(u64::MAX, SendingRate::next_ns);
        let turns = &work.core.turns_at_rate;
        if self.rate_entry.hasten(turns, work.qp.number, due_ns) {
            work.core.statistics.rate_waits.add(1);
            work.core.activity.departure_at(due_ns);
        }
    }

    /// Takes the turn whose entry, of this time, has been taken.
    pub(crate) fn turn_came(
        &mut self,
        work: QpWork<'_>,
        outbox: &mut Outbox<'_>,
        entry_ns: u64,
        bytes: usize,
    ) {
        self.rate_entry.was_taken(entry_ns);
        self.transmit(work, outbox, bytes);
        outbox.flush();
    }
}
