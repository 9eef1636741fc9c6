//! A QP's service, states, capacities, events and connection.

use std::net::IpAddr;

/// Transport service of a QP: that of its packets.
pub use crate::wire::Service as Kind;

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

/// Sizes of a QP's queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacities {
    /// Outstanding sends.
    pub send_wrs: u32,
    /// Outstanding receives.
    pub recv_wrs: u32,
    /// Elements of a send.
    pub send_sges: u32,
    /// Elements of a receive.
    pub recv_sges: u32,
    /// Inline bytes of a send.
    pub inline_bytes: u32,
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
