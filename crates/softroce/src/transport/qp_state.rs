//! What a QP is: its attributes, and the states of the half that sends requests and of the half that handles them.
//! What the two do is in `requester`, `responder` and the files beside them, since it needs the device, whose tables
//! have the QPs; how they change state is in `qp`.
//!
//! [`Requester`]: the half of a QP that sends requests: its position in the send queue and in the packet sequence.
//! Requests are numbered from the QP's creation. `queue.head` is the oldest not completed, `next` the one being
//! sent, `assigned` the first without PSNs. Going back N (InfiniBand specification 9.7.5.1.1) sets `next` back to
//! `head`.
//!
//! [`Responder`]: the half of a QP that handles requests: its position in the packet sequence and in a message, and
//! the answers due (InfiniBand specification 9.7.4, 9.7.5).
//!
//! [`RepeatBudget`]: bounds the bytes that repeated READs make a responder send: a request of 40 bytes asks for up
//! to 2 GiB, and who can record one can send it again and again.
//!
//! A READ that is new earns a multiple of its length, since a lossy link makes its requester repeat much: after each
//! loss all that was in flight. Time earns a little, so that a requester whose repetition was dropped succeeds with
//! a later one. A repetition is answered while the budget is positive.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use provider::Lock;

use crate::transport::completion_queue::{Completion, CqContext, Status};
use crate::transport::memory::{Access, PdId};
use crate::transport::peer::{Path, Peer, SourcePort};
use crate::transport::sending_rate::SendingRate;
use crate::transport::timing::Entry;
use crate::transport::work_queues::{Capacities, Receive, RecvQueue, SendQueue, Wqe};
/// Transport service of a QP: that of its packets.
pub use crate::wire::Service as Kind;
use crate::wire::{NakCode, Psn, Reth, Syndrome};

/// State of a QP; the numbers are those of `ibv_qp_state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // each is the specification's name
pub enum State {
    Reset = 0,
    Init = 1,
    Rtr = 2,
    Rts = 3,
    Sqd = 4,
    Sqe = 5,
    Err = 6,
}

impl State {
    /// All of them, by their numbers.
    pub const ALL: [State; 7] =
        [State::Reset, State::Init, State::Rtr, State::Rts, State::Sqd, State::Sqe, State::Err];

    /// The state of this number.
    pub fn from_number(number: u32) -> Option<State> {
        State::ALL.get(number as usize).copied()
    }

    /// Whether it accepts the peer's requests.
    pub(crate) fn receives(self) -> bool {
        matches!(self, State::Rtr | State::Rts | State::Sqd | State::Sqe)
    }
}

/// An event of a QP other than a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpEvent {
    /// First packet in state RTR (IBV_EVENT_COMM_EST).
    CommunicationEstablished,
    /// All sends of a QP in state SQD are done (IBV_EVENT_SQ_DRAINED).
    SendQueueDrained,
    /// The peer's request was invalid (IBV_EVENT_QP_REQ_ERR).
    RequestError,
    /// The peer's request was not allowed (IBV_EVENT_QP_ACCESS_ERR).
    AccessError,
    /// The QP is in ERR and takes no more receives from its SRQ (IBV_EVENT_QP_LAST_WQE_REACHED).
    LastWqeReached,
    /// The QP failed because its CQ overran (IBV_EVENT_QP_FATAL).
    Fatal,
}

/// The destination of a connected QP's packets, set from INIT to RTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    pub address: IpAddr,
    pub qpn: u32,
    /// Flow label of the address handle, for the source port; 0 derives it from the QPNs.
    pub flow_label: u32,
    /// Type of service byte and hop limit of the packets.
    pub traffic_class: u8,
    /// Time to live; 0 leaves the system's.
    pub hop_limit: u8,
    /// Payload of a packet: 256 to 4096 bytes.
    pub mtu_bytes: u32,
}

