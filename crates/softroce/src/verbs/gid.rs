//! Converts addresses to GIDs and back (RoCE v2: the GID is the IP address, IPv4 mapped into IPv6), and the address
//! vectors of verbs structs to the form of the transport.

use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::os::raw::c_int;

use rdma_sys::{ibv_ah_attr, ibv_gid};

use crate::wire::{UDP_PORT, as_ipv6};

/// The GID type of RoCE v2 (`IBV_GID_TYPE_ROCE_V2`).
pub(super) const TYPE_ROCE_V2: u32 = 2;
/// The only port, and the only GID of its table.
pub(crate) const PORT: u8 = 1;
pub(crate) const INDEX: u8 = 0;

/// Any free local port, for a socket that only looks up a route.
const ANY_PORT: u16 = 0;
const FLOW_LABEL_BITS: u32 = 0x000f_ffff;

/// The GID of an address.
pub(crate) fn of_address(address: IpAddr) -> ibv_gid {
    ibv_gid { raw: as_ipv6(address).octets() }
}

/// The address of a GID.
pub(super) fn address_of(gid: ibv_gid) -> IpAddr {
    // SAFETY: both members of the union are the same 16 bytes.
    let raw = Ipv6Addr::from(unsafe { gid.raw });
    raw.to_canonical()
}

/// The destination of an address handle or a connected QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) address: IpAddr,
    pub(super) flow_label: u32,
    pub(super) traffic_class: u8,
    pub(super) hop_limit: u8,
}

/// An address vector to an address, without a limit of hops.
pub(crate) fn path_to(address: IpAddr) -> ibv_ah_attr {
    // SAFETY: integers and arrays of them: zero is a value of each.
    let mut path: ibv_ah_attr = unsafe { std::mem::zeroed() };
    path.is_global = 1;
    path.port_num = PORT;
    path.grh.dgid = of_address(address);
    path.grh.sgid_index = INDEX;
    path
}

/// Parses an address vector. EINVAL for another port or GID index, without a global route, and for a GID that is not
/// of a single host. ETIMEDOUT, Linux' error for an address that does not resolve, if no packet from `local` can
/// reach it.
pub(super) fn destination(path: &ibv_ah_attr, local: IpAddr) -> Result<Destination, c_int> {
    let grh = &path.grh;
    if path.is_global == 0 || path.port_num != PORT || grh.sgid_index != INDEX {
        return Err(libc::EINVAL);
    }
    let address = address_of(grh.dgid);
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    if address.is_unspecified() || address.is_multicast() || broadcast {
        return Err(libc::EINVAL);
    }
    if address.is_ipv4() != local.is_ipv4() || !routable(local, address) {
        return Err(libc::ETIMEDOUT);
    }
    Ok(Destination {
        address,
        flow_label: grh.flow_label & FLOW_LABEL_BITS,
        traffic_class: grh.traffic_class,
        hop_limit: grh.hop_limit,
    })
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Whether the system has a route. A link-local address is accepted unchecked, because its interface is not known
/// here.
fn routable(local: IpAddr, peer: IpAddr) -> bool {
    is_link_local(local)
        || is_link_local(peer)
        || UdpSocket::bind((local, ANY_PORT))
            .and_then(|socket| socket.connect((peer, UDP_PORT)))
            .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(to: &str) -> ibv_ah_attr {
        path_to(to.parse().unwrap())
    }

    #[test]
    fn gids_are_addresses() {
        let v4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 127, 1, 2, 3];
        let v6 = [253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
        for (address, gid) in [("127.1.2.3", v4), ("fd00::2", v6)] {
            let address = address.parse().unwrap();
            let made = of_address(address);
            // SAFETY: both members of the union are the same 16 bytes.
            assert_eq!(unsafe { made.raw }, gid);
            assert_eq!(address_of(made), address);
        }
    }

    #[test]
    fn impossible_destinations_are_refused() {
        type Change = fn(&mut ibv_ah_attr);
        let keep: Change = |_| {};
        let cases: [(&str, Change, i32); 8] = [
            ("::", keep, libc::EINVAL),
            ("0.0.0.0", keep, libc::EINVAL),
            ("224.0.0.1", keep, libc::EINVAL),
            ("fd00::2", keep, libc::ETIMEDOUT),
            // A packet with a loopback address does not leave the host.
            ("192.0.2.200", keep, libc::ETIMEDOUT),
            ("127.0.0.2", |path| path.is_global = 0, libc::EINVAL),
            ("127.0.0.2", |path| path.port_num = 2, libc::EINVAL),
            ("127.0.0.2", |path| path.grh.sgid_index = 1, libc::EINVAL),
        ];
        for (number, (to, change, expected)) in cases.into_iter().enumerate() {
            let mut path = path(to);
            change(&mut path);
            let refused = destination(&path, "127.0.0.1".parse().unwrap()).err();
            assert_eq!(refused, Some(expected), "case {number}");
        }
    }

    #[test]
    fn a_route_is_taken_over() {
        let mut path = path("127.0.0.9");
        path.grh.traffic_class = 0x68;
        path.grh.hop_limit = 3;
        path.grh.flow_label = 0xfff1_2345;
        let destination = destination(&path, "127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(destination.address, "127.0.0.9".parse::<IpAddr>().unwrap());
        let class = (destination.traffic_class, destination.hop_limit);
        assert_eq!((class, destination.flow_label), ((0x68, 3), 0x12345));
    }
}
