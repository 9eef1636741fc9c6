//! The device behind the verbs: QPs, CQs, memory regions, and the protocol between them and the wire, as a
//! Rust library of its own. It must not know the C structs of libibverbs; the `verbs` module translates.
//!
//! Whoever polls a CQ does the device's work: [`Cq::poll`] receives packets when it finds the CQ empty, and
//! [`Qp::post_send`] transmits at once. The engine thread works only when nobody polls.

mod answers;
mod completion;
mod copy;
mod core;
mod cq;
mod engine;
mod fetches;
mod footprint;
mod memory;
mod messages;
mod nic;
mod peer;
mod progress;
mod qp;
mod qp_options;
mod recv_queue;
mod replies;
mod request;
mod request_packets;
mod requester;
mod responder;
mod send_queue;
mod transmit;
mod unreliable;

pub use completion::{Completion, CompletionKind, Status};
pub use core::MAX_QPS;
pub use cq::{Cq, Overrun};
pub use footprint::{completion_queue_bytes, queue_pair_bytes};
pub use memory::{Access, MAX_REGIONS, MemoryError, PdId, Region};
pub use nic::{Nic, NicOptions};
pub use qp::Qp;
pub use qp_options::{
    Capacities, Connection, Deliveries, Kind, QpEvent, QpOptions, ReceiveSource, State,
};
pub use recv_queue::RecvQueue;
pub use request::{Datagram, Operation, Payload, PostError, SendRequest, Sge};
pub use send_queue::MAX_MESSAGE_BYTES;
