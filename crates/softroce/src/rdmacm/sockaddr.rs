//! Addresses in the form of the C library.

use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

/// The address behind a pointer; `None` for null and for another family.
///
/// # Safety
/// `address` is null or points to a whole address of its family.
pub(super) unsafe fn read(address: *const sockaddr) -> Option<SocketAddr> {
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
pub(super) fn write(address: SocketAddr) -> sockaddr_storage {
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
            let storage = write(address);
            // SAFETY: a whole storage.
            let read = unsafe { read((&raw const storage).cast()) };
            assert_eq!(read, Some(address));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(std::ptr::null()) }, None);
    }
}
