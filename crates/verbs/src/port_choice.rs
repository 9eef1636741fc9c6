//! Why a port and its GID were chosen, and of what. It must not know how a port is opened.

use std::fmt;

use super::gid::GidReason;
use super::network::Network;

/// Why a port was chosen, best reason first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortReason {
    /// Its device was asked for.
    Requested,
    /// It has the address of the control connection.
    OwnAddress,
    /// It is in the network in which the nodes have ports; or, if that is an address alone, packets to the other end leave there.
    CommonNetwork(Network),
    /// It is the first of RoCE with a GID that is not link-local.
    Routable,
    /// It is the first of RoCE.
    LinkLocal,
    /// It is the first of InfiniBand.
    Infiniband,
}

impl fmt::Display for PortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PortReason::Requested => "it was requested",
            PortReason::OwnAddress => "it has the address of the control connection",
            PortReason::CommonNetwork(network) if network.only().is_some() => {
                "the route to the other end's RDMA address uses it"
            }
            PortReason::CommonNetwork(network) => {
                return write!(f, "it is in the nodes' common network {network}");
            }
            PortReason::Routable => {
                "it is the first active port with a RoCE v2 GID that is not link-local"
            }
            PortReason::LinkLocal => "it is the first active port with a RoCE v2 GID",
            PortReason::Infiniband => "it is the first active port, and none is RoCE",
        })
    }
}

/// How a port was chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct PortChoice {
    pub reason: PortReason,
    pub gid_reason: GidReason,
    /// The other ports that could have been chosen: the device, and its port where it has several.
    pub others: Vec<String>,
    /// The networks of the RoCE v2 GIDs that may be chosen, that of the chosen one first. An address that no interface of this
    /// namespace has is of an unknown one, and link-local and loopback addresses are of none.
    pub networks: Vec<Network>,
}

/// Names in a sentence; the rest are counted.
const MOST_NAMED: usize = 6;

impl PortChoice {
    /// The reason, and the ports that were not chosen.
    pub fn sentence(&self) -> String {
        let mut text = self.reason.to_string();
        if let [first, rest @ ..] = &self.others[..] {
            text += &format!("; not {first}");
            for name in rest.iter().take(MOST_NAMED - 1) {
                text += &format!(", {name}");
            }
            if self.others.len() > MOST_NAMED {
                text += &format!(" and {} more", self.others.len() - MOST_NAMED);
            }
        }
        text
    }
}
