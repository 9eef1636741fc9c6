//! GIDs: 128-bit addresses of ports, in the notation of an IPv6 address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use super::network::Network;

/// A GID, in network byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gid(pub [u8; 16]);

/// The packet format of a GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidType {
    Infiniband,
    /// RoCE v1: Ethernet with its own ethertype, not routable.
    RoceV1,
    /// RoCE v2: UDP port 4791.
    RoceV2,
}

/// An entry of a port's GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// Its index in the table.
    pub index: u8,
    pub gid: Gid,
    pub gid_type: GidType,
    /// Index of the network interface below it, perhaps of another network namespace.
    pub interface: Option<NonZeroU32>,
}

impl GidEntry {
    /// Whether it is an IP address, which RoCE v2 needs.
    pub(super) fn is_usable(&self) -> bool {
        self.gid_type == GidType::RoceV2 && !self.gid.is_zero()
    }
}

impl Gid {
    /// The IP address of a RoCE v2 GID; an IPv4 address if it is IPv4-mapped.
    pub fn address(&self) -> IpAddr {
        let v6 = Ipv6Addr::from(self.0);
        match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(v6),
        }
    }

    /// The RoCE v2 GID of an IP address.
    pub fn from_address(address: IpAddr) -> Gid {
        match address {
            IpAddr::V4(v4) => Gid(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Gid(v6.octets()),
        }
    }

    /// Whether all bytes are zero.
    pub fn is_zero(&self) -> bool {
        self.0 == [0; 16]
    }

    /// Whether it is in fe80::/10, which only neighbours on the same link can reach.
    pub fn is_link_local(&self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }

    /// Parses the notation without IPv4 shortcuts, as tools and sysfs print it.
    pub fn parse(text: &str) -> Option<Gid> {
        text.parse::<Ipv6Addr>().ok().map(|v6| Gid(v6.octets()))
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl GidType {
    /// The name in results and messages.
    pub fn name(self) -> &'static str {
        match self {
            GidType::Infiniband => "IB",
            GidType::RoceV1 => "RoCE v1",
            GidType::RoceV2 => "RoCE v2",
        }
    }
}

impl fmt::Display for GidEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.index, self.gid, self.gid_type.name())
    }
}

/// Why an entry was chosen, best reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidReason {
    /// Its index was asked for.
    Requested,
    /// It has the address of the control connection.
    OwnAddress,
    /// It is the first in the network in which the nodes have ports.
    CommonNetwork,
    /// The route to the other end has its address.
    OwnRoute,
    /// It is the first of IPv4, as the control connection is.
    Ipv4,
    /// It is the first of IPv6, as the control connection is, that is not link-local.
    Ipv6,
    /// It is the first that is not link-local.
    NotLinkLocal,
    /// There are only link-local ones.
    OnlyLinkLocal,
    /// It is the first of an InfiniBand port.
    Infiniband,
}

impl fmt::Display for GidReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GidReason::Requested => "it was requested",
            GidReason::OwnAddress => "it has the address of the control connection",
            GidReason::OwnRoute => "it has the address of that route",
            GidReason::CommonNetwork => "it is in the nodes' common network",
            GidReason::Ipv4 => "it is the first RoCE v2 GID with an IPv4 address",
            GidReason::Ipv6 => {
                "it is the first RoCE v2 GID with an IPv6 address that is not link-local"
            }
            GidReason::NotLinkLocal => "it is the first RoCE v2 GID that is not link-local",
            GidReason::OnlyLinkLocal => "it is the first RoCE v2 GID, and all are link-local",
            GidReason::Infiniband => "it is the first, and InfiniBand needs none",
        })
    }
}

