//! Converts addresses to GIDs and back (RoCE v2: the GID is the IP address, IPv4 mapped into IPv6), and the address
//! vectors of verbs structs to the form of the transport.
//!
//! The table is as that of Linux' Soft-RoCE, since programs have its indices built in: first the link-local GID of the
//! port's EUI-64, then that of the address. Soft-RoCE sends from each; here all packets are the address's, so the EUI-64 of an
//! IPv4 address contains it, and both GIDs lead there. That of an IPv6 address has no room for it: both are the address.
//!
//! Address handles are the destinations of datagrams; here are those that are made from a datagram's completion.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::raw::c_int;

use provider::verbs::create_ah;
use provider::{minus_one_or_zero, pointer_or_errno};
use rdma_sys::{ibv_ah, ibv_ah_attr, ibv_context, ibv_gid, ibv_grh, ibv_pd, ibv_wc, ibv_wc_flags};

use super::device::guid;
use crate::wire::{UDP_PORT, as_ipv6};

/// The GID type of RoCE v2 (`IBV_GID_TYPE_ROCE_V2`).
pub(super) const TYPE_ROCE_V2: u32 = 2;
/// The only port.
pub(crate) const PORT: u8 = 1;
/// Where the table has the GID of the address.
pub(crate) const INDEX: u8 = 1;
/// Entries of the table.
pub(super) const TABLE_LENGTH: u8 = 2;

/// Any free local port, for a socket that only looks up a route.
const ANY_PORT: u16 = 0;
const FLOW_LABEL_BITS: u32 = 0x000f_ffff;

/// The GID of an address.
pub(crate) fn of_address(address: IpAddr) -> ibv_gid {
    ibv_gid { raw: as_ipv6(address).octets() }
}

const LINK_LOCAL: u128 = 0xfe80 << 112;
/// Inverted in an interface identifier (RFC 4291, appendix A).
const UNIVERSAL: u64 = 0x0200_0000_0000_0000;

/// The entry of a device's table.
pub(super) fn entry(own: IpAddr, index: u32) -> Option<ibv_gid> {
    match (index, own) {
        (0, IpAddr::V4(_)) => {
            let identifier = guid(Some(own)) ^ UNIVERSAL;
            Some(ibv_gid { raw: (LINK_LOCAL | u128::from(identifier)).to_be_bytes() })
        }
        (0..=1, _) => Some(of_address(own)),
        _ => None,
    }
}

/// The address of a GID, as a device at `local` reads it.
pub(super) fn address_of(gid: ibv_gid, local: IpAddr) -> IpAddr {
    // SAFETY: both members of the union are the same 16 bytes.
    let raw = Ipv6Addr::from(unsafe { gid.raw });
    let behind = Ipv4Addr::from(u128::from(raw) as u32);
    // SAFETY: as above.
    let contains = entry(behind.into(), 0).is_some_and(|own| unsafe { own.raw } == raw.octets());
    // With 254 the EUI-64 is of a MAC, by ff:fe in its middle.
    if local.is_ipv4() && contains && behind.octets()[0] != 0xfe {
        behind.into()
    } else {
        raw.to_canonical()
    }
}

/// The destination of an address handle or a connected QP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
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
    if path.is_global == 0 || path.port_num != PORT || grh.sgid_index >= TABLE_LENGTH {
        return Err(libc::EINVAL);
    }
    let address = address_of(grh.dgid, local);
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

/// Bytes of the global header before a datagram's payload.
const GRH_BYTES: usize = 40;
/// Offset of an IPv4 header in it.
const IPV4_OFFSET: usize = 20;

/// The sender of a datagram, its traffic class and flow label, from the 40 bytes before it: an IPv6 header, or 20
/// unused bytes and an IPv4 header.
fn sender(header: &[u8; GRH_BYTES]) -> Option<(IpAddr, u8, u32)> {
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    if header[IPV4_OFFSET] == 0x45 && header[0] >> 4 != 6 {
        let address = Ipv4Addr::from(word(IPV4_OFFSET + 12));
        return Some((address.into(), header[IPV4_OFFSET + 1], 0));
    }
    if header[0] >> 4 != 6 {
        return None;
    }
    let mut address = [0; 16];
    address.copy_from_slice(&header[8..24]);
    let first = word(0);
    let flow_label = first & 0x000f_ffff;
    Some((IpAddr::from(address), (first >> 20) as u8, flow_label))
}

/// The address vector for an answer to a datagram. EINVAL if its completion has no global header.
fn way_back(port: u8, wc: &ibv_wc, header: &[u8; GRH_BYTES]) -> Result<ibv_ah_attr, c_int> {
    const LONGEST_WAY: u8 = 0xff;
    if port != PORT || wc.wc_flags & ibv_wc_flags::IBV_WC_GRH.0 == 0 {
        return Err(libc::EINVAL);
    }
    let (address, traffic_class, flow_label) = sender(header).ok_or(libc::EINVAL)?;
    let mut attr = path_to(address);
    attr.sl = wc.sl;
    attr.grh.traffic_class = traffic_class;
    attr.grh.flow_label = flow_label;
    attr.grh.hop_limit = LONGEST_WAY;
    Ok(attr)
}

