//! Addresses for rdma_cm: an IP address, its interface if it needs one, a port number.

use std::mem::{size_of, zeroed};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::{Gid, GidEntry, sysfs};

/// The address of a RoCE port, which is that of its GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmAddress(SocketAddr);

impl CmAddress {
    /// The address of a local port's GID; the kernel's files of the device are below `root`.
    pub fn local(root: &Path, device: &str, port: u8, entry: &GidEntry) -> CmAddress {
        let interface = interface(root, device, port, entry.index);
        CmAddress::new(entry.gid, interface.unwrap_or(0))
    }

    /// The address of a peer's GID with a port number. A link-local address uses this address's interface.
    pub fn peer(&self, gid: Gid, port: u16) -> CmAddress {
        let scope = match self.0 {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let mut peer = CmAddress::new(gid, scope);
        peer.0.set_port(port);
        peer
    }

    fn new(gid: Gid, scope: u32) -> CmAddress {
        let mut address = SocketAddr::new(gid.address(), 0);
        if let (SocketAddr::V6(v6), true) = (&mut address, gid.is_link_local()) {
            v6.set_scope_id(scope);
        }
        CmAddress(address)
    }

    pub fn ip(&self) -> IpAddr {
        self.0.ip()
    }

    /// In the form of the C library.
    pub(super) fn to_storage(self) -> libc::sockaddr_storage {
        // SAFETY: plain data, for which zero is valid.
        let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
        let start = std::ptr::addr_of_mut!(storage);
        const { assert!(size_of::<libc::sockaddr_in6>() <= size_of::<libc::sockaddr_storage>()) };
        // SAFETY: a storage has room for, and the alignment of, every kind of address.
        unsafe {
            match self.0 {
                SocketAddr::V4(v4) => {
                    let to = &mut *start.cast::<libc::sockaddr_in>();
                    to.sin_family = libc::AF_INET as libc::sa_family_t;
                    to.sin_port = v4.port().to_be();
                    to.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                }
                SocketAddr::V6(v6) => {
                    let to = &mut *start.cast::<libc::sockaddr_in6>();
                    to.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                    to.sin6_port = v6.port().to_be();
                    to.sin6_addr.s6_addr = v6.ip().octets();
                    to.sin6_scope_id = v6.scope_id();
                }
            }
        }
        storage
    }
}

impl std::fmt::Display for CmAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.port() {
            0 => self.0.ip().fmt(f),
            _ => self.0.fmt(f),
        }
    }
}

/// Index of the network interface of a GID.
fn interface(root: &Path, device: &str, port: u8, gid_index: u8) -> Option<u32> {
    let netdev = sysfs::netdev(&sysfs::port(root, device, port), gid_index)?;
    sysfs::interface_index(root, &netdev)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GidType;

    fn entry(text: &str) -> GidEntry {
        GidEntry {
            index: 1,
            gid: Gid::parse(text).unwrap(),
            gid_type: GidType::RoceV2,
            interface: None,
        }
    }

    #[test]
    fn ipv4_goes_as_ipv4_with_its_port() {
        let local = CmAddress::local(Path::new("/"), "none", 1, &entry("::ffff:10.0.0.2"));
        let peer = local.peer(Gid::parse("::ffff:10.0.0.9").unwrap(), 7471);
        let shown = [&local, &peer].map(ToString::to_string);
        assert_eq!(shown, ["10.0.0.2", "10.0.0.9:7471"]);
        let storage = peer.to_storage();
        assert_eq!(i32::from(storage.ss_family), libc::AF_INET);
        // SAFETY: the family says that this is what it holds.
        let v4 = unsafe { &*std::ptr::addr_of!(storage).cast::<libc::sockaddr_in>() };
        assert_eq!(v4.sin_addr.s_addr.to_ne_bytes(), [10, 0, 0, 9]);
        assert_eq!(u16::from_be(v4.sin_port), 7471);
    }

    #[test]
    fn only_link_local_peers_are_on_an_interface() {
        let mut local = CmAddress::new(Gid::parse("fe80::2").unwrap(), 7);
        let scope = |address: CmAddress| match address.0 {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => panic!("IPv6"),
        };
        assert_eq!(scope(local.peer(Gid::parse("fe80::9").unwrap(), 1)), 7);
        assert_eq!(scope(local.peer(Gid::parse("fd00::9").unwrap(), 1)), 0);
        local = CmAddress::new(Gid::parse("fd00::2").unwrap(), 7);
        assert_eq!(scope(local), 0);
    }
}
