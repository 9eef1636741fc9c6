//! IP networks: ports in one of them reach each other without a router.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use softroce::wire::UDP_PORT as ROCE_PORT;

/// An IP network, written `10.1.2.0/24`.
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

// Where the traffic of a session goes, as far as it affects the choice of a port.

/// The addresses of a control connection, and what the nodes have agreed on, as far as they affect the choice of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    pub local: IpAddr,
    /// Both ends are on this machine: any of its addresses reaches the other end, and only one end can have UDP port
    /// 4791 of the connection's own address.
    pub within_host: bool,
    /// The network in which the nodes have ports, once they have agreed on one.
    pub network: Option<Network>,
}

impl Route {
    /// The route of a connection between these addresses.
    pub fn between(local: IpAddr, peer: IpAddr) -> Route {
        let (local, peer) = (local.to_canonical(), peer.to_canonical());
        Route { local, within_host: local.is_loopback() || local == peer, network: None }
    }

    /// The route of connections to this address from anywhere.
    pub fn to(local: IpAddr) -> Route {
        Route::between(local, IpAddr::from([0, 0, 0, 0]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let told = found.map(|network| network.to_string());
            assert_eq!(told.as_deref(), network, "{address}/{bits}");
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
