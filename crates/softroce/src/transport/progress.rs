//! The device's work: packets in, answers out, timers, and the QPs whose turn it is to send. One thread at a time
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

/// Rounds of work after which answers go out although more packets come: until then one may answer for many.
const MOST_OWING_ROUNDS: u32 = 4;
/// GsoBatches that a QP may send when its turn comes.
const TURN_GSO_BATCHES: usize = 2;
/// GSO batches of answers that a QP may send in a turn: several READ responses share GSO batches where one ends and the next begins.
const ANSWER_GSO_BATCHES: usize = 8;

impl Core {
    /// Work on behalf of a program that found its CQ empty. Answers that earlier work left owing were held back so that
    /// the program could see its completion without waiting for them; they go out when no more packets come.
    pub(super) fn progress_for_poller(&self) {
        let now = now_ns();
        if !self.attention.poller_comes(now) {
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
            self.pay(&mut inbound, &tables, now);
        }
        // The program may sleep when what faults hold back is due.
        if let Some(due_ns) = inbound.receiver.next_due_ns() {
            self.attention.timer_at(due_ns);
        }
        if arrived > 0 {
            self.attention.poller_found(now_ns());
        } else if inbound.owing.is_empty() && self.attention.poller_found_nothing() {
            drop(tables);
            drop(inbound);
            std::thread::yield_now();
        }
    }

    /// Work on behalf of the engine. Returns how much there was; `None` if another thread is at it.
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
        self.pay(&mut inbound, &tables, now);
        Some(arrived + inbound.owing.len())
    }

    /// When packets held back by faults are due.
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
                self.serve_line(tables, now, number);
            }
        }
        if self.lines_may_move.load(Ordering::Relaxed)
            && self.lines_may_move.swap(false, Ordering::SeqCst)
        {
            for peer in self.peers() {
                self.serve(tables, now, &peer);
            }
        }
        self.transmitter.release_due();
        if self.attention.take_due_timer(now) {
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

    /// One packet.
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
                    // What the QP had posted to send goes the same way.
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

    /// Sends the answers owed, of each QP a turn's worth.
    fn pay(&self, inbound: &mut Inbound, tables: &Tables, now: u64) {
        inbound.owing_rounds = 0;
        inbound.owing.retain(|number| {
            let Some(qp) = tables.qp(*number) else {
                return false;
            };
            let work = self.on(tables, qp, now);
            let mut responder = qp.responder();
            responder.pay(work, ANSWER_GSO_BATCHES);
            let owes = responder.owes();
            qp.owes.store(owes, Ordering::Relaxed);
            owes
        });
    }

    /// Gives the QPs that wait for the same peer as this one their turns, while its window is open.
    fn serve_line(&self, tables: &Tables, now: u64, number: u32) {
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

    /// Wakes the QPs whose time has come, and finds the next.
    fn run_timers(&self, tables: &Tables, now: u64) {
        let mut next = u64::MAX;
        for qp in tables.qps() {
            let timer = qp.timer_ns.load(Ordering::Relaxed);
            if timer <= now {
                self.on(tables, qp, now)
                    .with_requester(|requester, work| requester.wake(work, now));
                self.serve_line(tables, now, qp.number);
            }
            next = next.min(qp.timer_ns.load(Ordering::Relaxed));
        }
        if next != u64::MAX {
            self.attention.timer_at(next);
        }
    }
}

/// Whether a packet answers requests, rather than being one.
fn is_answer(opcode: Opcode) -> bool {
    (Opcode::ReadResponseFirst as u8..=Opcode::AtomicAcknowledge as u8).contains(&(opcode as u8))
}