/// The RoCE v2 entry for a connection from `local`, and why: that with this address; else in `network`; else of the
/// connection's family and not link-local; else any that is not link-local; else any.
pub(super) fn choose_gid(
    table: &[GidEntry],
    local: Option<IpAddr>,
    network: Option<Network>,
) -> Option<(GidEntry, GidReason)> {
    let first = |fits: &dyn Fn(&GidEntry) -> bool| {
        table.iter().find(|entry| entry.is_usable() && fits(entry)).copied()
    };
    let address = |entry: &GidEntry| entry.gid.address();
    let within = |network: Network| first(&|entry| network.contains(address(entry)));
    let of_family = |local: IpAddr| {
        let v4 = local.is_ipv4();
        let entry = first(&|entry| address(entry).is_ipv4() == v4 && !entry.gid.is_link_local())?;
        Some((entry, if v4 { GidReason::Ipv4 } else { GidReason::Ipv6 }))
    };
    let because = |reason| move |entry| (entry, reason);
    (local
        .and_then(|wanted| first(&|entry| address(entry) == wanted))
        .map(because(GidReason::OwnAddress)))
    .or_else(|| {
        let reason = match network?.only() {
            Some(_) => GidReason::OwnRoute,
            None => GidReason::CommonNetwork,
        };
        Some((within(network?)?, reason))
    })
    .or_else(|| of_family(local?))
    .or_else(|| first(&|it| !it.gid.is_link_local()).map(because(GidReason::NotLinkLocal)))
    .or_else(|| first(&|_| true).map(because(GidReason::OnlyLinkLocal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u8, gid: &str, gid_type: GidType) -> GidEntry {
        GidEntry { index, gid: Gid::parse(gid).unwrap(), gid_type, interface: None }
    }

    fn table() -> Vec<GidEntry> {
        vec![
            entry(0, "fe80::1", GidType::RoceV1),
            entry(1, "fe80::1", GidType::RoceV2),
            entry(2, "::ffff:10.0.0.5", GidType::RoceV1),
            entry(3, "::ffff:10.0.0.5", GidType::RoceV2),
            entry(4, "2001:db8::5", GidType::RoceV2),
            entry(5, "::ffff:10.1.0.5", GidType::RoceV2),
        ]
    }

    #[test]
    fn the_own_address_wins_then_the_network_then_the_family_and_link_local_is_the_last_resort() {
        use GidReason::{CommonNetwork, Ipv4, Ipv6, NotLinkLocal, OnlyLinkLocal, OwnAddress};
        for (entries, local, network, chosen) in [
            (6, Some("10.1.0.5"), None, Some((5, OwnAddress))),
            (6, Some("10.0.0.5"), Some("10.1.0.0/24"), Some((3, OwnAddress))),
            (6, Some("192.0.2.9"), Some("10.1.0.0/24"), Some((5, CommonNetwork))),
            (6, None, Some("2001:db8::/64"), Some((4, CommonNetwork))),
            (6, Some("192.0.2.9"), Some("10.9.0.0/24"), Some((3, Ipv4))),
            (6, Some("127.0.0.1"), None, Some((3, Ipv4))),
            (6, Some("::1"), None, Some((4, Ipv6))),
            (6, None, None, Some((3, NotLinkLocal))),
            (2, Some("127.0.0.1"), None, Some((1, OnlyLinkLocal))),
            (2, None, None, Some((1, OnlyLinkLocal))),
            // Never RoCE v1.
            (1, None, None, None),
        ] {
            let local = local.map(|text| text.parse().unwrap());
            let network = network.map(|text| text.parse().unwrap());
            let found = choose_gid(&table()[..entries], local, network)
                .map(|(entry, reason)| (entry.index, reason));
            assert_eq!(found, chosen, "{local:?}, {network:?} of {entries}");
        }
    }

    #[test]
    fn addresses_and_gids_convert_both_ways() {
        for (text, gid) in [("10.2.3.4", "::ffff:10.2.3.4"), ("2001:db8::7", "2001:db8::7")] {
            let address: IpAddr = text.parse().unwrap();
            let made = Gid::from_address(address);
            assert_eq!((made.address(), made.to_string().as_str()), (address, gid));
        }
    }
}
