//! The RDMA IP CM service (annex A11): service numbers that contain a port, and the header with IP addresses that
//! begins a request's private data.

use std::net::IpAddr;

use super::req::REQ_DATA_BYTES;
use crate::wire::as_ipv6;

/// Service numbers of connections by IP address; the port is added to it.
pub const TCP_PORT_SPACE: u64 = 0x0000_0000_0106_0000;
/// Those of datagrams by IP address.
pub const UDP_PORT_SPACE: u64 = 0x0000_0000_0111_0000;
pub const IP_HEADER_BYTES: usize = 36;
/// Bytes of a request's private data that are left to the program.
pub const PROGRAM_DATA_BYTES: usize = REQ_DATA_BYTES - IP_HEADER_BYTES;

const VERSION: u8 = 0;
const SOURCE_AT: usize = 4;
const DESTINATION_AT: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader {
    pub source_port: u16,
    pub source: IpAddr,
    pub destination: IpAddr,
}

impl IpHeader {
    /// The header, and the program's private data behind it; `None` for another version or family.
    pub fn split(private_data: &[u8]) -> Option<(IpHeader, &[u8])> {
        let (header, rest) = private_data.split_first_chunk::<IP_HEADER_BYTES>()?;
        let [version, family, port_high, port_low, ..] = *header;
        if version != VERSION {
            return None;
        }
        let ip_header = IpHeader {
            source_port: u16::from_be_bytes([port_high, port_low]),
            source: address(header, SOURCE_AT, family)?,
            destination: address(header, DESTINATION_AT, family)?,
        };
        Some((ip_header, rest))
    }

    /// A request's private data.
    pub fn join(&self, program_data: &[u8]) -> Vec<u8> {
        let four = self.source.is_ipv4() && self.destination.is_ipv4();
        let mut whole = vec![VERSION, if four { 4 << 4 } else { 6 << 4 }];
        whole.extend(self.source_port.to_be_bytes());
        for address in [self.source, self.destination] {
            whole.extend(match address {
                IpAddr::V4(v4) if four => v4.to_ipv6_compatible().octets(),
                address => as_ipv6(address).octets(),
            });
        }
        whole.extend(program_data);
        whole
    }
}

fn address(header: &[u8; IP_HEADER_BYTES], at: usize, family: u8) -> Option<IpAddr> {
    let field: [u8; 16] = *header.get(at..)?.first_chunk()?;
    match family >> 4 {
        4 => Some(IpAddr::from(*field.last_chunk::<4>()?)),
        6 => Some(IpAddr::from(field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_joined_is_split(
            source_port in any::<u16>(),
            addresses in any::<(u128, u128, bool)>(),
            data in prop::collection::vec(any::<u8>(), PROGRAM_DATA_BYTES),
        ) {
            let address = |bits: u128| if addresses.2 {
                IpAddr::from(Ipv4Addr::from(bits as u32))
            } else {
                IpAddr::from(Ipv6Addr::from(bits))
            };
            let header = IpHeader {
                source_port,
                source: address(addresses.0),
                destination: address(addresses.1),
            };
            let whole = header.join(&data);
            let (read, rest) = IpHeader::split(&whole).unwrap();
            prop_assert_eq!(read, header);
            prop_assert_eq!(rest, &data[..]);
        }
    }

    #[test]
    fn an_ipv4_address_lies_at_the_end_of_its_field() {
        let header = IpHeader {
            source_port: 0x1234,
            source: IpAddr::from([10, 0, 0, 1]),
            destination: IpAddr::from([10, 0, 0, 2]),
        };
        let whole = header.join(b"abc");
        assert_eq!(whole[..4], [0, 0x40, 0x12, 0x34]);
        assert_eq!(whole[16..20], [10, 0, 0, 1]);
        assert_eq!(whole[32..36], [10, 0, 0, 2]);
        assert_eq!(&whole[36..], b"abc");
    }

    #[test]
    fn other_versions_and_families_are_refused() {
        let mut whole = [0; REQ_DATA_BYTES];
        assert_eq!(IpHeader::split(&whole), None);
        whole[1] = 0x40;
        assert!(IpHeader::split(&whole).is_some());
        whole[0] = 1;
        assert_eq!(IpHeader::split(&whole), None);
    }
}
