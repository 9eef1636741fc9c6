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
mod completion;
mod copy;
mod core;
mod cq;
mod cq_context;
mod engine;
mod fetches;
mod footprint;
mod gso_batches;
mod inbound_requests;
mod local_check;
mod memory;
mod messages;
mod nic;
mod path;
mod peer;
mod progress;
mod qp;
mod qp_attributes;
mod qp_context;
mod qp_options;
mod receive_flush;
mod recv_queue;
mod replies;
mod request;
mod request_outcome;
mod request_packets;
mod requester;
mod responder;
mod retry_timer;
mod send_completion;
mod send_queue;
mod statistics;
mod tables;
mod transmit;
mod unreliable;
mod work;

pub use completion::{Completion, CompletionKind, Status};
pub use cq::Cq;
pub use cq_context::Overrun;
pub use footprint::{completion_queue_bytes, queue_pair_bytes};
pub use memory::{Access, MAX_REGIONS, MemoryError, PdId, Region};
pub use nic::{Nic, NicOptions};
pub use qp::Qp;
pub use qp_attributes::{Capacities, Connection, Deliveries, Kind, QpEvent, State};
pub use qp_options::{QpOptions, ReceiveSource};
pub use recv_queue::RecvQueue;
pub use request::{Datagram, Operation, Payload, PostError, SendRequest, Sge};
pub use send_queue::MAX_MESSAGE_BYTES;
pub use tables::MAX_QPS;
