//! Queue pairs for the verbs layer: their options, creation, transitions between states, and posting; and the memory
//! that they take. What a QP is made of is in `qp_state`.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use provider::{Lock, Operation, Payload, Sge};

use crate::net::ecn_capable;
use crate::transport::completion_queue::Completion;
use crate::transport::device::{Core, Tables};
use crate::transport::engine::LONGEST_NAP_NS;
use crate::transport::memory::{Access, PdId};
use crate::transport::nic::{Cq, Nic};
use crate::transport::outbox::{Outbox, QpWork};
use crate::transport::peer::Path;
use crate::transport::qp_state::{
    Connection, Deliveries, Kind, QpContext, QpEvent, Requester, Responder, State,
};
use crate::transport::timing::MOST_CORKED_BYTES;
use crate::transport::work_queues::{
    Capacities, PostError, RecvQueue, SendRequest, send_queue_bytes,
};
use crate::wire::Psn;

/// The source of a QP's receives.
pub enum ReceiveSource {
    /// Its own queue of [`Capacities::recv_wrs`].
    Own,
    /// That of an SRQ, which other QPs use too.
    Shared(Arc<RecvQueue>),
}

/// The options of a new QP.
pub struct QpOptions {
    pub kind: Kind,
    pub pd: PdId,
    pub send_cq: Cq,
    pub recv_cq: Cq,
    pub receives: ReceiveSource,
    pub capacities: Capacities,
    /// Whether every send is signalled.
    pub signal_all: bool,
    /// Called on events; must not call the transport.
    pub on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
}

pub struct Qp {
    core: Arc<Core>,
    context: Arc<QpContext>,
}

impl Qp {
    /// A QP in state RESET.
    ///
    /// # Errors
    /// `None` if there are no more QP numbers.
    pub fn new(nic: &Nic, options: QpOptions) -> Option<Qp> {
        let core = nic.core();
        let room = options.capacities;
        let (receives, shares_receives) = match options.receives {
            ReceiveSource::Shared(queue) => (queue, true),
            ReceiveSource::Own => {
                let [wrs, sges] = [room.recv_wrs, room.recv_sges].map(|count| count as usize);
                (Arc::new(RecvQueue::new(options.pd, wrs, sges, None)), false)
            }
        };
        if options.kind == Kind::Ud {
            // Only headers before datagrams tell them.
            core.inbound.lock().receiver.see_hop_limits();
        }
        let context = core.tables_mut().insert(|number| {
            Arc::new(QpContext {
                number,
                kind: options.kind,
                pd: options.pd,
                send_cq: Arc::clone(options.send_cq.context()),
                recv_cq: Arc::clone(options.recv_cq.context()),
                receives,
                shares_receives,
                signal_all: options.signal_all,
                on_event: options.on_event,
                state: AtomicU32::new(State::Reset as u32),
                access: AtomicU32::new(0),
                qkey: AtomicU32::new(0),
                min_rnr_timer: AtomicU8::new(0),
                timer_ns: AtomicU64::new(u64::MAX),
                next_cnp_ns: AtomicU64::new(0),
                owes: AtomicBool::new(false),
                was_answered: AtomicBool::new(false),
                waits: AtomicBool::new(false),
                is_corked: AtomicBool::new(false),
                waits_for_room: AtomicBool::new(false),
                requester: Lock::new(Requester::new(options.kind, &room)),
                responder: Lock::new(Responder::default()),
            })
        })?;
        Some(Qp { core: Arc::clone(core), context })
    }

    /// Removes it from the device: afterwards it does nothing and adds no completions.
    pub fn destroy(&self) {
        self.send_due_answers(&self.core.tables());
        self.core.tables_mut().remove(self.context.number);
        self.context.set_state(State::Reset);
        let tables = self.core.tables();
        let mut requester = self.context.requester.lock();
        requester.forget_all(&self.context);
        requester.forget_timer(self.work(&tables, self.core.activity.now_ns()));
        drop(requester);
        drop(tables);
        self.core.release_waiting();
    }

