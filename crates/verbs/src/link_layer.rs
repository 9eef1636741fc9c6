//! What a port's links are.

use rdma_sys::ibv_port_attr;

/// The link layer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    Ethernet,
    Infiniband,
}

impl LinkLayer {
    /// That of a port. 0, unspecified, is an old InfiniBand driver.
    pub(super) fn of(attr: &ibv_port_attr) -> LinkLayer {
        // IBV_LINK_LAYER_ETHERNET of verbs.h.
        match attr.link_layer {
            2 => LinkLayer::Ethernet,
            _ => LinkLayer::Infiniband,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            LinkLayer::Ethernet => "Ethernet",
            LinkLayer::Infiniband => "InfiniBand",
        }
    }
}
