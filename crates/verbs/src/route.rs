//! Where the traffic of a session goes, as far as it affects the choice of a port. It must not know devices.

use std::net::IpAddr;

use super::network::Network;

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