    fn work<'a>(&'a self, tables: &'a Tables, now_ns: u64) -> QpWork<'a> {
        self.core.on(tables, &self.context, now_ns)
    }

    /// Sends answers delayed until the next poll: the program saw its completion, so the peer must see its own.
    fn send_due_answers(&self, tables: &Tables) {
        const BYTES: usize = 64 << 10;
        let mut responder = self.context.responder.lock();
        if responder.owes() {
            let work = self.work(tables, self.core.activity.now_ns());
            Outbox::with(&self.core, tables, |outbox| {
                responder.send_answers(work, outbox, BYTES);
            });
        }
    }

    /// Its QP number, 24 bits.
    pub fn number(&self) -> u32 {
        self.context.number
    }

    pub fn state(&self) -> State {
        self.context.state()
    }

    /// The UDP source port of its packets; `None` before RTR and for UD.
    pub fn udp_source_port(&self) -> Option<u16> {
        let requester = self.context.requester.lock();
        requester.path.as_ref().map(|path| path.flow.source_port())
    }

    /// To RESET: discards all posted requests and their completions.
    pub fn reset(&self) {
        let tables = self.core.tables();
        self.send_due_answers(&tables);
        self.context.set_state(State::Reset);
        self.context.requester.lock().forget_all(&self.context);
        *self.context.responder.lock() = Responder::default();
        if !self.context.shares_receives {
            self.context.receives.clear();
        }
        drop(tables);
        self.context.send_cq.purge(self.context.number);
        self.context.recv_cq.purge(self.context.number);
        self.core.release_waiting();
    }

    pub fn initialize(&self, access: Access, qkey: u32) {
        self.set_access(access);
        self.set_qkey(qkey);
        self.context.set_state(State::Init);
    }

    /// To RTR. `connection` is `None` for UD.
    pub fn ready_to_receive(
        &self,
        connection: Option<Connection>,
        rq_psn: u32,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
    ) {
        let path = connection.map(|to| {
            Arc::new(Path {
                flow: self.core.flow(
                    to.address,
                    to.flow_label,
                    [self.context.number, to.qpn],
                    match self.context.kind {
                        Kind::Rc => ecn_capable(to.traffic_class),
                        // Nothing slows these down.
                        Kind::Uc | Kind::Ud => to.traffic_class,
                    },
                    to.hop_limit,
                ),
                peer: self.core.peer(to.address),
                address: to.address,
                qpn: to.qpn,
                mtu_bytes: to.mtu_bytes,
            })
        });
        self.set_min_rnr_timer(min_rnr_timer);
        self.context.requester.lock().connect(path.clone());
        self.context.responder.lock().connect(path, Psn::new(rq_psn), max_dest_rd_atomic);
        self.context.set_state(State::Rtr);
    }

    /// To RTS. `deliveries` is `None` for UC and UD.
    pub fn ready_to_send(&self, sq_psn: u32, deliveries: Option<Deliveries>) {
        self.context.requester.lock().start(Psn::new(sq_psn), deliveries);
        self.context.set_state(State::Rts);
    }

    /// To ERR: flushes all posted requests.
    pub fn fail(&self) {
        let tables = self.core.tables();
        self.send_due_answers(&tables);
        self.context.set_state(State::Err);
        self.context.requester.lock().flush(&self.context);
        self.context.flush_receives();
        drop(tables);
        self.core.release_waiting();
    }

    /// To SQD: finishes requests already begun, then raises
    /// [`QpEvent::SendQueueDrained`](super::QpEvent::SendQueueDrained) if `notify`.
    pub fn drain(&self, notify: bool) {
        self.context.set_state(State::Sqd);
        self.context.requester.lock().drain(&self.context, notify);
    }

