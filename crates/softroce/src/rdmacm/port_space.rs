//! What ids are for: each port space has ports of its own.

use rdma_sys::{ibv_qp_type, rdma_port_space};

use crate::wire::cm::{TCP_PORT_SPACE, UDP_PORT_SPACE};

/// The port space of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortSpace {
    Tcp,
    Udp,
}

impl PortSpace {
    /// `None` for those that are not supported.
    pub(super) fn of(code: rdma_port_space::Type) -> Option<PortSpace> {
        match code {
            rdma_port_space::RDMA_PS_TCP => Some(PortSpace::Tcp),
            rdma_port_space::RDMA_PS_UDP => Some(PortSpace::Udp),
            _ => None,
        }
    }

    pub(super) fn code(self) -> rdma_port_space::Type {
        match self {
            PortSpace::Tcp => rdma_port_space::RDMA_PS_TCP,
            PortSpace::Udp => rdma_port_space::RDMA_PS_UDP,
        }
    }

    pub(super) fn qp_type(self) -> ibv_qp_type::Type {
        match self {
            PortSpace::Tcp => ibv_qp_type::IBV_QPT_RC,
            PortSpace::Udp => ibv_qp_type::IBV_QPT_UD,
        }
    }

    /// The number of the service at a port.
    pub(super) fn service(self, port: u16) -> u64 {
        u64::from(port)
            | match self {
                PortSpace::Tcp => TCP_PORT_SPACE,
                PortSpace::Udp => UDP_PORT_SPACE,
            }
    }
}
