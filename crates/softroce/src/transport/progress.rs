//! The device's work: receives packets, sends answers, runs timers, and lets waiting QPs send. One thread at a time
//! does it, a poller or the engine.
//!
//! [`Round`]: a round of arriving packets: gives each to the half of its QP that handles it, and notes what is to be
//! done when all have been handled.
//!
//! [`Arrived`]: what a packet must be before one half of its QP handles it: parsed, for a QP of this device and of
//! its service, and in its partition (InfiniBand specification 9.6.1). Others are dropped and counted.

use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::net::{Arrival, Count};
use crate::transport::device::{Core, Inbound, Tables};
use crate::transport::outbox::{Held, Outbox, QpWork};
use crate::transport::peer::Peer;
use crate::transport::qp_state::{Kind, QpContext, Responder};
use crate::transport::timing::CORKED_LATE_NS;
use crate::transport::work_queues::PKEY;
use crate::wire::cm::GSI_QPN;
use crate::wire::{Bth, Cnp, Packet, ParseError, Psn, Service};

/// Rounds of work after which answers are sent even if more packets come; until then one answer may cover many.
const MOST_OWING_ROUNDS: u32 = 4;
/// The longest that the exit of the process waits to send what is left.
const EXIT_PATIENCE_NS: u64 = 20_000_000;
/// Bytes that a QP may send per turn, and bytes of answers.
const TURN_BYTES: usize = 128 << 10;
const ANSWER_TURN_BYTES: usize = 512 << 10;

impl Core {
    /// Works for a program that found its CQ empty. Answers from earlier work were delayed so that the program could
    /// see its completion first; they are sent when no more packets come.
    pub(crate) fn progress_for_poller(&self) {
        let now = self.activity.now_ns();
        if !self.activity.should_check_socket(now) {
            return;
        }
        let Some(mut inbound) = self.inbound.try_lock() else {
            return;
        };
        // A round may take longer than the engine waits for a poller.
        self.activity.begin_call();
        let tables = self.tables();
        let owed = !inbound.owing.is_empty();
        let arrived = self.work(&mut inbound, &tables, now);
        inbound.owing_rounds += u32::from(owed);
        if owed && (arrived == 0 || inbound.owing_rounds >= MOST_OWING_ROUNDS) {
            self.send_answers(&mut inbound, &tables, now);
        }
        if arrived > 0 {
            self.activity.poller_found(self.activity.now_ns());
            return;
        }
        self.activity.end_call(now);
        if inbound.owing.is_empty() && self.activity.poller_found_nothing() {
            drop(tables);
            drop(inbound);
            std::thread::yield_now();
        }
    }

    /// Works for the engine. Returns how much there was to do; `None` if another thread is working.
    pub(crate) fn progress(&self) -> Option<usize> {
        let mut inbound = self.inbound.try_lock()?;
        let tables = self.tables();
        let now = self.activity.now_ns();
        self.uncork(&tables, now);
        let mut arrived = 0;
        for _ in 0..MOST_OWING_ROUNDS {
            let more = self.work(&mut inbound, &tables, now);
            arrived += more;
            if more == 0 {
                break;
            }
        }
        self.send_answers(&mut inbound, &tables, now);
        // Answers that wait for room need no further attempt before there is some.
        let can_send = !self.transmitter.is_full();
        Some(arrived + inbound.owing.len() * usize::from(can_send))
    }

    /// Sends posts that wait for a poll and the answers due, when the process exits. Another thread may be at work, but not
    /// for long.
    pub(crate) fn send_last(&self) {
        let deadline_ns = self.activity.now_ns() + EXIT_PATIENCE_NS;
        while self.activity.now_ns() < deadline_ns {
            if let Some(mut inbound) = self.inbound.try_lock()
                && let Some(tables) = self.try_tables()
            {
                let now = self.activity.now_ns();
                self.uncork(&tables, now);
                self.send_answers(&mut inbound, &tables, now);
                if inbound.owing.is_empty() {
                    return;
                }
            }
            std::thread::yield_now();
        }
    }

    /// Sends what waits for room in a socket, and lets the QPs behind it go on. It is the engine's, which wakes when there is
    /// room: a program that polls would make a system call for it each time.
    pub(crate) fn use_room(&self, now: u64) {
        if !self.transmitter.is_full() {
            return;
        }
        let tables = self.tables();
        Outbox::with(self, &tables, |outbox| {
            for number in self.make_room() {
                if let Some(qp) = tables.qp(number) {
                    qp.waits_for_room.store(false, Ordering::Relaxed);
                    self.on(&tables, qp, now).with_requester(|requester, work| {
                        requester.transmit_in_turn(work, outbox, TURN_BYTES);
                        outbox.flush();
                    });
                }
            }
        });
    }

