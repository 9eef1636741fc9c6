//! The device's work: receives packets, sends answers, runs timers, and lets waiting QPs send. One thread at a time
//! does it, a poller or the engine.

use std::sync::atomic::Ordering;

use super::core::{Core, Inbound};
use super::peer::Peer;
use super::qp_attributes::Kind;
use super::qp_context::QpContext;
use super::statistics::Statistics;
use super::tables::Tables;
use super::work::QpWork;
use crate::net::{Arrival, now_ns};
use crate::wire::{Opcode, Packet};

/// Rounds of work after which answers are sent even if more packets come; until then one answer may cover many.
const MOST_OWING_ROUNDS: u32 = 4;
/// GSO batches that a QP may send per turn.
const TURN_GSO_BATCHES: usize = 2;
/// GSO batches of answers that a QP may send per turn. Several READ responses can share a GSO batch.
const ANSWER_GSO_BATCHES: usize = 8;

impl Core {
    /// Works for a program that found its CQ empty. Answers from earlier work were delayed so that the program could
    /// see its completion first; they are sent when no more packets come.
    pub(super) fn progress_for_poller(&self) {
        let now = now_ns();
        if !self.activity.should_check_socket(now) {
            return;
        }
        let Some(mut inbound) = self.try_inbound() else {
            return;
        };
        let tables = self.tables();
        let owed = !inbound.owing.is_empty();
        let arrived = self.work(&mut inbound, &tables, now);
        inbound.owing_rounds += u32::from(owed);
        if owed && (arrived == 0 || inbound.owing_rounds >= MOST_OWING_ROUNDS) {
            self.send_answers(&mut inbound, &tables, now);
        }
        // The program may sleep when packets delayed by faults are due.
        if let Some(due_ns) = inbound.receiver.next_due_ns() {
            self.activity.timer_at(due_ns);
        }
        if arrived > 0 {
            self.activity.poller_found(now_ns());
        } else if inbound.owing.is_empty() && self.activity.poller_found_nothing() {
            drop(tables);
            drop(inbound);
            std::thread::yield_now();
        }
    }

    /// Works for the engine. Returns how much there was to do; `None` if another thread is working.
    pub(super) fn progress(&self) -> Option<usize> {
        let mut inbound = self.try_inbound()?;
        let tables = self.tables();
        let now = now_ns();
        let mut arrived = self.work(&mut inbound, &tables, now);
        let mut more = arrived;
        for _ in 1..MOST_OWING_ROUNDS {
            if more == 0 {
                break;
            }
            more = self.work(&mut inbound, &tables, now);
            arrived += more;
        }
        self.send_answers(&mut inbound, &tables, now);
        Some(arrived + inbound.owing.len())
    }

