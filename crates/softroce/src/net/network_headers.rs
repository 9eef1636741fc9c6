//! The IP and UDP headers of packets as they are on the wire, for captures: the sockets show none of them. It must not
//! know files.

use std::net::{IpAddr, SocketAddr};

use super::flow::DONT_FRAGMENT;
use crate::wire::as_ipv6;

/// Bytes of the longest: an IPv6 and a UDP header.
pub const LONGEST_HEADERS: usize = 40 + UDP_BYTES;
const UDP_BYTES: usize = 8;
const UDP_PROTOCOL: u8 = 17;

/// What a packet's headers say besides its length.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// Type of service or traffic class.
    pub traffic_class: u8,
    /// Time to live or hop limit.
    pub hop_limit: u8,
}

impl Route {
    /// The headers of a packet with this payload of UDP, and their length. IPv6 has no `identification`.
    pub fn headers(&self, identification: u16, payload: &[u8]) -> ([u8; LONGEST_HEADERS], usize) {
        let mut headers = [0; LONGEST_HEADERS];
        let mut length = 0;
        let mut put = |bytes: &[u8]| {
            if let Some(to) = headers.get_mut(length..length + bytes.len()) {
                to.copy_from_slice(bytes);
            }
            length += bytes.len();
        };
        let udp_bytes = ((UDP_BYTES + payload.len()) as u16).to_be_bytes();
        let mut udp_sum = Sum::default();
        match (self.source.ip(), self.destination.ip()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let mut ip = [0; 20];
                let whole = (20 + UDP_BYTES + payload.len()) as u16;
                ip[..2].copy_from_slice(&[0x45, self.traffic_class]);
                ip[2..4].copy_from_slice(&whole.to_be_bytes());
                ip[4..6].copy_from_slice(&identification.to_be_bytes());
                ip[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
                ip[8..10].copy_from_slice(&[self.hop_limit, UDP_PROTOCOL]);
                ip[12..16].copy_from_slice(&source.octets());
                ip[16..].copy_from_slice(&destination.octets());
                let sum = Sum::default().add(&ip).checksum();
                ip[10..12].copy_from_slice(&sum);
                put(&ip);
                udp_sum = udp_sum.add(&ip[12..]);
            }
            (source, destination) => {
                let [source, destination] = [source, destination].map(|it| as_ipv6(it).octets());
                let class = self.traffic_class;
                put(&[0x60 | class >> 4, class << 4, 0, 0]);
                put(&udp_bytes);
                put(&[UDP_PROTOCOL, self.hop_limit]);
                put(&source);
                put(&destination);
                udp_sum = udp_sum.add(&source).add(&destination);
            }
        }
        let source_port = self.source.port().to_be_bytes();
        let destination_port = self.destination.port().to_be_bytes();
        // Over a pseudo header, the header and the payload (RFC 768, RFC 8200 8.1).
        let sum = udp_sum
            .add(&[0, UDP_PROTOCOL])
            .add(&udp_bytes)
            .add(&source_port)
            .add(&destination_port)
            .add(&udp_bytes)
            .add(payload);
        let checksum = match sum.checksum() {
            [0, 0] => [0xff, 0xff],
            checksum => checksum,
        };
        put(&source_port);
        put(&destination_port);
        put(&udp_bytes);
        put(&checksum);
        (headers, length)
    }
}

/// The Internet checksum in progress (RFC 1071). All parts but the last have an even length.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    fn add(self, bytes: &[u8]) -> Sum {
        let (words, rest) = bytes.as_chunks::<2>();
        let whole: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
        let last = rest.first().map_or(0, |byte| u64::from(*byte) << 8);
        Sum(self.0 + whole + last)
    }

    fn checksum(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        (!(sum as u16)).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_fit_and_fields_are_where_they_belong() {
        for (addresses, length) in [("192.0.2.1 192.0.2.2", 28), ("2001:db8::1 2001:db8::2", 48)] {
            let (source, destination) = addresses.split_once(' ').unwrap();
            let route = Route {
                source: (source.parse::<IpAddr>().unwrap(), 0xc001).into(),
                destination: (destination.parse::<IpAddr>().unwrap(), 4791).into(),
                traffic_class: 0x6a,
                hop_limit: 9,
            };
            for payload in [&[1, 2, 3, 4, 5][..], &[0xff; 64], &[]] {
                let (headers, used) = route.headers(0x1234, payload);
                assert_eq!(used, length);
                let (ip, udp) = headers[..used].split_at(length - 8);
                assert_eq!(udp[..4], [0xc0, 0x01, 0x12, 0xb7]);
                let udp_bytes = (8 + payload.len()) as u16;
                assert_eq!(udp[4..6], udp_bytes.to_be_bytes());
                // A sum over everything, its checksum included, is zero.
                let pseudo = Sum::default()
                    .add(&ip[if length == 28 { 12 } else { 8 }..])
                    .add(&[0, 17])
                    .add(&udp_bytes.to_be_bytes());
                assert_eq!(pseudo.add(udp).add(payload).checksum(), [0, 0]);
                if length == 28 {
                    assert_eq!(ip[..2], [0x45, 0x6a]);
                    assert_eq!(ip[2..4], (28 + payload.len() as u16).to_be_bytes());
                    assert_eq!(ip[4..10], [0x12, 0x34, 0x40, 0, 9, 17]);
                    assert_eq!(Sum::default().add(ip).checksum(), [0, 0]);
                } else {
                    assert_eq!(ip[..4], [0x66, 0xa0, 0, 0]);
                    assert_eq!(ip[4..6], udp_bytes.to_be_bytes());
                    assert_eq!(ip[6..8], [17, 9]);
                }
            }
        }
    }
}
