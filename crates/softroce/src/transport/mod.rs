//! The device behind the verbs: QPs, CQs, memory regions and the protocol on the wire, as a Rust library. It must not
//! know the C structs of libibverbs; the `verbs` module translates.
//!
//! Its layers from below, a folder each: `memory` and `timing`; `state` of QPs and CQs; the `device` that owns them; what
//! they do: `requester`, `responder`, `congestion`; and the handles of the verbs layer ([`Nic`], [`Qp`], [`Cq`]).
//!
//! A thread that polls a CQ does the device's work: [`Cq::poll`] receives packets if the CQ is empty, and
//! [`Qp::post_send`] transmits at once. The engine thread works only while no program polls.

mod completion_queue;
mod congestion;
mod device;
mod engine;
mod memory;
mod nic;
mod outbox;
mod peer;
mod progress;
mod qp;
mod qp_state;
mod requester;
mod responder;
mod sending_rate;
mod timing;
mod work_queues;
mod world;

pub use completion_queue::{BrokenCq, Completion, CompletionKind, Status};
pub use device::MAX_QPS;
pub use device::ManagementReceiver;
pub use device::OwnClaim;
pub use device::PortListener;
pub use memory::{Access, MAX_REGIONS, MemoryError, PdId, Region, Sge};
pub use nic::{Cq, ENGINE_CPU_NS, Nic, NicOptions};
pub use qp::{
    Qp, QpOptions, ReceiveSource, completion_queue_bytes, queue_pair_bytes, receive_queue_bytes,
};
pub use qp_state::{Connection, Deliveries, Kind, QpEvent, State};
pub use work_queues::{
    Capacities, Datagram, MAX_MESSAGE_BYTES, Operation, Payload, PostError, RecvQueue, SendRequest,
};
pub use world::World;
