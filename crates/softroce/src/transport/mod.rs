//! The device behind the verbs: QPs, CQs, memory regions and the protocol on the wire, as a Rust library. The C structs
//! of libibverbs are the `verbs` module's.
//!
//! Its layers from below: `memory` with `windows`, `timing` and `peer`; `completion_queue`, `work_queues` and `qp_state`; the `device`
//! that owns them, with its `outbox`; what QPs do: `requester`, `responder`, `congestion`, by turns that `progress` and
//! the `engine` give; and the handles of the verbs layer, `nic` and `qp` ([`Nic`], [`Cq`], [`Qp`]).
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
mod requester_answers;
mod responder;
mod responder_reads;
mod sending_rate;
mod timing;
mod windows;
mod work_queues;
mod world;

pub use completion_queue::{Attached, BrokenCq, Completion, CompletionKind, Status};
pub use device::{MAX_QPS, ManagementReceiver, OwnClaim, PortListener};
pub use memory::{Access, MAX_REGIONS, MemoryError, PdId, Region};
pub use nic::{Cq, ENGINE_CPU_NS, Nic, NicOptions, Wire};
pub use provider::{Operation, Payload, Sge};
pub use qp::{
    Qp, QpOptions, ReceiveSource, completion_queue_bytes, queue_pair_bytes, receive_queue_bytes,
};
pub use qp_state::{Connection, Deliveries, Kind, QpEvent, State};
pub use windows::{MAX_WINDOWS, WindowType};
pub use work_queues::{Capacities, Datagram, MAX_MESSAGE_BYTES, PostError, RecvQueue, SendRequest};
pub use world::World;