/// Retries of a reliable QP's sends, set from RTR to RTS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// Time-out of an acknowledgement: 4.096 µs × 2^this; 0 waits for ever.
    pub timeout: u8,
    /// Retries after a time-out, 0 to 7.
    pub retry_count: u8,
    /// Retries when the receiver is not ready; 7 for ever.
    pub rnr_retry: u8,
    /// The most READs and atomics in flight.
    pub max_rd_atomic: u8,
}

/// The device's state of a QP.
pub(crate) struct QpContext {
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) pd: PdId,
    pub(crate) send_cq: Arc<CqContext>,
    pub(crate) recv_cq: Arc<CqContext>,
    pub(crate) receives: Arc<RecvQueue>,
    pub(crate) shares_receives: bool,
    /// Whether every send is signalled.
    pub(crate) signal_all: bool,
    pub(crate) on_event: Box<dyn Fn(QpEvent) + Send + Sync>,
    pub(crate) state: AtomicU32,
    pub(crate) access: AtomicU32,
    pub(crate) qkey: AtomicU32,
    pub(crate) min_rnr_timer: AtomicU8,
    /// When the requester's timer is due; `u64::MAX` for never.
    pub(crate) timer_ns: AtomicU64,
    /// Before this time it sends no CNP.
    pub(crate) next_cnp_ns: AtomicU64,
    /// Whether it is in the list of QPs with answers to send, in that of answered QPs, and in its peer's queue.
    pub(crate) owes: AtomicBool,
    pub(crate) was_answered: AtomicBool,
    pub(crate) waits: AtomicBool,
    /// Whether it is in the list of QPs whose posts wait for a poll.
    pub(crate) is_corked: AtomicBool,
    /// Whether it is in the list of QPs that wait for room in a socket.
    pub(crate) waits_for_room: AtomicBool,
    pub(crate) requester: Lock<Requester>,
    pub(crate) responder: Lock<Responder>,
}

impl QpContext {
    pub(crate) fn state(&self) -> State {
        State::from_number(self.state.load(Ordering::SeqCst)).unwrap_or(State::Err)
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
    }

    pub(crate) fn access(&self) -> Access {
        Access(self.access.load(Ordering::Relaxed))
    }

    pub(crate) fn qkey(&self) -> u32 {
        self.qkey.load(Ordering::Relaxed)
    }

    pub(crate) fn min_rnr_timer(&self) -> u8 {
        self.min_rnr_timer.load(Ordering::Relaxed)
    }

    pub(crate) fn raise(&self, event: QpEvent) {
        (self.on_event)(event);
    }

    /// Completes a send. `false` if the CQ is broken.
    pub(crate) fn complete_send(&self, completion: Completion) -> bool {
        self.send_cq.push(completion) || self.lose_cq()
    }

    /// Completes a receive. `false` if the CQ is broken.
    pub(crate) fn complete_receive(&self, completion: Completion) -> bool {
        self.recv_cq.push(completion) || self.lose_cq()
    }

    fn lose_cq(&self) -> bool {
        if self.state() != State::Err {
            self.set_state(State::Err);
            self.raise(QpEvent::Fatal);
        }
        false
    }
}

