//! The device behind the verbs: QPs, CQs, memory regions and the protocol on the wire, as a Rust library. It must not
//! know the C structs of libibverbs; the `verbs` module translates.
//!
//! Its layers from below, a folder each: `memory` and `timing`; `state` of QPs and CQs; the `device` that owns them; what
//! they do: `requester`, `responder`, `congestion`; and the handles of the verbs layer ([`Nic`], [`Qp`], [`Cq`]).
//!
//! A thread that polls a CQ does the device's work: [`Cq::poll`] receives packets if the CQ is empty, and
//! [`Qp::post_send`] transmits at once. The engine thread works only while no program polls.

mod congestion;
mod cq;
mod device;
mod footprint;
mod management;
mod memory;
mod nic;
mod qp;
mod qp_options;
mod requester;
mod responder;
mod state;
mod timing;
mod world;

pub use cq::Cq;
pub use device::gsi::ManagementReceiver;
pub use device::port_state::PortListener;
pub use device::process::OwnClaim;
pub use device::tables::MAX_QPS;
pub use footprint::{completion_queue_bytes, queue_pair_bytes, receive_queue_bytes};
pub use memory::regions::{Access, MAX_REGIONS, MemoryError, PdId, Region};
pub use memory::sge::Sge;
pub use nic::{ENGINE_CPU_NS, Nic, NicOptions};
pub use qp::Qp;
pub use qp_options::{QpOptions, ReceiveSource};
pub use state::completion::{Completion, CompletionKind, Status};
pub use state::cq_context::BrokenCq;
pub use state::qp_attributes::{Capacities, Connection, Deliveries, Kind, QpEvent, State};
pub use state::recv_queue::RecvQueue;
pub use state::request::{Datagram, Operation, Payload, PostError, SendRequest};
pub use state::send_queue::MAX_MESSAGE_BYTES;
pub use world::World;
