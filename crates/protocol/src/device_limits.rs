//! What the device of a node can do, as the node tells the coordinator.

use serde::{Deserialize, Serialize};
use settings::Service;
use verbs::{LinkLayer, Port, VerbsError};

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

impl DeviceLimits {
    /// The limits of an open port.
    pub fn new(port: &Port) -> DeviceLimits {
        let extensions = port.adapter.extensions();
        let limits = &port.adapter.limits;
        DeviceLimits {
            device: port.context.name().to_owned(),
            qps: limits.max_qp,
            cqs: limits.max_cq,
            wrs_of_a_queue: limits.max_qp_wr,
            entries_of_a_cq: limits.max_cqe,
            message_bytes: port.info.max_message_bytes.into(),
            packet_bytes: port.info.active_mtu_bytes.into(),
            lacks_services: refused_services(port),
            has_atomics: limits.has_atomics,
            has_srqs: limits.max_srq > 0,
            receives_of_an_srq: limits.max_srq_wr,
            sges: limits.max_sge,
            sges_of_a_read: limits.max_sge_rd,
            sges_of_an_srq: limits.max_srq_sge,
            has_extended_post: extensions.extended_post,
            has_extended_lists: extensions.extended_lists,
            has_extended_poll: extensions.extended_poll,
            has_thread_domains: extensions.thread_domains,
            has_stamps: extensions.stamps,
            takes_udp_ports: port.info.link_layer == LinkLayer::Ethernet
                && port.context.driver().is_some_and(|it| it.takes_udp_ports),
            paces: limits.pacing.map(|pacing| PacedRates {
                least_kbit_per_s: pacing.least_kbit_per_s,
                most_kbit_per_s: pacing.most_kbit_per_s,
                services: Service::ALL
                    .iter()
                    .copied()
                    .filter(|service| match service {
                        Service::Rc => pacing.of_rc,
                        Service::Uc => pacing.of_uc,
                        Service::Ud => pacing.of_ud,
                    })
                    .collect(),
            }),
        }
    }

    /// The error of a case that needs what the device does not have.
    pub fn lacks(&self, what: &'static str, instead: &'static str) -> VerbsError {
        VerbsError::DeviceLacks { device: self.device.clone(), what, instead }
    }

    /// Checks an amount that a case needs; `flags` are those that change it.
    ///
    /// # Errors
    /// It is over the limit.
    pub fn allow(
        &self,
        what: &'static str,
        limit: u64,
        needed: u64,
        flags: &'static str,
    ) -> Result<(), VerbsError> {
        if limit == 0 || needed <= limit {
            return Ok(());
        }
        Err(VerbsError::DeviceLimit { device: self.device.clone(), what, limit, needed, flags })
    }
}

fn refused_services(port: &Port) -> Vec<Service> {
    port.adapter
        .refused_services()
        .iter()
        .map(|(service, _)| match service {
            verbs::Service::ReliableConnection => Service::Rc,
            verbs::Service::UnreliableConnection => Service::Uc,
            verbs::Service::Datagram { .. } => Service::Ud,
        })
        .collect()
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
