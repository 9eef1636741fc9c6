//! Safe verbs objects with ownership and errors. The only module with `unsafe` code: its functions are safe to call
//! in any order and from any thread.

mod adapter;
mod channel;
pub mod cm;
mod cq;
mod device;
mod driver;
mod embedded;
mod error;
mod events;
mod extended_poll;
mod extended_post;
mod ffi;
mod gid;
mod library;
mod link;
mod mapping;
mod memory;
mod network;
mod poster;
mod qp;
mod recv_ring;
mod select;
mod send_ring;
mod service;
mod srq;
mod status;
mod sysfs;
mod walk;

pub use adapter::{Adapter, AdapterPort, Adapters, Extensions, Refused, Transport};
pub use channel::{CompletionChannel, Sleeper, Wakeup};
pub use cq::{Completion, CompletionQueue, POLL_BATCH, WcBatch};
pub use device::{Context, DeviceLimits, Pacing, PortInfo, StampClock};
pub use driver::Driver;
pub use embedded::{EmbeddedDevice, embedded_device, embedded_devices, select_or_embedded};
pub use error::{Operation, Teardown, VerbsError, tear_down};
pub use events::{AsyncEvent, AsyncEvents};
pub use extended_poll::CqCalls;
pub use gid::{Gid, GidEntry, GidReason, GidType};
pub use library::VerbsLibrary;
pub use link::{KernelLink, LinkLayer};
pub use mapping::{Mapping, Pages};
pub use memory::{Access, MemoryRegion, Ordering, ProtectionDomain, ThreadDomain};
pub use network::{Network, Route, prefixes_of_this_machine, source_of_this_machine};
pub use poster::{ImmediateWrite, Poster};
pub use qp::{
    AddressHandle, Path, QpAttributes, QpCapacity, QpParts, QpState, QueuePair, Reliability,
    RemoteQp,
};
pub use recv_ring::{RecvRing, RecvTemplate};
pub use select::{Embedded, Port, PortChoice, PortReason, PortRequest, select};
pub use send_ring::{PostError, SendEdit, SendOpcode, SendRing, SendScratch, SendTemplate};
pub use service::Service;
/// Faults of the embedded device, parsed from text such as `drop=5%,seed=7`.
pub use softroce::net::Faults;
/// A recorded packet of the embedded device.
pub use softroce::net::RecordedPacket;
/// The address of the embedded device from the environment.
pub use softroce::verbs::address_of_environment;
pub use softroce::wire;
pub use srq::SharedReceiveQueue;
pub use status::WcStatus;
pub use sysfs::driver as kernel_driver;
pub use walk::Walk;
