//! What the protocol leaves of a link's speed for payload.
//!
//! Every packet carries headers, check sums and (on Ethernet) a preamble and a gap, so payload can fill
//! a known part of the link at best. Only the direction that payload takes is counted: ACKs and READ
//! requests go the other way, and where payload also goes that way they cost a little more than is said
//! here. The bound can therefore not be exceeded, and a reliable link comes close to it.
//!
//! Sources: InfiniBand Architecture Specification 1.4, volume 1, chapters 5 (packets), 7.7 (LRH),
//! 8.3 (GRH), 9.2 (BTH), 9.3 (extended headers), 7.8 (CRCs), and annexes A17 (RoCE v2);
//! IEEE 802.3 clauses 3 (frames) and 4.4.2 (inter-packet gap).

use settings::{Op, Service};

/// Ethernet's preamble, start delimiter and gap between packets.
const ETHERNET_GAPS_BYTES: u64 = 8 + 12;
/// Ethernet's header and frame check sequence.
const ETHERNET_HEADER_BYTES: u64 = 14 + 4;
/// The shortest Ethernet frame, header and frame check sequence included.
const ETHERNET_MIN_FRAME_BYTES: u64 = 64;
const IPV4_BYTES: u64 = 20;
const IPV6_BYTES: u64 = 40;
const UDP_BYTES: u64 = 8;
/// Base transport header (BTH), which every packet has.
const BTH_BYTES: u64 = 12;
/// Invariant CRC over what no switch or router changes.
const ICRC_BYTES: u64 = 4;
/// Local route header (LRH) of InfiniBand, with the LIDs.
const LRH_BYTES: u64 = 8;
/// Global route header (GRH) of InfiniBand, with the GIDs.
const GRH_BYTES: u64 = 40;
/// Variant CRC of InfiniBand, over what a switch may change.
const VCRC_BYTES: u64 = 2;

/// What carries the packets, by which their headers are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// RoCE v2 over UDP and IPv4, without VLAN tag.
    RoceIpv4,
    /// RoCE v2 over UDP and IPv6, without VLAN tag.
    RoceIpv6,
    /// InfiniBand within a subnet (LID-routed). A link of 40 Gb/s or less also spends a fifth on its
    /// line code, which is not counted here.
    InfiniBand,
    /// InfiniBand with a global route header.
    InfiniBandGrh,
    /// RoCE v2 over UDP and IPv4, of which no link layer counts: the embedded device.
    UdpIpv4,
    /// The same over IPv6.
    UdpIpv6,
}

impl Wire {
    /// What a packet takes on the link that carries `transport_bytes` from BTH to the end of payload
    /// and padding.
    fn packet_bytes(self, transport_bytes: u64) -> u64 {
        match self {
            Wire::RoceIpv4 => ethernet_bytes(IPV4_BYTES, transport_bytes),
            Wire::RoceIpv6 => ethernet_bytes(IPV6_BYTES, transport_bytes),
            Wire::UdpIpv4 => IPV4_BYTES + UDP_BYTES + transport_bytes + ICRC_BYTES,
            Wire::UdpIpv6 => IPV6_BYTES + UDP_BYTES + transport_bytes + ICRC_BYTES,
            Wire::InfiniBand => LRH_BYTES + transport_bytes + ICRC_BYTES + VCRC_BYTES,
            Wire::InfiniBandGrh => {
                LRH_BYTES + GRH_BYTES + transport_bytes + ICRC_BYTES + VCRC_BYTES
            }
        }
    }
}

fn ethernet_bytes(ip_bytes: u64, transport_bytes: u64) -> u64 {
    let frame = ETHERNET_HEADER_BYTES + ip_bytes + UDP_BYTES + transport_bytes + ICRC_BYTES;
    frame.max(ETHERNET_MIN_FRAME_BYTES) + ETHERNET_GAPS_BYTES
}

/// What one message of `size_bytes` takes on the link in the direction of its payload, in bytes, cut
/// into packets of at most `mtu_bytes` of payload, the last one padded to a multiple of 4.
pub fn wire_bytes(
    (op, service): (Op, Service),
    size_bytes: u64,
    mtu_bytes: u32,
    wire: Wire,
) -> u64 {
    let mtu = u64::from(mtu_bytes.max(1));
    let packets = size_bytes.div_ceil(mtu).max(1);
    let last_payload = (size_bytes - (packets - 1) * mtu).next_multiple_of(4);
    // A WRITE names its target in the first or only packet; of a READ's responses the first, the last
    // and an only one acknowledge, those in the middle do not.
    let [first, last, only] = op.profile().extended_header_bytes;
    let headers = BTH_BYTES + service.packet_header_bytes();
    if packets == 1 {
        wire.packet_bytes(headers + only + last_payload)
    } else {
        wire.packet_bytes(headers + first + mtu)
            + (packets - 2) * wire.packet_bytes(headers + mtu)
            + wire.packet_bytes(headers + last + last_payload)
    }
}

