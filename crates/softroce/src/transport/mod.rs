//! The device behind the verbs: QPs, CQs, memory regions, and the protocol between them and the wire, as a
//! Rust library of its own. It must not know the C structs of libibverbs; [`crate::verbs`] translates.
//!
//! Whoever polls a CQ does the device's work: [`Cq::poll`] receives packets when it finds the CQ empty, and
//! [`Qp::post_send`] transmits at once. The engine thread works only when nobody polls.

mod completion;
mod cq;
mod memory;
mod nic;
mod qp;
mod recv_queue;
mod request;

pub use completion::{Completion, CompletionKind, Status};
pub use cq::Cq;
pub use memory::{Access, MemoryError, PdId, Region};
pub use nic::{Nic, NicOptions};
pub use qp::{
    Capacities, Connection, Deliveries, Kind, Qp, QpEvent, QpOptions, ReceiveSource, State,
};
pub use recv_queue::RecvQueue;
pub use request::{Datagram, Operation, Payload, PostError, SendRequest, Sge};
