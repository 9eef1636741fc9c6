//! Safe verbs objects with ownership and errors, and memory for them. Its functions are safe to call in any order and from
//! any thread.

mod adapter;
mod channel;
pub mod cm;
mod cq;
mod device;
mod dmabuf;
mod error;
mod events;
mod extended;
mod ffi;
mod gid;
mod interface;
mod kernel;
mod library;
mod mapping;
mod memory;
mod qp;
mod qp_attributes;
mod recv_ring;
mod select;
mod send_ring;
mod walk;

pub use adapter::{Adapter, AdapterPort, Adapters, Extensions, PortLimits, Refused, Transport};
pub use channel::{CompletionChannel, Sleeper, Wakeup};
pub use cq::{Completion, CompletionQueue, POLL_BATCH, WcBatch, WcStatus};
pub use device::{Context, DeviceLimits, Pacing, PortInfo, Services, StampClock};
pub use dmabuf::DmabufSource;
pub use error::{Operation, Teardown, VerbsError, tear_down};
pub use events::{AsyncEvent, AsyncEvents};
pub use extended::CqCalls;
pub use gid::{
    Gid, GidEntry, GidReason, GidType, Network, Route, prefixes_of_this_machine,
    source_of_this_machine,
};
pub use interface::interface_counters;
pub use kernel::{Driver, KernelLink, LinkLayer, kernel_driver};
pub use library::VerbsLibrary;
pub use mapping::{Mapping, Place, Registration, rounded_to_huge_pages};
pub use memory::{Access, MemoryRegion, Ordering, ProtectionDomain, ThreadDomain};
pub use qp::{AddressHandle, QpParts, QueuePair, SharedReceiveQueue};
pub use qp_attributes::{Path, QpAttributes, QpCapacity, QpState, Reliability, RemoteQp, Service};
pub use recv_ring::{RecvRing, RecvTemplate};
pub use select::{
    Embedded, EmbeddedDevice, Port, PortChoice, PortReason, PortRequest, WireRequest,
    embedded_device, embedded_devices, select, select_or_embedded,
};
pub use send_ring::{
    ImmediateWrite, PostError, Poster, SendEdit, SendOpcode, SendRing, SendScratch, SendTemplate,
};
/// A recorded packet of the embedded device.
pub use softroce::net::RecordedPacket;
/// Faults of the embedded device, parsed from text such as `drop=5%,seed=7`.
pub use softroce::net::{Faults, FaultsError};
pub use softroce::transport::Wire;
/// The address of the embedded device from the environment.
pub use softroce::verbs::address_of_environment;
pub use softroce::wire;
pub use walk::Walk;