/// Payload's part of what messages of these `sizes` (bytes, and how many) take on the link, above 0 and below 1.
pub fn protocol_efficiency(
    kind: (Op, Service),
    sizes: impl IntoIterator<Item = (u64, u32)>,
    mtu_bytes: u32,
    wire: Wire,
) -> f64 {
    let (payload, wire_total) = sizes.into_iter().fold((0.0, 0.0), |sum, (size_bytes, count)| {
        let on_wire = wire_bytes(kind, size_bytes, mtu_bytes, wire);
        let messages = f64::from(count);
        (sum.0 + size_bytes as f64 * messages, sum.1 + on_wire as f64 * messages)
    });
    payload / wire_total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use results::model::Limits;

    use super::*;

    const SEND: (Op, Service) = (Op::Send, Service::Rc);

    #[test]
    fn a_full_packet_costs_82_bytes_more_than_its_payload() {
        let mtus = [256, 512, 1024, 2048, 4096];
        for (mtu, expected) in mtus.into_iter().zip([75.74, 86.20, 92.59, 96.15, 98.04]) {
            assert_eq!(wire_bytes(SEND, mtu, mtu as u32, Wire::RoceIpv4), mtu + 82);
            let percent = protocol_efficiency(SEND, [(mtu, 1)], mtu as u32, Wire::RoceIpv4) * 100.0;
            assert!((percent - expected).abs() < 0.01, "MTU {mtu}: {percent} %");
        }
    }

    fn share_of(gbit_per_s: f64, link_gbit_per_s: f64, protocol_efficiency: f64) -> Option<f64> {
        let limits = Limits { link_gbit_per_s, protocol_efficiency, ..Limits::default() };
        limits.share_of(gbit_per_s)
    }

    #[test]
    fn published_figures_of_64_kib_writes_on_100_gbit_are_just_below_the_bound() {
        for (mtu, published_gbit_per_s) in [(2048, 95.2), (4096, 97.5)] {
            let efficiency =
                protocol_efficiency((Op::Write, Service::Rc), [(65536, 1)], mtu, Wire::RoceIpv4);
            let share = share_of(published_gbit_per_s, 100.0, efficiency).unwrap();
            assert!(share <= 1.0 && share > 0.99, "MTU {mtu}: {share}");
        }
    }

    #[test]
    fn each_packet_has_its_headers() {
        use Service::{Rc, Uc, Ud};
        use Wire::{InfiniBand, InfiniBandGrh, RoceIpv4, RoceIpv6, UdpIpv4, UdpIpv6};
        for (op, service, size, mtu, wire, expected) in [
            (Op::Send, Rc, 4096, 1024, RoceIpv4, 4 * (1024 + 82)),
            (Op::Write, Rc, 4096, 1024, RoceIpv4, 4 * (1024 + 82) + 16),
            (Op::Read, Rc, 4096, 1024, RoceIpv4, 4 * (1024 + 82) + 2 * 4),
            (Op::Write, Rc, 64, 1024, RoceIpv4, 64 + 82 + 16),
            (Op::Read, Rc, 64, 1024, RoceIpv4, 64 + 82 + 4),
            (Op::Send, Uc, 1024, 1024, RoceIpv4, 1024 + 82),
            (Op::Send, Ud, 1024, 1024, RoceIpv4, 1024 + 82 + 8),
            // The last packet is padded.
            (Op::Send, Rc, 1, 1024, RoceIpv4, 4 + 82),
            (Op::Send, Rc, 1025, 1024, RoceIpv4, 1024 + 4 + 2 * 82),
            // 62 bytes of headers and check sums make a frame of 64 when nothing is in it.
            (Op::Send, Rc, 0, 1024, RoceIpv4, 64 + 20),
            (Op::Send, Rc, 2048, 2048, RoceIpv6, 2048 + 102),
            (Op::Send, Rc, 2048, 2048, InfiniBand, 2048 + 26),
            (Op::Send, Rc, 2048, 2048, InfiniBandGrh, 2048 + 66),
            (Op::Send, Rc, 2048, 2048, UdpIpv4, 2048 + 44),
            (Op::Send, Rc, 2048, 2048, UdpIpv6, 2048 + 64),
        ] {
            let bytes = wire_bytes((op, service), size, mtu, wire);
            assert_eq!(bytes, expected, "{op} {service} {size} {mtu} {wire:?}");
        }
    }

    #[test]
    fn a_link_without_speed_has_no_share() {
        assert_eq!(share_of(1.0, 0.0, 0.9), None);
    }

    proptest! {
        #[test]
        fn efficiency_is_a_part(size in 1..=u64::from(u32::MAX), mtu in 1u32..=4096) {
            let of_service = |service: &Service| service.ops().iter().map(|op| (*op, *service)).collect::<Vec<_>>();
            for (op, service) in Service::ALL.iter().flat_map(of_service) {
                for wire in [Wire::RoceIpv4, Wire::RoceIpv6, Wire::InfiniBand, Wire::InfiniBandGrh] {
                    let efficiency = protocol_efficiency((op, service), [(size, 1)], mtu, wire);
                    prop_assert!(efficiency > 0.0 && efficiency < 1.0, "{op} {service} {wire:?}: {efficiency}");
                }
            }
        }
    }
}
