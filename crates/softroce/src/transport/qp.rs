//! Queue pairs as the verbs layer sees them: state, and the two halves that do the work. [`super::requester`]
//! sends requests and takes answers, [`super::responder`] takes requests and answers.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::core::{Core, Tables};
use super::peer::Peer;
use super::requester::Requester;
use super::responder::Responder;
use super::{
    Access, Completion, CompletionKind, Connection, Cq, Deliveries, Kind, Nic, PdId, PostError,
    QpEvent, QpOptions, ReceiveSource, RecvQueue, SendRequest, Sge, State, Status,
};
use crate::net::{Flow, now_ns};
use crate::wire::Psn;

/// Where packets go, as both halves need it.
#[derive(Clone)]
pub(super) struct Path {
    pub(super) flow: Flow,
    pub(super) peer: Arc<Peer>,
    pub(super) address: IpAddr,
    pub(super) qpn: u32,
    pub(super) mtu_bytes: u32,
}

/// What a half needs to work: the device, its tables held for reading, and the QP.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) core: &'a Core,
    pub(super) tables: &'a Tables,
    pub(super) qp: &'a Qp,
    /// The time, of a moment ago.
    pub(super) now_ns: u64,
}

/// A queue pair.
pub struct Qp {
    number: u32,
    pub(super) kind: Kind,
    pub(super) pd: PdId,
    core: Arc<Core>,
    send_cq: Arc<Cq>,
    recv_cq: Arc<Cq>,
    pub(super) receives: Arc<RecvQueue>,
    shares_receives: bool,
    signal_all: bool,
    on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
    state: AtomicU32,
    access: AtomicU32,
    qkey: AtomicU32,
    min_rnr_timer: AtomicU8,
    /// When the requester wants to be woken; `u64::MAX` for never.
    pub(super) timer_ns: AtomicU64,
    /// Stands in the list of those that owe answers, of those that were answered, in its peer's line.
    pub(super) owes: AtomicBool,
    pub(super) was_answered: AtomicBool,
    pub(super) waits: AtomicBool,
    requester: Mutex<Requester>,
    responder: Mutex<Responder>,
}

impl Qp {
    /// A QP in state RESET.
    ///
    /// # Errors
    /// `None` when there are no more QP numbers.
    pub fn new(nic: &Arc<Nic>, options: QpOptions) -> Option<Arc<Qp>> {
        let core = nic.core();
        let room = options.capacities;
        let (receives, shares_receives) = match options.receives {
            ReceiveSource::Shared(queue) => (queue, true),
            ReceiveSource::Own => {
                let queue = RecvQueue::new(room.recv_wrs as usize, room.recv_sges as usize, None);
                (Arc::new(queue), false)
            }
        };
        let make = |number| {
            Arc::new(Qp {
                number,
                kind: options.kind,
                pd: options.pd,
                core: Arc::clone(core),
                send_cq: options.send_cq,
                recv_cq: options.recv_cq,
                receives,
                shares_receives,
                signal_all: options.signal_all,
                on_event: options.on_event,
                state: AtomicU32::new(State::Reset as u32),
                access: AtomicU32::new(0),
                qkey: AtomicU32::new(0),
                min_rnr_timer: AtomicU8::new(0),
                timer_ns: AtomicU64::new(u64::MAX),
                owes: AtomicBool::new(false),
                was_answered: AtomicBool::new(false),
                waits: AtomicBool::new(false),
                requester: Mutex::new(Requester::new(&room)),
                responder: Mutex::new(Responder::default()),
            })
        };
        core.tables_mut().insert(make)
    }

    /// Takes it off the device: afterwards nothing of it happens any more, and it posts no completions.
    pub fn destroy(&self) {
        self.pay_acknowledgements(&self.core.tables());
        self.core.tables_mut().remove(self.number);
        self.set_state(State::Reset);
        self.requester().forget_all(self);
        self.core.let_lines_move();
    }

    /// Sends what was held back for the next poll: the program saw the completion, so the peer is to see its own.
    fn pay_acknowledgements(&self, tables: &Tables) {
        const TRAINS: usize = 1;
        let mut responder = self.responder();
        if responder.owes() {
            let scene = Scene {
                core: &self.core,
                tables,
                qp: self,
                now_ns: now_ns(),
            };
            responder.pay(scene, TRAINS);
        }
    }