/// One packet of this many requests an acknowledgement, also within a long message.
pub(crate) const ACK_EVERY_PACKETS: u32 = 16;
#[derive(Default)]
pub(crate) struct Requester {
    pub(crate) queue: SendQueue,
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) source_port: SourcePort,
    pub(crate) deliveries: Deliveries,
    /// The request being sent, and how many of its PSNs were sent.
    pub(crate) next: u64,
    pub(crate) sent_packets: u32,
    pub(crate) assigned: u64,
    /// PSN of the next request without PSNs.
    pub(crate) next_psn: Psn,
    /// The PSN after all packets ever sent.
    pub(crate) sent_until: Psn,
    pub(crate) unacked: Psn,
    /// READ requests and atomics in flight.
    pub(crate) fetches: u32,
    /// Its part of the peer's window: the sum of what its requests have been charged.
    pub(crate) in_flight_bytes: i64,
    /// When the time-out of an answer is over, and how many probes were sent before.
    pub(crate) deadline_ns: u64,
    pub(crate) probes: u32,
    /// [`Peer::sent_mark`] when it last sent something new.
    pub(crate) sent_mark: i64,
    /// A PSN, and when the packets before it were sent: their answer tells the round-trip time.
    timed: Option<(Psn, u64)>,
    pub(crate) retries_left: u8,
    pub(crate) rnr_retries_left: u8,
    /// In the queue of timers.
    pub(crate) timer_entry: Entry,
    /// The rate of its packets, of a QP that has a limit or since a CNP; `None` is the full one.
    pub(crate) rate: Option<SendingRate>,
    /// In the queue of turns at a rate.
    pub(crate) rate_entry: Entry,
    /// Whether it pauses because of an RNR NAK.
    pub(crate) pauses: bool,
    /// An answer has come since the timer was set.
    pub(crate) was_answered: bool,
    /// `unacked` at the last retransmission after a loss. Only a time-out retransmits the same packets again.
    pub(crate) went_back_to: Option<Psn>,
    /// A request that cannot be sent, and its status.
    pub(crate) failed: Option<(u64, Status)>,
    /// The last packet did not request an acknowledgement, so the next one is sent whatever the window.
    pub(crate) in_burst: bool,
    /// In SQD: the end of the requests still sent, and whether to raise an event when they are done.
    pub(crate) drains: Option<(u64, bool)>,
    pub(crate) broke: bool,
}

impl Requester {
    pub(crate) fn new(kind: Kind, room: &Capacities) -> Requester {
        Requester {
            queue: SendQueue::new(kind, room),
            deadline_ns: u64::MAX,
            ..Requester::default()
        }
    }

    pub(crate) fn connect(&mut self, path: Option<Arc<Path>>) {
        self.path = path;
        self.source_port = SourcePort::default();
        self.rate = None;
    }

    pub(crate) fn start(&mut self, psn: Psn, deliveries: Option<Deliveries>) {
        self.next_psn = psn;
        self.unacked = psn;
        self.sent_until = psn;
        if let Some(deliveries) = deliveries {
            self.deliveries = deliveries;
        }
        self.renew_retries();
    }

    pub(crate) fn peer(&self) -> Option<Arc<Peer>> {
        self.path.as_ref().map(|path| Arc::clone(&path.peer))
    }

    /// Whether the QP failed since the last call: then its receives must be flushed too.
    pub(crate) fn take_broke(&mut self) -> bool {
        std::mem::take(&mut self.broke)
    }