    pub(crate) fn work(&self, inbound: &mut Inbound, tables: &Tables, now: u64) -> usize {
        let Inbound { receiver, handled_until, owing, answered, .. } = inbound;
        Outbox::with(self, tables, |outbox| {
            let mut round = Round { core: self, tables, now_ns: now, owing, answered, held: None };
            let arrived = receiver.receive(
                |qpn| self.knows(tables, qpn),
                |arrival: Arrival<'_>| round.take(outbox, &arrival),
            );
            round.end();
            for number in answered.drain(..) {
                if let Some(qp) = tables.qp(number) {
                    qp.was_answered.store(false, Ordering::Relaxed);
                    self.on(tables, qp, now).with_requester(|requester, work| {
                        requester.watch_if_answered(work);
                        requester.transmit(work, outbox, TURN_BYTES);
                        work.append_acknowledgement(outbox);
                        outbox.flush();
                    });
                    self.serve_waiting(tables, outbox, now, number);
                }
            }
            // Nobody may be awake when packets delayed by faults are due.
            if let Some(due_ns) = receiver.next_due_ns() {
                self.activity.departure_at(due_ns);
            }
            if self.activity.take_due_departure(now) {
                self.release_due();
                self.take_turns_at_rate(tables, outbox, now);
                let delayed = [receiver.next_due_ns(), self.transmitter.next_due_ns()];
                let turn_ns = self.turns_at_rate.earliest_ns();
                let due_ns = delayed.into_iter().flatten().fold(turn_ns, u64::min);
                self.activity.departure_at(due_ns);
            }
            // After the departures: whoever sets it makes one due.
            if self.waiting_may_send.load(Ordering::Relaxed)
                && self.waiting_may_send.swap(false, Ordering::SeqCst)
            {
                for peer in self.peers() {
                    self.serve(tables, outbox, now, &peer);
                }
            }
            let received = &self.net_counters.received;
            let (datagrams, bytes) = (received.datagrams.get(), received.bytes.get());
            let emptied = receiver.is_drained();
            if let Some(until_ns) = handled_until.after_round(now, emptied, datagrams, bytes)
                && self.activity.take_due_timer(until_ns)
            {
                self.run_timers(tables, outbox, now, until_ns);
            }
            arrived
        })
    }

    /// Has requests of a QP wait for the next poll, or sends them if many do.
    pub(crate) fn cork(&self, work: QpWork<'_>, requests: usize) {
        let is_new = !work.qp.is_corked.swap(true, Ordering::SeqCst);
        let number = work.qp.number;
        if self.corked.add(number, is_new, requests, work.now_ns) {
            self.uncork(work.tables, work.now_ns);
        } else {
            self.activity.posts_wait(work.now_ns + CORKED_LATE_NS);
        }
    }

    /// Called when a program polls, and before it sleeps.
    pub(crate) fn send_corked(&self) {
        self.corked.polled();
        if !self.corked.is_empty() {
            self.corked.was_in_time();
            self.uncork(&self.tables(), self.activity.now_ns());
        }
    }

    /// Sends posts for which the program has not polled.
    pub(crate) fn send_late(&self, now: u64) {
        if self.corked.is_late(now) {
            self.uncork(&self.tables(), now);
        }
    }

    /// Sends the posts that waited for a poll.
    fn uncork(&self, tables: &Tables, now: u64) {
        if self.corked.is_empty() {
            return;
        }
        self.corked.begin();
        Outbox::with(self, tables, |outbox| {
            let mut held = Held::new();
            while let Some(number) = self.corked.next() {
                let Some(qp) = tables.qp(number) else {
                    continue;
                };
                qp.is_corked.store(false, Ordering::SeqCst);
                let work = self.on(tables, qp, now);
                held.add(work, outbox, |requester, outbox| {
                    requester.transmit(work, outbox, usize::MAX);
                });
            }
            held.send(outbox);
        });
    }