    /// From SQD or SQE back to RTS.
    pub fn resume(&self) {
        let tables = self.core.tables();
        self.context.set_state(State::Rts);
        let work = self.work(&tables, self.core.activity.now_ns());
        Outbox::with(&self.core, &tables, |outbox| {
            work.with_requester(|requester, work| requester.transmit(work, outbox, usize::MAX));
        });
    }

    pub fn set_access(&self, access: Access) {
        self.context.access.store(access.0, Ordering::Relaxed);
    }

    /// Changes the queue key (UD).
    pub fn set_qkey(&self, qkey: u32) {
        self.context.qkey.store(qkey, Ordering::Relaxed);
    }

    /// Changes the code of the pause in its RNR NAKs.
    pub fn set_min_rnr_timer(&self, code: u8) {
        self.context.min_rnr_timer.store(code & 0x1f, Ordering::Relaxed);
    }

    /// Limits what it sends, in RTS until it is connected anew, to so many bytes of packets a nanosecond; `None` ends that.
    pub fn limit_rate(&self, bytes_per_ns: Option<f64>) {
        self.context.requester.lock().limit_rate(self.core.activity.now_ns(), bytes_per_ns);
    }

    /// The next PSN to send, and the next expected.
    pub fn psns(&self) -> (u32, u32) {
        (
            self.context.requester.lock().next_psn.value(),
            self.context.responder.lock().expected().value(),
        )
    }

    /// Whether the send queue has drained in SQD (`sq_draining` is the opposite).
    pub fn send_queue_is_empty(&self) -> bool {
        self.context.requester.lock().is_drained()
    }

