//! The device behind the verbs: QPs, CQs, memory regions and the protocol on the wire, as a Rust library. It must not
//! know the C structs of libibverbs; the `verbs` module translates.
//!
//! Its layers from below: the state of a QP or CQ (`qp_context`, `cq_context`, `requester`, `responder`), the device
//! that owns them (`core`, `tables`), the operations on them (`transmit`, `answers`, `inbound_requests` ...), when
//! these run (`progress`, `engine`), and the handles of the verbs layer ([`Nic`], [`Qp`], [`Cq`]).
//!
//! A thread that polls a CQ does the device's work: [`Cq::poll`] receives packets if the CQ is empty, and
//! [`Qp::post_send`] transmits at once. The engine thread works only while no program polls.

mod activity;
mod answers;
mod arrivals;
mod completion;
mod copy;
mod core;
mod corked;
mod cq;
mod cq_context;
mod engine;
mod fetches;
mod footprint;
mod generation;
mod gsi;
mod handled_until;
mod held;
mod inbound_requests;
mod local_check;
mod management;
mod memory;
mod messages;
mod nic;
mod notification_point;
mod outbox;
mod path;
mod peer;
mod port_state;
mod probe;
mod process;
mod progress;
mod qp;
mod qp_attributes;
mod qp_context;
mod qp_options;
mod reaction_point;
mod receive_flush;
mod recv_queue;
mod repeat_budget;
mod replies;
mod request;
mod request_outcome;
mod request_packets;
mod requester;
mod responder;
mod retry_timer;
mod round;
mod send_completion;
mod send_queue;
mod sending_rate;
mod statistics;
mod tables;
#[cfg(test)]
#[allow(unsafe_code)]
mod timed_tests;
mod timers;
mod transmit;
mod unguessable;
mod unreliable;
mod work;

pub use completion::{Completion, CompletionKind, Status};
pub use cq::Cq;
pub use cq_context::BrokenCq;
pub use footprint::{completion_queue_bytes, queue_pair_bytes, receive_queue_bytes};
pub use gsi::ManagementReceiver;
pub use memory::{Access, MAX_REGIONS, MemoryError, PdId, Region};
pub use nic::{ENGINE_CPU_NS, Nic, NicOptions};
pub use port_state::PortListener;
pub use process::OwnClaim;
pub use qp::Qp;
pub use qp_attributes::{Capacities, Connection, Deliveries, Kind, QpEvent, State};
pub use qp_options::{QpOptions, ReceiveSource};
pub use recv_queue::RecvQueue;
pub use request::{Datagram, Operation, Payload, PostError, SendRequest, Sge};
pub use send_queue::MAX_MESSAGE_BYTES;
pub use tables::MAX_QPS;
