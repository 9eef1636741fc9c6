//! A round of arriving packets: gives each to the half of its QP that handles it, and notes what is to be done when all
//! have been handled. It must not know how packets are received.

use std::ptr;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use crate::net::Arrival;
use crate::transport::device::arrivals::Arrived;
use crate::transport::device::core::Core;
use crate::transport::device::outbox::Outbox;
use crate::transport::device::tables::Tables;
use crate::transport::qp_state::{Kind, QpContext, Responder};

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
        if arrival.is_marked {
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
                Kind::Ud => responder.take_datagram(work, &packet, source.ip()),
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