    /// Whether packets are on their way to its peer.
    pub(crate) fn peer_is_busy(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.peer.is_busy())
    }

    pub(crate) fn renew_retries(&mut self) {
        self.retries_left = self.deliveries.retry_count;
        self.rnr_retries_left = self.deliveries.rnr_retry;
    }

    /// The first PSN not sent since the last retransmission.
    pub(crate) fn position(&self) -> Psn {
        match self.queue.get(self.next) {
            Some(wqe) if self.next < self.assigned => wqe.first_psn.plus(self.sent_packets),
            _ => self.next_psn,
        }
    }

    /// Records how far it has sent, now.
    pub(crate) fn note_position(&mut self, now_ns: u64) {
        let position = self.position();
        if position.distance_from(self.sent_until) > 0 {
            self.sent_until = position;
            self.sent_mark = self.path.as_ref().map_or(0, |path| path.peer.sent_mark());
            self.timed = self.timed.or(Some((position, now_ns)));
        }
    }

    /// Tells the peer of an answer, and the round-trip time when the packets have been answered whose time is known.
    pub(crate) fn note_answer(&mut self, now_ns: u64) {
        let Some(path) = &self.path else {
            return;
        };
        path.peer.note_answer(now_ns);
        if let Some((end, sent_ns)) = self.timed
            && self.unacked.distance_from(end) >= 0
        {
            path.peer.note_round_trip(now_ns.saturating_sub(sent_ns));
            self.timed = None;
        }
    }

    pub(crate) fn assign(&mut self, index: u64, packets: u32) {
        let first_psn = self.next_psn;
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.first_psn = first_psn;
            wqe.packets = packets;
        }
        self.next_psn = first_psn.plus(packets);
        self.assigned = index + 1;
    }

    /// The end of the requests that may be sent in this state.
    pub(crate) fn limit(&self) -> u64 {
        self.drains.map_or(self.queue.tail, |(end, _)| end)
    }

    /// Whether there is more to send, regardless of limits.
    pub(crate) fn wants_to_send(&self) -> bool {
        self.next < self.limit() && self.failed.is_none()
    }

    /// Counts bytes of a packet that is sent: they are in flight until it is answered. The caller counts them in the peer's
    /// window.
    pub(crate) fn charge(&mut self, index: u64, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(wqe) = self.queue.get_mut(index) {
            wqe.charge_bytes = wqe.charge_bytes.saturating_add(bytes);
        }
        self.in_flight_bytes += i64::from(bytes);
    }

    /// Counts these bytes as arrived in the peer's window.
    pub(crate) fn credit(&self, bytes: i64) {
        if let Some(path) = &self.path {
            path.peer.credit(bytes);
        }
    }

    /// Takes the bytes of all packets in flight of the oldest request.
    pub(crate) fn settle(&mut self) -> i64 {
        let Some(wqe) = self.queue.get_mut(self.queue.head) else {
            return 0;
        };
        let bytes = i64::from(std::mem::take(&mut wqe.charge_bytes));
        self.in_flight_bytes -= bytes;
        bytes
    }

    /// Takes the bytes of the next `answered` packets of the oldest request.
    pub(crate) fn settle_part(&mut self, answered: u32) -> i64 {
        let before = self.answered_packets();
        let sent = if self.queue.head == self.next { self.sent_packets } else { u32::MAX };
        let Some(wqe) = self.queue.get_mut(self.queue.head) else {
            return 0;
        };
        let waiting = sent.min(wqe.packets).saturating_sub(before);
        let part = if answered < waiting {
            u64::from(wqe.charge_bytes) * u64::from(answered) / u64::from(waiting)
        } else {
            wqe.charge_bytes.into()
        };
        wqe.charge_bytes -= part as u32;
        self.in_flight_bytes -= part.cast_signed();
        part.cast_signed()
    }

    /// Gives the share of the peer's window back that packets in flight take.
    pub(crate) fn give_window_back(&mut self) {
        if let Some(path) = &self.path {
            path.peer.forget(self.in_flight_bytes);
        }
        self.in_flight_bytes = 0;
        for index in self.queue.head..=self.next {
            if let Some(wqe) = self.queue.get_mut(index) {
                wqe.charge_bytes = 0;
            }
        }
    }

    /// Restarts sending at the oldest unacknowledged packet.
    pub(crate) fn go_back(&mut self) {
        self.give_window_back();
        self.fetches = 0;
        self.in_burst = false;
        // An answer may be to the first sending or to the second (P. Karn, C. Partridge, SIGCOMM 1987).
        self.timed = None;
        self.next = self.queue.head;
        self.sent_packets = self.answered_packets();
    }

    pub(crate) fn oldest(&self) -> Option<&Wqe> {
        let head = self.queue.head;
        self.queue.get(head).filter(|_| head < self.assigned)
    }

    /// How many packets of the oldest request are acknowledged.
    pub(crate) fn answered_packets(&self) -> u32 {
        self.oldest()
            .map_or(0, |wqe| self.unacked.distance_from(wqe.first_psn).max(0))
            .cast_unsigned()
    }

    /// Resets the state: no posted request has been started.
    pub(crate) fn begin_anew(&mut self) {
        self.next = self.queue.head;
        self.assigned = self.queue.head;
        self.sent_packets = 0;
        self.failed = None;
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.queue.head >= self.limit()
    }
}