    /// The context of work on a QP.
    pub(crate) fn on<'a>(
        &'a self,
        tables: &'a Tables,
        qp: &'a QpContext,
        now_ns: u64,
    ) -> QpWork<'a> {
        QpWork { core: self, tables, qp, now_ns }
    }

    /// Sends the answers due, up to a turn's limit for each QP.
    fn send_answers(&self, inbound: &mut Inbound, tables: &Tables, now: u64) {
        inbound.owing_rounds = 0;
        // They wait for room; meanwhile one may come to cover many.
        if self.transmitter.is_full() {
            return;
        }
        Outbox::with(self, tables, |outbox| {
            inbound.owing.retain(|number| {
                let Some(qp) = tables.qp(*number) else {
                    return false;
                };
                let work = self.on(tables, qp, now);
                let mut responder = qp.responder.lock();
                responder.send_answers(work, outbox, ANSWER_TURN_BYTES);
                let owes = responder.owes();
                qp.owes.store(owes, Ordering::Relaxed);
                owes
            });
        });
    }

    /// Lets the QPs that wait for the same peer as this one send, while its window is open.
    fn serve_waiting(&self, tables: &Tables, outbox: &mut Outbox<'_>, now: u64, number: u32) {
        if let Some(peer) = tables.qp(number).and_then(|qp| qp.requester.lock().peer()) {
            self.serve(tables, outbox, now, &peer);
        }
    }

    fn serve(&self, tables: &Tables, outbox: &mut Outbox<'_>, now: u64, peer: &Peer) {
        let mut next = peer.next_waiting();
        if next.is_none() {
            return;
        }
        let mut held = Held::new();
        while let Some((number, later)) = next {
            if let Some(later) = later {
                tables.qp_soon(later);
            }
            if let Some(qp) = tables.qp(number) {
                qp.waits.store(false, Ordering::Relaxed);
                let work = self.on(tables, qp, now);
                held.add(work, outbox, |requester, outbox| {
                    requester.transmit_in_turn(work, outbox, TURN_BYTES);
                });
            }
            next = peer.next_waiting();
        }
        held.send(outbox);
    }

    /// Lets the QPs send whose rate allows it now.
    fn take_turns_at_rate(&self, tables: &Tables, outbox: &mut Outbox<'_>, now: u64) {
        while let Some((entry_ns, number)) = self.turns_at_rate.take_due(now) {
            if let Some(qp) = tables.qp(number) {
                self.on(tables, qp, now).with_requester(|requester, work| {
                    requester.turn_came(work, outbox, entry_ns, TURN_BYTES);
                });
            }
        }
    }

    /// Runs the QPs whose timers were due at `until_ns`, tells changes of the port, and sets the next timer.
    fn run_timers(&self, tables: &Tables, outbox: &mut Outbox<'_>, now: u64, until_ns: u64) {
        while let Some((entry_ns, number)) = self.timers.take_due(until_ns) {
            if let Some(qp) = tables.qp(number) {
                self.on(tables, qp, now).with_requester(|requester, work| {
                    requester.timer_came(work, outbox, entry_ns, until_ns);
                });
                self.serve_waiting(tables, outbox, now, number);
            }
        }
        let port_ns = self.port_state.tell(now);
        self.activity.timer_at(self.timers.earliest_ns().min(port_ns));
    }
}

pub(crate) struct Round<'a> {
    pub(crate) core: &'a Core,
    pub(crate) tables: &'a Tables,
    pub(crate) now_ns: u64,
    /// QPs with answers to send.
    pub(crate) owing: &'a mut Vec<u32>,
    /// QPs whose requests were answered.
    pub(crate) answered: &'a mut Vec<u32>,
    /// The responder of the last request, which stays locked for those that follow it.
    pub(crate) held: Option<(&'a QpContext, MutexGuard<'a, Responder>)>,
}

impl<'a> Round<'a> {
    pub(crate) fn take(&mut self, outbox: &mut Outbox<'_>, arrival: &Arrival<'_>) {
        let Some((qp, arrived)) = self.core.admit(self.tables, arrival) else {
            return;
        };
        let work = self.core.on(self.tables, qp, self.now_ns);
        let source = arrival.source;
        if arrival.is_marked() {
            self.end_run();
            work.notify_sender(outbox, &arrived, source);
        }
        match arrived {
            // No requester is locked behind a responder.
            Arrived::Notification => {
                self.end_run();
                qp.requester.lock().take_notification(work, source);
            }
            Arrived::Packet(packet) if qp.kind == Kind::Rc && packet.opcode.is_answer() => {
                self.end_run();
                work.with_requester(|requester, work| {
                    requester.take(work, outbox, &packet, source);
                });
                self.note_answered(qp);
            }
            Arrived::Packet(packet) => self.respond(qp, |responder| match qp.kind {
                Kind::Ud => responder.take_datagram(work, &packet, arrival),
                Kind::Uc => responder.take_unreliable(work, &packet, source),
                Kind::Rc => responder.take(work, outbox, &packet, source),
            }),
            Arrived::UnknownRequest(psn) => {
                self.respond(qp, |responder| responder.take_unknown(work, psn, source));
            }
        }
    }

