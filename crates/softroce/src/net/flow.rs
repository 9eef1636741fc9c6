//! A flow: the destination of packets, and the fields of their network headers that the invariant CRC covers.

use std::net::{IpAddr, SocketAddr};

use super::gso_probe;
use super::reuse_group::slot_of;
use super::sockets::SendOptions;
use crate::wire::{IcrcAddresses, IcrcSeed, UDP_PORT, as_ipv6};

/// IPv4 flags of all our packets: "don't fragment".
pub const DONT_FRAGMENT: u16 = 0x4000;

/// The path of packets: addresses, the source port that spreads flows, traffic class and hop limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    pub(super) destination: SocketAddr,
    pub(super) addresses: IcrcAddresses,
    /// Whether the destination has our address' family; others cannot be reached.
    pub(super) reachable: bool,
    pub(super) socket: usize,
    pub(super) source_port: u16,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
    /// Which process at the destination gets them: the kernel there gives it a whole GSO batch.
    pub(super) slot: u8,
    /// The most packets of a GSO batch.
    pub(super) max_packets: usize,
}

impl Flow {
    /// A flow from `source` to the RoCEv2 port of `destination`.
    pub(super) fn new(source: IpAddr, destination: IpAddr, socket: usize, port: u16) -> Flow {
        let destination = destination.to_canonical();
        Flow {
            destination: (destination, UDP_PORT).into(),
            addresses: icrc_addresses(source, destination),
            reachable: source.is_ipv4() == destination.is_ipv4(),
            socket,
            source_port: port,
            traffic_class: 0,
            hop_limit: 0,
            slot: 0,
            max_packets: gso_probe::most_packets(),
        }
    }

    /// The UDP source port of its packets.
    pub fn source_port(&self) -> u16 {
        self.source_port
    }

    /// The same way to the process of this QP.
    pub fn to_process_of(self, qpn: u32) -> Flow {
        Flow { slot: slot_of(qpn), ..self }
    }

    /// The options for sending so many packets of this length to it at once.
    pub(super) fn send_options(&self, packets: usize, segment_bytes: usize) -> SendOptions {
        SendOptions {
            destination: self.destination,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            segment_bytes: (packets > 1).then_some(segment_bytes as u16),
        }
    }

    /// The CRC seed of packets of this length with identification 0.
    pub(super) fn seed(&self, packet_bytes: usize) -> IcrcSeed {
        IcrcSeed::new(self.addresses, self.source_port, packet_bytes)
    }
}

/// The addresses for the CRC, with identification 0; both as IPv6 if their families differ.
pub fn icrc_addresses(source: IpAddr, destination: IpAddr) -> IcrcAddresses {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            IcrcAddresses::V4 { source, destination, identification: 0, flags: DONT_FRAGMENT }
        }
        _ => IcrcAddresses::V6 { source: as_ipv6(source), destination: as_ipv6(destination) },
    }
}