    pub(super) fn requester(&self) -> MutexGuard<'_, Requester> {
        self.requester
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn responder(&self) -> MutexGuard<'_, Responder> {
        self.responder
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The responder, unless another thread has it.
    pub(super) fn try_responder(&self) -> Option<MutexGuard<'_, Responder>> {
        self.responder.try_lock().ok()
    }

    /// 24 bits.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The state it is in now.
    pub fn state(&self) -> State {
        State::from_number(self.state.load(Ordering::SeqCst))
    }

    pub(super) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
    }

    pub(super) fn access(&self) -> Access {
        Access(self.access.load(Ordering::Relaxed))
    }

    pub(super) fn qkey(&self) -> u32 {
        self.qkey.load(Ordering::Relaxed)
    }

    pub(super) fn min_rnr_timer(&self) -> u8 {
        self.min_rnr_timer.load(Ordering::Relaxed)
    }

    pub(super) fn raise(&self, event: QpEvent) {
        (self.on_event)(event);
    }

    /// To RESET: everything posted is forgotten, its completions too.
    pub fn reset(&self) {
        let tables = self.core.tables();
        self.set_state(State::Reset);
        self.requester().forget_all(self);
        *self.responder() = Responder::default();
        if !self.shares_receives {
            self.receives.clear();
        }
        drop(tables);
        self.send_cq.purge(self.number);
        self.recv_cq.purge(self.number);
        self.core.let_lines_move();
    }

    /// To INIT.
    pub fn initialize(&self, access: Access, qkey: u32) {
        self.set_access(access);
        self.set_qkey(qkey);
        self.set_state(State::Init);
    }

    /// To RTR. `connection` is `None` for UD.
    pub fn ready_to_receive(
        &self,
        connection: Option<Connection>,
        rq_psn: u32,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
    ) {
        let path = connection.map(|to| Path {
            flow: self.core.flow(
                to.address,
                self.entropy(&to),
                to.traffic_class,
                to.hop_limit,
            ),
            peer: self.core.peer(to.address),
            address: to.address,
            qpn: to.qpn,
            mtu_bytes: to.mtu_bytes,
        });
        self.set_min_rnr_timer(min_rnr_timer);
        self.requester().connect(path.clone());
        self.responder()
            .connect(path, Psn::new(rq_psn), max_dest_rd_atomic);
        self.set_state(State::Rtr);
    }

    /// What picks the source port: the flow label, or a hash of both QPNs, the same for both directions.
    fn entropy(&self, to: &Connection) -> u32 {
        if to.flow_label == 0 {
            (self.number ^ to.qpn).wrapping_mul(0x9e37_79b1)
        } else {
            to.flow_label
        }
    }

    /// To RTS. `deliveries` is `None` for UC and UD.
    pub fn ready_to_send(&self, sq_psn: u32, deliveries: Option<Deliveries>) {
        self.requester().start(Psn::new(sq_psn), deliveries);
        self.set_state(State::Rts);
    }

    /// To ERR: everything posted is flushed.
    pub fn fail(&self) {
        let tables = self.core.tables();
        self.set_state(State::Err);
        self.requester().flush(self);
        self.flush_receives();
        drop(tables);
        self.core.let_lines_move();
    }

    /// Flushes what was posted to receive, in state ERR.
    pub(super) fn flush_receives(&self) {
        self.responder().flush(self);
        if self.shares_receives {
            self.raise(QpEvent::LastWqeReached);
        }
    }

    pub(super) fn shares_receives(&self) -> bool {
        self.shares_receives
    }

    /// To SQD: what was begun is finished, then [`QpEvent::SendQueueDrained`] if `notify`.
    pub fn drain(&self, notify: bool) {
        self.set_state(State::Sqd);
        self.requester().drain(self, notify);
    }

    /// From SQD or SQE back to RTS.
    pub fn resume(&self) {
        let tables = self.core.tables();
        self.set_state(State::Rts);
        self.work(&tables, now_ns(), |requester, scene| {
            requester.transmit(scene, usize::MAX);
        });
    }

    /// Changes what the peer may do.
    pub fn set_access(&self, access: Access) {
        self.access.store(access.0, Ordering::Relaxed);
    }

    /// Changes the queue key (UD).
    pub fn set_qkey(&self, qkey: u32) {
        self.qkey.store(qkey, Ordering::Relaxed);
    }

    /// Changes the code of the wait that an RNR NAK asks for.
    pub fn set_min_rnr_timer(&self, code: u8) {
        self.min_rnr_timer.store(code & 0x1f, Ordering::Relaxed);
    }

    /// Next PSN to send, next PSN expected.
    pub fn psns(&self) -> (u32, u32) {
        (
            self.requester().next_psn().value(),
            self.responder().expected().value(),
        )
    }

    /// Whether the send queue has drained in SQD (`sq_draining` is the opposite).
    pub fn send_queue_is_empty(&self) -> bool {
        self.requester().is_drained()
    }

    /// Posts what `next` yields until it yields `None`, then transmits. On an error, what came before it stays
    /// posted; the requests after it were not asked for.
    ///
    /// # Errors
    /// Why the last request yielded was not taken.
    ///
    /// # Safety
    /// The elements of a [`Payload::Inline`](super::Payload::Inline) are readable memory.
    pub unsafe fn post_send<'a>(
        &self,
        mut next: impl FnMut() -> Option<SendRequest<'a>>,
    ) -> Result<(), PostError> {
        let state = self.state();
        if matches!(state, State::Reset | State::Init | State::Rtr) {
            return Err(PostError::State);
        }
        let tables = self.core.tables();
        // A peer that sleeps may take its first event for its own send's completion (ib_send_lat -e does), so the
        // acknowledgement goes before the answer. Pollers are not kept waiting for it.
        if self.recv_cq.has_events() {
            self.pay_acknowledgements(&tables);
        }
        let mut outcome = Ok(());
        self.work(&tables, now_ns(), |requester, scene| {
            while outcome.is_ok()
                && let Some(request) = next()
            {
                outcome = self
                    .check(&request)
                    .and_then(|()| requester.post(&request, request.signaled || self.signal_all));
            }
            // Looked at again under the requester's lock: a QP that failed meanwhile flushes this too.
            if matches!(self.state(), State::Err | State::Sqe) {
                requester.flush(self);
            } else {
                requester.transmit(scene, usize::MAX);
            }
        });
        outcome
    }

    fn check(&self, request: &SendRequest<'_>) -> Result<(), PostError> {
        use super::Operation::{CompareSwap, FetchAdd, Read, Send, Write};
        let exists = match (self.kind, request.operation) {
            (Kind::Rc, _) | (Kind::Uc, Send | Write { .. }) => true,
            (Kind::Ud, Send) => request.datagram.is_some(),
            (Kind::Uc | Kind::Ud, Read { .. } | FetchAdd { .. } | CompareSwap { .. })
            | (Kind::Ud, Write { .. }) => false,
        };
        if exists {
            Ok(())
        } else {
            Err(PostError::Operation)
        }
    }

    /// Posts a receive to the QP's own queue.
    ///
    /// # Errors
    /// Why it was not taken; [`PostError::Operation`] for a QP with a shared queue.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        if self.shares_receives {
            return Err(PostError::Operation);
        }
        if self.state() == State::Reset {
            return Err(PostError::State);
        }
        self.receives.post(wr_id, sges)?;
        if self.state() == State::Err {
            self.responder().flush(self);
        }
        Ok(())
    }

    /// Lets the requester work, then does what may not be done under its lock.
    pub(super) fn work(
        &self,
        tables: &Tables,
        now_ns: u64,
        work: impl FnOnce(&mut Requester, Scene<'_>),
    ) {
        let scene = Scene {
            core: &self.core,
            tables,
            qp: self,
            now_ns,
        };
        let mut requester = self.requester();
        work(&mut requester, scene);
        let broke = requester.take_broke();
        drop(requester);
        if broke {
            self.flush_receives();
        }
    }

    /// Completes a send. `false` if the CQ is broken.
    pub(super) fn complete_send(&self, completion: Completion) -> bool {
        self.send_cq.push(completion) || self.lose_cq()
    }

    /// Completes a receive. `false` if the CQ is broken.
    pub(super) fn complete_receive(&self, completion: Completion) -> bool {
        self.recv_cq.push(completion) || self.lose_cq()
    }

    fn lose_cq(&self) -> bool {
        if self.state() != State::Err {
            self.set_state(State::Err);
            self.raise(QpEvent::Fatal);
        }
        false
    }

    /// A completion without success.
    pub(super) fn failure(&self, wr_id: u64, status: Status, kind: CompletionKind) -> Completion {
        Completion {
            wr_id,
            status,
            kind,
            length_bytes: 0,
            immediate: None,
            qpn: self.number,
            source_qpn: 0,
            has_grh: false,
            solicited: false,
        }
    }
}