/// `ibv_init_ah_from_wc(3)`: -1 and `errno` for a completion without a global header.
///
/// # Safety
/// As for libibverbs: `grh` is the start of the buffer that the datagram was received in.
pub unsafe extern "C" fn init_ah_from_wc(
    _context: *mut ibv_context,
    port: u8,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    attr: *mut ibv_ah_attr,
) -> c_int {
    // SAFETY: a completion, 40 bytes and a writable struct.
    minus_one_or_zero(unsafe { way_back(port, &*wc, &*grh.cast()).map(|way| attr.write(way)) })
}

/// `ibv_create_ah_from_wc(3)`.
///
/// # Safety
/// As for [`init_ah_from_wc`].
pub unsafe extern "C" fn create_ah_from_wc(
    pd: *mut ibv_pd,
    wc: *mut ibv_wc,
    grh: *mut ibv_grh,
    port: u8,
) -> *mut ibv_ah {
    // SAFETY: a completion and 40 bytes; a live domain.
    unsafe {
        match way_back(port, &*wc, &*grh.cast()) {
            Ok(mut way) => create_ah(pd, &raw mut way),
            Err(error) => pointer_or_errno(Err(error)),
        }
    }
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
            assert_eq!(address_of(made, address), address);
        }
    }

    #[test]
    fn both_gids_of_a_table_lead_to_the_address() {
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let tables = [
            ("127.1.2.3", ["fe80::ff:7f01:203", "::ffff:127.1.2.3"]),
            ("192.0.2.7", ["fe80::ff:c000:207", "::ffff:192.0.2.7"]),
            ("fd00::2", ["fd00::2"; 2]),
        ];
        for (own, gids) in tables {
            for (index, gid) in (0..).zip(gids) {
                let told = entry(of(own), index).unwrap();
                // SAFETY: both members of the union are the same 16 bytes.
                assert_eq!(unsafe { told.raw }, gid.parse::<Ipv6Addr>().unwrap().octets());
                assert_eq!(address_of(told, of(own)), of(own));
                let mut path = path_to(of(own));
                (path.grh.dgid, path.grh.sgid_index) = (told, index as u8);
                if own.starts_with("127") {
                    assert_eq!(destination(&path, of("127.0.0.1")).unwrap().address, of(own));
                }
            }
            assert!(entry(of(own), 2).is_none());
        }
        // Soft-RoCE's of a MAC, and one that a person gave to another device.
        for (gid, local) in [("fe80::ff:fe00:1", "10.0.0.1"), ("fe80::ff:7f01:203", "fe80::9")] {
            let foreign = of_address(of(gid));
            assert_eq!(address_of(foreign, of(local)), of(gid));
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
            ("127.0.0.2", |path| path.grh.sgid_index = 2, libc::EINVAL),
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

    fn completion(flags: u32) -> ibv_wc {
        // SAFETY: integers, for which zero is a value.
        let mut wc: ibv_wc = unsafe { std::mem::zeroed() };
        wc.wc_flags = flags;
        wc
    }

    #[test]
    fn answers_go_where_the_datagram_came_from() {
        let mut ipv4 = [0; GRH_BYTES];
        ipv4[20] = 0x45;
        ipv4[21] = 0x20;
        ipv4[32..36].copy_from_slice(&[127, 3, 2, 1]);
        let way = way_back(1, &completion(1), &ipv4).unwrap();
        let back = destination(&way, "127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(back.address, "127.3.2.1".parse::<IpAddr>().unwrap());
        assert_eq!(back.traffic_class, 0x20);

        let mut ipv6 = [0; GRH_BYTES];
        ipv6[..4].copy_from_slice(&0x6031_2345_u32.to_be_bytes());
        ipv6[8] = 0xfd;
        ipv6[23] = 9;
        let (address, traffic_class, flow_label) = sender(&ipv6).unwrap();
        assert_eq!(address, "fd00::9".parse::<IpAddr>().unwrap());
        assert_eq!((traffic_class, flow_label), (0x03, 0x12345));
    }

    #[test]
    fn without_a_global_header_there_is_no_way_back() {
        let nothing = [0; GRH_BYTES];
        let mut ipv4 = nothing;
        ipv4[20] = 0x45;
        for (port, flags, header) in [(1, 0, ipv4), (2, 1, ipv4), (1, 1, nothing)] {
            let way = way_back(port, &completion(flags), &header);
            assert_eq!(way.err(), Some(libc::EINVAL), "{port} {flags}");
        }
    }
}