    fn respond(&mut self, qp: &'a QpContext, handle: impl FnOnce(&mut Responder) -> bool) {
        if !self.held.as_ref().is_some_and(|(held, _)| ptr::eq(*held, qp)) {
            self.end_run();
        }
        let (_, responder) = self.held.get_or_insert_with(|| (qp, qp.responder.lock()));
        if handle(responder) {
            self.end_run();
            qp.flush_all();
            self.note_answered(qp);
        }
    }

    fn note_answered(&mut self, qp: &QpContext) {
        if !qp.was_answered.swap(true, Ordering::Relaxed) {
            self.answered.push(qp.number);
        }
    }

    pub(crate) fn end(mut self) {
        self.end_run();
    }

    /// Unlocks the responder of the last request, and notes whether it has answers to send.
    fn end_run(&mut self) {
        if let Some((qp, responder)) = self.held.take()
            && responder.owes()
            && !qp.owes.swap(true, Ordering::Relaxed)
        {
            self.owing.push(qp.number);
        }
    }
}

/// The bits of a P_Key that name the partition. The highest one, full membership, this device has.
const PARTITION: u16 = 0x7fff;

pub(crate) enum Arrived<'a> {
    Packet(Packet<'a>),
    /// A request to a reliable QP whose operation does not exist here.
    UnknownRequest(Psn),
    Notification,
}

impl Core {
    /// Whether there is a QP of this number; counts a packet to one that there is not.
    pub(crate) fn knows(&self, tables: &Tables, qpn: u32) -> bool {
        let known = tables.qp_soon(qpn).is_some() || qpn == GSI_QPN;
        if !known {
            self.statistics.unknown_qp.add(1);
        }
        known
    }

    /// The QP of a packet and the packet, or `None` if it was dropped.
    fn admit<'t, 'a>(
        &self,
        tables: &'t Tables,
        arrival: &Arrival<'a>,
    ) -> Option<(&'t QpContext, Arrived<'a>)> {
        let (bytes, statistics) = (arrival.bytes, &self.statistics);
        let (arrived, qpn, pkey, service) = match Packet::parse_body(bytes) {
            Ok(packet) => {
                let (qpn, pkey) = (packet.destination_qpn, packet.pkey);
                (Arrived::Packet(packet), qpn, pkey, packet.service)
            }
            Err(ParseError::Opcode(byte)) if Service::from_byte(byte) == Some(Service::Rc) => {
                let Some(bth) = bytes.first_chunk().and_then(|bth| Bth::from_bytes(*bth)) else {
                    return drop_counted(&statistics.unparsed);
                };
                let arrived = Arrived::UnknownRequest(bth.psn);
                (arrived, bth.destination_qpn, bth.pkey, Service::Rc)
            }
            Err(ParseError::Opcode(Cnp::OPCODE_BYTE)) => {
                let Some(cnp) = Cnp::parse(bytes) else {
                    return drop_counted(&statistics.unparsed);
                };
                let (qpn, pkey) = (cnp.destination_qpn, cnp.pkey);
                (Arrived::Notification, qpn, pkey, Service::Rc)
            }
            Err(_) => return drop_counted(&statistics.unparsed),
        };
        let Some(qp) = tables.qp(qpn) else {
            if let Arrived::Packet(packet) = &arrived
                && self.gsi.take(packet, arrival.source.ip())
            {
                return None;
            }
            return drop_counted(&statistics.unknown_qp);
        };
        if (pkey ^ PKEY) & PARTITION != 0 {
            return drop_counted(&statistics.pkey_violations);
        }
        if service != qp.kind {
            return drop_counted(&statistics.wrong_service);
        }
        Some((qp, arrived))
    }
}

/// Counts a packet that is dropped.
fn drop_counted<T>(counter: &Count) -> Option<T> {
    counter.add(1);
    None
}