    /// Posts the requests of `next` until it returns `None`, then transmits. After an error, earlier requests stay
    /// posted, and `next` is not called again.
    ///
    /// # Errors
    /// Why the last request was not accepted.
    ///
    /// # Safety
    /// The elements of a [`Payload::Inline`](super::Payload::Inline) are readable memory.
    pub unsafe fn post_send<'a>(
        &self,
        mut next: impl FnMut() -> Option<SendRequest<'a>>,
    ) -> Result<(), PostError> {
        self.check_process()?;
        let state = self.state();
        if matches!(state, State::Reset | State::Init | State::Rtr) {
            return Err(PostError::State);
        }
        let tables = self.core.tables();
        // A sleeping peer may take its first event for the completion of its own send (ib_send_lat -e does), so the
        // acknowledgement must precede the answer. Pollers need not wait for it.
        if self.context.recv_cq.has_events() {
            self.send_due_answers(&tables);
        }
        let mut outcome = Ok(());
        let now = self.core.activity.now_ns();
        let activity = &self.core.activity;
        let polls = activity.poller_is_near(now);
        activity.begin_call();
        let mut corked = 0;
        let work = self.work(&tables, now);
        work.with_requester(|requester, work| {
            let before = (requester.queue.tail, requester.queue.posted_bytes);
            while outcome.is_ok()
                && let Some(request) = next()
            {
                let signaled = request.signaled || self.context.signal_all;
                outcome =
                    self.check(&request).and_then(|()| requester.queue.push(&request, signaled));
            }
            // Check again under the requester's lock: a QP that failed meanwhile flushes this request too.
            if matches!(self.state(), State::Err | State::Sqe) {
                requester.flush(&self.context);
            } else if polls && self.waits_for_poll(requester, before.1, now) {
                corked = (requester.queue.tail - before.0) as usize;
            } else {
                Outbox::with(&self.core, &tables, |outbox| {
                    requester.transmit(work, outbox, usize::MAX);
                    work.append_acknowledgement(outbox);
                });
            }
        });
        if corked > 0 {
            self.core.cork(work, corked);
        }
        activity.end_call(now);
        outcome
    }

    fn check_process(&self) -> Result<(), PostError> {
        let is_own = self.core.is_of_this_process();
        is_own.then_some(()).ok_or(PostError::Process)
    }

    /// Whether requests wait for the program's next poll: small ones do while others are on their way.
    fn waits_for_poll(&self, requester: &Requester, posted_bytes_before: u64, now_ns: u64) -> bool {
        let corked = &self.core.corked;
        let is_busy = match self.context.kind {
            Kind::Ud | Kind::Uc => corked.has_sent(),
            Kind::Rc => requester.peer_is_busy(),
        };
        if self.context.kind != Kind::Rc {
            corked.sent();
        }
        let bytes = requester.queue.posted_bytes - posted_bytes_before;
        let activity = &self.core.activity;
        is_busy
            && bytes <= MOST_CORKED_BYTES
            && corked.may_wait()
            // Else nobody looks for them if no poll comes.
            && activity.looks_by(now_ns + LONGEST_NAP_NS)
    }

    fn check(&self, request: &SendRequest<'_>) -> Result<(), PostError> {
        use Operation::{
            Bind, CompareSwap, FetchAdd, Invalidate, Read, Send, SendInvalidate, Write,
        };
        let exists = match (self.context.kind, request.operation) {
            // The result of a fetch needs memory that is registered.
            (Kind::Rc, Read { .. } | FetchAdd { .. } | CompareSwap { .. }) => {
                matches!(request.payload, Payload::Registered(_))
            }
            (Kind::Rc | Kind::Uc, Send | Write { .. } | Bind { .. } | Invalidate { .. })
            | (Kind::Rc, SendInvalidate { .. }) => true,
            (Kind::Ud, Send) => request.datagram.is_some(),
            (
                Kind::Uc | Kind::Ud,
                Read { .. } | FetchAdd { .. } | CompareSwap { .. } | SendInvalidate { .. },
            )
            | (Kind::Ud, Write { .. } | Bind { .. } | Invalidate { .. }) => false,
        };
        exists.then_some(()).ok_or(PostError::Operation)
    }

    /// Posts a receive to the QP's own queue.
    ///
    /// # Errors
    /// Why it was not accepted; [`PostError::Operation`] for a QP with a shared queue.
    pub fn post_recv(&self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        self.check_process()?;
        if self.context.shares_receives {
            return Err(PostError::Operation);
        }
        if self.state() == State::Reset {
            return Err(PostError::State);
        }
        self.context.receives.post(wr_id, sges)?;
        if self.state() == State::Err {
            self.context.responder.lock().flush(&self.context);
        }
        Ok(())
    }
}

/// Memory of a QP besides its queues here: its part of the verbs layer, and allocations that grow with use.
const QP_REST_BYTES: usize = 768;

/// Memory of a CQ besides its ring.
const CQ_REST_BYTES: usize = 512;

/// Bytes of a connected QP with these queues, and work requests of so many elements.
pub fn queue_pair_bytes(send_wrs: u32, recv_wrs: u32, inline_bytes: u32, sges: u32) -> u64 {
    let send = send_queue_bytes(send_wrs as usize, sges as usize, inline_bytes as usize);
    let fixed = (size_of::<QpContext>() + QP_REST_BYTES + send) as u64;
    fixed + receive_queue_bytes(recv_wrs, sges)
}

/// Bytes of a queue of so many receives, a QP's own or an SRQ.
pub fn receive_queue_bytes(wrs: u32, sges: u32) -> u64 {
    let receive = size_of::<(u64, usize)>() + sges as usize * size_of::<Sge>();
    receive as u64 * u64::from(wrs)
}

/// Bytes of a CQ for this many completions, with their stamps or without.
pub fn completion_queue_bytes(entries: u32, has_stamps: bool) -> u64 {
    let stamp = if has_stamps { size_of::<u64>() } else { 0 };
    let entry = (size_of::<Completion>() + stamp) as u64;
    let ring = entry * u64::from(entries).next_power_of_two();
    CQ_REST_BYTES as u64 + ring
}
