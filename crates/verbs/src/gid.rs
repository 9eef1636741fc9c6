//! GIDs, the 128-bit addresses of ports in the notation of an IPv6 address, and the IP networks in which RoCE v2 has them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use softroce::wire::UDP_PORT as ROCE_PORT;

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
    let mut usable = table.iter().copied().filter(GidEntry::is_usable);
    let mut routable = usable.clone().filter(|entry| !entry.gid.is_link_local());
    if let Some(local) = local
        && let Some(entry) = usable.clone().find(|entry| entry.gid.address() == local)
    {
        return Some((entry, GidReason::OwnAddress));
    }
    if let Some(network) = network
        && let Some(entry) = usable.clone().find(|entry| network.contains(entry.gid.address()))
    {
        let is_route = network.only().is_some();
        let reason = if is_route { GidReason::OwnRoute } else { GidReason::CommonNetwork };
        return Some((entry, reason));
    }
    if let Some(local) = local
        && let v4 = local.is_ipv4()
        && let Some(entry) = routable.clone().find(|entry| entry.gid.address().is_ipv4() == v4)
    {
        return Some((entry, if v4 { GidReason::Ipv4 } else { GidReason::Ipv6 }));
    }
    match routable.next() {
        Some(entry) => Some((entry, GidReason::NotLinkLocal)),
        None => Some((usable.next()?, GidReason::OnlyLinkLocal)),
    }
}

/// An IP network, written `10.1.2.0/24`: ports in it reach each other without a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    first: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// The network of an address with a prefix of so many bits; `None` if the address has fewer.
    pub fn from_address(address: IpAddr, prefix_bits: u8) -> Option<Network> {
        let first = match address.to_canonical() {
            IpAddr::V4(v4) => {
                let host_bits = 32u32.checked_sub(prefix_bits.into())?;
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
            }
            IpAddr::V6(v6) => {
                let host_bits = 128u32.checked_sub(prefix_bits.into())?;
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
            }
        };
        Some(Network { first, prefix_bits })
    }

    /// The network of this address alone.
    pub fn alone(address: IpAddr) -> Network {
        let first = address.to_canonical();
        let prefix_bits = if first.is_ipv4() { 32 } else { 128 };
        Network { first, prefix_bits }
    }

    /// The only address that it has; `None` if it has several.
    pub fn only(&self) -> Option<IpAddr> {
        Some(self.first).filter(|first| Network::alone(*first) == *self)
    }

    /// Whether it has this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4()
            && Network::from_address(address, self.prefix_bits) == Some(*self)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix_bits)
    }
}

impl FromStr for Network {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Network, Self::Err> {
        text.split_once('/')
            .and_then(|(address, bits)| {
                Network::from_address(address.parse().ok()?, bits.parse().ok()?)
            })
            .ok_or("not an IP network such as 10.1.2.0/24")
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

impl TryFrom<String> for Network {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Network, Self::Error> {
        text.parse()
    }
}

/// This machine's address on the kernel's route to another one; `None` without a route.
pub fn source_of_this_machine(to: IpAddr) -> Option<IpAddr> {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Connecting sends nothing; it looks the route up.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, ROCE_PORT)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The addresses of this machine's interfaces with the bits of their prefixes; none if the system does not report them.
pub fn prefixes_of_this_machine() -> Vec<(IpAddr, u8)> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    interfaces
        .into_iter()
        .map(|interface| match interface.addr {
            if_addrs::IfAddr::V4(it) => (IpAddr::V4(it.ip), it.prefixlen),
            if_addrs::IfAddr::V6(it) => (IpAddr::V6(it.ip), it.prefixlen),
        })
        .collect()
}

/// The addresses of a control connection, and what the nodes have agreed on, as far as they affect the choice of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub local: IpAddr,
    /// The other end's address; `None` if it may be any.
    pub peer: Option<IpAddr>,
    /// The network in which the nodes have ports, once they have agreed on one.
    pub network: Option<Network>,
}

impl Route {
    /// The route of a connection between these addresses.
    pub fn between(local: IpAddr, peer: IpAddr) -> Route {
        Route { peer: Some(peer.to_canonical()), ..Route::to(local) }
    }

    /// The route of connections to this address from anywhere.
    pub fn to(local: IpAddr) -> Route {
        Route { local: local.to_canonical(), peer: None, network: None }
    }

    /// Whether both ends are on this machine: any of its addresses reaches the other end, and only one end can have UDP
    /// port 4791 of the connection's own address.
    pub(super) fn is_within_host(&self) -> bool {
        self.local.is_loopback() || self.peer == Some(self.local)
    }
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

    #[test]
    fn an_address_belongs_to_the_network_of_its_prefix() {
        for (address, bits, network) in [
            ("10.1.2.3", 24, Some("10.1.2.0/24")),
            ("10.1.2.3", 31, Some("10.1.2.2/31")),
            ("10.1.2.3", 0, Some("0.0.0.0/0")),
            ("::ffff:10.1.2.3", 24, Some("10.1.2.0/24")),
            ("fd00:1::7", 64, Some("fd00:1::/64")),
            ("fd00:1::7", 128, Some("fd00:1::7/128")),
            ("10.1.2.3", 33, None),
            ("fd00::7", 129, None),
        ] {
            let found = Network::from_address(address.parse().unwrap(), bits);
            let written = found.as_ref().map(ToString::to_string);
            assert_eq!(written.as_deref(), network, "{address}/{bits}");
            let read = network.map(|text| text.parse().unwrap());
            assert_eq!(read, found);
        }
        assert!("10.1.2.0".parse::<Network>().is_err());
        let address = "10.1.2.3".parse().unwrap();
        assert_eq!(Network::alone(address).only(), Some(address));
        assert_eq!(Network::from_address(address, 31).unwrap().only(), None);
    }

    #[test]
    fn a_network_has_addresses_of_its_family_alone() {
        let has = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap();
            network.contains(address.parse().unwrap())
        };
        assert!(has("10.1.2.0/24", "10.1.2.255") && !has("10.1.2.0/24", "10.1.3.0"));
        assert!(has("::/0", "fd00::1") && !has("::/0", "10.1.2.3"));
    }

    #[test]
    fn this_machine_has_loopback_and_a_route_to_it() {
        let loopback = (IpAddr::from([127, 0, 0, 1]), 8);
        assert!(prefixes_of_this_machine().contains(&loopback));
        let there = IpAddr::from([127, 0, 0, 9]);
        assert_eq!(source_of_this_machine(there), Some(loopback.0));
    }
}
