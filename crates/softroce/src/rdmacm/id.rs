//! The objects behind the pointers to ids that programs hold.
//!
//! Each has a port space, which says what it is for, with ports of its own; and addresses in the form of the C library.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};
use provider::{Acks, Behind, Lock};
use rdma_sys::{
    ibv_qp_init_attr, ibv_qp_type, ibv_sa_path_rec, rdma_cm_id, rdma_event_channel, rdma_port_space,
};

use crate::wire::cm::{TCP_PORT_SPACE, UDP_PORT_SPACE};

/// The data of an id.
pub(super) struct Id {
    /// Its number in the state.
    pub(super) key: u64,
    pub(super) space: PortSpace,
    pub(super) acks: Arc<Acks>,
    own: Lock<Own>,
}

/// What belongs to the id besides what the program sees.
#[derive(Default)]
pub(super) struct Own {
    /// The id has a channel of its own, and calls on it wait for their event.
    pub(super) sync: bool,
    /// For the QPs of requests, of an endpoint that listens.
    pub(super) qp_init: Option<ibv_qp_init_attr>,
    pub(super) path: Option<Box<ibv_sa_path_rec>>,
}

// SAFETY: the pointers in the attributes are the program's; they are only handed back to it.
unsafe impl Send for Own {}

impl Behind<rdma_cm_id> for Id {}

impl Id {
    /// A new id without a device.
    pub(super) fn create(
        key: u64,
        channel: *mut rdma_event_channel,
        space: PortSpace,
    ) -> *mut rdma_cm_id {
        // SAFETY: pointers, integers and addresses, for all of which zero is a value.
        let mut verbs: rdma_cm_id = unsafe { std::mem::zeroed() };
        verbs.channel = channel;
        verbs.ps = space.code();
        verbs.qp_type = space.qp_type();
        let inner = Id { key, space, acks: Arc::default(), own: Lock::default() };
        inner.lend(verbs)
    }

    /// Changes what belongs to it.
    pub(super) fn own<R>(&self, change: impl FnOnce(&mut Own) -> R) -> R {
        change(&mut self.own.lock())
    }

    /// Whether calls on it wait for their event.
    pub(super) fn is_sync(&self) -> bool {
        self.own(|own| own.sync)
    }
}

/// The port space of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PortSpace {
    Tcp,
    Udp,
}

impl PortSpace {
    /// `None` for those that are not supported.
    pub(super) fn from_code(code: rdma_port_space::Type) -> Option<PortSpace> {
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

/// The address behind a pointer; `None` for null and for another family.
///
/// # Safety
/// `address` is null or points to a whole address of its family.
pub(super) unsafe fn read_address(address: *const sockaddr) -> Option<SocketAddr> {
    // SAFETY: null, or at least a family; then as large as the family says.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            AF_INET => {
                let v4 = address.cast::<sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Some((ip, u16::from_be(v4.sin_port)).into())
            }
            AF_INET6 => {
                let v6 = address.cast::<sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Some((ip.to_canonical(), u16::from_be(v6.sin6_port)).into())
            }
            _ => None,
        }
    }
}

/// The address as C has it.
pub(super) fn written_address(address: SocketAddr) -> sockaddr_storage {
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    const {
        assert!(size_of::<sockaddr_in6>() <= size_of::<sockaddr_storage>());
    }
    let start = &raw mut storage;
    // SAFETY: a storage has room and alignment for every family, and is zeroed, a value of each.
    unsafe {
        match address {
            SocketAddr::V4(v4) => {
                let to = &mut *start.cast::<sockaddr_in>();
                to.sin_family = AF_INET as sa_family_t;
                to.sin_port = v4.port().to_be();
                to.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                let to = &mut *start.cast::<sockaddr_in6>();
                to.sin6_family = AF_INET6 as sa_family_t;
                to.sin6_port = v6.port().to_be();
                to.sin6_addr.s6_addr = v6.ip().octets();
            }
        }
    }
    storage
}

/// The unspecified address of a family.
pub(super) fn any_like(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["10.1.2.3:7471", "[fd00::9]:1"] {
            let address: SocketAddr = text.parse().unwrap();
            let storage = written_address(address);
            // SAFETY: a whole storage.
            let read = unsafe { read_address((&raw const storage).cast()) };
            assert_eq!(read, Some(address));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read_address(std::ptr::null()) }, None);
    }
}
