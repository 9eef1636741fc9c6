//! Address handles: the destinations of datagrams.

use std::net::{IpAddr, Ipv4Addr};
use std::os::raw::c_int;

use rdma_sys::{ibv_ah, ibv_ah_attr, ibv_context, ibv_grh, ibv_pd, ibv_wc, ibv_wc_flags};

use super::context::Context;
use super::domain::Pd;
use super::errno::{minus_one_or_zero, pointer_or_errno};
use super::gid;
use super::gid::Destination;
use super::object::{Behind, Use};

/// The data of a handle.
pub(super) struct Ah {
    pub(super) destination: Destination,
    _domain: Use,
}

impl Behind<ibv_ah> for Ah {}

unsafe fn create(pd: *mut ibv_pd, attr: &ibv_ah_attr) -> Result<*mut ibv_ah, c_int> {
    // SAFETY: a live domain of an open context.
    let (domain, context) = unsafe { (Pd::of(pd), (*pd).context) };
    // SAFETY: as above.
    let local = unsafe { Context::of(context) }.address();
    let ah = Ah { destination: gid::destination(attr, local)?, _domain: domain.users.begin() };
    Ok(ah.lend(ibv_ah { context, pd, handle: 0 }))
}

/// `ibv_create_ah(3)`. EINVAL for another port or GID index, without a global route, or for a GID that is not of a
/// single host; ETIMEDOUT if no packet can reach the destination.
pub unsafe extern "C" fn create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah {
    // SAFETY: a live domain and a readable struct.
    pointer_or_errno(unsafe { create(pd, &*attr) })
}

pub unsafe extern "C" fn destroy_ah(ah: *mut ibv_ah) -> c_int {
    // SAFETY: a live handle.
    drop(unsafe { Ah::take_back(ah) });
    0
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
    if port != gid::PORT || wc.wc_flags & ibv_wc_flags::IBV_WC_GRH.0 == 0 {
        return Err(libc::EINVAL);
    }
    let (address, traffic_class, flow_label) = sender(header).ok_or(libc::EINVAL)?;
    let mut attr = gid::path_to(address);
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
    pointer_or_errno(unsafe { way_back(port, &*wc, &*grh.cast()).and_then(|way| create(pd, &way)) })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let back = gid::destination(&way, "127.0.0.1".parse().unwrap()).unwrap();
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