    /// When packets delayed by faults are due.
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        let inbound = self
            .try_inbound()
            .and_then(|inbound| inbound.receiver.next_due_ns());
        let outbound = self.transmitter.next_due_ns();
        inbound.into_iter().chain(outbound).min()
    }

    fn work(&self, inbound: &mut Inbound, tables: &Tables, now: u64) -> usize {
        let Inbound {
            receiver,
            owing,
            answered,
            ..
        } = inbound;
        let arrived = receiver.receive(|arrival| self.take(tables, now, &arrival, owing, answered));
        for number in answered.drain(..) {
            if let Some(qp) = tables.qp(number) {
                qp.was_answered.store(false, Ordering::Relaxed);
                self.on(tables, qp, now).with_requester(|requester, work| {
                    requester.transmit(work, TURN_GSO_BATCHES);
                });
                self.serve_waiting(tables, now, number);
            }
        }
        if self.waiting_may_send.load(Ordering::Relaxed)
            && self.waiting_may_send.swap(false, Ordering::SeqCst)
        {
            for peer in self.peers() {
                self.serve(tables, now, &peer);
            }
        }
        self.transmitter.release_due();
        if self.activity.take_due_timer(now) {
            self.run_timers(tables, now);
        }
        arrived
    }

    fn on<'a>(&'a self, tables: &'a Tables, qp: &'a QpContext, now_ns: u64) -> QpWork<'a> {
        QpWork {
            core: self,
            tables,
            qp,
            now_ns,
        }
    }

    /// Handles one packet.
    fn take(
        &self,
        tables: &Tables,
        now: u64,
        arrival: &Arrival<'_>,
        owing: &mut Vec<u32>,
        answered: &mut Vec<u32>,
    ) {
        let Ok(packet) = Packet::parse_body(arrival.bytes) else {
            Statistics::count(&self.statistics.unparsed);
            return;
        };
        let Some(qp) = tables.qp(packet.destination_qpn) else {
            Statistics::count(&self.statistics.unknown_qp);
            return;
        };
        let work = self.on(tables, qp, now);
        match qp.kind {
            Kind::Ud => qp.responder().take_datagram(work, &packet, arrival.source),
            Kind::Uc => qp
                .responder()
                .take_unreliable(work, &packet, arrival.source),
            Kind::Rc if is_answer(packet.opcode) => {
                work.with_requester(|requester, work| {
                    requester.take(work, &packet, arrival.source);
                });
                if !qp.was_answered.swap(true, Ordering::Relaxed) {
                    answered.push(qp.number);
                }
            }
            Kind::Rc => {
                let mut responder = qp.responder();
                let broke = responder.take(work, &packet, arrival.source);
                let owes = responder.owes();
                drop(responder);
                if broke {
                    // Flush its posted sends as well.
                    qp.requester().flush(qp);
                    qp.flush_receives();
                    if !qp.was_answered.swap(true, Ordering::Relaxed) {
                        answered.push(qp.number);
                    }
                }
                if owes && !qp.owes.swap(true, Ordering::Relaxed) {
                    owing.push(qp.number);
                }
            }
        }
    }

    /// Sends the answers due, up to a turn's limit for each QP.
    fn send_answers(&self, inbound: &mut Inbound, tables: &Tables, now: u64) {
        inbound.owing_rounds = 0;
        inbound.owing.retain(|number| {
            let Some(qp) = tables.qp(*number) else {
                return false;
            };
            let work = self.on(tables, qp, now);
            let mut responder = qp.responder();
            responder.send_answers(work, ANSWER_GSO_BATCHES);
            let owes = responder.owes();
            qp.owes.store(owes, Ordering::Relaxed);
            owes
        });
    }

    /// Lets the QPs that wait for the same peer as this one send, while its window is open.
    fn serve_waiting(&self, tables: &Tables, now: u64, number: u32) {
        if let Some(peer) = tables.qp(number).and_then(|qp| qp.requester().peer()) {
            self.serve(tables, now, &peer);
        }
    }

    fn serve(&self, tables: &Tables, now: u64, peer: &Peer) {
        while let Some(next) = peer.next_waiting() {
            if let Some(qp) = tables.qp(next) {
                qp.waits.store(false, Ordering::Relaxed);
                self.on(tables, qp, now).with_requester(|requester, work| {
                    requester.transmit_in_turn(work, TURN_GSO_BATCHES);
                });
            }
        }
    }

    /// Runs the QPs whose timers are due, and sets the next timer.
    fn run_timers(&self, tables: &Tables, now: u64) {
        let mut next = u64::MAX;
        for qp in tables.qps() {
            let timer = qp.timer_ns.load(Ordering::Relaxed);
            if timer <= now {
                self.on(tables, qp, now)
                    .with_requester(|requester, work| requester.wake(work, now));
                self.serve_waiting(tables, now, qp.number);
            }
            next = next.min(qp.timer_ns.load(Ordering::Relaxed));
        }
        if next != u64::MAX {
            self.activity.timer_at(next);
        }
    }
}

/// Whether a packet is an answer rather than a request.
fn is_answer(opcode: Opcode) -> bool {
    (Opcode::ReadResponseFirst as u8..=Opcode::AtomicAcknowledge as u8).contains(&(opcode as u8))
}