/// The most answers due: twice the READs and atomics that a QP may have in flight (8 bits), and as many more.
const MOST_REPLIES: usize = 1024;

#[derive(Default)]
pub(crate) struct Responder {
    pub(crate) path: Option<Arc<Path>>,
    pub(crate) source_port: SourcePort,
    pub(crate) expected: Option<Psn>,
    /// Messages completed, 24 bits (MSN).
    pub(crate) completed: u32,
    /// The gap or the missing receive at `expected` was reported; all other packets are dropped until it is filled.
    pub(crate) reported: bool,
    pub(crate) message: Option<Message>,
    pub(crate) receive: Receive,
    /// Whether `receive` is in use.
    pub(crate) has_receive: bool,
    pub(crate) replies: VecDeque<Reply>,
    pub(crate) answered: VecDeque<Answered>,
    pub(crate) max_dest_rd_atomic: usize,
    pub(crate) repeat_budget: RepeatBudget,
    /// Whether a packet came since RTR.
    pub(crate) communicates: bool,
    /// Whether the program was told that a QP in ERR takes no more from its SRQ: it is told once.
    pub(crate) told_last_wqe: bool,
}

/// An incomplete message of several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// Goes to the elements of the receive that it has taken (`receive`).
    Send,
    /// Goes to memory: the address of the next packet's bytes, and how many are to come.
    Write { address: u64, rkey: u32, rest_bytes: u32, length_bytes: u32 },
}

/// A READ or atomic that was answered, kept to answer it again if the answer is lost.
#[derive(Clone, Copy)]
pub(crate) struct Answered {
    pub(crate) psn: Psn,
    pub(crate) packets: u32,
    pub(crate) what: AnsweredWhat,
}

