//! What the device of a node can do, as the node tells the coordinator.

use serde::{Deserialize, Serialize};
use settings::Service;

/// What the device and the port of a node can do; 0 is a limit that the device does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Name of the device.
    pub device: String,
    /// QPs.
    pub qps: u64,
    /// CQs.
    pub cqs: u64,
    /// WRs outstanding on one queue of a QP.
    pub wrs_of_a_queue: u64,
    /// Entries of one CQ.
    pub entries_of_a_cq: u64,
    /// Bytes of one message.
    pub message_bytes: u64,
    /// Bytes of payload in one packet: the port's active MTU.
    pub packet_bytes: u64,
    /// The services of which it makes no QP.
    pub lacks_services: Vec<Service>,
    /// Whether it has atomic operations.
    pub has_atomics: bool,
    /// Whether it has SRQs.
    pub has_srqs: bool,
    /// Receives of one SRQ.
    pub receives_of_an_srq: u64,
    /// Scatter/gather elements of a WR.
    pub sges: u64,
    /// The same of a READ.
    pub sges_of_a_read: u64,
    /// The same of a receive on an SRQ.
    pub sges_of_an_srq: u64,
    /// Whether it has extended posting (`--post extended`).
    pub has_extended_post: bool,
    /// Whether that takes messages of several elements.
    pub has_extended_lists: bool,
    /// Whether it has extended polling (`--poll-api extended`).
    pub has_extended_poll: bool,
    /// Whether it has single-threaded CQs and thread domains (`--domains thread`).
    pub has_thread_domains: bool,
    /// Whether it stamps completions (`--timestamps device`).
    pub has_stamps: bool,
    /// Whether its driver has a call for the UDP source port of a QP (`--udp-sport`).
    pub takes_udp_ports: bool,
    /// The rates that it keeps for a QP, if it does.
    pub paces: Option<PacedRates>,
}

/// The rates to which a device can limit what a QP sends, in 1000 bits a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacedRates {
    /// The least.
    pub least_kbit_per_s: u32,
    /// The most.
    pub most_kbit_per_s: u32,
    /// The services of such QPs.
    pub services: Vec<Service>,
}