#[derive(Clone, Copy)]
pub(crate) enum AnsweredWhat {
    Read(Reth),
    Atomic { original: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// The PSN that it answers; of a READ the first of the response.
    pub(crate) psn: Psn,
    /// The MSN to send: how many messages were completed until then.
    pub(crate) completed: u32,
    pub(crate) what: ReplyWhat,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ReplyWhat {
    Acknowledge,
    Refuse(Syndrome),
    /// `again`: whether it was sent or due before.
    Atomic {
        original: u64,
        again: bool,
    },
    Read {
        reth: Reth,
        /// The address of its bytes here, only to compare it.
        source: usize,
        packets: u32,
        sent_packets: u32,
        again: bool,
    },
}

impl Reply {
    /// Whether it answers a READ or an atomic for the first time.
    fn is_first_fetch(&self) -> bool {
        use ReplyWhat::{Atomic, Read};
        matches!(self.what, Read { again: false, .. } | Atomic { again: false, .. })
    }

    pub(crate) fn last_psn(&self) -> Psn {
        match self.what {
            ReplyWhat::Read { packets, .. } => self.psn.plus(packets - 1),
            _ => self.psn,
        }
    }
}

impl Responder {
    pub(crate) fn connect(&mut self, path: Option<Arc<Path>>, psn: Psn, max_dest_rd_atomic: u8) {
        *self = Responder {
            path,
            expected: Some(psn),
            max_dest_rd_atomic: usize::from(max_dest_rd_atomic),
            ..Responder::default()
        };
    }

    /// The path back, for a packet from the peer's address and port.
    pub(crate) fn path_from(&self, source: SocketAddr) -> Option<&Arc<Path>> {
        let may_be = self.source_port.may_be(source.port());
        let path = self.path.as_ref();
        path.filter(|path| may_be && path.address == source.ip())
    }

    pub(crate) fn expected(&self) -> Psn {
        self.expected.unwrap_or(Psn::ZERO)
    }

    pub(crate) fn owes(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Queues an acknowledgement of all packets up to `psn`; it replaces earlier ones.
    pub(crate) fn acknowledge(&mut self, psn: Psn) {
        if self.replies.back().is_some_and(|last| matches!(last.what, ReplyWhat::Acknowledge)) {
            self.replies.pop_back();
        }
        self.owe(psn, ReplyWhat::Acknowledge);
    }

    /// Queues an answer. One beyond the bound is dropped as if lost: of a peer that follows the rules there are no more
    /// than its READs and atomics, an acknowledgement before each, and a NAK.
    pub(crate) fn owe(&mut self, psn: Psn, what: ReplyWhat) {
        if self.replies.len() < MOST_REPLIES {
            self.replies.push_back(Reply { psn, completed: self.completed, what });
        }
    }

    /// Whether as many READs and atomics wait for their answers as the peer may have in flight.
    pub(crate) fn fetches_full(&self) -> bool {
        let most = self.max_dest_rd_atomic;
        self.replies.len() >= most
            && self.replies.iter().filter(|reply| reply.is_first_fetch()).count() >= most
    }
}

/// The refusal of a request: the NAK for the peer, if there is one, and the status of a receive that it used.
pub(crate) struct Refusal {
    pub(crate) code: Option<NakCode>,
    pub(crate) receive_status: Status,
}

impl Refusal {
    pub(crate) fn invalid() -> Refusal {
        let code = Some(NakCode::InvalidRequest);
        Refusal { code, receive_status: Status::RemoteInvalidRequestError }
    }

    pub(crate) fn access() -> Refusal {
        let code = Some(NakCode::RemoteAccessError);
        Refusal { code, receive_status: Status::LocalAccessError }
    }

    /// Of a SEND whose key cannot be invalidated: its peer gets no answer (specification 9.9.6.3, class J).
    pub(crate) fn invalidation() -> Refusal {
        Refusal { code: None, receive_status: Status::RemoteInvalidRequestError }
    }
}

pub(crate) enum RequestOutcome {
    Done,
    NotReady,
    /// Nothing was done, since it changes memory that READs before it are still to be answered from.
    OvertakesRead,
}

/// The most that time earns.
const BURST_BYTES: i64 = 4 << 20;
/// Time earns a byte in so many nanoseconds: 62.5 MB/s.
const NS_A_BYTE: u64 = 16;
/// A new READ earns its length so many times: as often may losses repeat it, on average, while it is in flight.
const EARNS: i64 = 16;
/// The most that new READs earn.
const MOST_BYTES: i64 = 1 << 40;

/// What repeated READs of a QP may still cost.
#[derive(Default)]
pub(crate) struct RepeatBudget {
    bytes: i64,
    /// When time last earned something.
    earned_ns: u64,
}

impl RepeatBudget {
    /// A new READ of this length: [`EARNS`] times as many bytes may be repeated.
    pub(crate) fn earn(&mut self, bytes: u32) {
        self.bytes = (self.bytes + EARNS * i64::from(bytes)).min(MOST_BYTES);
    }

    /// Whether to answer a repeated READ of this length.
    pub(crate) fn spend(&mut self, bytes: u32, now_ns: u64) -> bool {
        if self.bytes < BURST_BYTES {
            let by_time = now_ns.saturating_sub(self.earned_ns) / NS_A_BYTE;
            let by_time = i64::try_from(by_time).unwrap_or(i64::MAX);
            self.bytes = self.bytes.saturating_add(by_time).min(BURST_BYTES);
        }
        self.earned_ns = now_ns;
        let affordable = self.bytes > 0;
        if affordable {
            // A long one does not block the next for longer than the burst takes.
            self.bytes = (self.bytes - i64::from(bytes)).max(-BURST_BYTES);
        }
        affordable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_longest_read_another_is_answered_within_two_bursts() {
        let mut budget = RepeatBudget::default();
        let start = 1_000_000_000;
        assert!(budget.spend(u32::MAX, start));
        assert!(!budget.spend(1, start));
        let burst_ns = BURST_BYTES.cast_unsigned() * NS_A_BYTE;
        assert!(budget.spend(1, start + burst_ns + NS_A_BYTE));
    }
}
